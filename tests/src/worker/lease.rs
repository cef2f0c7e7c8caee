//! Leases: kept, lost and taken back.

use std::{sync::Arc, time::Duration};

use retryjob::{
    Backend, Event, Leased, Node, RetryJob, Status,
    op::{claim::Claim, due::Lane, reap::Reap},
};
use tokio::sync::Notify;

use super::{Log, queue};
use crate::TestDatabase;

/// A job whose lease is short, as leases in tests go.
#[derive(Debug, RetryJob)]
#[retry_job(
    table = "short",
    shards = 2,
    lease = "800ms",
    retry(fixed = "1ms", max_attempts = 5)
)]
pub struct Short {
    #[job(unique)]
    no: u32,
}

pub async fn handler_that_outlives_its_lease_keeps_it<D: TestDatabase>(db: D) {
    let (queue, _flow) = queue::<Short, D>(&db).await;
    let jobs: Vec<_> = (0..2).map(|no| Short { no }).collect();
    queue.enqueue_many(&jobs).await.unwrap();
    let log = Log::default();
    let worker = queue.worker_with(
        log.clone(),
        async |job: Leased<Short, D::Backend>, log: Log| {
            log.attempt(&job);
            let three_leases = 3 * Short::SCHEMA.lease;
            if D::Backend::KEEPS_IN_THREAD {
                // Both threads of the runtime are gone meanwhile.
                std::thread::sleep(three_leases);
            } else {
                tokio::time::sleep(three_leases).await;
            }
        },
    );
    let summary = worker.run_until_idle().await.unwrap();
    assert_eq!((summary.success_count, summary.lost_count), (2, 0));
    assert_eq!(log.attempts().iter().map(|(_, seq)| *seq).max(), Some(1));
}

pub async fn handler_whose_lease_is_lost_is_stopped_and_told<D: TestDatabase>(db: D) {
    let (queue, _flow) = queue::<Short, D>(&db).await;
    let mut events = queue.events();
    let id = queue.enqueue(&Short { no: 1 }).await.unwrap().id;
    let started = Arc::new(Notify::new());
    let state = Arc::clone(&started);
    let worker = queue.worker_with(
        state,
        async |job: Leased<Short, D::Backend>, started: Arc<Notify>| {
            if job.attempt_no() == 1 {
                started.notify_one();
                std::future::pending::<()>().await;
            }
        },
    );
    let running = tokio::spawn(
        worker
            .reap_every(Duration::from_millis(50))
            .run_until_idle(),
    );
    started.notified().await;
    // By the database's clock the lease has lapsed long ago.
    db.pass(Short::schema(), Duration::from_secs(60)).await;
    let summary = running.await.unwrap().unwrap();
    assert_eq!((summary.lost_count, summary.success_count), (1, 1));
    let mut has_told = false;
    while let Ok(event) = events.try_recv() {
        has_told |= event == Event::LeaseLost { id, attempt_no: 1 };
    }
    assert!(has_told);
    let row = db.row(Short::schema(), id).await;
    assert_eq!(
        (row.status, row.attempt_no, row.lease_seq),
        (Status::Success, 2, 2)
    );
}

/// A worker that claims up to so many jobs and is never heard of again.
async fn claim_and_die<B: Backend>(backend: &B, lane: Lane, limit: u16) -> usize {
    let heads = backend.due_heads().await.unwrap().of(lane);
    let claim = Claim {
        owner: Node::new("dead").lease_owner(),
        lane,
        heads: heads.heads,
        limit,
        lease: Short::SCHEMA.lease,
    };
    backend.claim(claim).await.unwrap().jobs.len()
}

pub async fn jobs_of_a_dead_worker_are_reaped_and_run_again<D: TestDatabase>(db: D) {
    let (queue, _flow) = queue::<Short, D>(&db).await;
    let jobs: Vec<_> = (0..30).map(|no| Short { no }).collect();
    queue.enqueue_many(&jobs).await.unwrap();
    assert_eq!(claim_and_die(queue.backend(), Lane::Fresh, 30).await, 30);
    let worker = queue.worker(async |_: Leased<Short, D::Backend>| {});
    let summary = worker.run_until_idle().await.unwrap();
    assert_eq!((summary.reaped_count, summary.success_count), (30, 30));
    for row in db.rows(Short::schema()).await {
        assert_eq!((row.attempt_no, row.lease_seq), (2, 2));
    }
}

pub async fn last_attempt_after_crashes_runs_with_nothing_else_in_hand<D: TestDatabase>(db: D) {
    let (queue, _flow) = queue::<Short, D>(&db).await;
    let id = queue.enqueue(&Short { no: 0 }).await.unwrap().id;
    let attempts_max = Short::SCHEMA.retry.max_attempts;
    for attempt in 1..attempts_max {
        let lane = if attempt == 1 {
            Lane::Fresh
        } else {
            Lane::Retry
        };
        assert_eq!(claim_and_die(queue.backend(), lane, 1).await, 1);
        db.pass(Short::schema(), 10 * Short::SCHEMA.lease).await;
        queue.backend().reap(Reap { limit: 10 }).await.unwrap();
        db.pass(Short::schema(), 10 * Short::SCHEMA.lease).await;
    }
    let others: Vec<_> = (1..60).map(|no| Short { no }).collect();
    queue.enqueue_many(&others).await.unwrap();
    let log = Log::default();
    let worker = queue.worker_with(
        log.clone(),
        async |job: Leased<Short, D::Backend>, log: Log| {
            log.enter();
            if job.no == 0 {
                log.attempt(&job);
                assert_eq!(log.running(), 1, "others were running");
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
            if job.no == 0 {
                assert_eq!(log.running(), 1, "others were started meanwhile");
            }
            log.leave();
        },
    );
    let summary = worker.concurrency(4).run_until_idle().await.unwrap();
    assert_eq!(log.attempts(), [(id, attempts_max.into())]);
    assert_eq!((summary.success_count, summary.failure_count), (60, 0));
}
