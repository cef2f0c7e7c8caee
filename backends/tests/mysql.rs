//! What only MySQL and MariaDB can get wrong, on real servers.
//!
//! Needs `eval "$(tests/servers env)"`.
#![allow(clippy::unwrap_used, reason = "a panic is a failed test")]
#![cfg(all(feature = "mysql8", feature = "mysql57"))]

mod common;
mod servers;

use std::time::Duration;

use common::{PLAIN, SCHEMA, claim_all, every_type_survives, plain_job};
use retryjob_backends::{Mysql8, Mysql57, Probed, probe};
use retryjob_core::{
    Backend, Column, ColumnType, ErrorKind, Finished, Ident, JobSchema,
    op::{enqueue::NewJob, finish::Finish},
};
use servers::{Database, Server};
use sqlx::Row as _;

#[tokio::test]
async fn every_column_type_survives_the_way_there_and_back() {
    for server in Server::ALL {
        let database = Database::on(server).await;
        let backend = Mysql57::connect(&database.url(), &SCHEMA).await.unwrap();
        every_type_survives(&backend).await;
        backend.close().await;
        database.drop_it().await;
    }
    for server in [Server::Mysql8, Server::MariaDb] {
        let database = Database::on(server).await;
        let backend = Mysql8::connect(&database.url(), &SCHEMA).await.unwrap();
        every_type_survives(&backend).await;
        backend.close().await;
        database.drop_it().await;
    }
}

#[tokio::test]
async fn urls_that_can_not_work_are_refused_with_what_would_be_right() {
    let server = Server::Mysql57.url();
    let (_, place) = server.split_once('@').unwrap();
    let wrong_password = format!("mysql://root:sesame@{place}/mysql");
    let no_database = format!("{server}/no_such_database");
    let no_name = server.clone();
    for (url, kind, says) in [
        (
            "sqlite://jobs.db",
            ErrorKind::Url,
            "use the backend `sqlite`",
        ),
        (
            "postgres://root:sesame@localhost/db",
            ErrorKind::Url,
            "mysql://user",
        ),
        ("root:sesame@localhost/db", ErrorKind::Url, "not a URL"),
        (
            "mysql://root:sesame@localhost:port/db",
            ErrorKind::Url,
            "can't be read",
        ),
        ("mysql://root:ses/ame@localhost/db", ErrorKind::Url, "%2F"),
        (no_name.as_str(), ErrorKind::Url, "names no database"),
        (
            no_database.as_str(),
            ErrorKind::Url,
            "no database `no_such_database`",
        ),
        (
            wrong_password.as_str(),
            ErrorKind::Denied,
            "refuses user `root`",
        ),
        (
            "mysql://root:sesame@127.0.0.1:1/db",
            ErrorKind::Unreachable,
            "127.0.0.1:1",
        ),
        (
            "mysql://root:sesame@no.such.host.invalid/db",
            ErrorKind::Unreachable,
            "no.such.host.invalid:3306",
        ),
    ] {
        let error = Mysql57::connect(url, &PLAIN).await.unwrap_err();
        let text = format!("{error} {error:?}");
        assert_eq!(error.kind(), kind, "{url}: {text}");
        assert!(text.contains(says), "{url}: {text}");
        for secret in ["sesame", "ses/ame", "retryjob@"] {
            assert!(!text.contains(secret), "{url}: {text}");
        }
    }
}

#[tokio::test]
async fn a_server_without_skip_locked_is_sent_to_mysql57() {
    let database = Database::on(Server::Mysql57).await;
    let error = Mysql8::connect(&database.url(), &PLAIN).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    assert!(error.to_string().contains("`mysql57`"), "{error}");
    assert_eq!(probe(&database.url()).await.unwrap(), Probed::Mysql57);
    database.drop_it().await;
    for server in [Server::Mysql8, Server::MariaDb] {
        let database = Database::on(server).await;
        assert_eq!(probe(&database.url()).await.unwrap(), Probed::Mysql8);
        database.drop_it().await;
    }
}

#[tokio::test]
async fn a_pool_with_other_sessions_is_refused_by_name() {
    let database = Database::on(Server::Mysql57).await;
    let pool = sqlx::MySqlPool::connect(&database.url()).await.unwrap();
    let error = Mysql57::from_pool(pool, &PLAIN).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Config);
    assert!(error.to_string().contains("REPEATABLE-READ"), "{error}");
    database.drop_it().await;
}

