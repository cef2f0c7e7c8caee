//! Nodes come and go every 200 ms while jobs run, on MySQL 5.7, where each
//! claims from its own shards only.
//!
//! A node is a worker on a thread and connections of its own; killing it drops
//! every task of it where it stands, as a crash would: nothing is given back
//! and nothing is said. `RETRYJOB_FAULTS=nightly` runs it 20 times.
#![allow(clippy::unwrap_used, reason = "a panic is a failed test")]

use std::{
    collections::{BTreeMap, BTreeSet},
    thread,
    time::Duration,
};

use rand::RngExt as _;
use retryjob::{Backend as _, DbTime, Leased, Mysql57, RetryJob, Status, op::nodes::NodeName};
use retryjob_core::Queue;
use retryjob_tests::{
    Mysql57Server, SqlDatabase as _, TestDatabase as _,
    faults::report::{say, settle, times},
    history::{
        Attempt, Event, History, Recorded, Recorder, Rules,
        shards::{NodeMoved, contention, longest_unclaimed, longest_unowned},
    },
};
use sqlx::{Connection as _, MySqlConnection, Row as _};
use tokio_util::sync::CancellationToken;

/// Many attempts: each kill costs one of every job in hand.
#[derive(Debug, RetryJob)]
#[retry_job(
    table = "churn",
    shards = 32,
    lease = "2s",
    retry(fixed = "1ms", max_attempts = 100)
)]
struct Churn {
    #[job(shard_by, unique)]
    no: u32,
}

type OnMysql57 = Recorded<Mysql57>;

const JOBS: u32 = 10_000;
/// Nodes at any time.
const NODES: usize = 5;
/// Between one that comes and one that is killed.
const CHURN_EVERY: Duration = Duration::from_millis(200);
/// Jobs that are enqueued at a time.
const ENQUEUE: u32 = 50;
/// Few jobs wait at any time, so that they wait for an owner and not for a free
/// hand.
const WAITING_MAX: u64 = 100;
/// A run that hangs fails after this; nothing is measured by it.
const HANG: Duration = Duration::from_secs(240);

/// Notes every change of the table of nodes, as the database makes it.
const WATCH_NODES: [&str; 4] = [
    "CREATE TABLE node_move (seq BIGINT UNSIGNED AUTO_INCREMENT PRIMARY KEY,
        at DATETIME(6) NOT NULL, node VARCHAR(40) NOT NULL, member_until DATETIME(6))",
    "CREATE TRIGGER node_joins AFTER INSERT ON retryjob_node FOR EACH ROW
        INSERT INTO node_move (at, node, member_until)
        VALUES (UTC_TIMESTAMP(6), NEW.node, NEW.member_until)",
    "CREATE TRIGGER node_stays AFTER UPDATE ON retryjob_node FOR EACH ROW
        INSERT INTO node_move (at, node, member_until)
        VALUES (UTC_TIMESTAMP(6), NEW.node, NEW.member_until)",
    "CREATE TRIGGER node_leaves AFTER DELETE ON retryjob_node FOR EACH ROW
        INSERT INTO node_move (at, node, member_until) VALUES (UTC_TIMESTAMP(6), OLD.node, NULL)",
];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nodes_that_come_and_go_double_no_claim_and_leave_no_shard_unowned_for_a_lease() {
    for _ in 0..times(1, 20) {
        let db = Mysql57Server::create().await;
        tokio::time::timeout(HANG, churn(&db)).await.unwrap();
    }
}

async fn churn(db: &Mysql57Server) {
    let recorder = Recorder::in_memory();
    let backend = db.installed(Churn::schema()).await;
    db.watch(Churn::schema()).await;
    let mut watch = MySqlConnection::connect(&db.url()).await.unwrap();
    for sql in WATCH_NODES {
        sqlx::raw_sql(sql).execute(&mut watch).await.unwrap();
    }
    let queue = Queue::<Churn, _>::new(Recorded::new(backend, recorder.clone()));
    let producer = tokio::spawn(produce(queue.clone()));

    let mut cluster = Cluster::new(db.url(), recorder.clone());
    (0..NODES).for_each(|_| cluster.add());
    while !producer.is_finished() || queue.backend().has_open().await.unwrap() {
        tokio::time::sleep(CHURN_EVERY).await;
        cluster.add();
        cluster.kill_one();
    }
    producer.await.unwrap();
    let (added, killed) = cluster.stop();

    let rows = db.rows(Churn::schema()).await;
    assert!(rows.iter().all(|row| row.status == Status::Success));
    let shard_of: BTreeMap<_, _> = rows.iter().map(|row| (row.id, row.shard_id)).collect();
    let history = History {
        records: recorder.records(),
        moves: db.moves().await,
        effects: Vec::new(),
        rows,
    };
    let is_killed = |node: &NodeName| killed.contains(base_name(node));
    let unowned = longest_unowned(
        &node_moves(&mut watch).await,
        is_killed,
        Churn::SCHEMA.shards,
    );
    let unclaimed = longest_unclaimed(&history.moves, &shard_of);
    let claims = contention(&history.records);
    let counts = format!(
        "{added} nodes added, {} killed, {} calls of claim, {} contended, of a lease of {} ms \
         no shard unowned for more than {} and unclaimed for more than {}",
        killed.len(),
        claims.claim_count,
        claims.contended_count,
        Churn::SCHEMA.lease.as_millis(),
        unowned.as_millis(),
        unclaimed.as_millis(),
    );
    let rules = Rules::of(&Churn::SCHEMA.retry);
    settle("nodes come and go", "MySQL 5.7", &counts, &history, &rules);
    // How soon an owner then claims depends on the host as well, and is said.
    assert!(unowned <= Churn::SCHEMA.lease, "{counts}");
    assert!(unowned > Duration::ZERO, "nobody was killed: {counts}");
}

