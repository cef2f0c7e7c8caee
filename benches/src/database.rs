//! A fresh database for every measurement, and statements past the contestants.

use std::{
    env,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result};
use sqlx::{AssertSqlSafe, Connection as _, MySqlConnection, Row as _, SqliteConnection};
use tempfile::TempDir;

use crate::{
    contestant::{Fill, SHARDS},
    entry::Place,
};

/// The number of the first row that only stands beside.
pub const FILL_FROM: u64 = 1 << 40;

/// Of a database's name; the process and a number follow.
const PREFIX: &str = "retryjob_bench_";

/// Rows of one statement that fills a table.
const FILL_ROWS: u64 = 100_000;

/// A database of its own, dropped by [`Fresh::drop_it`].
pub struct Fresh {
    place: Place,
    pub url: String,
    name: String,
    /// SQLite's folder, gone with this.
    _folder: Option<TempDir>,
}

impl Fresh {
    pub async fn create(place: Place) -> Result<Self> {
        static NEXT: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
        let number = NEXT.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let name = format!("{PREFIX}{}_{number}", std::process::id());
        if place == Place::Sqlite {
            let folder = TempDir::new()?;
            let url = format!("sqlite://{}/jobs.sqlite", folder.path().display());
            return Ok(Self {
                place,
                url,
                name,
                _folder: Some(folder),
            });
        }
        let server = server_url(place)?;
        execute(
            &server,
            &format!("CREATE DATABASE {name} CHARACTER SET utf8mb4"),
        )
        .await?;
        Ok(Self {
            place,
            url: format!("{server}/{name}"),
            name,
            _folder: None,
        })
    }

    pub async fn drop_it(self) -> Result<()> {
        if self.place == Place::Sqlite {
            return Ok(());
        }
        execute(
            &server_url(self.place)?,
            &format!("DROP DATABASE {}", self.name),
        )
        .await
    }
}

/// Drops what runs left behind that were ended midway.
pub async fn drop_leftovers(place: Place) -> Result<()> {
    if place == Place::Sqlite {
        return Ok(());
    }
    let server = server_url(place)?;
    let mut connection = MySqlConnection::connect(&server).await?;
    let sql = format!("SHOW DATABASES LIKE '{}%'", PREFIX.replace('_', "\\_"));
    let rows = sqlx::raw_sql(AssertSqlSafe(sql))
        .fetch_all(&mut connection)
        .await?;
    for row in rows {
        let name: String = row.try_get_unchecked(0)?;
        let pid = name[PREFIX.len()..].split('_').next().unwrap_or_default();
        if !Path::new("/proc").join(pid).exists() {
            execute(&server, &format!("DROP DATABASE {name}")).await?;
        }
    }
    Ok(connection.close().await?)
}

/// The server's URL, as `tests/servers env` exports it; no database in it.
pub fn server_url(place: Place) -> Result<String> {
    let server = place.server().context("SQLite has no server")?;
    let variable = format!("RETRYJOB_{}_URL", server.to_uppercase());
    let url =
        env::var(&variable).with_context(|| format!("{variable} is not set; see tests/servers"))?;
    Ok(url.trim_end_matches('/').to_owned())
}

/// The server's process, when it is one of `tests/servers`.
pub fn server_pid(place: Place) -> Option<u32> {
    let cache = env::var_os("RETRYJOB_CACHE").map(PathBuf::from);
    let home = || {
        env::var_os("XDG_CACHE_HOME")
            .map(PathBuf::from)
            .or_else(|| Some(PathBuf::from(env::var_os("HOME")?).join(".cache")))
    };
    let cache = cache.or_else(|| home().map(|home| home.join("retryjob")))?;
    let file = cache
        .join("servers")
        .join(place.server()?)
        .join("server.pid");
    std::fs::read_to_string(file).ok()?.trim().parse().ok()
}

/// Runs statements, several when divided by semicolons.
pub async fn execute(url: &str, sql: &str) -> Result<()> {
    let sql = AssertSqlSafe(sql.to_owned());
    if url.starts_with("sqlite:") {
        let mut connection = SqliteConnection::connect(url).await?;
        sqlx::raw_sql(sql).execute(&mut connection).await?;
        return Ok(connection.close().await?);
    }
    let mut connection = MySqlConnection::connect(url).await?;
    sqlx::raw_sql(sql).execute(&mut connection).await?;
    Ok(connection.close().await?)
}

/// The one number that a query answers.
pub async fn number(url: &str, sql: &str) -> Result<u64> {
    let query = sqlx::query_scalar(AssertSqlSafe(sql.to_owned()));
    let number: i64 = if url.starts_with("sqlite:") {
        let mut connection = SqliteConnection::connect(url).await?;
        query.fetch_one(&mut connection).await?
    } else {
        let mut connection = MySqlConnection::connect(url).await?;
        let query = sqlx::query_scalar(AssertSqlSafe(sql.to_owned()));
        let number = query.fetch_one(&mut connection).await?;
        connection.close().await?;
        number
    };
    Ok(u64::try_from(number)?)
}

