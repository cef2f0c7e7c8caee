//! Workers that claim under the leases of their shards.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use retryjob::{
    Backend, DbTime, Due, Event, Leased, Node, Outcome, RetryJob, Status,
    op::shards::{ClaimHeld, HoldShards, Mark, ShardLease},
};
use tokio::{
    sync::{Notify, Semaphore},
    time::timeout,
};
use tokio_util::sync::CancellationToken;

use super::{Log, queue};
use crate::TestDatabase;

/// Its leases are short, as leases in tests go.
#[derive(Debug, RetryJob)]
#[retry_job(
    table = "held_work",
    shards = 8,
    lease = "800ms",
    lease_by = "shard",
    retry(fixed = "2ms", max_attempts = 3)
)]
pub struct HeldWork {
    #[job(unique)]
    no: u32,
    what: String,
}

fn numbered(count: u32, what: &str) -> Vec<HeldWork> {
    let what = what.to_owned();
    (0..count)
        .map(|no| HeldWork {
            no,
            what: what.clone(),
        })
        .collect()
}

async fn hold_all<B: Backend>(backend: &B, node: &Node) -> Vec<ShardLease> {
    let hold = HoldShards {
        node: node.name().clone(),
        shard_ids: (0..HeldWork::SCHEMA.shards).collect(),
        lease: HeldWork::SCHEMA.lease,
    };
    backend.hold_shards(hold).await.unwrap().held
}

pub async fn jobs_of_held_shards_run_once_each<D: TestDatabase>(db: D) {
    let (queue, _flow) = queue::<HeldWork, D>(&db).await;
    queue.enqueue_many(&numbered(300, "")).await.unwrap();
    let log = Log::default();
    let worker = queue.worker_with(
        log.clone(),
        async |job: Leased<HeldWork, D::Backend>, log: Log| {
            log.attempt(&job);
        },
    );
    let summary = worker.pollers(2).run_until_idle().await.unwrap();
    assert_eq!((summary.success_count, summary.lost_count), (300, 0));
    let rows = db.rows(HeldWork::schema()).await;
    let expected: Vec<_> = rows.iter().map(|row| (row.id, 1)).collect();
    assert_eq!(log.attempts(), expected);
    for row in rows {
        assert_eq!((row.status, row.attempt_no), (Status::Success, 1));
    }
}

pub async fn workers_hold_different_shards_and_run_no_job_twice<D: TestDatabase>(db: D) {
    let (queue, _flow) = queue::<HeldWork, D>(&db).await;
    queue.enqueue_many(&numbered(400, "")).await.unwrap();
    let log = Log::default();
    let mut workers = tokio::task::JoinSet::new();
    for _ in 0..3 {
        let worker = queue.worker_with(
            log.clone(),
            async |job: Leased<HeldWork, D::Backend>, log: Log| {
                log.attempt(&job);
                tokio::time::sleep(Duration::from_millis(1)).await;
            },
        );
        workers.spawn(worker.concurrency(4).run_until_idle());
    }
    for summary in workers.join_all().await {
        assert_eq!(summary.unwrap().lost_count, 0);
    }
    let rows = db.rows(HeldWork::schema()).await;
    let expected: Vec<_> = rows.iter().map(|row| (row.id, 1)).collect();
    assert_eq!(log.attempts(), expected);
}

pub async fn jobs_of_held_shards_that_fail_run_as_often_as_the_policy_says<D: TestDatabase>(db: D) {
    let (queue, _flow) = queue::<HeldWork, D>(&db).await;
    queue.enqueue_many(&numbered(20, "fail")).await.unwrap();
    let log = Log::default();
    let worker = queue.worker_with(
        log.clone(),
        async |job: Leased<HeldWork, D::Backend>, log: Log| {
            log.attempt(&job);
            Outcome::retry(job.what.as_str())
        },
    );
    worker.run_until_idle().await.unwrap();
    let rows = db.rows(HeldWork::schema()).await;
    let expected: Vec<_> = rows
        .iter()
        .flat_map(|row| [(row.id, 1), (row.id, 2), (row.id, 3)])
        .collect();
    assert_eq!(log.attempts(), expected);
    for row in rows {
        assert_eq!((row.status, row.attempt_no), (Status::Dead, 3));
    }
}

/// A node that has jobs in hand and is never heard of again.
pub async fn jobs_in_hand_of_a_crashed_holder_run_again_by_their_rows<D: TestDatabase>(db: D) {
    let (queue, _flow) = queue::<HeldWork, D>(&db).await;
    queue.enqueue_many(&numbered(30, "")).await.unwrap();
    let dead = Node::new("dead");
    let held = hold_all(queue.backend(), &dead).await;
    let first = Mark {
        next_attempt_at: DbTime::from_us(0),
        id: 0,
    };
    let claim = ClaimHeld {
        node: dead.name().clone(),
        owner: dead.shard_owner(),
        shards: held.iter().map(|lease| (lease.fence, first)).collect(),
        limit: 100,
    };
    let in_hand = queue.backend().claim_held(claim).await.unwrap().jobs;
    assert_eq!(in_hand.len(), 30);

    let worker = queue.worker(async |_: Leased<HeldWork, D::Backend>| {});
    let running = tokio::spawn(worker.run_until_idle());
    let summary = running.await.unwrap().unwrap();
    assert_eq!((summary.success_count, summary.lost_count), (30, 0));
    for row in db.rows(HeldWork::schema()).await {
        assert_eq!((row.attempt_no, row.lease_seq), (1, 1));
        // The owner of a row's own lease names the claim.
        let owner = row.lease_owner.unwrap();
        assert!(owner.as_str().contains(':'), "{owner}");
    }
}

