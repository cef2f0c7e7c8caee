//! A group of servers whose primary is killed, switched over from, and cut off.

use std::time::Duration;

use retryjob::{Backend, Event, Mysql8, RetryJob as _, Status};
use retryjob_core::Queue;
use retryjob_tests::{
    Mysql8Server, SqlDatabase as _,
    faults::{
        group::{Group, Router},
        report::{settle, times},
        task::{Task, Work, check_business, enqueue_in_business, history, prepare, rules, worker},
    },
    history::Recorded,
};
use sqlx::MySqlConnection;
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;

use super::Site;

/// What the issue of an election grants until claims go on.
const RESUME: Duration = Duration::from_secs(10);
/// And until no connection answers read-only.
const WRITABLE: Duration = Duration::from_secs(5);
/// Transactions open at once: as many as the pool has connections.
const SEATS: usize = 10;

type GroupQueue = Queue<Task, Recorded<Mysql8>>;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn group_that_elects_a_primary_loses_nothing() {
    let mut group = Group::start().await;
    let router = Router::start(&group).await;
    let db = Mysql8Server::create_on(router.url()).await;
    prepare(&db, Task::schema()).await;
    let inner = Mysql8::connect(&db.url(), Task::schema()).await;
    let site = Site::on(db, inner.unwrap());

    let stop = CancellationToken::new();
    let stopped = stop.clone().cancelled_owned();
    let working = tokio::spawn(worker(&site.queue).concurrency(8).run_until(stopped));
    let producing = tokio::spawn(produce(site.queue.clone(), stop.clone()));
    let mut longest = Duration::ZERO;
    let rounds = times(1, 20);
    for _ in 0..rounds {
        for elect in [Elect::Kill, Elect::SwitchOver, Elect::CutOff] {
            succeeds(&site.queue).await;
            longest = longest.max(change(elect, &mut group, &router, &site.queue).await);
        }
    }
    stop.cancel();
    producing.await.unwrap();
    working.await.unwrap().unwrap();
    let rest = CancellationToken::new();
    let stopped = rest.clone().cancelled_owned();
    let finishing = tokio::spawn(worker(&site.queue).run_until(stopped));
    site.drained().await;
    rest.cancel();
    finishing.await.unwrap().unwrap();

    // The test's own connections may lead to a former primary.
    router.close_all();
    check_business(&site.db).await;
    let history = history(&site.db, Task::schema(), site.records()).await;
    let counts = format!(
        "{rounds} killed, {rounds} switched over, {rounds} cut off; \
         claims went on within {} ms of the election",
        longest.as_millis()
    );
    let fault = "group replication";
    let rules = rules(&Task::SCHEMA.retry);
    settle(fault, "three of MySQL 9", &counts, &history, &rules);
}

/// What becomes of a primary.
#[derive(Clone, Copy, Debug)]
enum Elect {
    Kill,
    SwitchOver,
    /// It is expelled while it does not answer, and comes back read-only.
    CutOff,
}

/// Has another primary elected, answers how long it took from then until a job
/// succeeded, and brings the old one back.
async fn change(elect: Elect, group: &mut Group, router: &Router, queue: &GroupQueue) -> Duration {
    let old = router.primary();
    match elect {
        Elect::Kill => group.member(old).kill(),
        Elect::SwitchOver => group.switch_over(old).await,
        Elect::CutOff => group.member(old).stop_process(),
    }
    router.primary_other_than(old).await;
    let elected = Instant::now();
    if matches!(elect, Elect::CutOff) {
        // It wakes as one that was expelled, with all its connections open.
        group.member(old).continue_process();
    }
    let resumed = timeout(RESUME, succeeds(queue)).await;
    resumed.unwrap_or_else(|_| panic!("no work within {RESUME:?} after {elect:?}"));
    let resumed = elected.elapsed();
    match elect {
        Elect::Kill => group.member(old).restart().await,
        Elect::SwitchOver | Elect::CutOff => {}
    }
    sleep(WRITABLE).await;
    assert_all_writable(elect, queue.backend()).await;
    if !matches!(elect, Elect::SwitchOver) {
        group.rejoin(old).await;
    }
    resumed
}

/// Waits for a success.
async fn succeeds(queue: &GroupQueue) {
    let mut events = queue.events();
    loop {
        if let Ok(Event::Moved(moved)) = events.recv().await
            && moved.to == Status::Success
        {
            return;
        }
    }
}

/// Every transaction that a caller begins is on a server that writes.
async fn assert_all_writable(elect: Elect, backend: &Recorded<Mysql8>) {
    let mut open = Vec::new();
    for _ in 0..SEATS / 2 {
        open.push(backend.begin().await.unwrap());
    }
    for mut tx in open {
        assert!(!is_read_only(&mut tx).await, "read-only after {elect:?}");
        backend.rollback(tx).await.unwrap();
    }
}

async fn is_read_only(connection: &mut MySqlConnection) -> bool {
    let select = sqlx::query_scalar::<_, i64>("SELECT @@super_read_only");
    select.fetch_one(connection).await.unwrap() == 1
}

/// Stores jobs, each until it is told that it is there.
async fn produce(queue: GroupQueue, stop: CancellationToken) {
    let mut no = 0;
    while !stop.is_cancelled() {
        no += 2;
        let jobs = [0, 1].map(|nth| Task::new(no + nth, Work::Wait, nth));
        while queue.enqueue(&jobs[0]).await.is_err() {}
        while enqueue_in_business(&queue, &jobs[1]).await.is_err() {
            sleep(Duration::from_millis(20)).await;
        }
        sleep(Duration::from_millis(20)).await;
    }
}
