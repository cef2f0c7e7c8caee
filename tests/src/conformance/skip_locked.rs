use retryjob_core::op::due::Lane;

use crate::{
    TestDatabase as _,
    act::{claim_as, enqueue, ids, owner},
    database::server::{Flavour, Server},
    jobs::{JOB, jobs},
};

pub async fn claim_passes_over_rows_that_another_transaction_has_locked<F: Flavour>(db: Server<F>) {
    let backend = db.installed(&JOB).await;
    let stored = enqueue(&backend, jobs(0..10)).await;
    let lock = db.lock(&JOB, &stored[..5]).await;
    let claimed = claim_as(&backend, owner(), Lane::Fresh, 8).await;
    assert_eq!(ids(&claimed), stored[5..]);
    lock.rollback().await.unwrap();
    let claimed = claim_as(&backend, owner(), Lane::Fresh, 8).await;
    assert_eq!(ids(&claimed), stored[..5]);
}
