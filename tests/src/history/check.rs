//! Holds a history against the promises, one function each.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    fmt,
};

use retryjob_core::{Move, Status, schema::Finished};

use super::{
    Effect, History, Rules,
    moves::{Moved, State},
    record::{Answer, Attempt, Call, Ended, Event, LeaseOf},
};

/// What a history is held against.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Promise {
    /// An acknowledged enqueue has its row, for good.
    NothingLost,
    /// Statuses change by the state machine only; terminal ones are left by an
    /// operator's requeue only.
    LegalMoves,
    /// Every claim raises `lease_seq` by one, and nothing else changes it.
    FenceGrows,
    /// A lease ends by a finish while it is live, or by a reap once it has
    /// lapsed; until then nobody else gets one.
    OneLiveLease,
    /// Accepted finishes carry the current fence, and refused ones change
    /// nothing.
    FinishesTold,
    /// A claim costs one attempt, and none begins beyond the maximum.
    AttemptsBounded,
    /// No run before the job is due.
    NeverEarly,
    /// A handler runs under a lease that was granted, once for each.
    RunsClaimed,
    /// Effects in the transaction of a finish: one per success.
    EffectsOnce,
    /// What operators were told happened.
    OperatorsTold,
    /// Nothing is left to do at the end.
    Drained,
}

/// A promise that was broken, and how.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    pub promise: Promise,
    pub what: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}: {}", self.promise, self.what)
    }
}

/// How much a check looked at: a history without calls proves nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Checked {
    /// Jobs whose enqueue was acknowledged.
    pub job_count: usize,
    /// Changes of rows.
    pub move_count: usize,
    /// Leases that were granted.
    pub claim_count: usize,
    /// Handlers that were called.
    pub run_count: usize,
    /// Calls with an unknown outcome.
    pub unknown_count: usize,
}

/// Every promise that the history breaks.
///
/// # Errors
///
/// The violations. A history without an acknowledged enqueue or without a claim
/// is one as well: it would pass whatever happened.
pub fn check(history: &History, rules: &Rules) -> Result<Checked, Vec<Violation>> {
    let mut checker = Checker::new(history, rules);
    checker.nothing_lost();
    for (index, moved) in history.moves.iter().enumerate() {
        checker.chain(index, moved);
        checker.step(moved);
    }
    checker.finishes_told();
    checker.claims_granted();
    checker.runs_claimed();
    checker.effects_once();
    checker.operators_told();
    checker.drained();
    checker.end()
}

struct Checker<'a> {
    history: &'a History,
    rules: &'a Rules,
    violations: Vec<Violation>,
    /// Rows that an acknowledged enqueue made.
    acknowledged: BTreeMap<u64, String>,
    /// What calls were told, beside what they asked.
    answers: Vec<(&'a Call, &'a Answer)>,
    /// Ids that an operator may have moved, by action.
    operated: BTreeMap<&'a str, BTreeSet<u64>>,
    /// The last state of each row so far.
    last: HashMap<u64, Option<&'a State>>,
    /// Grants by lease.
    claims: BTreeMap<LeaseOf, &'a State>,
    /// Where each lease led: finishes by their worker.
    finishes: BTreeMap<LeaseOf, Option<Status>>,
    /// Successes by job.
    successes: BTreeMap<u64, Vec<u64>>,
    /// Leases of attempts that were given back or reaped, and the rest.
    move_counts: BTreeMap<(u64, Status, Option<Status>), usize>,
}

impl<'a> Checker<'a> {
    fn new(history: &'a History, rules: &'a Rules) -> Self {
        let mut calls = HashMap::new();
        let mut answers = Vec::new();
        let mut operated: BTreeMap<&str, BTreeSet<u64>> = BTreeMap::new();
        let mut acknowledged = BTreeMap::new();
        for record in &history.records {
            let key = (record.process, record.call);
            match &record.event {
                Event::Invoke(call) => {
                    calls.insert(key, call);
                    if let Call::Operate { action, ids } = call {
                        operated.entry(action).or_default().extend(ids);
                    }
                }
                Event::Ok(answer) => {
                    let Some(call) = calls.get(&key) else {
                        continue;
                    };
                    if let (Call::Enqueue { keys }, Answer::Enqueued(ids)) = (call, answer) {
                        let pairs = ids.iter().zip(keys);
                        acknowledged.extend(pairs.map(|((id, _), key)| (*id, key.clone())));
                    }
                    answers.push((*call, answer));
                }
                _ => {}
            }
        }
        Self {
            history,
            rules,
            violations: Vec::new(),
            acknowledged,
            answers,
            operated,
            last: HashMap::new(),
            claims: BTreeMap::new(),
            finishes: BTreeMap::new(),
            successes: BTreeMap::new(),
            move_counts: BTreeMap::new(),
        }
    }

