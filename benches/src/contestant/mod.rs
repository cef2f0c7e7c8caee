//! What every contestant can do. The measurements know nothing else of them.

mod ours;

mod floor;

mod naive;

#[cfg(feature = "peers")]
mod apalis;

#[cfg(feature = "peers")]
mod fang;

use std::{sync::Arc, time::Duration};

use anyhow::{Result, bail};
use async_trait::async_trait;
use tokio_util::sync::CancellationToken;

use crate::{
    entry::{Entry, Who},
    ran::Ran,
};

/// Shards of every contestant that has shards.
pub const SHARDS: u16 = 8;

/// What a job carries besides its number.
pub const MEMO: &str = "forty bytes that nobody reads in a bench";

/// A job to be stored.
#[derive(Clone, Copy, Debug)]
pub struct Job {
    pub number: u64,
    /// When it falls due, in microseconds since 1970; at once when `None`.
    pub due_us: Option<i64>,
}

/// Jobs that are due at once.
pub fn jobs(numbers: std::ops::Range<usize>) -> Vec<Job> {
    let job = |number| Job {
        number: number as u64,
        due_us: None,
    };
    numbers.map(job).collect()
}

/// What a worker is told.
#[derive(Clone, Debug)]
pub struct Work {
    /// Handlers at a time.
    pub concurrency: usize,
    pub ran: Arc<Ran>,
    /// No more claims; what was claimed is finished.
    pub stop: CancellationToken,
    /// Which part of the shards is this process's, of how many. For those that
    /// don't find that out by themselves.
    pub part: (u16, u16),
}

/// Rows that only stand beside.
#[derive(Clone, Copy, Debug)]
pub struct Fill {
    /// Rows that were put there before, so that no key comes twice.
    pub first: u64,
    /// Rows that fall due tomorrow and later.
    pub future: u64,
    /// Rows that have been finished.
    pub finished: u64,
}

#[async_trait]
pub trait Contestant: Send + Sync {
    /// Creates its tables in an empty database.
    async fn install(&self) -> Result<()>;

    /// Stores jobs in one go: one statement where it can.
    async fn enqueue(&self, jobs: &[Job]) -> Result<()>;

    /// Works until told to stop; then nothing that was run is left unwritten.
    async fn work(&self, work: Work) -> Result<()>;

    /// Jobs, by what the table says, that are due and not finished.
    async fn unfinished(&self) -> Result<u64>;

    /// Puts rows beside.
    async fn fill(&self, _: Fill) -> Result<()> {
        bail!("has no backlog")
    }

    /// The time that one claim of up to 50 jobs takes.
    async fn claim(&self) -> Result<Duration> {
        bail!("has no claim of its own")
    }

    async fn close(&self) {}
}

/// The contestant, connected to its database.
pub async fn connect(entry: Entry, url: &str) -> Result<Box<dyn Contestant>> {
    match entry.who {
        Who::Ours | Who::OursShard | Who::OursShardDelete => ours::connect(entry, url).await,
        Who::RowFloor | Who::ShardFloor | Who::ShardFloorDelete => floor::connect(entry, url).await,
        Who::Naive => naive::connect(url).await,
        #[cfg(feature = "peers")]
        Who::Apalis => apalis::connect(url, apalis::Tuning::Default).await,
        #[cfg(feature = "peers")]
        Who::ApalisTuned => apalis::connect(url, apalis::Tuning::Tuned).await,
        #[cfg(feature = "peers")]
        Who::Fang => fang::connect(url).await,
        #[cfg(not(feature = "peers"))]
        Who::Apalis | Who::ApalisTuned | Who::Fang => bail!("built without peers"),
    }
}
