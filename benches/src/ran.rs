//! Which jobs ran, how often, and when: the handler of every contestant.

use std::{
    sync::atomic::{AtomicI64, AtomicU8, AtomicUsize, Ordering},
    time::Duration,
};

use anyhow::{Result, bail};
use tokio_util::sync::CancellationToken;

/// Runs of each job by its number.
#[derive(Debug)]
pub struct Ran {
    first: u64,
    times: Vec<AtomicU8>,
    started_us: Vec<AtomicI64>,
    distinct: AtomicUsize,
    all: CancellationToken,
}

impl Ran {
    /// Of jobs numbered from `first` on.
    pub fn new(first: usize, jobs: usize) -> Self {
        Self {
            first: first as u64,
            times: (0..jobs).map(|_| AtomicU8::new(0)).collect(),
            started_us: Vec::new(),
            distinct: AtomicUsize::new(0),
            all: CancellationToken::new(),
        }
    }

    /// The same, noting when each job was started.
    pub fn timed(jobs: usize) -> Self {
        let started_us = (0..jobs).map(|_| AtomicI64::new(0)).collect();
        Self {
            started_us,
            ..Self::new(0, jobs)
        }
    }

    /// The work of a job: none, but it is counted.
    pub fn run(&self, number: u64) {
        // A number that no job has comes from a backlog row that was not due.
        let index = number.wrapping_sub(self.first);
        let index = usize::try_from(index).unwrap_or(usize::MAX);
        let Some(times) = self.times.get(index) else {
            return;
        };
        if let Some(started) = self.started_us.get(index) {
            started.store(now_us(), Ordering::Relaxed);
        }
        let before = times.fetch_add(1, Ordering::Relaxed);
        if before == 0 && self.distinct.fetch_add(1, Ordering::AcqRel) + 1 == self.times.len() {
            self.all.cancel();
        }
    }

    /// Waits until every job ran, or until nothing was started for this long.
    pub async fn all(&self, patience: Duration) -> Result<()> {
        let mut seen = 0;
        loop {
            if tokio::time::timeout(patience, self.all.cancelled())
                .await
                .is_ok()
            {
                return Ok(());
            }
            let distinct = self.distinct.load(Ordering::Acquire);
            if distinct == seen {
                bail!(
                    "{distinct} of {} jobs ran, then none for {patience:?}",
                    self.times.len()
                );
            }
            seen = distinct;
        }
    }

    pub fn times(&self) -> Vec<u8> {
        self.times
            .iter()
            .map(|times| times.load(Ordering::Acquire))
            .collect()
    }

    pub fn started_us(&self) -> Vec<i64> {
        self.started_us
            .iter()
            .map(|us| us.load(Ordering::Acquire))
            .collect()
    }
}

/// An error unless each job ran exactly once.
pub fn exactly_once(times: &[u8]) -> Result<()> {
    let missed = times.iter().filter(|times| **times == 0).count();
    let repeated = times.iter().filter(|times| **times > 1).count();
    if missed + repeated > 0 {
        bail!(
            "of {} jobs {missed} did not run and {repeated} ran again",
            times.len()
        );
    }
    Ok(())
}

/// This machine's clock, which is the server's too.
#[allow(
    clippy::disallowed_methods,
    reason = "a stopwatch beside a server on the same machine"
)]
pub fn now_us() -> i64 {
    chrono::Utc::now().timestamp_micros()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_that_ran_twice_or_not_at_all_is_an_error() {
        let ran = Ran::new(100, 3);
        for number in [100, 101, 102] {
            ran.run(number);
        }
        assert!(exactly_once(&ran.times()).is_ok());
        ran.run(101);
        let error = exactly_once(&ran.times()).unwrap_err().to_string();
        assert_eq!(error, "of 3 jobs 0 did not run and 1 ran again");
        assert!(exactly_once(&Ran::new(0, 1).times()).is_err());
    }

    #[test]
    fn a_row_that_only_stands_beside_is_no_job() {
        let ran = Ran::new(0, 1);
        ran.run(crate::database::FILL_FROM);
        assert_eq!(ran.times(), [0]);
    }
}
