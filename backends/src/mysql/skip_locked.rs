//! Whether a server has `SKIP LOCKED`: asked, not told by its version.

use retryjob_core::Result;
use sea_query::{Expr, LockBehavior, LockType, MysqlQueryBuilder, SelectStatement};
use sqlx::{AssertSqlSafe, Executor, MySql};

use super::error;
use crate::fault::Fault;

/// Runs a statement that only servers with `SKIP LOCKED` understand. It needs
/// no table.
pub(crate) async fn can_skip_locked(
    connection: impl Executor<'_, Database = MySql>,
) -> Result<bool> {
    let probed = sqlx::raw_sql(AssertSqlSafe(statement()))
        .execute(connection)
        .await;
    match probed {
        Ok(_) => Ok(true),
        Err(error) if error::number(&error) == Some(error::SYNTAX) => Ok(false),
        Err(error) => match error::fault(error) {
            // A server that takes no writes now has understood the words.
            Fault::Lost(sqlx::Error::Database(_)) => Ok(true),
            other => Err(other.into_error()),
        },
    }
}

/// The text that is sent.
pub(crate) fn statement() -> String {
    let one = || Expr::cust("1");
    let table = SelectStatement::new().expr_as(one(), "one").to_owned();
    SelectStatement::new()
        .expr(one())
        .from_subquery(table, "probe")
        .lock_with_behavior(LockType::Update, LockBehavior::SkipLocked)
        .to_string(MysqlQueryBuilder)
}
