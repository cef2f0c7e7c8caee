//! Jobs that end the process which runs them, at every attempt.

use std::time::Duration;

use retryjob::{Backend as _, RetryJob as _, Status};
use retryjob_tests::{
    SqlDatabase,
    faults::{
        report::{settle, times},
        task::{Fragile, Task, Work, Writes, history, rules},
    },
};
use tokio::time::Instant;

use super::{HANG, Site};

const WORKERS: usize = 3;

/// Jobs that are like any others, for each that aborts.
const OTHERS: usize = 5;

pub(crate) async fn jobs_that_abort_the_process_die_and_harm_no_other<D>(database: &'static str)
where
    D: SqlDatabase,
    D::Backend: Writes,
{
    let aborting = times(20, 200);
    let site = Site::<D, Fragile>::create().await;
    let jobs: Vec<_> = (0..aborting * (1 + OTHERS))
        .zip(0u64..)
        .map(|(nth, no)| {
            let work = match nth % (1 + OTHERS) {
                0 => Work::Abort,
                _ => Work::Wait,
            };
            let task = Task::new(no, work, 20);
            Fragile { no, task }
        })
        .collect();
    let enqueued = site.queue.enqueue_many(&jobs).await.unwrap();
    let crashes = supervise(&site).await;

    let rows = site.db.rows(Fragile::schema()).await;
    let mut harmed = 0;
    for (job, answer) in jobs.iter().zip(enqueued) {
        let row = rows.iter().find(|row| row.id == answer.id).unwrap();
        if job.task.work == Work::Abort {
            let max = Fragile::SCHEMA.retry.max_attempts;
            let end = (row.status, row.attempt_no, row.lease_seq);
            assert_eq!(end, (Status::Dead, max, max.into()), "job {}", row.id);
            let error = row.last_error.as_deref().unwrap();
            assert!(error.starts_with("crashed: "), "job {}: {error}", row.id);
        } else {
            assert_eq!(row.status, Status::Success, "job {} was harmed", row.id);
            harmed += usize::from(row.attempt_no > 1);
        }
    }
    let history = history(&site.db, Fragile::schema(), site.records()).await;
    let counts = format!(
        "{aborting} jobs, {crashes} crashes, {} others, {harmed} of them retried",
        aborting * OTHERS
    );
    let fault = "jobs that abort the process";
    settle(
        fault,
        database,
        &counts,
        &history,
        &rules(&Fragile::SCHEMA.retry),
    );
}

/// Starts workers anew whenever one has ended, until all is done; how often.
async fn supervise<D>(site: &Site<D, Fragile>) -> usize
where
    D: SqlDatabase,
    D::Backend: Writes,
{
    let mut crashes = 0;
    let mut fleet: Vec<_> = (0..WORKERS).map(|_| site.start_worker(2)).collect();
    let end = Instant::now() + 10 * HANG;
    while site.queue.backend().has_open().await.unwrap() {
        assert!(Instant::now() < end, "work is left");
        for process in &mut fleet {
            if process.has_ended() {
                crashes += 1;
                *process = site.start_worker(2);
            }
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    crashes
}
