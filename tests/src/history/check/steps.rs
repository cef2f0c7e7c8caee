//! Each change of a row: whether the state machine, the fence and the lease
//! allow it.

use retryjob_core::{Move, Status, schema::Finished};

use super::{Checker, Moved, Promise, State, lease};

/// What operators do, by the name that calls have.
const ACTIONS: [(&str, Move); 4] = [
    ("Hold", Move::Hold),
    ("Release", Move::Release),
    ("Cancel", Move::Cancel),
    ("Requeue", Move::Requeue),
];

impl<'a> Checker<'a> {
    /// Every change begins where the one before it ended.
    pub(super) fn chain(&mut self, index: usize, moved: &'a Moved) {
        let before = self.last.insert(moved.id, moved.after.as_ref());
        let is_chained = match (before, &moved.before) {
            (None, first) => first.is_none(),
            (Some(last), before) => last == before.as_ref(),
        };
        self.hold(Promise::LegalMoves, is_chained, || {
            format!("change {index} does not begin where the last one ended: {moved}")
        });
    }

    pub(super) fn step(&mut self, moved: &'a Moved) {
        match (&moved.before, &moved.after) {
            (None, Some(after)) => self.inserted(moved, after),
            (Some(before), Some(after)) => self.updated(moved, before, after),
            (Some(before), None) => self.deleted(moved, before),
            (None, None) => self.broken(Promise::LegalMoves, "a change of nothing"),
        }
    }

    fn inserted(&mut self, moved: &Moved, after: &State) {
        let is_new = after.status == Status::Pending
            && (after.attempt_no, after.lease_seq) == (0, 0)
            && after.lease_until.is_none();
        self.hold(Promise::LegalMoves, is_new, || format!("not new: {moved}"));
    }

    fn deleted(&mut self, moved: &Moved, before: &State) {
        let may_leave = self.rules.finished != Finished::Keep
            && matches!(before.status, Status::Running | Status::Success);
        self.hold(Promise::LegalMoves, may_leave, || {
            format!("deleted: {moved}")
        });
        if before.status == Status::Running {
            self.lease_ends(moved, before, None);
        }
    }

    fn updated(&mut self, moved: &'a Moved, before: &State, after: &'a State) {
        // One that takes a job from another is a claim too, and an illegal one.
        let is_claim = after.status == Status::Running
            && (before.status != Status::Running || before.lease_owner != after.lease_owner);
        if is_claim {
            return self.claimed(moved, before, after);
        }
        self.hold(
            Promise::FenceGrows,
            before.lease_seq == after.lease_seq,
            || format!("the fence changed without a claim: {moved}"),
        );
        if before.status != Status::Running {
            return self.operated(moved, before, after);
        }
        if after.status == Status::Running {
            return self.renewed(moved, before, after);
        }
        self.lease_ends(moved, before, Some(after));
    }

    fn claimed(&mut self, moved: &'a Moved, before: &State, after: &'a State) {
        let is_waiting = before.status.after(Move::Claim).is_ok();
        self.hold(Promise::LegalMoves, is_waiting, || {
            format!("claimed: {moved}")
        });
        self.hold(
            Promise::FenceGrows,
            after.lease_seq == before.lease_seq + 1,
            || format!("a claim raises the fence by one: {moved}"),
        );
        let is_counted = after.attempt_no == before.attempt_no + 1
            && after.attempt_no <= self.rules.attempts_max;
        self.hold(Promise::AttemptsBounded, is_counted, || {
            format!("at most {} attempts: {moved}", self.rules.attempts_max)
        });
        let is_due = before.next_attempt_at <= moved.at;
        self.hold(Promise::NeverEarly, is_due, || {
            format!("due at {}: {moved}", before.next_attempt_at.us())
        });
        let has_lease = after.lease_until.is_some_and(|until| until > moved.at)
            && after.lease_owner.is_some()
            && before.lease_until.is_none();
        self.hold(Promise::OneLiveLease, has_lease, || {
            format!("a claim of a job without a lease gives one: {moved}")
        });
        self.claims.insert(lease(moved.id, after), after);
    }

    fn renewed(&mut self, moved: &Moved, before: &State, after: &State) {
        let is_kept = before.lease_until.is_some_and(|until| until >= moved.at)
            && before.lease_owner == after.lease_owner
            && after.lease_until >= before.lease_until;
        self.hold(Promise::OneLiveLease, is_kept, || {
            format!("only a live lease is renewed: {moved}")
        });
        self.hold(
            Promise::AttemptsBounded,
            before.attempt_no == after.attempt_no,
            || format!("a renewal costs no attempt: {moved}"),
        );
    }

    /// A lease ends: by its worker while it is live, by a reaper afterwards.
    fn lease_ends(&mut self, moved: &Moved, before: &State, after: Option<&State>) {
        let until = before.lease_until;
        let is_reaped = after.is_some_and(|after| after.lease_owner.is_none());
        let is_in_time = if is_reaped {
            until.is_some_and(|until| until < moved.at)
        } else {
            until.is_some_and(|until| until >= moved.at)
        };
        let by = if is_reaped { "reaper" } else { "worker" };
        self.hold(Promise::OneLiveLease, is_in_time, || {
            let until = until.map(|until| until.us());
            format!("the {by} ended a lease until {until:?}: {moved}")
        });
        if let Some(after) = after {
            self.ended(moved, before, after);
        }
        if !is_reaped {
            let status = after.map(|after| after.status);
            self.finishes.insert(lease(moved.id, before), status);
        }
        if after.is_none_or(|after| after.status == Status::Success) {
            self.successes.insert(lease(moved.id, before));
        }
    }

    /// What follows an attempt, in status and count.
    fn ended(&mut self, moved: &Moved, before: &State, after: &State) {
        let no = before.attempt_no;
        let is_given_back = after.attempt_no + 1 == no;
        let is_legal = match after.status {
            Status::Pending => is_given_back && no == 1,
            Status::Retry => is_given_back || after.attempt_no == no,
            Status::Success | Status::Dead | Status::Failed | Status::Hold => {
                after.attempt_no == no
            }
            Status::Running => false,
        };
        self.hold(Promise::LegalMoves, is_legal, || format!("ended: {moved}"));
        self.hold(Promise::OneLiveLease, after.lease_until.is_none(), || {
            format!("a lease is left behind: {moved}")
        });
        let is_beyond =
            after.status == Status::Retry && after.attempt_no >= self.rules.attempts_max;
        self.hold(Promise::AttemptsBounded, !is_beyond, || {
            format!("all {} attempts are used: {moved}", self.rules.attempts_max)
        });
    }

    /// A move of a job that does not run: only an operator makes one.
    fn operated(&mut self, moved: &Moved, before: &State, after: &State) {
        let action = ACTIONS
            .into_iter()
            .find(|(_, step)| before.status.after(*step) == Ok(after.status))
            .map(|(action, _)| action);
        let is_asked_for = action
            .and_then(|action| self.asked.get(action))
            .is_some_and(|ids| ids.contains(&moved.id));
        self.hold(Promise::LegalMoves, is_asked_for, || {
            format!("no operator asked for it: {moved}")
        });
        let Some(action) = action else { return };
        *self.operations.entry((moved.id, action)).or_default() += 1;
        let attempt_no = match action {
            "Release" | "Requeue" => 0,
            _ => before.attempt_no,
        };
        let is_counted = after.attempt_no == attempt_no;
        self.hold(Promise::AttemptsBounded, is_counted, || {
            format!("{action} leaves {attempt_no} attempts: {moved}")
        });
    }
}
