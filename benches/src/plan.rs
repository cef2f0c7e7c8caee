//! The order of a run: rounds, and within a round every contestant in turn for
//! each measurement, so that a slow minute of the machine meets all of them.

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use indicatif::{ProgressBar, ProgressStyle};

use crate::{
    entry::Entry,
    measure::{Figure, backlog, drain, enqueue, latency, snapshot, two},
    options::{Measure, Sizes},
    results::Results,
};

/// The longest that one measurement of one contestant may take.
const TIME_MAX: Duration = Duration::from_secs(2 * 60 * 60);

/// A measurement in one of its variants.
#[derive(Clone, Copy)]
enum Step {
    Enqueue,
    Drain(usize),
    Latency,
    Backlog,
    Snapshot,
    Two,
}

impl Step {
    fn all() -> Vec<Self> {
        let drains = drain::CONCURRENCY.into_iter().map(Self::Drain);
        let head = std::iter::once(Self::Enqueue).chain(drains);
        head.chain([Self::Two, Self::Latency, Self::Snapshot, Self::Backlog])
            .collect()
    }

    const fn measure(self) -> Measure {
        match self {
            Self::Enqueue => Measure::Enqueue,
            Self::Drain(_) => Measure::Drain,
            Self::Latency => Measure::Latency,
            Self::Backlog => Measure::Backlog,
            Self::Snapshot => Measure::Snapshot,
            Self::Two => Measure::Two,
        }
    }

    /// The name that an error goes by.
    fn name(self) -> String {
        match self {
            Self::Enqueue => "enqueue in bulk".to_owned(),
            Self::Drain(concurrency) => drain::name(concurrency),
            Self::Latency => "from due to start at 200 jobs/s, p99".to_owned(),
            Self::Backlog => backlog::name(0),
            Self::Snapshot => snapshot::WITH.to_owned(),
            Self::Two => two::DUPLICATES.to_owned(),
        }
    }

    fn rounds(self, sizes: &Sizes) -> usize {
        match self {
            Self::Enqueue | Self::Drain(_) => sizes.rounds,
            Self::Latency | Self::Snapshot | Self::Two => sizes.long_rounds,
            // It repeats its drains itself.
            Self::Backlog => 1,
        }
    }

    async fn run(self, entry: Entry, sizes: &Sizes) -> Result<Vec<Figure>> {
        match self {
            Self::Enqueue => enqueue::run(entry, sizes).await,
            Self::Drain(concurrency) => drain::run(entry, sizes, concurrency).await,
            Self::Latency => latency::run(entry, sizes).await,
            Self::Backlog => backlog::run(entry, sizes).await,
            Self::Snapshot => snapshot::run(entry, sizes).await,
            Self::Two => two::run(entry, sizes).await,
        }
    }
}

/// Runs everything that was asked for, and says how many rounds there were.
pub async fn run(entries: &[Entry], only: &[Measure], sizes: &Sizes) -> (Results, usize) {
    let steps: Vec<_> = Step::all()
        .into_iter()
        .filter(|step| only.is_empty() || only.contains(&step.measure()))
        .collect();
    let takes = |step: &Step, entry: &&Entry| entry.who.takes(step.measure(), sizes.is_short);
    let count = |step: &Step| {
        step.rounds(sizes) * entries.iter().filter(|entry| takes(step, entry)).count()
    };
    let bar = bar(steps.iter().map(count).sum());
    let started = Instant::now();
    // What of the first round every round repeats.
    let mut repeated = Duration::ZERO;
    let mut results = Results::default();
    let mut rounds = 0;
    for round in 0..sizes.rounds.max(sizes.long_rounds) {
        let end = started.elapsed() + repeated;
        if round > 0 && sizes.time_max.is_some_and(|most| end > most) {
            bar.println(format!("no time for round {}", round + 1));
            break;
        }
        rounds += 1;
        for step in steps.iter().filter(|step| round < step.rounds(sizes)) {
            for entry in entries.iter().filter(|entry| takes(step, entry)) {
                bar.set_message(format!("{}, {entry}", step.name()));
                let begun = Instant::now();
                let ran = tokio::time::timeout(TIME_MAX, step.run(*entry, sizes)).await;
                let answer = ran.context("took too long").and_then(|answer| answer);
                if let Err(error) = &answer {
                    bar.println(format!("{}, {entry}: {error:#}", step.name()));
                }
                results.note(&step.name(), *entry, answer);
                if round == 0 && step.rounds(sizes) > 1 {
                    repeated += begun.elapsed();
                }
                bar.inc(1);
            }
        }
    }
    bar.finish_and_clear();
    (results, rounds)
}

fn bar(count: usize) -> ProgressBar {
    let bar = ProgressBar::new(count as u64);
    let style = ProgressStyle::with_template("{elapsed_precise} {wide_bar} {pos}/{len} {msg}");
    if let Ok(style) = style {
        bar.set_style(style);
    }
    bar.enable_steady_tick(Duration::from_millis(500));
    bar
}
