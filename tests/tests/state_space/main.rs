//! Every order in which two workers, two reapers and an operator can meet over
//! two jobs: the whole state space, searched by stateright.
//!
//! Where a job goes is asked of the core: `Status::after` for every move,
//! `RetryPolicy::decide` for every failure. What is modelled here is what the
//! statements do beside that: read first, and compare when writing. Crashes,
//! lapses of live leases, snoozes and the operator's actions are two at most, so
//! that every path ends.
//!
//! A model that leaves out one comparison has to be caught.
#![allow(clippy::unwrap_used, reason = "a panic is a failed test")]

mod model;
mod promises;
mod row;

use std::{collections::BTreeSet, time::Duration};

use retryjob_core::{Backoff, RetryPolicy};
use retryjob_tests::faults::report::say;
use stateright::{Checker, HasDiscoveries, Model as _};

use model::{Flaw, Model, Step};

/// Two attempts: enough for a retry and for a death of it.
const DIES: RetryPolicy = RetryPolicy {
    backoff: Backoff::Fixed {
        delay: Duration::from_secs(1),
    },
    cap: None,
    jitter: Duration::ZERO,
    max_attempts: 2,
    grace: None,
    manual_after: None,
};

/// The first failure waits for a person.
const ASKS: RetryPolicy = RetryPolicy {
    manual_after: Some(1),
    ..DIES
};

/// Most crashes, lapses of live leases, snoozes and actions in one path.
const EVENTS: u8 = 2;

/// Searches everything, and returns how many states there are.
fn search(policy: RetryPolicy) -> usize {
    let checker = Model::new(policy, Flaw::None, EVENTS)
        .checker()
        .spawn_bfs()
        .join();
    checker.assert_properties();
    checker.unique_state_count()
}

/// The step that first breaks the promise, in a model with this flaw.
fn broken(flaw: Flaw, promise: &'static str) -> Step {
    let checker = Model::new(DIES, flaw, EVENTS)
        .checker()
        .finish_when(HasDiscoveries::AllOf(BTreeSet::from([promise])))
        .spawn_bfs()
        .join();
    let path = checker.assert_any_discovery(promise);
    let model = checker.model();
    let keeps = model.property(promise).condition;
    let states = path.into_vec();
    let broken = states.windows(2).find(|pair| !keeps(model, &pair[1].0));
    let step = broken.unwrap()[0].1.unwrap();
    say(format!(
        "state space: {flaw:?} breaks \"{promise}\" by {step:?}"
    ));
    step
}

#[test]
fn every_order_of_steps_keeps_the_promises() {
    let (dies, asks) = (search(DIES), search(ASKS));
    say(format!(
        "state space: {dies} states where the policy decides, {asks} where a person does"
    ));
    assert!(dies > 10_000 && asks > 10_000, "{dies} and {asks} states");
}

#[test]
fn a_finish_that_does_not_compare_the_fence_is_caught() {
    let step = broken(Flaw::FinishTakesAnyFence, promises::LATE_FINISH);
    assert!(matches!(step, Step::Finish(..)), "{step:?}");
    broken(Flaw::FinishTakesAnyFence, promises::ONE_LIVE_FENCE);
}

#[test]
fn a_reaper_that_does_not_compare_the_lease_is_caught() {
    let step = broken(Flaw::ReapTakesAnyLease, promises::LATE_REAP);
    assert!(matches!(step, Step::Reap(_)), "{step:?}");
}

#[test]
fn a_claim_that_takes_a_held_job_is_caught() {
    let step = broken(Flaw::ClaimTakesHeld, promises::CLAIM_OF_WAITING);
    assert!(matches!(step, Step::Take(_)), "{step:?}");
}
