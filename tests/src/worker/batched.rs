//! Enqueues of many tasks, stored together.

use std::collections::{BTreeMap, BTreeSet};

use retryjob::{Batched, Enqueued, ErrorKind, RetryJob as _};
use retryjob_core::Queue;
use tokio::task::JoinSet;

use super::{Work, queue};
use crate::TestDatabase;

const TASKS: u32 = 300;

/// Each in a task of its own, all at once; the answers by number.
async fn enqueue_all(
    batched: &Batched<Work>,
    jobs: impl Iterator<Item = Work>,
) -> Vec<(u32, Result<Enqueued, ErrorKind>)> {
    let mut tasks = JoinSet::new();
    for job in jobs {
        let batched = batched.clone();
        tasks.spawn(async move {
            let answer = batched.enqueue(&job).await;
            (job.no, answer.map_err(|error| error.kind()))
        });
    }
    tasks.join_all().await
}

pub async fn tasks_that_enqueue_together_are_each_told_of_their_own<D: TestDatabase>(db: D) {
    let (queue, _flow) = queue::<Work, D>(&db).await;
    // Each number comes three times, in one batch or in several.
    let jobs = (0..TASKS).map(|task| Work::new(task / 3, ""));
    let answers = enqueue_all(&queue.batched(), jobs).await;
    let mut ids: BTreeMap<u32, BTreeSet<u64>> = BTreeMap::new();
    let mut new_count = 0;
    for (no, answer) in answers {
        let answer = answer.unwrap();
        ids.entry(no).or_default().insert(answer.id);
        new_count += u32::from(answer.is_new);
    }
    assert!(ids.values().all(|ids| ids.len() == 1), "{ids:?}");
    assert_eq!(new_count, TASKS / 3);
    let rows = db.rows(Work::schema()).await;
    let stored: BTreeSet<_> = rows.iter().map(|row| row.id).collect();
    assert_eq!(stored, ids.into_values().flatten().collect());
}

pub async fn a_job_that_is_refused_costs_no_other_of_its_batch<D: TestDatabase>(db: D) {
    let (queue, _flow) = queue::<Work, D>(&db).await;
    let Some(bytes) = db.oversize_bytes().await else {
        return;
    };
    let huge = "x".repeat(bytes);
    let jobs = (0..TASKS).map(|no| Work::new(no, if no % 100 == 0 { &huge } else { "" }));
    for (no, answer) in enqueue_all(&queue.batched(), jobs).await {
        match no % 100 {
            0 => assert_eq!(answer, Err(ErrorKind::TooLarge), "{no}"),
            _ => assert!(answer.unwrap().is_new, "{no}"),
        }
    }
    assert_eq!(db.rows(Work::schema()).await.len(), TASKS as usize - 3);
}

pub async fn what_stops_a_batch_is_told_to_each_of_its_callers<D: TestDatabase>(db: D) {
    let queue = Queue::<Work, _>::new(db.connect(Work::schema()).await);
    let jobs = (0..10).map(|no| Work::new(no, ""));
    for (no, answer) in enqueue_all(&queue.batched(), jobs).await {
        assert_eq!(answer, Err(ErrorKind::Schema), "{no}");
    }
}
