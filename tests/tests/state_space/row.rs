//! A row, and the writes that compare before they change it.

use retryjob_core::{
    Lease, RetryPolicy, Verdict,
    op::{
        claim::LeaseOwner,
        finish::{Ending, Finish},
        operate::Action,
    },
    retry::{Decision, Failure},
    state::{Move, Status},
};

/// What the promises need of a row. Time is left out: whoever waits is due,
/// and a lease is live or has lapsed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Row {
    pub(crate) status: Status,
    pub(crate) attempt_no: u16,
    pub(crate) lease_seq: u64,
    pub(crate) has_lapsed: bool,
}

/// What a claim hands to a worker, and a reaper reads of a lapsed row. An owner
/// is made for one claim alone, so the fence stands for both.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Held {
    pub(crate) job: usize,
    pub(crate) attempt_no: u16,
    pub(crate) lease_seq: u64,
}

/// What a handler returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    Done,
    Failed(Verdict),
    Snooze,
}

impl Row {
    pub(crate) const NEW: Self = Self {
        status: Status::Pending,
        attempt_no: 0,
        lease_seq: 0,
        has_lapsed: false,
    };

    pub(crate) fn is_waiting(&self) -> bool {
        self.status.after(Move::Claim).is_ok()
    }

    /// Whether the job needs nothing but a person, if anything.
    pub(crate) fn is_at_rest(&self) -> bool {
        self.status.is_terminal() || matches!(self.status, Status::Failed | Status::Hold)
    }

    /// Whether this is the lease that the row is running under, lapsed or not.
    pub(crate) fn is_leased(&self, held: Held) -> bool {
        self.status == Status::Running && self.lease_seq == held.lease_seq
    }

    pub(crate) fn claimed(self) -> Option<Self> {
        Some(self.leased(self.status.after(Move::Claim).ok()?))
    }

    /// The row under a new lease.
    pub(crate) fn leased(self, status: Status) -> Self {
        Self {
            status,
            attempt_no: self.attempt_no + 1,
            lease_seq: self.lease_seq + 1,
            has_lapsed: false,
        }
    }

    /// The row after this ending of the attempt, by the core's own rules.
    pub(crate) fn settled(self, held: Held, answer: Answer, policy: &RetryPolicy) -> Option<Self> {
        let finish = held.finish(answer, policy);
        let status = finish
            .moves()
            .into_iter()
            .try_fold(self.status, Status::after)
            .ok()?;
        Some(Self {
            status,
            attempt_no: finish.settled().attempt_no,
            has_lapsed: false,
            ..self
        })
    }

    pub(crate) fn operated(self, action: Action) -> Option<Self> {
        let status = self.status.after(action.step()).ok()?;
        let attempt_no = match action {
            Action::Release | Action::Requeue => 0,
            Action::Hold | Action::Cancel => self.attempt_no,
        };
        Some(Self {
            status,
            attempt_no,
            ..self
        })
    }
}

impl Held {
    fn finish(self, answer: Answer, policy: &RetryPolicy) -> Finish {
        let ending = match answer {
            Answer::Done => Ending::Success,
            Answer::Snooze => Ending::GiveBack {
                delay: std::time::Duration::ZERO,
            },
            Answer::Failed(verdict) => Ending::Failed {
                decision: self.decision(verdict, policy),
                error: String::new(),
            },
        };
        Finish {
            lease: Lease {
                id: self.job as u64,
                owner: LeaseOwner::from_row(""),
                lease_seq: self.lease_seq,
                shard: None,
            },
            attempt_no: self.attempt_no,
            ending,
        }
    }

    fn decision(self, verdict: Verdict, policy: &RetryPolicy) -> Decision {
        policy.decide(Failure {
            attempt_no: self.attempt_no,
            age: std::time::Duration::ZERO,
            verdict,
            seed: 0,
        })
    }
}
