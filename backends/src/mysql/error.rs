//! Every code of MySQL and MariaDB that means something here.
//!
//! # Source
//!
//! MySQL 8.4 Error Message Reference; MariaDB Error Codes.

use retryjob_core::{Error, ErrorKind};
use sqlx::mysql::MySqlDatabaseError;

use crate::fault::Fault;

/// Deadlock, lock wait, conflict between group members, failed commit, killed
/// query: the transaction is gone or will be rolled back, the connection is
/// fine.
const BUSY: [u16; 6] = [1213, 1205, 3101, 1180, 1317, 1206];
/// Too many connections, for all or for this user: there is none yet.
const FULL: [u16; 3] = [1040, 1203, 1226];
/// As many prepared statements as `max_prepared_stmt_count` allows.
pub(super) const STATEMENTS_FULL: u16 = 1461;
/// Shutting down, aborted or killed connections, network errors, idle
/// connections that were closed.
const LOST: [u16; 15] = [
    1053, 1077, 1078, 1079, 1080, 1152, 1158, 1159, 1160, 1161, 1184, 1927, 2006, 2013, 4031,
];
/// The server takes no writes: read-only, in a read-only transaction, in
/// read-only mode, a group member that takes none, in offline mode.
pub(super) const READ_ONLY: [u16; 5] = [1290, 1792, 1836, 3100, 3032];
/// A unique index has this key already.
const DUPLICATE: [u16; 2] = [1062, 1586];
/// More than `max_allowed_packet`.
const TOO_LARGE: u16 = 1153;
/// The table to create is there.
const EXISTS: u16 = 1050;
/// No such table.
const NO_TABLE: u16 = 1146;
/// Index too long, row too large, column too long, text without index length,
/// too many keys, columns or parts.
const TOO_WIDE: [u16; 8] = [1071, 1118, 1074, 1170, 1069, 1117, 1070, 1163];
/// Wrong user, password or grant.
pub(super) const DENIED: [u16; 6] = [1045, 1044, 1698, 1142, 1251, 1820];
/// No such database.
pub(super) const NO_DATABASE: u16 = 1049;
/// Words that the server can't parse.
pub(super) const SYNTAX: u16 = 1064;

/// What an error of the driver means for the operation that met it.
pub(crate) fn fault(error: sqlx::Error) -> Fault {
    let Some(code) = number(&error) else {
        return of_driver(error);
    };
    if BUSY.contains(&code) || FULL.contains(&code) || code == STATEMENTS_FULL {
        return Fault::Busy(error);
    }
    if LOST.contains(&code) || READ_ONLY.contains(&code) {
        return Fault::Lost(error);
    }
    if DUPLICATE.contains(&code) {
        return Fault::Duplicate(error);
    }
    let (kind, message) = match code {
        EXISTS => return Fault::Exists,
        TOO_LARGE => (
            ErrorKind::TooLarge,
            "a statement is larger than the server's `max_allowed_packet`",
        ),
        NO_TABLE => (
            ErrorKind::Schema,
            "the table is not there; run `install` first",
        ),
        code if TOO_WIDE.contains(&code) => (
            ErrorKind::Schema,
            "the columns or an index take more bytes than the server allows",
        ),
        code if DENIED.contains(&code) => (
            ErrorKind::Denied,
            "the server does not grant this user what the statement needs",
        ),
        _ => (ErrorKind::Database, "the database refused a statement"),
    };
    Fault::Final(Error::with_source(kind, message, error))
}

/// The server's number of an error, when the server sent one.
pub(crate) fn number(error: &sqlx::Error) -> Option<u16> {
    let database = error.as_database_error()?;
    let mysql = database.try_downcast_ref::<MySqlDatabaseError>()?;
    Some(mysql.number())
}

fn of_driver(error: sqlx::Error) -> Fault {
    use sqlx::Error::{BeginFailed, Io, PoolClosed, PoolTimedOut, Protocol, Tls, WorkerCrashed};
    match error {
        Io(_) | Tls(_) | Protocol(_) | PoolTimedOut | WorkerCrashed | BeginFailed => {
            Fault::Lost(error)
        }
        PoolClosed => Fault::Final(Error::with_source(
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
