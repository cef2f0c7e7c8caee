//! Finish: outcomes are collected and written in one transaction.

use std::{collections::HashSet, sync::Arc, time::Duration};

use tokio::{sync::mpsc, time::Instant};

use super::{
    Shared,
    settings::{POLL_MIN, Tally},
};
use crate::{
    backend::Backend,
    error::Error,
    event::Event,
    job::RetryJob,
    op::finish::{Ending, Finish},
};

/// The longest wait between two tries to write the same outcomes.
const RETRY_WAIT_MAX: Duration = Duration::from_secs(1);

/// Runs until every sender is gone and everything is written.
pub(super) async fn finish_loop<J: RetryJob, B: Backend>(
    shared: Arc<Shared<J, B>>,
    mut finishes: mpsc::Receiver<Finish>,
) {
    let mut next = None;
    loop {
        let first = match next.take() {
            Some(finish) => finish,
            None => match finishes.recv().await {
                Some(finish) => finish,
                None => return,
            },
        };
        let mut ids = HashSet::from([first.lease.id]);
        let mut batch = vec![first];
        let deadline = Instant::now() + shared.settings.finish_linger;
        while batch.len() < shared.settings.finish_batch {
            match tokio::time::timeout_at(deadline, finishes.recv()).await {
                // A late attempt beside the next one of the same job: answers
                // name jobs, so each goes into a batch of its own.
                Ok(Some(finish)) if !ids.insert(finish.lease.id) => {
                    next = Some(finish);
                    break;
                }
                Ok(Some(finish)) => batch.push(finish),
                Ok(None) | Err(_) => break,
            }
        }
        write(&shared, batch).await;
    }
}

async fn write<J: RetryJob, B: Backend>(shared: &Shared<J, B>, batch: Vec<Finish>) {
    match write_batch(shared, &batch).await {
        Ok(()) => {}
        Err(error) if batch.len() > 1 => {
            // One row that the database refuses must not cost the others
            // their outcome.
            tracing::error!(%error, "a batch was refused, writing its outcomes one by one");
            for finish in batch {
                write_one(shared, &finish).await;
            }
        }
        Err(error) => refused(shared, &batch[0], &error),
    }
}

async fn write_one<J: RetryJob, B: Backend>(shared: &Shared<J, B>, finish: &Finish) {
    if let Err(error) = write_batch(shared, std::slice::from_ref(finish)).await {
        refused(shared, finish, &error);
    }
}

/// Writes outcomes, again and again while the fault can pass and a lease
/// stands.
async fn write_batch<J: RetryJob, B: Backend>(
    shared: &Shared<J, B>,
    batch: &[Finish],
) -> Result<(), Error> {
    let mut wait = POLL_MIN;
    loop {
        match shared.queue.backend().finish(batch.to_vec()).await {
            Ok(finished) => {
                settle(shared, batch, &finished.lost);
                return Ok(());
            }
            Err(error) if error.is_transient() && any_stands(shared, batch) => {
                tracing::warn!(%error, "outcomes can't be written yet, trying again");
                tokio::time::sleep(wait).await;
                wait = (wait * 2).min(RETRY_WAIT_MAX);
            }
            Err(error) => return Err(error),
        }
    }
}

fn any_stands<J: RetryJob, B: Backend>(shared: &Shared<J, B>, batch: &[Finish]) -> bool {
    let now = Instant::now();
    batch.iter().any(|finish| {
        let ends = shared.held.ends(&finish.lease);
        ends.is_some_and(|ends| ends > now)
    })
}

/// Forgets the leases and says what happened.
fn settle<J: RetryJob, B: Backend>(shared: &Shared<J, B>, batch: &[Finish], lost: &[u64]) {
    let mut has_waiting = false;
    for finish in batch {
        shared.held.drop_lease(&finish.lease);
        if lost.contains(&finish.lease.id) {
            lose(shared, finish);
            continue;
        }
        let counter = match finish.ending {
            Ending::Success => Some(&shared.tally.successes),
            Ending::Failed { .. } => Some(&shared.tally.failures),
            Ending::GiveBack { .. } => None,
        };
        if let Some(counter) = counter {
            Tally::add(counter, 1);
        }
        has_waiting |= !matches!(finish.ending, Ending::Success);
        shared.queue.event_sender().finished(finish);
    }
    if has_waiting || shared.held.is_empty() {
        shared.queue.wake();
    }
}

/// The outcome can't be written at all: the lease will lapse, and the reaper
/// counts the attempt as failed.
fn refused<J: RetryJob, B: Backend>(shared: &Shared<J, B>, finish: &Finish, error: &Error) {
    tracing::error!(id = finish.lease.id, %error, "an outcome can't be written");
    shared.held.drop_lease(&finish.lease);
    lose(shared, finish);
}

fn lose<J: RetryJob, B: Backend>(shared: &Shared<J, B>, finish: &Finish) {
    Tally::add(&shared.tally.lost, 1);
    let (id, attempt_no) = (finish.lease.id, finish.attempt_no);
    tracing::warn!(id, attempt_no, "the lease was lost before the finish");
    shared
        .queue
        .event_sender()
        .send(|| Event::LeaseLost { id, attempt_no });
}
