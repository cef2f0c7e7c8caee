//! What can stop an operation, by what follows from it.

use retryjob_core::{Error, ErrorKind};

/// Why an operation stopped. Each backend's `error.rs` tells which it is.
#[derive(Debug)]
pub(crate) enum Fault {
    /// Passes by itself: a deadlock, a lock wait. The transaction is over, the
    /// connection is fine.
    Busy(sqlx::Error),
    /// The connection is gone, or leads to a server that takes no writes any
    /// more. It must not go back to the pool.
    Lost(sqlx::Error),
    /// A unique index refused a row; the statement was undone, the transaction
    /// goes on.
    Duplicate(sqlx::Error),
    /// The table to create is there already.
    #[cfg_attr(
        not(feature = "_mysql"),
        allow(dead_code, reason = "SQLite creates under a lock")
    )]
    Exists,
    /// The operation wants to run again from BEGIN, in another way.
    Again,
    /// Nothing that would pass.
    Final(Error),
}

impl Fault {
    /// An error of what the database holds or answers.
    pub(crate) fn database(message: impl Into<String>) -> Self {
        Self::Final(Error::new(ErrorKind::Database, message))
    }

    /// Whether the connection must be closed.
    pub(crate) fn spoils_connection(&self) -> bool {
        matches!(self, Self::Lost(_))
    }

    /// The error for the caller, when nothing is tried again.
    pub(crate) fn into_error(self) -> Error {
        match self {
            Self::Busy(source) => Error::with_source(
                ErrorKind::Transient,
                "the database was busy and the transaction is gone; run it again",
                source,
            ),
            Self::Lost(source) => Error::with_source(
                ErrorKind::Transient,
                "the connection to the database was lost and the transaction with it; run it again",
                source,
            ),
            Self::Duplicate(source) => Error::with_source(
                ErrorKind::Database,
                "a unique index other than the key's refused the job",
                source,
            ),
            Self::Exists => Error::new(ErrorKind::Database, "the table is there already"),
            Self::Again => Error::new(ErrorKind::Transient, "the jobs kept changing; run it again"),
            Self::Final(error) => error,
        }
    }
}
