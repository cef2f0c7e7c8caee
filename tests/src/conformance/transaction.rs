use retryjob_core::{Backend, ErrorKind, Status, op::due::Lane};

use crate::{
    TestDatabase,
    act::{claim, enqueue, finish, running, succeeded},
    jobs::{JOB, LEASE, job, jobs},
};

pub async fn enqueue_in_follows_the_callers_transaction<D: TestDatabase>(db: D) {
    let backend = db.installed(&JOB).await;

    let mut undone = backend.begin().await.unwrap();
    db.note(&mut undone).await;
    let enqueued = backend.enqueue_in(&mut undone, jobs([1])).await.unwrap();
    assert!(enqueued[0].is_new);
    backend.rollback(undone).await.unwrap();
    assert_eq!((db.rows(&JOB).await.len(), db.notes().await), (0, 0));

    let mut dropped = backend.begin().await.unwrap();
    backend.enqueue_in(&mut dropped, jobs([1])).await.unwrap();
    drop(dropped);

    let mut tx = backend.begin().await.unwrap();
    db.note(&mut tx).await;
    let enqueued = backend.enqueue_in(&mut tx, jobs([1, 2])).await.unwrap();
    assert!(enqueued.iter().all(|enqueued| enqueued.is_new));
    assert_eq!(db.rows(&JOB).await, [], "not before the commit");
    backend.commit(tx).await.unwrap();
    assert_eq!((db.rows(&JOB).await.len(), db.notes().await), (2, 1));
    assert_eq!(claim(&backend, Lane::Fresh).await.len(), 2);
}

pub async fn enqueue_in_says_which_keys_were_already_there<D: TestDatabase>(db: D) {
    let backend = db.installed(&JOB).await;
    let known = enqueue(&backend, jobs([1])).await[0];

    let mut tx = backend.begin().await.unwrap();
    let first = backend.enqueue_in(&mut tx, jobs([2, 1])).await.unwrap();
    let second = backend.enqueue_in(&mut tx, jobs([3, 2])).await.unwrap();
    let new = |answers: &[retryjob_core::op::enqueue::Enqueued]| {
        let new: Vec<_> = answers.iter().map(|answer| answer.is_new).collect();
        new
    };
    assert_eq!(new(&first), [true, false]);
    assert_eq!(new(&second), [true, false]);
    assert_eq!(first[1].id, known);
    assert_eq!(second[1].id, first[0].id);
    backend.commit(tx).await.unwrap();
    assert_eq!(db.rows(&JOB).await.len(), 3);
}

pub async fn finish_in_commits_with_the_callers_writes<D: TestDatabase>(db: D) {
    let backend = db.installed(&JOB).await;
    let job = running(&backend, job(1)).await;

    let mut undone = backend.begin().await.unwrap();
    db.note(&mut undone).await;
    backend
        .finish_in(&mut undone, succeeded(&job))
        .await
        .unwrap();
    backend.rollback(undone).await.unwrap();
    let row = db.row(&JOB, job.lease.id).await;
    assert_eq!((row.status, db.notes().await), (Status::Running, 0));

    let mut tx = backend.begin().await.unwrap();
    db.note(&mut tx).await;
    backend.finish_in(&mut tx, succeeded(&job)).await.unwrap();
    let row = db.row(&JOB, job.lease.id).await;
    assert_eq!(row.status, Status::Running, "not before the commit");
    backend.commit(tx).await.unwrap();
    let row = db.row(&JOB, job.lease.id).await;
    assert_eq!((row.status, row.lease_until), (Status::Success, None));
    assert_eq!(db.notes().await, 1);

    assert!(finish(&backend, succeeded(&job)).await, "a repeat");
}

pub async fn finish_in_tells_a_late_finisher<D: TestDatabase>(db: D) {
    let backend = db.installed(&JOB).await;
    let job = running(&backend, job(1)).await;
    db.pass(&JOB, LEASE * 2).await;
    let before = db.rows(&JOB).await;

    let mut tx = backend.begin().await.unwrap();
    db.note(&mut tx).await;
    let error = backend
        .finish_in(&mut tx, succeeded(&job))
        .await
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::LeaseLost, "{error}");
    backend.rollback(tx).await.unwrap();
    assert_eq!(db.rows(&JOB).await, before);
    assert_eq!(db.notes().await, 0);
}
