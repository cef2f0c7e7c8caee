//! The caller's own transaction.

use super::dialect::SqliteDialect;

crate::connection::connection! {
    /// An SQLite connection inside the caller's transaction: what `enqueue_in`
    /// and `finish_in` take.
    ///
    /// A `sqlx` transaction or connection is one. Begin it with `BEGIN
    /// IMMEDIATE`: a plain `BEGIN` that reads before it writes is refused at
    /// once when another has written meanwhile.
    SqliteConn,
    /// A transaction that the backend opened; undone when it is dropped.
    SqliteTx,
    sqlx::Sqlite,
    sqlx::SqliteConnection,
    &SqliteDialect
}
