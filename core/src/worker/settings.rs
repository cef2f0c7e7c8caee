//! How a worker works, and what it has done.

use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

use crate::{op::claim::Node, schema::JobSchema};

/// Most handlers, and most waiting jobs, of one worker.
pub(super) const CONCURRENCY_MAX: usize = 100_000;
/// Most pollers of one worker.
pub(super) const POLLERS_MAX: usize = 16;
/// The shortest sleep between two looks that found nothing.
pub(super) const POLL_MIN: Duration = Duration::from_millis(5);
/// Most jobs that a worker claims ahead by itself.
pub(super) const PREFETCH_MAX: usize = 1000;
/// Most outcomes in one finish: more make no statement larger.
pub(super) const FINISH_BATCH_MAX: usize = 500;
const REAP_EVERY_MAX: Duration = Duration::from_secs(10);

/// How a worker works. See the setters of [`Worker`](super::Worker).
#[derive(Clone, Debug)]
pub(super) struct Settings {
    pub(super) concurrency: usize,
    pub(super) prefetch: Option<usize>,
    pub(super) pollers: usize,
    pub(super) poll_max: Duration,
    pub(super) finish_linger: Duration,
    pub(super) finish_batch: usize,
    pub(super) reap_every: Duration,
    pub(super) drain_for: Duration,
    pub(super) node: Node,
    pub(super) keeps_in_thread: bool,
}

impl Settings {
    pub(super) fn new(schema: &JobSchema, keeps_in_thread: bool) -> Self {
        Self {
            concurrency: 16,
            prefetch: None,
            pollers: 1,
            poll_max: Duration::from_secs(1),
            finish_linger: Duration::from_millis(3),
            finish_batch: FINISH_BATCH_MAX,
            reap_every: schema.lease.min(REAP_EVERY_MAX),
            drain_for: Duration::from_secs(30),
            node: Node::new(&format!("pid-{}", std::process::id())),
            keeps_in_thread,
        }
    }

    /// Most jobs that wait, claimed, for a free handler.
    pub(super) fn prefetch_max(&self) -> usize {
        self.prefetch.unwrap_or(PREFETCH_MAX)
    }

    /// Jobs that a worker may have in hand.
    pub(super) fn hands(&self) -> usize {
        self.concurrency + self.prefetch_max()
    }

    /// Connections that its loops use at once, and as many again: one that was
    /// given back is tested before it is given out.
    pub(super) fn connections(&self) -> usize {
        2 * (self.pollers + 1)
    }

    /// Outcomes that may wait to be written.
    pub(super) fn finishes_max(&self) -> usize {
        self.hands().max(self.finish_batch)
    }
}

/// What a worker has done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// Attempts whose handler was started.
    pub attempt_count: u64,
    /// Attempts that ended in SUCCESS, those finished in a handler's own
    /// transaction included.
    pub success_count: u64,
    /// Attempts that ended otherwise and were written.
    pub failure_count: u64,
    /// Attempts whose lease was lost before the outcome was written.
    pub lost_count: u64,
    /// Attempts of other workers that were reaped.
    pub reaped_count: u64,
}

#[derive(Debug, Default)]
pub(super) struct Tally {
    pub(super) attempts: AtomicU64,
    pub(super) successes: AtomicU64,
    pub(super) failures: AtomicU64,
    pub(super) lost: AtomicU64,
    pub(super) reaped: AtomicU64,
}

impl Tally {
    pub(super) fn add(counter: &AtomicU64, count: u64) {
        counter.fetch_add(count, Ordering::Relaxed);
    }

    pub(super) fn summary(&self) -> Summary {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Summary {
            attempt_count: read(&self.attempts),
            success_count: read(&self.successes),
            failure_count: read(&self.failures),
            lost_count: read(&self.lost),
            reaped_count: read(&self.reaped),
        }
    }
}
