//! Connections to a file, with known settings.

use std::{str::FromStr as _, time::Duration};

use retryjob_core::{Error, ErrorKind, Result};
use sqlx::{
    AssertSqlSafe, Pool, Sqlite, SqliteConnection,
    sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePoolOptions, SqliteSynchronous},
};

use super::error;
use crate::kind::{ACQUIRE_MS_MAX, POOL_CONNECTIONS};

const SHAPE: &str = "sqlite://folder/file.db";

/// Milliseconds that SQLite itself waits for another writer.
const BUSY_MS_MAX: u64 = 5000;

/// Bytes of one job, well below the 1,000,000,000 of `SQLITE_MAX_LENGTH`.
const JOB_BYTES_MAX: usize = 256 * 1024 * 1024;

/// Settings that are read back, and what they must say.
const WANTED: [(&str, &str, &str); 4] = [
    ("journal_mode", "PRAGMA journal_mode", "wal"),
    // FULL, since a committed enqueue is to survive a power cut.
    ("synchronous", "PRAGMA synchronous", "2"),
    ("foreign_keys", "PRAGMA foreign_keys", "1"),
    ("busy_timeout", "PRAGMA busy_timeout", "5000"),
];

/// The statements that read the settings back, in order.
pub(super) fn session_statements() -> Vec<&'static str> {
    WANTED.iter().map(|(_, sql, _)| *sql).collect()
}

/// A pool for this URL; the file is made when it is not there.
pub(super) async fn open(url: &str) -> Result<Pool<Sqlite>> {
    Ok(pool(options(url)?, POOL_CONNECTIONS))
}

/// Another pool to the same file.
pub(super) fn second_pool(pool_of: &Pool<Sqlite>, connections: u32) -> Pool<Sqlite> {
    pool((*pool_of.connect_options()).clone(), connections)
}

fn options(url: &str) -> Result<SqliteConnectOptions> {
    let wrong = |message: String| Error::new(ErrorKind::Url, message);
    let Some(path) = url.strip_prefix("sqlite:") else {
        let scheme = url.split_once("://").map(|(scheme, _)| scheme);
        let known = scheme.filter(|scheme| scheme.bytes().all(|b| b.is_ascii_alphanumeric()));
        return Err(wrong(match known {
            Some(scheme) => format!(
                "a `{scheme}` URL for the backend `sqlite`; it would be {SHAPE}{}",
                crate::hint(scheme)
            ),
            None => format!("not a URL; it would be {SHAPE}"),
        }));
    };
    let file = path.trim_start_matches("//");
    let file = file.split_once('?').map_or(file, |(file, _)| file);
    if file.is_empty() {
        return Err(wrong(format!("the URL names no file; it would be {SHAPE}")));
    }
    if url.contains(":memory:") || url.contains("mode=memory") {
        return Err(wrong(format!(
            "jobs in memory are not durable, and each connection would have its own; \
             use a file, {SHAPE}, or the `memory` backend"
        )));
    }
    let options = SqliteConnectOptions::from_str(url).map_err(|source| {
        let message = format!("a URL that can't be read; it would be {SHAPE}");
        Error::with_source(ErrorKind::Url, message, source)
    })?;
    let folder = options.get_filename().parent();
    let folder = folder.filter(|folder| !folder.as_os_str().is_empty());
    if let Some(folder) = folder.filter(|folder| !folder.is_dir()) {
        return Err(wrong(format!(
            "there is no folder {}; create it first",
            folder.display()
        )));
    }
    Ok(options
        .create_if_missing(true)
        .journal_mode(SqliteJournalMode::Wal)
        .synchronous(SqliteSynchronous::Full)
        .foreign_keys(true)
        .busy_timeout(Duration::from_millis(BUSY_MS_MAX)))
}

fn pool(options: SqliteConnectOptions, connections: u32) -> Pool<Sqlite> {
    SqlitePoolOptions::new()
        .max_connections(connections)
        .acquire_timeout(Duration::from_millis(ACQUIRE_MS_MAX))
        // A file does not hang up.
        .test_before_acquire(false)
        .after_connect(|connection, _| {
            Box::pin(async move {
                match verify(connection).await? {
                    differences if differences.is_empty() => Ok(()),
                    differences => Err(sqlx::Error::InvalidArgument(differences.join(", "))),
                }
            })
        })
        .connect_lazy_with(options)
}

/// Checks the settings of one connection, and answers the most bytes of a job.
pub(super) async fn check(pool: &Pool<Sqlite>) -> Result<usize> {
    let mut connection = pool.acquire().await.map_err(|source| match source {
        sqlx::Error::InvalidArgument(differences) => unlike(&differences),
        source => Error::with_source(
            ErrorKind::Unreachable,
            format!(
                "the file {} can't be opened",
                pool.connect_options().get_filename().display()
            ),
            source,
        ),
    })?;
    let verified = verify(&mut connection).await;
    let differences = verified.map_err(|error| error::fault(error).into_error())?;
    if differences.is_empty() {
        return Ok(JOB_BYTES_MAX);
    }
    Err(unlike(&differences.join(", ")))
}

fn unlike(differences: &str) -> Error {
    Error::new(
        ErrorKind::Config,
        format!(
            "the connection is not set up as the statements need it: {differences}; \
             use the pool that this backend's `pool` makes"
        ),
    )
}

async fn verify(connection: &mut SqliteConnection) -> Result<Vec<String>, sqlx::Error> {
    let mut differences = Vec::new();
    for (name, sql, wanted) in WANTED {
        let found = setting(connection, sql).await?;
        if found != wanted {
            differences.push(format!("{name} is {found}, expected {wanted}"));
        }
    }
    Ok(differences)
}

/// The answer of a PRAGMA, a text or a number, as text.
async fn setting(connection: &mut SqliteConnection, sql: &str) -> Result<String, sqlx::Error> {
    use sqlx::Row as _;
    let pragma = sqlx::raw_sql(AssertSqlSafe(sql.to_owned()));
    let row = pragma.fetch_one(connection).await?;
    row.try_get_unchecked(0)
}
