//! What holds for any policy and any failure.

use std::time::Duration;

use proptest::prelude::*;

use super::{FIRST, PLAIN, SCHEDULE, delay};
use crate::{
    retry::{Backoff, Decision, Failure, RetryPolicy, Verdict},
    time::SPAN_MAX,
};

/// Any delay, the longest and the shortest more often than chance has them.
fn any_delay() -> impl Strategy<Value = Duration> {
    prop_oneof![
        any::<Duration>(),
        (0..10_000_000_000u64).prop_map(Duration::from_nanos),
        Just(Duration::ZERO),
        Just(Duration::MAX),
    ]
}

fn any_factor() -> impl Strategy<Value = u32> {
    prop_oneof![any::<u32>(), 0..5u32, Just(u32::MAX)]
}

fn any_attempt() -> impl Strategy<Value = u16> {
    prop_oneof![any::<u16>(), 0..80u16, Just(u16::MAX)]
}

fn any_backoff() -> impl Strategy<Value = Backoff> {
    prop_oneof![
        any_delay().prop_map(|delay| Backoff::Fixed { delay }),
        any_delay().prop_map(|step| Backoff::Linear { step }),
        (any_delay(), any_factor())
            .prop_map(|(base, factor)| Backoff::Exponential { base, factor }),
        (any_delay(), any_delay(), any_factor()).prop_map(|(first, base, factor)| {
            Backoff::Graded {
                first,
                base,
                factor,
            }
        }),
        Just(SCHEDULE),
        Just(Backoff::Schedule { delays: &[] }),
        Just(Backoff::Schedule {
            delays: &[Duration::MAX],
        }),
    ]
}

proptest! {
    #[test]
    fn no_input_panics_or_exceeds_the_longest_span(
        backoff in any_backoff(),
        cap in prop::option::of(any_delay()),
        jitter in any_delay(),
        asked in prop::option::of(any_delay()),
        attempt_no in any_attempt(),
        age in any_delay(),
        seed in any::<u64>(),
    ) {
        let policy = RetryPolicy { backoff, cap, jitter, ..PLAIN };
        prop_assert!(backoff.delay(attempt_no) <= SPAN_MAX);
        prop_assert!(policy.nominal(attempt_no) <= SPAN_MAX);
        prop_assert!(cap.is_none_or(|cap| policy.nominal(attempt_no) <= cap));
        let verdict = asked.map_or(Verdict::Retry, Verdict::RetryAfter);
        let decision = policy.decide(Failure { attempt_no, age, verdict, seed });
        match decision {
            Decision::Retry(delay) => prop_assert!(delay <= SPAN_MAX),
            Decision::Dead => prop_assert_eq!(attempt_no, u16::MAX),
            Decision::Manual | Decision::Hold => prop_assert!(false, "{:?}", decision),
        }
    }

    #[test]
    fn jitter_never_shortens_and_adds_no_more_than_itself(
        nominal_us in 0..1_000_000_000u64,
        jitter_us in 0..1_000_000_000u64,
        attempt_no in 1..u16::MAX,
        seed in any::<u64>(),
    ) {
        let nominal = Duration::from_micros(nominal_us);
        let jitter = Duration::from_micros(jitter_us);
        let backoff = Backoff::Fixed { delay: nominal };
        let policy = RetryPolicy { backoff, jitter, ..PLAIN };
        let delay = delay(policy.decide(Failure { attempt_no, seed, ..FIRST }));
        prop_assert!((nominal..=nominal + jitter).contains(&delay), "{:?}", delay);
    }

    #[test]
    fn growing_delays_never_shrink(
        unit in any_delay(),
        factor in 1..=u32::MAX,
        small_factor in 1..4u32,
        attempt_no in 1..u16::MAX,
        early in 1..70u16,
    ) {
        for backoff in [
            Backoff::Linear { step: unit },
            Backoff::Exponential { base: unit, factor },
            Backoff::Exponential { base: unit, factor: small_factor },
        ] {
            for no in [attempt_no, early] {
                prop_assert!(backoff.delay(no) <= backoff.delay(no + 1));
            }
        }
    }

    #[test]
    fn an_exponential_delay_is_the_one_before_times_its_factor(
        base in any_delay(),
        factor in any_factor(),
        attempt_no in 1..80u16,
    ) {
        let mut want_ns = base.as_nanos().min(SPAN_MAX.as_nanos());
        for _ in 1..attempt_no {
            want_ns = (want_ns * u128::from(factor)).min(SPAN_MAX.as_nanos());
        }
        let delay = Backoff::Exponential { base, factor }.delay(attempt_no);
        prop_assert_eq!(delay.as_nanos(), want_ns);
    }
}
