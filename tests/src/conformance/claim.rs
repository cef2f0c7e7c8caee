use std::time::Duration;

use retryjob_core::{
    Backend, Status, Value,
    op::{
        claim::Claim,
        due::{Head, Lane},
        enqueue::{Due, NewJob},
    },
    retry::Decision,
    time::DbTime,
};

use crate::{
    TestDatabase,
    act::{
        EARLIEST, claim, claim_as, claim_shard, enqueue, enqueue_one, failed, finish, id_set, ids,
        owner, waiting,
    },
    jobs::{JOB, LEASE, MAIL, job, jobs, key_of, mail, payload, random_job},
};

fn head(shard_id: u16, next_attempt_at: DbTime) -> Head {
    Head {
        shard_id,
        next_attempt_at,
    }
}

fn claim_of(heads: Vec<Head>, limit: u16) -> Claim {
    Claim {
        owner: owner(),
        lane: Lane::Fresh,
        heads,
        limit,
        lease: LEASE,
    }
}

fn due_ago(now: DbTime, seconds: i64, shard_id: u16) -> NewJob {
    NewJob {
        due: Due::At(DbTime::from_us(now.us() - seconds * 1_000_000)),
        shard_id,
        ..random_job()
    }
}

pub async fn claim_takes_due_jobs_oldest_first<D: TestDatabase>(db: D) {
    let backend = db.installed(&JOB).await;
    let now = backend.due_heads().await.unwrap().fresh.now;
    let news = [3, 9, 1, 9, 5].map(|seconds| due_ago(now, seconds, 0));
    let stored = enqueue(&backend, news.to_vec()).await;
    // Of the two that have waited nine seconds, the smaller id comes first.
    let order = [1, 3, 4, 0, 2].map(|at: usize| stored[at]);

    let first = claim_as(&backend, owner(), Lane::Fresh, 2).await;
    assert_eq!(ids(&first), order[..2]);
    let rest = claim_as(&backend, owner(), Lane::Fresh, 100).await;
    assert_eq!(ids(&rest), order[2..]);
    assert_eq!(claim_shard(&backend, Lane::Fresh, 0, 100).await, []);
}

pub async fn claim_hands_out_what_the_row_holds<D: TestDatabase>(db: D) {
    let backend = db.installed(&MAIL).await;
    let new = NewJob {
        columns: vec![Value::U64(7), Value::Text("memo".into())],
        shard_id: 17,
        due: Due::In(Duration::from_secs(5)),
        spread: Duration::from_secs(2),
        ..mail(4)
    };
    let id = enqueue_one(&backend, new.clone()).await;
    db.pass(&MAIL, Duration::from_secs(60)).await;

    let claimed = claim(&backend, Lane::Fresh).await;
    assert_eq!(claimed.len(), 1);
    let job = &claimed[0];
    assert_eq!((job.lease.id, job.shard_id, job.attempt_no), (id, 17, 1));
    assert_eq!(job.idempotency_key, key_of(&4u64));
    assert_eq!(job.payload, Some(payload(4)));
    assert_eq!(job.columns, new.columns);
    assert_eq!(job.age, job.lag + Duration::from_secs(2));
    assert!(job.lag >= Duration::from_secs(53), "{:?}", job.lag);
    assert!(job.lag < Duration::from_secs(83), "{:?}", job.lag);
}

pub async fn claim_raises_attempt_and_fence_and_sets_the_lease<D: TestDatabase>(db: D) {
    let backend = db.installed(&JOB).await;
    let id = enqueue_one(&backend, job(1)).await;
    let owners = [owner(), owner()];

    for (owner, nth) in owners.into_iter().zip(1..) {
        let lane = if nth == 1 { Lane::Fresh } else { Lane::Retry };
        let claimed = claim_as(&backend, owner.clone(), lane, 1).await;
        let job = &claimed[0];
        assert_eq!((job.attempt_no, job.lease.lease_seq), (nth, nth.into()));
        assert_eq!(job.lease.owner, owner);
        let row = db.row(&JOB, id).await;
        assert_eq!((row.status, row.attempt_no), (Status::Running, nth));
        assert_eq!(row.lease_seq, u64::from(nth));
        assert_eq!(row.lease_owner, Some(owner));
        assert_eq!(row.lease_until, Some(row.updated_at.plus(LEASE)));
        let retry = failed(job, Decision::Retry(Duration::ZERO));
        assert!(finish(&backend, retry).await);
    }
}

pub async fn claim_takes_several_shards_in_the_order_asked_for<D: TestDatabase>(db: D) {
    let backend = db.installed(&JOB).await;
    let now = backend.due_heads().await.unwrap().fresh.now;
    let news = [(2, 9), (7, 5), (2, 3), (9, 30), (7, 1)];
    let news = news.map(|(shard, seconds)| due_ago(now, seconds, shard));
    let stored = enqueue(&backend, news.to_vec()).await;

    let heads = vec![head(7, EARLIEST), head(2, EARLIEST)];
    let claimed = backend.claim(claim_of(heads, 3)).await.unwrap().jobs;
    let order = [1, 4, 0].map(|at: usize| stored[at]);
    assert_eq!(ids(&claimed), order);
    let shards: Vec<_> = claimed.iter().map(|job| job.shard_id).collect();
    assert_eq!(shards, [7, 7, 2]);

    let heads = vec![head(7, EARLIEST), head(2, EARLIEST), head(9, EARLIEST)];
    let claimed = backend.claim(claim_of(heads, 3)).await.unwrap().jobs;
    assert_eq!(ids(&claimed), [stored[2], stored[3]]);
    let none = backend.claim(claim_of(Vec::new(), 3)).await.unwrap().jobs;
    assert_eq!(none, []);
}

