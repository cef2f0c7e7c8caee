//! The command line, and how large each measurement is.

use std::{path::PathBuf, time::Duration};

use clap::{Parser, ValueEnum};

use crate::entry::{Pace, Place, Who};

/// Measures retryjob beside hand-written SQL and its peers, in one run.
#[derive(Parser, Debug)]
#[command(name = "retryjob-bench", version)]
pub struct Options {
    /// How large the measurements are
    #[arg(long, value_enum, default_value_t = Size::Quick)]
    pub size: Size,
    /// The folder that table.md and table.json are written into
    #[arg(long, default_value = "bench-out")]
    pub out: PathBuf,
    /// Only these databases
    #[arg(long, value_enum, value_delimiter = ',')]
    pub on: Vec<Place>,
    /// Only these contestants
    #[arg(long, value_enum, value_delimiter = ',')]
    pub who: Vec<Who>,
    /// Only these measurements
    #[arg(long, value_enum, value_delimiter = ',')]
    pub measure: Vec<Measure>,
    /// Another number of rounds
    #[arg(long)]
    pub rounds: Option<usize>,
    /// What a second process is told to do; for the program's own use
    #[arg(long, hide = true)]
    pub child: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Size {
    /// Everything once with a handful of jobs: shows that it works, not how fast
    Smoke,
    /// Ten minutes on two cores
    Quick,
    /// As long as it needs
    Full,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, ValueEnum)]
pub enum Measure {
    /// Enqueue one by one and in bulk
    Enqueue,
    /// Drain with 1, 16 and 64 at a time
    Drain,
    /// From due to start at 200 jobs a second
    Latency,
    /// Drain beside future and finished rows
    Backlog,
    /// Claim while a long snapshot is open
    Snapshot,
    /// Two processes at once
    Two,
}

/// Counts of jobs and rows of one size of run.
#[derive(Clone, Debug)]
pub struct Sizes {
    /// Rounds of enqueue and drain.
    pub rounds: usize,
    /// Rounds of the measurements that take longer.
    pub long_rounds: usize,
    /// Whether what takes long is left to the contestants that matter most.
    pub is_short: bool,
    /// No round begins that would end after this.
    pub time_max: Option<Duration>,
    /// Jobs of a drain.
    pub drain_jobs: usize,
    /// The same where it is known to be slow, such as one at a time.
    pub slow_jobs: usize,
    /// The same for the slowest peers.
    pub crawl_jobs: usize,
    /// Jobs that are enqueued one by one.
    pub single_jobs: usize,
    /// Jobs of the latency measurement, at 200 a second.
    pub latency_jobs: usize,
    /// Numbers of future rows that due jobs are drained beside.
    pub future_rows: Vec<u64>,
    /// Finished rows beside them.
    pub finished_rows: u64,
    /// Due jobs beside them.
    pub backlog_jobs: usize,
    /// Jobs that are drained while the snapshot is open.
    pub snapshot_jobs: usize,
    /// Jobs that two processes share.
    pub two_jobs: usize,
}

impl Sizes {
    /// Jobs of a drain.
    pub const fn jobs(&self, who: Who) -> usize {
        self.at_pace(who.pace(), self.drain_jobs)
    }

    /// As many as wanted, or fewer where that would take too long.
    pub const fn at_pace(&self, pace: Pace, wanted: usize) -> usize {
        match pace {
            Pace::Crawl => self.crawl_jobs,
            Pace::Slow => self.slow_jobs,
            Pace::Fast => wanted,
        }
    }
}

impl Size {
    pub fn sizes(self) -> Sizes {
        match self {
            Self::Smoke => Sizes {
                rounds: 1,
                long_rounds: 1,
                is_short: false,
                time_max: None,
                drain_jobs: 200,
                slow_jobs: 20,
                crawl_jobs: 10,
                single_jobs: 32,
                latency_jobs: 40,
                future_rows: vec![0, 1_000],
                finished_rows: 1_000,
                backlog_jobs: 100,
                snapshot_jobs: 300,
                two_jobs: 200,
            },
            Self::Quick => Sizes {
                rounds: 3,
                long_rounds: 1,
                is_short: true,
                time_max: Some(Duration::from_secs(9 * 60)),
                drain_jobs: 12_000,
                slow_jobs: 500,
                crawl_jobs: 150,
                single_jobs: 1_000,
                latency_jobs: 600,
                future_rows: vec![0, 100_000],
                finished_rows: 100_000,
                backlog_jobs: 2_000,
                snapshot_jobs: 20_000,
                two_jobs: 10_000,
            },
            Self::Full => Sizes {
                rounds: 5,
                long_rounds: 3,
                is_short: false,
                time_max: None,
                drain_jobs: 60_000,
                slow_jobs: 2_000,
                crawl_jobs: 1_000,
                single_jobs: 5_000,
                latency_jobs: 4_000,
                future_rows: vec![0, 100_000, 1_000_000, 10_000_000],
                finished_rows: 1_000_000,
                backlog_jobs: 2_000,
                snapshot_jobs: 150_000,
                two_jobs: 20_000,
            },
        }
    }
}
