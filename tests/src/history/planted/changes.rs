//! Faults in what the database did.

use std::time::Duration;

use retryjob_core::Status;

use super::{
    Promise, breaks,
    story::{LEASE, Story, key_of, operated},
};

/// A claimed job that has not ended yet.
fn running(story: &mut Story) -> u64 {
    let id = story.enqueue("e");
    let lease = story.claim(id);
    story.run(lease);
    id
}

#[test]
fn a_row_that_is_gone_was_lost() {
    breaks(Promise::NothingLost, |story| {
        story.history.rows.retain(|row| row.id != 1);
    });
}

#[test]
fn two_rows_of_one_key_are_one_too_many() {
    breaks(Promise::NothingLost, |story| {
        let id = story.enqueue("e");
        story.success(id);
        // Both are acknowledged for the same key.
        let key = key_of("a").to_string();
        story
            .history
            .records
            .retain(|record| !format!("{record:?}").contains(&key_of("e").to_string()));
        story.row_mut(id).idempotency_key = key_of("a");
        assert_eq!(story.row(1).idempotency_key.to_string(), key);
    });
}

#[test]
fn an_end_is_left_by_no_claim() {
    breaks(Promise::LegalMoves, |story| {
        story.success(1);
    });
}

#[test]
fn an_end_is_left_by_no_requeue_that_nobody_asked_for() {
    breaks(Promise::LegalMoves, |story| {
        let id = story.enqueue("e");
        story.operate("Cancel", id, Status::Dead);
        story.update(id, |state, _| operated(state, Status::Pending));
        story.operate("Cancel", id, Status::Dead);
    });
}

#[test]
fn a_held_job_is_not_claimed() {
    breaks(Promise::LegalMoves, |story| {
        let id = story.enqueue("e");
        story.operate("Hold", id, Status::Hold);
        story.success(id);
    });
}

#[test]
fn a_job_does_not_begin_as_held() {
    breaks(Promise::LegalMoves, |story| {
        let id = story.enqueue("e");
        story.row_mut(id).status = Status::Hold;
        let last = story.history.moves.last_mut().unwrap();
        last.after.as_mut().unwrap().status = Status::Hold;
    });
}

#[test]
fn a_change_begins_where_the_last_one_ended() {
    breaks(Promise::LegalMoves, |story| {
        let first = |moved: &super::super::Moved| moved.id == 3 && moved.before.is_none();
        story.history.moves.retain(|moved| !first(moved));
    });
}

#[test]
fn a_row_is_where_its_last_change_left_it() {
    breaks(Promise::LegalMoves, |story| {
        story.row_mut(1).lease_seq += 1;
    });
}

#[test]
fn a_kept_job_is_not_deleted() {
    breaks(Promise::LegalMoves, |story| story.change(1, None));
}

#[test]
fn a_change_of_nothing_is_none() {
    breaks(Promise::LegalMoves, |story| {
        let mut nothing = story.history.moves[0].clone();
        (nothing.id, nothing.after) = (99, None);
        story.history.moves.push(nothing);
    });
}

#[test]
fn a_later_attempt_does_not_go_back_to_fresh() {
    breaks(Promise::LegalMoves, |story| {
        let id = running(story);
        story.end(id, Status::Retry);
        story.claim(id);
        story.end_with(id, |state| {
            state.status = Status::Pending;
            state.attempt_no -= 1;
        });
        story.success(id);
    });
}

#[test]
fn a_claim_raises_the_fence() {
    breaks(Promise::FenceGrows, |story| {
        let id = story.enqueue("e");
        story.update(id, |state, now| {
            state.status = Status::Running;
            state.attempt_no += 1;
            state.lease_owner = Some("other:1".into());
            state.lease_until = Some(now.plus(LEASE));
        });
        story.end(id, Status::Dead);
    });
}

#[test]
fn a_claim_raises_the_fence_by_one() {
    breaks(Promise::FenceGrows, |story| {
        let id = story.enqueue("e");
        story.update(id, |state, now| {
            state.status = Status::Running;
            state.attempt_no += 1;
            state.lease_seq += 2;
            state.lease_owner = Some("other:1".into());
            state.lease_until = Some(now.plus(LEASE));
        });
        story.end(id, Status::Dead);
    });
}

#[test]
fn the_fence_grows_by_claims_alone() {
    breaks(Promise::FenceGrows, |story| {
        let id = running(story);
        story.end_with(id, |state| {
            state.status = Status::Dead;
            state.lease_seq += 1;
        });
    });
}

#[test]
fn the_fence_is_not_reset_by_a_requeue() {
    breaks(Promise::FenceGrows, |story| {
        let id = running(story);
        story.end(id, Status::Dead);
        story.update(id, |state, _| {
            operated(state, Status::Pending);
            state.lease_seq = 0;
        });
        story.operate_told("Requeue", id);
        story.operate("Cancel", id, Status::Dead);
    });
}