#[tokio::test]
async fn install_creates_once_and_names_every_difference() {
    for server in Server::ALL {
        let database = Database::on(server).await;
        let backend = Mysql57::connect(&database.url(), &SCHEMA).await.unwrap();
        let (first, second) = tokio::join!(backend.install(), backend.install());
        first.unwrap();
        second.unwrap();
        backend.install().await.unwrap();
        for sql in [
            "ALTER TABLE every_type MODIFY c_u64 BIGINT NULL",
            "ALTER TABLE every_type MODIFY c_varchar VARCHAR(40) COLLATE utf8mb4_general_ci",
            "ALTER TABLE every_type MODIFY c_datetime DATETIME NULL",
            "ALTER TABLE every_type DROP COLUMN c_date, ADD tenant INT NOT NULL, ADD note INT NULL",
            "ALTER TABLE every_type DROP INDEX claim, ADD INDEX claim (shard_id, status, id)",
            "ALTER TABLE every_type MODIFY id BIGINT UNSIGNED NOT NULL",
        ] {
            database.run(sql).await;
        }
        let error = backend.install().await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Schema);
        let text = error.to_string();
        let lines: Vec<&str> = text.lines().skip(1).collect();
        assert_eq!(
            lines,
            [
                "`every_type`: column `c_u64` is bigint NULL, expected bigint unsigned NULL",
                "`every_type`: column `c_varchar` is varchar(40) collate utf8mb4_general_ci NULL, expected varchar(40) collate utf8mb4_bin NULL",
                "`every_type`: column `c_date` is missing; it would be date NULL",
                "`every_type`: column `c_datetime` is datetime NULL, expected datetime(6) NULL",
                "`every_type`: column `tenant` is not part of the job and has no default; give it one or drop it",
                "`every_type`: index `claim` is over (shard_id, status, id), expected over (shard_id, status, next_attempt_at, id)",
                "`every_type`: column `id` is not AUTO_INCREMENT",
            ]
        );
        backend.close().await;
        database.drop_it().await;
    }
}

#[tokio::test]
async fn a_table_wider_than_a_row_is_refused_by_install() {
    const WIDE: Column = Column {
        name: Ident::new("wide"),
        kind: ColumnType::Varchar { chars: 16_383 },
        nullable: true,
        index: false,
    };
    // Past what `checked` would have refused.
    static SCHEMA: JobSchema = JobSchema {
        columns: &[WIDE],
        ..JobSchema::new(Ident::new("too_wide"))
    };
    let database = Database::on(Server::Mysql57).await;
    let backend = Mysql57::connect(&database.url(), &SCHEMA).await.unwrap();
    let error = backend.install().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Schema);
    assert!(error.to_string().contains("`too_wide`"), "{error}");
    database.drop_it().await;
}

async fn cancelled_operations_leave_no_transaction<B: Backend>(backend: &B, outside: &B) {
    backend.install().await.unwrap();
    for round in 0..50 {
        let us = 1 + (round * 37) % 400;
        let limit = Duration::from_micros(us);
        let _ = tokio::time::timeout(limit, backend.begin()).await;
        let _ = tokio::time::timeout(limit, claim_all(backend, 1)).await;
        let two = vec![plain_job(0), plain_job(0)];
        let _ = tokio::time::timeout(limit, backend.enqueue(two)).await;
    }
    let before = outside.counts().await.unwrap().total();
    let mut invisible = 0;
    for round in 1..=50 {
        backend.enqueue(vec![plain_job(1)]).await.unwrap();
        let seen = outside.counts().await.unwrap().total();
        invisible += u64::from(seen < before + round);
    }
    assert_eq!(invisible, 0, "of 50 inserts");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cancelled_begin_leaves_no_transaction() {
    for server in Server::ALL {
        let database = Database::on(server).await;
        let backend = Mysql57::connect(&database.url(), &PLAIN).await.unwrap();
        let outside = backend.reconnect().await.unwrap();
        cancelled_operations_leave_no_transaction(&backend, &outside).await;
        backend.close().await;
        outside.close().await;
        database.drop_it().await;
    }
}

#[tokio::test]
async fn finish_in_commits_with_the_callers_writes() {
    let database = Database::on(Server::Mysql8).await;
    let backend = Mysql8::connect(&database.url(), &PLAIN).await.unwrap();
    backend.install().await.unwrap();
    let jobs = vec![plain_job(0), plain_job(0)];
    backend.enqueue(jobs).await.unwrap();
    let claimed = claim_all(&backend, 2).await;
    let finishes: Vec<Finish> = claimed.jobs.iter().map(common::success).collect();

    // On a pool of the caller's own, with the driver's settings.
    let own = sqlx::MySqlPool::connect(&database.url()).await.unwrap();
    let mut tx = own.begin().await.unwrap();
    backend
        .finish_in(&mut tx, finishes[0].clone())
        .await
        .unwrap();
    backend
        .enqueue_in(&mut tx, vec![plain_job(4)])
        .await
        .unwrap();
    tx.commit().await.unwrap();

    let mut tx = backend.begin().await.unwrap();
    sqlx::query("SELECT 1").execute(&mut *tx).await.unwrap();
    backend
        .finish_in(&mut tx, finishes[1].clone())
        .await
        .unwrap();
    backend.commit(tx).await.unwrap();
    assert_eq!(
        backend
            .counts()
            .await
            .unwrap()
            .of(retryjob_core::Status::Success),
        2
    );
    database.drop_it().await;
}

#[tokio::test]
async fn a_job_over_the_packet_is_refused_before_it_is_sent() {
    for server in Server::ALL {
        let database = Database::on(server).await;
        let backend = Mysql57::connect(&database.url(), &PLAIN).await.unwrap();
        backend.install().await.unwrap();
        let row = sqlx::query("SELECT CAST(@@max_allowed_packet AS SIGNED)")
            .fetch_one(backend.connections())
            .await
            .unwrap();
        let packet = usize::try_from(row.get::<i64, _>(0)).unwrap();
        let sized = |bytes: usize| NewJob {
            payload: Some("x".repeat(bytes)),
            ..plain_job(0)
        };
        let jobs = vec![sized(10), sized(packet)];
        let error = backend.enqueue(jobs).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::TooLarge);
        assert!(error.to_string().contains("`plain_job`"), "{error}");
        // Together they are over it, so they go in several statements.
        let jobs = (0..30).map(|_| sized(packet / 20)).collect();
        assert_eq!(backend.enqueue(jobs).await.unwrap().len(), 30);
        let largest = vec![sized(packet - 2000)];
        assert_eq!(backend.enqueue(largest).await.unwrap().len(), 1);
        backend.close().await;
        database.drop_it().await;
    }
}

