//! This library, by its public API alone.

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use async_trait::async_trait;
use retryjob::{
    Backend, DbTime, Due, JobResult, Leased, Mysql8, Mysql57, Outcome, Queue, RetryJob, Sqlite, op,
};

use super::{Contestant, Fill, Job, MEMO, Work};
use crate::{
    database::{self, Beside},
    entry::{Entry, Place, Who},
};

/// A job of the bench, and how its worker is set up.
trait BenchJob: RetryJob {
    const PREFETCH: Option<usize>;
    fn new(number: u64) -> Self;
    fn number(&self) -> u64;
}

macro_rules! bench_job {
    ($name:ident, $table:literal, $prefetch:expr $(, $option:ident = $value:literal)*) => {
        #[derive(RetryJob)]
        #[retry_job(table = $table, shards = 8 $(, $option = $value)*)]
        struct $name {
            #[job(unique, column)]
            number: u64,
            memo: String,
        }

        impl BenchJob for $name {
            const PREFETCH: Option<usize> = $prefetch;

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

bench_job!(Plain, "plain_job", None);
bench_job!(Tuned, "tuned_job", Some(1000), batch = 500);

struct Ours<J, B> {
    queue: Queue<J, B>,
    url: String,
    place: Place,
}

pub async fn connect(entry: Entry, url: &str) -> Result<Box<dyn Contestant>> {
    match entry.who {
        Who::Ours => on_place::<Plain>(entry.place, url).await,
        Who::OursTuned => on_place::<Tuned>(entry.place, url).await,
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
        let mut worker = self
            .queue
            .worker_with(work.ran, handler)
            .concurrency(work.concurrency);
        if let Some(jobs) = J::PREFETCH {
            worker = worker.prefetch(jobs);
        }
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
        let backend = self.queue.backend();
        let started = Instant::now();
        let heads = backend.due_heads(op::due::Lane::Fresh).await?;
        let claim = op::claim::Claim {
            owner: op::claim::Node::new("bench").lease_owner(),
            lane: op::due::Lane::Fresh,
            heads: heads.due().collect(),
            limit: 50,
            lease: J::schema().lease,
        };
        let claimed = backend.claim(claim).await.context("claim")?;
        ensure!(!claimed.jobs.is_empty(), "claimed nothing");
        Ok(started.elapsed())
    }

    async fn close(&self) {
        self.queue.close().await;
    }
}
