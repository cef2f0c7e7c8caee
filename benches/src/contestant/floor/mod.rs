//! Hand-written SQL: what the database gives to code that does nothing else.
//!
//! One task claims batches and runs them, one finishes them; a finish is
//! written while the next batch is claimed.

pub(super) mod table;

mod row;

mod shard;

mod sqlite;

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::{Result, bail, ensure};
use async_trait::async_trait;
use futures::{StreamExt as _, stream};
use tokio::sync::mpsc;

use super::{Contestant, Fill, Job, Work};
use crate::{
    database,
    entry::{Entry, Place, Who},
};

/// Jobs of one claim.
const BATCH: u32 = 500;
/// Between two looks that found nothing.
const POLL: Duration = Duration::from_millis(10);
/// The same while finishes are being written.
const POLL_BUSY: Duration = Duration::from_millis(1);

/// Jobs that were claimed together, from one shard.
struct Batch {
    shard: u16,
    owner: String,
    ids: Vec<u64>,
    numbers: Vec<u64>,
}

/// The statements of a floor.
#[async_trait]
trait Store: Send + Sync + 'static {
    /// The URL, for what is sent past the floor.
    fn url(&self) -> &str;
    fn place(&self) -> Place;
    async fn install(&self) -> Result<()>;
    async fn enqueue(&self, jobs: &[Job]) -> Result<()>;
    /// Before the first claim.
    async fn start(&self, _part: (u16, u16)) -> Result<()> {
        Ok(())
    }
    /// Shards with due jobs.
    async fn due_shards(&self) -> Result<Vec<u16>>;
    async fn claim(&self, shard: u16, limit: u32) -> Result<Batch>;
    async fn finish(&self, batch: Batch) -> Result<()>;
    async fn unfinished(&self) -> Result<u64>;
    /// Whether a claim found nothing only because jobs are in flight.
    fn is_busy(&self) -> bool {
        false
    }
    async fn close(&self);
}

pub async fn connect(entry: Entry, url: &str) -> Result<Box<dyn Contestant>> {
    let store: Arc<dyn Store> = match (entry.who, entry.place) {
        (Who::RowFloor, Place::Sqlite) => Arc::new(sqlite::SqliteRows::connect(url).await?),
        (Who::RowFloor, place) => Arc::new(row::Rows::connect(place, url)?),
        (Who::ShardFloor, place) => {
            Arc::new(shard::Shards::connect(place, url, shard::By::Update)?)
        }
        (Who::ShardFloorDelete, place) => {
            Arc::new(shard::Shards::connect(place, url, shard::By::Delete)?)
        }
        (who, _) => bail!("{} is no floor", who.name()),
    };
    Ok(Box::new(Floor(store)))
}

struct Floor(Arc<dyn Store>);

#[async_trait]
impl Contestant for Floor {
    async fn install(&self) -> Result<()> {
        self.0.install().await
    }

    async fn enqueue(&self, jobs: &[Job]) -> Result<()> {
        self.0.enqueue(jobs).await
    }

    async fn work(&self, work: Work) -> Result<()> {
        let (sender, mut receiver) = mpsc::channel::<Batch>(1);
        let store = Arc::clone(&self.0);
        let finisher = tokio::spawn(async move {
            while let Some(batch) = receiver.recv().await {
                store.finish(batch).await?;
            }
            anyhow::Ok(())
        });
        let claimed = claim_loop(&*self.0, &work, sender).await;
        finisher.await??;
        claimed
    }

    async fn unfinished(&self) -> Result<u64> {
        self.0.unfinished().await
    }

    async fn fill(&self, fill: Fill) -> Result<()> {
        let (url, place) = (self.0.url().to_owned(), self.0.place());
        database::fill(&url, place, fill, &table::beside).await
    }

    async fn claim(&self) -> Result<Duration> {
        self.0.start((0, 1)).await?;
        let started = Instant::now();
        let shards = self.0.due_shards().await?;
        ensure!(!shards.is_empty(), "no shard is due");
        let batch = self.0.claim(shards[0], 50).await?;
        let took = started.elapsed();
        ensure!(!batch.ids.is_empty(), "claimed nothing");
        // A claim by shard marks nothing: the next one would find the same jobs.
        self.0.finish(batch).await?;
        Ok(took)
    }

    async fn close(&self) {
        self.0.close().await;
    }
}

/// Claims from each due shard in turn, so that the jobs of a shard have been
/// finished by the time it is looked at again.
async fn claim_loop(store: &dyn Store, work: &Work, finishes: mpsc::Sender<Batch>) -> Result<()> {
    store.start(work.part).await?;
    let (index, of) = work.part;
    while !work.stop.is_cancelled() {
        let mut shards = store.due_shards().await?;
        shards.retain(|shard| shard % of == index);
        let mut found = false;
        // Until all of them are empty: what falls due meanwhile comes next time.
        while !shards.is_empty() && !work.stop.is_cancelled() {
            let mut full = Vec::new();
            for shard in shards {
                let batch = store.claim(shard, BATCH).await?;
                if batch.ids.is_empty() {
                    continue;
                }
                found = true;
                if batch.ids.len() as u32 == BATCH {
                    full.push(shard);
                }
                run(&batch, work).await;
                if finishes.send(batch).await.is_err() {
                    bail!("the finisher ended");
                }
            }
            shards = full;
        }
        if !found {
            let poll = if store.is_busy() { POLL_BUSY } else { POLL };
            tokio::select! {
                () = tokio::time::sleep(poll) => {}
                () = work.stop.cancelled() => {}
            }
        }
    }
    Ok(())
}

async fn run(batch: &Batch, work: &Work) {
    let handlers = stream::iter(&batch.numbers);
    let handle = |number: &u64| {
        let number = *number;
        async move { work.ran.run(number) }
    };
    handlers.for_each_concurrent(work.concurrency, handle).await;
}
