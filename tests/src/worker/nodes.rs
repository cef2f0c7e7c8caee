//! How workers share the shards.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex},
    thread,
    time::Duration,
};

use retryjob::{
    Backend as _, Leased, RetryJob, ShardUse, Status,
    memory::JobRow,
    op::nodes::{Heartbeat, Leave, NodeName},
};
use retryjob_core::{Queue, shard::shards_of};
use tokio::sync::{Notify, oneshot};
use tokio_util::sync::CancellationToken;

use super::queue;
use crate::{SqlDatabase, TestDatabase};

/// A job with shards to share; its lease is so long that no membership lapses
/// while the test runs.
#[derive(Debug, RetryJob)]
#[retry_job(table = "shared", shards = 16, lease = "16s")]
pub struct Shared {
    #[job(shard_by, unique)]
    no: u32,
}

/// The same with a short lease.
#[derive(Debug, RetryJob)]
#[retry_job(
    table = "brief",
    shards = 16,
    lease = "2s",
    retry(fixed = "1ms", max_attempts = 5)
)]
pub struct Brief {
    #[job(shard_by, unique)]
    no: u32,
}

fn shared(numbers: std::ops::Range<u32>) -> Vec<Shared> {
    numbers.map(|no| Shared { no }).collect()
}

fn brief(count: u32) -> Vec<Brief> {
    (0..count).map(|no| Brief { no }).collect()
}

/// Another node, which is a member for an hour and claims nothing.
async fn silent_node<J: RetryJob, B: retryjob::Backend>(queue: &Queue<J, B>) -> NodeName {
    let node = NodeName::from_row("silent");
    let heartbeat = Heartbeat {
        node: node.clone(),
        member_for: Duration::from_secs(3600),
    };
    queue.backend().heartbeat(heartbeat).await.unwrap();
    node
}

/// Which node claimed a job last, and with its how-manieth claim.
fn claimed_by(row: &JobRow) -> (String, u64) {
    let owner = row.lease_owner.as_ref().unwrap();
    let (node, claim_no) = owner.as_str().rsplit_once(':').unwrap();
    (node.to_owned(), claim_no.parse().unwrap())
}

/// The shards that each node claimed jobs of.
fn shards_by_node<'a>(
    rows: impl IntoIterator<Item = &'a JobRow>,
) -> BTreeMap<String, BTreeSet<u16>> {
    let mut shards: BTreeMap<_, BTreeSet<u16>> = BTreeMap::new();
    for row in rows {
        let (node, _) = claimed_by(row);
        shards.entry(node).or_default().insert(row.shard_id);
    }
    shards
}

fn successes(rows: &[JobRow]) -> usize {
    let is_success = |row: &&JobRow| row.status == Status::Success;
    rows.iter().filter(is_success).count()
}

