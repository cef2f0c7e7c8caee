//! What a server of the MySQL family gives, read by SHOW, SELECT and EXPLAIN
//! alone.

mod durability;

mod limits;

mod plan;

mod server;

mod storage;

use std::collections::BTreeMap;

use retryjob_core::op::doctor::Finding;
use sqlx::{AssertSqlSafe, MySqlConnection, Row as _, mysql::MySqlRow};

use super::{error, skip_locked::can_skip_locked};
use crate::{fault::Fault, kind::Ask};

/// Every setting that is judged. By name, since a server leaves out those that
/// it does not have.
const SETTINGS: &str = "Variable_name IN ('version', 'version_comment', \
    'transaction_isolation', 'tx_isolation', 'time_zone', 'sql_mode', 'autocommit', \
    'character_set_client', 'character_set_connection', 'character_set_results', \
    'innodb_flush_log_at_trx_commit', 'log_bin', 'sync_binlog', 'innodb_doublewrite', \
    'read_only', 'super_read_only', 'innodb_read_only', 'transaction_read_only', 'tx_read_only', \
    'rpl_semi_sync_source_enabled', 'rpl_semi_sync_master_enabled', \
    'rpl_semi_sync_source_wait_point', 'rpl_semi_sync_master_wait_point', \
    'group_replication_group_name', 'group_replication_consistency', \
    'innodb_rollback_on_timeout', 'wait_timeout', 'max_prepared_stmt_count', \
    'max_allowed_packet', 'performance_schema')";

/// Counters of the server that are judged.
const COUNTERS: &str = "SHOW GLOBAL STATUS WHERE Variable_name IN ('Prepared_stmt_count', \
    'Rpl_semi_sync_source_status', 'Rpl_semi_sync_master_status')";

/// What was read, by name: a name that is missing is one that the server does
/// not have, or does not show to this user.
#[derive(Debug, Default)]
struct Seen(BTreeMap<String, String>);

impl Seen {
    fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    /// The first of several names of the same thing.
    fn any<'n>(&self, names: &[&'n str]) -> Option<(&'n str, &str)> {
        let found = names
            .iter()
            .map(|name| self.get(name).map(|value| (*name, value)));
        found.flatten().next()
    }

    fn is_on(&self, name: &str) -> bool {
        self.get(name).is_some_and(is_on)
    }

    #[cfg(test)]
    fn of<const N: usize>(all: [(&str, &str); N]) -> Self {
        Self(all.map(|(n, v)| (n.to_owned(), v.to_owned())).into())
    }
}

fn is_on(value: &str) -> bool {
    value == "1" || value.eq_ignore_ascii_case("ON")
}

/// A setting that is not shown.
fn not_shown(name: &str) -> Finding {
    Finding::unknown(name, "the server does not show it to this user")
}

/// What the server of this connection gives. `needs_skip_locked` when the
/// backend claims with it.
pub(crate) async fn examine(
    session: &mut MySqlConnection,
    ask: &Ask<'_>,
    needs_skip_locked: bool,
) -> Result<Vec<Finding>, Fault> {
    let session_settings = settings(session, "SESSION").await?;
    let settings = settings(session, "GLOBAL").await?;
    let counters = pairs(session, COUNTERS).await?.unwrap_or_default();
    let can_skip = match can_skip_locked(&mut *session).await {
        Ok(can) => Some(can),
        Err(error) if error.is_transient() => return Err(Fault::Final(error)),
        Err(_) => None,
    };

    let mut findings = server::version(&settings);
    findings.push(server::skip_locked(can_skip, needs_skip_locked, &settings));
    findings.extend(server::session(&session_settings));
    findings.extend(server::read_only(&settings, &session_settings));
    findings.extend(durability::local(&settings));
    findings.extend(durability::replicated(&settings, &counters));
    findings.extend(limits::judge(
        &settings,
        &counters,
        limits::prepared_max(ask),
    ));
    findings.extend(storage::examine(session, ask, settings.is_on("performance_schema")).await?);
    findings.extend(plan::examine(session, ask, &settings).await?);
    Ok(findings)
}

async fn settings(session: &mut MySqlConnection, scope: &str) -> Result<Seen, Fault> {
    let sql = format!("SHOW {scope} VARIABLES WHERE {SETTINGS}");
    Ok(pairs(session, &sql).await?.unwrap_or_default())
}

/// Names and values; none when the server refuses the statement.
async fn pairs(session: &mut MySqlConnection, sql: &str) -> Result<Option<Seen>, Fault> {
    let rows = rows(session, sql).await?;
    let pair = |row: &MySqlRow| (text(row, 0), text(row, 1));
    Ok(rows.ok().map(|rows| Seen(rows.iter().map(pair).collect())))
}

/// Rows, or what the server says against the statement; a fault only when the
/// connection is gone.
async fn rows(
    session: &mut MySqlConnection,
    sql: &str,
) -> Result<Result<Vec<MySqlRow>, String>, Fault> {
    let text = sqlx::raw_sql(AssertSqlSafe(sql.to_owned()));
    answered(text.fetch_all(session).await)
}

/// What the server answered, also when that is a refusal.
fn answered<T>(answer: Result<T, sqlx::Error>) -> Result<Result<T, String>, Fault> {
    match answer {
        Ok(answer) => Ok(Ok(answer)),
        Err(sqlx::Error::Database(refused)) => Ok(Err(refused.message().to_owned())),
        Err(other) => Err(error::fault(other)),
    }
}

/// A column as text; empty for NULL.
fn text(row: &MySqlRow, at: usize) -> String {
    let text = row.try_get_unchecked::<Option<String>, _>(at);
    text.ok().flatten().unwrap_or_default()
}
