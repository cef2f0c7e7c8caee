//! Changes of rows, as the database itself noted them.
//!
//! A trigger writes them in the transaction that makes the change: what is
//! rolled back is not there, what is committed can't be missing. Rows are
//! locked while they change, so the changes of one row are in their order.

pub mod mysql;
pub mod sqlite;

use std::{collections::BTreeMap, fmt};

use retryjob_core::{DbTime, Status, memory::JobRow};

/// One change of one row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Moved {
    /// The database's clock when the statement began.
    pub at: DbTime,
    /// The job's id.
    pub id: u64,
    /// What the row held; `None` when it was inserted.
    pub before: Option<State>,
    /// What it holds; `None` when it was deleted.
    pub after: Option<State>,
}

/// The columns of a row that the promises are about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct State {
    pub status: Status,
    pub attempt_no: u16,
    pub lease_seq: u64,
    pub lease_owner: Option<String>,
    pub lease_until: Option<DbTime>,
    pub next_attempt_at: DbTime,
}

impl State {
    #[must_use]
    pub fn of(row: &JobRow) -> Self {
        let owner = row.lease_owner.as_ref();
        Self {
            status: row.status,
            attempt_no: row.attempt_no,
            lease_seq: row.lease_seq,
            lease_owner: owner.map(|owner| owner.as_str().to_owned()),
            lease_until: row.lease_until,
            next_attempt_at: row.next_attempt_at,
        }
    }
}

impl Moved {
    /// Whether a lease was granted.
    #[must_use]
    pub fn is_claim(&self) -> bool {
        let is_running = |state: &Option<State>| {
            let state = state.as_ref();
            state.is_some_and(|state| state.status == Status::Running)
        };
        !is_running(&self.before) && is_running(&self.after)
    }

    /// Whether a reaper took a lapsed lease back.
    #[must_use]
    pub fn is_reap(&self) -> bool {
        let (Some(before), Some(after)) = (&self.before, &self.after) else {
            return false;
        };
        before.status == Status::Running && after.lease_owner.is_none()
    }

    /// The changes between two looks at a table that nobody changed meanwhile
    /// more than once.
    #[must_use]
    pub fn between(before: &[JobRow], after: &[JobRow], at: DbTime) -> Vec<Self> {
        let states = |rows: &[JobRow]| -> BTreeMap<u64, State> {
            rows.iter().map(|row| (row.id, State::of(row))).collect()
        };
        let (before, mut after) = (states(before), states(after));
        let mut moves = Vec::new();
        for (id, before) in before {
            let after = after.remove(&id);
            if after.as_ref() != Some(&before) {
                moves.push(Self {
                    at,
                    id,
                    before: Some(before),
                    after,
                });
            }
        }
        moves.extend(after.into_iter().map(|(id, state)| Self {
            at,
            id,
            before: None,
            after: Some(state),
        }));
        moves
    }
}

impl fmt::Display for Moved {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "job {} at {}: ", self.id, self.at.us())?;
        for (state, end) in [(&self.before, " -> "), (&self.after, "")] {
            match state {
                None => write!(f, "none{end}")?,
                Some(state) => write!(
                    f,
                    "{} attempt {} lease {} of {}{end}",
                    state.status,
                    state.attempt_no,
                    state.lease_seq,
                    state.lease_owner.as_deref().unwrap_or("nobody"),
                )?,
            }
        }
        Ok(())
    }
}

/// The columns of a [`State`], in its order.
const COLUMNS: [&str; 6] = [
    "status",
    "attempt_no",
    "lease_seq",
    "lease_owner",
    "lease_until",
    "next_attempt_at",
];

/// The names of the columns that hold what was and what is.
fn sides() -> Vec<String> {
    ["before", "after"]
        .into_iter()
        .flat_map(|side| COLUMNS.map(|column| format!("{column}_{side}")))
        .collect()
}

/// The events that change a row, with what they know of it.
const EVENTS: [(&str, bool, bool); 3] = [
    ("INSERT", false, true),
    ("UPDATE", true, true),
    ("DELETE", true, false),
];

/// The insert of one trigger.
fn note(now: &str, has_old: bool, has_new: bool) -> String {
    let side = |name: &str, is_known: bool| {
        COLUMNS.map(|column| match is_known {
            true => format!("{name}.{column}"),
            false => "NULL".into(),
        })
    };
    let values: Vec<_> = side("OLD", has_old)
        .into_iter()
        .chain(side("NEW", has_new))
        .collect();
    let id = if has_new { "NEW.id" } else { "OLD.id" };
    format!(
        "INSERT INTO job_move (at, id, {}) VALUES ({now}, {id}, {})",
        sides().join(", "),
        values.join(", ")
    )
}
