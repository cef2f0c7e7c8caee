use std::collections::BTreeSet;

use retryjob_core::{Backend, ErrorKind, Status, op::due::Lane, retry::Decision};

use crate::{
    TestDatabase as _,
    act::{claim, enqueue, failed, succeeded},
    database::server::{Flavour, Server},
    jobs::{JOB, jobs, payload},
};

/// Two callers store the same two jobs crosswise, each beside a note.
pub async fn deadlock_in_the_callers_transaction_surfaces_and_leaves_nothing<F: Flavour>(
    db: Server<F>,
) {
    let backend = db.installed(&JOB).await;
    let mut one = backend.begin().await.unwrap();
    let mut other = backend.begin().await.unwrap();
    for (tx, first) in [(&mut one, 1), (&mut other, 2)] {
        db.note(tx).await;
        backend.enqueue_in(tx, jobs([first])).await.unwrap();
    }
    let crossing = {
        let backend = backend.clone();
        tokio::spawn(async move {
            let enqueued = backend.enqueue_in(&mut one, jobs([2, 3])).await;
            (one, enqueued)
        })
    };
    let of_other = backend.enqueue_in(&mut other, jobs([1, 4])).await;
    if of_other.is_err() {
        // Its locks are gone with it; the first one goes on.
        backend.rollback(other).await.unwrap();
        let (one, of_one) = crossing.await.unwrap();
        told(&db, of_other, of_one).await;
        backend.commit(one).await.unwrap();
        kept(&db, [1, 2, 3]).await;
    } else {
        let (one, of_one) = crossing.await.unwrap();
        backend.rollback(one).await.unwrap();
        told(&db, of_one, of_other).await;
        backend.commit(other).await.unwrap();
        kept(&db, [2, 1, 4]).await;
    }
}

type Answer = retryjob_core::Result<Vec<retryjob_core::op::enqueue::Enqueued>>;

async fn told<F: Flavour>(db: &Server<F>, loser: Answer, winner: Answer) {
    let error = loser.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Transient, "{error}");
    assert!(winner.unwrap().iter().all(|enqueued| enqueued.is_new));
    assert_eq!(db.rows(&JOB).await.len(), 0, "nothing before a commit");
}

async fn kept<F: Flavour>(db: &Server<F>, numbers: [u64; 3]) {
    let stored = db.rows(&JOB).await.into_iter().map(|row| row.payload);
    let stored: BTreeSet<_> = stored.collect();
    assert_eq!(stored, numbers.map(|n| Some(payload(n))).into());
    assert_eq!(db.notes().await, 1, "the note of the one that won");
}

pub async fn finish_waits_for_a_lock_and_is_written<F: Flavour>(db: Server<F>) {
    let backend = db.installed(&JOB).await;
    enqueue(&backend, jobs([1, 2])).await;
    let claimed = claim(&backend, Lane::Fresh).await;
    let mut tx = backend.begin().await.unwrap();
    backend
        .finish_in(&mut tx, succeeded(&claimed[0]))
        .await
        .unwrap();

    let finishes = vec![
        failed(&claimed[0], Decision::Dead),
        failed(&claimed[1], Decision::Dead),
    ];
    let finishing = {
        let backend = backend.clone();
        tokio::spawn(async move { backend.finish(finishes).await })
    };
    backend.commit(tx).await.unwrap();
    let lost = finishing.await.unwrap().unwrap().lost;
    let statuses: Vec<_> = db.rows(&JOB).await.iter().map(|row| row.status).collect();
    // Whoever came first has written the first job, and the other was told.
    match lost.as_slice() {
        [] => panic!("both took the first job: {statuses:?}"),
        [lost] => assert_eq!(*lost, claimed[0].lease.id),
        more => panic!("lost {more:?}"),
    }
    assert_eq!(statuses, [Status::Success, Status::Dead]);
}
