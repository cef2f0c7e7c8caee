use std::time::Duration;

use retryjob_core::{
    Backend, ErrorKind, Status,
    memory::JobRow,
    op::{
        due::Lane,
        finish::LAST_ERROR_BYTES_MAX,
        operate::{Action, OPERATE_IDS_MAX, Operate, Operation},
    },
    retry::Decision,
};

use crate::{
    TestDatabase,
    act::{
        claim, claim_shard, enqueue, enqueue_one, failed, finish, operate, put_in, running,
        succeeded,
    },
    jobs::{JOB, job, jobs, random_job},
};

/// The row of this job, and all others.
async fn apart<D: TestDatabase>(db: &D, id: u64) -> (JobRow, Vec<JobRow>) {
    let rows = db.rows(&JOB).await.into_iter();
    let (mut own, others): (Vec<_>, Vec<_>) = rows.partition(|row| row.id == id);
    (own.remove(0), others)
}

pub async fn operate_follows_the_state_machine<D: TestDatabase>(db: D) {
    let backend = db.installed(&JOB).await;
    let mut shard_id = 0;
    // Whoever moves it was asked for another.
    put_in(&backend, Status::Pending, 31).await;
    let mut refused = 0;
    for action in Action::ALL {
        for from in Status::ALL {
            let id = put_in(&backend, from, shard_id).await;
            shard_id += 1;
            let (before, others) = apart(&db, id).await;
            let operation = operate(&backend, action, id).await;
            let (after, others_after) = apart(&db, id).await;
            assert_eq!(others_after, others, "{action:?} {from}");
            match from.after(action.step()) {
                Ok(status) => {
                    assert_eq!(operation, Operation::Done { from }, "{action:?} {from}");
                    assert_eq!(after.status, status, "{action:?} {from}");
                    assert_eq!(after.lease_seq, before.lease_seq);
                    assert_eq!(after.lease_until, None);
                }
                Err(_) => {
                    let status = from;
                    assert_eq!(
                        operation,
                        Operation::Refused { status },
                        "{action:?} {from}"
                    );
                    assert_eq!(after, before, "{action:?} {from}");
                    refused += 1;
                }
            }
        }
    }
    assert_eq!(refused, 28 - 3 - 1 - 4 - 3);
}

pub async fn operate_answers_once_per_id_in_the_order_asked_for<D: TestDatabase>(db: D) {
    let backend = db.installed(&JOB).await;
    let stored = enqueue(&backend, jobs(0..3)).await;
    let missing = stored[2] + 1000;
    let ids = [2, 0, 2, 1, 0].map(|at: usize| stored[at]);
    let mut asked = ids.to_vec();
    asked.splice(1..1, [missing, u64::MAX, 0, missing]);
    let hold = |ids: Vec<u64>| Operate {
        action: Action::Hold,
        ids,
        reason: None,
    };
    let done = Operation::Done {
        from: Status::Pending,
    };
    let expected = [
        (stored[2], done),
        (missing, Operation::Missing),
        (u64::MAX, Operation::Missing),
        (0, Operation::Missing),
        (stored[0], done),
        (stored[1], done),
    ];
    let operated = backend.operate(hold(asked.clone())).await.unwrap();
    assert_eq!(operated.answers, expected);

    let again = backend.operate(hold(asked)).await.unwrap();
    let status = Status::Hold;
    for (before, after) in expected.iter().zip(again.answers) {
        let answer = match before.1 {
            Operation::Missing => Operation::Missing,
            Operation::Done { .. } | Operation::Refused { .. } => Operation::Refused { status },
        };
        assert_eq!(after, (before.0, answer));
    }
    let none = backend.operate(hold(Vec::new())).await.unwrap();
    assert_eq!(none.answers, []);
}