async fn produce(queue: Queue<Churn, OnMysql57>) {
    for first in (0..JOBS).step_by(ENQUEUE as usize) {
        let jobs: Vec<_> = (first..first + ENQUEUE).map(|no| Churn { no }).collect();
        queue.enqueue_many(&jobs).await.unwrap();
        loop {
            tokio::time::sleep(Duration::from_millis(20)).await;
            let counts = queue.counts().await.unwrap();
            if counts.of(Status::Pending) + counts.of(Status::Retry) < WAITING_MAX {
                break;
            }
        }
    }
}

async fn node_moves(connection: &mut MySqlConnection) -> Vec<NodeMoved> {
    let sql = "SELECT at, node, member_until FROM node_move ORDER BY seq";
    let rows = sqlx::query(sql).fetch_all(connection).await.unwrap();
    let moved = rows.iter().map(|row| NodeMoved {
        at: DbTime::from_utc(row.get("at")),
        node: NodeName::from_row(row.get("node")),
        until: row
            .get::<Option<chrono::NaiveDateTime>, _>("member_until")
            .map(DbTime::from_utc),
    });
    moved.collect()
}

/// The name that the node was given, without its suffix.
fn base_name(node: &NodeName) -> &str {
    let name = node.as_str();
    name.rsplit_once('-').map_or(name, |(base, _)| base)
}

/// The nodes that live, and those that did.
struct Cluster {
    url: String,
    recorder: Recorder,
    nodes: Vec<Node>,
    added: usize,
    killed: Vec<Node>,
}

struct Node {
    name: String,
    kill: CancellationToken,
    stop: CancellationToken,
    thread: thread::JoinHandle<()>,
}

impl Cluster {
    fn new(url: String, recorder: Recorder) -> Self {
        Self {
            url,
            recorder,
            nodes: Vec::new(),
            added: 0,
            killed: Vec::new(),
        }
    }

    fn add(&mut self) {
        self.added += 1;
        let (kill, stop) = (CancellationToken::new(), CancellationToken::new());
        let name = format!("node-{}", self.added);
        let work = work(
            name.clone(),
            self.url.clone(),
            self.recorder.clone(),
            stop.clone(),
        );
        let killed = kill.clone();
        let thread = thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build();
            runtime.unwrap().block_on(async {
                tokio::select! {
                    () = killed.cancelled() => {}
                    () = work => {}
                }
            });
        });
        self.nodes.push(Node {
            name,
            kill,
            stop,
            thread,
        });
    }

    fn kill_one(&mut self) {
        let at = rand::rng().random_range(0..self.nodes.len());
        let node = self.nodes.swap_remove(at);
        node.kill.cancel();
        self.killed.push(node);
    }

    /// Lets those that live come to their end; how many were added, and which
    /// were killed.
    fn stop(self) -> (usize, BTreeSet<String>) {
        let mut killed = BTreeSet::new();
        for node in self.killed {
            killed.insert(node.name);
            node.thread.join().unwrap();
        }
        for node in self.nodes {
            node.stop.cancel();
            node.thread.join().unwrap();
        }
        (self.added, killed)
    }
}

async fn work(name: String, url: String, recorder: Recorder, stop: CancellationToken) {
    let inner = match Mysql57::connect(&url, Churn::schema()).await {
        Ok(inner) => inner,
        // As a process that can't connect would end.
        Err(error) => return say(format!("{name} can't connect: {error}")),
    };
    let queue = Queue::<Churn, _>::new(Recorded::new(inner, recorder.clone()));
    let worker = queue.worker_with(
        recorder,
        async |job: Leased<Churn, OnMysql57>, recorder: Recorder| {
            recorder.note(Event::Started(Attempt::of(&job)));
            tokio::time::sleep(Duration::from_millis(5)).await;
        },
    );
    worker
        .node(&name)
        .keep_in_thread(false)
        .run_until(stop.cancelled_owned())
        .await
        .unwrap();
}
