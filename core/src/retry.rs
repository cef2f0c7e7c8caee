//! When a failed job is tried again: pure arithmetic on spans.

use std::time::Duration;

use crate::time::SPAN_MAX;

/// When to try again after a failure, and when to stop.
///
/// # Units
///
/// All spans are whole microseconds; results never exceed [`SPAN_MAX`], at any
/// input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RetryPolicy {
    /// The nominal delay after each failed attempt.
    pub backoff: Backoff,
    /// The longest nominal delay, before jitter.
    pub cap: Option<Duration>,
    /// Up to this much is added to every delay, so that jobs which failed
    /// together do not return together. Never shortens a delay.
    pub jitter: Duration,
    /// Attempts in all, the first included. At least 1.
    pub max_attempts: u16,
    /// No retry starts later than this after the job first fell due.
    pub grace: Option<Duration>,
    /// After this many failed attempts the job rests in FAILED until a person
    /// decides. Below `max_attempts`.
    pub manual_after: Option<u16>,
}

/// The nominal delay before the next attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Backoff {
    /// The same delay every time.
    Fixed {
        /// The delay.
        delay: Duration,
    },
    /// `step` after the first failure, twice that after the second, and so on.
    Linear {
        /// What every failure adds.
        step: Duration,
    },
    /// `base` after the first failure, `factor` times as long after each more.
    Exponential {
        /// The first delay.
        base: Duration,
        /// What every failure multiplies with.
        factor: u32,
    },
    /// One delay per failure, in order; the last one repeats.
    Schedule {
        /// The delays.
        delays: &'static [Duration],
    },
    /// `first` after the first failure, for faults that pass at once; then
    /// exponential from `base`.
    Graded {
        /// The delay after the first failure.
        first: Duration,
        /// The delay after the second.
        base: Duration,
        /// What every further failure multiplies with.
        factor: u32,
    },
}

/// What the error of an attempt says about the next one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Verdict {
    /// The policy decides.
    #[default]
    Retry,
    /// Try again after this time, if the policy still grants an attempt.
    RetryAfter(Duration),
    /// No attempt can succeed.
    Permanent,
    /// Set aside until someone acts.
    Hold,
}

/// What follows a failed attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// RETRY, due after this delay.
    Retry(Duration),
    /// DEAD.
    Dead,
    /// Rests in FAILED until a person decides.
    Manual,
    /// HOLD.
    Hold,
}

/// A failed attempt, as the policy sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Failure {
    /// Which attempt failed: 1 is the first.
    pub attempt_no: u16,
    /// Time since the job first fell due, by the database's clock.
    pub age: Duration,
    /// What the error says.
    pub verdict: Verdict,
    /// A stable number that places this job inside the jitter.
    pub seed: u64,
}

impl RetryPolicy {
    /// Ten attempts, 10 seconds after the first failure and twice as long
    /// after each more, at most an hour.
    pub const DEFAULT: Self = Self {
        backoff: Backoff::Exponential {
            base: Duration::from_secs(10),
            factor: 2,
        },
        cap: Some(Duration::from_secs(3600)),
        jitter: Duration::ZERO,
        max_attempts: 10,
        grace: None,
        manual_after: None,
    };

    /// What follows this failure.
    ///
    /// # Shape
    ///
    /// The verdict comes first, then `max_attempts`, then `manual_after`, then
    /// the delay, then `grace`.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    /// use retryjob_core::retry::{Decision, Failure, RetryPolicy, Verdict};
    ///
    /// let failure = Failure {
    ///     attempt_no: 2,
    ///     age: Duration::from_secs(40),
    ///     verdict: Verdict::Retry,
    ///     seed: 0,
    /// };
    /// assert_eq!(
    ///     RetryPolicy::DEFAULT.decide(failure),
    ///     Decision::Retry(Duration::from_secs(20)),
    /// );
    /// ```
    #[must_use]
    pub fn decide(&self, failure: Failure) -> Decision {
        let asked = match failure.verdict {
            Verdict::Permanent => return Decision::Dead,
            Verdict::Hold => return Decision::Hold,
            Verdict::Retry => None,
            Verdict::RetryAfter(delay) => Some(delay),
        };
        if failure.attempt_no >= self.max_attempts {
            return Decision::Dead;
        }
        if self
            .manual_after
            .is_some_and(|after| failure.attempt_no >= after)
        {
            return Decision::Manual;
        }
        let nominal = asked.unwrap_or_else(|| self.nominal(failure.attempt_no));
        let delay = self.jittered(nominal, failure);
        if self
            .grace
            .is_some_and(|grace| failure.age.saturating_add(delay) > grace)
        {
            return Decision::Dead;
        }
        Decision::Retry(delay)
    }

    /// The delay after this failed attempt, capped, without jitter.
    #[must_use]
    pub fn nominal(&self, attempt_no: u16) -> Duration {
        self.backoff
            .delay(attempt_no)
            .min(self.cap.unwrap_or(SPAN_MAX))
    }

    fn jittered(&self, nominal: Duration, failure: Failure) -> Duration {
        let jitter_us = u64::try_from(self.jitter.as_micros()).unwrap_or(u64::MAX);
        let seed = mix(failure.seed ^ u64::from(failure.attempt_no));
        let extra_us = seed % jitter_us.saturating_add(1);
        nominal
            .saturating_add(Duration::from_micros(extra_us))
            .min(SPAN_MAX)
    }
}

impl Backoff {
    /// The nominal delay after the failed attempt `attempt_no` (1 is the
    /// first), at most [`SPAN_MAX`].
    #[must_use]
    pub fn delay(self, attempt_no: u16) -> Duration {
        let failures = u32::from(attempt_no.max(1));
        let delay = match self {
            Self::Fixed { delay } => delay,
            Self::Linear { step } => step.saturating_mul(failures),
            Self::Exponential { base, factor } => exponential(base, factor, failures - 1),
            Self::Schedule { delays } => {
                let at = (failures as usize).min(delays.len());
                delays.get(at.wrapping_sub(1)).copied().unwrap_or_default()
            }
            Self::Graded { first, .. } if failures == 1 => first,
            Self::Graded { base, factor, .. } => exponential(base, factor, failures - 2),
        };
        delay.min(SPAN_MAX)
    }
}

fn exponential(base: Duration, factor: u32, power: u32) -> Duration {
    // A base of a millisecond is still within bounds when the power alone is
    // past u64, so both are multiplied in more bits than a span has.
    let times = u128::from(factor).saturating_pow(power);
    let delay_ns = base.as_nanos().saturating_mul(times);
    u64::try_from(delay_ns).map_or(SPAN_MAX, Duration::from_nanos)
}

/// The finaliser of SplitMix64: neighbouring seeds land far apart.
///
/// # Source
///
/// Steele, Lea, Flood: "Fast Splittable Pseudorandom Number Generators", 2014.
const fn mix(seed: u64) -> u64 {
    let z = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the generator gives out from seed 0: its state grows by the same
    /// step each time.
    #[test]
    fn seeds_are_mixed_as_splitmix64_does() {
        const STEP: u64 = 0x9e37_79b9_7f4a_7c15;
        let drawn = [0, 1, 2].map(|nth: u64| mix(nth.wrapping_mul(STEP)));
        assert_eq!(
            drawn,
            [
                0xe220_a839_7b1d_cdaf,
                0x6e78_9e6a_a1b9_65f4,
                0x06c4_5d18_8009_454f
            ]
        );
    }
}
