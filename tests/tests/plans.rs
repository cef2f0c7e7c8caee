//! How each server runs the statements, on 100,000 rows: by the expected index,
//! without a sort and without a temporary table.
#![allow(clippy::unwrap_used, reason = "a panic is a failed test")]

use std::collections::{BTreeSet, HashMap};

use retryjob::{
    Backend, Mysql8, Mysql57, RetryJob as _, Sqlite,
    sql::{Catalogue, Slot, Statement},
};
use retryjob_tests::{inspect::ServerUnderTest, samples::BillingJob};
use sqlx::{AssertSqlSafe, Column as _, MySqlConnection, Row as _, mysql::MySqlRow};

/// 100,000 rows as a busy table has them: most of them finished, some that
/// wait in each lane, 2,000 running.
const FILL_MYSQL: &str = "
    INSERT INTO billing_job (shard_id, status, next_attempt_at, due_at, attempt_no, lease_owner,
        lease_seq, lease_until, idempotency_key, payload, created_at, updated_at, service_id)
    SELECT n % 256,
        CASE WHEN n % 50 = 0 THEN 1 WHEN n % 50 < 10 THEN 0 WHEN n % 50 < 15 THEN 4 ELSE 2 END,
        UTC_TIMESTAMP(6) - INTERVAL n SECOND, UTC_TIMESTAMP(6) - INTERVAL n SECOND, 1,
        IF(n % 50 = 0, CONCAT('node:', n), NULL), 1,
        IF(n % 50 = 0, UTC_TIMESTAMP(6) + INTERVAL (n % 200 - 100) SECOND, NULL),
        UNHEX(SHA2(n, 256)), '{}', UTC_TIMESTAMP(6), UTC_TIMESTAMP(6), n
    FROM (SELECT a.d + 10 * b.d + 100 * c.d + 1000 * e.d + 10000 * f.d AS n
        FROM digit a, digit b, digit c, digit e, digit f) numbers";

/// 100 nodes of ten job types.
const FILL_NODES: &str = "
    INSERT INTO retryjob_node (job_table, node, member_until)
    SELECT IF(a.d = 0, 'billing_job', CONCAT('job_', a.d)), CONCAT('node-', b.d), UTC_TIMESTAMP(6)
    FROM digit a, digit b";

/// The index that each statement reads by; the first word of its name decides.
fn expected_index(name: &str) -> Option<&'static str> {
    let stem = name.split('[').next().unwrap();
    Some(match stem {
        "heads_fresh" | "heads_retry" | "pick_fresh" | "pick_retry" | "pick_alone" => "claim",
        "lapsed" | "any_open" | "counts" => "lease",
        "find_keys" => "idempotency_key",
        // No table is read.
        "insert" | "clock" | "node_join" => return None,
        _ => "PRIMARY",
    })
}

/// A value for each slot, as near to the real ones as a plan can see.
fn literal(slot: Slot, entry: usize) -> String {
    // Every fiftieth row runs.
    let id = 1 + 50 * entry;
    match slot {
        Slot::Id => id.to_string(),
        Slot::ShardId => "7".into(),
        Slot::Owner => "'node:0'".into(),
        Slot::Key => format!("UNHEX(SHA2({entry}, 256))"),
        Slot::HeadAt => "'2020-01-01 00:00:00.000000'".into(),
        Slot::Error => "'late'".into(),
        Slot::JobTable => "'billing_job'".into(),
        Slot::Node => "'node-7'".into(),
        Slot::Limit => "100".into(),
        _ => "1".into(),
    }
}

fn spelled_out(statement: &Statement) -> String {
    let mut binds = statement.binds().iter();
    let mut text = String::new();
    for part in statement.sql().split_inclusive('?') {
        match part.strip_suffix('?') {
            Some(before) => {
                let bind = binds.next().unwrap();
                text.push_str(before);
                text.push_str(&literal(bind.slot, bind.entry));
            }
            None => text.push_str(part),
        }
    }
    text
}

/// What EXPLAIN says of one statement: its key and its remarks.
async fn plan(
    connection: &mut MySqlConnection,
    server: ServerUnderTest,
    sql: &str,
) -> (String, String) {
    let format = match server {
        ServerUnderTest::Mariadb => "",
        _ => "FORMAT=TRADITIONAL",
    };
    let explain = AssertSqlSafe(format!("EXPLAIN {format} {sql}"));
    let rows = sqlx::raw_sql(explain).fetch_all(connection).await.unwrap();
    let text = |row: &MySqlRow, name: &str| -> String {
        let at = row
            .columns()
            .iter()
            .position(|column| column.name() == name)
            .unwrap();
        row.try_get::<Option<String>, _>(at)
            .unwrap()
            .unwrap_or_default()
    };
    // Subqueries have a line each, and their outer one reads no table.
    let of = |name| {
        let said: BTreeSet<_> = rows.iter().map(|row| text(row, name)).collect();
        let said: Vec<_> = said.into_iter().filter(|said| !said.is_empty()).collect();
        said.join(" ")
    };
    (of("key"), of("Extra"))
}