pub async fn claim_stays_within_its_lane<D: TestDatabase>(db: D) {
    let backend = db.installed(&JOB).await;
    let retried = waiting(&backend, Lane::Retry, jobs([1])).await;
    // Were the lanes not told apart, the older one would come first.
    let now = backend.due_heads().await.unwrap().fresh.now;
    let fresh = enqueue(&backend, vec![due_ago(now, 9, 0)]).await;

    let claimed = claim_shard(&backend, Lane::Retry, 0, 1).await;
    assert_eq!(ids(&claimed), retried);
    assert_eq!(claimed[0].attempt_no, 2);
    let retry = failed(&claimed[0], Decision::Retry(Duration::ZERO));
    assert!(finish(&backend, retry).await);
    let claimed = claim_shard(&backend, Lane::Fresh, 0, 9).await;
    assert_eq!(ids(&claimed), fresh);
    assert_eq!(claim_shard(&backend, Lane::Fresh, 0, 9).await, []);

    db.pass(&JOB, Duration::from_secs(5)).await;
    let fresh = enqueue(&backend, jobs([2])).await;
    let claimed = claim_shard(&backend, Lane::Fresh, 0, 1).await;
    assert_eq!(ids(&claimed), fresh);
}

pub async fn claim_looks_at_nothing_before_the_head<D: TestDatabase>(db: D) {
    let backend = db.installed(&JOB).await;
    for lane in [Lane::Retry, Lane::Alone, Lane::Fresh] {
        let mut stored = Vec::new();
        for _ in 0..2 {
            stored.extend(waiting(&backend, lane, vec![random_job()]).await);
            db.pass(&JOB, Duration::from_secs(5)).await;
        }
        let mark = db.row(&JOB, stored[1]).await.next_attempt_at;
        let claim_of = |head_at| Claim {
            lane,
            ..claim_of(vec![head(0, head_at)], 9)
        };

        let above = claim_of(mark.plus(Duration::from_micros(1)));
        assert_eq!(backend.claim(above).await.unwrap().jobs, [], "{lane:?}");
        let claimed = backend.claim(claim_of(mark)).await.unwrap().jobs;
        assert_eq!(ids(&claimed), [stored[1]], "{lane:?}");
    }
}

pub async fn claim_takes_nothing_before_its_time<D: TestDatabase>(db: D) {
    const HOUR: Duration = Duration::from_secs(3600);
    let backend = db.installed(&JOB).await;
    let id = enqueue_one(&backend, job(1)).await;
    let mut lane = Lane::Fresh;
    for next in [Lane::Retry, Lane::Alone] {
        let claimed = claim_shard(&backend, lane, 0, 9).await;
        assert_eq!(ids(&claimed), [id], "{lane:?}");
        let later = failed(&claimed[0], Decision::Retry(HOUR));
        assert!(finish(&backend, later).await);
        assert_eq!(claim_shard(&backend, next, 0, 9).await, [], "{next:?}");
        db.pass(&JOB, HOUR).await;
        lane = next;
    }
    let claimed = claim_shard(&backend, lane, 0, 9).await;
    assert_eq!(ids(&claimed), [id]);
    let later = NewJob {
        due: Due::In(HOUR),
        ..random_job()
    };
    enqueue_one(&backend, later).await;
    assert_eq!(claim_shard(&backend, Lane::Fresh, 0, 9).await, []);
}

pub async fn claim_of_an_unknown_shard_gives_nothing<D: TestDatabase>(db: D) {
    let backend = db.installed(&JOB).await;
    for lane in [Lane::Fresh, Lane::Retry] {
        waiting(&backend, lane, vec![random_job()]).await;
        for shard_id in [1, 31, u16::MAX] {
            assert_eq!(claim_shard(&backend, lane, shard_id, 9).await, []);
        }
        assert_eq!(claim_shard(&backend, lane, 0, 9).await.len(), 1);
    }
}

pub async fn claim_passes_over_rows_held_by_another_worker<D: TestDatabase>(db: D) {
    let backend = db.installed(&JOB).await;
    for lane in [Lane::Fresh, Lane::Retry] {
        let news = (0..10).map(|_| random_job());
        waiting(&backend, lane, news.collect()).await;
        let first = claim_as(&backend, owner(), lane, 5).await;
        let before = db.rows(&JOB).await;

        let second = claim_as(&backend, owner(), lane, 10).await;
        assert_eq!((first.len(), second.len()), (5, 5), "{lane:?}");
        assert!(id_set(&first).is_disjoint(&id_set(&second)));
        for row in before.iter().filter(|row| row.status == Status::Running) {
            assert_eq!(&db.row(&JOB, row.id).await, row);
        }
    }
}
