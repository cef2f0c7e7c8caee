//! SQLite's own floor: batches, one statement to claim, one to finish, WAL.

use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::{Result, ensure};
use async_trait::async_trait;
use sqlx::{
    QueryBuilder, Row as _, Sqlite, SqlitePool,
    sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePoolOptions, SqliteSynchronous},
};

use super::{Batch, Store, table};
use crate::{
    contestant::{Job, MEMO, SHARDS},
    entry::Place,
};

const TABLE: &str = "CREATE TABLE floor_job (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        shard_id INTEGER NOT NULL,
        status INTEGER NOT NULL DEFAULT 0,
        next_attempt_at INTEGER NOT NULL,
        attempt_no INTEGER NOT NULL DEFAULT 0,
        lease_owner TEXT NULL,
        lease_seq INTEGER NOT NULL DEFAULT 0,
        lease_until INTEGER NULL,
        number INTEGER NOT NULL,
        payload TEXT NOT NULL);
    CREATE INDEX claim ON floor_job (shard_id, status, next_attempt_at, id);
    CREATE INDEX lease ON floor_job (status, lease_until, id)";

const CLAIM: &str = "UPDATE floor_job SET status = 1, attempt_no = attempt_no + 1,
        lease_seq = lease_seq + 1, lease_owner = ?1,
        lease_until = CAST(unixepoch('subsec') * 1000000 AS INTEGER) + 60000000
    WHERE id IN (SELECT id FROM floor_job WHERE shard_id = ?2 AND status = 0
        AND next_attempt_at <= CAST(unixepoch('subsec') * 1000000 AS INTEGER)
        ORDER BY next_attempt_at, id LIMIT ?3)
    RETURNING id, number, payload";

const FINISH: &str = "UPDATE floor_job SET status = 2, lease_until = NULL
    WHERE status = 1 AND lease_owner = ?
    AND lease_until >= CAST(unixepoch('subsec') * 1000000 AS INTEGER) AND id IN";

pub(super) struct SqliteRows {
    url: String,
    pool: SqlitePool,
    claims: AtomicU64,
}

impl SqliteRows {
    /// As durable as the library's connections.
    pub(super) async fn connect(url: &str) -> Result<Self> {
        let options: SqliteConnectOptions = url.parse()?;
        let options = options
            .create_if_missing(true)
            .journal_mode(SqliteJournalMode::Wal)
            .synchronous(SqliteSynchronous::Full)
            .busy_timeout(std::time::Duration::from_secs(5));
        let pool = SqlitePoolOptions::new()
            .max_connections(4)
            .connect_with(options)
            .await?;
        Ok(Self {
            url: url.to_owned(),
            pool,
            claims: AtomicU64::new(0),
        })
    }
}

#[async_trait]
impl Store for SqliteRows {
    fn url(&self) -> &str {
        &self.url
    }

    fn place(&self) -> Place {
        Place::Sqlite
    }

    async fn install(&self) -> Result<()> {
        sqlx::raw_sql(TABLE).execute(&self.pool).await?;
        Ok(())
    }

    async fn enqueue(&self, jobs: &[Job]) -> Result<()> {
        let head = "INSERT INTO floor_job (shard_id, next_attempt_at, number, payload) ";
        let mut insert = QueryBuilder::<Sqlite>::new(head);
        insert.push_values(jobs, |mut row, job| {
            row.push_bind(i64::try_from(job.number % u64::from(SHARDS)).unwrap_or_default())
                .push("COALESCE(")
                .push_bind_unseparated(job.due_us)
                .push_unseparated(", CAST(unixepoch('subsec') * 1000000 AS INTEGER))")
                .push_bind(i64::try_from(job.number).unwrap_or_default())
                .push_bind(MEMO);
        });
        insert.build().execute(&self.pool).await?;
        Ok(())
    }

    async fn due_shards(&self) -> Result<Vec<u16>> {
        let sql = "SELECT shard_id FROM floor_job WHERE status = 0 GROUP BY shard_id
            HAVING MIN(next_attempt_at) <= CAST(unixepoch('subsec') * 1000000 AS INTEGER)";
        Ok(sqlx::query_scalar(sql).fetch_all(&self.pool).await?)
    }

    async fn claim(&self, shard: u16, limit: u32) -> Result<Batch> {
        let claim_no = self.claims.fetch_add(1, Ordering::Relaxed);
        let owner = format!("floor-{}:{claim_no}", std::process::id());
        let claim = sqlx::query(CLAIM).bind(&owner).bind(shard).bind(limit);
        let rows = claim.fetch_all(&self.pool).await?;
        let mut batch = Batch {
            shard,
            owner,
            ids: Vec::new(),
            numbers: Vec::new(),
        };
        for row in rows {
            batch.ids.push(row.try_get(0)?);
            batch.numbers.push(row.try_get(1)?);
            std::hint::black_box(row.try_get::<String, _>(2)?);
        }
        Ok(batch)
    }

    async fn finish(&self, batch: Batch) -> Result<()> {
        let (sql, list) = table::with_ids(FINISH, &batch.ids);
        let finish = sqlx::query(sql).bind(batch.owner);
        let bind = |query: sqlx::query::Query<'static, _, _>, id: &u64| {
            query.bind(i64::try_from(*id).unwrap_or_default())
        };
        let finished = list
            .iter()
            .fold(finish, bind)
            .execute(&self.pool)
            .await?
            .rows_affected();
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