pub async fn operate_on_too_many_ids_is_refused<D: TestDatabase>(db: D) {
    let backend = db.installed(&JOB).await;
    let stored = enqueue(&backend, jobs(0..OPERATE_IDS_MAX as u64)).await;
    let before = db.rows(&JOB).await;
    let mut operate = Operate {
        action: Action::Cancel,
        ids: stored,
        reason: None,
    };
    operate.ids.push(u64::MAX);
    let error = backend.operate(operate.clone()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Config, "{error}");
    assert_eq!(db.rows(&JOB).await, before);

    operate.ids.pop();
    let answers = backend.operate(operate).await.unwrap().answers;
    let done = Operation::Done {
        from: Status::Pending,
    };
    assert_eq!(answers.len(), OPERATE_IDS_MAX);
    assert!(answers.iter().all(|(_, operation)| *operation == done));
    let dead = backend.counts().await.unwrap().of(Status::Dead);
    assert_eq!(dead, OPERATE_IDS_MAX as u64);
}

pub async fn operate_keeps_the_reason<D: TestDatabase>(db: D) {
    let backend = db.installed(&JOB).await;
    let id = enqueue_one(&backend, job(1)).await;
    let operate = |action, reason: Option<String>| {
        let backend = backend.clone();
        async move {
            let ids = vec![id];
            let operate = Operate {
                action,
                ids,
                reason,
            };
            backend.operate(operate).await.unwrap();
        }
    };
    let kept = || async { db.row(&JOB, id).await.last_error };

    operate(Action::Hold, Some("the customer's é".into())).await;
    assert_eq!(kept().await.as_deref(), Some("the customer's é"));
    operate(Action::Release, Some("unused".into())).await;
    operate(Action::Hold, None).await;
    assert_eq!(kept().await.as_deref(), Some("the customer's é"));
    let long = "é".repeat(LAST_ERROR_BYTES_MAX);
    operate(Action::Cancel, Some(long.clone())).await;
    let kept = kept().await.unwrap();
    assert!(long.starts_with(&kept));
    assert_eq!(kept.len(), LAST_ERROR_BYTES_MAX);
}

pub async fn release_and_requeue_start_anew_at_once<D: TestDatabase>(db: D) {
    let backend = db.installed(&JOB).await;
    for (decision, action) in [
        (Decision::Hold, Action::Release),
        (Decision::Dead, Action::Requeue),
        (Decision::Manual, Action::Requeue),
    ] {
        let id = enqueue_one(&backend, random_job()).await;
        let first = claim(&backend, Lane::Fresh).await.remove(0);
        let retry = Decision::Retry(Duration::ZERO);
        assert!(finish(&backend, failed(&first, retry)).await);
        let second = claim(&backend, Lane::Retry).await.remove(0);
        assert!(finish(&backend, failed(&second, decision)).await);
        db.pass(&JOB, Duration::from_secs(500)).await;

        operate(&backend, action, id).await;
        let row = db.row(&JOB, id).await;
        assert_eq!((row.status, row.attempt_no), (Status::Pending, 0));
        assert_eq!((row.lease_owner, row.lease_seq), (None, 2));
        assert_eq!(row.due_at, row.updated_at);
        assert_eq!(row.next_attempt_at, row.updated_at);
        assert_eq!(row.last_error.as_deref(), Some("it failed"));

        // What was finished before can't be taken for a repeat.
        assert!(!finish(&backend, failed(&second, decision)).await);
        let again = claim_shard(&backend, Lane::Fresh, 0, 9).await.remove(0);
        assert_eq!((again.attempt_no, again.lease.lease_seq), (1, 3));
        assert!(again.age < Duration::from_secs(30), "{:?}", again.age);
        assert!(finish(&backend, succeeded(&again)).await);
    }
}

pub async fn fence_grows_over_every_claim<D: TestDatabase>(db: D) {
    let backend = db.installed(&JOB).await;
    let mut job = running(&backend, job(1)).await;
    let id = job.lease.id;
    for fence in 2..7 {
        let decision = match fence % 3 {
            0 => Decision::Hold,
            1 => Decision::Dead,
            _ => Decision::Manual,
        };
        assert!(finish(&backend, failed(&job, decision)).await);
        let action = if decision == Decision::Hold {
            Action::Release
        } else {
            Action::Requeue
        };
        operate(&backend, action, id).await;
        job = claim(&backend, Lane::Fresh).await.remove(0);
        assert_eq!(job.lease.lease_seq, fence);
        assert_eq!(db.row(&JOB, id).await.lease_seq, fence);
    }
}