#[test]
fn a_live_lease_is_not_taken_over() {
    let mut story = Story::sound();
    let id = running(&mut story);
    story.claim(id);
    story.end(id, Status::Dead);
    // It is an illegal move too.
    let expected = [Promise::LegalMoves, Promise::OneLiveLease];
    assert_eq!(super::broken(&story), expected);
}

#[test]
fn a_waiting_job_has_no_lease() {
    breaks(Promise::OneLiveLease, |story| {
        let id = running(story);
        story.update(id, |state, _| state.status = Status::Dead);
    });
}

#[test]
fn a_claim_gives_a_lease() {
    breaks(Promise::OneLiveLease, |story| {
        let id = story.enqueue("e");
        story.update(id, |state, now| {
            state.status = Status::Running;
            state.attempt_no += 1;
            state.lease_seq += 1;
            state.lease_owner = Some("other:1".into());
            state.lease_until = Some(now);
        });
        story.end(id, Status::Dead);
    });
}

#[test]
fn a_live_lease_is_not_reaped() {
    breaks(Promise::OneLiveLease, |story| {
        let id = running(story);
        story.reap(id, Status::Dead);
    });
}

#[test]
fn a_lapsed_lease_finishes_nothing() {
    breaks(Promise::OneLiveLease, |story| {
        let id = running(story);
        story.lapse();
        story.end(id, Status::Dead);
    });
}

#[test]
fn a_lapsed_lease_is_not_renewed() {
    breaks(Promise::OneLiveLease, |story| {
        let id = running(story);
        story.lapse();
        story.renew(id);
        story.end(id, Status::Dead);
    });
}

#[test]
fn a_renewal_does_not_shorten_a_lease() {
    breaks(Promise::OneLiveLease, |story| {
        let id = running(story);
        story.update(id, |state, now| state.lease_until = Some(now));
        story.lapse();
        story.reap(id, Status::Dead);
    });
}

#[test]
fn a_renewal_costs_no_attempt() {
    breaks(Promise::AttemptsBounded, |story| {
        let id = running(story);
        story.update(id, |state, _| state.attempt_no += 1);
        story.end(id, Status::Dead);
    });
}

#[test]
fn a_claim_costs_an_attempt() {
    breaks(Promise::AttemptsBounded, |story| {
        let id = story.enqueue("e");
        story.update(id, |state, now| {
            state.status = Status::Running;
            state.lease_seq += 1;
            state.lease_owner = Some("other:1".into());
            state.lease_until = Some(now.plus(LEASE));
        });
        story.end(id, Status::Dead);
    });
}

#[test]
fn no_attempt_begins_beyond_the_maximum() {
    breaks(Promise::AttemptsBounded, |story| {
        let id = running(story);
        for _ in 1..4 {
            story.end(id, Status::Retry);
            story.claim(id);
        }
        story.end(id, Status::Dead);
    });
}

#[test]
fn no_retry_waits_beyond_the_maximum() {
    breaks(Promise::AttemptsBounded, |story| {
        let id = running(story);
        for _ in 1..3 {
            story.end(id, Status::Retry);
            story.claim(id);
        }
        story.end(id, Status::Retry);
        story.operate("Cancel", id, Status::Dead);
    });
}

#[test]
fn a_release_gives_all_attempts_back_and_a_hold_none() {
    for (action, to, from) in [
        ("Release", Status::Pending, Status::Hold),
        ("Hold", Status::Hold, Status::Retry),
    ] {
        breaks(Promise::AttemptsBounded, |story| {
            let id = running(story);
            story.end(id, from);
            story.update(id, |state, _| {
                state.status = to;
                state.attempt_no = 2;
            });
            story.operate_told(action, id);
            story.operate("Cancel", id, Status::Dead);
        });
    }
}

#[test]
fn no_run_is_before_its_time() {
    breaks(Promise::NeverEarly, |story| {
        let id = running(story);
        let in_an_hour = story.now.plus(Duration::from_secs(3600));
        story.end_with(id, |state| {
            state.status = Status::Retry;
            state.next_attempt_at = in_an_hour;
        });
        story.success(id);
    });
}

#[test]
fn nothing_is_left_to_do() {
    for status in [Status::Pending, Status::Running, Status::Retry] {
        breaks(Promise::Drained, |story| {
            let id = story.enqueue("e");
            if status == Status::Pending {
                return;
            }
            story.claim(id);
            if status == Status::Retry {
                story.end(id, status);
            }
        });
    }
}

#[test]
fn what_rests_may_be_left() {
    let mut story = Story::sound();
    for (key, status) in [("e", Status::Hold), ("f", Status::Failed)] {
        let id = story.enqueue(key);
        story.claim(id);
        story.end(id, status);
    }
    assert_eq!(super::broken(&story), []);
    let id = story.enqueue("g");
    assert_eq!(super::broken(&story), [Promise::Drained]);
    story.rules.is_drained = false;
    assert_eq!(super::broken(&story), [], "job {id} may be open");
}
