use std::time::Duration;

use retryjob_core::{
    Backend, Status,
    op::{
        claim::ClaimedJob,
        due::Lane,
        finish::Finish,
        reap::{LAPSED, Lapsed},
        renew::Renew,
    },
    retry::Decision,
};

use crate::{
    TestDatabase,
    act::{
        claim, claim_shard, enqueue, failed, finish, given_back, ids, owner, put_in, reap_of,
        running, succeeded,
    },
    jobs::{ATTEMPTS_MAX, BACKOFF, JOB, LEASE, job, jobs},
};

const MARGIN: Duration = Duration::from_secs(30);

pub async fn reap_counts_a_lapsed_lease_as_a_failed_attempt<D: TestDatabase>(db: D) {
    let backend = db.installed(&JOB).await;
    let job = running(&backend, job(1)).await;
    let id = job.lease.id;
    db.pass(&JOB, LEASE + MARGIN).await;

    let reaped = backend.reap(reap_of(10)).await.unwrap();
    assert!(!reaped.has_more);
    let decision = Decision::Retry(BACKOFF);
    let expected = Lapsed {
        lease: job.lease,
        attempt_no: 1,
        age: LEASE + MARGIN,
    };
    assert_eq!(reaped.finishes, [expected.finish(&JOB.retry)]);
    assert_eq!(reaped.finishes[0].settled().delay, decision.delay());

    let row = db.row(&JOB, id).await;
    assert_eq!((row.status, row.attempt_no), (Status::Retry, 1));
    assert_eq!((row.lease_owner, row.lease_until), (None, None));
    assert_eq!(
        (row.lease_seq, row.last_error.as_deref()),
        (1, Some(LAPSED))
    );
    assert_eq!(row.next_attempt_at, row.updated_at.plus(BACKOFF));

    assert_eq!(backend.reap(reap_of(10)).await.unwrap().finishes, []);
    assert_eq!(claim_shard(&backend, Lane::Retry, 0, 9).await, []);
    db.pass(&JOB, BACKOFF).await;
    let again = claim_shard(&backend, Lane::Retry, 0, 9).await;
    assert_eq!(ids(&again), [id]);
    assert_eq!((again[0].attempt_no, again[0].lease.lease_seq), (2, 2));
}

pub async fn reap_takes_the_longest_lapsed_first_and_says_when_more_wait<D: TestDatabase>(db: D) {
    let backend = db.installed(&JOB).await;
    let mut order = Vec::new();
    for shard_id in [3, 1, 2] {
        order.push(put_in(&backend, Status::Running, shard_id).await);
        db.pass(&JOB, Duration::from_secs(1)).await;
    }
    db.pass(&JOB, LEASE).await;
    let reaped = backend.reap(reap_of(2)).await.unwrap();
    assert_eq!(finished_ids(&reaped.finishes), order[..2]);
    assert!(reaped.has_more);
    let reaped = backend.reap(reap_of(2)).await.unwrap();
    assert_eq!(finished_ids(&reaped.finishes), order[2..]);
    assert!(!reaped.has_more);
}

fn finished_ids(finishes: &[Finish]) -> Vec<u64> {
    finishes.iter().map(|finish| finish.lease.id).collect()
}

pub async fn reap_leaves_live_leases<D: TestDatabase>(db: D) {
    let backend = db.installed(&JOB).await;
    for status in Status::ALL {
        put_in(&backend, status, u16::from(status.code())).await;
    }
    db.pass(&JOB, LEASE - MARGIN).await;
    let before = db.rows(&JOB).await;
    let reaped = backend.reap(reap_of(10)).await.unwrap();
    assert_eq!((reaped.finishes.len(), reaped.has_more), (0, false));
    assert_eq!(db.rows(&JOB).await, before);

    // Then only the running one lapses.
    db.pass(&JOB, MARGIN * 2).await;
    let reaped = backend.reap(reap_of(10)).await.unwrap();
    assert_eq!(reaped.finishes.len(), 1);
    assert_eq!(reaped.finishes[0].lease.lease_seq, 1);
}

fn seen(job: &ClaimedJob) -> Lapsed {
    Lapsed {
        lease: job.lease.clone(),
        attempt_no: job.attempt_no,
        age: job.age,
    }
}

/// After a reaper has read five leases, one is renewed, two are finished, and
/// two are reaped by another reaper and claimed anew.
pub async fn reap_leaves_jobs_that_moved_after_it_looked<D: TestDatabase>(db: D) {
    let backend = db.installed(&JOB).await;
    enqueue(&backend, jobs(0..5)).await;
    let claimed = claim(&backend, Lane::Fresh).await;
    assert_eq!(claimed.len(), 5);
    let read: Vec<_> = claimed.iter().map(seen).collect();

    db.pass(&JOB, LEASE - MARGIN).await;
    let renew = Renew {
        leases: vec![claimed[0].lease.clone()],
        lease: LEASE,
    };
    assert!(backend.renew(renew).await.unwrap().lost.is_empty());
    assert!(finish(&backend, succeeded(&claimed[1])).await);
    assert!(finish(&backend, given_back(&claimed[2], BACKOFF)).await);
    db.pass(&JOB, MARGIN + Duration::from_secs(1)).await;
    let other = D::look_lapsed(&backend, 10).await;
    assert_eq!(other.len(), 2);
    assert_eq!(D::take_back(&backend, other[..1].to_vec()).await.len(), 1);
    // Each is taken back by one reaper alone, and said to be.
    let rest = D::take_back(&backend, other.clone()).await;
    assert_eq!(finished_ids(&rest), [other[1].lease.id]);
    assert_eq!(D::take_back(&backend, other).await, []);
    db.pass(&JOB, BACKOFF).await;
    let anew = claim_shard(&backend, Lane::Retry, 0, 9).await;
    assert_eq!(anew.len(), 2);

    let before = db.rows(&JOB).await;
    assert_eq!(D::take_back(&backend, read.clone()).await, []);
    assert_eq!(db.rows(&JOB).await, before);

    // Once the renewed and the new leases lapse as well, what was read is
    // still true of the renewed one alone.
    db.pass(&JOB, LEASE * 2).await;
    let taken = D::take_back(&backend, read).await;
    assert_eq!(finished_ids(&taken), [claimed[0].lease.id]);
    for job in anew {
        let row = db.row(&JOB, job.lease.id).await;
        assert_eq!((row.status, row.lease_seq), (Status::Running, 2));
    }
}

