//! The first example of the README, which a test keeps the same.
#![allow(clippy::print_stdout, reason = "a program for the terminal")]

use retryjob::{JobResult, Leased, Outcome, Queue, RetryJob};

#[derive(RetryJob)]
#[retry_job(table = "charge", shards = 64, lease = "5m",
            retry(schedule = ["5m", "30m", "2h", "12h", "1d"], jitter = "30s"))]
struct Charge {
    #[job(shard_by, unique)]
    subscription_id: u64, // its shard, and part of the idempotency key
    #[job(unique, column)]
    period: String, // the same charge is enqueued once; a column of its own
    amount_cents: u64, // the rest travels as the JSON payload
}

async fn charge(job: Leased<Charge>) -> JobResult {
    // The key is the same at every attempt: hand it to the payment provider.
    println!("{} cents, key {}", job.amount_cents, job.idempotency_key());
    Ok(Outcome::Done) // or retry, retry_after, snooze, hold, dead; `?` works
}

#[tokio::main]
async fn main() -> retryjob::Result<()> {
    let queue = Queue::<Charge>::connect("sqlite://jobs.sqlite").await?;
    queue.install().await?; // creates the table, or names every difference
    queue
        .enqueue(&Charge {
            subscription_id: 7,
            period: "2026-12".into(),
            amount_cents: 990,
        })
        .await?;
    queue.worker(charge).run_until_idle().await?; // or `run_until(shutdown)`
    Ok(())
}
