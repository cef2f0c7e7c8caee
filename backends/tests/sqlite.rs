//! What only SQLite can get wrong.
#![allow(clippy::unwrap_used, reason = "a panic is a failed test")]
#![cfg(feature = "sqlite")]

mod common;

use std::{path::PathBuf, time::Duration};

use common::{PLAIN, SCHEMA, claim_all, every_type_survives, plain_job, success, unique};
use retryjob_backends::{Probed, Sqlite, probe};
use retryjob_core::{Backend as _, ErrorKind};
use sqlx::AssertSqlSafe;

/// A file that is gone when the test ends.
struct File(PathBuf);

impl File {
    fn new() -> Self {
        Self(std::env::temp_dir().join(format!("{}.db", unique("retryjob"))))
    }

    fn url(&self) -> String {
        format!("sqlite://{}", self.0.display())
    }
}

impl Drop for File {
    fn drop(&mut self) {
        for suffix in ["", "-wal", "-shm"] {
            let _ = std::fs::remove_file(format!("{}{suffix}", self.0.display()));
        }
    }
}

#[tokio::test]
async fn every_column_type_survives_the_way_there_and_back() {
    let file = File::new();
    let backend = Sqlite::connect(&file.url(), &SCHEMA).await.unwrap();
    every_type_survives(&backend).await;
}

#[tokio::test]
async fn urls_that_can_not_work_are_refused_with_what_would_be_right() {
    for (url, kind, says) in [
        ("mysql://root:secret@localhost/db", ErrorKind::Url, "mysql8"),
        (
            "postgres://root:secret@localhost/db",
            ErrorKind::Url,
            "sqlite://",
        ),
        ("jobs.db", ErrorKind::Url, "not a URL"),
        ("sqlite::memory:", ErrorKind::Url, "durable"),
        ("sqlite://?mode=memory", ErrorKind::Url, "names no file"),
        (
            "sqlite:///no/such/folder/jobs.db",
            ErrorKind::Url,
            "/no/such/folder",
        ),
        (
            "sqlite:///proc/jobs.db",
            ErrorKind::Unreachable,
            "/proc/jobs.db",
        ),
    ] {
        let error = Sqlite::connect(url, &PLAIN).await.unwrap_err();
        assert_eq!(error.kind(), kind, "{url}: {error}");
        assert!(error.to_string().contains(says), "{url}: {error}");
        assert!(!format!("{error:?}").contains("secret"), "{url}: {error}");
    }
}

#[tokio::test]
async fn install_names_every_difference() {
    let file = File::new();
    let backend = Sqlite::connect(&file.url(), &PLAIN).await.unwrap();
    let pool = backend.connections();
    let create = "CREATE TABLE plain_job (id INTEGER PRIMARY KEY, status TEXT NOT NULL, tenant TEXT NOT NULL)";
    sqlx::raw_sql(create).execute(pool).await.unwrap();
    let error = backend.install().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Schema);
    let text = error.to_string();
    for line in [
        "`plain_job`: column `id` is INTEGER NULL, expected INTEGER NOT NULL",
        "`plain_job`: column `status` is TEXT NOT NULL, expected INTEGER NOT NULL",
        "`plain_job`: column `shard_id` is missing; it would be INTEGER NOT NULL",
        "`plain_job`: column `tenant` is not part of the job and has no default; give it one or drop it",
        "`plain_job`: index `plain_job_claim` is missing; it would be over (shard_id, status, next_attempt_at, id)",
    ] {
        assert!(text.contains(line), "{line}\nis not in\n{text}");
    }
}

#[tokio::test]
async fn no_statement_reads_the_whole_table_or_sorts() {
    let file = File::new();
    let backend = Sqlite::connect(&file.url(), &PLAIN).await.unwrap();
    backend.install().await.unwrap();
    let mut scans = Vec::new();
    for (name, statement) in backend.catalogue().statements() {
        // These read no table.
        if name.starts_with("insert") || name == "clock" {
            continue;
        }
        let sql = format!("EXPLAIN QUERY PLAN {}", statement.sql());
        let rows: Vec<(i64, i64, i64, String)> = sqlx::query_as(AssertSqlSafe(sql))
            .fetch_all(backend.connections())
            .await
            .unwrap();
        for (.., detail) in rows {
            // The constant row is a statement of its own that reads no table.
            let is_scan = detail.starts_with("SCAN") && detail != "SCAN CONSTANT ROW";
            if is_scan && !detail.contains("INDEX") {
                scans.push(format!("{name}: {detail}"));
            }
            // Heads count on the waiting jobs alone, by status, and group them.
            if detail.contains("TEMP B-TREE") && !name.starts_with("heads") {
                scans.push(format!("{name}: {detail}"));
            }
        }
    }
    assert!(scans.is_empty(), "{}", scans.join("\n"));
}

/// Writers in several connections wait for each other, and none is refused.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_writer_sees_a_locked_database() {
    let file = File::new();
    let backend = Sqlite::connect(&file.url(), &PLAIN).await.unwrap();
    backend.install().await.unwrap();
    let mut tasks = tokio::task::JoinSet::new();
    for shard_id in 0..6 {
        let backend = Sqlite::connect(&file.url(), &PLAIN).await.unwrap();
        tasks.spawn(async move {
            for _ in 0..25 {
                backend.enqueue(vec![plain_job(shard_id)]).await.unwrap();
                let claimed = claim_all(&backend, 5).await;
                let finishes = claimed.jobs.iter().map(success).collect();
                let finished = backend.finish(finishes).await.unwrap();
                assert_eq!(finished.lost, Vec::<u64>::new());
            }
        });
    }
    while let Some(done) = tasks.join_next().await {
        done.unwrap();
    }
}

#[tokio::test]
async fn a_cancelled_begin_leaves_no_transaction() {
    let file = File::new();
    let backend = Sqlite::connect(&file.url(), &PLAIN).await.unwrap();
    backend.install().await.unwrap();
    for us in 0..50 {
        let limit = Duration::from_micros(us * 7);
        let _ = tokio::time::timeout(limit, backend.begin()).await;
        let _ = tokio::time::timeout(limit, claim_all(&backend, 1)).await;
    }
    let enqueued = backend.enqueue(vec![plain_job(1)]).await.unwrap();
    let outside = Sqlite::connect(&file.url(), &PLAIN).await.unwrap();
    assert!(enqueued[0].is_new);
    assert_eq!(outside.counts().await.unwrap().total(), 1);
}

#[tokio::test]
async fn probe_knows_a_file() {
    let file = File::new();
    assert_eq!(probe(&file.url()).await.unwrap(), Probed::Sqlite);
}
