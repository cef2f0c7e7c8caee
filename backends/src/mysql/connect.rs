//! Connections with a known session: own settings, then read back.

use std::{collections::BTreeSet, io::ErrorKind as ErrorKindOfIo, sync::Arc, time::Duration};

use retryjob_core::{Error, ErrorKind, Result};
use sqlx::{
    ConnectOptions as _, Connection as _, MySql, MySqlConnection, Pool, Row as _,
    mysql::{MySqlConnectOptions, MySqlPoolOptions},
};

use super::{
    error::{self, DENIED, NO_DATABASE, READ_ONLY, number},
    failover::{is_outdated, note_refused},
    statements::give_back,
    url::{options, place},
};
use crate::{
    fault::Fault,
    kind::{ACQUIRE_MS_MAX, POOL_CONNECTIONS},
};

/// Opens a transaction for a caller. A server that takes no writes says so at
/// once, where it can be tried again, and not at the caller's first write.
pub(crate) const BEGIN_TO_WRITE: &str = "START TRANSACTION READ WRITE";

/// What every session sets, whatever the server's defaults are.
const SET: &str = "SET NAMES utf8mb4 COLLATE utf8mb4_bin, \
    time_zone = '+00:00', autocommit = 1, \
    sql_mode = 'ONLY_FULL_GROUP_BY,STRICT_TRANS_TABLES,NO_ZERO_IN_DATE,NO_ZERO_DATE,ERROR_FOR_DIVISION_BY_ZERO,NO_ENGINE_SUBSTITUTION'";

/// At REPEATABLE READ a claim also keeps the locks of rows that it rejected.
const ISOLATION: &str = "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED";

/// Reads it all back. Not by `@@`, since servers differ in what the isolation
/// is called and refuse a name they don't know.
const SHOW: &str = "SHOW SESSION VARIABLES WHERE Variable_name IN ('time_zone', 'sql_mode', \
    'transaction_isolation', 'tx_isolation', 'character_set_client', \
    'character_set_connection', 'character_set_results', 'autocommit', 'max_allowed_packet')";

/// What the variables must say. Some servers have only one of the two names of
/// the isolation.
pub(super) const WANTED: [(&str, &str); 8] = [
    ("time_zone", "+00:00"),
    (
        "sql_mode",
        "ONLY_FULL_GROUP_BY,STRICT_TRANS_TABLES,NO_ZERO_IN_DATE,NO_ZERO_DATE,ERROR_FOR_DIVISION_BY_ZERO,NO_ENGINE_SUBSTITUTION",
    ),
    ("transaction_isolation", "READ-COMMITTED"),
    ("tx_isolation", "READ-COMMITTED"),
    ("character_set_client", "utf8mb4"),
    ("character_set_connection", "utf8mb4"),
    ("character_set_results", "utf8mb4"),
    ("autocommit", "ON"),
];

/// Idle time after which a connection is tried before it is used.
const IDLE_MS_UNTRIED: u64 = 1000;

/// What such a try may take.
const PING_MAX: Duration = Duration::from_secs(2);

/// The statements that every new connection sends, in order. With the
/// catalogue, `BEGIN`, `START TRANSACTION READ WRITE`, `COMMIT` and `ROLLBACK` these are all that a running
/// worker ever sends.
///
/// # Shape
///
/// The statement that probes for `SKIP LOCKED` is sent once per `connect`, and
/// only by `Mysql8`; `install` also reads `information_schema`.
#[must_use]
pub(crate) fn session_statements() -> Vec<&'static str> {
    vec![SET, ISOLATION, SHOW]
}

/// A pool for this URL, after one connection has been tried.
pub(crate) async fn open(url: &str) -> Result<Pool<MySql>> {
    let options = options(url)?;
    let limit = Duration::from_millis(ACQUIRE_MS_MAX);
    let tried = tokio::time::timeout(limit, options.connect()).await;
    let connection = match tried {
        Ok(Ok(connection)) => connection,
        Ok(Err(error)) => return Err(refused(&options, error)),
        Err(_) => {
            return Err(Error::new(
                ErrorKind::Unreachable,
                format!(
                    "no answer from {} in {} s",
                    place(&options),
                    limit.as_secs()
                ),
            ));
        }
    };
    // A connection that can't say goodbye is gone as well.
    let _ = connection.close().await;
    Ok(pool(options, POOL_CONNECTIONS))
}

/// Another pool to the same database.
pub(crate) fn second_pool(pool_of: &Pool<MySql>, connections: u32) -> Pool<MySql> {
    pool((*pool_of.connect_options()).clone(), connections)
}

/// The longest that a statement of an operation may take. Its own work takes
/// milliseconds; the rest is a wait for a lock, or for a server that is
/// overloaded, and only then one for a server that is silent.
pub(crate) const ANSWER_MAX: Duration = Duration::from_secs(30);

/// Takes note of what stopped an operation on a connection of this pool.
pub(crate) fn note_fault(pool: &Pool<MySql>, fault: &Fault) {
    let Fault::Lost(error) = fault else {
        return;
    };
    let is_silent =
        matches!(error, sqlx::Error::Io(error) if error.kind() == ErrorKindOfIo::TimedOut);
    if is_silent || number(error).is_some_and(|code| READ_ONLY.contains(&code)) {
        note_refused(&place(&pool.connect_options()));
    }
}

