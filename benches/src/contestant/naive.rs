//! The anti-pattern: `FOR UPDATE` without SKIP LOCKED, and the work inside the
//! transaction. Each worker waits for the rows that another one has locked.

use anyhow::Result;
use async_trait::async_trait;
use futures::future::try_join_all;
use sqlx::MySqlPool;

use super::{Contestant, Job, Work, floor::table};

/// Jobs of one transaction.
const BATCH: u32 = 64;
/// Connections at once, each with a batch.
const WORKERS_MAX: usize = 16;
const TRIES_MAX: usize = 50;

const PICK: &str = "SELECT id, number, payload FROM floor_job FORCE INDEX (claim)
    WHERE shard_id IN (0, 1, 2, 3, 4, 5, 6, 7) AND status = 0
    AND next_attempt_at <= UTC_TIMESTAMP(6) LIMIT ? FOR UPDATE";

struct Naive {
    url: String,
    pool: MySqlPool,
}

pub async fn connect(url: &str) -> Result<Box<dyn Contestant>> {
    let pool = table::pool(url)?;
    Ok(Box::new(Naive {
        url: url.to_owned(),
        pool,
    }))
}

#[async_trait]
impl Contestant for Naive {
    async fn install(&self) -> Result<()> {
        table::install(&self.url, false).await
    }

    async fn enqueue(&self, jobs: &[Job]) -> Result<()> {
        table::enqueue(&self.pool, jobs).await
    }

    async fn work(&self, work: Work) -> Result<()> {
        let workers = work.concurrency.min(WORKERS_MAX);
        let work = &work;
        try_join_all((0..workers).map(|_| self.worker(work))).await?;
        Ok(())
    }

    async fn unfinished(&self) -> Result<u64> {
        table::unfinished(&self.url).await
    }

    async fn close(&self) {
        self.pool.close().await;
    }
}

impl Naive {
    async fn worker(&self, work: &Work) -> Result<()> {
        let mut tries = 0;
        while !work.stop.is_cancelled() {
            match self.batch(work).await {
                Ok(()) => tries = 0,
                // A deadlock undid the transaction; nothing had run yet.
                Err(Failed::Before(_)) if tries < TRIES_MAX => tries += 1,
                Err(Failed::Before(error) | Failed::After(error)) => return Err(error.into()),
            }
        }
        Ok(())
    }

    async fn batch(&self, work: &Work) -> Result<(), Failed> {
        let mut tx = self.pool.begin().await.map_err(Failed::Before)?;
        let rows = sqlx::query(PICK)
            .bind(BATCH)
            .fetch_all(&mut *tx)
            .await
            .map_err(Failed::Before)?;
        let (ids, numbers) = table::picked(&rows).map_err(Failed::After)?;
        for number in numbers {
            work.ran.run(number);
        }
        if !ids.is_empty() {
            let (sql, list) = table::with_ids(
                "UPDATE floor_job SET status = 2, attempt_no = attempt_no + 1 WHERE id IN",
                &ids,
            );
            let finish = list
                .iter()
                .fold(sqlx::query(sql), |query, id| query.bind(id));
            finish.execute(&mut *tx).await.map_err(Failed::After)?;
        }
        tx.commit().await.map_err(Failed::After)
    }
}

/// Whether jobs had been run when the database gave up.
enum Failed {
    Before(sqlx::Error),
    After(sqlx::Error),
}
