use std::time::Duration;

use retryjob_core::{
    Backend, JobSchema, Status,
    op::{
        claim::ClaimedJob,
        due::Lane,
        finish::{Ending, Finish, LAST_ERROR_BYTES_MAX},
        reap::Reap,
    },
    retry::{Decision, Failure, Verdict},
};

use crate::{
    TestDatabase,
    act::{
        claim, claim_shard, ended, enqueue, failed, finish, given_back, ids, owner, running,
        succeeded,
    },
    jobs::{ATTEMPTS_MAX, BACKOFF, DELETED, JOB, LEASE, job, jobs, random_job},
};

const DELAY: Duration = Duration::from_micros(90_000_007);
const MARGIN: Duration = Duration::from_secs(30);

/// What a row holds after a finish.
struct Expected {
    ending: Ending,
    status: Status,
    attempt_no: u16,
    delay: Duration,
    error: Option<&'static str>,
}

fn table(is_retried: bool) -> Vec<Expected> {
    let attempts = if is_retried { 2 } else { 1 };
    let failure = |decision: Decision, status, delay| Expected {
        ending: Ending::Failed {
            decision,
            error: "it failed".into(),
        },
        status,
        attempt_no: attempts,
        delay,
        error: Some("it failed"),
    };
    let earlier = is_retried.then_some("earlier");
    vec![
        failure(Decision::Retry(DELAY), Status::Retry, DELAY),
        failure(Decision::Dead, Status::Dead, Duration::ZERO),
        failure(Decision::Manual, Status::Failed, Duration::ZERO),
        failure(Decision::Hold, Status::Hold, Duration::ZERO),
        Expected {
            ending: Ending::Success,
            status: Status::Success,
            attempt_no: attempts,
            delay: Duration::ZERO,
            error: earlier,
        },
        Expected {
            ending: Ending::GiveBack { delay: DELAY },
            status: if is_retried {
                Status::Retry
            } else {
                Status::Pending
            },
            attempt_no: attempts - 1,
            delay: DELAY,
            error: earlier,
        },
    ]
}

/// One job per line of the table, each on its first or second attempt.
async fn started<D: TestDatabase>(db: &D, backend: &D::Backend, again: bool) -> Vec<ClaimedJob> {
    let count = table(again).len();
    let news = (0..count).map(|_| random_job());
    enqueue(backend, news.collect()).await;
    let first = claim_shard(backend, Lane::Fresh, 0, 100).await;
    assert_eq!(first.len(), count);
    if !again {
        return first;
    }
    let earlier = first.iter().map(|job| {
        let decision = Decision::Retry(Duration::from_secs(1));
        let error = "earlier".into();
        ended(job, Ending::Failed { decision, error })
    });
    backend.finish(earlier.collect()).await.unwrap();
    db.pass(&JOB, Duration::from_secs(1)).await;
    let second = claim_shard(backend, Lane::Retry, 0, 100).await;
    assert_eq!(second.len(), count);
    second
}

pub async fn finish_moves_each_job_where_its_outcome_says<D: TestDatabase>(db: D) {
    let backend = db.installed(&JOB).await;
    for again in [false, true] {
        let started = started(&db, &backend, again).await;
        let finishes: Vec<_> = started
            .iter()
            .zip(table(again))
            .map(|(job, expected)| ended(job, expected.ending))
            .collect();
        let finished = backend.finish(finishes).await.unwrap();
        assert!(finished.lost.is_empty());
        for (job, expected) in started.iter().zip(table(again)) {
            let row = db.row(&JOB, job.lease.id).await;
            let ending = &expected.ending;
            assert_eq!(row.status, expected.status, "{ending:?}");
            assert_eq!(row.attempt_no, expected.attempt_no, "{ending:?}");
            assert_eq!(row.last_error.as_deref(), expected.error, "{ending:?}");
            assert_eq!(row.lease_until, None, "{ending:?}");
            assert_eq!(row.lease_owner.as_ref(), Some(&job.lease.owner));
            assert_eq!(row.lease_seq, job.lease.lease_seq);
            if row.status != Status::Success {
                let next = row.updated_at.plus(expected.delay);
                assert_eq!(row.next_attempt_at, next, "{ending:?}");
            }
        }
        due_after_delay(&db, &backend, again).await;
    }
}

/// What waits after the table's finishes is claimed after its delay alone.
async fn due_after_delay<D: TestDatabase>(db: &D, backend: &D::Backend, again: bool) {
    let lanes = if again {
        vec![(Lane::Retry, 2), (Lane::Fresh, 0)]
    } else {
        vec![(Lane::Retry, 1), (Lane::Fresh, 1)]
    };
    for (lane, _) in &lanes {
        assert_eq!(claim_shard(backend, *lane, 0, 100).await, []);
    }
    db.pass(&JOB, DELAY).await;
    for (lane, count) in lanes {
        let claimed = claim_shard(backend, lane, 0, 100).await;
        assert_eq!(claimed.len(), count, "{lane:?}");
        let finishes = claimed.iter().map(succeeded);
        backend.finish(finishes.collect()).await.unwrap();
    }
}

