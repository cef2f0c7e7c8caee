//! Statements mean the same under every `sql_mode` and time zone: in a caller's
//! transaction the session is the caller's own.
#![allow(clippy::unwrap_used, reason = "a panic is a failed test")]

use retryjob::{
    Backend, Mysql8, Mysql57, RetryJob, Status,
    op::{
        claim::Claim,
        due::Lane,
        finish::{Ending, Finish},
    },
};
use retryjob_core::{Node, Queue};
use retryjob_tests::inspect::ServerUnderTest;
use sqlx::{AssertSqlSafe, Connection as _, MySqlConnection};

const MODES: [&str; 7] = [
    "",
    "ANSI",
    "ANSI_QUOTES,PIPES_AS_CONCAT,IGNORE_SPACE",
    "NO_BACKSLASH_ESCAPES",
    "TRADITIONAL",
    "PAD_CHAR_TO_FULL_LENGTH",
    "NO_UNSIGNED_SUBTRACTION",
];

/// Texts that quoting and escaping could spoil.
const ODD: &str = r#"it's a "name" \n `x` || y"#;

#[derive(Debug, Clone, PartialEq, RetryJob)]
#[retry_job(table = "odd", shards = 2)]
struct Odd {
    #[job(unique)]
    mode: u32,
    #[job(column)]
    name: String,
    memo: String,
}

async fn set(connection: &mut MySqlConnection, sql: String) {
    sqlx::raw_sql(AssertSqlSafe(sql))
        .execute(connection)
        .await
        .unwrap();
}

async fn check_modes<B: Backend<Connection = MySqlConnection>>(server: ServerUnderTest) {
    let name = format!("retryjob_modes_{}", std::process::id());
    let url = server.database(&name).await;
    let queue = Queue::<Odd, B>::connect(&url).await.unwrap();
    queue.install().await.unwrap();
    for (no, mode) in (0..).zip(MODES) {
        let job = Odd {
            mode: no,
            name: ODD.into(),
            memo: ODD.into(),
        };
        let mut own = server.connection().await;
        set(&mut own, format!("USE {name}")).await;
        set(&mut own, format!("SET SESSION sql_mode = '{mode}'")).await;
        set(&mut own, "SET SESSION time_zone = '-11:00'".into()).await;
        let mut tx = own.begin().await.unwrap();
        let id = queue.enqueue_in(&mut tx, &job).await.unwrap().id;
        assert!(!queue.enqueue_in(&mut tx, &job).await.unwrap().is_new);
        tx.commit().await.unwrap();

        // Due by the database's clock in UTC, whatever zone it came from.
        let backend = queue.backend();
        let claim = Claim {
            owner: Node::new("modes").lease_owner(),
            lane: Lane::Fresh,
            heads: backend.due_heads().await.unwrap().fresh.due().collect(),
            limit: 10,
            lease: Odd::SCHEMA.lease,
        };
        let claimed = backend.claim(claim).await.unwrap().jobs;
        assert_eq!(claimed.len(), 1, "{server:?} under {mode:?}");
        assert_eq!(claimed[0].lease.id, id);
        let parts =
            retryjob_core::job::Parts::new(claimed[0].columns.clone(), claimed[0].payload.clone());
        assert_eq!(
            Odd::decode(parts).unwrap(),
            job,
            "{server:?} under {mode:?}"
        );

        let finish = Finish {
            lease: claimed[0].lease.clone(),
            attempt_no: 1,
            ending: Ending::Success,
        };
        let mut tx = own.begin().await.unwrap();
        backend.finish_in(&mut tx, finish).await.unwrap();
        tx.commit().await.unwrap();
    }
    let counts = queue.counts().await.unwrap();
    server.drop_database(&name).await;
    assert_eq!(counts.of(Status::Success), MODES.len() as u64);
}

#[tokio::test]
async fn statements_mean_the_same_under_every_sql_mode_on_mysql_8() {
    check_modes::<Mysql8>(ServerUnderTest::Mysql8).await;
}

#[tokio::test]
async fn statements_mean_the_same_under_every_sql_mode_on_mysql_57() {
    check_modes::<Mysql57>(ServerUnderTest::Mysql57).await;
}

#[tokio::test]
async fn statements_mean_the_same_under_every_sql_mode_on_mariadb() {
    check_modes::<Mysql8>(ServerUnderTest::Mariadb).await;
}
