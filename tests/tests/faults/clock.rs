//! Workers whose clock is an hour or a day off, beside one whose clock is right.

use std::{collections::BTreeSet, time::Duration};

use retryjob::{Due, RetryJob as _, Status};
use retryjob_tests::{
    SqlDatabase,
    faults::{
        clock::Clock,
        report::{settle, times},
        task::{Task, Work, Writes, history, rules},
    },
    history::{Event, Rules},
};

use super::{HANG, Site};

const OFFSETS: [&str; 4] = ["+1h", "-1h", "+1d", "-1d"];
const HOUR_S: i64 = 3600;

/// A handler of this many milliseconds outlives its lease of a second, so that
/// it is kept by renewals alone.
const LONG_MS: u64 = 2500;

pub(crate) async fn workers_with_clocks_set_off_run_nothing_early<D>(database: &'static str)
where
    D: SqlDatabase,
    D::Backend: Writes,
{
    let clocks = OFFSETS.map(Clock::set_off_by);
    let right = Clock::set_off_by("+0").seconds();
    for clock in &clocks {
        let off = clock.seconds() - right;
        assert!(off.abs() >= HOUR_S - 60, "{} is {off} s", clock.offset());
    }
    let site = Site::<D>::create().await;
    let waiting: Vec<_> = (0..5).map(|no| Task::new(no, Work::Wait, 0)).collect();
    let later = Due::In(Duration::from_secs(HOUR_S.unsigned_abs()));
    let waiting_ids = ids(&site, &waiting, later).await;

    // Leases that are live and always near their end, with all looking.
    let long: Vec<_> = (10..14)
        .map(|no| Task::new(no, Work::Wait, LONG_MS))
        .collect();
    ids(&site, &long, Due::Now).await;
    let mut fleet = vec![site.start_worker(4)];
    fleet.extend(
        clocks
            .iter()
            .map(|clock| site.start_worker_at(4, Some(clock))),
    );
    let processes: BTreeSet<_> = fleet.iter().map(|process| process.id()).collect();
    let mut no = 100;
    for _ in 0..times(1, 10) {
        // Until each of them has run some.
        let all_ran = async {
            while ran(&site) != processes {
                let some: Vec<_> = (no..no + 40)
                    .map(|no| Task::new(no, Work::FailOnce, 5))
                    .collect();
                no += 40;
                ids(&site, &some, Due::Now).await;
                let long = Task::new(no, Work::Wait, LONG_MS);
                no += 1;
                ids(&site, &[long], Due::Now).await;
                tokio::time::sleep(Duration::from_millis(500)).await;
            }
        };
        let all_ran = tokio::time::timeout(HANG, all_ran).await;
        all_ran.unwrap_or_else(|_| panic!("only {:?} of {processes:?} work", ran(&site)));
        let only_waiting = async {
            while site.queue.counts().await.unwrap().open() > waiting.len() as u64 {
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        };
        let drained = tokio::time::timeout(HANG, only_waiting).await;
        drained.unwrap_or_else(|_| panic!("work is left after {HANG:?}"));
    }
    drop(fleet);

    let history = history(&site.db, Task::schema(), site.records()).await;
    for row in &history.rows {
        let is_waiting = waiting_ids.contains(&row.id);
        assert_eq!(row.status == Status::Pending, is_waiting, "job {}", row.id);
    }
    let reaped = history.moves.iter().filter(|moved| moved.is_reap()).count();
    let counts = format!(
        "clocks {}, {} jobs an hour ahead left alone, {reaped} leases reaped",
        OFFSETS.join(" "),
        waiting.len()
    );
    let rules = Rules {
        is_drained: false,
        ..rules(&Task::SCHEMA.retry)
    };
    settle("clock set off", database, &counts, &history, &rules);
}

async fn ids<D>(site: &Site<D>, tasks: &[Task], due: Due) -> BTreeSet<u64>
where
    D: SqlDatabase,
    D::Backend: Writes,
{
    let stored = site
        .queue
        .enqueue_many_due(tasks.iter().map(|task| (task, due)))
        .await
        .unwrap();
    stored.into_iter().map(|enqueued| enqueued.id).collect()
}

/// The processes in which handlers were called.
fn ran<D>(site: &Site<D>) -> BTreeSet<u32>
where
    D: SqlDatabase,
    D::Backend: Writes,
{
    let records = site.records().into_iter();
    records
        .filter(|record| matches!(record.event, Event::Started(_)))
        .map(|record| record.process)
        .collect()
}
