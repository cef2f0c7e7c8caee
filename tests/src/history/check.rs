//! Holds a history against the promises, one function each.

mod rows;

mod steps;

mod told;

mod runs;

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    fmt,
};

use retryjob_core::Status;

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

impl Promise {
    /// Every promise.
    pub const ALL: [Self; 11] = [
        Self::NothingLost,
        Self::LegalMoves,
        Self::FenceGrows,
        Self::OneLiveLease,
        Self::FinishesTold,
        Self::AttemptsBounded,
        Self::NeverEarly,
        Self::RunsClaimed,
        Self::EffectsOnce,
        Self::OperatorsTold,
        Self::Drained,
    ];
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
    checker.rows_as_moved();
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
    acknowledged: BTreeMap<u64, &'a str>,
    /// What calls were told, beside what they asked.
    answers: Vec<(&'a Call, &'a Answer)>,
    /// Ids that an operator may have moved, by action.
    asked: BTreeMap<&'a str, BTreeSet<u64>>,
    /// The last state of each row so far.
    last: HashMap<u64, Option<&'a State>>,
    /// Grants by lease.
    claims: BTreeMap<LeaseOf, &'a State>,
    /// Where each lease led: finishes by their worker.
    finishes: BTreeMap<LeaseOf, Option<Status>>,
    /// Leases that ended in a success.
    successes: BTreeSet<LeaseOf>,
    /// How often each action moved each job.
    operations: BTreeMap<(u64, &'static str), usize>,
}

impl<'a> Checker<'a> {
    fn new(history: &'a History, rules: &'a Rules) -> Self {
        let mut checker = Self {
            history,
            rules,
            violations: Vec::new(),
            acknowledged: BTreeMap::new(),
            answers: Vec::new(),
            asked: BTreeMap::new(),
            last: HashMap::new(),
            claims: BTreeMap::new(),
            finishes: BTreeMap::new(),
            successes: BTreeSet::new(),
            operations: BTreeMap::new(),
        };
        let mut calls = HashMap::new();
        for record in &history.records {
            let key = (record.process, record.call);
            match &record.event {
                Event::Invoke(call) => {
                    calls.insert(key, call);
                    checker.invoked(call);
                }
                Event::Ok(answer) => {
                    if let Some(call) = calls.get(&key) {
                        checker.answered(call, answer);
                    }
                }
                _ => {}
            }
        }
        checker
    }

    fn invoked(&mut self, call: &'a Call) {
        if let Call::Operate { action, ids } = call {
            self.asked.entry(action).or_default().extend(ids);
        }
    }

    fn answered(&mut self, call: &'a Call, answer: &'a Answer) {
        if let (Call::Enqueue { keys }, Answer::Enqueued(ids)) = (call, answer) {
            for ((id, _), key) in ids.iter().zip(keys) {
                let other = self.acknowledged.insert(*id, key);
                let is_same = other.is_none_or(|other| other == key);
                self.hold(Promise::NothingLost, is_same, || {
                    format!("job {id} was acknowledged for {other:?} and for {key}")
                });
            }
        }
        self.answers.push((call, answer));
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

    fn attempts(&self, pick: impl Fn(&Event) -> Option<Attempt>) -> Vec<Attempt> {
        let events = self.history.records.iter().map(|record| &record.event);
        events.filter_map(pick).collect()
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
