use std::collections::BTreeSet;

use retryjob_core::op::enqueue::NewJob;

use crate::{
    TestDatabase,
    act::enqueue,
    jobs::{JOB, job, key_of},
};

pub async fn keys_that_collations_take_for_the_same_stay_apart<D: TestDatabase>(db: D) {
    let backend = db.installed(&JOB).await;
    let texts = [
        "Key-A",
        "key-a",
        "e1",
        "é1",
        "e\u{301}1",
        "ss",
        "ß",
        "t",
        "t ",
        "t\0",
        "",
        " ",
        "😀1",
        "😁1",
        "1",
        "ı",
        "i",
        "İ",
        "ﬁ",
        "fi",
    ];
    let keyed = texts.map(|text| NewJob {
        idempotency_key: key_of(text),
        ..job(0)
    });
    let ids = enqueue(&backend, keyed.to_vec()).await;
    let ids: BTreeSet<_> = ids.into_iter().collect();
    assert_eq!(ids.len(), texts.len());
    for (row, new) in db.rows(&JOB).await.iter().zip(keyed) {
        assert_eq!(row.idempotency_key, new.idempotency_key);
    }
}
