use std::{collections::BTreeSet, time::Duration};

use crate::{
    op::finish::Ending,
    retry::{Backoff, Decision, Failure, RetryPolicy, Verdict},
    time::{DbTime, SPAN_MAX},
};

mod any;

const fn secs(secs: u64) -> Duration {
    Duration::from_secs(secs)
}

const SCHEDULE: Backoff = Backoff::Schedule {
    delays: &[secs(300), secs(1_800), secs(7_200)],
};

/// No cap, no jitter, no end in sight.
const PLAIN: RetryPolicy = RetryPolicy {
    backoff: Backoff::Fixed { delay: secs(10) },
    cap: None,
    jitter: Duration::ZERO,
    max_attempts: u16::MAX,
    grace: None,
    manual_after: None,
};

const FIRST: Failure = Failure {
    attempt_no: 1,
    age: Duration::ZERO,
    verdict: Verdict::Retry,
    seed: 0,
};

fn assert_delays<const N: usize>(backoff: Backoff, want_secs: [u64; N]) {
    let delays: Vec<_> = (1..).take(N).map(|no| backoff.delay(no)).collect();
    assert_eq!(delays, want_secs.map(secs), "{backoff:?}");
}

#[test]
fn a_fixed_delay_stays_the_same() {
    assert_delays(Backoff::Fixed { delay: secs(30) }, [30, 30, 30]);
}

#[test]
fn a_linear_delay_grows_by_its_step() {
    assert_delays(Backoff::Linear { step: secs(30) }, [30, 60, 90, 120]);
}

#[test]
fn an_exponential_delay_starts_at_its_base() {
    let base = secs(10);
    assert_delays(Backoff::Exponential { base, factor: 2 }, [10, 20, 40, 80]);
    assert_delays(Backoff::Exponential { base, factor: 3 }, [10, 30, 90, 270]);
    assert_delays(Backoff::Exponential { base, factor: 1 }, [10, 10, 10]);
}

#[test]
fn the_last_delay_of_a_schedule_repeats() {
    assert_delays(SCHEDULE, [300, 1_800, 7_200, 7_200, 7_200]);
    assert_eq!(SCHEDULE.delay(u16::MAX), secs(7_200));
}

#[test]
fn a_graded_delay_is_exponential_from_the_second_failure() {
    let graded = Backoff::Graded {
        first: secs(1),
        base: secs(60),
        factor: 2,
    };
    assert_delays(graded, [1, 60, 120, 240]);
}

#[test]
fn a_small_base_grows_past_any_power_of_32_bits() {
    let base = Duration::from_millis(1);
    let backoff = Backoff::Exponential { base, factor: 2 };
    assert_eq!(backoff.delay(32), base * (1 << 31));
    assert_eq!(backoff.delay(33), base * (1 << 31) * 2);
    assert_eq!(backoff.delay(34), base * (1 << 31) * 4);
}

#[test]
fn a_cap_bounds_the_nominal_delay_and_jitter_comes_on_top() {
    let policy = RetryPolicy {
        backoff: Backoff::Linear { step: secs(30) },
        cap: Some(secs(60)),
        ..PLAIN
    };
    let delays = [1, 2, 3, u16::MAX].map(|attempt_no| policy.nominal(attempt_no));
    assert_eq!(delays, [30, 60, 60, 60].map(secs));

    let jitter = RetryPolicy {
        jitter: secs(30),
        ..policy
    };
    let seeds = 0..100;
    let past_cap = seeds.filter(|&seed| {
        let failure = Failure {
            attempt_no: 5,
            seed,
            ..FIRST
        };
        delay(jitter.decide(failure)) > secs(60)
    });
    assert!(past_cap.count() > 90);
}

#[test]
fn the_last_attempt_is_max_attempts() {
    let policy = RetryPolicy {
        max_attempts: 3,
        ..PLAIN
    };
    let decisions = [1, 2, 3, 4].map(|attempt_no| {
        policy.decide(Failure {
            attempt_no,
            ..FIRST
        })
    });
    let again = Decision::Retry(secs(10));
    assert_eq!(decisions, [again, again, Decision::Dead, Decision::Dead]);
}

#[test]
fn a_single_attempt_is_never_repeated() {
    let policy = RetryPolicy {
        max_attempts: 1,
        ..PLAIN
    };
    assert_eq!(policy.decide(FIRST), Decision::Dead);
}

#[test]
fn a_person_decides_after_manual_after_and_before_the_last_attempt() {
    let policy = RetryPolicy {
        max_attempts: 4,
        manual_after: Some(2),
        ..PLAIN
    };
    let decisions = [1, 2, 3, 4].map(|attempt_no| {
        policy.decide(Failure {
            attempt_no,
            ..FIRST
        })
    });
    let (again, manual) = (Decision::Retry(secs(10)), Decision::Manual);
    assert_eq!(decisions, [again, manual, manual, Decision::Dead]);
}

#[test]
fn no_retry_starts_after_the_grace() {
    let policy = RetryPolicy {
        grace: Some(secs(100)),
        ..PLAIN
    };
    let at_age = |age| policy.decide(Failure { age, ..FIRST });
    assert_eq!(at_age(secs(90)), Decision::Retry(secs(10)));
    assert_eq!(
        at_age(secs(90) + Duration::from_micros(1)),
        Decision::Dead,
        "it would start a microsecond too late"
    );
    assert_eq!(at_age(Duration::MAX), Decision::Dead);
}

