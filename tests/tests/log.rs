//! Nothing is sent besides the catalogue: compared with the servers' own log.
#![allow(clippy::unwrap_used, reason = "a panic is a failed test")]

use std::{collections::BTreeSet, time::Duration};

use retryjob::{
    Backend, Leased, Mysql8, Mysql57, Outcome, RetryJob, op::reap::Reap, sql::Catalogue,
};
use retryjob_core::Queue;
use retryjob_tests::inspect::ServerUnderTest;
use sqlx::{AssertSqlSafe, MySqlConnection, Row as _};

/// A job whose retries are due at once.
#[derive(Debug, RetryJob)]
#[retry_job(table = "logged", shards = 4, retry(fixed = "1ms", max_attempts = 3))]
struct Logged {
    #[job(unique)]
    no: u32,
}

/// What opens and ends transactions.
const TRANSACTION: [&str; 4] = [
    "BEGIN",
    "START TRANSACTION READ WRITE",
    "COMMIT",
    "ROLLBACK",
];

async fn run(connection: &mut MySqlConnection, sql: &'static str) {
    sqlx::raw_sql(sql).execute(connection).await.unwrap();
}

/// Everything a worker does to a few jobs: success, failure, snooze, and what
/// an operator does.
async fn work<B: Backend>(backend: B) {
    let queue = Queue::<Logged, B>::new(backend);
    let jobs: Vec<_> = (0..40).map(|no| Logged { no }).collect();
    queue.enqueue(&jobs[0]).await.unwrap();
    queue.enqueue_many(&jobs).await.unwrap();
    let held = queue.enqueue(&jobs[1]).await.unwrap().id;
    queue.hold(&[held], "wait").await.unwrap();
    queue.release(&[held]).await.unwrap();
    queue.cancel(&[held], "no").await.unwrap();
    queue.requeue(&[held]).await.unwrap();
    let worker = queue.worker(async |job: Leased<Logged, B>| match job.no % 4 {
        0 => Outcome::hold("card expired"),
        1 if job.attempt_no() == 1 => Outcome::retry_after(Duration::from_millis(1), "late"),
        2 => Outcome::dead("gone"),
        _ => Outcome::Done,
    });
    let soon = tokio::time::sleep(Duration::from_secs(40));
    worker.run_until_idle_or(soon).await.unwrap();
    queue.backend().reap(Reap { limit: 10 }).await.unwrap();
    assert_eq!(queue.counts().await.unwrap().total(), 40);
}

async fn check_log<B: Backend>(
    server: ServerUnderTest,
    catalogue: &Catalogue,
    session: Vec<&'static str>,
) {
    let name = format!("retryjob_log_{}", std::process::id());
    let url = server.database(&name).await;
    let backend = B::connect(&url, Logged::schema()).await.unwrap();
    backend.install().await.unwrap();
    let mut admin = server.connection().await;
    run(&mut admin, "SET GLOBAL log_output = 'TABLE'").await;
    run(&mut admin, "SET GLOBAL general_log = ON").await;
    // Connections made from here on say in the log which database they are
    // for.
    let backend = backend.reconnect().await.unwrap();
    work(backend).await;
    run(&mut admin, "SET GLOBAL general_log = OFF").await;
    let rows = AssertSqlSafe(format!(
        "SELECT CAST(command_type AS CHAR) AS command, CONVERT(argument USING utf8mb4) AS sent \
         FROM mysql.general_log WHERE thread_id IN (SELECT thread_id FROM mysql.general_log \
         WHERE command_type = 'Connect' AND argument LIKE '%{name}%')"
    ));
    let rows = sqlx::raw_sql(rows).fetch_all(&mut admin).await.unwrap();
    server.drop_database(&name).await;

    let known: BTreeSet<String> = catalogue
        .statements()
        .into_iter()
        .map(|(_, statement)| statement.sql().to_string())
        .chain(session.into_iter().map(str::to_owned))
        .chain(TRANSACTION.map(str::to_owned))
        .collect();
    let mut seen = BTreeSet::new();
    for row in rows {
        let command: String = row.get("command");
        // Executions repeat what was prepared, with the values in it.
        if !["Query", "Prepare"].contains(&command.as_str()) {
            continue;
        }
        let sent: String = row.get("sent");
        assert!(known.contains(&sent), "{server:?}: sent {sent:?}");
        seen.insert(sent);
    }
    // An empty log proves nothing.
    for (name, statement) in catalogue.statements() {
        let is_everyday = [
            "heads_fresh",
            "pick_fresh",
            "pick_retry",
            "counts",
            "hold[1]",
            "lapsed",
            "node_join",
            "nodes",
            "node_leave",
        ]
        .contains(&name.as_str());
        assert!(
            !is_everyday || seen.contains(&**statement.sql()),
            "{server:?}: no {name}"
        );
    }
}

// One test per server: a server has one log, switched on and off as a whole.

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn mysql_8_was_sent_nothing_besides_the_catalogue() {
    let catalogue = Mysql8::statements(Logged::schema());
    check_log::<Mysql8>(
        ServerUnderTest::Mysql8,
        &catalogue,
        Mysql8::session_statements(),
    )
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn mysql_57_was_sent_nothing_besides_the_catalogue() {
    let catalogue = Mysql57::statements(Logged::schema());
    let session = Mysql57::session_statements();
    check_log::<Mysql57>(ServerUnderTest::Mysql57, &catalogue, session).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn mariadb_was_sent_nothing_besides_the_catalogue() {
    let catalogue = Mysql8::statements(Logged::schema());
    check_log::<Mysql8>(
        ServerUnderTest::Mariadb,
        &catalogue,
        Mysql8::session_statements(),
    )
    .await;
}
