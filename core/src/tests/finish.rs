use std::time::Duration;

use proptest::prelude::*;

use crate::{
    op::{
        claim::{Lease, LeaseOwner},
        finish::{Ending, Finish, LAST_ERROR_BYTES_MAX, Settled, shortened},
        reap::{LAPSED, Lapsed},
    },
    retry::{Decision, RetryPolicy},
    state::Status,
};

const DELAY: Duration = Duration::from_secs(5);

pub(super) fn lapsed(attempt_no: u16, age: Duration) -> Lapsed {
    Lapsed {
        lease: Lease {
            id: 7,
            owner: LeaseOwner::from_row("billing-7-1f0e9a2c:41"),
            lease_seq: 3,
            shard: None,
        },
        attempt_no,
        age,
    }
}

fn settled(attempt_no: u16, ending: Ending) -> Settled {
    let lease = lapsed(attempt_no, DELAY).lease;
    let finish = Finish {
        lease,
        attempt_no,
        ending,
    };
    finish.settled()
}

#[test]
fn a_success_keeps_its_attempt_and_leaves_the_last_error() {
    let want = Settled {
        status: Status::Success,
        attempt_no: 2,
        delay: Duration::ZERO,
        error: None,
    };
    assert_eq!(settled(2, Ending::Success), want);
}

#[test]
fn a_failure_goes_where_the_policy_leads_and_keeps_its_error() {
    for (decision, status, delay) in [
        (Decision::Retry(DELAY), Status::Retry, DELAY),
        (Decision::Dead, Status::Dead, Duration::ZERO),
        (Decision::Manual, Status::Failed, Duration::ZERO),
        (Decision::Hold, Status::Hold, Duration::ZERO),
    ] {
        let error = "card declined".to_owned();
        let want = Settled {
            status,
            attempt_no: 2,
            delay,
            error: Some(error.clone()),
        };
        assert_eq!(settled(2, Ending::Failed { decision, error }), want);
    }
}

#[test]
fn a_job_given_back_returns_to_where_it_came_from_with_its_attempt() {
    for (attempt_no, status, left) in [
        (1, Status::Pending, 0),
        (2, Status::Retry, 1),
        (10, Status::Retry, 9),
    ] {
        let want = Settled {
            status,
            attempt_no: left,
            delay: DELAY,
            error: None,
        };
        assert_eq!(settled(attempt_no, Ending::GiveBack { delay: DELAY }), want);
    }
}

#[test]
fn a_lapsed_attempt_fails_under_the_lease_it_had() {
    let late = lapsed(2, DELAY);
    let lease = late.lease.clone();
    let finish = late.finish(&RetryPolicy::DEFAULT);
    let want = Finish {
        lease,
        attempt_no: 2,
        ending: Ending::Failed {
            decision: Decision::Retry(Duration::from_secs(20)),
            error: LAPSED.into(),
        },
    };
    assert_eq!(finish, want);
}

#[test]
fn a_lapsed_attempt_past_the_grace_is_dead() {
    let policy = RetryPolicy {
        grace: Some(Duration::from_secs(60)),
        ..RetryPolicy::DEFAULT
    };
    let status = |age| lapsed(1, age).finish(&policy).settled().status;
    assert_eq!(status(Duration::from_secs(50)), Status::Retry);
    assert_eq!(status(Duration::from_secs(51)), Status::Dead);
}

#[test]
fn a_long_error_is_cut_when_it_is_settled() {
    let error = "x".repeat(LAST_ERROR_BYTES_MAX + 1);
    let decision = Decision::Dead;
    let kept = settled(1, Ending::Failed { decision, error }).error;
    assert_eq!(kept, Some("x".repeat(LAST_ERROR_BYTES_MAX)));
}

#[test]
fn an_error_is_cut_between_characters() {
    // The 2000th byte is the second of the last character.
    let error = format!("x{}", "é".repeat(1_000));
    assert_eq!(error.len(), 2_001);
    assert_eq!(shortened(&error), format!("x{}", "é".repeat(999)));

    let rockets = "🚀".repeat(501);
    assert_eq!(shortened(&rockets), "🚀".repeat(500));
    assert_eq!(shortened(""), "");
}

proptest! {
    #[test]
    fn a_shortened_error_is_the_longest_start_that_fits(error in "\\PC{600,1200}") {
        let kept = shortened(&error);
        prop_assert!(error.starts_with(&kept));
        prop_assert!(kept.len() <= LAST_ERROR_BYTES_MAX);
        if let Some(next) = error[kept.len()..].chars().next() {
            prop_assert!(kept.len() + next.len_utf8() > LAST_ERROR_BYTES_MAX);
        }
    }
}
