//! Shard leases: a claim is a plain read, and what is in flight is known in
//! memory alone; a finish proves the shard's fence and writes the row once.

use std::{
    collections::HashSet,
    sync::{Mutex, PoisonError},
};

use anyhow::{Context as _, Result, ensure};
use async_trait::async_trait;
use sqlx::MySqlPool;

use super::{Batch, Store, table};
use crate::{
    contestant::{Job, SHARDS},
    database::execute,
    entry::Place,
};

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum By {
    Update,
    Delete,
}

const LEASES: &str = "CREATE TABLE floor_shard (
    shard_id SMALLINT UNSIGNED NOT NULL PRIMARY KEY,
    owner VARCHAR(64) NOT NULL,
    fence BIGINT UNSIGNED NOT NULL,
    lease_until DATETIME(6) NOT NULL) ENGINE=InnoDB COLLATE utf8mb4_bin";

/// Holds the shard's row until the commit: a successor waits for it.
const PROVE: &str = "SELECT fence FROM floor_shard WHERE shard_id = ? AND owner = ? AND fence = 1
    AND lease_until >= UTC_TIMESTAMP(6) LOCK IN SHARE MODE";

pub(super) struct Shards {
    url: String,
    place: Place,
    pool: MySqlPool,
    by: By,
    owner: String,
    in_flight: Mutex<HashSet<u64>>,
}

impl Shards {
    pub(super) fn connect(place: Place, url: &str, by: By) -> Result<Self> {
        let pool = table::pool(url)?;
        let owner = format!("floor-{}", std::process::id());
        let in_flight = Mutex::default();
        Ok(Self {
            url: url.to_owned(),
            place,
            pool,
            by,
            owner,
            in_flight,
        })
    }

    fn in_flight(&self) -> std::sync::MutexGuard<'_, HashSet<u64>> {
        self.in_flight
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl Store for Shards {
    fn url(&self) -> &str {
        &self.url
    }

    fn place(&self) -> Place {
        self.place
    }

    async fn install(&self) -> Result<()> {
        table::install(&self.url, false).await?;
        execute(&self.url, LEASES).await
    }

    async fn enqueue(&self, jobs: &[Job]) -> Result<()> {
        table::enqueue(&self.pool, jobs).await
    }

    async fn start(&self, (index, of): (u16, u16)) -> Result<()> {
        for shard in (0..SHARDS).filter(|shard| shard % of == index) {
            let sql = "INSERT INTO floor_shard VALUES (?, ?, 1, TIMESTAMPADD(SECOND, 600, UTC_TIMESTAMP(6)))
                ON DUPLICATE KEY UPDATE owner = VALUES(owner)";
            sqlx::query(sql)
                .bind(shard)
                .bind(&self.owner)
                .execute(&self.pool)
                .await?;
        }
        Ok(())
    }

    async fn due_shards(&self) -> Result<Vec<u16>> {
        table::due_shards(&self.pool).await
    }

    async fn claim(&self, shard: u16, limit: u32) -> Result<Batch> {
        let rows = sqlx::query(table::PICK)
            .bind(shard)
            .bind(limit)
            .fetch_all(&self.pool)
            .await?;
        let (ids, numbers) = table::picked(&rows)?;
        let mut in_flight = self.in_flight();
        let fresh = ids
            .into_iter()
            .zip(numbers)
            .filter(|(id, _)| in_flight.insert(*id));
        let (ids, numbers) = fresh.unzip();
        Ok(Batch {
            shard,
            owner: self.owner.clone(),
            ids,
            numbers,
        })
    }

    async fn finish(&self, batch: Batch) -> Result<()> {
        let head = match self.by {
            By::Update => {
                "UPDATE floor_job SET status = 2, attempt_no = attempt_no + 1 WHERE status = 0 AND id IN"
            }
            By::Delete => "DELETE FROM floor_job WHERE status = 0 AND id IN",
        };
        let (sql, list) = table::with_ids(head, &batch.ids);
        let mut tx = self.pool.begin().await?;
        let proof = sqlx::query(PROVE).bind(batch.shard).bind(&batch.owner);
        proof
            .fetch_optional(&mut *tx)
            .await?
            .context("the shard's lease was lost")?;
        let finish = list
            .iter()
            .fold(sqlx::query(sql), |query, id| query.bind(id));
        let finished = finish.execute(&mut *tx).await?.rows_affected();
        ensure!(
            finished == batch.ids.len() as u64,
            "a job was no longer there"
        );
        tx.commit().await?;
        let mut in_flight = self.in_flight();
        for id in &batch.ids {
            in_flight.remove(id);
        }
        Ok(())
    }

    async fn unfinished(&self) -> Result<u64> {
        table::unfinished(&self.url).await
    }

    fn is_busy(&self) -> bool {
        !self.in_flight().is_empty()
    }

    async fn close(&self) {
        self.pool.close().await;
    }
}