fn pool(options: MySqlConnectOptions, connections: u32) -> Pool<MySql> {
    let place: Arc<str> = place(&options).into();
    MySqlPoolOptions::new()
        .max_connections(connections)
        .acquire_timeout(Duration::from_millis(ACQUIRE_MS_MAX))
        // One that was just in use is not tried first: a lost connection is
        // found out by the statement, and the operation runs again.
        .test_before_acquire(false)
        .before_acquire(move |connection, meta| {
            let place = Arc::clone(&place);
            let is_outdated = is_outdated(&place, meta.age);
            Box::pin(async move {
                if is_outdated {
                    return Ok(false);
                }
                if meta.idle_for >= Duration::from_millis(IDLE_MS_UNTRIED) {
                    match tokio::time::timeout(PING_MAX, connection.ping()).await {
                        Ok(answered) => answered?,
                        Err(_) => {
                            note_refused(&place);
                            return Ok(false);
                        }
                    }
                }
                give_back(connection).await?;
                Ok(true)
            })
        })
        // ROLLBACK waits to be sent: a caller's transaction was dropped, maybe
        // within a statement. The driver then reads answers as if they were
        // those of other statements, or waits for ever for one that it has
        // already read, and the pool is short of a connection. Closed, the
        // server undoes the transaction all the same.
        .after_release(|connection, _| {
            let is_clean = !connection.should_flush();
            Box::pin(async move { Ok(is_clean) })
        })
        .after_connect(|connection, _| {
            Box::pin(async move {
                for sql in [SET, ISOLATION] {
                    sqlx::raw_sql(sql).execute(&mut *connection).await?;
                }
                // Not only set but so: a proxy may keep or drop what it likes.
                match verify(connection).await? {
                    differences if differences.is_empty() => Ok(()),
                    differences => Err(sqlx::Error::InvalidArgument(differences.join(", "))),
                }
            })
        })
        .connect_lazy_with(options)
}

/// Checks the session of one connection, and answers the server's
/// `max_allowed_packet`.
pub(crate) async fn check(pool: &Pool<MySql>) -> Result<usize> {
    let mut connection = match pool.acquire().await {
        Ok(connection) => connection,
        Err(sqlx::Error::InvalidArgument(differences)) => return Err(unlike(&differences)),
        Err(error) => return Err(refused(&pool.connect_options(), error)),
    };
    let fault = |error| error::fault(error).into_error();
    let differences = verify(&mut connection).await.map_err(fault)?;
    if !differences.is_empty() {
        return Err(unlike(&differences.join(", ")));
    }
    let variables = variables(&mut connection).await.map_err(fault)?;
    let packet = variables
        .iter()
        .find(|(name, _)| name == "max_allowed_packet")
        .and_then(|(_, value)| value.parse().ok());
    packet.ok_or_else(|| {
        Error::new(
            ErrorKind::Unsupported,
            "the server does not tell its `max_allowed_packet`",
        )
    })
}

fn unlike(differences: &str) -> Error {
    Error::new(
        ErrorKind::Config,
        format!(
            "the session is not what the statements need: {differences}; \
             use the pool that this backend's `pool` makes, and no proxy that changes sessions"
        ),
    )
}

/// What differs from the session that the statements need.
async fn verify(connection: &mut MySqlConnection) -> Result<Vec<String>, sqlx::Error> {
    let variables = variables(connection).await?;
    let differs = |(name, value): &&(String, String)| {
        let wanted = WANTED.iter().find(|(known, _)| known == name);
        wanted.is_some_and(|(_, wanted)| words(wanted) != words(value))
    };
    let said = |(name, value): &(String, String)| {
        let wanted = WANTED.iter().find(|(known, _)| known == name);
        let (_, wanted) = wanted.unwrap_or(&("", ""));
        format!("{name} is '{value}', expected '{wanted}'")
    };
    Ok(variables.iter().filter(differs).map(said).collect())
}

/// Modes are a set: servers write them in an order of their own.
pub(super) fn words(value: &str) -> BTreeSet<&str> {
    value.split(',').collect()
}

async fn variables(connection: &mut MySqlConnection) -> Result<Vec<(String, String)>, sqlx::Error> {
    let rows = sqlx::raw_sql(SHOW).fetch_all(connection).await?;
    rows.iter()
        .map(|row| Ok((row.try_get_unchecked(0)?, row.try_get_unchecked(1)?)))
        .collect()
}

/// Why no connection came about, in words that never hold the password.
fn refused(options: &MySqlConnectOptions, error: sqlx::Error) -> Error {
    let place = place(options);
    let user = options.get_username();
    let database = options.get_database().unwrap_or_default();
    let (kind, message) = match number(&error) {
        Some(NO_DATABASE) => (
            ErrorKind::Url,
            format!("the server at {place} has no database `{database}`; create it first"),
        ),
        Some(code) if DENIED.contains(&code) => (
            ErrorKind::Denied,
            format!("the server at {place} refuses user `{user}` for database `{database}`"),
        ),
        Some(_) => (
            ErrorKind::Unreachable,
            format!("the server at {place} takes no connection now"),
        ),
        None => (
            ErrorKind::Unreachable,
            format!("no MySQL or MariaDB server answers at {place}"),
        ),
    };
    match error {
        error @ (sqlx::Error::Database(_)
        | sqlx::Error::Io(_)
        | sqlx::Error::Tls(_)
        | sqlx::Error::Protocol(_)
        | sqlx::Error::PoolTimedOut) => Error::with_source(kind, message, error),
        // Any other may quote the URL.
        _ => Error::new(kind, message),
    }
}
