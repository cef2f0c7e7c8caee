//! Pace: how many jobs are worth claiming ahead of the handlers.
//!
//! A claim costs the database about the same for one job as for a few dozen, so
//! fast handlers want many at a time. Slow ones want few: a job that waits here
//! is one that no other node runs. As many as were started lately is right for
//! both, and follows them when they change.

use std::time::Duration;

use tokio::time::Instant;

use super::settings::PREFETCH_MAX;

/// Jobs are claimed ahead for about this long.
const AHEAD: Duration = Duration::from_millis(100);

/// The least part of the handlers that is claimed ahead, so that claims of one
/// job each don't follow every finish.
const SHARE_MIN: usize = 4;

/// What one poller has seen of the attempts that were started.
#[derive(Debug)]
pub(super) struct Pace {
    /// When the count began, and the attempts until then.
    since: Instant,
    attempts_before: u64,
    /// How many were started in the span before that.
    last_count: u64,
}

impl Pace {
    pub(super) fn new() -> Self {
        Self {
            since: Instant::now(),
            attempts_before: 0,
            last_count: 0,
        }
    }

    /// How many jobs to claim ahead, given all attempts that were ever started.
    pub(super) fn prefetch(&mut self, attempts: u64, concurrency: usize) -> usize {
        let count = attempts - self.attempts_before;
        let elapsed = self.since.elapsed();
        if elapsed >= AHEAD {
            // A longer span than wanted counts for its share.
            let spans = elapsed.as_nanos() / AHEAD.as_nanos();
            self.last_count = count / u64::try_from(spans).unwrap_or(u64::MAX);
            self.attempts_before = attempts;
            self.since = Instant::now();
        }
        let recent = self.last_count.max(count.min(PREFETCH_MAX as u64));
        let recent = usize::try_from(recent).unwrap_or(PREFETCH_MAX);
        let least = (concurrency / SHARE_MIN).clamp(1, PREFETCH_MAX);
        recent.clamp(least, PREFETCH_MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_worker_claims_ahead_what_it_starts_in_a_tenth_of_a_second() {
        let mut pace = Pace::new();
        let mut attempts = 0;
        let mut prefetch = 0;
        for _ in 0..100 {
            prefetch = pace.prefetch(attempts, 16);
            tokio::time::advance(Duration::from_millis(10)).await;
            attempts += 30;
        }
        assert!((270..=330).contains(&prefetch), "{prefetch}");
        // Slower from now on: two a second.
        for _ in 0..4 {
            tokio::time::advance(Duration::from_millis(500)).await;
            attempts += 1;
            prefetch = pace.prefetch(attempts, 16);
        }
        assert_eq!(prefetch, 4);
    }

    #[tokio::test(start_paused = true)]
    async fn no_job_is_too_many_and_none_too_few() {
        let mut pace = Pace::new();
        assert_eq!(pace.prefetch(0, 1), 1);
        assert_eq!(pace.prefetch(0, 64), 16);
        assert_eq!(pace.prefetch(1_000_000, 64), PREFETCH_MAX);
        assert_eq!(pace.prefetch(1_000_000, 100_000), PREFETCH_MAX);
    }

    #[tokio::test(start_paused = true)]
    async fn a_worker_that_starves_claims_twice_as_many_each_time() {
        let mut pace = Pace::new();
        let mut attempts = 0;
        for _ in 0..10 {
            // Whatever was claimed has run by the next claim.
            attempts += 1 + pace.prefetch(attempts, 1) as u64;
        }
        assert!(attempts > 1000, "{attempts}");
    }
}
