//! A worker in a process of its own, to be killed and stopped by tests.
#![allow(clippy::unwrap_used, reason = "a panic is a failed test")]

use std::path::PathBuf;

use clap::{Parser, ValueEnum};
use retryjob::{Mysql8, Mysql57, Sqlite};
use retryjob_core::Queue;
use retryjob_tests::{
    faults::task::{Fragile, Job, Task, Writes, note_lost, worker},
    history::{Recorded, Recorder},
};

#[derive(Debug, Parser)]
struct Orders {
    #[arg(long)]
    jobs: Jobs,
    #[arg(long)]
    backend: Database,
    #[arg(long)]
    url: String,
    /// Where records are appended.
    #[arg(long)]
    records: PathBuf,
    #[arg(long, default_value_t = 4)]
    concurrency: usize,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Database {
    Mysql8,
    Mysql57,
    Sqlite,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Jobs {
    Task,
    Fragile,
}

#[tokio::main(worker_threads = 2)]
async fn main() {
    let orders = Orders::parse();
    match orders.jobs {
        Jobs::Task => on_database::<Task>(&orders).await,
        Jobs::Fragile => on_database::<Fragile>(&orders).await,
    }
}

async fn on_database<J: Job>(orders: &Orders) {
    match orders.backend {
        Database::Mysql8 => work::<J, Mysql8>(orders).await,
        Database::Mysql57 => work::<J, Mysql57>(orders).await,
        Database::Sqlite => work::<J, Sqlite>(orders).await,
    }
}

/// Works until it is killed.
async fn work<J: Job, B: Writes>(orders: &Orders) {
    let inner = B::connect(&orders.url, J::schema()).await.unwrap();
    let recorder = Recorder::to_file(&orders.records);
    let queue = Queue::<J, _>::new(Recorded::new(inner, recorder.clone()));
    tokio::spawn(note_lost(queue.events(), recorder));
    let worker = worker(&queue).concurrency(orders.concurrency);
    worker.run_until(std::future::pending()).await.unwrap();
}