    fn broken(&mut self, promise: Promise, what: impl Into<String>) {
        let what = what.into();
        self.violations.push(Violation { promise, what });
    }

    fn hold(&mut self, promise: Promise, holds: bool, what: impl FnOnce() -> String) {
        if !holds {
            self.broken(promise, what());
        }
    }

    fn nothing_lost(&mut self) {
        let kept: BTreeSet<u64> = self.history.rows.iter().map(|row| row.id).collect();
        let purged: BTreeSet<u64> = self
            .history
            .moves
            .iter()
            .filter(|moved| moved.after.is_none())
            .map(|moved| moved.id)
            .collect();
        for (id, key) in self.acknowledged.clone() {
            let is_there = kept.contains(&id) || purged.contains(&id);
            self.hold(Promise::NothingLost, is_there, || {
                format!("job {id} (key {key}) was acknowledged and is gone")
            });
        }
        let mut keys = BTreeMap::new();
        for row in &self.history.rows {
            if let Some(other) = keys.insert(row.idempotency_key.to_string(), row.id) {
                let key = row.idempotency_key;
                self.broken(
                    Promise::NothingLost,
                    format!("jobs {other} and {} have the same key {key}", row.id),
                );
            }
        }
    }

    /// Every change begins where the one before it ended.
    fn chain(&mut self, index: usize, moved: &'a Moved) {
        let before = self.last.insert(moved.id, moved.after.as_ref());
        let is_chained = match (before, &moved.before) {
            (None, first) => first.is_none(),
            (Some(last), before) => last == before.as_ref(),
        };
        self.hold(Promise::LegalMoves, is_chained, || {
            format!("change {index} does not begin where the last one ended: {moved}")
        });
    }

    fn step(&mut self, moved: &'a Moved) {
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
        let key = (moved.id, before.status, Some(after.status));
        *self.move_counts.entry(key).or_default() += 1;
        let is_claim = before.status != Status::Running && after.status == Status::Running;
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
            let successes = self.successes.entry(moved.id).or_default();
            successes.push(before.lease_seq);
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
        let steps = [
            ("Hold", Move::Hold),
            ("Release", Move::Release),
            ("Cancel", Move::Cancel),
            ("Requeue", Move::Requeue),
        ];
        let is_asked_for = steps.into_iter().any(|(action, step)| {
            before.status.after(step) == Ok(after.status)
                && self
                    .operated
                    .get(action)
                    .is_some_and(|ids| ids.contains(&moved.id))
        });
        self.hold(Promise::LegalMoves, is_asked_for, || {
            format!("no operator asked for it: {moved}")
        });
    }

    /// Each finish is told what the row says.
    fn finishes_told(&mut self) {
        for (call, answer) in self.answers.clone() {
            let (Call::Finish { finishes }, Answer::Finished { lost }) = (call, answer) else {
                continue;
            };
            for Ended { lease, status } in finishes {
                let status = Status::from_code(*status);
                let written = self.finishes.get(lease).copied();
                let is_as_asked = written.is_some_and(|to| match to {
                    Some(to) => Some(to) == status,
                    // It left the table.
                    None => status == Some(Status::Success),
                });
                // One that was written, whose COMMIT was not answered, may have
                // moved on before it was read back, and then counts as lost:
                // its job goes on. A success stays, so it must be known.
                let has_stayed = self
                    .last
                    .get(&lease.id)
                    .copied()
                    .flatten()
                    .is_some_and(|last| {
                        last.status == Status::Success && last.lease_seq == lease.lease_seq
                    });
                let is_true = match lost.contains(&lease.id) {
                    false => is_as_asked,
                    true => !(is_as_asked && has_stayed),
                };
                // One call may finish a job twice, under two leases, and answers
                // name jobs.
                let same = |other: &&Ended| other.lease.id == lease.id;
                let is_ambiguous = finishes.iter().filter(same).count() > 1;
                self.hold(Promise::FinishesTold, is_true || is_ambiguous, || {
                    format!(
                        "{lease:?} to {status:?}, told lost: {lost:?}; the row says {written:?}"
                    )
                });
            }
        }
        for attempt in self.attempts(|event| match event {
            Event::Committed(attempt) => Some(*attempt),
            _ => None,
        }) {
            let written = self.finishes.get(&lease_of(attempt)).copied();
            let is_success = matches!(written, Some(None | Some(Status::Success)));
            self.hold(Promise::FinishesTold, is_success, || {
                format!("{attempt:?} was committed, the row says {written:?}")
            });
        }
        for attempt in self.attempts(|event| match event {
            Event::Lost(attempt) => Some(*attempt),
            _ => None,
        }) {
            let written = self.finishes.get(&lease_of(attempt)).copied();
            self.hold(Promise::FinishesTold, written.is_none(), || {
                format!("{attempt:?} was told that its lease is lost, the row says {written:?}")
            });
        }
    }