#[tokio::test]
async fn a_row_given_back_since_it_was_read_is_not_taken_for_the_same() {
    // The text that is sent compares the fence.
    let database = Database::on(Server::Mysql57).await;
    let backend = Mysql57::connect(&database.url(), &PLAIN).await.unwrap();
    let (_, take) = backend.catalogue().take.fresh.at_least(1);
    assert!(take.sql().contains("`lease_seq` = ?"), "{}", take.sql());
    database.drop_it().await;
}

static HISTORY: JobSchema = JobSchema {
    finished: Finished::History,
    ..JobSchema::new(Ident::new("kept_job"))
};
static DELETE: JobSchema = JobSchema {
    finished: Finished::Delete,
    ..JobSchema::new(Ident::new("gone_job"))
};

#[tokio::test]
async fn finishes_of_deleted_rows_tell_the_lost_from_the_written() {
    for server in Server::ALL {
        let database = Database::on(server).await;
        for schema in [&HISTORY, &DELETE] {
            let backend = Mysql57::connect(&database.url(), schema).await.unwrap();
            backend.install().await.unwrap();
            let jobs = (0..20).map(|_| plain_job(2)).collect();
            backend.enqueue(jobs).await.unwrap();
            let claimed = claim_all(&backend, 20).await;
            assert_eq!(claimed.jobs.len(), 20);
            let mut finishes: Vec<Finish> = claimed.jobs.iter().map(common::success).collect();
            finishes[7].lease.lease_seq += 1;
            finishes[9].lease.id += 1000;
            let lost = [finishes[7].lease.id, finishes[9].lease.id];
            let finished = backend.finish(finishes).await.unwrap();
            assert_eq!(finished.lost, lost);
            assert_eq!(backend.counts().await.unwrap().total(), 2);
            backend.close().await;
        }
        database.drop_it().await;
    }
}

#[tokio::test]
async fn a_connection_that_takes_no_writes_is_closed_and_the_operation_runs_again() {
    for server in Server::ALL {
        let database = Database::on(server).await;
        let backend = Mysql57::connect(&database.url(), &PLAIN).await.unwrap();
        backend.install().await.unwrap();
        // As after a failover: the session is there, its server takes no writes.
        let read_only = "SET SESSION TRANSACTION READ ONLY";
        let mut held = Vec::new();
        for _ in 0..4 {
            let mut connection = backend.connections().acquire().await.unwrap();
            sqlx::raw_sql(read_only)
                .execute(&mut *connection)
                .await
                .unwrap();
            held.push(connection);
        }
        drop(held);
        let jobs = vec![plain_job(0), plain_job(0)];
        assert_eq!(backend.enqueue(jobs).await.unwrap().len(), 2);
        assert_eq!(claim_all(&backend, 5).await.jobs.len(), 2);
        backend.close().await;
        database.drop_it().await;
    }
}

#[tokio::test]
async fn killed_connections_are_replaced() {
    for server in Server::ALL {
        let database = Database::on(server).await;
        let backend = Mysql57::connect(&database.url(), &PLAIN).await.unwrap();
        backend.install().await.unwrap();
        for round in 1..=5 {
            database.kill_connections().await;
            let jobs = vec![plain_job(0), plain_job(0)];
            assert_eq!(backend.enqueue(jobs).await.unwrap().len(), 2);
            database.kill_connections().await;
            assert_eq!(backend.counts().await.unwrap().total(), round * 2);
        }
        backend.close().await;
        database.drop_it().await;
    }
}
