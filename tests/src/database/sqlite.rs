//! A file of SQLite's.

use std::{env, fs, path::PathBuf, time::Duration};

use chrono::NaiveDate;
use retryjob_backends::Sqlite;
use retryjob_core::{
    Backend as _, DbTime, Finished, IdempotencyKey, JobSchema, LeaseBy, Status,
    memory::JobRow,
    op::{claim::LeaseOwner, finish::Finish, nodes::NodeName, reap::Lapsed},
    sql::Catalogue,
    value::{ColumnType, Value},
};
use sqlx::{
    AssertSqlSafe, Row as _, SqliteConnection, SqlitePool,
    sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePoolOptions, SqliteRow},
};

use super::{SqlDatabase, TestDatabase};
use crate::history::{Moved, moves};

/// A database file for one test.
#[derive(Debug)]
pub struct SqliteFile {
    path: PathBuf,
    pool: SqlitePool,
}

impl SqliteFile {
    async fn rows_of(&self, table: &str, schema: &JobSchema) -> Vec<JobRow> {
        let sql = format!("SELECT * FROM {table} ORDER BY id");
        let rows = sqlx::query(AssertSqlSafe(sql)).fetch_all(&self.pool).await;
        rows.unwrap()
            .iter()
            .map(|row| job_row(row, schema))
            .collect()
    }
}

impl TestDatabase for SqliteFile {
    type Backend = Sqlite;

    const BAD_URLS: &'static [&'static str] = &["", "nonsense", "mysql://localhost/x", "redis://x"];

    async fn create() -> Self {
        let path = env::temp_dir().join(format!("{}.sqlite", super::random_name()));
        let options = SqliteConnectOptions::new()
            .filename(&path)
            .create_if_missing(true)
            .journal_mode(SqliteJournalMode::Wal)
            .busy_timeout(Duration::from_secs(20));
        let pool = SqlitePoolOptions::new()
            .max_connections(3)
            .connect_with(options)
            .await;
        let pool = pool.unwrap();
        let notes = "CREATE TABLE caller_note (id INTEGER PRIMARY KEY)";
        sqlx::query(notes).execute(&pool).await.unwrap();
        Self { path, pool }
    }

    async fn connect(&self, schema: &'static JobSchema) -> Sqlite {
        Sqlite::connect(&self.url(), schema).await.unwrap()
    }

    async fn rows(&self, schema: &'static JobSchema) -> Vec<JobRow> {
        self.rows_of(schema.table.as_str(), schema).await
    }

    async fn history(&self, schema: &'static JobSchema) -> Vec<JobRow> {
        self.rows_of(&format!("{}_history", schema.table), schema)
            .await
    }

    async fn memberships(&self, schema: &'static JobSchema) -> Vec<(NodeName, DbTime)> {
        let sql = "SELECT node, member_until FROM retryjob_node WHERE job_table = ? ORDER BY node";
        let rows = sqlx::query(sql).bind(schema.table.as_str());
        let rows = rows.fetch_all(&self.pool).await.unwrap();
        let membership = |row| {
            let node = NodeName::from_row(sqlx::Row::get(row, "node"));
            (node, instant(row, "member_until").unwrap())
        };
        rows.iter().map(membership).collect()
    }

    async fn pass(&self, schema: &'static JobSchema, span: Duration) {
        let us = span.as_micros();
        let earlier = [
            "next_attempt_at",
            "due_at",
            "lease_until",
            "created_at",
            "updated_at",
        ]
        .map(|column| format!("{column} = {column} - {us}"));
        let history = (schema.finished == Finished::History).then_some("_history");
        for suffix in [Some(""), history].into_iter().flatten() {
            let earlier = earlier.join(", ");
            self.execute(&format!("UPDATE {}{suffix} SET {earlier}", schema.table))
                .await;
        }
        self.execute(&format!(
            "UPDATE retryjob_node SET member_until = member_until - {us} WHERE job_table = '{}'",
            schema.table
        ))
        .await;
        if schema.lease_by == LeaseBy::Shard {
            self.execute(&format!(
                "UPDATE retryjob_shard SET lease_until = lease_until - {us}, \
                 doubt_until = doubt_until - {us} WHERE job_table = '{}'",
                schema.table
            ))
            .await;
        }
    }

    async fn note(&self, connection: &mut SqliteConnection) {
        let insert = "INSERT INTO caller_note DEFAULT VALUES";
        sqlx::query(insert).execute(connection).await.unwrap();
    }

    async fn notes(&self) -> usize {
        let notes = sqlx::query("SELECT id FROM caller_note")
            .fetch_all(&self.pool)
            .await;
        notes.unwrap().len()
    }

    async fn look_lapsed(backend: &Sqlite, limit: u16) -> Vec<Lapsed> {
        backend.look_lapsed(limit).await.unwrap()
    }

    async fn take_back(backend: &Sqlite, lapsed: Vec<Lapsed>) -> Vec<Finish> {
        backend.take_back(lapsed).await.unwrap()
    }

    /// A gigabyte.
    async fn oversize_bytes(&self) -> Option<usize> {
        None
    }
}

