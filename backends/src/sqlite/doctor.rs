//! What a file and its connection give.
//!
//! # Source
//!
//! SQLite, "Pragma statements supported by SQLite" and "Write-Ahead Logging".

use retryjob_core::{
    op::{doctor::Finding, due::Lane},
    sql::Statement,
};
use sqlx::{AssertSqlSafe, Row as _, SqliteConnection};

use super::{error, session::bind};
use crate::{fault::Fault, kind::Ask, op::doctor::some_pick};

/// Settings that are read, in the order of the report.
const SETTINGS: [&str; 5] = [
    "journal_mode",
    "synchronous",
    "query_only",
    "foreign_keys",
    "busy_timeout",
];

/// Milliseconds below which writers give up on each other too soon.
const BUSY_MS_MIN: u64 = 1000;

pub(super) async fn examine(
    session: &mut SqliteConnection,
    ask: &Ask<'_>,
) -> Result<Vec<Finding>, Fault> {
    let version = one(session, "SELECT sqlite_version()").await?;
    let mut findings = vec![match version {
        Ok(version) => Finding::ok("version", format!("SQLite {version}")),
        Err(refused) => Finding::unknown("version", refused),
    }];
    findings.push(Finding::ok(
        "SKIP LOCKED",
        "not needed: one transaction writes at a time",
    ));
    findings.push(Finding::ok(
        "session isolation",
        "SERIALIZABLE, as SQLite always is",
    ));
    findings.push(Finding::ok(
        "session time_zone",
        "UTC, as SQLite's clock is",
    ));
    for name in SETTINGS {
        findings.push(match one(session, &format!("PRAGMA {name}")).await? {
            Ok(value) => judge(name, &value.to_lowercase()),
            Err(refused) => Finding::unknown(name, refused),
        });
    }
    if ask.has_job_table() {
        for lane in [Lane::Fresh, Lane::Retry] {
            let plan = plan(session, ask.catalogue.pick.of(lane)).await?;
            let subject = format!("plan of a {} claim", format!("{lane:?}").to_lowercase());
            findings.push(judge_plan(&subject, ask.claim_index(), plan));
        }
    }
    Ok(findings)
}

/// The first column of the first row as text, or why there is none.
async fn one(session: &mut SqliteConnection, sql: &str) -> Result<Result<String, String>, Fault> {
    let text = sqlx::raw_sql(AssertSqlSafe(sql.to_owned()));
    let row = answered(text.fetch_optional(session).await)?;
    Ok(row.and_then(|row| {
        let row = row.ok_or_else(|| "no answer".to_owned())?;
        row.try_get_unchecked(0).map_err(|error| error.to_string())
    }))
}

fn answered<T>(answer: Result<T, sqlx::Error>) -> Result<Result<T, String>, Fault> {
    match answer {
        Ok(answer) => Ok(Ok(answer)),
        Err(error) => match error::fault(error) {
            Fault::Final(refused) => Ok(Err(refused.to_string())),
            passing => Err(passing),
        },
    }
}

async fn plan(
    session: &mut SqliteConnection,
    pick: &Statement,
) -> Result<Result<String, String>, Fault> {
    let sql = AssertSqlSafe(format!("EXPLAIN QUERY PLAN {}", pick.sql()));
    let values = pick.values(some_pick);
    let query = values.into_iter().fold(sqlx::query(sql), bind);
    let rows = answered(query.persistent(false).fetch_all(session).await)?;
    let line = |row: &sqlx::sqlite::SqliteRow| row.try_get::<String, _>("detail");
    Ok(rows.and_then(|rows| {
        let lines: Result<Vec<_>, _> = rows.iter().map(line).collect();
        lines
            .map(|lines| lines.join("; "))
            .map_err(|error| error.to_string())
    }))
}

