//! What happened to jobs under faults, and whether every promise held.
//!
//! ```text
//! client calls ──▶ Recorded ──▶ records ──┐
//! handlers     ──▶ side log ──▶ records ──┤
//! the database ──▶ triggers ──▶ moves   ──┼──▶ check ──▶ violations
//! finish_in    ──▶ effects table        ──┤
//! the end      ──▶ rows                 ──┘
//! ```
//!
//! A history holds the same events seen from three sides. Clients record what
//! they asked and what they were told, which after a fault may be nothing.
//! Handlers note each run outside of any transaction, and each effect inside
//! the one that finishes the job. The database notes every change of a row by
//! a trigger, in the transaction that makes it and by its own clock, so what
//! it says is what was committed. [`check()`] holds the three against each other.

pub mod record;

pub mod recorded;

pub mod moves;

pub mod check;

pub mod shards;

#[cfg(test)]
mod planted;

use retryjob_core::{RetryPolicy, memory::JobRow, schema::Finished};

pub use self::{
    check::{Checked, Promise, Violation, check},
    moves::{Moved, State},
    record::{Answer, Attempt, Call, Event, Record, Recorder},
    recorded::Recorded,
};

/// All that is known of one run.
#[derive(Clone, Debug, Default)]
pub struct History {
    /// What clients asked and were told, and what handlers noted.
    pub records: Vec<Record>,
    /// Every change of a row, in the order in which it was committed for that
    /// row.
    pub moves: Vec<Moved>,
    /// What handlers wrote inside the transactions that finished their jobs.
    pub effects: Vec<Effect>,
    /// The rows at the end, those of the history table included.
    pub rows: Vec<JobRow>,
}

/// A write of a handler, in the transaction of its finish.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Effect {
    /// The job's id.
    pub id: u64,
    /// The lease under which it was written.
    pub lease_seq: u64,
}

/// What the job type of a history allows, and how far the run went.
#[derive(Clone, Copy, Debug)]
pub struct Rules {
    /// Most attempts of one job.
    pub attempts_max: u16,
    /// Whether rows leave the table when they succeed.
    pub finished: Finished,
    /// Whether every success wrote an effect in its transaction. Effects that
    /// are there are held against the successes either way.
    pub has_effects: bool,
    /// Whether the run went on until nothing was left to do.
    pub is_drained: bool,
}

impl Rules {
    /// A job type that keeps its rows, worked off to the end.
    #[must_use]
    pub const fn of(policy: &RetryPolicy) -> Self {
        Self {
            attempts_max: policy.max_attempts,
            finished: Finished::Keep,
            has_effects: false,
            is_drained: true,
        }
    }
}
