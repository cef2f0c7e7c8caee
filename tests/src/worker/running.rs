//! Which jobs run, how often, and how many at once.

use std::{sync::Arc, time::Duration};

use retryjob::{
    Backend as _, ErrorKind, Event, Leased, Outcome, RetryJob as _, Status, Transition,
};
use retryjob_core::Queue;
use tokio::sync::Barrier;

use super::{Log, Work, queue};
use crate::TestDatabase;

pub async fn every_job_runs_once_and_the_worker_stops_when_idle<D: TestDatabase>(db: D) {
    let (queue, _flow) = queue::<Work, D>(&db).await;
    queue.enqueue_many(&Work::numbered(300)).await.unwrap();
    let log = Log::default();
    let worker = queue.worker_with(
        log.clone(),
        async |job: Leased<Work, D::Backend>, log: Log| {
            log.attempt(&job);
        },
    );
    let summary = worker.run_until_idle().await.unwrap();
    let attempts = log.attempts();
    assert_eq!(attempts.len(), 300);
    assert!(attempts.windows(2).all(|pair| pair[0].0 < pair[1].0));
    assert_eq!(summary.attempt_count, 300);
    assert_eq!(summary.success_count, 300);
    assert_eq!(queue.counts().await.unwrap().of(Status::Success), 300);
}

pub async fn workers_share_the_jobs_and_run_none_twice<D: TestDatabase>(db: D) {
    let (queue, _flow) = queue::<Work, D>(&db).await;
    queue.enqueue_many(&Work::numbered(400)).await.unwrap();
    let log = Log::default();
    let mut workers = tokio::task::JoinSet::new();
    for _ in 0..4 {
        let worker = queue.worker_with(
            log.clone(),
            async |job: Leased<Work, D::Backend>, log: Log| {
                log.attempt(&job);
                tokio::task::yield_now().await;
            },
        );
        workers.spawn(worker.pollers(2).concurrency(8).run_until_idle());
    }
    for summary in workers.join_all().await {
        assert_eq!(summary.unwrap().lost_count, 0);
    }
    let expected: Vec<_> = db
        .rows(Work::schema())
        .await
        .iter()
        .map(|row| (row.id, 1))
        .collect();
    assert_eq!(log.attempts(), expected);
}

pub async fn no_more_handlers_run_at_once_than_asked_for<D: TestDatabase>(db: D) {
    let (queue, _flow) = queue::<Work, D>(&db).await;
    queue.enqueue_many(&Work::numbered(60)).await.unwrap();
    let log = Log::default();
    // Every third handler waits for two others: fewer than three at once would
    // hang.
    let barrier = Arc::new(Barrier::new(3));
    let state = (log.clone(), barrier);
    let worker = queue.worker_with(
        state,
        async |_: Leased<Work, D::Backend>, (log, barrier)| {
            let _: &(Log, Arc<Barrier>) = &(log.clone(), Arc::clone(&barrier));
            log.enter();
            barrier.wait().await;
            log.leave();
        },
    );
    worker.concurrency(3).run_until_idle().await.unwrap();
    assert_eq!(log.running_max(), 3);
}

pub async fn retried_jobs_do_not_keep_fresh_ones_waiting<D: TestDatabase>(db: D) {
    let (queue, _flow) = queue::<Work, D>(&db).await;
    // Jobs that always fail, for as long as there are attempts, beside new
    // ones that come later.
    let failing: Vec<_> = (0..40).map(|no| Work::new(no, "fail")).collect();
    queue.enqueue_many(&failing).await.unwrap();
    let fresh: Vec<_> = (100..140).map(|no| Work::new(no, "")).collect();
    queue.enqueue_many(&fresh).await.unwrap();
    let worker = queue.worker(
        async |job: Leased<Work, D::Backend>| match job.what.as_str() {
            "fail" => Outcome::retry("again"),
            _ => Outcome::Done,
        },
    );
    worker
        .concurrency(4)
        .prefetch(4)
        .run_until_idle()
        .await
        .unwrap();
    let counts = queue.counts().await.unwrap();
    assert_eq!(counts.of(Status::Success), 40);
    assert_eq!(counts.of(Status::Dead), 40);
}

pub async fn events_tell_each_transition_in_order<D: TestDatabase>(db: D) {
    let (queue, _flow) = queue::<Work, D>(&db).await;
    let mut events = queue.events();
    let id = queue.enqueue(&Work::new(1, "")).await.unwrap().id;
    let worker = queue.worker(
        async |job: Leased<Work, D::Backend>| match job.attempt_no() {
            1 => Outcome::retry("too early"),
            _ => Outcome::Done,
        },
    );
    worker.run_until_idle().await.unwrap();
    queue.requeue(&[id]).await.unwrap();
    queue.cancel(&[id], "by hand").await.unwrap();
    let moved = |from, to, attempt_no, reason: Option<&str>| {
        Event::Moved(Transition {
            id,
            from,
            to,
            attempt_no,
            reason: reason.map(str::to_owned),
        })
    };
    use Status::{Dead, Pending, Retry, Running, Success};
    for expected in [
        moved(None, Pending, None, None),
        moved(Some(Pending), Running, Some(1), None),
        moved(Some(Running), Retry, Some(1), Some("too early")),
        moved(Some(Retry), Running, Some(2), None),
        moved(Some(Running), Success, Some(2), None),
        moved(Some(Success), Pending, None, None),
        moved(Some(Pending), Dead, None, Some("by hand")),
    ] {
        assert_eq!(events.try_recv().unwrap(), expected);
    }
    assert!(events.try_recv().is_err());
}

pub async fn an_error_that_no_retry_cures_ends_the_worker<D: TestDatabase>(db: D) {
    let backend = db.connect(Work::schema()).await;
    assert_eq!(backend.schema(), Work::schema());
    // Nobody installed the table.
    let queue = Queue::<Work, D::Backend>::new(backend);
    let worker = queue.worker(async |_: Leased<Work, D::Backend>| {});
    let error = worker
        .run_until(tokio::time::sleep(Duration::from_secs(50)))
        .await
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Schema, "{error}");
}
