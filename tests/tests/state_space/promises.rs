//! What holds in every state, what comes of every path, and what must be seen
//! on some path for the rest to mean anything.

use retryjob_core::{Status, op::operate::Action, state::Move};
use stateright::Property;

use crate::{
    model::{Hand, Model, State, Step},
    row::Row,
};

pub(crate) const ONE_LIVE_FENCE: &str = "a job has at most one live fence";
pub(crate) const LATE_FINISH: &str = "a late finish changes nothing";
pub(crate) const LATE_REAP: &str = "a late reap changes nothing";
pub(crate) const CLAIM_OF_WAITING: &str = "only a waiting job is claimed";

/// What steps did, for promises about a step and not a state. It is judged by
/// the rows before and after, not by the comparisons that the model makes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Seen {
    left_the_end: bool,
    fell: bool,
    late_finish_changed: bool,
    late_reap_changed: bool,
    claimed_unready: bool,
    late_finish_refused: bool,
    reaped: bool,
    hold_beat_claim: bool,
}

impl Seen {
    pub(crate) fn step(&mut self, before: &State, step: Step, after: &[Row; 2]) {
        for (was, is) in before.jobs.iter().zip(after) {
            let is_requeue = matches!(step, Step::Operate(Action::Requeue, _));
            self.left_the_end |= was.status.is_terminal() && was != is && !is_requeue;
            self.fell |= is.lease_seq < was.lease_seq;
        }
        let has_changed = before.jobs != *after;
        match step {
            Step::Finish(worker, _) => {
                let is_late = matches!(before.workers[worker], Hand::Runs(held)
                    if !before.jobs[held.job].is_leased(held) || before.jobs[held.job].has_lapsed);
                self.late_finish_changed |= is_late && has_changed;
                self.late_finish_refused |= is_late && !has_changed;
            }
            Step::Reap(reaper) => {
                let is_late = before
                    .read(reaper)
                    .is_none_or(|read| !before.jobs[read.job].is_leased(read));
                self.late_reap_changed |= is_late && has_changed;
                self.reaped |= !is_late && has_changed;
            }
            Step::Take(worker) => {
                if let Hand::Picked(job) = before.workers[worker] {
                    let status = before.jobs[job].status;
                    self.claimed_unready |= has_changed && status.after(Move::Claim).is_err();
                    self.hold_beat_claim |= !has_changed && status == Status::Hold;
                }
            }
            Step::Pick(..)
            | Step::Crash(_)
            | Step::Lapse(_)
            | Step::Read(..)
            | Step::Operate(..) => {}
        }
    }
}

pub(crate) fn all() -> Vec<Property<Model>> {
    let mut all = always();
    all.extend(ends());
    all.extend(sometimes());
    all
}

fn always() -> Vec<Property<Model>> {
    vec![
        Property::always(ONE_LIVE_FENCE, |model: &Model, state: &State| {
            (0..state.jobs.len()).all(|job| live_fences(model, state, job) <= 1)
        }),
        Property::always(LATE_FINISH, |_: &Model, state: &State| {
            !state.seen.late_finish_changed
        }),
        Property::always(LATE_REAP, |_: &Model, state: &State| {
            !state.seen.late_reap_changed
        }),
        Property::always(CLAIM_OF_WAITING, |_: &Model, state: &State| {
            !state.seen.claimed_unready
        }),
        Property::always(
            "only a requeue leaves an end",
            |_: &Model, state: &State| !state.seen.left_the_end,
        ),
        Property::always("lease_seq never falls", |_: &Model, state: &State| {
            !state.seen.fell
        }),
        Property::always(
            "attempts stay within the maximum",
            |model: &Model, state: &State| {
                let max = model.policy().max_attempts;
                state.jobs.iter().all(|row| row.attempt_no <= max)
            },
        ),
    ]
}

/// `eventually` alone is too little: the search follows each state once, so a
/// path that joins another is not followed to its end. The state before an end
/// that should be none is caught by the second.
fn ends() -> Vec<Property<Model>> {
    vec![
        Property::eventually("every job comes to rest", |_: &Model, state: &State| {
            state.jobs.iter().all(Row::is_at_rest)
        }),
        Property::always(
            "a job that is not at rest goes on by itself",
            |model: &Model, state: &State| {
                state.jobs.iter().all(Row::is_at_rest) || model.goes_on(state)
            },
        ),
    ]
}

fn sometimes() -> Vec<Property<Model>> {
    vec![
        Property::sometimes("a late finish is refused", |_: &Model, state: &State| {
            state.seen.late_finish_refused
        }),
        Property::sometimes("a lapsed job is reaped", |_: &Model, state: &State| {
            state.seen.reaped
        }),
        Property::sometimes(
            "a hold comes before a claim that was under way",
            |_: &Model, state: &State| state.seen.hold_beat_claim,
        ),
        Property::sometimes("a job dies", |_: &Model, state: &State| {
            has(state, Status::Dead)
        }),
        Property::sometimes("a job succeeds", |_: &Model, state: &State| {
            has(state, Status::Success)
        }),
        Property::sometimes("a job is held", |_: &Model, state: &State| {
            has(state, Status::Hold)
        }),
    ]
}

fn has(state: &State, status: Status) -> bool {
    state.jobs.iter().any(|row| row.status == status)
}

/// The leases in hand with which this job could be finished now.
fn live_fences(model: &Model, state: &State, job: usize) -> usize {
    let can_finish = |hand: &&Hand| matches!(hand, Hand::Runs(held) if held.job == job && model.can_finish(&state.jobs[job], *held));
    state.workers.iter().filter(can_finish).count()
}