/// Rows that are neither finished nor far from due, read by the claim index:
/// a look at the whole table would push the index out of the server's memory.
pub async fn unfinished(url: &str, table: &str) -> Result<u64> {
    let (force, soon) = if url.starts_with("sqlite:") {
        ("", "(unixepoch() + 43200) * 1000000")
    } else {
        (
            " FORCE INDEX (claim)",
            "TIMESTAMPADD(HOUR, 12, UTC_TIMESTAMP(6))",
        )
    };
    let shards = list(0..SHARDS);
    let open = list([0, 1, 3, 4, 5, 6].into_iter());
    let sql = format!(
        "SELECT COUNT(*) FROM {table}{force} WHERE shard_id IN ({shards}) AND status IN ({open})
            AND next_attempt_at < {soon}"
    );
    number(url, &sql).await
}

fn list(numbers: impl Iterator<Item = u16>) -> String {
    numbers
        .map(|number| number.to_string())
        .collect::<Vec<_>>()
        .join(", ")
}

/// What a column of a filled row holds; `n` counts the rows.
#[derive(Clone, Copy)]
pub enum Value {
    Text(&'static str),
    Now,
    /// A second later for each row, from tomorrow on.
    Later,
    /// A second earlier for each row, from yesterday back.
    Earlier,
    Shard,
    Number,
    /// 32 bytes, another for each row.
    Key,
}

impl Value {
    fn sql(self, place: Place) -> String {
        let is_sqlite = place == Place::Sqlite;
        match self {
            Self::Text(text) => text.to_owned(),
            Self::Now if is_sqlite => "CAST(unixepoch('subsec') * 1000000 AS INTEGER)".to_owned(),
            Self::Now => "UTC_TIMESTAMP(6)".to_owned(),
            Self::Later if is_sqlite => "(unixepoch() + 86400 + n) * 1000000".to_owned(),
            Self::Later => "TIMESTAMPADD(SECOND, 86400 + n, UTC_TIMESTAMP(6))".to_owned(),
            Self::Earlier if is_sqlite => "(unixepoch() - 86400 - n) * 1000000".to_owned(),
            Self::Earlier => "TIMESTAMPADD(SECOND, -86400 - n, UTC_TIMESTAMP(6))".to_owned(),
            Self::Shard => format!("n % {SHARDS}"),
            Self::Number => format!("n + {FILL_FROM}"),
            Self::Key if is_sqlite => "CAST(printf('%032d', n) AS BLOB)".to_owned(),
            Self::Key => "UNHEX(LPAD(HEX(n), 64, '0'))".to_owned(),
        }
    }
}

/// A row that stands beside, and its table.
pub struct Beside {
    pub table: String,
    pub columns: Vec<(&'static str, Value)>,
}

/// Fills a table by INSERT … SELECT. `row` is told the status and the instant.
pub async fn fill(
    url: &str,
    place: Place,
    fill: Fill,
    row: &(dyn Fn(&'static str, Value) -> Beside + Sync),
) -> Result<()> {
    let future = row("0", Value::Later);
    let finished = row("2", Value::Earlier);
    let first = fill.first;
    for (row, from, count) in [
        (future, first, fill.future),
        (finished, first + fill.future, fill.finished),
    ] {
        let mut done = 0;
        while done < count {
            let rows = (count - done).min(FILL_ROWS);
            execute(url, &fill_sql(place, &row, from + done, rows)).await?;
            done += rows;
        }
    }
    Ok(())
}

fn fill_sql(place: Place, row: &Beside, from: u64, rows: u64) -> String {
    let names: Vec<_> = row.columns.iter().map(|(name, _)| *name).collect();
    let values: Vec<_> = row
        .columns
        .iter()
        .map(|(_, value)| value.sql(place))
        .collect();
    let (table, names, values) = (&row.table, names.join(", "), values.join(", "));
    if place == Place::Sqlite {
        return format!(
            "WITH RECURSIVE seq(n) AS (SELECT {from} UNION ALL SELECT n + 1 FROM seq WHERE n + 1 < {})
             INSERT INTO {table} ({names}) SELECT {values} FROM seq",
            from + rows
        );
    }
    let digits = "SELECT 0 n UNION ALL SELECT 1 UNION ALL SELECT 2 UNION ALL SELECT 3 UNION ALL SELECT 4
         UNION ALL SELECT 5 UNION ALL SELECT 6 UNION ALL SELECT 7 UNION ALL SELECT 8 UNION ALL SELECT 9";
    format!(
        "INSERT INTO {table} ({names}) SELECT {values} FROM (
             SELECT {from} + a.n + 10 * b.n + 100 * c.n + 1000 * d.n + 10000 * e.n AS n
             FROM ({digits}) a, ({digits}) b, ({digits}) c, ({digits}) d, ({digits}) e
             HAVING n < {}) seq",
        from + rows
    )
}
