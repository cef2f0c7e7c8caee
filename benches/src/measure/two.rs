//! Two processes at once: this program starts itself twice.

use std::{
    path::PathBuf,
    process::Stdio,
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, ensure};
use serde::{Deserialize, Serialize};
use tokio::process::{Child, Command};
use tokio_util::sync::CancellationToken;

use super::{Figure, PATIENCE, Stand, Unit};
use crate::{
    contestant::{self, Work},
    counters::Look,
    entry::Entry,
    options::Sizes,
    ran::Ran,
};

const PROCESSES: u16 = 2;
const CONCURRENCY: usize = 16;
/// Between two looks of a process at whether all is done.
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// The longest that a process may take.
const TIME_MAX: Duration = Duration::from_secs(300);

pub const DUPLICATES: &str = "two processes: jobs that ran twice";
pub const DEADLOCKS: &str = "two processes: deadlocks";
pub const LOCK_WAITS: &str = "two processes: row lock waits";

/// What a process is told.
#[derive(Debug, Serialize, Deserialize)]
struct Order {
    entry: Entry,
    url: String,
    jobs: usize,
    part: (u16, u16),
    /// Where it writes how often it ran each job.
    answer: PathBuf,
}

pub async fn run(entry: Entry, sizes: &Sizes) -> Result<Vec<Figure>> {
    let jobs = sizes.at_pace(entry.who.pace(), sizes.two_jobs);
    super::on_fresh(entry, async |stand| on(stand, jobs).await).await
}

async fn on(stand: &Stand, jobs: usize) -> Result<Vec<Figure>> {
    let place = stand.entry.place;
    stand.enqueue(0, jobs).await?;
    let folder = tempfile::tempdir()?;
    let look = Look::take(place).await?;
    let started = Instant::now();
    let mut processes = Vec::new();
    for index in 0..PROCESSES {
        let order = Order {
            entry: stand.entry,
            url: stand.fresh.url.clone(),
            jobs,
            part: (index, PROCESSES),
            answer: folder.path().join(index.to_string()),
        };
        processes.push((start(&order)?, order.answer));
    }
    let mut times = vec![0_u8; jobs];
    for (process, answer) in processes {
        let output = tokio::time::timeout(TIME_MAX, process.wait_with_output());
        let output = output.await.context("a process did not end")??;
        let said = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "a process failed: {}", said.trim());
        let ran = std::fs::read(&answer).context("a process left no answer")?;
        for (times, ran) in times.iter_mut().zip(ran) {
            *times = times.saturating_add(ran);
        }
    }
    let took = started.elapsed();
    let spent = look.spent(place).await?;
    let missed = times.iter().filter(|times| **times == 0).count();
    ensure!(missed == 0, "{missed} of {jobs} jobs did not run");
    let duplicates: usize = times.iter().map(|times| usize::from(*times) - 1).sum();
    let counts = [
        (DUPLICATES, Some(duplicates as i64)),
        (DEADLOCKS, spent.deadlocks()),
        (LOCK_WAITS, spent.lock_waits()),
    ];
    let count =
        |(name, value): (&str, Option<i64>)| Some(Figure::new(name, Unit::Count, value? as f64));
    let mut figures = vec![Figure::per_second("two processes: drain", jobs, took)];
    figures.extend(counts.into_iter().filter_map(count));
    Ok(figures)
}

fn start(order: &Order) -> Result<Child> {
    Command::new(std::env::current_exe()?)
        .args(["--child", &serde_json::to_string(order)?])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .context("this program could not start itself")
}

/// What a started process does: works until the table says that all is done.
pub async fn obey(order: &str) -> Result<()> {
    let order: Order = serde_json::from_str(order)?;
    let contestant = contestant::connect(order.entry, &order.url).await?;
    let ran = Arc::new(Ran::new(0, order.jobs));
    let stop = CancellationToken::new();
    let work = Work {
        concurrency: CONCURRENCY,
        ran: Arc::clone(&ran),
        stop: stop.clone(),
        part: order.part,
    };
    let watch = async {
        let mut last = (u64::MAX, Instant::now());
        loop {
            match contestant.unfinished().await? {
                0 => break,
                left if left != last.0 => last = (left, Instant::now()),
                left => ensure!(last.1.elapsed() < PATIENCE, "{left} jobs are left over"),
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
        stop.cancel();
        anyhow::Ok(())
    };
    tokio::try_join!(contestant.work(work), watch)?;
    contestant.close().await;
    std::fs::write(order.answer, ran.times())?;
    Ok(())
}