    fn attempts(&self, pick: impl Fn(&Event) -> Option<Attempt>) -> Vec<Attempt> {
        let events = self.history.records.iter().map(|record| &record.event);
        events.filter_map(pick).collect()
    }

    /// Leases that clients hold were granted by the database, once.
    fn claims_granted(&mut self) {
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

    fn runs_claimed(&mut self) {
        let mut seen = BTreeSet::new();
        for attempt in self.attempts(|event| match event {
            Event::Started(attempt) => Some(*attempt),
            _ => None,
        }) {
            let granted = self.claims.get(&lease_of(attempt));
            let is_granted = granted.is_some_and(|state| state.attempt_no == attempt.attempt_no);
            self.hold(Promise::RunsClaimed, is_granted, || {
                format!("{attempt:?} ran without a claim")
            });
            self.hold(Promise::RunsClaimed, seen.insert(attempt), || {
                format!("{attempt:?} ran twice")
            });
        }
    }

    fn effects_once(&mut self) {
        if !self.rules.has_effects {
            return;
        }
        let mut effects = BTreeSet::new();
        for effect in &self.history.effects {
            self.hold(Promise::EffectsOnce, effects.insert(*effect), || {
                format!("{effect:?} is there twice")
            });
        }
        let successes: BTreeSet<_> = self
            .successes
            .iter()
            .flat_map(|(id, seqs)| {
                seqs.iter().map(|lease_seq| Effect {
                    id: *id,
                    lease_seq: *lease_seq,
                })
            })
            .collect();
        for effect in effects.difference(&successes) {
            self.broken(
                Promise::EffectsOnce,
                format!("{effect:?} without its success"),
            );
        }
        for effect in successes.difference(&effects) {
            self.broken(
                Promise::EffectsOnce,
                format!("success without its effect: {effect:?}"),
            );
        }
    }

    fn operators_told(&mut self) {
        for (call, answer) in self.answers.clone() {
            let (Call::Operate { action, .. }, Answer::Operated { done }) = (call, answer) else {
                continue;
            };
            let to = match action.as_str() {
                "Hold" => Status::Hold,
                "Cancel" => Status::Dead,
                _ => Status::Pending,
            };
            for id in done {
                let count = self
                    .move_counts
                    .iter()
                    .filter(|((moved, from, after), _)| {
                        moved == id && *from != Status::Running && *after == Some(to)
                    })
                    .count();
                self.hold(Promise::OperatorsTold, count > 0, || {
                    format!("{action} of job {id} was acknowledged and never happened")
                });
            }
        }
    }

    fn drained(&mut self) {
        if !self.rules.is_drained {
            return;
        }
        for row in &self.history.rows {
            let is_open = matches!(
                row.status,
                Status::Pending | Status::Running | Status::Retry
            );
            self.hold(Promise::Drained, !is_open, || {
                format!("job {} is left {}", row.id, row.status)
            });
        }
    }

    fn end(mut self) -> Result<Checked, Vec<Violation>> {
        let runs = self.attempts(|event| match event {
            Event::Started(attempt) => Some(*attempt),
            _ => None,
        });
        let is_unknown = |record: &&super::Record| matches!(record.event, Event::Unknown(_));
        let checked = Checked {
            job_count: self.acknowledged.len(),
            move_count: self.history.moves.len(),
            claim_count: self.claims.len(),
            run_count: runs.len(),
            unknown_count: self.history.records.iter().filter(is_unknown).count(),
        };
        let is_empty = checked.job_count == 0 || checked.claim_count == 0;
        self.hold(Promise::NothingLost, !is_empty, || {
            format!("an empty history proves nothing: {checked:?}")
        });
        if self.violations.is_empty() {
            Ok(checked)
        } else {
            Err(self.violations)
        }
    }
}

const fn lease(id: u64, state: &State) -> LeaseOf {
    LeaseOf {
        id,
        lease_seq: state.lease_seq,
    }
}

const fn lease_of(attempt: Attempt) -> LeaseOf {
    LeaseOf {
        id: attempt.id,
        lease_seq: attempt.lease_seq,
    }
}