#[test]
fn the_grace_counts_jitter_and_the_delay_that_was_asked_for() {
    let policy = RetryPolicy {
        jitter: secs(60),
        grace: Some(secs(10)),
        ..PLAIN
    };
    let (mut dead, mut again) = (0, 0);
    for seed in 0..1_000 {
        let within = Failure { seed, ..FIRST };
        match policy.decide(within) {
            Decision::Dead => dead += 1,
            decision => {
                assert!(delay(decision) <= secs(10));
                again += 1;
            }
        }
    }
    assert!(dead > 900, "{dead} dead, {again} again");

    let asked = Failure {
        verdict: Verdict::RetryAfter(secs(11)),
        ..FIRST
    };
    assert_eq!(policy.decide(asked), Decision::Dead);
}

#[test]
fn the_grace_of_a_job_scheduled_far_ahead_counts_from_its_due_time() {
    let policy = RetryPolicy {
        grace: Some(secs(3_600)),
        ..PLAIN
    };
    let enqueued = DbTime::from_us(0);
    let due = enqueued.plus(secs(30 * 24 * 3_600));
    let now = due.plus(secs(600));
    let at_age = |age| policy.decide(Failure { age, ..FIRST });
    assert_eq!(at_age(now.since(due)), Decision::Retry(secs(10)));
    assert_eq!(at_age(now.since(enqueued)), Decision::Dead);
}

#[test]
fn permanent_and_hold_come_before_every_rule_of_the_policy() {
    let strict = RetryPolicy {
        max_attempts: 1,
        manual_after: Some(1),
        grace: Some(Duration::ZERO),
        ..PLAIN
    };
    for policy in [PLAIN, strict] {
        for (verdict, decision) in [
            (Verdict::Permanent, Decision::Dead),
            (Verdict::Hold, Decision::Hold),
        ] {
            let failure = Failure { verdict, ..FIRST };
            assert_eq!(policy.decide(failure), decision);
        }
    }
}

#[test]
fn retry_after_replaces_the_nominal_delay_cap_included() {
    let policy = RetryPolicy {
        cap: Some(secs(20)),
        ..PLAIN
    };
    let asked = |delay| Failure {
        verdict: Verdict::RetryAfter(delay),
        ..FIRST
    };
    for wait in [Duration::ZERO, secs(3), secs(500)] {
        assert_eq!(policy.decide(asked(wait)), Decision::Retry(wait));
    }
    let forever = policy.decide(asked(Duration::MAX));
    assert_eq!(forever, Decision::Retry(SPAN_MAX));
}

#[test]
fn retry_after_grants_no_further_attempt() {
    let verdict = Verdict::RetryAfter(secs(3));
    let at = |attempt_no| Failure {
        attempt_no,
        verdict,
        ..FIRST
    };
    let policy = RetryPolicy {
        max_attempts: 2,
        manual_after: Some(1),
        ..PLAIN
    };
    assert_eq!(policy.decide(at(1)), Decision::Manual);
    assert_eq!(policy.decide(at(2)), Decision::Dead);
}

#[test]
fn jitter_spreads_neighbouring_ids_evenly_over_its_window() {
    let spread = |seed| Failure { seed, ..FIRST };
    assert_even((1..=1_000).map(spread));
}

#[test]
fn jitter_spreads_the_attempts_of_one_job_evenly_over_its_window() {
    let spread = |attempt_no| Failure {
        attempt_no,
        seed: 7,
        ..FIRST
    };
    assert_even((1..=1_000).map(spread));
}

/// A thousand delays of which each tenth of the window gets half to one and a
/// half times its share.
fn assert_even(failures: impl Iterator<Item = Failure>) {
    let policy = RetryPolicy {
        backoff: Backoff::Fixed {
            delay: Duration::ZERO,
        },
        jitter: Duration::from_millis(9_999),
        ..PLAIN
    };
    let mut tenths = [0; 10];
    let mut delays = BTreeSet::new();
    for failure in failures {
        let delay = delay(policy.decide(failure));
        tenths[usize::try_from(delay.as_secs()).unwrap()] += 1;
        delays.insert(delay);
    }
    assert!(
        tenths.iter().all(|count| (50..150).contains(count)),
        "{tenths:?}"
    );
    assert!(delays.len() > 990, "{} of 1000 differ", delays.len());
}

#[test]
fn the_same_failure_gets_the_same_jitter() {
    let policy = RetryPolicy {
        jitter: secs(3_600),
        ..PLAIN
    };
    let failure = Failure { seed: 41, ..FIRST };
    assert_eq!(policy.decide(failure), policy.decide(failure));
}

#[test]
fn the_default_is_ten_attempts_doubling_to_an_hour() {
    let delays: Vec<_> = (1..10).map(|no| RetryPolicy::DEFAULT.nominal(no)).collect();
    let want = [10, 20, 40, 80, 160, 320, 640, 1_280, 2_560].map(secs);
    assert_eq!(delays, want);
    assert_eq!(RetryPolicy::DEFAULT.nominal(10), secs(3_600));
    let tenth = Failure {
        attempt_no: 10,
        ..FIRST
    };
    assert_eq!(RetryPolicy::DEFAULT.decide(tenth), Decision::Dead);
}

#[test]
fn a_lapsed_lease_counts_as_a_failed_attempt() {
    let policy = RetryPolicy {
        max_attempts: 2,
        ..PLAIN
    };
    let decisions = [1, 2].map(|attempt_no| {
        let finish = super::finish::lapsed(attempt_no, secs(5)).finish(&policy);
        match finish.ending {
            Ending::Failed { decision, .. } => decision,
            ending => panic!("{ending:?}"),
        }
    });
    assert_eq!(decisions, [Decision::Retry(secs(10)), Decision::Dead]);
}

fn delay(decision: Decision) -> Duration {
    match decision {
        Decision::Retry(delay) => delay,
        other => panic!("{other:?} has no delay"),
    }
}
