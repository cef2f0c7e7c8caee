//! The measurements, each a plain function that answers figures.

pub mod backlog;

pub mod drain;

pub mod enqueue;

pub mod latency;

pub mod snapshot;

pub mod two;

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::{Result, ensure};
use tokio_util::sync::CancellationToken;

use crate::{
    contestant::{self, Contestant, Work, jobs},
    database::Fresh,
    entry::Entry,
    ran::{Ran, exactly_once},
};

/// Rows of one bulk enqueue.
pub const BULK_ROWS: usize = 1000;
/// With no job started for this long, a drain has failed.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// What a figure counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Unit {
    JobsPerSecond,
    CountPerJob,
    MicrosecondsPerJob,
    Milliseconds,
    Count,
}

/// One measured number.
#[derive(Clone, Debug)]
pub struct Figure {
    pub name: String,
    pub unit: Unit,
    pub value: f64,
}

impl Figure {
    pub fn new(name: impl Into<String>, unit: Unit, value: f64) -> Self {
        Self {
            name: name.into(),
            unit,
            value,
        }
    }

    pub fn per_second(name: impl Into<String>, jobs: usize, took: Duration) -> Self {
        Self::new(name, Unit::JobsPerSecond, jobs as f64 / took.as_secs_f64())
    }
}

/// A contestant on a database of its own.
pub struct Stand {
    pub entry: Entry,
    pub contestant: Box<dyn Contestant>,
    pub fresh: Fresh,
}

impl Stand {
    pub async fn set_up(entry: Entry) -> Result<Self> {
        let fresh = Fresh::create(entry.place).await?;
        let connected = async {
            let contestant = contestant::connect(entry, &fresh.url).await?;
            contestant.install().await?;
            anyhow::Ok(contestant)
        };
        match connected.await {
            Ok(contestant) => Ok(Self {
                entry,
                contestant,
                fresh,
            }),
            Err(error) => {
                fresh.drop_it().await?;
                Err(error)
            }
        }
    }

    pub async fn take_down(self) -> Result<()> {
        self.contestant.close().await;
        self.fresh.drop_it().await
    }

    /// Stores jobs that are due at once, in bulk.
    pub async fn enqueue(&self, first: usize, count: usize) -> Result<()> {
        for start in (first..first + count).step_by(BULK_ROWS) {
            let end = (start + BULK_ROWS).min(first + count);
            self.contestant.enqueue(&jobs(start..end)).await?;
        }
        Ok(())
    }

    /// Runs all that is due, and proves that each job ran once.
    pub async fn drain(&self, first: usize, count: usize, concurrency: usize) -> Result<Duration> {
        let ran = Arc::new(Ran::new(first, count));
        let took = self.work(&ran, concurrency).await?;
        exactly_once(&ran.times())?;
        let unfinished = self.contestant.unfinished().await?;
        ensure!(
            unfinished == 0,
            "{unfinished} jobs ran and are not finished"
        );
        Ok(took)
    }

    /// Works until every job was started, and what was started is finished.
    pub async fn work(&self, ran: &Arc<Ran>, concurrency: usize) -> Result<Duration> {
        let stop = CancellationToken::new();
        let work = Work {
            concurrency,
            ran: Arc::clone(ran),
            stop: stop.clone(),
            part: (0, 1),
        };
        let started = Instant::now();
        let watch = async {
            ran.all(PATIENCE).await?;
            stop.cancel();
            Ok(())
        };
        tokio::try_join!(self.contestant.work(work), watch)?;
        Ok(started.elapsed())
    }
}

/// Runs a measurement on a fresh database, which is gone afterwards.
pub async fn on_fresh<T>(entry: Entry, body: impl AsyncFnOnce(&Stand) -> Result<T>) -> Result<T> {
    let stand = Stand::set_up(entry).await?;
    let result = body(&stand).await;
    stand.take_down().await?;
    result
}

/// The middle one; the lower of two.
pub fn median(values: &mut [f64]) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    values.get(values.len().checked_sub(1)? / 2).copied()
}
