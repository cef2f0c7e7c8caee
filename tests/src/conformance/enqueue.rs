use std::{collections::BTreeSet, time::Duration};

use retryjob_core::{
    Backend, ErrorKind, Status,
    op::enqueue::{Due, NewJob},
};

use crate::{
    TestDatabase,
    act::{enqueue, enqueue_one},
    jobs::{JOB, job, jobs, key_of, payload, random_job},
};

pub async fn enqueue_says_which_keys_were_already_there<D: TestDatabase>(db: D) {
    let backend = db.installed(&JOB).await;
    let first = enqueue(&backend, jobs([1, 2])).await;

    let again = NewJob {
        payload: Some("{\"other\":true}".into()),
        due: Due::In(Duration::from_secs(9)),
        ..job(2)
    };
    let before = db.rows(&JOB).await;
    let answers = backend.enqueue(vec![again]).await.unwrap();
    assert_eq!((answers[0].id, answers[0].is_new), (first[1], false));
    assert_eq!(db.rows(&JOB).await, before);

    // Known, new, repeated within the call, known.
    let mixed = backend.enqueue(jobs([1, 3, 3, 2])).await.unwrap();
    let new: Vec<_> = mixed.iter().map(|answer| answer.is_new).collect();
    assert_eq!(new, [false, true, false, false]);
    let ids: Vec<_> = mixed.iter().map(|answer| answer.id).collect();
    assert_eq!(ids[1], ids[2]);
    assert_eq!((ids[0], ids[3]), (first[0], first[1]));
    assert_eq!(db.rows(&JOB).await.len(), 3);
    assert_eq!(db.row(&JOB, ids[1]).await.payload, Some(payload(3)));
}

pub async fn enqueue_of_many_is_all_or_nothing<D: TestDatabase>(db: D) {
    let backend = db.installed(&JOB).await;
    enqueue(&backend, jobs([0])).await;
    // Far behind the first statement's worth of rows is one that no database
    // takes: the column of the payload is NOT NULL.
    let broken = NewJob {
        payload: None,
        ..random_job()
    };
    let mut many = jobs(1..1500);
    many.push(broken);
    backend.enqueue(many).await.unwrap_err();
    assert_eq!(db.rows(&JOB).await.len(), 1);

    enqueue(&backend, jobs(1..1500)).await;
    assert_eq!(db.rows(&JOB).await.len(), 1500);
}

pub async fn enqueue_answers_in_the_order_of_the_call<D: TestDatabase>(db: D) {
    let backend = db.installed(&JOB).await;
    enqueue(&backend, jobs([40, 7])).await;
    let numbers = [9, 40, 3, 12, 7, 1, 55];
    let answers = backend.enqueue(jobs(numbers)).await.unwrap();
    assert_eq!(answers.len(), numbers.len());
    for (n, answer) in numbers.into_iter().zip(answers) {
        let row = db.row(&JOB, answer.id).await;
        assert_eq!(row.payload, Some(payload(n)));
        assert_eq!(row.idempotency_key, key_of(&n));
        assert_eq!(answer.is_new, n != 40 && n != 7);
    }
}

pub async fn enqueue_of_nothing_is_nothing<D: TestDatabase>(db: D) {
    let backend = db.installed(&JOB).await;
    assert_eq!(backend.enqueue(Vec::new()).await.unwrap(), []);
    assert_eq!(db.rows(&JOB).await, []);
}

