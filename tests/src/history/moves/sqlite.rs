//! The triggers and their table in SQLite.

use retryjob_core::{DbTime, JobSchema, Status};
use sqlx::{AssertSqlSafe, Row as _, SqlitePool, sqlite::SqliteRow};

use super::{EVENTS, Moved, State, note, sides};

/// The clock as the statements read it.
const NOW: &str = "CAST(ROUND(unixepoch('now', 'subsec') * 1000) AS INTEGER) * 1000";

/// Notes every change of this table from now on.
pub async fn install(pool: &SqlitePool, schema: &JobSchema) {
    let table = format!(
        "CREATE TABLE job_move (seq INTEGER PRIMARY KEY AUTOINCREMENT, at INTEGER NOT NULL, \
         id INTEGER NOT NULL, {})",
        sides().join(", ")
    );
    run(pool, table).await;
    for (event, has_old, has_new) in EVENTS {
        let note = note(NOW, has_old, has_new);
        let trigger = format!(
            "CREATE TRIGGER job_move_{event} AFTER {event} ON \"{}\" BEGIN {note}; END",
            schema.table,
        );
        run(pool, trigger).await;
    }
}

async fn run(pool: &SqlitePool, sql: String) {
    let ran = sqlx::raw_sql(AssertSqlSafe(sql)).execute(pool).await;
    ran.unwrap();
}

/// What was noted.
pub async fn read(pool: &SqlitePool) -> Vec<Moved> {
    let rows = sqlx::query("SELECT * FROM job_move ORDER BY seq")
        .fetch_all(pool)
        .await;
    rows.unwrap().iter().map(moved).collect()
}

fn moved(row: &SqliteRow) -> Moved {
    Moved {
        at: DbTime::from_us(row.get("at")),
        id: row.get("id"),
        before: state(row, "before"),
        after: state(row, "after"),
    }
}

fn state(row: &SqliteRow, side: &str) -> Option<State> {
    let column = |name: &str| format!("{name}_{side}");
    let status: Option<u8> = row.get(column("status").as_str());
    let until: Option<i64> = row.get(column("lease_until").as_str());
    Some(State {
        status: Status::from_code(status?).unwrap(),
        attempt_no: row.get(column("attempt_no").as_str()),
        lease_seq: row.get(column("lease_seq").as_str()),
        lease_owner: row.get(column("lease_owner").as_str()),
        lease_until: until.map(DbTime::from_us),
        next_attempt_at: DbTime::from_us(row.get(column("next_attempt_at").as_str())),
    })
}
