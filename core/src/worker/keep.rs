//! Keep: renew leases, stop handlers whose lease is about to end, reap, send
//! heartbeats.

use std::{sync::Arc, thread, time::Duration};

use tokio::{sync::oneshot, time::Instant};
use tokio_util::sync::CancellationToken;

use super::{
    Shared, assign,
    settings::{POLL_MIN, Tally},
    shards,
};
use crate::{
    backend::Backend,
    error::{Error, ErrorKind, Result},
    job::RetryJob,
    op::{reap::Reap, renew::Renew},
    schema::LeaseBy,
};

/// Looks at the leases this many times while one lasts.
const LOOKS_PER_LEASE: u32 = 8;

/// A running keep loop.
pub(super) struct Keeper {
    ended: oneshot::Receiver<()>,
}

impl Keeper {
    /// Waits for the loop to end, after its token was cancelled.
    pub(super) async fn stopped(self) {
        // An error says that the loop is gone already.
        let _ = self.ended.await;
    }
}

/// Starts the loop, in a thread of its own when the settings say so.
pub(super) async fn start<J: RetryJob, B: Backend>(
    shared: &Arc<Shared<J, B>>,
    stop: CancellationToken,
) -> Result<Keeper> {
    let (end, ended) = oneshot::channel();
    let shared = Arc::clone(shared);
    if !shared.settings.keeps_in_thread {
        let backend = shared.queue.backend().clone();
        tokio::spawn(async move {
            keep_loop(&shared, &backend, &stop).await;
            let _ = end.send(());
        });
        return Ok(Keeper { ended });
    }
    let (ready, is_ready) = oneshot::channel();
    let body = move || {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build();
        let runtime = match runtime {
            Ok(runtime) => runtime,
            Err(error) => return drop(ready.send(Err(no_thread(error)))),
        };
        runtime.block_on(async {
            // Sockets belong to the runtime they were opened in: this thread
            // needs its own.
            match shared.queue.backend().reconnect().await {
                Ok(backend) => {
                    let _ = ready.send(Ok(()));
                    keep_loop(&shared, &backend, &stop).await;
                    backend.close().await;
                }
                Err(error) => drop(ready.send(Err(error))),
            }
        });
        let _ = end.send(());
    };
    thread::Builder::new()
        .name("retryjob-keep".into())
        .spawn(body)
        .map_err(no_thread)?;
    match is_ready.await {
        Ok(ready) => ready.map(|()| Keeper { ended }),
        Err(_) => Err(no_thread("it ended at once")),
    }
}

fn no_thread(source: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Error {
    let message = "the thread that keeps leases can't be started";
    Error::with_source(ErrorKind::Config, message, source)
}

/// Renewing, stopping, reaping and heartbeats go on beside each other: a server
/// that is slow to answer one must not keep the others from their time.
///
/// Heartbeats end when the worker stops claiming, so that others have its shards
/// while its handlers finish; the rest goes on until they have.
async fn keep_loop<J: RetryJob, B: Backend>(
    shared: &Shared<J, B>,
    backend: &B,
    stop: &CancellationToken,
) {
    let lease = J::schema().lease;
    let look = (lease / LOOKS_PER_LEASE).max(POLL_MIN);
    let renewing = async {
        loop {
            renew(shared, backend, lease).await;
            tokio::time::sleep(look).await;
        }
    };
    let stopping = async {
        loop {
            shared.held.revoke_ending(lease);
            tokio::time::sleep(look).await;
        }
    };
    let reaping = async {
        while !shared.stop.is_cancelled() {
            reap(shared, backend).await;
            tokio::time::sleep(shared.settings.reap_every).await;
        }
        std::future::pending().await
    };
    // In this order, for a run that can be repeated; each of them sleeps between
    // its rounds, so none is starved.
    let keeping = async {
        tokio::select! {
            biased;
            () = stop.cancelled() => {}
            () = stopping => {}
            () = renewing => {}
            () = reaping => {}
        }
    };
    let holding = async {
        if J::schema().lease_by == LeaseBy::Shard {
            shards::hold_until_stopped(shared, backend, stop.cancelled()).await;
        }
    };
    tokio::join!(
        assign::beat_until_stopped(shared, backend),
        keeping,
        holding
    );
}

/// Renews what has outlived half of its lease.
async fn renew<J: RetryJob, B: Backend>(shared: &Shared<J, B>, backend: &B, lease: Duration) {
    let leases = shared.held.to_renew(lease);
    if leases.is_empty() {
        return;
    }
    let ends = Instant::now() + lease;
    let renew = Renew {
        leases: leases.clone(),
        lease,
    };
    match backend.renew(renew).await {
        Ok(renewed) => shared.held.renewed(&leases, &renewed.lost, ends),
        Err(error) => tracing::warn!(%error, "leases can't be renewed"),
    }
}

/// Takes back lapsed leases of other workers, and of this one's past.
async fn reap<J: RetryJob, B: Backend>(shared: &Shared<J, B>, backend: &B) {
    let limit = J::schema().batch;
    loop {
        let reaped = match backend.reap(Reap { limit }).await {
            Ok(reaped) => reaped,
            Err(error) => return tracing::warn!(%error, "lapsed leases can't be reaped"),
        };
        if !reaped.finishes.is_empty() {
            Tally::add(&shared.tally.reaped, reaped.finishes.len() as u64);
            for finish in &reaped.finishes {
                tracing::warn!(id = finish.lease.id, "reaped a lapsed lease");
                shared.queue.event_sender().finished(finish);
            }
            shared.queue.wake();
        }
        if !reaped.has_more {
            return;
        }
    }
}
