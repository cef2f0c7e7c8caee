//! Workers, reapers, bulk requeues and counts, all at once.

use std::{sync::Arc, time::Duration};

use rand::RngExt as _;
use retryjob::{Backend, RetryJob as _};
use retryjob_core::{Queue, op::reap::Reap};
use retryjob_tests::{
    SqlDatabase as _,
    database::server::{Flavour, Server},
    faults::{
        Instance,
        report::{settle, times},
        task::{Task, Work, Writes, history, prepare, rules, worker},
    },
    history::{Recorded, Rules},
};
use sqlx::{MySqlConnection, Row as _};
use tokio::{sync::Mutex, task::JoinSet, time::Instant};
use tokio_util::sync::CancellationToken;

use super::Site;

const WORKERS: usize = 32;
const REAPERS: usize = 4;

/// Jobs that go round and round.
const JOBS: u64 = 2000;

/// Ids of one requeue.
const BULK: usize = 500;

/// Among this many claimed jobs, fewer than one deadlock.
const CLAIMS_PER_DEADLOCK: usize = 1000;

/// One storm at a time: three of them are a test of the disk.
static STORM: Mutex<()> = Mutex::const_new(());

pub(crate) async fn workers_reapers_and_operators_at_once_see_no_error<F>(database: &'static str)
where
    F: Flavour<Backend: Writes>,
{
    let _alone = STORM.lock().await;
    let server = Instance::start(F::KIND, &["--max-connections=900"]).await;
    let db = Server::<F>::create_on(server.url()).await;
    prepare(&db, Task::schema()).await;
    let inner = F::Backend::connect(&db.url(), Task::schema())
        .await
        .unwrap();
    let site = Site::on(db, inner);
    let jobs: Vec<_> = (0..JOBS)
        .map(|no| Task::new(no, Work::Plain, no % 8))
        .collect();
    let enqueued = site.queue.enqueue_many(&jobs).await.unwrap();
    let ids: Arc<[u64]> = enqueued.iter().map(|answer| answer.id).collect();
    let before = deadlocks(&mut server.connection().await).await;

    let stop = CancellationToken::new();
    let mut workers = JoinSet::new();
    for _ in 0..WORKERS {
        let inner = F::Backend::connect(&site.db.url(), Task::schema()).await;
        let recorder = site.queue.backend().recorder().clone();
        let queue = Queue::<Task, _>::new(Recorded::new(inner.unwrap(), recorder));
        let worker = worker(&queue).concurrency(4);
        workers.spawn(worker.run_until(stop.clone().cancelled_owned()));
    }
    let mut beside = JoinSet::new();
    let storm_ends = Instant::now() + Duration::from_secs(times(60, 600) as u64);
    for _ in 0..REAPERS {
        beside.spawn(reap(site.queue.backend().clone(), storm_ends));
    }
    for _ in 0..2 {
        beside.spawn(requeue(site.queue.clone(), Arc::clone(&ids), storm_ends));
    }
    beside.spawn(count(site.queue.clone(), storm_ends));
    let operations: usize = beside.join_all().await.into_iter().sum();
    site.drained().await;
    stop.cancel();
    for worker in workers.join_all().await {
        worker.unwrap();
    }

    let deadlocks = deadlocks(&mut server.connection().await).await - before;
    let history = history(&site.db, Task::schema(), site.records()).await;
    let is_claim = |moved: &&retryjob_tests::history::Moved| moved.is_claim();
    let claims = history.moves.iter().filter(is_claim).count();
    let rules = Rules {
        has_effects: false,
        ..rules(&Task::SCHEMA.retry)
    };
    let counts =
        format!("{claims} jobs claimed, {operations} operations beside, {deadlocks} deadlocks");
    let fault = "32 workers, 4 reapers, requeues and counts";
    settle(fault, database, &counts, &history, &rules);
    assert!(
        deadlocks * CLAIMS_PER_DEADLOCK < claims,
        "{deadlocks} deadlocks in {claims} claims on {database}; the last one:\n{}",
        last_deadlock(&mut server.connection().await).await
    );
}

/// What the server remembers of it.
async fn last_deadlock(connection: &mut MySqlConnection) -> String {
    let show = sqlx::raw_sql("SHOW ENGINE INNODB STATUS");
    let row = show.fetch_one(connection).await.unwrap();
    let status: String = row.get("Status");
    let from = status.find("LATEST DETECTED DEADLOCK").unwrap_or(0);
    let to = status[from..].find("\nTRANSACTIONS\n");
    status[from..to.map_or(status.len(), |to| from + to)].to_owned()
}

async fn deadlocks(connection: &mut MySqlConnection) -> usize {
    let select = "SELECT CAST(`count` AS SIGNED) FROM information_schema.INNODB_METRICS \
                  WHERE name = 'lock_deadlocks'";
    let count: i64 = sqlx::query_scalar(select)
        .fetch_one(connection)
        .await
        .unwrap();
    usize::try_from(count).unwrap()
}

async fn reap<B: Backend>(backend: B, ends: Instant) -> usize {
    let mut count = 0;
    while Instant::now() < ends {
        backend.reap(Reap { limit: 100 }).await.unwrap();
        count += 1;
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    count
}

async fn requeue<B: Backend>(queue: Queue<Task, B>, ids: Arc<[u64]>, ends: Instant) -> usize {
    let mut count = 0;
    while Instant::now() < ends {
        let from = rand::rng().random_range(0..ids.len() - BULK);
        queue.requeue(&ids[from..from + BULK]).await.unwrap();
        count += 1;
        tokio::time::sleep(Duration::from_millis(250)).await;
    }
    count
}

async fn count<B: Backend>(queue: Queue<Task, B>, ends: Instant) -> usize {
    let mut count = 0;
    while Instant::now() < ends {
        assert_eq!(queue.counts().await.unwrap().total(), JOBS);
        count += 1;
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    count
}
