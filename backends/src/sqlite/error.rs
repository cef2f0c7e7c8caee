//! Every code of SQLite that means something here.
//!
//! # Source
//!
//! "Result and Extended Result Codes", sqlite.org/rescode.html.

use retryjob_core::{Error, ErrorKind};

use crate::fault::Fault;

/// Another connection writes: the primary codes of `SQLITE_BUSY` and
/// `SQLITE_LOCKED`, whatever the extended one adds.
const BUSY: [i32; 2] = [5, 6];
/// `SQLITE_CONSTRAINT_PRIMARYKEY` and `SQLITE_CONSTRAINT_UNIQUE`.
const DUPLICATE: [i32; 2] = [1555, 2067];
/// `SQLITE_TOOBIG`.
const TOO_LARGE: i32 = 18;
/// `SQLITE_ERROR`: what the text says can't be done.
const ERROR: i32 = 1;

/// What an error of the driver means for the operation that met it.
pub(super) fn fault(error: sqlx::Error) -> Fault {
    let database = error.as_database_error();
    let Some(code) = database.and_then(|error| error.code()?.parse::<i32>().ok()) else {
        return of_driver(error);
    };
    if BUSY.contains(&(code & 0xff)) {
        return Fault::Busy(error);
    }
    if DUPLICATE.contains(&code) {
        return Fault::Duplicate(error);
    }
    let has_no_table =
        code == ERROR && database.is_some_and(|error| error.message().starts_with("no such table"));
    let (kind, message) = match code & 0xff {
        TOO_LARGE => (ErrorKind::TooLarge, "a value is larger than SQLite takes"),
        _ if has_no_table => (
            ErrorKind::Schema,
            "the table is not there; run `install` first",
        ),
        _ => (ErrorKind::Database, "the database refused a statement"),
    };
    Fault::Final(Error::with_source(kind, message, error))
}

fn of_driver(error: sqlx::Error) -> Fault {
    match error {
        sqlx::Error::PoolTimedOut | sqlx::Error::WorkerCrashed | sqlx::Error::BeginFailed => {
            Fault::Lost(error)
        }
        sqlx::Error::PoolClosed => Fault::Final(Error::with_source(
            ErrorKind::Config,
            "the connections were closed",
            error,
        )),
        // What a new connection says of its own settings.
        sqlx::Error::InvalidArgument(_) => Fault::Final(Error::with_source(
            ErrorKind::Config,
            "the session is not what the statements need",
            error,
        )),
        other => Fault::Final(Error::with_source(
            ErrorKind::Database,
            "the driver can't read what the database answered",
            other,
        )),
    }
}
