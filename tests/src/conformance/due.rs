use std::time::Duration;

use retryjob_core::{
    Backend,
    op::{
        due::Lane,
        enqueue::{Due, NewJob},
    },
    retry::Decision,
    time::DbTime,
};

use crate::{
    TestDatabase,
    act::{claim, claim_shard, enqueue, enqueue_one, failed, finish, ids, running},
    jobs::{JOB, job, random_job},
};

const HOUR: Duration = Duration::from_secs(3600);

async fn now(backend: &impl Backend) -> DbTime {
    backend.due_heads().await.unwrap().fresh.now
}

fn at(instant: DbTime, shard_id: u16) -> NewJob {
    NewJob {
        due: Due::At(instant),
        shard_id,
        ..random_job()
    }
}

pub async fn due_heads_name_the_earliest_job_of_every_shard<D: TestDatabase>(db: D) {
    let backend = db.installed(&JOB).await;
    let none = backend.due_heads().await.unwrap().fresh;
    assert_eq!((none.heads.len(), none.wait()), (0, None));

    let now = now(&backend).await;
    let earlier = |us: i64| DbTime::from_us(now.us() - us);
    let news = vec![
        at(now.plus(HOUR), 5),
        at(earlier(10), 3),
        at(earlier(3_000_001), 3),
        at(earlier(3_000_000), 31),
        at(now.plus(HOUR * 2), 5),
    ];
    enqueue(&backend, news).await;

    let due = backend.due_heads().await.unwrap().fresh;
    let heads: Vec<_> = due
        .heads
        .iter()
        .map(|head| (head.shard_id, head.next_attempt_at))
        .collect();
    let expected = [
        (3, earlier(3_000_001)),
        (31, earlier(3_000_000)),
        (5, now.plus(HOUR)),
    ];
    assert_eq!(heads, expected);
    let shards: Vec<_> = due.due().map(|head| head.shard_id).collect();
    assert_eq!(shards, [3, 31]);
    assert_eq!(due.wait(), Some(Duration::ZERO));

    assert_eq!(claim(&backend, Lane::Fresh).await.len(), 3);
    let rest = backend.due_heads().await.unwrap().fresh;
    assert_eq!(rest.heads.len(), 1);
    let wait = rest.wait().unwrap();
    assert_eq!(rest.now.plus(wait), now.plus(HOUR));
}

pub async fn due_heads_keep_lanes_apart<D: TestDatabase>(db: D) {
    let backend = db.installed(&JOB).await;
    let job = running(&backend, job(1)).await;
    let retry = failed(&job, Decision::Retry(HOUR));
    assert!(finish(&backend, retry).await);
    let row = db.row(&JOB, job.lease.id).await;

    let fresh = backend.due_heads().await.unwrap().fresh;
    assert_eq!(fresh.heads, []);
    let other = at(fresh.now, 1);
    enqueue(&backend, vec![other]).await;
    for (lane, shard_id) in [(Lane::Fresh, 1), (Lane::Retry, 0)] {
        let heads = backend.due_heads().await.unwrap().of(lane).heads;
        let shards: Vec<_> = heads.iter().map(|head| head.shard_id).collect();
        assert_eq!(shards, [shard_id], "{lane:?}");
    }
    let retried = backend.due_heads().await.unwrap().retry;
    assert_eq!(retried.heads[0].next_attempt_at, row.next_attempt_at);
}

pub async fn job_to_run_now_is_claimed_at_once_at_any_fraction_of_a_second<D: TestDatabase>(db: D) {
    let backend = db.installed(&JOB).await;
    let mut seen_late = 0;
    // A column without fractions rounds up from .5 on.
    while seen_late < 10 {
        let id = enqueue_one(&backend, random_job()).await;
        assert_eq!(ids(&claim(&backend, Lane::Fresh).await), [id]);
        let created = db.row(&JOB, id).await.created_at.us();
        if created % 1_000_000 >= 500_000 {
            seen_late += 1;
        }
        db.pass(&JOB, Duration::from_micros(37_001)).await;
    }
}

pub async fn job_is_claimed_from_its_microsecond_on_and_not_before<D: TestDatabase>(db: D) {
    const STEP: Duration = Duration::from_micros(1);
    let backend = db.installed(&JOB).await;
    for _ in 0..5 {
        let due_at = now(&backend).await.plus(Duration::from_millis(15));
        let id = enqueue_one(&backend, at(due_at, 0)).await;
        loop {
            let before = now(&backend).await;
            let claimed = claim_shard(&backend, Lane::Fresh, 0, 1).await;
            let after = now(&backend).await;
            if claimed.is_empty() {
                assert!(before < due_at, "was due and not claimed");
            } else {
                assert_eq!(ids(&claimed), [id]);
                assert!(after >= due_at, "was claimed before it was due");
                break;
            }
            // A clock that stands still is brought to the instant before and
            // then on, a microsecond at a time; one that runs is left alone.
            if !D::CLOCK_RUNS {
                let left = due_at.since(after).saturating_sub(STEP * 2);
                db.pass(&JOB, left.max(STEP)).await;
            }
        }
    }
}

pub async fn job_due_later_is_claimed_when_its_time_has_come<D: TestDatabase>(db: D) {
    let backend = db.installed(&JOB).await;
    let later = NewJob {
        due: Due::In(HOUR),
        ..job(1)
    };
    let spread = NewJob {
        spread: HOUR * 2,
        ..job(2)
    };
    let stored = enqueue(&backend, vec![later, spread]).await;

    assert_eq!(claim_shard(&backend, Lane::Fresh, 0, 9).await, []);
    db.pass(&JOB, HOUR - Duration::from_secs(60)).await;
    assert_eq!(claim_shard(&backend, Lane::Fresh, 0, 9).await, []);
    db.pass(&JOB, Duration::from_secs(60)).await;
    let claimed = claim_shard(&backend, Lane::Fresh, 0, 9).await;
    assert_eq!(ids(&claimed), [stored[0]]);
    db.pass(&JOB, HOUR).await;
    let claimed = claim_shard(&backend, Lane::Fresh, 0, 9).await;
    assert_eq!(ids(&claimed), [stored[1]]);
}
