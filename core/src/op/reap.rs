//! Reap: attempts whose lease lapsed count as failed.

use std::time::Duration;

use crate::{
    op::{
        claim::Lease,
        finish::{Ending, Finish},
    },
    retry::{Failure, RetryPolicy, Verdict},
};

/// What `last_error` says of a lapsed attempt.
///
/// It begins with the reason `crashed`, for a program to look for, as in
/// `WHERE status = 3 AND last_error LIKE 'crashed: %'`. A job whose every
/// attempt aborts its process is DEAD with it after exactly the maximum of
/// attempts.
pub const LAPSED: &str = "crashed: the lease lapsed; its worker died, hung or lost the database";

/// Asks to take back lapsed leases.
#[derive(Clone, Copy, Debug)]
pub struct Reap {
    /// Most jobs to take back.
    pub limit: u16,
}

/// An attempt whose lease has lapsed, as it was read. It may be finished,
/// reaped or renewed before the reaper writes, so what is written repeats the
/// whole condition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lapsed {
    /// The lease.
    pub lease: Lease,
    /// Which attempt it was.
    pub attempt_no: u16,
    /// Time since the job first fell due.
    pub age: Duration,
}

impl Lapsed {
    /// The failed attempt that this counts as.
    #[must_use]
    pub fn finish(self, policy: &RetryPolicy) -> Finish {
        let decision = policy.decide(Failure {
            attempt_no: self.attempt_no,
            age: self.age,
            verdict: Verdict::Retry,
            seed: self.lease.id,
        });
        Finish {
            lease: self.lease,
            attempt_no: self.attempt_no,
            ending: Ending::Failed {
                decision,
                error: LAPSED.to_owned(),
            },
        }
    }
}

/// What was taken back.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reaped {
    /// The attempts that were ended, with what followed.
    pub finishes: Vec<Finish>,
    /// Whether more lapsed leases may be waiting.
    pub has_more: bool,
}
