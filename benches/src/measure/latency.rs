//! From due to start, at 200 jobs a second.

use std::sync::Arc;

use anyhow::Result;

use super::{BULK_ROWS, Figure, Stand, Unit};
use crate::{
    contestant::Job,
    entry::Entry,
    options::Sizes,
    ran::{Ran, exactly_once, now_us},
};

const STEP_US: i64 = 1_000_000 / 200;
/// From here to the first due time, for the enqueue and the worker's start.
const LEAD_US: i64 = 1_000_000;
const CONCURRENCY: usize = 16;

pub async fn run(entry: Entry, sizes: &Sizes) -> Result<Vec<Figure>> {
    super::on_fresh(entry, async |stand| on(stand, sizes.latency_jobs).await).await
}

async fn on(stand: &Stand, count: usize) -> Result<Vec<Figure>> {
    let first_us = now_us() + LEAD_US;
    let due_us: Vec<_> = (0..count as i64)
        .map(|index| first_us + index * STEP_US)
        .collect();
    let job = |(number, due_us): (usize, &i64)| Job {
        number: number as u64,
        due_us: Some(*due_us),
    };
    let jobs: Vec<_> = due_us.iter().enumerate().map(job).collect();
    for chunk in jobs.chunks(BULK_ROWS) {
        stand.contestant.enqueue(chunk).await?;
    }
    let ran = Arc::new(Ran::timed(count));
    stand.work(&ran, CONCURRENCY).await?;
    exactly_once(&ran.times())?;
    let started_us = ran.started_us();
    let late = started_us
        .iter()
        .zip(&due_us)
        .map(|(started, due)| (started - due) as f64 / 1e3);
    let mut late: Vec<_> = late.collect();
    late.sort_by(f64::total_cmp);
    let quantile = |share: f64| late[((late.len() - 1) as f64 * share).round() as usize];
    Ok(vec![
        Figure::new(
            "from due to start at 200 jobs/s, p50",
            Unit::Milliseconds,
            quantile(0.5),
        ),
        Figure::new(
            "from due to start at 200 jobs/s, p99",
            Unit::Milliseconds,
            quantile(0.99),
        ),
    ])
}
