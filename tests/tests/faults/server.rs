//! `kill -9` of the database around the COMMIT of each operation.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
    time::Duration,
};

use retryjob::{
    Backend, Event, RetryJob as _, Status,
    op::{claim::Claim, due::Lane},
};
use retryjob_core::{Node, Queue};
use retryjob_tests::{
    SqlDatabase as _,
    database::server::{Flavour, Server},
    faults::{
        Instance,
        proxy::{Plan, Point, Proxy, Writing},
        report::{settle, times},
        task::{
            Task, Work, Writes, check_business, enqueue_in_business, history, prepare, rules,
            worker,
        },
    },
    history::Recorded,
};
use tokio::{
    sync::{Mutex as AsyncMutex, Notify, broadcast},
    time::Instant,
};
use tokio_util::sync::CancellationToken;

use super::{HANG, Site};

const OPERATIONS: [Writing; 4] = [
    Writing::Enqueue,
    Writing::Claim,
    Writing::Finish,
    Writing::Reap,
];

/// What the issue of a server's return grants until work goes on.
const RESUME: Duration = Duration::from_secs(10);

/// Kills the server at the next commit of an operation.
struct Executioner {
    server: Arc<AsyncMutex<Instance>>,
    next: Mutex<Option<(Writing, Point)>>,
    done: Notify,
}

impl Plan for Executioner {
    fn cut(&self, writing: Writing) -> Option<Point> {
        let mut next = self.next.lock().unwrap();
        let (_, point) = next.take_if(|(wanted, _)| *wanted == writing)?;
        Some(point)
    }

    fn at_cut(&self, _writing: Writing, _point: Point) {
        // Nobody else has it while a kill is ordered.
        self.server.try_lock().unwrap().kill();
        self.done.notify_one();
    }
}

pub(crate) async fn killed_servers_lose_nothing_and_work_resumes<F>(database: &'static str)
where
    F: Flavour<Backend: Writes>,
{
    let server = Instance::start(F::KIND, &[]).await;
    let port = server.port();
    let db = Server::<F>::create_on(server.url()).await;
    prepare(&db, Task::schema()).await;
    let executioner = Arc::new(Executioner {
        server: Arc::new(AsyncMutex::new(server)),
        next: Mutex::default(),
        done: Notify::new(),
    });
    let proxy = Proxy::start(port, Arc::clone(&executioner) as Arc<dyn Plan>).await;
    let inner = F::Backend::connect(&proxy.url(&db.url()), Task::schema()).await;
    let site = Site::on(db, inner.unwrap());

    let stop = CancellationToken::new();
    let stopped = stop.clone().cancelled_owned();
    let working = tokio::spawn(worker(&site.queue).concurrency(8).run_until(stopped));
    let beside = [
        tokio::spawn(abandon(site.queue.clone(), stop.clone())),
        tokio::spawn(produce(site.queue.clone(), stop.clone())),
    ];
    let mut kills: BTreeMap<Writing, usize> = BTreeMap::new();
    let mut longest = Duration::ZERO;
    for nth in 0..times(5, 50) {
        for writing in OPERATIONS {
            let point = Point::ALL[nth % Point::ALL.len()];
            let resumed = kill(&executioner, &site.queue, writing, point).await;
            longest = longest.max(resumed);
            *kills.entry(writing).or_default() += 1;
        }
    }
    stop.cancel();
    for task in beside {
        task.await.unwrap();
    }
    working.await.unwrap().unwrap();
    // What is left after the last shutdown was given back, and lapses else.
    let rest = CancellationToken::new();
    let stopped = rest.clone().cancelled_owned();
    let finishing = tokio::spawn(worker(&site.queue).run_until(stopped));
    site.drained().await;
    rest.cancel();
    finishing.await.unwrap().unwrap();

    check_business(&site.db).await;
    let history = history(&site.db, Task::schema(), site.records()).await;
    let said: Vec<_> = kills
        .iter()
        .map(|(writing, count)| format!("{writing:?} {count}"))
        .collect();
    let counts = format!(
        "{} kills: {}; work went on within {} ms",
        kills.values().sum::<usize>(),
        said.join(", "),
        longest.as_millis()
    );
    let fault = "kill -9 of the database around COMMIT";
    settle(
        fault,
        database,
        &counts,
        &history,
        &rules(&Task::SCHEMA.retry),
    );
}

/// Has the server killed at this commit, starts it again, and answers how long
/// it took from its first answer until a job succeeded.
async fn kill<B: Writes>(
    executioner: &Executioner,
    queue: &Queue<Task, Recorded<B>>,
    writing: Writing,
    point: Point,
) -> Duration {
    *executioner.next.lock().unwrap() = Some((writing, point));
    let killed = tokio::time::timeout(HANG, executioner.done.notified()).await;
    killed.unwrap_or_else(|_| panic!("no {writing:?} was committed"));
    executioner.server.lock().await.restart().await;
    let answers = Instant::now();
    let resumed = tokio::time::timeout(RESUME, succeeds(queue.events())).await;
    resumed.unwrap_or_else(|_| panic!("no work within {RESUME:?} after {writing:?} {point:?}"));
    answers.elapsed()
}

async fn succeeds(mut events: broadcast::Receiver<Event>) {
    loop {
        if let Ok(Event::Moved(moved)) = events.recv().await
            && moved.to == Status::Success
        {
            return;
        }
    }
}

/// Stores jobs in each way there is, each until it is told that it is there.
async fn produce<B: Writes>(queue: Queue<Task, Recorded<B>>, stop: CancellationToken) {
    let mut no = 0;
    while !stop.is_cancelled() {
        no += 4;
        let jobs = [0, 1, 2, 3].map(|nth| Task::new(no + nth, Work::Wait, nth));
        while queue.enqueue(&jobs[0]).await.is_err() {}
        while queue.enqueue_many(&jobs[1..3]).await.is_err() {}
        while enqueue_in_business(&queue, &jobs[3]).await.is_err() {}
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// Claims jobs and forgets them, so that there is something to reap.
async fn abandon<B: Writes>(queue: Queue<Task, Recorded<B>>, stop: CancellationToken) {
    while !stop.is_cancelled() {
        // What fails while the server is away is tried again the next time.
        let _ = claim_one(queue.backend()).await;
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

async fn claim_one<B: Backend>(backend: &B) -> Result<(), retryjob::Error> {
    let heads = backend.due_heads().await?.fresh.due().collect();
    let claim = Claim {
        owner: Node::new("forgetful").lease_owner(),
        lane: Lane::Fresh,
        heads,
        limit: 1,
        lease: Duration::from_millis(300),
    };
    backend.claim(claim).await.map(drop)
}