/// What a reaper has read is one lease: neither another owner's nor another
/// claim's is ended by it, lapsed as they are.
pub async fn reap_ends_the_very_lease_that_it_read<D: TestDatabase>(db: D) {
    let backend = db.installed(&JOB).await;
    let job = running(&backend, job(1)).await;
    db.pass(&JOB, LEASE + MARGIN).await;
    let before = db.rows(&JOB).await;
    let read = seen(&job);
    let (mut of_other, mut of_later) = (read.clone(), read.clone());
    of_other.lease.owner = owner();
    of_later.lease.lease_seq += 1;
    for other in [of_other, of_later] {
        assert_eq!(D::take_back(&backend, vec![other]).await, []);
        assert_eq!(db.rows(&JOB).await, before);
    }
    assert_eq!(D::take_back(&backend, vec![read]).await.len(), 1);
}

pub async fn late_finisher_is_told_after_a_reap<D: TestDatabase>(db: D) {
    let backend = db.installed(&JOB).await;
    let job = running(&backend, job(1)).await;
    db.pass(&JOB, LEASE + MARGIN).await;
    let reaped = backend.reap(reap_of(10)).await.unwrap();
    let before = db.rows(&JOB).await;

    // Even the very outcome that the reaper wrote is not the late one's own.
    for late in [
        reaped.finishes[0].clone(),
        succeeded(&job),
        given_back(&job, BACKOFF),
    ] {
        assert!(!finish(&backend, late).await);
    }
    let renew = Renew {
        leases: vec![job.lease.clone()],
        lease: LEASE,
    };
    assert_eq!(backend.renew(renew).await.unwrap().lost, [job.lease.id]);
    assert_eq!(db.rows(&JOB).await, before);
}

/// As jobs do that abort their process, on the last attempt too.
pub async fn attempts_that_lapse_end_dead_as_crashed_with_the_maximum<D: TestDatabase>(db: D) {
    let backend = db.installed(&JOB).await;
    let id = running(&backend, job(1)).await.lease.id;
    let mut runs = 1;
    loop {
        let row = db.row(&JOB, id).await;
        assert_eq!((row.status, row.attempt_no), (Status::Running, runs));
        db.pass(&JOB, LEASE + MARGIN).await;
        let reaped = backend.reap(reap_of(10)).await.unwrap();
        assert_eq!(finished_ids(&reaped.finishes), [id]);
        db.pass(&JOB, BACKOFF).await;
        let again = claim_shard(&backend, Lane::Alone, 0, 9).await;
        if again.is_empty() {
            break;
        }
        runs += 1;
    }
    assert_eq!(runs, ATTEMPTS_MAX);
    let row = db.row(&JOB, id).await;
    assert_eq!((row.status, row.attempt_no), (Status::Dead, ATTEMPTS_MAX));
    assert_eq!(row.lease_seq, u64::from(ATTEMPTS_MAX));
    let reason = row.last_error.unwrap();
    assert!(reason.starts_with("crashed: "), "{reason}");

    // Dead is where it stays.
    db.pass(&JOB, LEASE * 10).await;
    assert_eq!(backend.reap(reap_of(10)).await.unwrap().finishes, []);
    for lane in [Lane::Fresh, Lane::Retry] {
        assert_eq!(claim_shard(&backend, lane, 0, 9).await, []);
    }
}

pub async fn last_attempt_after_a_crash_is_claimed_alone<D: TestDatabase>(db: D) {
    let backend = db.installed(&JOB).await;
    // One that crashed at every attempt but the last, one that failed.
    let crashed = running(&backend, job(1)).await;
    db.pass(&JOB, LEASE + MARGIN).await;
    backend.reap(reap_of(10)).await.unwrap();
    db.pass(&JOB, BACKOFF).await;
    // After its first crash it has two attempts left, and waits as any other.
    let again = claim_shard(&backend, Lane::Retry, 0, 9).await;
    assert_eq!(ids(&again), [crashed.lease.id]);
    db.pass(&JOB, LEASE + MARGIN).await;
    backend.reap(reap_of(10)).await.unwrap();
    let mut has_failed = running(&backend, job(2)).await;
    for _ in 1..ATTEMPTS_MAX {
        let retry = failed(&has_failed, Decision::Retry(Duration::ZERO));
        assert!(finish(&backend, retry).await);
        let claimed = claim_shard(&backend, Lane::Retry, 0, 9).await;
        assert_eq!(ids(&claimed), [has_failed.lease.id]);
        has_failed = claimed.into_iter().next().unwrap();
    }
    db.pass(&JOB, BACKOFF).await;
    assert_eq!(claim_shard(&backend, Lane::Retry, 0, 9).await, []);
    let alone = claim_shard(&backend, Lane::Alone, 0, 9).await;
    assert_eq!(ids(&alone), [crashed.lease.id]);
    assert_eq!(alone[0].attempt_no, ATTEMPTS_MAX);
}
