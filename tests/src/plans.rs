//! How each server runs the statements of [`BILLING_BOTH`], on rows as a busy
//! table has them: by the expected index, without a sort and without a
//! temporary table.

use std::{collections::BTreeSet, env, fs, path::PathBuf};

use retryjob::{
    Backend, Sqlite,
    sql::{Slot, Statement},
};
use retryjob_core::IdempotencyKey;
use sqlx::{AssertSqlSafe, Column as _, MySqlConnection, Row as _, mysql::MySqlRow};

use crate::{inspect::ServerUnderTest, samples::BILLING_BOTH};

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

/// 256 shards of ten job types.
const FILL_SHARDS: &str = "
    INSERT INTO retryjob_shard (job_table, shard_id, node, fence, lease_until, doubt_until)
    SELECT IF(a.d = 0, 'billing_job', CONCAT('job_', a.d)), b.d + 10 * c.d + 100 * e.d,
        CONCAT('node-', b.d), 1, UTC_TIMESTAMP(6) + INTERVAL 1 HOUR, UTC_TIMESTAMP(6)
    FROM digit a, digit b, digit c, digit e WHERE b.d + 10 * c.d + 100 * e.d < 256";

/// The index that each statement reads by; the first word of its name decides.
fn expected_index(name: &str) -> Option<&'static str> {
    let stem = name.split('[').next().unwrap();
    Some(match stem {
        "heads" | "pick_fresh" | "pick_retry" | "pick_alone" | "next_due" => "claim",
        "lapsed" | "any_open" | "counts" => "lease",
        "find_keys" => "idempotency_key",
        // And the lease of the shard beside it.
        "pick_held" | "pick_doubt" => "PRIMARY claim",
        // No table is read.
        "insert" | "clock" | "node_join" | "shard_add" => return None,
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

/// Where plans are asked for.
pub trait Plans: Sized + Send {
    /// What is wrong with the plan of a statement, if anything; `None` for one
    /// that reads no table as well.
    fn wrong(
        &mut self,
        name: &str,
        statement: &Statement,
    ) -> impl Future<Output = Option<String>> + Send;

    /// Removes the database.
    fn close(self) -> impl Future<Output = ()> + Send;
}

/// A database of its own with the 100,000 rows.
#[derive(Debug)]
pub struct ServerPlans {
    server: ServerUnderTest,
    name: String,
    connection: MySqlConnection,
}

/// A row of EXPLAIN.
#[derive(Debug)]
pub struct Plan {
    pub access: String,
    pub key: String,
    pub remarks: String,
}

impl ServerPlans {
    /// Fills the table that this backend creates.
    pub async fn filled<B: Backend>(server: ServerUnderTest) -> Self {
        let number = IdempotencyKey::random().to_u64();
        let name = format!("retryjob_plans_{number:016x}");
        let url = server.database(&name).await;
        let backend = B::connect(&url, &BILLING_BOTH).await.unwrap();
        backend.install().await.unwrap();
        let mut connection = server.connection().await;
        for sql in [
            format!("USE {name}"),
            "CREATE TABLE digit (d INT) SELECT 0 AS d UNION SELECT 1 UNION SELECT 2 UNION SELECT 3 UNION SELECT 4 \
             UNION SELECT 5 UNION SELECT 6 UNION SELECT 7 UNION SELECT 8 UNION SELECT 9".into(),
            FILL_MYSQL.into(),
            FILL_NODES.into(),
            FILL_SHARDS.into(),
            "ANALYZE TABLE billing_job, retryjob_node, retryjob_shard".into(),
        ] {
            sqlx::raw_sql(AssertSqlSafe(sql)).execute(&mut connection).await.unwrap();
        }
        Self {
            server,
            name,
            connection,
        }
    }

    /// What EXPLAIN says of one statement.
    pub async fn plan(&mut self, statement: &Statement) -> Plan {
        let format = match self.server {
            ServerUnderTest::Mariadb => "",
            _ => "FORMAT=TRADITIONAL",
        };
        let sql = spelled_out(statement);
        let explain = AssertSqlSafe(format!("EXPLAIN {format} {sql}"));
        let rows = sqlx::raw_sql(explain).fetch_all(&mut self.connection).await;
        let rows = rows.unwrap();
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
        Plan {
            access: of("type"),
            key: of("key"),
            remarks: of("Extra"),
        }
    }
}

impl Plans for ServerPlans {
    async fn wrong(&mut self, name: &str, statement: &Statement) -> Option<String> {
        let index = expected_index(name)?;
        let plan = self.plan(statement).await;
        let Plan {
            access,
            key,
            remarks,
        } = &plan;
        // MariaDB's remark on an UPDATE that changes the index it reads is
        // "Using buffer": a list of row ids, not a table.
        let is_bad = ["filesort", "temporary"]
            .iter()
            .any(|bad| remarks.contains(bad));
        // A lookup by the primary key that happens to find nothing.
        let is_lookup = index == "PRIMARY" && remarks.contains("after reading const tables");
        // All of the index, and so all of the table; the counts are meant to.
        let is_scan = access == "index" && !name.starts_with("counts");
        ((key != index && !is_lookup) || is_bad || is_scan)
            .then(|| format!("{name}: {plan:?}, expected {index:?}"))
    }

    async fn close(self) {
        self.server.drop_database(&self.name).await;
    }
}

/// The plans of SQLite, whose planner looks at no rows.
#[derive(Debug)]
pub struct SqlitePlans {
    folder: PathBuf,
    backend: Sqlite,
}

impl SqlitePlans {
    /// A file of its own.
    pub async fn open() -> Self {
        let number = IdempotencyKey::random().to_u64();
        let folder = env::temp_dir().join(format!("retryjob-plans-{number:016x}"));
        fs::create_dir_all(&folder).unwrap();
        let url = format!("sqlite://{}/jobs.sqlite", folder.display());
        let backend = Sqlite::connect(&url, &BILLING_BOTH).await.unwrap();
        backend.install().await.unwrap();
        Self { folder, backend }
    }
}

impl Plans for SqlitePlans {
    async fn wrong(&mut self, name: &str, statement: &Statement) -> Option<String> {
        let by = match expected_index(name)? {
            "PRIMARY" if name.starts_with("node") => {
                "INDEX sqlite_autoindex_retryjob_node_1".to_owned()
            }
            "PRIMARY" if name.starts_with("shard") => {
                "INDEX sqlite_autoindex_retryjob_shard_1".to_owned()
            }
            "PRIMARY" => "INTEGER PRIMARY KEY".to_owned(),
            "PRIMARY claim" => "billing_job_claim".to_owned(),
            index => format!("billing_job_{index}"),
        };
        let sql = spelled_out(statement)
            .replace("UNHEX(SHA2(", "(")
            .replace(", 256))", ")");
        let explain = AssertSqlSafe(format!("EXPLAIN QUERY PLAN {sql}"));
        let rows = sqlx::raw_sql(explain)
            .fetch_all(self.backend.connections())
            .await
            .unwrap();
        let plan: Vec<String> = rows.iter().map(|row| row.get("detail")).collect();
        let plan = plan.join("; ");
        // SQLite has no loose index scan: reading the waiting jobs alone and
        // grouping them is less than reading the whole claim index.
        let is_right = match name.starts_with("heads") {
            true => plan.contains("billing_job_lease (status=?)"),
            // A COUNT reads all of its index.
            false => plan.contains(&by) && !plan.contains("TEMP B-TREE"),
        };
        (!is_right).then(|| format!("{name}: {plan}"))
    }

    async fn close(self) {
        self.backend.close().await;
        fs::remove_dir_all(&self.folder).unwrap();
    }
}
