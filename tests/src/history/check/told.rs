//! What callers were told, against what the rows say.

use std::collections::{BTreeMap, BTreeSet};

use retryjob_core::Status;

use super::{Answer, Call, Checker, Ended, Event, LeaseOf, Promise, lease_of};

impl Checker<'_> {
    /// Each finish is told what the row says.
    pub(super) fn finishes_told(&mut self) {
        for (call, answer) in self.answers.clone() {
            let (Call::Finish { finishes }, Answer::Finished { lost }) = (call, answer) else {
                continue;
            };
            for ended in finishes {
                // One call may finish a job twice, under two leases.
                let same = |other: &&Ended| other.lease.id == ended.lease.id;
                if finishes.iter().filter(same).count() == 1 {
                    self.finish_told(ended, lost.contains(&ended.lease.id));
                }
            }
        }
        self.commits_told();
    }

    fn finish_told(&mut self, ended: &Ended, is_lost: bool) {
        let lease = &ended.lease;
        let asked = Status::from_code(ended.status);
        let written = self.finishes.get(lease).copied();
        let is_as_asked = match written {
            None => false,
            Some(Some(to)) => Some(to) == asked,
            // It left the table.
            Some(None) => asked == Some(Status::Success),
        };
        // One that was written, whose COMMIT was not answered, may have moved
        // on before it was read back, and then counts as lost: its job goes
        // on. A success stays, so it must be known.
        let is_true = match is_lost {
            false => is_as_asked,
            true => {
                let is_success = asked == Some(Status::Success) && is_as_asked;
                !(is_success && self.is_still_success(lease))
            }
        };
        self.hold(Promise::FinishesTold, is_true, || {
            format!("{lease:?} to {asked:?}, told lost: {is_lost}, the row says {written:?}")
        });
    }

    fn is_still_success(&self, lease: &LeaseOf) -> bool {
        let last = self.last.get(&lease.id).copied().flatten();
        last.is_some_and(|last| last.status == Status::Success && last.lease_seq == lease.lease_seq)
    }

    /// What handlers noted of their own transactions.
    fn commits_told(&mut self) {
        for record in &self.history.records {
            let (attempt, is_committed) = match &record.event {
                Event::Committed(attempt) => (attempt, true),
                Event::Lost(attempt) => (attempt, false),
                _ => continue,
            };
            let written = self.finishes.get(&lease_of(*attempt)).copied();
            let is_true = match is_committed {
                true => matches!(written, Some(None | Some(Status::Success))),
                false => written.is_none(),
            };
            self.hold(Promise::FinishesTold, is_true, || {
                format!("{attempt:?} noted committed: {is_committed}, the row says {written:?}")
            });
        }
    }

    /// Leases that clients hold were granted by the database, once.
    pub(super) fn claims_granted(&mut self) {
        let mut seen = BTreeSet::new();
        for (call, answer) in self.answers.clone() {
            let (Call::Claim { owner, .. }, Answer::Claimed(leases)) = (call, answer) else {
                continue;
            };
            for lease in leases {
                let granted = self.claims.get(lease).and_then(|state| {
                    let owner = state.lease_owner.as_deref();
                    owner.map(str::to_owned)
                });
                self.hold(
                    Promise::OneLiveLease,
                    granted.as_ref() == Some(owner),
                    || format!("{owner} was told it has {lease:?}, the row says {granted:?}"),
                );
                self.hold(Promise::OneLiveLease, seen.insert(*lease), || {
                    format!("{lease:?} was given to two")
                });
            }
        }
    }

    /// Each acknowledged action moved its job once.
    pub(super) fn operators_told(&mut self) {
        let mut told: BTreeMap<(u64, &str), usize> = BTreeMap::new();
        for (call, answer) in &self.answers {
            let (Call::Operate { action, .. }, Answer::Operated { done }) = (call, answer) else {
                continue;
            };
            for id in done {
                *told.entry((*id, action)).or_default() += 1;
            }
        }
        let moved = self.operations.clone();
        for ((id, action), told) in told {
            let done = moved.get(&(id, action)).copied().unwrap_or_default();
            self.hold(Promise::OperatorsTold, told <= done, || {
                format!("{action} of job {id} was acknowledged {told} times, happened {done} times")
            });
        }
    }
}
