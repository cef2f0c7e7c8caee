//! Alone: a job that crashed at its last attempt, and has one left, runs with
//! nothing else in hand.
//!
//! A crash ends the attempts of all jobs that the process has in hand, and
//! nobody can tell which of them caused it. At worst a job that never did any
//! harm loses all of its attempts beside ones that do. Batches therefore leave
//! out a job that would die of one more crash, and it gets a turn of its own.

use std::{sync::Arc, time::Duration};

use tokio::{
    sync::{OwnedSemaphorePermit, mpsc},
    time::Instant,
};

use super::{
    Shared,
    poll::{claim, start},
};
use crate::{
    backend::Backend,
    error::Result,
    job::RetryJob,
    op::{
        due::{Head, Lane},
        finish::Finish,
    },
    time::DbTime,
};

/// When a poller looks for jobs that batches leave out.
pub(super) struct Turn {
    lease: Duration,
    next: Instant,
    is_asked_for: bool,
}

impl Turn {
    pub(super) fn new(lease: Duration) -> Self {
        Self {
            lease,
            next: Instant::now(),
            is_asked_for: false,
        }
    }

    /// Takes note of what waits in RETRY. A job that has been due for longer
    /// than a lease may be one that batches leave out.
    pub(super) fn see(&mut self, retry: &[Head], now: DbTime) {
        let is_overdue = overdue(retry, now, self.lease).is_some();
        self.is_asked_for = is_overdue && self.next <= Instant::now();
    }

    pub(super) const fn is_asked_for(&self) -> bool {
        self.is_asked_for
    }

    /// The turn is over. When it found such a job there may be more; otherwise
    /// the next look is a lease away, so that a backlog of retries is not
    /// worked off alone.
    fn ends(&mut self, was_needed: bool) {
        self.is_asked_for = was_needed;
        if !was_needed {
            self.next = Instant::now() + self.lease;
        }
    }
}

/// The job that has waited longest, when that is longer than a lease.
fn overdue(retry: &[Head], now: DbTime, lease: Duration) -> Option<Head> {
    let first = *retry.iter().min_by_key(|head| head.next_attempt_at)?;
    (now.since(first.next_attempt_at) > lease).then_some(first)
}

/// Waits until nothing is in hand, then claims the job that has waited longest
/// and runs it; no other is claimed before it has ended.
pub(super) async fn take_turn<J: RetryJob, B: Backend>(
    shared: &Arc<Shared<J, B>>,
    finishes: &mpsc::Sender<Finish>,
    turn: &mut Turn,
) -> Result<()> {
    let Some(hands) = all_hands(shared, turn.lease).await else {
        return Ok(());
    };
    let heads = shared.queue.backend().due_heads().await?.retry;
    let now = heads.now;
    let due = shared.assigned.claimable(B::SHARDS, heads).due;
    let Some(head) = overdue(&due, now, turn.lease) else {
        turn.ends(false);
        return Ok(());
    };
    let ends = Instant::now() + turn.lease;
    let job = claim(shared, Lane::Alone, vec![head], 1).await?.pop();
    let attempts_max = J::schema().retry.max_attempts;
    turn.ends(
        job.as_ref()
            .is_some_and(|job| job.attempt_no >= attempts_max),
    );
    if let Some(job) = job {
        tracing::debug!(id = job.lease.id, "runs with nothing else in hand");
        start(shared, finishes, job, Lane::Alone, hands, ends);
    }
    Ok(())
}

/// The shortest time that a worker gives its handlers to come to an end.
const DRAIN_MIN: Duration = Duration::from_secs(30);

/// All hands, or what is free after a while: handlers that take longer must not
/// keep the job waiting for ever. `None` when the worker stops.
async fn all_hands<J: RetryJob, B: Backend>(
    shared: &Shared<J, B>,
    lease: Duration,
) -> Option<OwnedSemaphorePermit> {
    let all = u32::try_from(shared.settings.hands()).unwrap_or(u32::MAX);
    let hands = |count| Arc::clone(&shared.hands).acquire_many_owned(count);
    tokio::select! {
        biased;
        () = shared.stop.cancelled() => None,
        hands = hands(all) => hands.ok(),
        hands = async {
            tokio::time::sleep(lease.max(DRAIN_MIN)).await;
            hands(1).await
        } => hands.ok(),
    }
}
