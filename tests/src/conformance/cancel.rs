use std::{
    future::poll_fn,
    pin::{Pin, pin},
    task::Poll,
    time::Duration,
};

use retryjob_core::{
    Backend,
    op::{
        claim::ClaimedJob,
        due::Lane,
        operate::{Action, Operate},
        renew::Renew,
    },
    retry::Decision,
};

use crate::{
    SqlDatabase,
    act::{claim, claim_as, enqueue_one, failed, owner, reap_of, succeeded},
    jobs::{JOB, LEASE, job, jobs, random_job},
};

/// Polls of one call, at most; nothing takes as many.
const POLLS_MAX: u32 = 500;

/// Times that a call is made until one has to wait for its answer.
const ROUNDS_MAX: u32 = 50;

/// Connections of a backend's pool.
const POOL: usize = 10;

/// Polls a future this many times at most, then drops it.
async fn polled<T>(times: u32, future: impl Future<Output = T>) -> Option<T> {
    let mut future = pin!(future);
    let mut polls = 0;
    let outcome = poll_fn(|context| {
        polls += 1;
        match future.as_mut().poll(context) {
            Poll::Ready(answer) => Poll::Ready(Some(answer)),
            Poll::Pending if polls >= times => Poll::Ready(None),
            Poll::Pending => Poll::Pending,
        }
    });
    outcome.await
}

pub async fn every_call_dropped_at_each_await_leaves_nothing_open<D: SqlDatabase>(db: D) {
    let backend = db.installed(&JOB).await;
    for call in CALLS {
        // An answer that is there at once leaves no await to be dropped at.
        let mut rounds = 0..ROUNDS_MAX;
        while drop_at_each_await(&db, &backend, call).await == 0 {
            assert!(rounds.next().is_some(), "{call:?} was never cut short");
        }
    }
    // Every connection at once: no permit is lost, none is in a transaction.
    let mut txs = Vec::new();
    for nth in 0..POOL {
        let begun = tokio::time::timeout(Duration::from_secs(5), backend.begin()).await;
        txs.push(
            begun
                .unwrap_or_else(|_| panic!("only {nth} connections are left"))
                .unwrap(),
        );
        if D::HAS_ONE_WRITER {
            break;
        }
    }
    for tx in txs {
        backend.rollback(tx).await.unwrap();
    }
    // A connection that is closed takes its transaction along, but not at once.
    let mut open = db.open_transactions().await;
    for _ in 0..50 {
        if open == 0 {
            break;
        }
        // MySQL makes a new copy of what it tells when nobody has asked for a
        // tenth of a second.
        tokio::time::sleep(Duration::from_millis(200)).await;
        open = db.open_transactions().await;
    }
    assert_eq!(open, 0, "transactions are left open");
    let rows = db.rows(&JOB).await.len();
    assert_eq!(backend.counts().await.unwrap().total(), rows as u64);
    db.pass(&JOB, LEASE * 2).await;
    backend.reap(reap_of(1000)).await.unwrap();
}

/// Makes a call that is dropped at its first await, then at the second, and so
/// on until one is done; how many were dropped.
async fn drop_at_each_await<D: SqlDatabase>(db: &D, backend: &D::Backend, call: Call) -> u32 {
    for times in 1..=POLLS_MAX {
        for _ in 0..4 {
            enqueue_one(backend, random_job()).await;
        }
        let claimed = claim(backend, Lane::Fresh).await;
        let waiting = enqueue_one(backend, random_job()).await;
        let future = start(call, backend, times, claimed, waiting);
        let is_done = polled(times, future).await.is_some();
        // Were a transaction open on the connection that comes next, this job
        // would be part of it, and seen by nobody else.
        let id = enqueue_one(backend, random_job()).await;
        assert_eq!(db.row(&JOB, id).await.id, id, "after {call:?}");
        if is_done {
            return times - 1;
        }
    }
    panic!("{call:?} is never done");
}

/// The calls of a backend.
#[derive(Clone, Copy, Debug)]
enum Call {
    Install,
    Enqueue,
    EnqueueMany,
    EnqueueIn,
    Heads,
    Claim,
    Renew,
    Finish,
    FinishIn,
    Reap,
    Operate(Action),
    Counts,
    HasOpen,
    Begin,
    Commit,
    Rollback,
}

const CALLS: [Call; 17] = [
    Call::Install,
    Call::Enqueue,
    Call::EnqueueMany,
    Call::EnqueueIn,
    Call::Heads,
    Call::Claim,
    Call::Renew,
    Call::Finish,
    Call::FinishIn,
    Call::Reap,
    Call::Operate(Action::Hold),
    Call::Operate(Action::Cancel),
    Call::Counts,
    Call::HasOpen,
    Call::Begin,
    Call::Commit,
    Call::Rollback,
];

/// One call; what it needs was made before, so that all of its awaits are its
/// own.
fn start<'a, B: Backend>(
    call: Call,
    backend: &'a B,
    times: u32,
    claimed: Vec<ClaimedJob>,
    waiting: u64,
) -> Pin<Box<dyn Future<Output = ()> + Send + 'a>> {
    let nth = u64::from(times) * 3;
    Box::pin(async move {
        match call {
            Call::Install => backend.install().await.unwrap(),
            Call::Enqueue => drop(backend.enqueue(vec![job(1_000_000 + nth)]).await.unwrap()),
            Call::EnqueueMany => drop(backend.enqueue(jobs(nth..nth + 3)).await.unwrap()),
            Call::EnqueueIn => {
                let mut tx = backend.begin().await.unwrap();
                let stored = backend.enqueue_in(&mut tx, jobs(nth..nth + 3)).await;
                stored.unwrap();
                backend.commit(tx).await.unwrap();
            }
            Call::Heads => drop(backend.due_heads().await.unwrap()),
            Call::Claim => drop(claim_as(backend, owner(), Lane::Fresh, 2).await),
            Call::Renew => {
                let renew = Renew {
                    leases: claimed.into_iter().map(|job| job.lease).collect(),
                    lease: LEASE,
                };
                backend.renew(renew).await.unwrap();
            }
            Call::Finish => {
                let retry = Decision::Retry(Duration::ZERO);
                let finishes = vec![succeeded(&claimed[0]), failed(&claimed[1], retry)];
                backend.finish(finishes).await.unwrap();
            }
            Call::FinishIn => {
                let mut tx = backend.begin().await.unwrap();
                let finished = backend.finish_in(&mut tx, succeeded(&claimed[0])).await;
                finished.unwrap();
                backend.commit(tx).await.unwrap();
            }
            Call::Reap => drop(backend.reap(reap_of(5)).await.unwrap()),
            Call::Operate(action) => {
                let operate = Operate {
                    action,
                    ids: vec![waiting],
                    reason: None,
                };
                backend.operate(operate).await.unwrap();
            }
            Call::Counts => drop(backend.counts().await.unwrap()),
            Call::HasOpen => drop(backend.has_open().await.unwrap()),
            Call::Begin => drop(backend.begin().await.unwrap()),
            Call::Commit => {
                let tx = backend.begin().await.unwrap();
                backend.commit(tx).await.unwrap();
            }
            Call::Rollback => {
                let tx = backend.begin().await.unwrap();
                backend.rollback(tx).await.unwrap();
            }
        }
    })
}
