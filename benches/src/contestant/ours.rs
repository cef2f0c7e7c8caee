//! This library, by its public API alone.

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use async_trait::async_trait;
use retryjob::{
    Backend, DbTime, Due, JobResult, LeaseBy, Leased, Mysql8, Mysql57, Node, Outcome, Queue,
    RetryJob, Sqlite, op,
};

use super::{Contestant, Fill, Job, MEMO, Work};
use crate::{
    database::{self, Beside},
    entry::{Entry, Place, Who},
};

/// A job of the bench, and how its worker is set up.
trait BenchJob: RetryJob {
    fn new(number: u64) -> Self;
    fn number(&self) -> u64;
}

macro_rules! bench_job {
    ($name:ident, $table:literal $(, $option:ident = $value:literal)*) => {
        #[derive(RetryJob)]
        #[retry_job(table = $table, shards = 8 $(, $option = $value)*)]
        struct $name {
            #[job(unique, column)]
            number: u64,
            memo: String,
        }

        impl BenchJob for $name {
            fn new(number: u64) -> Self {
                Self { number, memo: MEMO.to_owned() }
            }

            fn number(&self) -> u64 {
                // The payload is decoded for every job; that it is used keeps it so.
                debug_assert_eq!(self.memo, MEMO);
                self.number
            }
        }
    };
}

bench_job!(Plain, "plain_job");
bench_job!(Held, "held_job", lease_by = "shard");
bench_job!(
    HeldDeleted,
    "held_deleted_job",
    lease_by = "shard",
    finished = "delete"
);

struct Ours<J, B> {
    queue: Queue<J, B>,
    url: String,
    place: Place,
}

pub async fn connect(entry: Entry, url: &str) -> Result<Box<dyn Contestant>> {
    match entry.who {
        Who::Ours => on_place::<Plain>(entry.place, url).await,
        Who::OursShard => on_place::<Held>(entry.place, url).await,
        Who::OursShardDelete => on_place::<HeldDeleted>(entry.place, url).await,
        who => bail!("{} is not ours", who.name()),
    }
}

async fn on_place<J: BenchJob>(place: Place, url: &str) -> Result<Box<dyn Contestant>> {
    Ok(match place {
        Place::Mysql9 => Box::new(open::<J, Mysql8>(place, url).await?),
        Place::Mysql57 | Place::Mariadb => Box::new(open::<J, Mysql57>(place, url).await?),
        Place::Sqlite => Box::new(open::<J, Sqlite>(place, url).await?),
    })
}

async fn open<J: BenchJob, B: Backend>(place: Place, url: &str) -> Result<Ours<J, B>> {
    let queue = Queue::connect(url).await?;
    Ok(Ours {
        queue,
        url: url.to_owned(),
        place,
    })
}

#[async_trait]
impl<J: BenchJob, B: Backend> Contestant for Ours<J, B> {
    async fn install(&self) -> Result<()> {
        Ok(self.queue.install().await?)
    }

    async fn enqueue(&self, jobs: &[Job]) -> Result<()> {
        let due = |job: &Job| {
            job.due_us
                .map_or(Due::Now, |us| Due::At(DbTime::from_us(us)))
        };
        let made: Vec<_> = jobs
            .iter()
            .map(|job| (J::new(job.number), due(job)))
            .collect();
        let pairs = made.iter().map(|(job, due)| (job, *due));
        let answers = self.queue.enqueue_many_due(pairs).await?;
        ensure!(
            answers.iter().all(|answer| answer.is_new),
            "a job was there already"
        );
        Ok(())
    }

    async fn work(&self, work: Work) -> Result<()> {
        let handler = |job: Leased<J, B>, ran: std::sync::Arc<crate::ran::Ran>| async move {
            ran.run(job.number());
            JobResult::Ok(Outcome::Done)
        };
        let worker = self.queue.worker_with(work.ran, handler);
        let worker = worker.concurrency(work.concurrency);
        worker.run_until(work.stop.cancelled_owned()).await?;
        Ok(())
    }

    async fn unfinished(&self) -> Result<u64> {
        database::unfinished(&self.url, J::schema().table.as_str()).await
    }

    async fn fill(&self, fill: Fill) -> Result<()> {
        let row = |status, at| Beside {
            table: J::schema().table.as_str().to_owned(),
            columns: vec![
                ("shard_id", database::Value::Shard),
                ("status", database::Value::Text(status)),
                ("next_attempt_at", at),
                ("due_at", at),
                ("attempt_no", database::Value::Text("0")),
                ("lease_seq", database::Value::Text("0")),
                ("idempotency_key", database::Value::Key),
                ("created_at", database::Value::Now),
                ("updated_at", database::Value::Now),
                (
                    "payload",
                    database::Value::Text(
                        "'{\"memo\":\"forty bytes that nobody reads in a bench\"}'",
                    ),
                ),
                ("number", database::Value::Number),
            ],
        };
        database::fill(&self.url, self.place, fill, &row).await
    }

    async fn claim(&self) -> Result<Duration> {
        match J::schema().lease_by {
            LeaseBy::Row => self.claim_rows().await,
            LeaseBy::Shard => self.claim_held().await,
        }
    }

    async fn close(&self) {
        self.queue.close().await;
    }
}

const CLAIMED: u16 = 50;

impl<J: BenchJob, B: Backend> Ours<J, B> {
    async fn claim_rows(&self) -> Result<Duration> {
        let backend = self.queue.backend();
        let started = Instant::now();
        let heads = backend.due_heads().await?.fresh;
        let claim = op::claim::Claim {
            owner: Node::new("bench").lease_owner(),
            lane: op::due::Lane::Fresh,
            heads: heads.due().collect(),
            limit: CLAIMED,
            lease: J::schema().lease,
        };
        let claimed = backend.claim(claim).await.context("claim")?;
        ensure!(!claimed.jobs.is_empty(), "claimed nothing");
        Ok(started.elapsed())
    }

    /// Under leases of shards that are given back before the next claim.
    async fn claim_held(&self) -> Result<Duration> {
        let backend = self.queue.backend();
        let node = Node::new("bench");
        let hold = op::shards::HoldShards {
            node: node.name().clone(),
            shard_ids: (0..J::schema().shards).collect(),
            lease: J::schema().lease,
        };
        let held = backend.hold_shards(hold).await?.held;
        let started = Instant::now();
        let heads = backend.due_heads().await?.fresh;
        let fence = |head: op::due::Head| {
            let mark = op::shards::Mark {
                next_attempt_at: head.next_attempt_at,
                id: 0,
            };
            let lease = held
                .iter()
                .find(|lease| lease.fence.shard_id == head.shard_id)?;
            Some((lease.fence, mark))
        };
        let claim = op::shards::ClaimHeld {
            node: node.name().clone(),
            owner: node.shard_owner(),
            shards: heads.due().filter_map(fence).collect(),
            limit: CLAIMED,
        };
        let claimed = backend.claim_held(claim).await.context("claim")?.jobs;
        let took = started.elapsed();
        ensure!(!claimed.is_empty(), "claimed nothing");
        // A claim by shard marks nothing: the next one would find the same jobs.
        let finish = |job: op::claim::ClaimedJob| op::finish::Finish {
            lease: job.lease,
            attempt_no: job.attempt_no,
            ending: op::finish::Ending::Success,
        };
        backend
            .finish(claimed.into_iter().map(finish).collect())
            .await?;
        let fences = held.iter().map(|lease| lease.fence).collect();
        let release = op::shards::ReleaseShards {
            node: node.name().clone(),
            fences,
        };
        backend.release_shards(release).await?;
        Ok(took)
    }
}
