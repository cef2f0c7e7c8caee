//! The right answers, and what was found.

use std::fmt::Write as _;

use retryjob::{Queue, Status};

use crate::{
    LATE_MIN, Result,
    database::Database,
    flights::{Departure, Flight},
};

/// Final counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Answers {
    pub(crate) rows: u64,
    pub(crate) success: u64,
    pub(crate) dead: u64,
    pub(crate) other: u64,
    pub(crate) attempts: u64,
}

/// The two files that come with the project, counted when they were made.
const SHIPPED: [Answers; 2] = [
    Answers {
        rows: 6_104,
        success: 5_175,
        dead: 929,
        other: 0,
        attempts: 7_504,
    },
    Answers {
        rows: 336_776,
        success: 328_521,
        dead: 8_255,
        other: 0,
        attempts: 440_694,
    },
];

impl Answers {
    /// The right answers: those of a file that is known, or else what the rule
    /// gives for each flight.
    pub(crate) fn right(flights: &[Flight]) -> Self {
        let rows = flights.len() as u64;
        if let Some(known) = SHIPPED.into_iter().find(|known| known.rows == rows) {
            return known;
        }
        let delays: Vec<_> = flights
            .iter()
            .filter_map(|flight| flight.departure.dep_delay_min)
            .collect();
        let late = |limit: &i32| delays.iter().filter(|delay| *delay >= limit).count() as u64;
        let success = delays.len() as u64;
        Self {
            rows,
            success,
            dead: rows - success,
            other: 0,
            attempts: rows + LATE_MIN.iter().map(late).sum::<u64>(),
        }
    }

    /// What the table holds.
    pub(crate) async fn found<B: Database>(queue: &Queue<Departure, B>) -> Result<Self> {
        let counts = queue.counts().await?;
        let (success, dead) = (counts.of(Status::Success), counts.of(Status::Dead));
        Ok(Self {
            rows: counts.total(),
            success,
            dead,
            other: counts.total() - success - dead,
            attempts: queue.backend().attempts_made().await?,
        })
    }

    /// A table of these counts next to the right ones.
    pub(crate) fn compared(&self, right: &Self) -> String {
        let mut table = format!("\n{:<10} {:>9} {:>9}\n", "", "found", "right");
        for (name, found, right) in [
            ("flights", self.rows, right.rows),
            ("SUCCESS", self.success, right.success),
            ("DEAD", self.dead, right.dead),
            ("other", self.other, right.other),
            ("attempts", self.attempts, right.attempts),
        ] {
            let mark = if found == right { "" } else { "  differs" };
            let _ = writeln!(table, "{name:<10} {found:>9} {right:>9}{mark}");
        }
        table
    }
}
