//! What becomes of a job after each way an attempt can end.

use std::time::Duration;

use retryjob::{
    Backend as _, Due, IdempotencyKey, JobResult, JobResultExt as _, Leased, Outcome, RetryJob,
    Status, memory::JobRow, op::enqueue::NewJob,
};

use super::{Log, Work, queue};
use crate::TestDatabase;

async fn only_row<D: TestDatabase>(db: &D) -> JobRow {
    let mut rows = db.rows(Work::schema()).await;
    assert_eq!(rows.len(), 1);
    rows.remove(0)
}

pub async fn failing_jobs_run_as_often_as_the_policy_says_and_die<D: TestDatabase>(db: D) {
    let (queue, _flow) = queue::<Work, D>(&db).await;
    queue.enqueue(&Work::new(1, "")).await.unwrap();
    let log = Log::default();
    let worker = queue.worker_with(
        log.clone(),
        async |job: Leased<Work, D::Backend>, log: Log| {
            log.attempt(&job);
            "none".parse::<u32>().map(drop)
        },
    );
    let summary = worker.run_until_idle().await.unwrap();
    let row = only_row(&db).await;
    assert_eq!(log.attempts(), [(row.id, 1), (row.id, 2), (row.id, 3)]);
    assert_eq!(summary.failure_count, 3);
    assert_eq!((row.status, row.attempt_no), (Status::Dead, 3));
    assert_eq!(
        row.last_error.as_deref(),
        Some("invalid digit found in string")
    );
}

pub async fn panics_count_as_failed_attempts_and_say_why<D: TestDatabase>(db: D) {
    let (queue, _flow) = queue::<Work, D>(&db).await;
    queue.enqueue(&Work::new(1, "")).await.unwrap();
    let worker = queue.worker(async |job: Leased<Work, D::Backend>| {
        assert!(
            job.attempt_no() > 1,
            "attempt {} is unlucky",
            job.attempt_no()
        );
    });
    let summary = worker.run_until_idle().await.unwrap();
    let row = only_row(&db).await;
    assert_eq!((summary.failure_count, summary.success_count), (1, 1));
    assert_eq!((row.status, row.attempt_no), (Status::Success, 2));
    let said = row.last_error.unwrap();
    assert_eq!(said, "the handler panicked: attempt 1 is unlucky");
}

/// A job whose attempts may not take long.
#[derive(Debug, RetryJob)]
#[retry_job(
    table = "work",
    timeout = "20ms",
    retry(fixed = "1ms", max_attempts = 2)
)]
struct Quick {
    #[job(unique)]
    no: u32,
}

pub async fn attempts_over_their_timeout_count_as_failed<D: TestDatabase>(db: D) {
    let (queue, _flow) = queue::<Quick, D>(&db).await;
    queue.enqueue(&Quick { no: 1 }).await.unwrap();
    let worker =
        queue.worker(async |_: Leased<Quick, D::Backend>| std::future::pending::<()>().await);
    worker.run_until_idle().await.unwrap();
    let row = only_row(&db).await;
    assert_eq!((row.status, row.attempt_no), (Status::Dead, 2));
    assert_eq!(
        row.last_error.as_deref(),
        Some("the attempt took longer than 20ms")
    );
}

pub async fn verdicts_lead_where_they_say<D: TestDatabase>(db: D) {
    let (queue, _flow) = queue::<Work, D>(&db).await;
    let whats = ["permanent", "hold", "dead", "wait", "later"];
    let jobs: Vec<_> = whats
        .iter()
        .zip(0..)
        .map(|(what, no)| Work::new(no, what))
        .collect();
    queue.enqueue_many(&jobs).await.unwrap();
    let worker = queue.worker(async |job: Leased<Work, D::Backend>| -> JobResult {
        let wrong = || "x".parse::<u8>();
        match job.what.as_str() {
            "permanent" => drop(wrong().permanent()?),
            "hold" => drop(wrong().hold()?),
            "dead" => return Ok(Outcome::dead("no such account")),
            "wait" => return Ok(Outcome::hold("card expired")),
            _ if job.attempt_no() == 1 => drop(wrong().retry_after(Duration::from_millis(1))?),
            _ => {}
        }
        Ok(Outcome::Done)
    });
    worker.run_until_idle().await.unwrap();
    let rows = db.rows(Work::schema()).await;
    let ends: Vec<_> = rows
        .iter()
        .map(|row| {
            (
                row.status,
                row.attempt_no,
                row.last_error.as_deref().unwrap(),
            )
        })
        .collect();
    let digit = "invalid digit found in string";
    assert_eq!(
        ends,
        [
            (Status::Dead, 1, digit),
            (Status::Hold, 1, digit),
            (Status::Dead, 1, "no such account"),
            (Status::Hold, 1, "card expired"),
            (Status::Success, 2, digit),
        ]
    );
}

