//! Connections cut around COMMIT, through a proxy.

use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use rand::RngExt as _;
use retryjob::{
    Backend, RetryJob as _,
    op::{claim::Claim, due::Lane},
};
use retryjob_core::{Node, Queue};
use retryjob_tests::{
    SqlDatabase,
    faults::{
        proxy::{Plan, Point, Proxy, Writing},
        report::{settle, times},
        task::{
            Task, Work, Writes, check_business, enqueue_in_business, history, prepare, rules,
            worker,
        },
    },
    history::Recorded,
};
use tokio_util::sync::CancellationToken;

use super::Site;

/// Cuts one in so many commits, up to a number.
struct Scissors {
    left: AtomicUsize,
    made: Mutex<BTreeMap<(Writing, Point), usize>>,
}

const ONE_IN: u32 = 4;

impl Plan for Scissors {
    fn cut(&self, _writing: Writing) -> Option<Point> {
        let mut rng = rand::rng();
        if !rng.random_ratio(1, ONE_IN) {
            return None;
        }
        let take = |left: usize| left.checked_sub(1);
        let order = Ordering::Relaxed;
        self.left.fetch_update(order, order, take).ok()?;
        Some(Point::ALL[rng.random_range(0..Point::ALL.len())])
    }

    fn at_cut(&self, writing: Writing, point: Point) {
        let mut made = self.made.lock().unwrap();
        *made.entry((writing, point)).or_default() += 1;
    }
}

pub(crate) async fn commits_without_an_answer_are_resolved<D>(database: &'static str)
where
    D: SqlDatabase,
    D::Backend: Writes,
{
    let cuts = times(100, 1000);
    let db = D::create().await;
    prepare(&db, Task::schema()).await;
    let scissors = Arc::new(Scissors {
        left: AtomicUsize::new(cuts),
        made: Mutex::default(),
    });
    let port = db
        .url()
        .rsplit_once('/')
        .unwrap()
        .0
        .rsplit_once(':')
        .unwrap()
        .1
        .parse();
    let proxy = Proxy::start(port.unwrap(), Arc::clone(&scissors) as Arc<dyn Plan>).await;
    let inner = D::Backend::connect(&proxy.url(&db.url()), Task::schema()).await;
    let site = Site::on(db, inner.unwrap());

    let stop = CancellationToken::new();
    let working = tokio::spawn(
        worker(&site.queue)
            .concurrency(8)
            .run_until(stop.clone().cancelled_owned()),
    );
    let abandoning = tokio::spawn(abandon(site.queue.clone(), stop.clone()));
    let mut no = 0;
    while scissors.left.load(Ordering::Relaxed) > 0 {
        no += 4;
        enqueue_four(&site.queue, no).await;
    }
    site.drained().await;
    stop.cancel();
    abandoning.await.unwrap();
    working.await.unwrap().unwrap();

    check_business(&site.db).await;
    let made = scissors.made.lock().unwrap().clone();
    for writing in [Writing::Enqueue, Writing::Claim, Writing::Finish] {
        for point in Point::ALL {
            assert!(
                made.contains_key(&(writing, point)),
                "{writing:?} {point:?}: {made:?}"
            );
        }
    }
    let history = history(&site.db, Task::schema(), site.records()).await;
    let counts = format!("{} cuts: {}", made.values().sum::<usize>(), said(&made));
    let fault = "connection cut around COMMIT";
    settle(
        fault,
        database,
        &counts,
        &history,
        &rules(&Task::SCHEMA.retry),
    );
}

fn said(made: &BTreeMap<(Writing, Point), usize>) -> String {
    let mut by_writing: BTreeMap<_, usize> = BTreeMap::new();
    for ((writing, _), count) in made {
        *by_writing.entry(writing).or_default() += count;
    }
    let said = by_writing
        .into_iter()
        .map(|(writing, count)| format!("{writing:?} {count}"));
    said.collect::<Vec<_>>().join(", ")
}

/// Stores jobs in each way there is; none may surface an error but the caller's
/// own COMMIT.
async fn enqueue_four<B: Writes>(queue: &Queue<Task, Recorded<B>>, no: u64) {
    queue.enqueue(&Task::new(no, Work::Wait, 1)).await.unwrap();
    let two = [
        Task::new(no + 1, Work::Wait, 0),
        Task::new(no + 2, Work::FailOnce, 0),
    ];
    queue.enqueue_many(&two).await.unwrap();
    let last = Task::new(no + 3, Work::Wait, 0);
    while enqueue_in_business(queue, &last).await.is_err() {}
}

/// Claims jobs and forgets them, so that there is something to reap.
async fn abandon<B: Writes>(queue: Queue<Task, Recorded<B>>, stop: CancellationToken) {
    let backend = queue.backend();
    while !stop.is_cancelled() {
        let heads = backend.due_heads().await.unwrap().fresh.due().collect();
        let claim = Claim {
            owner: Node::new("forgetful").lease_owner(),
            lane: Lane::Fresh,
            heads,
            limit: 1,
            lease: Duration::from_millis(300),
        };
        backend.claim(claim).await.unwrap();
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}
