//! The triggers and their table in the MySQL family.

use retryjob_core::{DbTime, JobSchema, Status};
use sqlx::{AssertSqlSafe, MySqlPool, Row as _, mysql::MySqlRow};

use super::{EVENTS, Moved, State, note};

const TABLE: &str = "CREATE TABLE job_move (
    seq BIGINT UNSIGNED AUTO_INCREMENT PRIMARY KEY,
    at DATETIME(6) NOT NULL, id BIGINT UNSIGNED NOT NULL,
    status_before TINYINT UNSIGNED, attempt_no_before SMALLINT UNSIGNED,
    lease_seq_before BIGINT UNSIGNED, lease_owner_before VARCHAR(64),
    lease_until_before DATETIME(6), next_attempt_at_before DATETIME(6),
    status_after TINYINT UNSIGNED, attempt_no_after SMALLINT UNSIGNED,
    lease_seq_after BIGINT UNSIGNED, lease_owner_after VARCHAR(64),
    lease_until_after DATETIME(6), next_attempt_at_after DATETIME(6)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4";

/// Notes every change of this table from now on.
pub async fn install(pool: &MySqlPool, schema: &JobSchema) {
    sqlx::raw_sql(TABLE).execute(pool).await.unwrap();
    for (event, has_old, has_new) in EVENTS {
        let trigger = format!(
            "CREATE TRIGGER job_move_{event} AFTER {event} ON `{}` FOR EACH ROW {}",
            schema.table,
            note("UTC_TIMESTAMP(6)", has_old, has_new)
        );
        let created = sqlx::raw_sql(AssertSqlSafe(trigger)).execute(pool).await;
        created.unwrap();
    }
}

/// What was noted.
pub async fn read(pool: &MySqlPool) -> Vec<Moved> {
    let rows = sqlx::raw_sql("SELECT * FROM job_move ORDER BY seq")
        .fetch_all(pool)
        .await;
    rows.unwrap().iter().map(moved).collect()
}

fn moved(row: &MySqlRow) -> Moved {
    Moved {
        at: instant(row, "at").unwrap(),
        id: row.get("id"),
        before: state(row, "before"),
        after: state(row, "after"),
    }
}

fn instant(row: &MySqlRow, column: &str) -> Option<DbTime> {
    let at: Option<chrono::NaiveDateTime> = row.get(column);
    at.map(DbTime::from_utc)
}

fn state(row: &MySqlRow, side: &str) -> Option<State> {
    let column = |name: &str| format!("{name}_{side}");
    let status: Option<u8> = row.get(column("status").as_str());
    Some(State {
        status: Status::from_code(status?).unwrap(),
        attempt_no: row.get(column("attempt_no").as_str()),
        lease_seq: row.get(column("lease_seq").as_str()),
        lease_owner: row.get(column("lease_owner").as_str()),
        lease_until: instant(row, &column("lease_until")),
        next_attempt_at: instant(row, &column("next_attempt_at")).unwrap(),
    })
}
