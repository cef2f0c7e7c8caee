//! Operate: what a person does to jobs.

use crate::state::{Move, Status};

/// Most ids in one request.
pub const OPERATE_IDS_MAX: usize = 1000;

/// What to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Action {
    /// Set aside until released.
    Hold,
    /// Let a held job go on, due at once.
    Release,
    /// Give up: DEAD.
    Cancel,
    /// Start anew with all attempts, due at once.
    Requeue,
}

impl Action {
    /// Every action.
    pub const ALL: [Self; 4] = [Self::Hold, Self::Release, Self::Cancel, Self::Requeue];

    /// The step of the state machine that this is.
    #[must_use]
    pub const fn step(self) -> Move {
        match self {
            Self::Hold => Move::Hold,
            Self::Release => Move::Release,
            Self::Cancel => Move::Cancel,
            Self::Requeue => Move::Requeue,
        }
    }
}

/// Asks for an action on some jobs.
#[derive(Clone, Debug)]
pub struct Operate {
    /// What to do.
    pub action: Action,
    /// To which jobs; at most [`OPERATE_IDS_MAX`].
    pub ids: Vec<u64>,
    /// Why, kept in `last_error` by hold and cancel.
    pub reason: Option<String>,
}

/// What became of each id, in the order asked for; repeated ids answer once.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Operated {
    /// One answer per id.
    pub answers: Vec<(u64, Operation)>,
}

/// What became of one job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Done; it stood at `from` before.
    Done {
        /// Where it stood.
        from: Status,
    },
    /// Refused: the state machine has no such step from there. Nothing was
    /// changed.
    Refused {
        /// Where it stands.
        status: Status,
    },
    /// No such job.
    Missing,
}