pub async fn enqueue_counts_due_and_spread_from_its_own_now<D: TestDatabase>(db: D) {
    const SPREAD: Duration = Duration::from_micros(7_000_001);
    let backend = db.installed(&JOB).await;
    let late = Duration::from_micros(3_600_000_003);
    for due in [Due::Now, Due::In(late)] {
        let new = NewJob {
            due,
            spread: SPREAD,
            shard_id: 31,
            ..random_job()
        };
        let key = new.idempotency_key;
        let id = enqueue_one(&backend, new).await;
        let row = db.row(&JOB, id).await;
        let after = match due {
            Due::In(span) => span,
            Due::Now | Due::At(_) => Duration::ZERO,
        };
        assert_eq!(row.due_at, row.created_at.plus(after));
        assert_eq!(row.next_attempt_at, row.due_at.plus(SPREAD));
        assert_eq!(row.updated_at, row.created_at);
        assert_eq!((row.status, row.attempt_no), (Status::Pending, 0));
        assert_eq!((row.lease_owner, row.lease_seq), (None, 0));
        assert_eq!((row.lease_until, row.last_error), (None, None));
        assert_eq!((row.shard_id, row.idempotency_key), (31, key));
    }
}

pub async fn oversize_payload_is_refused_before_anything_is_sent<D: TestDatabase>(db: D) {
    let Some(bytes) = db.oversize_bytes().await else {
        return;
    };
    let backend = db.installed(&JOB).await;
    let huge = NewJob {
        payload: Some(format!("\"{}\"", "x".repeat(bytes))),
        ..job(2)
    };
    let error = backend
        .enqueue(vec![job(1), huge.clone(), job(3)])
        .await
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TooLarge, "{error}");

    let mut tx = backend.begin().await.unwrap();
    let refused = backend.enqueue_in(&mut tx, vec![huge]).await;
    assert_eq!(refused.unwrap_err().kind(), ErrorKind::TooLarge);
    // The connection is as good as before.
    backend.enqueue_in(&mut tx, vec![job(4)]).await.unwrap();
    backend.commit(tx).await.unwrap();
    assert_eq!(db.rows(&JOB).await.len(), 1);
}

pub async fn batches_beyond_rows_and_bytes_of_one_statement_are_stored<D: TestDatabase>(db: D) {
    let backend = db.installed(&JOB).await;
    let ids = enqueue(&backend, jobs(0..2500)).await;
    assert_eq!(ids.iter().collect::<BTreeSet<_>>().len(), 2500);
    let rows = db.rows(&JOB).await;
    assert_eq!(rows.len(), 2500);
    let stored: BTreeSet<_> = rows.into_iter().map(|row| (row.id, row.payload)).collect();
    for (id, n) in ids.into_iter().zip(0..) {
        assert!(stored.contains(&(id, Some(payload(n)))), "job {n}");
    }

    // Together far more than the 4 MiB that MySQL 5.7 takes at once, each no
    // more than half of what a server of less takes.
    let most = db.oversize_bytes().await.unwrap_or(usize::MAX);
    let text = format!("\"{}\"", "é".repeat(350_000.min(most / 4)));
    let large = (0..12).map(|_| NewJob {
        payload: Some(text.clone()),
        ..random_job()
    });
    let ids = enqueue(&backend, large.collect()).await;
    for id in ids {
        let kept = db.row(&JOB, id).await.payload.unwrap();
        assert!(kept == text, "the payload of {id} has {} bytes", kept.len());
    }
}

pub async fn the_same_keys_enqueued_at_once_make_one_job_each<D: TestDatabase>(db: D) {
    const CALLERS: u64 = 6;
    let backend = db.installed(&JOB).await;
    let calls: Vec<_> = (0..CALLERS)
        .map(|caller| {
            let backend = backend.clone();
            // Each in another order, so that they meet crosswise.
            let numbers: Vec<_> = (0..60).map(|n| (n * 7 + caller * 11) % 60).collect();
            tokio::spawn(async move { backend.enqueue(jobs(numbers)).await })
        })
        .collect();
    let mut answers = Vec::new();
    for call in calls {
        answers.extend(call.await.unwrap().unwrap());
    }
    assert_eq!(answers.iter().filter(|answer| answer.is_new).count(), 60);
    let ids: BTreeSet<_> = answers.iter().map(|answer| answer.id).collect();
    let stored: BTreeSet<_> = db.rows(&JOB).await.iter().map(|row| row.id).collect();
    assert_eq!(ids, stored);
    assert_eq!(stored.len(), 60);
}
