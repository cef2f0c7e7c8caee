//! The states of a job and the only list of legal moves.
//!
//! ```text
//!             claim            succeed
//! PENDING ───────────▶ RUNNING ─────────▶ SUCCESS
//!    ▲  ▲                 │  ▲
//!    │  │ release         │  └── claim ── RETRY ◀──┐
//!    │ HOLD ◀── hold      ▼                        │ policy: retry
//!    │                  FAILED ────────────────────┤
//!    └── requeue ── DEAD ◀─────────────────────────┘ policy: no more attempts
//! ```

use std::fmt;

/// Where a job stands. The number is what the `status` column holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum Status {
    /// Waits for its first attempt, or for one after a release or requeue.
    Pending = 0,
    /// Claimed: one worker holds its lease.
    Running = 1,
    /// Done; left only by a requeue.
    Success = 2,
    /// Given up; left only by a requeue.
    Dead = 3,
    /// Failed at least once, waits for the next attempt.
    Retry = 4,
    /// Failed, and the policy asks for a person.
    Failed = 5,
    /// Set aside on purpose, until released.
    Hold = 6,
}

impl Status {
    /// Every status, in the order of their codes.
    pub const ALL: [Self; 7] = [
        Self::Pending,
        Self::Running,
        Self::Success,
        Self::Dead,
        Self::Retry,
        Self::Failed,
        Self::Hold,
    ];

    /// The number that the `status` column holds.
    #[must_use]
    pub const fn code(self) -> u8 {
        self as u8
    }

    /// The status with this code, if there is one.
    #[must_use]
    pub fn from_code(code: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|status| status.code() == code)
    }

    /// Whether nothing but an operator's requeue leaves this status.
    #[must_use]
    pub const fn is_terminal(self) -> bool {
        matches!(self, Self::Success | Self::Dead)
    }

    /// Where `step` leads from here.
    ///
    /// This match is the only list of legal moves: the memory backend calls
    /// it, and the `WHERE status` of every statement is made from it by
    /// [`Move::sources`].
    ///
    /// # Errors
    ///
    /// [`IllegalMove`] when the step can't be taken from this status.
    ///
    /// # Examples
    ///
    /// ```
    /// use retryjob_core::{Move, Status};
    ///
    /// assert_eq!(Status::Pending.after(Move::Claim), Ok(Status::Running));
    /// assert!(Status::Success.after(Move::Claim).is_err());
    /// ```
    pub const fn after(self, step: Move) -> Result<Self, IllegalMove> {
        use Status::{Dead, Failed, Hold, Pending, Retry, Running, Success};
        Ok(match (step, self) {
            (Move::Claim, Pending | Retry) => Running,
            (Move::Succeed, Running) => Success,
            (Move::Fail, Running) => Failed,
            (Move::GiveBackFresh, Running) => Pending,
            (Move::GiveBackRetry, Running) => Retry,
            (Move::HoldRunning, Running) => Hold,
            (Move::Retry, Failed) => Retry,
            (Move::Die, Failed) => Dead,
            (Move::Hold, Pending | Retry | Failed) => Hold,
            (Move::Release, Hold) => Pending,
            (Move::Cancel, Pending | Retry | Failed | Hold) => Dead,
            (Move::Requeue, Success | Dead | Failed) => Pending,
            (step, from) => return Err(IllegalMove { step, from }),
        })
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Pending => "PENDING",
            Self::Running => "RUNNING",
            Self::Success => "SUCCESS",
            Self::Dead => "DEAD",
            Self::Retry => "RETRY",
            Self::Failed => "FAILED",
            Self::Hold => "HOLD",
        })
    }
}

/// One step of the state machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Move {
    /// A worker takes the lease. Costs an attempt and raises `lease_seq`.
    Claim,
    /// The handler is done.
    Succeed,
    /// The attempt failed, or its lease lapsed. Passed through: `Retry`, `Die`
    /// or a rest in FAILED follows in the same transaction.
    Fail,
    /// The handler snoozed, or never started, on its first attempt. Gives the
    /// attempt back.
    GiveBackFresh,
    /// The same on a later attempt.
    GiveBackRetry,
    /// The handler asks to wait until someone acts.
    HoldRunning,
    /// The policy grants another attempt.
    Retry,
    /// The policy grants none.
    Die,
    /// An operator sets a waiting job aside. A running one is refused: its
    /// handler may be past the point of no return.
    Hold,
    /// An operator lets a held job go on.
    Release,
    /// An operator gives up on a job that is not running.
    Cancel,
    /// An operator starts a job anew, with all its attempts.
    Requeue,
}

impl Move {
    /// Every step.
    pub const ALL: [Self; 12] = [
        Self::Claim,
        Self::Succeed,
        Self::Fail,
        Self::GiveBackFresh,
        Self::GiveBackRetry,
        Self::HoldRunning,
        Self::Retry,
        Self::Die,
        Self::Hold,
        Self::Release,
        Self::Cancel,
        Self::Requeue,
    ];

    /// The statuses this step can be taken from, in the order of their codes.
    pub fn sources(self) -> impl Iterator<Item = Status> {
        Status::ALL
            .into_iter()
            .filter(move |from| from.after(self).is_ok())
    }
}

/// A step that the state machine does not know from that status.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{step:?} can't be taken from {from}")]
pub struct IllegalMove {
    /// The step that was asked for.
    pub step: Move,
    /// Where the job stands.
    pub from: Status,
}
