//! Prepared statements, when a server has room for no more of them.
//!
//! Every connection keeps its statements, which saves a round trip each time.
//! All connections of all clients share `max_prepared_stmt_count`, 16,382 unless
//! set: a few hundred processes can fill that, and the next to prepare anything
//! is refused (1461). Keeping none then gives back what the others lack.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use retryjob_core::sql::Statement;
use sqlx::{AssertSqlSafe, Connection as _, Executor as _, MySqlConnection, SqlSafeStr as _};

use super::error::{self, STATEMENTS_FULL};
use crate::fault::Fault;

/// Whether a server had no room. One for the process, since all of its
/// connections have to give back for any of them to go on.
static IS_CROWDED: AtomicBool = AtomicBool::new(false);

/// Whether the connection keeps the statement, prepared by now; if not, it is
/// to be prepared for this one time.
///
/// Preparing touches no row and no transaction, so that it may fail inside a
/// caller's transaction and be done again.
pub(super) async fn is_kept(
    connection: &mut MySqlConnection,
    statement: &Statement,
) -> Result<bool, Fault> {
    if IS_CROWDED.load(Ordering::Relaxed) {
        return Ok(false);
    }
    let sql = AssertSqlSafe(Arc::clone(statement.sql())).into_sql_str();
    match connection.prepare(sql).await {
        Ok(_) => Ok(true),
        Err(error) if error::number(&error) == Some(STATEMENTS_FULL) => {
            tracing::warn!(
                "the server holds `max_prepared_stmt_count` statements; \
                 this process keeps none from now on"
            );
            IS_CROWDED.store(true, Ordering::Relaxed);
            give_back(connection).await.map_err(error::fault)?;
            Ok(false)
        }
        Err(error) => Err(error::fault(error)),
    }
}

/// Gives back what the connection kept from before the server was crowded.
pub(super) async fn give_back(connection: &mut MySqlConnection) -> Result<(), sqlx::Error> {
    if IS_CROWDED.load(Ordering::Relaxed) && connection.cached_statements_size() > 0 {
        connection.clear_cached_statements().await?;
    }
    Ok(())
}
