//! The narrow table of the floors on MySQL, and what both kinds of lease share.

use anyhow::Result;
use chrono::DateTime;
use sqlx::{
    AssertSqlSafe, MySql, MySqlPool, QueryBuilder, Row as _,
    mysql::{MySqlConnectOptions, MySqlPoolOptions},
};

use crate::{
    contestant::{Job, MEMO, SHARDS},
    database::{self, Beside, Value, execute},
};

/// The same claim index as the library's. Row leases also need to find what
/// has lapsed; a row of shard leases has no lease.
const TABLE: &str = "CREATE TABLE floor_job (
    id BIGINT UNSIGNED NOT NULL PRIMARY KEY AUTO_INCREMENT,
    shard_id SMALLINT UNSIGNED NOT NULL,
    status TINYINT UNSIGNED NOT NULL DEFAULT 0,
    next_attempt_at DATETIME(6) NOT NULL,
    attempt_no SMALLINT UNSIGNED NOT NULL DEFAULT 0,
    lease_owner VARCHAR(64) NULL,
    lease_seq BIGINT UNSIGNED NOT NULL DEFAULT 0,
    lease_until DATETIME(6) NULL,
    number BIGINT UNSIGNED NOT NULL,
    payload VARCHAR(255) NOT NULL,
    KEY claim (shard_id, status, next_attempt_at, id)";

/// Lists of ids are padded to one of these, so that few texts are prepared.
const LISTS: [usize; 4] = [1, 8, 64, 500];

pub(in crate::contestant) async fn install(url: &str, has_row_leases: bool) -> Result<()> {
    let lease = if has_row_leases {
        ", KEY lease (status, lease_until, id)"
    } else {
        ""
    };
    execute(
        url,
        &format!("{TABLE}{lease}) ENGINE=InnoDB COLLATE utf8mb4_bin"),
    )
    .await
}

pub(in crate::contestant) fn pool(url: &str) -> Result<MySqlPool> {
    let options: MySqlConnectOptions = url.parse()?;
    let pool = MySqlPoolOptions::new()
        .max_connections(20)
        .test_before_acquire(false);
    let pool = pool.after_connect(|connection, _| {
        Box::pin(async move {
            let sql = "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED";
            sqlx::raw_sql(sql).execute(connection).await?;
            Ok(())
        })
    });
    Ok(pool.connect_lazy_with(options))
}

/// One statement for all of them.
pub(in crate::contestant) async fn enqueue(pool: &MySqlPool, jobs: &[Job]) -> Result<()> {
    let head = "INSERT INTO floor_job (shard_id, next_attempt_at, number, payload) ";
    let mut insert = QueryBuilder::<MySql>::new(head);
    insert.push_values(jobs, |mut row, job| {
        let due = job.due_us.and_then(DateTime::from_timestamp_micros);
        row.push_bind(job.number % u64::from(SHARDS))
            .push("COALESCE(")
            .push_bind_unseparated(due.map(|due| due.naive_utc()))
            .push_unseparated(", UTC_TIMESTAMP(6))")
            .push_bind(job.number)
            .push_bind(MEMO);
    });
    insert.build().execute(pool).await?;
    Ok(())
}

/// Which shards are due: a loose index scan, two dives a shard.
pub(in crate::contestant) async fn due_shards(pool: &MySqlPool) -> Result<Vec<u16>> {
    let sql = "SELECT shard_id FROM floor_job FORCE INDEX (claim) WHERE status = 0
        GROUP BY shard_id HAVING MIN(next_attempt_at) <= UTC_TIMESTAMP(6)";
    Ok(sqlx::query_scalar(sql).fetch_all(pool).await?)
}

/// The ids and numbers of a claim, oldest first.
pub(in crate::contestant) const PICK: &str =
    "SELECT id, number, payload FROM floor_job FORCE INDEX (claim)
    WHERE shard_id = ? AND status = 0 AND next_attempt_at <= UTC_TIMESTAMP(6)
    ORDER BY next_attempt_at, id LIMIT ?";

pub(in crate::contestant) fn picked(
    rows: &[sqlx::mysql::MySqlRow],
) -> sqlx::Result<(Vec<u64>, Vec<u64>)> {
    let mut ids = Vec::with_capacity(rows.len());
    let mut numbers = Vec::with_capacity(rows.len());
    for row in rows {
        ids.push(row.try_get(0)?);
        numbers.push(row.try_get(1)?);
        std::hint::black_box(row.try_get::<String, _>(2)?);
    }
    Ok((ids, numbers))
}

/// A statement that ends in a list of ids, with the list padded.
pub(in crate::contestant) fn with_ids(
    head: &str,
    ids: &[u64],
) -> (AssertSqlSafe<String>, Vec<u64>) {
    let length = LISTS.into_iter().find(|length| *length >= ids.len());
    let length = length.unwrap_or(ids.len());
    let mut padded = ids.to_vec();
    padded.sort_unstable();
    let last = padded.last().copied().unwrap_or_default();
    padded.resize(length, last);
    let marks = vec!["?"; length].join(",");
    (AssertSqlSafe(format!("{head} ({marks})")), padded)
}

pub(in crate::contestant) async fn unfinished(url: &str) -> Result<u64> {
    database::unfinished(url, "floor_job").await
}

/// A row that only stands beside, here and on SQLite.
pub(in crate::contestant) fn beside(status: &'static str, at: Value) -> Beside {
    Beside {
        table: "floor_job".to_owned(),
        columns: vec![
            ("shard_id", Value::Shard),
            ("status", Value::Text(status)),
            ("next_attempt_at", at),
            ("number", Value::Number),
            (
                "payload",
                Value::Text("'forty bytes that nobody reads in a bench'"),
            ),
        ],
    }
}
