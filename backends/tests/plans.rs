//! Which index every statement reads, on real servers with a real table.
//!
//! Needs `eval "$(tests/servers env)"`.
#![cfg(all(feature = "mysql8", feature = "mysql57"))]

mod common;
mod servers;

use common::PLAIN;
use retryjob_backends::{Mysql8, Mysql57};
use retryjob_core::{
    Backend,
    sql::{Catalogue, Slot, Statement},
};
use servers::{Database, Server};
use sqlx::{AssertSqlSafe, MySqlPool, Row as _};

/// Fills the table: this many rows run, the others wait or are done.
async fn fill(pool: &MySqlPool, rows: u32, running: u32) {
    let sql = format!(
        "INSERT INTO plain_job (id, shard_id, status, next_attempt_at, due_at, attempt_no, \
         lease_owner, lease_seq, lease_until, idempotency_key, payload, created_at, updated_at) \
         SELECT n, n MOD 16, \
         CASE WHEN n <= {running} THEN 1 WHEN n MOD 2 = 0 THEN 0 ELSE 2 END, \
         UTC_TIMESTAMP(6) - INTERVAL n SECOND, UTC_TIMESTAMP(6), 0, \
         CASE WHEN n <= {running} THEN 'node:1' END, 1, \
         CASE WHEN n <= {running} THEN UTC_TIMESTAMP(6) + INTERVAL 60 SECOND END, \
         UNHEX(SHA2(n, 256)), '{{}}', UTC_TIMESTAMP(6), UTC_TIMESTAMP(6) \
         FROM (SELECT 1 + a.d + 10 * b.d + 100 * c.d + 1000 * e.d + 10000 * f.d AS n FROM \
         {digits} AS a, {digits} AS b, {digits} AS c, {digits} AS e, {digits} AS f) AS numbers \
         WHERE n <= {rows}",
        digits = "(SELECT 0 AS d UNION SELECT 1 UNION SELECT 2 UNION SELECT 3 UNION SELECT 4 \
                  UNION SELECT 5 UNION SELECT 6 UNION SELECT 7 UNION SELECT 8 UNION SELECT 9)"
    );
    for sql in ["TRUNCATE TABLE plain_job", &sql, "ANALYZE TABLE plain_job"] {
        let text = sqlx::raw_sql(AssertSqlSafe(sql.to_owned()));
        text.execute(pool).await.unwrap();
    }
}

/// Index and remarks of a plan.
async fn plan(pool: &MySqlPool, server: Server, statement: &Statement) -> (String, String) {
    let explain = match server {
        Server::MariaDb => "EXPLAIN",
        Server::Mysql57 | Server::Mysql8 => "EXPLAIN FORMAT=TRADITIONAL",
    };
    let mut query = sqlx::query(AssertSqlSafe(format!("{explain} {}", statement.sql())));
    for bind in statement.binds() {
        let entry = u64::try_from(bind.entry).unwrap();
        query = match bind.slot {
            Slot::Id => query.bind(entry + 1),
            Slot::Key => query.bind(vec![u8::try_from(entry % 256).unwrap(); 32]),
            Slot::Owner => query.bind("node:1"),
            Slot::HeadAt => query.bind(chrono::NaiveDateTime::default()),
            Slot::Error => query.bind("failed"),
            Slot::ShardId => query.bind(3_u64),
            _ => query.bind(1_i64),
        };
    }
    let rows = query.fetch_all(pool).await.unwrap();
    let text = |at: &str| {
        rows.iter()
            .map(|row| row.try_get_unchecked::<Option<String>, _>(at))
            .map(|text| text.unwrap().unwrap_or_default())
            .collect::<Vec<_>>()
            .join(",")
    };
    (text("key"), text("Extra"))
}

fn expected(name: &str) -> &'static str {
    let stem = name.split('[').next().unwrap_or(name);
    match stem {
        "find_keys" => "idempotency_key",
        "heads_fresh" | "heads_retry" | "pick_fresh" | "pick_retry" => "claim",
        "lapsed" | "counts" | "any_pending" | "any_retry" | "any_running" => "lease",
        _ => "PRIMARY",
    }
}

/// What every plan is that should be another.
async fn surprises(
    pool: &MySqlPool,
    server: Server,
    catalogue: &Catalogue,
    rows: u32,
) -> Vec<String> {
    let mut surprises = Vec::new();
    for (name, statement) in catalogue.statements() {
        if name.starts_with("insert") {
            continue;
        }
        let (key, extra) = plan(pool, server, statement).await;
        let is_sorted = extra.contains("filesort") || extra.contains("temporary");
        // A key or id that is not there is found out while planning.
        let is_known_absent =
            extra.contains("Impossible WHERE") || extra.contains("no matching row");
        // A few pages are read whole, by reads that lock nothing also when the
        // list names half of the table.
        let is_plain_read =
            statement.sql().starts_with("SELECT") && !statement.sql().contains("FOR UPDATE");
        let few = if is_plain_read { 1000 } else { 20 };
        let is_few = key.is_empty() && expected(&name) == "PRIMARY" && rows <= few;
        if (key != expected(&name) && !is_known_absent && !is_few) || is_sorted {
            surprises.push(format!("{name}: key {key:?}, {extra}"));
        }
    }
    surprises
}

#[tokio::test]
async fn every_statement_reads_the_index_made_for_it() {
    let mut all = Vec::new();
    for server in Server::ALL {
        let database = Database::on(server).await;
        let plain = Mysql57::connect(&database.url(), &PLAIN).await.unwrap();
        plain.install().await.unwrap();
        let pool = plain.connections();
        for (rows, running) in [
            (100_000, 2_000),
            (100_000, 60),
            (100_000, 1),
            (1_000, 500),
            (20, 5),
        ] {
            fill(pool, rows, running).await;
            let mut found = surprises(pool, server, plain.catalogue(), rows).await;
            if !matches!(server, Server::Mysql57) {
                let skipping = Mysql8::connect(&database.url(), &PLAIN).await.unwrap();
                found.extend(surprises(pool, server, skipping.catalogue(), rows).await);
                skipping.close().await;
            }
            let on = |line| format!("{server:?}, {running} of {rows} running: {line}");
            all.extend(found.into_iter().map(on));
        }
        plain.close().await;
        database.drop_it().await;
    }
    assert!(all.is_empty(), "{}", all.join("\n"));
}
