use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
};

use retryjob_core::{
    Backend, Node, Status,
    op::{
        due::Lane,
        operate::{Action, Operate, Operation},
    },
    retry::Decision,
};
use tokio::task::JoinSet;

use crate::{
    TestDatabase,
    act::{claim_as, enqueue, failed, id_set, owner, reap_of, succeeded},
    jobs::{JOB, jobs, random_job},
};

pub async fn concurrent_claims_never_share_a_job<D: TestDatabase>(db: D) {
    const JOBS: usize = 200;
    let backend = db.installed(&JOB).await;
    let news = (0..JOBS).zip(0u16..).map(|(_, n)| {
        let mut new = random_job();
        new.shard_id = n % 2;
        new
    });
    enqueue(&backend, news.collect()).await;

    // Half of the claims are made by one node, at the same time.
    let shared = Node::new("shared");
    let mut workers = JoinSet::new();
    for nth in 0..8 {
        let backend = backend.clone();
        let node = if nth % 2 == 0 {
            shared.clone()
        } else {
            Node::new("own")
        };
        workers.spawn(async move {
            let mut got = Vec::new();
            while backend.counts().await.unwrap().of(Status::Pending) > 0 {
                got.extend(claim_as(&backend, node.lease_owner(), Lane::Fresh, 7).await);
            }
            got
        });
    }
    let claimed: Vec<_> = workers.join_all().await.into_iter().flatten().collect();
    assert_eq!(claimed.len(), JOBS);
    assert_eq!(id_set(&claimed).len(), JOBS);
    let rows = db.rows(&JOB).await;
    let rows: BTreeMap<_, _> = rows.into_iter().map(|row| (row.id, row)).collect();
    for job in claimed {
        let row = &rows[&job.lease.id];
        assert_eq!(row.lease_owner.as_ref(), Some(&job.lease.owner));
        assert_eq!((row.attempt_no, job.attempt_no), (1, 1));
        assert_eq!((row.lease_seq, job.lease.lease_seq), (1, 1));
    }
}

pub async fn claim_and_hold_never_both_take_a_job<D: TestDatabase>(db: D) {
    let backend = db.installed(&JOB).await;
    for round in 0..8 {
        let stored = enqueue(&backend, jobs(round * 20..round * 20 + 20)).await;
        let claims = tokio::spawn({
            let backend = backend.clone();
            async move { claim_as(&backend, owner(), Lane::Fresh, 20).await }
        });
        let hold = Operate {
            action: Action::Hold,
            ids: stored.clone(),
            reason: None,
        };
        let held = backend.operate(hold).await.unwrap();
        let claimed = id_set(&claims.await.unwrap());
        for (id, operation) in held.answers {
            let expected = if claimed.contains(&id) {
                Operation::Refused {
                    status: Status::Running,
                }
            } else {
                Operation::Done {
                    from: Status::Pending,
                }
            };
            assert_eq!(operation, expected, "job {id}");
            let status = match expected {
                Operation::Done { .. } => Status::Hold,
                Operation::Refused { .. } | Operation::Missing => Status::Running,
            };
            assert_eq!(db.row(&JOB, id).await.status, status, "job {id}");
        }
    }
}

/// Enqueue, claim, finish, renew, reap and counts beside each other.
pub async fn all_operations_at_once_surface_no_error_and_lose_no_job<D: TestDatabase>(db: D) {
    const BATCHES: u64 = 12;
    const JOBS: u64 = BATCHES * 25;
    let backend = db.installed(&JOB).await;
    let done = Arc::new(AtomicU64::new(0));
    let is_over = Arc::new(AtomicBool::new(false));

    let mut beside = JoinSet::new();
    for _ in 0..2 {
        let (backend, is_over) = (backend.clone(), Arc::clone(&is_over));
        beside.spawn(async move {
            while !is_over.load(Ordering::Relaxed) {
                let reaped = backend.reap(reap_of(50)).await.unwrap();
                assert_eq!(reaped.finishes, [], "no lease lapses here");
                backend.counts().await.unwrap();
                // In memory nothing else gives way.
                tokio::task::yield_now().await;
            }
        });
    }
    let mut producers = JoinSet::new();
    for nth in 0..3 {
        let backend = backend.clone();
        producers.spawn(async move {
            for batch in (nth..BATCHES).step_by(3) {
                enqueue(&backend, jobs(batch * 25..batch * 25 + 25)).await;
            }
        });
    }
    let mut workers = JoinSet::new();
    for _ in 0..6 {
        let (backend, done) = (backend.clone(), Arc::clone(&done));
        workers.spawn(async move { work_until_done(&backend, &done, JOBS).await });
    }
    producers.join_all().await;
    let ran: Vec<u64> = workers.join_all().await.into_iter().flatten().collect();
    is_over.store(true, Ordering::Relaxed);
    beside.join_all().await;

    let rows = db.rows(&JOB).await;
    assert_eq!(rows.len() as u64, JOBS);
    for row in &rows {
        assert_eq!(row.status, Status::Success);
        assert_eq!((row.attempt_no, row.lease_seq), (2, 2));
    }
    let distinct: BTreeSet<_> = ran.iter().collect();
    assert_eq!(ran.len() as u64, JOBS, "each succeeded once");
    assert_eq!(distinct.len() as u64, JOBS);
}

/// Fails every job once, then lets it succeed; the ids that did.
async fn work_until_done<B: Backend>(backend: &B, done: &AtomicU64, jobs: u64) -> Vec<u64> {
    let mut ran = Vec::new();
    while done.load(Ordering::Relaxed) < jobs {
        let fresh = claim_as(backend, owner(), Lane::Fresh, 9).await;
        let retried = claim_as(backend, owner(), Lane::Retry, 9).await;
        let leases = fresh.iter().map(|job| job.lease.clone()).collect();
        let renew = retryjob_core::op::renew::Renew {
            leases,
            lease: JOB.lease,
        };
        assert!(backend.renew(renew).await.unwrap().lost.is_empty());
        let retry = Decision::Retry(std::time::Duration::ZERO);
        let failures = fresh.iter().map(|job| failed(job, retry));
        let finishes: Vec<_> = failures.chain(retried.iter().map(succeeded)).collect();
        assert!(backend.finish(finishes).await.unwrap().lost.is_empty());
        ran.extend(retried.iter().map(|job| job.lease.id));
        done.fetch_add(retried.len() as u64, Ordering::Relaxed);
        tokio::task::yield_now().await;
    }
    ran
}
