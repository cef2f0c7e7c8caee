//! apalis-mysql, as its documentation shows it, and tuned by its own settings.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use anyhow::{Result, anyhow};
use apalis::prelude::*;
use apalis_core::backend::poll_strategy::{IntervalStrategy, StrategyBuilder};
use apalis_mysql::{Config, MySqlStorage, PoolOptions};
use async_trait::async_trait;
use serde::{Deserialize, Serialize};

use super::{Contestant, Job as BenchJob, MEMO, Work};
use crate::{database, ran::Ran};

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Tuning {
    /// What its documentation begins with.
    Default,
    /// Claims of 1,000, a poll every 10 ms, 32 connections.
    Tuned,
}

const TUNED_BATCH: usize = 1000;
const TUNED_POLL: Duration = Duration::from_millis(10);
const TUNED_CONNECTIONS: u32 = 32;

#[derive(Clone, Serialize, Deserialize)]
struct Task {
    number: u64,
    memo: String,
}

async fn handle(task: Task, ran: Data<Arc<Ran>>) -> Result<(), BoxDynError> {
    ran.run(task.number);
    Ok(())
}

struct Apalis {
    url: String,
    pool: apalis_mysql::MySqlPool,
    config: Config,
}

pub async fn connect(url: &str, tuning: Tuning) -> Result<Box<dyn Contestant>> {
    let mut options = PoolOptions::new();
    let mut config = Config::new("bench");
    if tuning == Tuning::Tuned {
        let poll = StrategyBuilder::new()
            .apply(IntervalStrategy::new(TUNED_POLL))
            .build();
        options = options.max_connections(TUNED_CONNECTIONS);
        config = config.set_buffer_size(TUNED_BATCH).with_poll_interval(poll);
    }
    let pool = options.connect(url).await?;
    Ok(Box::new(Apalis {
        url: url.to_owned(),
        pool,
        config,
    }))
}

#[async_trait]
impl Contestant for Apalis {
    async fn install(&self) -> Result<()> {
        Ok(MySqlStorage::setup(&self.pool).await?)
    }

    /// It has no bulk of its own: one transaction, one statement for each job.
    async fn enqueue(&self, jobs: &[BenchJob]) -> Result<()> {
        let mut storage = MySqlStorage::new_with_config(&self.pool, &self.config);
        let task = |job: &BenchJob| Task {
            number: job.number,
            memo: MEMO.to_owned(),
        };
        let pushed = storage.push_bulk(jobs.iter().map(task).collect()).await;
        pushed.map_err(|error| anyhow!("{error}"))
    }

    async fn work(&self, work: Work) -> Result<()> {
        static WORKERS: AtomicU32 = AtomicU32::new(0);
        let number = WORKERS.fetch_add(1, Ordering::Relaxed);
        let name = format!("bench-{}-{number}", std::process::id());
        let worker = WorkerBuilder::new(name)
            .backend(MySqlStorage::new_with_config(&self.pool, &self.config))
            .data(work.ran)
            .concurrency(work.concurrency)
            .build(handle);
        let stop = async move {
            work.stop.cancelled().await;
            Ok::<_, WorkerError>(())
        };
        match worker.run_until(stop).await {
            Ok(()) | Err(WorkerError::GracefulExit) => Ok(()),
            Err(error) => Err(anyhow!("{error}")),
        }
    }

    async fn unfinished(&self) -> Result<u64> {
        database::number(
            &self.url,
            "SELECT COUNT(*) FROM jobs WHERE status <> 'Done'",
        )
        .await
    }

    async fn close(&self) {
        self.pool.close().await;
    }
}