impl SqlDatabase for SqliteFile {
    /// SQLite changes no column in place: the table is made anew from its own
    /// text with some of it replaced.
    async fn spoil(&self, schema: &'static JobSchema) -> Vec<&'static str> {
        let table = schema.table.as_str();
        let spoilt = self
            .create_sql(schema)
            .await
            .replace("\"memo\" TEXT", "\"memory\" TEXT")
            .replace(
                "\"service_id\" INTEGER NOT NULL",
                "\"service_id\" TEXT NOT NULL",
            )
            .replace("\"lease_seq\" INTEGER NOT NULL", "\"lease_seq\" INTEGER")
            .replace(
                "\"created_at\" INTEGER NOT NULL",
                "\"created_at\" INTEGER NOT NULL, \"surplus\" INTEGER NOT NULL",
            );
        self.execute(&format!("DROP TABLE {table}")).await;
        self.execute(&spoilt).await;
        vec![
            "memo",
            "service_id",
            "lease_seq",
            "surplus",
            "mail_claim",
            "mail_lease",
        ]
    }

    fn claim_index(&self, schema: &'static JobSchema) -> String {
        format!("{}_claim", schema.table)
    }

    fn drop_index_sql(&self, _: &'static JobSchema, index: &str) -> String {
        format!("DROP INDEX {index}")
    }

    async fn create_sql(&self, schema: &'static JobSchema) -> String {
        let sql = "SELECT group_concat(sql, ';') FROM sqlite_master WHERE tbl_name = ? AND type = 'table'";
        let text = sqlx::query_scalar(sql).bind(schema.table.as_str());
        text.fetch_one(&self.pool).await.unwrap()
    }

    fn catalogue(backend: &Sqlite) -> &Catalogue {
        backend.catalogue()
    }

    async fn ids(&self, sql: &str) -> Vec<u64> {
        let query = sqlx::query(AssertSqlSafe(sql.to_owned()));
        let rows = query.fetch_all(&self.pool).await.unwrap();
        let ids = rows.iter().map(|row| row.get::<i64, _>(0).cast_unsigned());
        let mut ids: Vec<_> = ids.collect();
        ids.sort_unstable();
        ids
    }

    fn url(&self) -> String {
        format!("sqlite://{}", self.path.display())
    }

    async fn watch(&self, schema: &'static JobSchema) {
        moves::sqlite::install(&self.pool, schema).await;
    }

    async fn moves(&self) -> Vec<Moved> {
        moves::sqlite::read(&self.pool).await
    }

    const HAS_ONE_WRITER: bool = true;

    /// One that writes keeps every other from doing so.
    async fn open_transactions(&self) -> usize {
        let mut connection = self.pool.acquire().await.unwrap();
        sqlx::raw_sql("PRAGMA busy_timeout = 0")
            .execute(&mut *connection)
            .await
            .unwrap();
        let begun = sqlx::raw_sql("BEGIN IMMEDIATE")
            .execute(&mut *connection)
            .await;
        sqlx::raw_sql("ROLLBACK; PRAGMA busy_timeout = 20000")
            .execute(&mut *connection)
            .await
            .ok();
        connection.close().await.unwrap();
        usize::from(begun.is_err())
    }

    async fn pairs(&self, sql: &str) -> Vec<(u64, u64)> {
        let sql = AssertSqlSafe(sql.to_owned());
        let pairs: Vec<(i64, i64)> = sqlx::query_as(sql).fetch_all(&self.pool).await.unwrap();
        let unsigned = |number: i64| u64::try_from(number).unwrap();
        pairs
            .into_iter()
            .map(|(a, b)| (unsigned(a), unsigned(b)))
            .collect()
    }

    async fn execute(&self, sql: &str) {
        let sql = AssertSqlSafe(sql.to_owned());
        sqlx::query(sql).execute(&self.pool).await.unwrap();
    }
}

impl Drop for SqliteFile {
    fn drop(&mut self) {
        for end in ["", "-wal", "-shm"] {
            let mut path = self.path.clone().into_os_string();
            path.push(end);
            // The last connection removes the other two itself.
            let _ = fs::remove_file(path);
        }
    }
}

fn instant(row: &SqliteRow, column: &str) -> Option<DbTime> {
    row.get::<Option<i64>, _>(column).map(DbTime::from_us)
}

fn job_row(row: &SqliteRow, schema: &JobSchema) -> JobRow {
    let key: Vec<u8> = row.get("idempotency_key");
    let owner: Option<String> = row.get("lease_owner");
    let small = |column: &str| u16::try_from(row.get::<i64, _>(column)).unwrap();
    let large = |column: &str| row.get::<i64, _>(column).cast_unsigned();
    JobRow {
        id: large("id"),
        shard_id: small("shard_id"),
        status: Status::from_code(row.get("status")).unwrap(),
        next_attempt_at: instant(row, "next_attempt_at").unwrap(),
        due_at: instant(row, "due_at").unwrap(),
        attempt_no: small("attempt_no"),
        lease_owner: owner.as_deref().map(LeaseOwner::from_row),
        lease_seq: large("lease_seq"),
        lease_until: instant(row, "lease_until"),
        idempotency_key: IdempotencyKey::from_bytes(key.try_into().unwrap()),
        shard_key: schema.shard_key_column.map(|name| row.get(name.as_str())),
        payload: schema.has_payload.then(|| row.get("payload")),
        last_error: row.get("last_error"),
        created_at: instant(row, "created_at").unwrap(),
        updated_at: instant(row, "updated_at").unwrap(),
        columns: schema
            .columns
            .iter()
            .map(|column| value(row, column.name.as_str(), column.kind).unwrap_or(Value::Null))
            .collect(),
    }
}

fn value(row: &SqliteRow, column: &str, kind: ColumnType) -> Option<Value> {
    use ColumnType::{
        Binary, Bool, Date, DateTime, F64, I8, I16, I32, I64, Text, U8, U16, U32, U64, Varbinary,
        Varchar,
    };
    Some(match kind {
        Bool => Value::Bool(row.get::<Option<i64>, _>(column)? == 1),
        I8 | I16 | I32 | I64 => Value::I64(row.get::<Option<_>, _>(column)?),
        U8 | U16 | U32 | U64 => Value::U64(row.get::<Option<i64>, _>(column)?.cast_unsigned()),
        F64 => Value::F64(row.get::<Option<_>, _>(column)?),
        Varchar { .. } | Text => Value::Text(row.get::<Option<_>, _>(column)?),
        Binary { .. } | Varbinary { .. } => Value::Bytes(row.get::<Option<_>, _>(column)?),
        Date => {
            let text: String = row.get::<Option<_>, _>(column)?;
            Value::Date(NaiveDate::parse_from_str(&text, "%Y-%m-%d").unwrap())
        }
        DateTime => Value::DateTime(instant(row, column)?.to_utc()),
    })
}
