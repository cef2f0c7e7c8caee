use std::time::Duration;

use retryjob_core::{Backend, JobSchema, Status, op::due::Lane, retry::Decision};

use crate::{
    TestDatabase,
    act::{claim, enqueue, enqueue_one, failed, finish, succeeded},
    jobs::{ARCHIVED, DELETED, job, jobs},
};

/// Six jobs that end in every way; the ids of the three that succeeded.
async fn run_six<D: TestDatabase>(backend: &D::Backend) -> Vec<u64> {
    enqueue(backend, jobs(0..6)).await;
    let claimed = claim(backend, Lane::Fresh).await;
    assert_eq!(claimed.len(), 6);
    let finishes = vec![
        succeeded(&claimed[0]),
        failed(&claimed[1], Decision::Dead),
        succeeded(&claimed[2]),
        failed(&claimed[3], Decision::Retry(Duration::from_secs(5))),
        failed(&claimed[4], Decision::Manual),
        succeeded(&claimed[5]),
    ];
    assert!(
        backend
            .finish(finishes.clone())
            .await
            .unwrap()
            .lost
            .is_empty()
    );
    let mut ids = [0, 2, 5].map(|at: usize| claimed[at].lease.id).to_vec();
    ids.sort_unstable();

    // A lost lease moves nothing away, and what is gone is told as lost.
    let mut again = finishes;
    again.truncate(1);
    let lost = backend.finish(again).await.unwrap().lost;
    assert_eq!(lost, [claimed[0].lease.id]);
    ids
}

async fn statuses<D: TestDatabase>(db: &D, schema: &'static JobSchema) -> Vec<Status> {
    let rows = db.rows(schema).await;
    let mut statuses: Vec<_> = rows.iter().map(|row| row.status).collect();
    statuses.sort_unstable();
    statuses
}

pub async fn delete_removes_rows_that_succeeded_and_no_others<D: TestDatabase>(db: D) {
    let backend = db.installed(&DELETED).await;
    run_six::<D>(&backend).await;
    let left = [Status::Dead, Status::Retry, Status::Failed];
    assert_eq!(statuses(&db, &DELETED).await, left);
    assert_eq!(backend.counts().await.unwrap().total(), 3);
}

pub async fn history_takes_rows_that_succeeded_and_no_others<D: TestDatabase>(db: D) {
    let backend = db.installed(&ARCHIVED).await;
    let succeeded = run_six::<D>(&backend).await;
    let left = [Status::Dead, Status::Retry, Status::Failed];
    assert_eq!(statuses(&db, &ARCHIVED).await, left);

    let history = db.history(&ARCHIVED).await;
    let ids: Vec<_> = history.iter().map(|row| row.id).collect();
    assert_eq!(ids, succeeded);
    for row in history {
        assert_eq!((row.status, row.attempt_no), (Status::Success, 1));
        assert_eq!((row.lease_seq, row.lease_until), (1, None));
        assert!(row.payload.unwrap().starts_with("{\"n\":"));
    }
}

pub async fn key_is_free_again_once_its_row_has_left<D: TestDatabase>(db: D) {
    for schema in [&DELETED, &ARCHIVED] {
        let backend = db.installed(schema).await;
        let mut ids = Vec::new();
        for _ in 0..2 {
            ids.push(enqueue_one(&backend, job(1)).await);
            let known = backend.enqueue(vec![job(1)]).await.unwrap();
            assert!(!known[0].is_new);
            let claimed = claim(&backend, Lane::Fresh).await;
            assert!(finish(&backend, succeeded(&claimed[0])).await);
        }
        assert_ne!(ids[0], ids[1], "an id is never given twice");
    }
    let history = db.history(&ARCHIVED).await;
    assert_eq!(history.len(), 2);
    assert_eq!(history[0].idempotency_key, history[1].idempotency_key);
}