pub async fn handler_whose_shard_is_lost_is_stopped_and_told<D: TestDatabase>(db: D) {
    let (queue, _flow) = queue::<HeldWork, D>(&db).await;
    let mut events = queue.events();
    let job = numbered(1, "").remove(0);
    let id = queue.enqueue(&job).await.unwrap().id;
    let state = (Arc::new(Notify::new()), Arc::new(AtomicU32::new(0)));
    let started = Arc::clone(&state.0);
    let worker = queue.worker_with(
        state,
        async |_: Leased<HeldWork, D::Backend>, (started, runs)| {
            let _: (&Arc<Notify>, &Arc<AtomicU32>) = (&started, &runs);
            if runs.fetch_add(1, Ordering::Relaxed) == 0 {
                started.notify_one();
                std::future::pending::<()>().await;
            }
        },
    );
    let running = tokio::spawn(worker.run_until_idle());
    started.notified().await;
    db.pass(HeldWork::schema(), Duration::from_secs(60)).await;
    let summary = running.await.unwrap().unwrap();
    assert_eq!((summary.lost_count, summary.success_count), (1, 1));
    let mut has_told = false;
    while let Ok(event) = events.try_recv() {
        has_told |= event == Event::LeaseLost { id, attempt_no: 1 };
    }
    assert!(has_told);
    let row = db.row(HeldWork::schema(), id).await;
    assert_eq!((row.status, row.lease_seq), (Status::Success, 1));
}

pub async fn a_worker_that_stops_gives_its_jobs_and_shards_back<D: TestDatabase>(db: D) {
    let (queue, _flow) = queue::<HeldWork, D>(&db).await;
    queue.enqueue_many(&numbered(20, "")).await.unwrap();
    let shutdown = CancellationToken::new();
    let state = shutdown.clone();
    let worker = queue.worker_with(
        state,
        async |_: Leased<HeldWork, D::Backend>, shutdown: CancellationToken| {
            shutdown.cancel();
            tokio::time::sleep(Duration::from_millis(50)).await;
        },
    );
    let worker = worker.concurrency(2).prefetch(8);
    let summary = worker.run_until(shutdown.cancelled_owned()).await.unwrap();
    assert_eq!((summary.lost_count, summary.failure_count), (0, 0));
    let counts = queue.counts().await.unwrap();
    assert_eq!(counts.of(Status::Success), summary.success_count);
    assert_eq!(counts.of(Status::Pending), 20 - summary.success_count);
    // Free at once, and nothing is in doubt.
    let held = hold_all(queue.backend(), &Node::new("next")).await;
    assert_eq!(held.len(), usize::from(HeldWork::SCHEMA.shards));
    assert!(held.iter().all(|lease| lease.doubt_until.is_none()));
}

pub async fn an_operators_hold_of_a_running_job_is_honoured<D: TestDatabase>(db: D) {
    let (queue, _flow) = queue::<HeldWork, D>(&db).await;
    let job = numbered(1, "").remove(0);
    let id = queue.enqueue(&job).await.unwrap().id;
    let state = queue.clone();
    let worker = queue.worker_with(state, async |job: Leased<HeldWork, D::Backend>, queue| {
        let _: &retryjob_core::Queue<HeldWork, D::Backend> = &queue;
        queue.hold(&[job.id()], "not now").await.unwrap();
    });
    let summary = worker.run_until_idle().await.unwrap();
    assert_eq!((summary.lost_count, summary.success_count), (1, 0));
    let row = db.row(HeldWork::schema(), id).await;
    assert_eq!((row.status, row.attempt_no), (Status::Hold, 0));
}

/// A claim goes on from where the last one ended while jobs are in hand; what
/// lies before that place is found all the same.
pub async fn jobs_with_an_earlier_time_are_found_while_others_are_in_hand<D: TestDatabase>(db: D) {
    const EARLIER: u32 = 16;
    let (queue, _flow) = queue::<HeldWork, D>(&db).await;
    let mut jobs = numbered(EARLIER + 1, "");
    "waits".clone_into(&mut jobs[0].what);
    queue.enqueue(&jobs[0]).await.unwrap();
    let started = Arc::new(Notify::new());
    let ran = Arc::new(Semaphore::new(0));
    let go = CancellationToken::new();
    let state = (Arc::clone(&started), Arc::clone(&ran), go.clone());
    let worker = queue.worker_with(
        state,
        async |job: Leased<HeldWork, D::Backend>, (started, ran, go)| {
            let _: (&Arc<Notify>, &Arc<Semaphore>, &CancellationToken) = (&started, &ran, &go);
            if job.what == "waits" {
                started.notify_one();
                go.cancelled().await;
            } else {
                ran.add_permits(1);
            }
        },
    );
    let running = tokio::spawn(worker.run_until_idle());
    started.notified().await;
    // Of all shards, and so of that one too.
    let long_ago = Due::At(DbTime::from_us(1_000_000));
    let earlier = jobs[1..].iter().map(|job| (job, long_ago));
    queue.enqueue_many_due(earlier).await.unwrap();
    let all_ran = ran.acquire_many(EARLIER);
    let all_ran = timeout(Duration::from_secs(60), all_ran).await;
    drop(all_ran.unwrap().unwrap());
    go.cancel();
    let summary = running.await.unwrap().unwrap();
    assert_eq!(summary.success_count, u64::from(EARLIER) + 1);
}