pub async fn snoozing_costs_no_attempt<D: TestDatabase>(db: D) {
    let (queue, _flow) = queue::<Work, D>(&db).await;
    queue.enqueue(&Work::new(1, "")).await.unwrap();
    let log = Log::default();
    let worker = queue.worker_with(
        log.clone(),
        async |job: Leased<Work, D::Backend>, log: Log| {
            log.attempt(&job);
            match log.attempts().len() {
                ..=9 => Outcome::snooze(Duration::from_millis(1)),
                _ => Outcome::Done,
            }
        },
    );
    worker.run_until_idle().await.unwrap();
    let row = only_row(&db).await;
    assert_eq!(log.attempts().len(), 10);
    assert_eq!(
        (row.status, row.attempt_no, row.lease_seq),
        (Status::Success, 1, 10)
    );
}

pub async fn payload_that_no_longer_decodes_is_held_as_it_is<D: TestDatabase>(db: D) {
    let (queue, _flow) = queue::<Work, D>(&db).await;
    let payload = r#"{"no": 1, "what": 12345678901234567890123,"what":null }"#;
    let strange = NewJob {
        shard_id: 0,
        shard_key: None,
        idempotency_key: IdempotencyKey::random(),
        due: Due::Now,
        spread: Duration::ZERO,
        columns: vec![],
        payload: Some(payload.into()),
    };
    let strange = queue.backend().enqueue(vec![strange]).await.unwrap()[0].id;
    queue.enqueue(&Work::new(1, "fine")).await.unwrap();
    let worker = queue.worker(async |_: Leased<Work, D::Backend>| {});
    let summary = worker.run_until_idle().await.unwrap();
    assert_eq!(summary.success_count, 1);
    let row = db.row(Work::schema(), strange).await;
    assert_eq!(row.status, Status::Hold);
    assert_eq!(row.payload.as_deref(), Some(payload));
    let said = row.last_error.unwrap();
    assert!(said.starts_with("the payload can't be decoded: "), "{said}");
}

pub async fn finish_in_a_handlers_transaction_is_the_only_finish<D: TestDatabase>(db: D) {
    let (queue, _flow) = queue::<Work, D>(&db).await;
    queue.enqueue_many(&Work::numbered(20)).await.unwrap();
    let db = std::sync::Arc::new(db);
    let state = (queue.backend().clone(), std::sync::Arc::clone(&db));
    let worker = queue.worker_with(
        state,
        async |job: Leased<Work, D::Backend>, (backend, db)| -> JobResult {
            let db: std::sync::Arc<D> = db;
            let backend: D::Backend = backend;
            let mut tx = backend.begin().await?;
            db.note(&mut tx).await;
            let done = job.finish_in(&mut tx).await?;
            backend.commit(tx).await?;
            Ok(done)
        },
    );
    let summary = worker.concurrency(2).run_until_idle().await.unwrap();
    assert_eq!((summary.success_count, summary.lost_count), (20, 0));
    assert_eq!(db.notes().await, 20);
    assert_eq!(queue.counts().await.unwrap().of(Status::Success), 20);
}

pub async fn finish_in_without_a_commit_finishes_nothing<D: TestDatabase>(db: D) {
    let (queue, _flow) = queue::<Work, D>(&db).await;
    let id = queue.enqueue(&Work::new(1, "")).await.unwrap().id;
    let stop = tokio_util::sync::CancellationToken::new();
    let state = (queue.backend().clone(), stop.clone());
    let worker = queue.worker_with(
        state,
        async |job: Leased<Work, D::Backend>, (backend, stop)| {
            let backend: D::Backend = backend;
            let stop: tokio_util::sync::CancellationToken = stop;
            let mut tx = backend.begin().await?;
            let done = job.finish_in(&mut tx).await?;
            backend.rollback(tx).await?;
            stop.cancel();
            JobResult::Ok(done)
        },
    );
    worker.run_until(stop.cancelled_owned()).await.unwrap();
    // Nobody says otherwise until the lease lapses: then it is a failed
    // attempt like any other.
    assert_eq!(db.row(Work::schema(), id).await.status, Status::Running);
    db.pass(Work::schema(), Duration::from_secs(3600)).await;
    let lapsed = queue
        .backend()
        .reap(retryjob::op::reap::Reap { limit: 10 })
        .await
        .unwrap();
    assert_eq!(lapsed.finishes.len(), 1);
}
