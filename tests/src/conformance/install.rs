use retryjob_core::{Backend, Column, ColumnType, ErrorKind, Ident, JobSchema, op::due::Lane};

use crate::{
    TestDatabase,
    act::{claim, enqueue},
    jobs::{ARCHIVED, DELETED, JOB, MAIL, job, jobs, mail},
};

pub async fn connect_refuses_a_url_it_cannot_use<D: TestDatabase>(_: D) {
    for url in D::BAD_URLS {
        let refused = D::Backend::connect(url, &JOB).await;
        let error = refused.err().unwrap_or_else(|| panic!("took {url:?}"));
        assert_eq!(error.kind(), ErrorKind::Url, "{url:?}: {error}");
    }
}

pub async fn install_creates_once_and_verifies_afterwards<D: TestDatabase>(db: D) {
    let backend = db.connect(&JOB).await;
    let early = backend.enqueue(jobs([1])).await.unwrap_err();
    assert_eq!(early.kind(), ErrorKind::Schema, "{early}");

    backend.install().await.unwrap();
    enqueue(&backend, jobs([1])).await;
    let before = db.rows(&JOB).await;
    assert_eq!(before.len(), 1);

    backend.install().await.unwrap();
    assert_eq!(db.rows(&JOB).await, before);
}

pub async fn install_by_several_nodes_at_once_agrees<D: TestDatabase>(db: D) {
    let mut nodes = Vec::new();
    for _ in 0..4 {
        let backend = db.connect(&MAIL).await;
        nodes.push(tokio::spawn(async move { backend.install().await }));
    }
    for node in nodes {
        node.await.unwrap().unwrap();
    }
    enqueue(&db.connect(&MAIL).await, vec![mail(1)]).await;
}

/// The table of nodes is one for all job types of a database.
pub async fn install_of_several_job_types_at_once_agrees<D: TestDatabase>(db: D) {
    let mut nodes = Vec::new();
    for schema in [&JOB, &MAIL, &DELETED, &ARCHIVED] {
        let backend = db.connect(schema).await;
        nodes.push(tokio::spawn(async move { backend.install().await }));
    }
    for node in nodes {
        node.await.unwrap().unwrap();
    }
}

/// The table of `MAIL` with two columns more.
const WANTS_MORE: JobSchema = JobSchema {
    columns: &MORE,
    ..MAIL
}
.checked();

const MORE: [Column; 4] = [
    MAIL.columns[0],
    MAIL.columns[1],
    extra("region"),
    extra("tariff"),
];

const fn extra(name: &'static str) -> Column {
    Column {
        name: Ident::new(name),
        kind: ColumnType::U32,
        nullable: false,
        index: false,
    }
}

pub async fn install_names_every_difference_and_changes_nothing<D: TestDatabase>(db: D) {
    let backend = db.installed(&MAIL).await;
    enqueue(&backend, vec![mail(1)]).await;
    let before = db.rows(&MAIL).await;

    let wants_more = db.connect(&WANTS_MORE).await;
    let error = wants_more.install().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Schema);
    for name in ["region", "tariff"] {
        assert!(error.to_string().contains(name), "{name}: {error}");
    }
    assert!(!error.to_string().contains("memo"), "{error}");

    assert_eq!(db.rows(&MAIL).await, before);
    backend.install().await.unwrap();
    enqueue(&backend, vec![mail(2)]).await;
}

pub async fn job_types_of_one_database_keep_apart<D: TestDatabase>(db: D) {
    let one = db.installed(&JOB).await;
    let other = one.for_schema(&MAIL);
    other.install().await.unwrap();
    assert_eq!(other.schema(), &MAIL);

    enqueue(&one, vec![job(1)]).await;
    enqueue(&other, vec![mail(1), mail(2)]).await;

    assert_eq!(claim(&other, Lane::Fresh).await.len(), 2);
    assert_eq!(one.counts().await.unwrap().open(), 1);
    let again = one.reconnect().await.unwrap();
    assert_eq!(claim(&again, Lane::Fresh).await.len(), 1);
    again.close().await;
    assert_eq!(one.counts().await.unwrap().open(), 1);
}
