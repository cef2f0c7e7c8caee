//! Run: one attempt of one job, with its timeout, panics caught.

use std::{any::Any, panic::AssertUnwindSafe, time::Duration};

use futures::FutureExt as _;
use tokio::{
    sync::{SemaphorePermit, mpsc},
    time::Instant,
};
use tokio_util::sync::CancellationToken;
use tracing::Instrument as _;

use super::{Shared, settings::Tally};
use crate::{
    backend::Backend,
    event::Event,
    handler::{Handler, Leased, Outcome},
    job::{Parts, RetryJob},
    op::{
        claim::{ClaimedJob, Lease},
        finish::{Ending, Finish},
    },
    retry::{Decision, Failure, Verdict},
};

/// How an attempt went.
pub(crate) enum Attempted {
    /// This is to be written.
    Finish(Finish),
    /// The handler wrote SUCCESS in its own transaction.
    FinishedIn,
    /// The lease was lost; there is nothing to write.
    Lost,
}

/// The task of a claimed job, from its claim to the finish loop.
pub(super) async fn run_job<J: RetryJob, B: Backend>(
    shared: &Shared<J, B>,
    finishes: mpsc::Sender<Finish>,
    job: ClaimedJob,
    revoke: CancellationToken,
) {
    let lease = job.lease.clone();
    let attempt_no = job.attempt_no;
    let slot = free_slot(shared, &revoke).await;
    let attempted = if slot.is_some() {
        Tally::add(&shared.tally.attempts, 1);
        let span = tracing::info_span!("attempt", id = lease.id, attempt_no);
        attempt(
            &shared.handler,
            shared.queue.backend(),
            job,
            &revoke,
            &shared.abort,
        )
        .instrument(span)
        .await
    } else if revoke.is_cancelled() {
        Attempted::Lost
    } else {
        Attempted::Finish(give_back(&job))
    };
    match attempted {
        Attempted::Finish(finish) => {
            // The loop ends only after the last sender is gone.
            let _ = finishes.send(finish).await;
        }
        Attempted::FinishedIn => {
            Tally::add(&shared.tally.successes, 1);
            forget(shared, &lease);
            shared.queue.event_sender().finished(&Finish {
                lease,
                attempt_no,
                ending: Ending::Success,
            });
        }
        Attempted::Lost => {
            Tally::add(&shared.tally.lost, 1);
            forget(shared, &lease);
            let id = lease.id;
            tracing::warn!(id, attempt_no, "the lease was lost");
            shared
                .queue
                .event_sender()
                .send(|| Event::LeaseLost { id, attempt_no });
        }
    }
}

/// A slot for the handler; `None` when it is not to start.
async fn free_slot<'s, J: RetryJob, B: Backend>(
    shared: &'s Shared<J, B>,
    revoke: &CancellationToken,
) -> Option<SemaphorePermit<'s>> {
    if shared.stop.is_cancelled() || revoke.is_cancelled() {
        return None;
    }
    // Without waiting where that is possible: every wait joins the list of those
    // who wait for the worker to stop.
    if let Ok(slot) = shared.slots.try_acquire() {
        return Some(slot);
    }
    tokio::select! {
        biased;
        () = shared.stop.cancelled() => None,
        () = revoke.cancelled() => None,
        slot = shared.slots.acquire() => slot.ok(),
    }
}

/// Lets go of a lease; the poller looks whether that was the last one.
fn forget<J: RetryJob, B: Backend>(shared: &Shared<J, B>, lease: &Lease) {
    shared.held.drop_lease(lease);
    shared.queue.wake();
}

/// Runs the handler once.
pub(crate) async fn attempt<J: RetryJob, B: Backend>(
    handler: &Handler<J, B>,
    backend: &B,
    claimed: ClaimedJob,
    revoke: &CancellationToken,
    abort: &CancellationToken,
) -> Attempted {
    let started = Instant::now();
    let (lease, attempt_no, age) = (claimed.lease.clone(), claimed.attempt_no, claimed.age);
    let returned = give_back(&claimed);
    let finish = |ending| Finish {
        lease: lease.clone(),
        attempt_no,
        ending,
    };
    let leased = match leased::<J, B>(backend, claimed, revoke) {
        Ok(leased) => leased,
        // The row stays as it is, for someone to read.
        Err(error) => {
            return Attempted::Finish(finish(Ending::Failed {
                decision: Decision::Hold,
                error,
            }));
        }
    };
    let run = AssertUnwindSafe(async { handler.call(leased).await }).catch_unwind();
    let run = within(J::schema().timeout, run);
    let outcome = tokio::select! {
        biased;
        // The lease comes first: its loss makes every outcome worthless.
        () = revoke.cancelled() => return Attempted::Lost,
        outcome = run => outcome,
        () = abort.cancelled() => return Attempted::Finish(returned),
    };
    let failed = |verdict, error| Ending::Failed {
        decision: J::SCHEMA.retry.decide(Failure {
            attempt_no,
            age: age.saturating_add(started.elapsed()),
            verdict,
            seed: lease.id,
        }),
        error,
    };
    Attempted::Finish(finish(match outcome {
        Outcome::Done => Ending::Success,
        Outcome::Retry { error } => failed(Verdict::Retry, error),
        Outcome::RetryAfter { delay, error } => failed(Verdict::RetryAfter(delay), error),
        Outcome::Snooze { delay } => Ending::GiveBack { delay },
        Outcome::Hold { reason } => failed(Verdict::Hold, reason),
        Outcome::Dead { reason } => failed(Verdict::Permanent, reason),
        Outcome::Finished(_) => return Attempted::FinishedIn,
    }))
}

fn leased<J: RetryJob, B: Backend>(
    backend: &B,
    claimed: ClaimedJob,
    revoke: &CancellationToken,
) -> Result<Leased<J, B>, String> {
    let job = J::decode(Parts::new(claimed.columns, claimed.payload))
        .map_err(|error| error.to_string())?;
    Ok(Leased {
        job,
        backend: backend.clone(),
        lease: claimed.lease,
        attempt_no: claimed.attempt_no,
        shard_id: claimed.shard_id,
        idempotency_key: claimed.idempotency_key,
        lag: claimed.lag,
        revoked: revoke.clone(),
    })
}

/// The outcome, or what a timeout or a panic amounts to.
async fn within(
    timeout: Option<Duration>,
    run: impl Future<Output = Result<Outcome, Box<dyn Any + Send>>>,
) -> Outcome {
    let ran = match timeout {
        None => run.await,
        Some(timeout) => match tokio::time::timeout(timeout, run).await {
            Ok(ran) => ran,
            Err(_) => return Outcome::retry(format!("the attempt took longer than {timeout:?}")),
        },
    };
    ran.unwrap_or_else(|panic| Outcome::retry(format!("the handler panicked: {}", said(&*panic))))
}

fn said(panic: &(dyn Any + Send)) -> &str {
    panic
        .downcast_ref::<String>()
        .map(String::as_str)
        .or_else(|| panic.downcast_ref::<&str>().copied())
        .unwrap_or("no message")
}

fn give_back(job: &ClaimedJob) -> Finish {
    Finish {
        lease: job.lease.clone(),
        attempt_no: job.attempt_no,
        ending: Ending::GiveBack {
            delay: Duration::ZERO,
        },
    }
}