pub async fn finish_of_many_writes_all_but_the_lost<D: TestDatabase>(db: D) {
    let backend = db.installed(&JOB).await;
    enqueue(&backend, jobs(0..150)).await;
    let mut claimed = claim_shard(&backend, Lane::Fresh, 0, 75).await;
    claimed.extend(claim_shard(&backend, Lane::Fresh, 0, 75).await);
    assert_eq!(claimed.len(), 150);
    let finishes = claimed.iter().enumerate().map(|(at, job)| {
        let mut finish = match at % 3 {
            0 => succeeded(job),
            1 => failed(job, Decision::Retry(DELAY)),
            _ => failed(job, Decision::Dead),
        };
        if at == 70 || at == 99 || at == 149 {
            finish.lease.lease_seq += 1;
        }
        finish
    });
    // In whatever order they come.
    let finishes: Vec<_> = finishes.rev().collect();
    let mut lost = backend.finish(finishes).await.unwrap().lost;
    lost.sort_unstable();
    let mut expected = [70, 99, 149].map(|at: usize| claimed[at].lease.id);
    expected.sort_unstable();
    assert_eq!(lost, expected);

    let rows = db.rows(&JOB).await;
    for (at, job) in claimed.iter().enumerate() {
        let row = rows.iter().find(|row| row.id == job.lease.id).unwrap();
        let status = match at {
            70 | 99 | 149 => Status::Running,
            at if at % 3 == 0 => Status::Success,
            at if at % 3 == 1 => Status::Retry,
            _ => Status::Dead,
        };
        assert_eq!(row.status, status, "job {at}");
    }
}

pub async fn finish_twice_is_no_error<D: TestDatabase>(db: D) {
    let backend = db.installed(&JOB).await;
    for again in [false, true] {
        let started = started(&db, &backend, again).await;
        let pairs = started.iter().zip(table(again));
        let finishes: Vec<_> = pairs.map(|(job, line)| ended(job, line.ending)).collect();
        assert!(
            backend
                .finish(finishes.clone())
                .await
                .unwrap()
                .lost
                .is_empty()
        );
        let before = db.rows(&JOB).await;
        assert!(backend.finish(finishes).await.unwrap().lost.is_empty());
        assert_eq!(db.rows(&JOB).await, before);

        // Another outcome for what is finished is not a repeat.
        let other = failed(&started[0], Decision::Hold);
        assert!(!finish(&backend, other).await);
        assert_eq!(db.rows(&JOB).await, before);
        db.pass(&JOB, DELAY).await;
        claim_shard(&backend, Lane::Fresh, 0, 100).await;
        claim_shard(&backend, Lane::Retry, 0, 100).await;
    }
}

/// A job comes twice in one call: as a repeat, with another outcome, and with
/// the lease that it had before.
pub async fn finishes_of_one_job_in_one_call_are_judged_by_their_leases<D: TestDatabase>(db: D) {
    let backend = db.installed(&JOB).await;
    let old = running(&backend, job(1)).await;
    db.pass(&JOB, LEASE + MARGIN).await;
    backend.reap(Reap { limit: 9 }).await.unwrap();
    db.pass(&JOB, BACKOFF).await;
    let new = claim(&backend, Lane::Retry).await.remove(0);
    let retry = Decision::Retry(DELAY);
    let call = vec![
        failed(&old, Decision::Dead),
        failed(&new, retry),
        succeeded(&old),
        failed(&new, retry),
        failed(&new, Decision::Hold),
    ];
    let lost = backend.finish(call).await.unwrap().lost;
    assert_eq!(
        lost, [new.lease.id; 3],
        "all but the outcome and its repeat"
    );
    let row = db.row(&JOB, new.lease.id).await;
    assert_eq!((row.status, row.attempt_no), (Status::Retry, 2));
    assert_eq!(row.next_attempt_at, row.updated_at.plus(DELAY));
}

/// A finish that comes too late: it is told so, and nothing changes.
async fn is_lost<D: TestDatabase>(db: &D, backend: &D::Backend, late: Finish) {
    let schema = backend.schema();
    let before = db.rows(schema).await;
    let endings = [
        Ending::Success,
        Ending::GiveBack { delay: DELAY },
        late.ending.clone(),
    ];
    for ending in endings {
        let late = Finish {
            ending,
            ..late.clone()
        };
        assert!(!finish(backend, late).await);
    }
    assert_eq!(db.rows(schema).await, before);
}

/// Rows that succeed are changed in one, and removed in the other.
const KEPT_AND_DELETED: [&JobSchema; 2] = [&JOB, &DELETED];

