//! The caller's own transaction.

use super::dialect::MysqlDialect;

crate::connection::connection! {
    /// A MySQL or MariaDB connection inside the caller's transaction: what
    /// `enqueue_in` and `finish_in` take.
    ///
    /// A `sqlx` transaction or connection is one, also of a pool that this
    /// crate did not open: the statements mean the same under any `sql_mode`
    /// and time zone.
    MysqlConnection,
    /// A transaction that a MySQL backend opened; undone when it is dropped.
    MysqlTx,
    sqlx::MySql,
    sqlx::MySqlConnection,
    // Finishing is the same text in both dialects.
    &MysqlDialect::PLAIN
}
