//! Drain a few due jobs beside many rows that are not due, or are finished.
//!
//! The rows are put there once, in steps, and the drain is repeated beside
//! them: they take far longer to make than to pass by.

use anyhow::Result;

use super::{Figure, Stand};
use crate::{contestant::Fill, entry::Entry, options::Sizes};

const CONCURRENCY: usize = 16;
/// Drains before the first that counts, for a server that is still writing
/// what was put there.
const WARM_UPS: usize = 1;

pub fn name(future_rows: u64) -> String {
    format!("drain beside {future_rows} future rows")
}

pub async fn run(entry: Entry, sizes: &Sizes) -> Result<Vec<Figure>> {
    let mut figures =
        super::on_fresh(entry, async |stand| beside_future(stand, sizes).await).await?;
    figures
        .extend(super::on_fresh(entry, async |stand| beside_finished(stand, sizes).await).await?);
    Ok(figures)
}

async fn beside_future(stand: &Stand, sizes: &Sizes) -> Result<Vec<Figure>> {
    let mut figures = Vec::new();
    let (mut number, mut rows) = (0, 0);
    for future in &sizes.future_rows {
        let fill = Fill {
            first: rows,
            future: future - rows,
            finished: 0,
        };
        stand.contestant.fill(fill).await?;
        rows = *future;
        figures.extend(drains(stand, sizes, &name(rows), &mut number).await?);
    }
    Ok(figures)
}

async fn beside_finished(stand: &Stand, sizes: &Sizes) -> Result<Vec<Figure>> {
    let fill = Fill {
        first: 0,
        future: 0,
        finished: sizes.finished_rows,
    };
    stand.contestant.fill(fill).await?;
    let name = format!("drain beside {} finished rows", sizes.finished_rows);
    drains(stand, sizes, &name, &mut 0).await
}

async fn drains(
    stand: &Stand,
    sizes: &Sizes,
    name: &str,
    number: &mut usize,
) -> Result<Vec<Figure>> {
    let count = sizes.backlog_jobs;
    let mut figures = Vec::new();
    for round in 0..WARM_UPS + sizes.rounds {
        stand.enqueue(*number, count).await?;
        let took = stand.drain(*number, count, CONCURRENCY).await?;
        *number += count;
        if round >= WARM_UPS {
            figures.push(Figure::per_second(name, count, took));
        }
    }
    Ok(figures)
}
