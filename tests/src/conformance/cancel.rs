use std::{future::poll_fn, pin::pin, task::Poll, time::Duration};

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
    jobs::{JOB, LEASE, jobs, random_job},
};

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

pub async fn cancelled_calls_leave_no_transaction_open<D: SqlDatabase>(db: D) {
    let backend = db.installed(&JOB).await;
    let mut cancelled = 0;
    for times in 1..=16 {
        for _ in 0..4 {
            enqueue_one(&backend, random_job()).await;
        }
        let claimed = claim(&backend, Lane::Fresh).await;
        let held = vec![enqueue_one(&backend, random_job()).await];
        for call in 0..7 {
            let done = one_call(&backend, call, times, &claimed, &held).await;
            cancelled += u32::from(!done);
            // Were a transaction open on the connection that comes next, this
            // job would be part of it, and seen by nobody else.
            let id = enqueue_one(&backend, random_job()).await;
            let row = db.row(&JOB, id).await;
            assert_eq!(row.id, id);
        }
    }
    assert!(cancelled > 10, "only {cancelled} calls were cut short");
    // All connections at once: none is left in a transaction.
    let mut txs = Vec::new();
    for _ in 0..8 {
        let backend = backend.clone();
        txs.push(tokio::spawn(async move {
            enqueue_one(&backend, random_job()).await
        }));
    }
    for tx in txs {
        let id = tx.await.unwrap();
        assert_eq!(db.row(&JOB, id).await.id, id);
    }
    let rows = db.rows(&JOB).await.len();
    assert_eq!(backend.counts().await.unwrap().total(), rows as u64);
    db.pass(&JOB, LEASE * 2).await;
    backend.reap(reap_of(1000)).await.unwrap();
}

/// Starts one call and drops it; whether it was done before.
async fn one_call<B: Backend>(
    backend: &B,
    call: u32,
    times: u32,
    claimed: &[ClaimedJob],
    held: &[u64],
) -> bool {
    match call {
        0 => {
            let many = backend.enqueue(jobs(u64::from(times) * 3..u64::from(times) * 3 + 3));
            polled(times, many).await.is_some()
        }
        1 => {
            let claim = claim_as(backend, owner(), Lane::Fresh, 2);
            polled(times, claim).await.is_some()
        }
        2 => {
            let retry = Decision::Retry(Duration::ZERO);
            let finishes = vec![succeeded(&claimed[0]), failed(&claimed[1], retry)];
            polled(times, backend.finish(finishes)).await.is_some()
        }
        3 => {
            let renew = Renew {
                leases: claimed.iter().map(|job| job.lease.clone()).collect(),
                lease: LEASE,
            };
            polled(times, backend.renew(renew)).await.is_some()
        }
        4 => polled(times, backend.reap(reap_of(5))).await.is_some(),
        5 => {
            let hold = Operate {
                action: Action::Hold,
                ids: held.to_vec(),
                reason: None,
            };
            polled(times, backend.operate(hold)).await.is_some()
        }
        _ => polled(times, backend.begin()).await.is_some(),
    }
}
