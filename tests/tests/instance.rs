//! A test's own server does what a test needs of it.
#![allow(clippy::unwrap_used, reason = "a panic is a failed test")]

use std::time::{Duration, Instant};

use retryjob_tests::{
    faults::{Instance, report::say},
    inspect::ServerUnderTest,
};
use sqlx::{ConnectOptions as _, MySqlConnection, mysql::MySqlConnectOptions};

async fn rows(connection: &mut MySqlConnection) -> Vec<i32> {
    let rows = sqlx::query_scalar("SELECT id FROM kept").fetch_all(connection);
    rows.await.unwrap()
}

async fn keeps_what_was_committed(kind: ServerUnderTest) {
    let began = Instant::now();
    let mut server =
        Instance::start(kind, &["--log-bin", "--sync-binlog=1", "--server-id=7"]).await;
    let started = began.elapsed();
    let options: MySqlConnectOptions = server.database().await.parse().unwrap();

    let mut connection = options.connect().await.unwrap();
    for sql in [
        "CREATE TABLE kept (id INT PRIMARY KEY)",
        "INSERT INTO kept VALUES (1)",
    ] {
        sqlx::query(sql).execute(&mut connection).await.unwrap();
    }
    let settings = "SELECT @@log_bin + @@sync_binlog + @@innodb_flush_log_at_trx_commit";
    let durable: u64 = sqlx::query_scalar(settings)
        .fetch_one(&mut connection)
        .await
        .unwrap();
    assert_eq!(durable, 3);

    server.kill();
    assert!(options.connect().await.is_err());
    let began = Instant::now();
    server.restart().await;
    let restarted = began.elapsed();
    let mut connection = options.connect().await.unwrap();
    assert_eq!(rows(&mut connection).await, [1]);

    server.stop_process();
    let mut asking = Box::pin(rows(&mut connection));
    let unanswered = tokio::time::timeout(Duration::from_millis(200), &mut asking);
    assert!(unanswered.await.is_err());
    server.continue_process();
    assert_eq!(asking.await, [1]);
    say(format!(
        "{kind:?}: started in {started:.1?}, after a kill in {restarted:.1?}"
    ));
}

#[tokio::test]
async fn mysql_8_keeps_what_was_committed() {
    keeps_what_was_committed(ServerUnderTest::Mysql8).await;
}

#[tokio::test]
async fn mysql_57_keeps_what_was_committed() {
    keeps_what_was_committed(ServerUnderTest::Mysql57).await;
}

#[tokio::test]
async fn mariadb_keeps_what_was_committed() {
    keeps_what_was_committed(ServerUnderTest::Mariadb).await;
}
