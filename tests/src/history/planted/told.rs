//! Faults in what callers and handlers were told, or did.

use retryjob_core::Status;

use super::{
    Promise, breaks,
    story::{Story, attempt, key_of},
};
use crate::history::{
    Answer, Call, Event,
    record::{Attempt, LeaseOf},
};

const NOBODYS: LeaseOf = LeaseOf {
    id: 1,
    lease_seq: 9,
};

const NOBODYS_RUN: Attempt = Attempt {
    id: 1,
    lease_seq: 9,
    attempt_no: 1,
};

fn of(story: &Story, id: u64) -> Attempt {
    attempt(&story.state(id), id)
}

fn enqueued(story: &mut Story, key: &str, id: u64) {
    let call = Call::Enqueue {
        keys: vec![key_of(key).to_string()],
    };
    story.call(call, Answer::Enqueued(vec![(id, false)]));
}

#[test]
fn an_acknowledged_job_without_a_row_is_lost() {
    breaks(Promise::NothingLost, |story| enqueued(story, "z", 99));
}

#[test]
fn a_job_is_acknowledged_for_its_own_key() {
    breaks(Promise::NothingLost, |story| enqueued(story, "z", 1));
}

#[test]
fn an_acknowledged_finish_is_in_the_row() {
    breaks(Promise::FinishesTold, |story| {
        story.finish_told(NOBODYS, Status::Success, false);
    });
}

#[test]
fn an_acknowledged_finish_led_where_it_was_to() {
    breaks(Promise::FinishesTold, |story| {
        let id = story.enqueue("e");
        let lease = story.claim(id);
        story.end(id, Status::Retry);
        story.finish_told(lease, Status::Success, false);
        story.success(id);
    });
}

#[test]
fn a_refused_finish_changed_nothing() {
    breaks(Promise::FinishesTold, |story| {
        let id = story.enqueue("e");
        let lease = story.claim(id);
        story.succeed(id);
        story.effect(lease);
        story.finish_told(lease, Status::Success, true);
    });
}

#[test]
fn a_transaction_that_was_committed_finished_its_job() {
    breaks(Promise::FinishesTold, |story| {
        story.note(Event::Committed(NOBODYS_RUN));
    });
}

#[test]
fn a_transaction_that_was_committed_was_a_success() {
    breaks(Promise::FinishesTold, |story| {
        let id = story.enqueue("e");
        story.claim(id);
        story.end(id, Status::Dead);
        story.note(Event::Committed(of(story, id)));
    });
}

#[test]
fn a_handler_that_lost_its_lease_finished_nothing() {
    breaks(Promise::FinishesTold, |story| {
        story.note(Event::Lost(of(story, 1)));
    });
}

#[test]
fn nobody_is_told_of_a_lease_that_was_not_granted() {
    breaks(Promise::OneLiveLease, |story| {
        let owner = "node:9".into();
        story.call(
            Call::Claim {
                owner,
                shards: Vec::new(),
            },
            Answer::Claimed(vec![NOBODYS]),
        );
    });
}

#[test]
fn nobody_is_told_of_anothers_lease() {
    breaks(Promise::OneLiveLease, |story| {
        let id = story.enqueue("e");
        let lease = story.claim(id);
        story.end(id, Status::Dead);
        let owner = "somebody:1".into();
        // Not a second answer of the same lease, but the only one.
        story.history.records.retain(|record| {
            !matches!(&record.event, Event::Ok(Answer::Claimed(leases)) if leases == &[lease])
        });
        story.call(
            Call::Claim {
                owner,
                shards: Vec::new(),
            },
            Answer::Claimed(vec![lease]),
        );
    });
}

#[test]
fn a_lease_is_given_to_one_alone() {
    breaks(Promise::OneLiveLease, |story| {
        let id = story.enqueue("e");
        let lease = story.claim(id);
        let owner = story.state(id).lease_owner.unwrap();
        story.end(id, Status::Dead);
        story.call(
            Call::Claim {
                owner,
                shards: Vec::new(),
            },
            Answer::Claimed(vec![lease]),
        );
    });
}

#[test]
fn no_handler_runs_without_a_claim() {
    breaks(Promise::RunsClaimed, |story| {
        story.note(Event::Started(NOBODYS_RUN));
    });
}

#[test]
fn no_handler_runs_as_another_attempt_than_its_claim() {
    breaks(Promise::RunsClaimed, |story| {
        let mut run = of(story, 1);
        run.attempt_no += 1;
        story.note(Event::Started(run));
    });
}

#[test]
fn no_handler_runs_twice_under_one_lease() {
    breaks(Promise::RunsClaimed, |story| {
        story.note(Event::Started(of(story, 1)));
    });
}

#[test]
fn an_effect_is_there_once() {
    breaks(Promise::EffectsOnce, |story| {
        let effect = story.history.effects[0];
        story.history.effects.push(effect);
    });
}

#[test]
fn an_effect_needs_its_success() {
    breaks(Promise::EffectsOnce, |story| story.effect(NOBODYS));
    breaks(Promise::EffectsOnce, |story| {
        story.rules.has_effects = false;
        story.effect(NOBODYS);
    });
}

#[test]
fn a_success_needs_its_effect() {
    breaks(Promise::EffectsOnce, |story| {
        story.history.effects.pop();
    });
}

#[test]
fn an_operator_is_told_what_happened() {
    for action in ["Hold", "Release", "Cancel", "Requeue"] {
        // Each happened once to the second job, and never to the third.
        for id in [2, 3] {
            breaks(Promise::OperatorsTold, |story| {
                story.operate_told(action, id);
            });
        }
    }
}
