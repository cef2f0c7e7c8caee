//! No connection is used again on which a server may refuse to write.
#![allow(clippy::unwrap_used, reason = "a panic is a failed test")]

use std::{collections::BTreeSet, time::Duration};

use retryjob::{Backend, ErrorKind, Mysql8, Mysql57, RetryJob};
use retryjob_core::Queue;
use retryjob_tests::{faults::Instance, inspect::ServerUnderTest};
use sqlx::{AssertSqlSafe, MySqlConnection};

#[derive(Debug, RetryJob)]
#[retry_job(table = "note")]
struct Note {
    #[job(unique)]
    no: u32,
}

async fn as_root(server: &Instance, sql: String) {
    let mut root = server.connection().await;
    let done = sqlx::raw_sql(AssertSqlSafe(sql)).execute(&mut root).await;
    done.unwrap();
}

async fn id(connection: &mut MySqlConnection) -> u64 {
    let id = sqlx::query_scalar("SELECT CONNECTION_ID()").fetch_one(connection);
    id.await.unwrap()
}

/// The connections of the pool, by their numbers.
async fn ids<B>(backend: &B, count: usize) -> BTreeSet<u64>
where
    B: Backend<Connection = MySqlConnection>,
{
    let mut open = Vec::new();
    for _ in 0..count {
        open.push(backend.begin().await.unwrap());
    }
    let mut ids = BTreeSet::new();
    for mut tx in open {
        ids.insert(id(&mut tx).await);
        backend.rollback(tx).await.unwrap();
    }
    ids
}

async fn refused_connections_are_not_used_again<B>(kind: ServerUnderTest)
where
    B: Backend<Connection = MySqlConnection>,
{
    let server = Instance::start(kind, &[]).await;
    let url = server.database().await;
    // Whoever may do anything may also write to a server that is read-only.
    let user = "CREATE USER app@127.0.0.1 IDENTIFIED BY 'app'; GRANT ALL ON `retryjob\\_test\\_%`.* TO app@127.0.0.1";
    as_root(&server, user.into()).await;
    let url = url.replace("root:retryjob", "app:app");
    let queue = Queue::<Note, B>::connect(&url).await.unwrap();
    queue.install().await.unwrap();
    let backend = queue.backend();
    let before = ids(backend, 3).await;

    // Begun while the server still wrote: only the caller can run it again.
    let mut tx = backend.begin().await.unwrap();
    as_root(&server, "SET GLOBAL read_only = 1".into()).await;
    let refused = queue
        .enqueue_in(&mut tx, &Note { no: 1 })
        .await
        .unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Transient, "{refused}");
    let _ = backend.rollback(tx).await;
    as_root(&server, "SET GLOBAL read_only = 0".into()).await;
    let after = ids(backend, 3).await;
    assert!(
        after.is_disjoint(&before),
        "{kind:?}: {after:?} and {before:?}"
    );

    // Begun on a read-only server, it waits until the server writes.
    as_root(&server, "SET GLOBAL read_only = 1".into()).await;
    let mut begin = Box::pin(backend.begin());
    let waited = tokio::time::timeout(Duration::from_millis(300), &mut begin).await;
    assert!(
        waited.is_err(),
        "{kind:?}: a transaction began that can't write"
    );
    as_root(&server, "SET GLOBAL read_only = 0".into()).await;
    let mut tx = begin.await.unwrap();
    assert!(!after.contains(&id(&mut tx).await));
    queue.enqueue_in(&mut tx, &Note { no: 1 }).await.unwrap();
    backend.commit(tx).await.unwrap();
}

/// A frozen server keeps its connections open and answers nothing.
async fn operations_on_a_silent_server_end<B: Backend>(kind: ServerUnderTest) {
    let server = Instance::start(kind, &[]).await;
    let url = server.database().await;
    let queue = Queue::<Note, B>::connect(&url).await.unwrap();
    queue.install().await.unwrap();
    queue.enqueue(&Note { no: 1 }).await.unwrap();
    server.stop_process();
    let limit = Duration::from_secs(150);
    let ended = tokio::time::timeout(limit, queue.enqueue(&Note { no: 2 })).await;
    let error = ended.expect("it waits for ever").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Transient, "{error}");
    server.continue_process();
    let stored = queue.enqueue(&Note { no: 3 }).await.unwrap();
    assert!(stored.is_new);
}

#[tokio::test]
async fn operations_on_a_silent_server_end_on_mysql_8() {
    operations_on_a_silent_server_end::<Mysql8>(ServerUnderTest::Mysql8).await;
}

#[tokio::test]
async fn operations_on_a_silent_server_end_on_mariadb() {
    operations_on_a_silent_server_end::<Mysql8>(ServerUnderTest::Mariadb).await;
}

#[tokio::test]
async fn refused_connections_are_not_used_again_on_mysql_8() {
    refused_connections_are_not_used_again::<Mysql8>(ServerUnderTest::Mysql8).await;
}

#[tokio::test]
async fn refused_connections_are_not_used_again_on_mysql_57() {
    refused_connections_are_not_used_again::<Mysql57>(ServerUnderTest::Mysql57).await;
}

#[tokio::test]
async fn refused_connections_are_not_used_again_on_mariadb() {
    refused_connections_are_not_used_again::<Mysql8>(ServerUnderTest::Mariadb).await;
}
