//! A job per flight that was to leave New York, worked off by several workers.
//!
//! An attempt fails for good when the flight was cancelled. Otherwise the n-th
//! attempt fails, to be tried again, while the delay is at least the n-th of
//! 15, 60 and 180 minutes. The final counts are compared with the right
//! answers; the exit status is 1 when they differ.
//!
//! ```text
//! cargo run --example departures                  # a week, on an SQLite file
//! cargo run --example departures -- --year        # the whole year
//! cargo run --example departures -- --url mysql://root:secret@127.0.0.1/test
//! ```

#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a program for the terminal"
)]

mod answers;
mod database;
mod flights;
mod progress;

use std::{path::PathBuf, process::ExitCode, sync::Arc, time::Instant};

use clap::{Parser, ValueEnum};
use retryjob::{DbTime, Due, JobResult, Leased, Mysql8, Mysql57, Outcome, Probed, Queue, Sqlite};

use crate::{
    answers::Answers,
    database::Database,
    flights::{Departure, Flight},
    progress::Progress,
};

type Result<T, E = Box<dyn std::error::Error + Send + Sync>> = std::result::Result<T, E>;

/// Minutes of delay at which the first, second and third attempt fail.
const LATE_MIN: [i32; 3] = [15, 60, 180];
/// Jobs in one enqueue.
const ENQUEUE_ROWS: usize = 2000;

/// Works off a job per flight that was to leave New York, and checks the final
/// counts against the right answers.
#[derive(Parser)]
#[command(name = "departures")]
struct Options {
    /// Where the jobs are kept: sqlite://FILE or mysql://USER:PASSWORD@HOST/DATABASE
    #[arg(long, default_value = "sqlite://departures.sqlite")]
    url: String,
    /// The backend; by default the server is asked what it can do
    #[arg(long)]
    backend: Option<Choice>,
    /// Flights to read, as CSV, also compressed as .gz
    #[arg(long, conflicts_with = "year")]
    file: Option<PathBuf>,
    /// All 336,776 flights of 2013 rather than one week
    #[arg(long)]
    year: bool,
    /// Workers in this process
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u8).range(1..=64))]
    workers: u8,
    /// Keep the table on a server for another run (an SQLite file always stays)
    #[arg(long)]
    keep: bool,
}

#[derive(Clone, Copy, ValueEnum)]
enum Choice {
    Sqlite,
    Mysql8,
    Mysql57,
}

#[tokio::main]
async fn main() -> ExitCode {
    match run(Options::parse()).await {
        Ok(code) => code,
        Err(error) => {
            eprintln!("departures: {error}");
            ExitCode::from(2)
        }
    }
}

async fn run(options: Options) -> Result<ExitCode> {
    let choice = match options.backend {
        Some(choice) => choice,
        None => match retryjob::probe(&options.url).await? {
            Probed::Sqlite => Choice::Sqlite,
            Probed::Mysql8 => Choice::Mysql8,
            Probed::Mysql57 => Choice::Mysql57,
            other => return Err(format!("this example does not know {other:?}").into()),
        },
    };
    match choice {
        Choice::Sqlite => depart::<Sqlite>(options).await,
        Choice::Mysql8 => depart::<Mysql8>(options).await,
        Choice::Mysql57 => depart::<Mysql57>(options).await,
    }
}

async fn depart<B: Database>(options: Options) -> Result<ExitCode> {
    let file = options
        .file
        .clone()
        .unwrap_or_else(|| flights::shipped(options.year));
    let flights = flights::read(&file)?;
    let right = Answers::right(&flights);
    let queue = Queue::<Departure, B>::connect(&options.url).await?;
    queue.install().await?;

    let started = Instant::now();
    let new_count = enqueue(&queue, &flights).await?;
    match new_count {
        0 => println!(
            "nothing new: all {} flights were already there",
            flights.len()
        ),
        new => println!(
            "enqueued {new} new of {} flights in {:.1?}",
            flights.len(),
            started.elapsed()
        ),
    }

    let started = Instant::now();
    let summary = work(&queue, options.workers, right.rows).await?;
    let elapsed = started.elapsed();
    println!("{} attempts on {} in {elapsed:.1?}", summary, B::NAME);

    let found = Answers::found(&queue).await?;
    print!("{}", found.compared(&right));
    if !options.keep {
        queue.backend().clean_up().await?;
    }
    queue.close().await;
    Ok(if found == right {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// Enqueues every flight, due at its scheduled departure, and says how many
/// were not there before.
async fn enqueue<B: Database>(queue: &Queue<Departure, B>, flights: &[Flight]) -> Result<usize> {
    let progress = Progress::new("enqueued", flights.len() as u64);
    let mut new_count = 0;
    for flights in flights.chunks(ENQUEUE_ROWS) {
        let due = |flight: &Flight| Due::At(DbTime::from_utc(flight.departs_at));
        let jobs = flights
            .iter()
            .map(|flight| (&flight.departure, due(flight)));
        let answers = queue.enqueue_many_due(jobs).await?;
        new_count += answers.iter().filter(|answer| answer.is_new).count();
        progress.add(flights.len() as u64);
    }
    progress.end();
    Ok(new_count)
}

/// Runs workers until nothing is left to do, or Ctrl-C; counts attempts.
async fn work<B: Database>(queue: &Queue<Departure, B>, workers: u8, rows: u64) -> Result<u64> {
    let progress = Arc::new(Progress::new("finished", rows));
    let counts = queue.counts().await?;
    progress.add(counts.total() - counts.open());
    let mut running = tokio::task::JoinSet::new();
    for worker_no in 1..=workers {
        let worker = queue
            .worker_with(Arc::clone(&progress), leave)
            .concurrency(128)
            .node(&format!("worker-{worker_no}"));
        running.spawn(worker.run_until_idle_or(async {
            let _ = tokio::signal::ctrl_c().await;
        }));
    }
    let mut attempt_count = 0;
    while let Some(ended) = running.join_next().await {
        attempt_count += ended??.attempt_count;
    }
    progress.end();
    Ok(attempt_count)
}

/// One attempt to leave.
async fn leave<B: Database>(flight: Leased<Departure, B>, progress: Arc<Progress>) -> JobResult {
    let Some(delay_min) = flight.dep_delay_min else {
        progress.add(1);
        return Ok(Outcome::dead("cancelled"));
    };
    let limit_min = LATE_MIN.get(usize::from(flight.attempt_no()) - 1);
    if limit_min.is_some_and(|limit_min| delay_min >= *limit_min) {
        return Ok(Outcome::retry(format!("{delay_min} minutes late")));
    }
    progress.add(1);
    Ok(Outcome::Done)
}
