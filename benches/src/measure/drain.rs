//! Drain: no-op jobs that are all due, with what each one costs.

use anyhow::Result;

use super::{Figure, Stand, Unit};
use crate::{
    counters::{Look, Spent},
    entry::Entry,
    options::Sizes,
};

/// Handlers at a time.
pub const CONCURRENCY: [usize; 3] = [1, 16, 64];

pub fn name(concurrency: usize) -> String {
    format!("drain, {concurrency} at a time")
}

pub async fn run(entry: Entry, sizes: &Sizes, concurrency: usize) -> Result<Vec<Figure>> {
    let count = sizes.jobs(entry.who);
    let body = async |stand: &Stand| {
        stand.enqueue(0, count).await?;
        let look = Look::take(entry.place).await?;
        let took = stand.drain(0, count, concurrency).await?;
        let spent = look.spent(entry.place).await?;
        let mut figures = vec![Figure::per_second(name(concurrency), count, took)];
        figures.extend(costs(concurrency, count, &spent));
        Ok(figures)
    };
    super::on_fresh(entry, body).await
}

fn costs(concurrency: usize, count: usize, spent: &Spent) -> Vec<Figure> {
    let count = count as f64;
    let counted = [
        ("statements", spent.statements()),
        ("commits", spent.commits()),
        ("rows examined", spent.rows_examined()),
        ("rows written", spent.rows_written()),
    ];
    let cpu = [
        ("server CPU", spent.server),
        ("client CPU", Some(spent.client)),
    ];
    let name = |what| format!("{what} per job, {concurrency} at a time");
    let counted = counted.into_iter().filter_map(|(what, value)| {
        Some(Figure::new(
            name(what),
            Unit::CountPerJob,
            value? as f64 / count,
        ))
    });
    let cpu = cpu.into_iter().filter_map(|(what, time)| {
        let us = time?.as_secs_f64() * 1e6 / count;
        Some(Figure::new(name(what), Unit::MicrosecondsPerJob, us))
    });
    counted.chain(cpu).collect()
}
