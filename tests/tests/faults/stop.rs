//! SIGSTOP of worker processes past their leases, then SIGCONT; half of the
//! handlers block their thread.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use retryjob::RetryJob as _;
use retryjob_tests::{
    SqlDatabase,
    faults::{
        process::Process,
        report::{settle, times},
        task::{REAP_EVERY, Task, Work, Writes, history, rules},
    },
    history::{Attempt, Event, Record},
};

use super::{HANG, Site};

/// Stopped in each round, beside one that goes on.
const STOPPED: usize = 2;

/// Jobs of one batch; a round has as many batches as it takes to give every
/// worker one.
const JOBS: u64 = 12;
const BATCHES_MAX: u64 = 100;

pub(crate) async fn stopped_workers_finish_nothing_late_and_are_told<D>(database: &'static str)
where
    D: SqlDatabase,
    D::Backend: Writes,
{
    let rounds = times(20, 200) / STOPPED;
    let site = Site::<D>::create().await;
    let _goes_on = site.start_worker(4);
    let fleet: Vec<_> = (0..STOPPED).map(|_| site.start_worker(2)).collect();
    let mut told = BTreeSet::new();
    for round in 0..rounds {
        told.extend(round_of(&site, &fleet, round as u64).await);
    }
    site.drained().await;
    let records = site.records();
    let history = history(&site.db, Task::schema(), records).await;
    let counts = format!(
        "{} stops, {} attempts outlived their lease and were told",
        rounds * STOPPED,
        told.len()
    );
    let fault = "SIGSTOP past the lease";
    settle(
        fault,
        database,
        &counts,
        &history,
        &rules(&Task::SCHEMA.retry),
    );
}

/// Stops the fleet with jobs in hand, lets it go on when all of them were taken
/// back, and waits until each attempt was told. Answers these attempts.
async fn round_of<D>(site: &Site<D>, fleet: &[Process], round: u64) -> BTreeSet<Attempt>
where
    D: SqlDatabase,
    D::Backend: Writes,
{
    let all_busy = || {
        let records = site.records();
        let is_busy = |child: &Process| !in_hand(&records, child).is_empty();
        fleet.iter().all(is_busy)
    };
    for batch in 0.. {
        enqueue(site, (round * BATCHES_MAX + batch) * JOBS).await;
        if soon(all_busy).await {
            break;
        }
        assert!(batch < BATCHES_MAX, "a worker takes no jobs");
    }
    for child in fleet {
        child.stop();
    }
    let caught: Vec<_> = fleet
        .iter()
        .map(|child| in_hand(&site.records(), child))
        .collect();
    tokio::time::sleep(Task::SCHEMA.lease + 2 * REAP_EVERY).await;
    for child in fleet {
        child.go_on();
    }
    let mut told = BTreeSet::new();
    for (child, caught) in fleet.iter().zip(caught) {
        let is_told = || {
            caught
                .is_subset(&ended(&site.records(), child))
                .then_some(())
        };
        until("every attempt was told how it ended", is_told).await;
        let records = site.records();
        let lost = lost(&records, child);
        told.extend(caught.into_iter().filter(|attempt| lost.contains(attempt)));
    }
    told
}

async fn enqueue<D>(site: &Site<D>, from: u64)
where
    D: SqlDatabase,
    D::Backend: Writes,
{
    let jobs: Vec<_> = (from..from + JOBS)
        .map(|no| match no % 2 {
            0 => Task::new(no, Work::Block, 400),
            _ => Task::new(no, Work::Wait, 400),
        })
        .collect();
    site.queue.enqueue_many(&jobs).await.unwrap();
}

/// Whether this comes true before long.
async fn soon(mut is_so: impl FnMut() -> bool) -> bool {
    for _ in 0..30 {
        if is_so() {
            return true;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    false
}

/// Asks until there is an answer.
async fn until<T>(what: &str, mut ask: impl FnMut() -> Option<T>) -> T {
    let asking = async {
        loop {
            if let Some(answer) = ask() {
                return answer;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    let answered = tokio::time::timeout(HANG, asking).await;
    answered.unwrap_or_else(|_| panic!("not within {HANG:?}: {what}"))
}

fn of<'a>(records: &'a [Record], child: &Process) -> impl Iterator<Item = &'a Event> {
    let process = child.id();
    let own = records
        .iter()
        .filter(move |record| record.process == process);
    own.map(|record| &record.event)
}

fn started(records: &[Record], child: &Process) -> BTreeSet<Attempt> {
    let started = of(records, child).filter_map(|event| match event {
        Event::Started(attempt) => Some(*attempt),
        _ => None,
    });
    started.collect()
}

/// Attempts of this process whose lease was lost, by its own events.
fn lost(records: &[Record], child: &Process) -> BTreeSet<Attempt> {
    let by_no: BTreeMap<_, _> = started(records, child)
        .into_iter()
        .map(|attempt| ((attempt.id, attempt.attempt_no), attempt))
        .collect();
    let told = of(records, child).filter_map(|event| match event {
        Event::LostTold { id, attempt_no } => by_no.get(&(*id, *attempt_no)).copied(),
        _ => None,
    });
    told.collect()
}

/// Attempts of this process that are over, one way or the other.
fn ended(records: &[Record], child: &Process) -> BTreeSet<Attempt> {
    let committed = of(records, child).filter_map(|event| match event {
        Event::Committed(attempt) => Some(*attempt),
        _ => None,
    });
    committed.chain(lost(records, child)).collect()
}

/// Attempts of this process that have begun and are not over.
fn in_hand(records: &[Record], child: &Process) -> BTreeSet<Attempt> {
    let ended = ended(records, child);
    let started = started(records, child);
    started.difference(&ended).copied().collect()
}
