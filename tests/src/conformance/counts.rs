use std::time::Duration;

use retryjob_core::{
    Backend, Status,
    op::{due::Lane, operate::Action},
    retry::Decision,
};
use tokio_util::sync::CancellationToken;

use crate::{
    TestDatabase,
    act::{claim, failed, finish, given_back, operate, put_in, running},
    jobs::{JOB, random_job},
};

pub async fn counts_add_up<D: TestDatabase>(db: D) {
    let backend = db.installed(&JOB).await;
    assert_eq!(backend.counts().await.unwrap().total(), 0);
    let mut shard_id = 0;
    for (status, times) in Status::ALL.into_iter().zip(1..) {
        for _ in 0..times {
            put_in(&backend, status, shard_id).await;
            shard_id += 1;
        }
    }
    let counts = backend.counts().await.unwrap();
    for (status, times) in Status::ALL.into_iter().zip(1..) {
        assert_eq!(counts.of(status), times, "{status}");
    }
    assert_eq!(counts.total(), 28);
    // PENDING, RUNNING and RETRY.
    assert_eq!(counts.open(), 1 + 2 + 5);
}

pub async fn has_open_sees_waiting_and_running_jobs<D: TestDatabase>(db: D) {
    let backend = db.installed(&JOB).await;
    assert!(!backend.has_open().await.unwrap());
    for status in [Status::Success, Status::Dead, Status::Failed, Status::Hold] {
        put_in(&backend, status, u16::from(status.code())).await;
        assert!(!backend.has_open().await.unwrap(), "{status}");
    }
    for status in [Status::Pending, Status::Retry] {
        let id = put_in(&backend, status, u16::from(status.code())).await;
        assert!(backend.has_open().await.unwrap(), "{status}");
        operate(&backend, Action::Hold, id).await;
        assert!(!backend.has_open().await.unwrap(), "{status}");
    }
    put_in(&backend, Status::Running, 20).await;
    assert!(backend.has_open().await.unwrap());
}

pub async fn has_open_never_misses_a_job_that_moves<D: TestDatabase>(db: D) {
    let backend = db.installed(&JOB).await;
    let job = running(&backend, random_job()).await;
    let again = failed(&job, Decision::Retry(Duration::ZERO));
    assert!(finish(&backend, again).await);
    let is_over = CancellationToken::new();
    // RETRY and RUNNING in turn, and never anything else.
    let moving = tokio::spawn({
        let (backend, is_over) = (backend.clone(), is_over.clone());
        async move {
            while !is_over.is_cancelled() {
                for job in claim(&backend, Lane::Retry).await {
                    assert!(finish(&backend, given_back(&job, Duration::ZERO)).await);
                }
                tokio::task::yield_now().await;
            }
        }
    });
    for look in 0..300 {
        assert!(backend.has_open().await.unwrap(), "missed at look {look}");
        tokio::task::yield_now().await;
    }
    is_over.cancel();
    moving.await.unwrap();
}