pub async fn a_worker_leaves_the_shards_of_others_alone_or_for_last<D: TestDatabase>(db: D) {
    let (queue, _flow) = queue::<Shared, D>(&db).await;
    queue.enqueue_many(&shared(0..200)).await.unwrap();
    let silent = silent_node(&queue).await;
    let progress = Arc::new(Notify::new());
    let worker = queue.worker_with(
        Arc::clone(&progress),
        async |_: Leased<Shared, D::Backend>, progress: Arc<Notify>| progress.notify_one(),
    );
    let running = tokio::spawn(worker.run_until_idle());
    progress.notified().await;
    let members = db.nodes(Shared::schema()).await;
    assert_eq!(members.len(), 2);
    let of_silent = shards_of(&silent, &members, Shared::SCHEMA.shards);
    if D::Backend::SHARDS == ShardUse::Own {
        let is_own = |row: &&JobRow| !of_silent.contains(&row.shard_id);
        let rows = db.rows(Shared::schema()).await;
        let own_count = rows.iter().filter(is_own).count();
        assert!((1..200).contains(&own_count));
        while successes(&db.rows(Shared::schema()).await) < own_count {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        // The rest has to wait until its node is no member any more.
        assert!(!running.is_finished());
        queue.backend().leave(Leave { node: silent }).await.unwrap();
    }
    running.await.unwrap().unwrap();
    let rows = db.rows(Shared::schema()).await;
    assert_eq!(successes(&rows), 200);
    if D::Backend::SHARDS != ShardUse::Any {
        let of = |is_own: bool| {
            let of = rows
                .iter()
                .filter(|row| of_silent.contains(&row.shard_id) != is_own);
            of.map(|row| claimed_by(row).1).collect::<BTreeSet<_>>()
        };
        assert!(of(true).last() <= of(false).first(), "its own come first");
    }
}

pub async fn workers_never_claim_from_the_same_shard_while_membership_is_stable<D>(db: D)
where
    D: TestDatabase,
{
    const ROUND: u32 = 100;
    if D::Backend::SHARDS != ShardUse::Own {
        return;
    }
    let (queue, _flow) = queue::<Shared, D>(&db).await;
    let shutdown = CancellationToken::new();
    let mut running = Vec::new();
    for no in 0..3 {
        let worker = queue.worker(async |_: Leased<Shared, D::Backend>| {
            tokio::task::yield_now().await;
        });
        let worker = worker.node(&format!("node-{no}")).concurrency(4);
        running.push(tokio::spawn(
            worker.run_until(shutdown.clone().cancelled_owned()),
        ));
    }
    hear_of_each_other(&db, 3).await;
    for round in 0..5 {
        let numbers = round * ROUND..(round + 1) * ROUND;
        let stored = queue.enqueue_many(&shared(numbers)).await.unwrap();
        while queue.backend().has_open().await.unwrap() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        let members = db.nodes(Shared::schema()).await;
        let expected: BTreeMap<_, _> = members
            .iter()
            .map(|node| {
                let owned = shards_of(node, &members, Shared::SCHEMA.shards);
                (node.to_string(), owned)
            })
            .collect();
        let rows = db.rows(Shared::schema()).await;
        let of_round = |row: &&JobRow| stored.iter().any(|stored| stored.id == row.id);
        let shards = shards_by_node(rows.iter().filter(of_round));
        assert_eq!(shards, expected, "round {round}");
    }
    shutdown.cancel();
    for running in running {
        assert_eq!(running.await.unwrap().unwrap().lost_count, 0);
    }
    assert_eq!(db.nodes(Shared::schema()).await, [], "all have left");
}

/// Waits until this many nodes are there and each has sent two more heartbeats:
/// when the second is on its way, what the first was told is known.
async fn hear_of_each_other<D: TestDatabase>(db: &D, nodes: usize) {
    let mut all_since = None;
    for _ in 0..3 {
        loop {
            let memberships = db.memberships(Shared::schema()).await;
            let ends = || memberships.iter().map(|(_, until)| *until);
            if memberships.len() == nodes && ends().min() > all_since {
                all_since = ends().max();
                break;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
}

/// Runs a worker on a runtime of its own until it is killed, which drops every
/// task of it where it stands. Its handlers say that one began, and never end.
fn doomed<D: TestDatabase>(
    db: Arc<D>,
    started: oneshot::Sender<()>,
    kill: CancellationToken,
) -> thread::JoinHandle<()> {
    let work = async move {
        let backend = db.connect(Brief::schema()).await;
        let queue = Queue::<Brief, D::Backend>::new(backend);
        let started = Arc::new(Mutex::new(Some(started)));
        let worker = queue.worker_with(
            started,
            async |_: Leased<Brief, D::Backend>, started: Arc<Mutex<Option<_>>>| {
                let started: Option<oneshot::Sender<()>> = started.lock().unwrap().take();
                if let Some(started) = started {
                    started.send(()).unwrap();
                }
                std::future::pending::<()>().await;
            },
        );
        let worker = worker.node("doomed").keep_in_thread(false);
        tokio::select! {
            ended = worker.run_until(std::future::pending()) => drop(ended.unwrap()),
            () = kill.cancelled() => {}
        }
    };
    thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build();
        runtime.unwrap().block_on(work);
    })
}

pub async fn shards_of_a_crashed_worker_are_taken_over<D: TestDatabase>(db: D) {
    let db = Arc::new(db);
    let (queue, _flow) = queue::<Brief, D>(&db).await;
    queue.enqueue_many(&brief(100)).await.unwrap();
    let (started, has_started) = oneshot::channel();
    let kill = CancellationToken::new();
    let doomed = doomed(Arc::clone(&db), started, kill.clone());
    has_started.await.unwrap();
    let worker = queue.worker(async |_: Leased<Brief, D::Backend>| {});
    let running = tokio::spawn(worker.node("survivor").run_until_idle());
    kill.cancel();
    doomed.join().unwrap();
    let known = db.nodes(Brief::schema()).await;
    let is_doomed = |node: &NodeName| node.as_str().starts_with("doomed");
    assert!(known.iter().any(is_doomed), "a crash is no leave");

    let summary = running.await.unwrap().unwrap();
    // What the crashed worker had in hand lapsed, and was run again.
    assert!((1..100).contains(&summary.reaped_count), "{summary:?}");
    assert_eq!(summary.success_count, 100);
    let shards = shards_by_node(&db.rows(Brief::schema()).await);
    let nodes: Vec<_> = shards.keys().collect();
    assert!(
        matches!(nodes[..], [node] if node.starts_with("survivor")),
        "{nodes:?}"
    );
}

pub async fn a_worker_whose_heartbeats_fail_works_on_any_shard<D: SqlDatabase>(db: D) {
    let (queue, _flow) = queue::<Brief, D>(&db).await;
    queue.enqueue_many(&brief(100)).await.unwrap();
    // By the last thing that the worker hears, half of the shards are not its
    // own.
    silent_node(&queue).await;
    let started = Arc::new(Notify::new());
    let worker = queue.worker_with(
        Arc::clone(&started),
        async |_: Leased<Brief, D::Backend>, started: Arc<Notify>| started.notify_one(),
    );
    let running = tokio::spawn(worker.run_until_idle());
    started.notified().await;
    db.execute("DROP TABLE retryjob_node").await;
    let summary = running.await.unwrap().unwrap();
    assert_eq!(summary.success_count, 100);
}
