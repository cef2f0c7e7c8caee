//! Row leases: a claim marks each row, one statement finishes a batch.

use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::{Result, ensure};
use async_trait::async_trait;
use sqlx::{AssertSqlSafe, MySqlPool, Row as _};

use super::{Batch, Store, table};
use crate::{contestant::Job, entry::Place};

const TAKE: &str = "UPDATE floor_job SET status = 1, attempt_no = attempt_no + 1,
    lease_seq = lease_seq + 1, lease_owner = ?,
    lease_until = TIMESTAMPADD(SECOND, 60, UTC_TIMESTAMP(6)) WHERE status = 0 AND id IN";

const FINISH: &str = "UPDATE floor_job SET status = 2, lease_until = NULL
    WHERE status = 1 AND lease_owner = ? AND lease_until >= UTC_TIMESTAMP(6) AND id IN";

pub(super) struct Rows {
    url: String,
    place: Place,
    pool: MySqlPool,
    claims: AtomicU64,
}

impl Rows {
    pub(super) fn connect(place: Place, url: &str) -> Result<Self> {
        let pool = table::pool(url)?;
        Ok(Self {
            url: url.to_owned(),
            place,
            pool,
            claims: AtomicU64::new(0),
        })
    }

    /// `SELECT … FOR UPDATE SKIP LOCKED`, and the UPDATE in the same transaction.
    async fn claim_locked(
        &self,
        shard: u16,
        limit: u32,
        owner: &str,
    ) -> Result<(Vec<u64>, Vec<u64>)> {
        let sql = AssertSqlSafe(format!("{} FOR UPDATE SKIP LOCKED", table::PICK));
        let mut tx = self.pool.begin().await?;
        let rows = sqlx::query(sql)
            .bind(shard)
            .bind(limit)
            .fetch_all(&mut *tx)
            .await?;
        let (ids, numbers) = table::picked(&rows)?;
        if !ids.is_empty() {
            let (sql, list) = table::with_ids(TAKE, &ids);
            let take = list
                .iter()
                .fold(sqlx::query(sql).bind(owner), |query, id| query.bind(id));
            take.execute(&mut *tx).await?;
        }
        tx.commit().await?;
        Ok((ids, numbers))
    }

    /// A plain SELECT, and the UPDATE as a compare-and-set.
    async fn claim_compared(
        &self,
        shard: u16,
        limit: u32,
        owner: &str,
    ) -> Result<(Vec<u64>, Vec<u64>)> {
        let rows = sqlx::query(table::PICK)
            .bind(shard)
            .bind(limit)
            .fetch_all(&self.pool)
            .await?;
        let (mut ids, mut numbers) = table::picked(&rows)?;
        if ids.is_empty() {
            return Ok((ids, numbers));
        }
        let (sql, list) = table::with_ids(TAKE, &ids);
        let take = list
            .iter()
            .fold(sqlx::query(sql).bind(owner), |query, id| query.bind(id));
        let taken = take.execute(&self.pool).await?.rows_affected();
        if taken < ids.len() as u64 {
            let (sql, list) = table::with_ids(
                "SELECT id, number FROM floor_job WHERE status = 1 AND lease_owner = ? AND id IN",
                &ids,
            );
            let won = list
                .iter()
                .fold(sqlx::query(sql).bind(owner), |query, id| query.bind(id));
            let rows = won.fetch_all(&self.pool).await?;
            ids = rows
                .iter()
                .map(|row| row.try_get(0))
                .collect::<Result<_, _>>()?;
            numbers = rows
                .iter()
                .map(|row| row.try_get(1))
                .collect::<Result<_, _>>()?;
        }
        Ok((ids, numbers))
    }
}

#[async_trait]
impl Store for Rows {
    fn url(&self) -> &str {
        &self.url
    }

    fn place(&self) -> Place {
        self.place
    }

    async fn install(&self) -> Result<()> {
        table::install(&self.url, true).await
    }

    async fn enqueue(&self, jobs: &[Job]) -> Result<()> {
        table::enqueue(&self.pool, jobs).await
    }

    async fn due_shards(&self) -> Result<Vec<u16>> {
        table::due_shards(&self.pool).await
    }

    async fn claim(&self, shard: u16, limit: u32) -> Result<Batch> {
        let claim_no = self.claims.fetch_add(1, Ordering::Relaxed);
        let owner = format!("floor-{}:{claim_no}", std::process::id());
        let (ids, numbers) = match self.place {
            Place::Mysql9 => self.claim_locked(shard, limit, &owner).await?,
            _ => self.claim_compared(shard, limit, &owner).await?,
        };
        Ok(Batch {
            shard,
            owner,
            ids,
            numbers,
        })
    }

    async fn finish(&self, batch: Batch) -> Result<()> {
        let (sql, list) = table::with_ids(FINISH, &batch.ids);
        let finish = sqlx::query(sql).bind(batch.owner);
        let finish = list.iter().fold(finish, |query, id| query.bind(id));
        let finished = finish.execute(&self.pool).await?.rows_affected();
        ensure!(finished == batch.ids.len() as u64, "a lease was lost");
        Ok(())
    }

    async fn unfinished(&self) -> Result<u64> {
        table::unfinished(&self.url).await
    }

    async fn close(&self) {
        self.pool.close().await;
    }
}
