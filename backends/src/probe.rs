//! Which backend a URL's server needs.

use retryjob_core::Result;

/// A backend that a server can use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Probed {
    /// An SQLite file.
    #[cfg(feature = "sqlite")]
    Sqlite,
    /// MySQL or MariaDB with `SKIP LOCKED`.
    #[cfg(feature = "mysql8")]
    Mysql8,
    /// MySQL or MariaDB without.
    #[cfg(feature = "mysql57")]
    Mysql57,
}

/// Tells which of the backends that are compiled in fits this URL's server, by
/// asking the server.
///
/// # Errors
///
/// `Url` when the URL is for none of them, `Unsupported` when the server needs
/// one that is not compiled in, and what `connect` says otherwise.
pub async fn probe(url: &str) -> Result<Probed> {
    if url.starts_with("sqlite:") {
        return probe_sqlite(url).await;
    }
    probe_mysql(url).await
}

#[cfg(feature = "sqlite")]
async fn probe_sqlite(url: &str) -> Result<Probed> {
    let pool = crate::Sqlite::pool(url).await?;
    pool.close().await;
    Ok(Probed::Sqlite)
}

#[cfg(not(feature = "sqlite"))]
async fn probe_sqlite(_url: &str) -> Result<Probed> {
    Err(not_compiled("sqlite"))
}

#[cfg(feature = "mysql8")]
async fn probe_mysql(url: &str) -> Result<Probed> {
    use crate::mysql::{connect, skip_locked::can_skip_locked};
    let pool = connect::open(url).await?;
    let can_skip = match connect::check(&pool).await {
        Ok(_) => can_skip_locked(&pool).await,
        Err(error) => Err(error),
    };
    pool.close().await;
    if can_skip? {
        return Ok(Probed::Mysql8);
    }
    #[cfg(feature = "mysql57")]
    return Ok(Probed::Mysql57);
    #[cfg(not(feature = "mysql57"))]
    Err(not_compiled("mysql57"))
}

/// Every server that `mysql8` would fit fits `mysql57` as well.
#[cfg(all(feature = "mysql57", not(feature = "mysql8")))]
async fn probe_mysql(url: &str) -> Result<Probed> {
    let pool = crate::mysql::connect::open(url).await?;
    pool.close().await;
    Ok(Probed::Mysql57)
}

#[cfg(not(feature = "_mysql"))]
async fn probe_mysql(url: &str) -> Result<Probed> {
    use retryjob_core::{Error, ErrorKind};
    if url.starts_with("mysql:") || url.starts_with("mariadb:") {
        return Err(not_compiled("mysql8` or `mysql57"));
    }
    Err(Error::new(
        ErrorKind::Url,
        "not a URL of a database that is compiled in; it would be sqlite://folder/file.db",
    ))
}

#[cfg(not(all(feature = "sqlite", feature = "mysql8", feature = "mysql57")))]
fn not_compiled(feature: &str) -> retryjob_core::Error {
    retryjob_core::Error::new(
        retryjob_core::ErrorKind::Unsupported,
        format!("this server needs the cargo feature `{feature}`"),
    )
}