pub async fn finish_after_the_lease_lapsed_is_refused<D: TestDatabase>(db: D) {
    for schema in KEPT_AND_DELETED {
        let backend = db.installed(schema).await;
        let job = running(&backend, job(1)).await;
        db.pass(schema, LEASE - MARGIN).await;
        let row = db.row(schema, job.lease.id).await;
        assert_eq!(row.status, Status::Running);
        db.pass(schema, MARGIN + Duration::from_micros(1)).await;
        is_lost(&db, &backend, failed(&job, Decision::Dead)).await;
    }
}

pub async fn finish_by_an_older_lease_is_refused<D: TestDatabase>(db: D) {
    for schema in KEPT_AND_DELETED {
        let backend = db.installed(schema).await;
        let old = running(&backend, job(1)).await;
        db.pass(schema, LEASE + MARGIN).await;
        let reaped = backend.reap(Reap { limit: 9 }).await.unwrap();
        assert_eq!(reaped.finishes.len(), 1);
        db.pass(schema, BACKOFF).await;
        let new = claim(&backend, Lane::Retry).await.remove(0);
        assert_eq!(new.lease.lease_seq, old.lease.lease_seq + 1);

        is_lost(&db, &backend, failed(&old, Decision::Dead)).await;
        // With the new owner's name the old fence is still the old fence.
        let mut forged = failed(&new, Decision::Dead);
        forged.lease.lease_seq = old.lease.lease_seq;
        is_lost(&db, &backend, forged).await;
        assert!(finish(&backend, succeeded(&new)).await);
    }
}

pub async fn finish_by_another_owner_is_refused<D: TestDatabase>(db: D) {
    for schema in KEPT_AND_DELETED {
        let backend = db.installed(schema).await;
        let job = running(&backend, job(1)).await;
        let mut other = failed(&job, Decision::Dead);
        other.lease.owner = owner();
        is_lost(&db, &backend, other).await;
        let mut missing = failed(&job, Decision::Dead);
        missing.lease.id += 1000;
        is_lost(&db, &backend, missing).await;
        assert!(finish(&backend, succeeded(&job)).await);
    }
}

pub async fn finish_keeps_an_error_cut_between_characters<D: TestDatabase>(db: D) {
    let backend = db.installed(&JOB).await;
    // One byte, then characters of four: 2000 falls inside one.
    let long = format!("x{}", "😀".repeat(1_000_000));
    let awkward = "it said: 'no' \\ \" \0 %s ? é\n".to_owned();
    for error in [long, awkward] {
        let job = running(&backend, random_job()).await;
        let decision = Decision::Dead;
        let failed = ended(
            &job,
            Ending::Failed {
                decision,
                error: error.clone(),
            },
        );
        assert!(finish(&backend, failed).await);
        let kept = db.row(&JOB, job.lease.id).await.last_error.unwrap();
        assert!(error.starts_with(&kept));
        let whole = error.len().min(LAST_ERROR_BYTES_MAX);
        assert!(kept.len() > whole - 4 && kept.len() <= whole);
    }
}

pub async fn finish_without_an_error_keeps_the_last_one<D: TestDatabase>(db: D) {
    let backend = db.installed(&JOB).await;
    let job = running(&backend, job(1)).await;
    let retry = failed(&job, Decision::Retry(Duration::ZERO));
    assert!(finish(&backend, retry).await);
    let again = claim_shard(&backend, Lane::Retry, 0, 1).await.remove(0);
    assert!(finish(&backend, given_back(&again, Duration::ZERO)).await);
    let row = db.row(&JOB, job.lease.id).await;
    assert_eq!(row.last_error.as_deref(), Some("it failed"));
}

pub async fn attempts_end_with_the_maximum<D: TestDatabase>(db: D) {
    let backend = db.installed(&JOB).await;
    let mut job = running(&backend, job(1)).await;
    let id = job.lease.id;
    let mut runs = 1;
    loop {
        let decision = JOB.retry.decide(Failure {
            attempt_no: job.attempt_no,
            age: job.age,
            verdict: Verdict::Retry,
            seed: id,
        });
        assert!(finish(&backend, failed(&job, decision)).await);
        assert_eq!(
            claim(&backend, Lane::Retry).await,
            [],
            "not before its time"
        );
        db.pass(&JOB, BACKOFF).await;
        let mut next = claim(&backend, Lane::Retry).await;
        if next.is_empty() {
            break;
        }
        assert_eq!(ids(&next), [id]);
        job = next.remove(0);
        runs += 1;
        assert_eq!(job.attempt_no, runs);
    }
    assert_eq!(runs, ATTEMPTS_MAX);
    let row = db.row(&JOB, id).await;
    assert_eq!((row.status, row.attempt_no), (Status::Dead, ATTEMPTS_MAX));
}
