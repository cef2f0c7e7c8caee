//! fang, its asynchronous queue on MySQL.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use anyhow::{Result, anyhow};
use async_trait::async_trait;
use fang::{
    AsyncQueue, AsyncQueueable, AsyncRunnable, AsyncWorkerPool, FangError, SleepParams, typetag,
};
use serde::{Deserialize, Serialize};
use tokio::sync::OnceCell;

use super::{Contestant, Job, MEMO, Work};
use crate::{database, ran::Ran};

/// As its own migration makes it, which needs diesel and libmysqlclient to run.
const TABLE: &str = "CREATE TABLE fang_tasks (
        id BINARY(16) PRIMARY KEY,
        metadata JSON NOT NULL,
        error_message TEXT,
        state ENUM('new', 'in_progress', 'failed', 'finished', 'retried') NOT NULL DEFAULT 'new',
        task_type VARCHAR(255) NOT NULL DEFAULT 'common',
        uniq_hash VARCHAR(64),
        retries INTEGER NOT NULL DEFAULT 0,
        scheduled_at DATETIME(6) NOT NULL DEFAULT CURRENT_TIMESTAMP(6),
        created_at DATETIME(6) NOT NULL DEFAULT CURRENT_TIMESTAMP(6),
        updated_at DATETIME(6) NOT NULL DEFAULT CURRENT_TIMESTAMP(6)
    );
    CREATE INDEX fang_tasks_state_index ON fang_tasks(state);
    CREATE INDEX fang_tasks_type_index ON fang_tasks(task_type);
    CREATE INDEX fang_tasks_scheduled_at_index ON fang_tasks(scheduled_at);
    CREATE INDEX fang_tasks_uniq_hash ON fang_tasks(uniq_hash)";

/// Connections for what is enqueued at a time, and a few more.
const CONNECTIONS: u32 = 20;
/// For the last jobs, whose handlers ran, to be written.
const WRITE_MAX: Duration = Duration::from_secs(20);

/// A task is read back from its JSON and can reach nothing but statics.
static RAN: Mutex<Option<Arc<Ran>>> = Mutex::new(None);

#[derive(Serialize, Deserialize)]
struct Task {
    number: u64,
    memo: String,
}

#[typetag::serde]
#[async_trait]
impl AsyncRunnable for Task {
    async fn run(&self, _: &dyn AsyncQueueable) -> Result<(), FangError> {
        if let Some(ran) = &*RAN.lock().unwrap_or_else(PoisonError::into_inner) {
            ran.run(self.number);
        }
        Ok(())
    }
}

struct Fang {
    url: String,
    queue: OnceCell<AsyncQueue>,
}

pub async fn connect(url: &str) -> Result<Box<dyn Contestant>> {
    Ok(Box::new(Fang {
        url: url.to_owned(),
        queue: OnceCell::new(),
    }))
}

#[async_trait]
impl Contestant for Fang {
    async fn install(&self) -> Result<()> {
        database::execute(&self.url, TABLE).await
    }

    /// It has no bulk: one statement after the other.
    async fn enqueue(&self, jobs: &[Job]) -> Result<()> {
        let queue = self
            .queue
            .get_or_try_init(|| open(self.url.clone(), CONNECTIONS))
            .await?;
        for job in jobs {
            let task = Task {
                number: job.number,
                memo: MEMO.to_owned(),
            };
            queue
                .insert_task(&task)
                .await
                .map_err(|error| anyhow!("{error}"))?;
        }
        Ok(())
    }

    /// Its workers can't be stopped: they run in a runtime that is ended.
    async fn work(&self, work: Work) -> Result<()> {
        *RAN.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::clone(&work.ran));
        let workers = u32::try_from(work.concurrency)?;
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .enable_all()
            .build()?;
        let queue = runtime.spawn(open(self.url.clone(), workers)).await??;
        let mut pool: AsyncWorkerPool<AsyncQueue> = AsyncWorkerPool::builder()
            .number_of_workers(workers)
            .queue(queue)
            .sleep_params(SleepParams::default())
            .build();
        runtime.spawn(async move { pool.start().await });
        work.stop.cancelled().await;
        let stopped = Instant::now();
        while self.unfinished().await? > 0 && stopped.elapsed() < WRITE_MAX {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        runtime.shutdown_background();
        Ok(())
    }

    async fn unfinished(&self) -> Result<u64> {
        let sql = "SELECT COUNT(*) FROM fang_tasks WHERE state IN ('new', 'in_progress')";
        database::number(&self.url, sql).await
    }
}

async fn open(url: String, connections: u32) -> Result<AsyncQueue> {
    let mut queue = AsyncQueue::builder()
        .uri(url)
        .max_pool_size(connections)
        .build();
    queue.connect().await.map_err(|error| anyhow!("{error}"))?;
    Ok(queue)
}
