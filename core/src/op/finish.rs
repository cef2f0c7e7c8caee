//! Finish: the outcome of an attempt is written, if the lease still stands.

use std::time::Duration;

use crate::{
    op::claim::Lease,
    retry::Decision,
    state::{Move, Status},
};

/// Most bytes of an error that are kept in `last_error`.
pub const LAST_ERROR_BYTES_MAX: usize = 2000;

/// The outcome of one attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finish {
    /// The lease under which it ran.
    pub lease: Lease,
    /// Which attempt it was.
    pub attempt_no: u16,
    /// What follows.
    pub ending: Ending,
}

/// What follows an attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ending {
    /// SUCCESS.
    Success,
    /// Through FAILED to where the policy leads.
    Failed {
        /// What the policy decided.
        decision: Decision,
        /// The error, kept in `last_error`.
        error: String,
    },
    /// Back to where it came from, to start after this delay; costs no
    /// attempt.
    GiveBack {
        /// Time until it is due again.
        delay: Duration,
    },
}

/// A finish as a row takes it: the one place where an ending becomes columns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settled {
    /// The status after all moves.
    pub status: Status,
    /// Attempts made.
    pub attempt_no: u16,
    /// Time until it is due again.
    pub delay: Duration,
    /// What goes to `last_error`; `None` leaves it as it is.
    pub error: Option<String>,
}

impl Finish {
    /// What the row holds afterwards.
    #[must_use]
    pub fn settled(&self) -> Settled {
        let attempt_no = self.attempt_no;
        match &self.ending {
            Ending::Success => Settled {
                status: Status::Success,
                attempt_no,
                delay: Duration::ZERO,
                error: None,
            },
            Ending::Failed { decision, error } => Settled {
                status: decision.status(),
                attempt_no,
                delay: decision.delay(),
                error: Some(shortened(error)),
            },
            Ending::GiveBack { delay } => Settled {
                status: if attempt_no <= 1 {
                    Status::Pending
                } else {
                    Status::Retry
                },
                attempt_no: attempt_no.saturating_sub(1),
                delay: *delay,
                error: None,
            },
        }
    }

    /// Whether it writes SUCCESS under a shard's lease. That leaves the owner
    /// out of the row, so that it does not tell afterwards who wrote it.
    #[must_use]
    pub const fn is_held_success(&self) -> bool {
        self.lease.shard.is_some() && matches!(self.ending, Ending::Success)
    }

    /// The moves that this finish makes, in order, for the state machine.
    #[must_use]
    pub fn moves(&self) -> Vec<Move> {
        match &self.ending {
            Ending::Success => vec![Move::Succeed],
            Ending::Failed { decision, .. } => match decision {
                Decision::Retry(_) => vec![Move::Fail, Move::Retry],
                Decision::Dead => vec![Move::Fail, Move::Die],
                Decision::Manual => vec![Move::Fail],
                Decision::Hold => vec![Move::HoldRunning],
            },
            Ending::GiveBack { .. } if self.attempt_no <= 1 => vec![Move::GiveBackFresh],
            Ending::GiveBack { .. } => vec![Move::GiveBackRetry],
        }
    }
}

impl Decision {
    /// The status that the decision leads to.
    #[must_use]
    pub const fn status(self) -> Status {
        match self {
            Self::Retry(_) => Status::Retry,
            Self::Dead => Status::Dead,
            Self::Manual => Status::Failed,
            Self::Hold => Status::Hold,
        }
    }

    /// Time until the next attempt; zero when there is none.
    #[must_use]
    pub const fn delay(self) -> Duration {
        match self {
            Self::Retry(delay) => delay,
            Self::Dead | Self::Manual | Self::Hold => Duration::ZERO,
        }
    }
}

/// The first [`LAST_ERROR_BYTES_MAX`] bytes, cut between characters.
#[must_use]
pub fn shortened(error: &str) -> String {
    let end = error.floor_char_boundary(LAST_ERROR_BYTES_MAX);
    error[..end].to_owned()
}

/// Which finishes were written, and which came too late.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Finished {
    /// Ids of the jobs whose lease was lost; nothing was changed for them.
    pub lost: Vec<u64>,
}