/// A database of its own with the 100,000 rows; its name, and a connection.
async fn filled<B: Backend>(server: ServerUnderTest, purpose: &str) -> (String, MySqlConnection) {
    let name = format!("retryjob_{purpose}_{}", std::process::id());
    let url = server.database(&name).await;
    let backend = B::connect(&url, BillingJob::schema()).await.unwrap();
    backend.install().await.unwrap();
    let mut connection = server.connection().await;
    for sql in [
        format!("USE {name}"),
        "CREATE TABLE digit (d INT) SELECT 0 AS d UNION SELECT 1 UNION SELECT 2 UNION SELECT 3 UNION SELECT 4 \
         UNION SELECT 5 UNION SELECT 6 UNION SELECT 7 UNION SELECT 8 UNION SELECT 9".into(),
        FILL_MYSQL.into(),
        FILL_NODES.into(),
        "ANALYZE TABLE billing_job, retryjob_node".into(),
    ] {
        sqlx::raw_sql(AssertSqlSafe(sql)).execute(&mut connection).await.unwrap();
    }
    (name, connection)
}

async fn check_plans<B: Backend>(server: ServerUnderTest, catalogue: &Catalogue) {
    let (name, mut connection) = filled::<B>(server, "plans").await;
    let mut wrong = Vec::new();
    let mut checked = 0;
    for (name, statement) in catalogue.statements() {
        let Some(index) = expected_index(&name) else {
            continue;
        };
        let (key, remarks) = plan(&mut connection, server, &spelled_out(statement)).await;
        // MariaDB's remark on an UPDATE that changes the index it reads is
        // "Using buffer": a list of row ids, not a table.
        let is_bad = ["filesort", "temporary"]
            .iter()
            .any(|bad| remarks.contains(bad));
        // A lookup by the primary key that happens to find nothing.
        let is_lookup = index == "PRIMARY" && remarks.contains("after reading const tables");
        if (key != index && !is_lookup) || is_bad {
            wrong.push(format!(
                "{name}: key {key:?}, expected {index:?}; {remarks}"
            ));
        }
        checked += 1;
    }
    server.drop_database(&name).await;
    assert!(checked > 40, "{checked} statements");
    assert!(wrong.is_empty(), "{server:?}:\n{}", wrong.join("\n"));
}

#[tokio::test]
async fn mysql_8_reads_every_statement_by_its_index() {
    let catalogue = Mysql8::statements(BillingJob::schema());
    check_plans::<Mysql8>(ServerUnderTest::Mysql8, &catalogue).await;
}

#[tokio::test]
async fn mysql_57_reads_every_statement_by_its_index() {
    let catalogue = Mysql57::statements(BillingJob::schema());
    check_plans::<Mysql57>(ServerUnderTest::Mysql57, &catalogue).await;
}

#[tokio::test]
async fn mariadb_reads_every_statement_by_its_index() {
    let catalogue = Mysql8::statements(BillingJob::schema());
    check_plans::<Mysql8>(ServerUnderTest::Mariadb, &catalogue).await;
}

#[tokio::test]
async fn due_heads_are_a_loose_index_scan() {
    for (server, catalogue) in [
        (
            ServerUnderTest::Mysql57,
            Mysql57::statements(BillingJob::schema()),
        ),
        (
            ServerUnderTest::Mysql8,
            Mysql8::statements(BillingJob::schema()),
        ),
    ] {
        let (name, mut connection) = filled::<Mysql57>(server, "heads").await;
        let sql = spelled_out(&catalogue.heads.fresh);
        let (_, remarks) = plan(&mut connection, server, &sql).await;
        server.drop_database(&name).await;
        assert!(
            remarks.contains("Using index for group-by"),
            "{server:?}: {remarks}"
        );
    }
}

#[tokio::test]
async fn sqlite_reads_every_statement_by_its_index() {
    let folder = std::env::temp_dir().join(format!("retryjob-plans-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let url = format!("sqlite://{}/jobs.sqlite", folder.display());
    let backend = Sqlite::connect(&url, BillingJob::schema()).await.unwrap();
    backend.install().await.unwrap();
    let mut plans = HashMap::new();
    for (name, statement) in backend.catalogue().statements() {
        let sql = spelled_out(statement)
            .replace("UNHEX(SHA2(", "(")
            .replace(", 256))", ")");
        let explain = AssertSqlSafe(format!("EXPLAIN QUERY PLAN {sql}"));
        let rows = sqlx::raw_sql(explain)
            .fetch_all(backend.connections())
            .await
            .unwrap();
        let plan: Vec<String> = rows.iter().map(|row| row.get("detail")).collect();
        plans.insert(name, plan.join("; "));
    }
    backend.close().await;
    std::fs::remove_dir_all(&folder).unwrap();
    for (name, plan) in plans {
        let by = match expected_index(&name) {
            None => continue,
            Some("PRIMARY") if name.starts_with("node") => {
                "INDEX sqlite_autoindex_retryjob_node_1".to_owned()
            }
            Some("PRIMARY") => "INTEGER PRIMARY KEY".to_owned(),
            Some(index) => format!("billing_job_{index}"),
        };
        if name.starts_with("heads") {
            // SQLite has no loose index scan: reading the waiting jobs alone
            // and grouping them is less than reading the whole claim index.
            assert!(
                plan.contains("billing_job_lease (status=?)"),
                "{name}: {plan}"
            );
            continue;
        }
        assert!(
            plan.contains(&by) && !plan.contains("TEMP B-TREE"),
            "{name}: {plan}"
        );
    }
}