/// What a setting means.
fn judge(name: &str, value: &str) -> Finding {
    match (name, value) {
        ("journal_mode", "wal") => Finding::ok(name, "wal"),
        ("journal_mode", "memory" | "off") => Finding::fault(
            name,
            value,
            "a crash in the middle of a commit can corrupt the file; the statements need wal",
        ),
        ("journal_mode", _) => Finding::warning(
            name,
            value,
            "readers and the writer wait for each other; wal lets them work beside each other",
        ),
        ("synchronous", "2") => Finding::ok(name, "FULL"),
        ("synchronous", "3") => Finding::ok(name, "EXTRA"),
        ("synchronous", "1") => Finding::fault(
            name,
            "NORMAL",
            "in WAL mode a commit is not flushed: a power cut loses the last acknowledged jobs, \
             though the file stays whole; set it to FULL",
        ),
        ("synchronous", "0") => Finding::fault(
            name,
            "OFF",
            "a power cut loses acknowledged jobs and can corrupt the file; set it to FULL",
        ),
        ("query_only", "0") => Finding::ok(name, "off"),
        ("query_only", _) => Finding::fault(name, "on", "this connection writes nothing"),
        ("foreign_keys", "1") => Finding::ok(name, "on"),
        ("foreign_keys", _) => Finding::warning(
            name,
            "off",
            "the job table has none, but those of your own tables are not checked",
        ),
        ("busy_timeout", ms) => match ms.parse::<u64>() {
            Ok(ms) if ms >= BUSY_MS_MIN => Finding::ok(name, format!("{ms} ms")),
            _ => Finding::warning(
                name,
                format!("{ms} ms"),
                "writers give up on each other at once; 5000 ms lets them wait",
            ),
        },
        _ => Finding::unknown(name, format!("says `{value}`")),
    }
}

/// By the claim index, in its order.
fn judge_plan(subject: &str, index: &str, plan: Result<String, String>) -> Finding {
    let plan = match plan {
        Ok(plan) => plan,
        Err(refused) => return Finding::unknown(subject, refused),
    };
    if plan.contains(&format!("USING INDEX {index} ")) && !plan.contains("TEMP B-TREE") {
        return Finding::ok(subject, plan);
    }
    Finding::fault(
        subject,
        plan,
        format!("expected a search by index `{index}` without a temporary b-tree"),
    )
}

#[cfg(test)]
mod tests {
    use retryjob_core::op::doctor::{Level, UNKNOWN};

    use super::*;

    #[test]
    fn each_setting_is_judged_by_what_it_does_to_the_promises() {
        for (name, value, level) in [
            ("journal_mode", "wal", Level::Ok),
            ("journal_mode", "delete", Level::Warning),
            ("journal_mode", "memory", Level::Fault),
            ("journal_mode", "off", Level::Fault),
            ("synchronous", "3", Level::Ok),
            ("synchronous", "2", Level::Ok),
            ("synchronous", "1", Level::Fault),
            ("synchronous", "0", Level::Fault),
            ("query_only", "0", Level::Ok),
            ("query_only", "1", Level::Fault),
            ("foreign_keys", "1", Level::Ok),
            ("foreign_keys", "0", Level::Warning),
            ("busy_timeout", "5000", Level::Ok),
            ("busy_timeout", "0", Level::Warning),
        ] {
            let finding = judge(name, value);
            assert_eq!(finding.level, level, "{name} = {value}");
            assert_eq!(finding.advice.is_empty(), level == Level::Ok);
        }
        assert_eq!(judge("synchronous", "9").value, UNKNOWN);
    }

    #[test]
    fn a_claim_that_scans_or_sorts_is_a_fault() {
        let index = "job_claim";
        let search = "SEARCH job USING INDEX job_claim (shard_id=? AND status=?)";
        for (plan, level) in [
            (search.to_owned(), Level::Ok),
            (
                format!("{search}; USE TEMP B-TREE FOR ORDER BY"),
                Level::Fault,
            ),
            ("SCAN job".to_owned(), Level::Fault),
            (search.replace("job_claim", "job_claimant"), Level::Fault),
        ] {
            assert_eq!(
                judge_plan("plan", index, Ok(plan.clone())).level,
                level,
                "{plan}"
            );
        }
        let refused = judge_plan("plan", index, Err("no such table".into()));
        assert_eq!(refused.value, UNKNOWN);
    }
}
