//! Enqueue one by one, from 16 tasks, and in bulk.

use std::time::Instant;

use anyhow::{Result, ensure};
use futures::{TryStreamExt as _, stream};

use super::{Figure, Stand};
use crate::{contestant::jobs, entry::Entry, options::Sizes};

const TASKS: usize = 16;

pub async fn run(entry: Entry, sizes: &Sizes) -> Result<Vec<Figure>> {
    super::on_fresh(entry, async |stand| both(stand, sizes).await).await
}

async fn both(stand: &Stand, sizes: &Sizes) -> Result<Vec<Figure>> {
    let pace = stand.entry.who.pace();
    let single_jobs = sizes.at_pace(pace, sizes.single_jobs);
    let started = Instant::now();
    let singles = stream::iter((0..single_jobs).map(Ok::<_, anyhow::Error>));
    let store = |number| async move { stand.contestant.enqueue(&jobs(number..number + 1)).await };
    singles.try_for_each_concurrent(TASKS, store).await?;
    let single = Figure::per_second(
        "enqueue one by one, 16 tasks",
        single_jobs,
        started.elapsed(),
    );

    // Peers have no bulk: for them it is many statements.
    let bulk_jobs = sizes.at_pace(pace, sizes.drain_jobs);
    let started = Instant::now();
    stand.enqueue(single_jobs, bulk_jobs).await?;
    let bulk = Figure::per_second("enqueue in bulk", bulk_jobs, started.elapsed());

    let stored = stand.contestant.unfinished().await?;
    ensure!(
        stored == (single_jobs + bulk_jobs) as u64,
        "stored {stored}"
    );
    Ok(vec![single, bulk])
}
