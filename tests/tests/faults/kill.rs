//! `kill -9` of worker processes, while work is enqueued in business
//! transactions.

use std::{collections::HashSet, sync::Arc, time::Duration};

use rand::RngExt as _;
use retryjob::{Lease, RetryJob as _};
use retryjob_tests::{
    SqlDatabase,
    faults::{
        process::Process,
        report::{settle, times},
        task::{
            REAP_EVERY, Task, Work, Writes, check_business, enqueue_in_business, history, rules,
        },
    },
    history::{Answer, Event, Record},
};
use tokio_util::sync::CancellationToken;

use super::{HANG, Site};

const WORKERS: usize = 3;

pub(crate) async fn killed_workers_lose_and_double_nothing<D>(database: &'static str)
where
    D: SqlDatabase,
    D::Backend: Writes,
{
    let kills = times(20, 500);
    let site = Arc::new(Site::<D>::create().await);
    let stop = CancellationToken::new();
    let producer = tokio::spawn(produce(Arc::clone(&site), stop.clone()));
    let mut fleet: Vec<_> = (0..WORKERS).map(|_| site.start_worker(4)).collect();
    for kill in 0..kills {
        let victim = kill % WORKERS;
        until_at_work(&site, &fleet[victim]).await;
        let while_working = rand::rng().random_range(0..100);
        tokio::time::sleep(Duration::from_millis(while_working)).await;
        fleet[victim].kill();
        fleet[victim] = site.start_worker(4);
    }
    stop.cancel();
    producer.await.unwrap();
    // What the dead held lapses within a lease, and is taken back within two
    // periods of a reaper: the second that begins after this look sees it.
    tokio::time::sleep(Task::SCHEMA.lease).await;
    let lapsed = site.lapsed().await;
    until_reaped(&site, &fleet[0], 2).await;
    let still = site.lapsed().await;
    let stuck: Vec<_> = lapsed.intersection(&still).collect();
    assert!(
        stuck.is_empty(),
        "leases of dead workers are stuck: {stuck:?}"
    );
    site.drained().await;
    drop(fleet);
    check_business(&site.db).await;
    let history = history(&site.db, Task::schema(), site.records()).await;
    let reaped = history.moves.iter().filter(|moved| moved.is_reap()).count();
    assert!(reaped > 0, "no kill hit a worker with a job in hand");
    let counts = format!("{kills} kills, {reaped} leases reaped, 0 stuck");
    let fault = "kill -9 of workers";
    settle(
        fault,
        database,
        &counts,
        &history,
        &rules(&Task::SCHEMA.retry),
    );
}

/// Waits until this process has called a handler.
async fn until_at_work<D>(site: &Site<D>, worker: &Process)
where
    D: SqlDatabase,
    D::Backend: Writes,
{
    let is_start = |record: &Record| {
        record.process == worker.id() && matches!(record.event, Event::Started(_))
    };
    let at_work = async {
        while !site.records().iter().any(is_start) {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    let started = tokio::time::timeout(HANG, at_work).await;
    started.unwrap_or_else(|_| panic!("a worker takes no jobs within {HANG:?}"));
}

/// Waits until a reaper of this process has begun and ended so many times.
async fn until_reaped<D>(site: &Site<D>, worker: &Process, times: usize)
where
    D: SqlDatabase,
    D::Backend: Writes,
{
    let reaped = || {
        let records = site.records();
        let own = records
            .iter()
            .filter(|record| record.process == worker.id());
        own.filter(|record| matches!(record.event, Event::Ok(Answer::Reaped(_))))
            .count()
    };
    // One may be under way.
    let enough = reaped() + times + 1;
    let reaping = async {
        while reaped() < enough {
            tokio::time::sleep(REAP_EVERY / 4).await;
        }
    };
    let done = tokio::time::timeout(HANG, reaping).await;
    done.unwrap_or_else(|_| panic!("nobody reaps within {HANG:?}"));
}

/// Stores jobs in transactions of the caller's, until told to stop.
async fn produce<D>(site: Arc<Site<D>>, stop: CancellationToken)
where
    D: SqlDatabase,
    D::Backend: Writes,
{
    let mut no = 0;
    while !stop.is_cancelled() {
        no += 1;
        let ms = rand::rng().random_range(0..30);
        let work = match no % 10 {
            0 => Work::FailOnce,
            1 => Work::Block,
            _ => Work::Wait,
        };
        let task = Task::new(no, work, ms);
        enqueue_in_business(&site.queue, &task).await.unwrap();
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

impl<D> Site<D>
where
    D: SqlDatabase,
    D::Backend: Writes,
{
    /// Leases that lapsed and that nobody took back.
    async fn lapsed(&self) -> HashSet<Lease> {
        let lapsed = D::look_lapsed(self.queue.backend().inner(), 1000).await;
        lapsed.into_iter().map(|lapsed| lapsed.lease).collect()
    }
}
