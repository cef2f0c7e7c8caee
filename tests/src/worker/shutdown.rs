//! How a worker ends.

use std::{sync::Arc, time::Duration};

use retryjob::{Leased, RetryJob as _, Status};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use super::{Work, queue};
use crate::TestDatabase;

pub async fn shutdown_lets_handlers_finish_and_gives_back_the_rest<D: TestDatabase>(db: D) {
    let (queue, _flow) = queue::<Work, D>(&db).await;
    queue.enqueue_many(&Work::numbered(10)).await.unwrap();
    let shutdown = CancellationToken::new();
    let state = shutdown.clone();
    let worker = queue.worker_with(
        state,
        async |_: Leased<Work, D::Backend>, shutdown: CancellationToken| {
            // The first handler asks for the shutdown that it then survives.
            shutdown.cancel();
            tokio::time::sleep(Duration::from_millis(100)).await;
        },
    );
    let worker = worker.concurrency(2).prefetch(8);
    let summary = worker.run_until(shutdown.cancelled_owned()).await.unwrap();
    assert_eq!((summary.lost_count, summary.failure_count), (0, 0));
    let finished = summary.success_count;
    assert!((1..10).contains(&finished), "{finished} handlers ran");
    let counts = queue.counts().await.unwrap();
    assert_eq!(counts.of(Status::Success), finished);
    assert_eq!(counts.of(Status::Pending), 10 - finished);
    for row in db.rows(Work::schema()).await {
        let attempts_made = u16::from(row.status == Status::Success);
        assert_eq!(row.attempt_no, attempts_made);
    }
}

pub async fn shutdown_drops_handlers_that_take_too_long<D: TestDatabase>(db: D) {
    let (queue, _flow) = queue::<Work, D>(&db).await;
    let id = queue.enqueue(&Work::new(1, "")).await.unwrap().id;
    let shutdown = CancellationToken::new();
    let state = shutdown.clone();
    let worker = queue.worker_with(
        state,
        async |_: Leased<Work, D::Backend>, shutdown: CancellationToken| {
            shutdown.cancel();
            std::future::pending::<()>().await;
        },
    );
    let worker = worker.drain_for(Duration::from_millis(20));
    worker.run_until(shutdown.cancelled_owned()).await.unwrap();
    let row = db.row(Work::schema(), id).await;
    assert_eq!((row.status, row.attempt_no), (Status::Pending, 0));
}

pub async fn a_dropped_worker_leaves_no_job_behind<D: TestDatabase>(db: D) {
    let (queue, _flow) = queue::<Work, D>(&db).await;
    let id = queue.enqueue(&Work::new(1, "")).await.unwrap().id;
    let started = Arc::new(Notify::new());
    let state = Arc::clone(&started);
    let worker = queue.worker_with(
        state,
        async |_: Leased<Work, D::Backend>, started: Arc<Notify>| {
            started.notify_one();
            std::future::pending::<()>().await;
        },
    );
    let mut events = queue.events();
    let running = tokio::spawn(worker.run_until(std::future::pending()));
    started.notified().await;
    running.abort();
    // Its loops end by themselves, and the last thing they write is this.
    loop {
        let retryjob::Event::Moved(moved) = events.recv().await.unwrap() else {
            continue;
        };
        if moved.from == Some(Status::Running) {
            break;
        }
    }
    let row = db.row(Work::schema(), id).await;
    assert_eq!((row.status, row.attempt_no), (Status::Pending, 0));
}
