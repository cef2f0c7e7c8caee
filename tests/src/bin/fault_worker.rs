//! A worker in a process of its own, to be killed and stopped by tests.
#![allow(clippy::unwrap_used, reason = "a panic is a failed test")]

use std::path::PathBuf;

use clap::{Parser, ValueEnum};
use retryjob::{Mysql8, Mysql57, Sqlite};
use retryjob_core::Queue;
use retryjob_tests::{
    faults::task::{Task, Writes, note_lost, worker},
    history::{Recorded, Recorder},
};
use tokio::io::AsyncReadExt as _;

#[derive(Debug, Parser)]
struct Orders {
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

#[tokio::main(worker_threads = 2)]
async fn main() {
    let orders = Orders::parse();
    match orders.backend {
        Database::Mysql8 => work::<Mysql8>(&orders).await,
        Database::Mysql57 => work::<Mysql57>(&orders).await,
        Database::Sqlite => work::<Sqlite>(&orders).await,
    }
}

/// Works until the one that started this process is gone.
async fn work<B: Writes>(orders: &Orders) {
    let inner = B::connect(&orders.url, <Task as retryjob::RetryJob>::schema());
    let recorder = Recorder::to_file(&orders.records);
    let backend = Recorded::new(inner.await.unwrap(), recorder.clone());
    let queue = Queue::<Task, _>::new(backend);
    tokio::spawn(note_lost(queue.events(), recorder));
    let parent_is_gone = async {
        let mut byte = [0];
        while tokio::io::stdin()
            .read(&mut byte)
            .await
            .is_ok_and(|read| read > 0)
        {}
    };
    let worker = worker(&queue).concurrency(orders.concurrency);
    worker.run_until(parent_is_gone).await.unwrap();
    // The thread that reads the standard input never ends by itself.
    std::process::exit(0);
}
