//! The time of a claim after many jobs were drained, with and without another
//! connection that keeps a snapshot from before: the server can then remove
//! none of the index entries that the drained jobs left behind.

use anyhow::Result;
use sqlx::{Connection as _, MySqlConnection, SqliteConnection};

use super::{Figure, Stand, Unit, median};
use crate::{
    entry::{Entry, Place},
    options::Sizes,
};

const CLAIMS: usize = 15;
/// Jobs for the claims, 50 each.
const CLAIM_JOBS: usize = 1000;
const CONCURRENCY: usize = 16;

pub const WITHOUT: &str = "claim of 50 after a long drain";
pub const WITH: &str = "claim of 50 after a long drain, a snapshot open";

pub async fn run(entry: Entry, sizes: &Sizes) -> Result<Vec<Figure>> {
    let jobs = sizes.snapshot_jobs;
    let without = super::on_fresh(entry, async |stand| claims(stand, jobs, false).await).await?;
    let with = super::on_fresh(entry, async |stand| claims(stand, jobs, true).await).await?;
    Ok(vec![
        Figure::new(WITHOUT, Unit::Milliseconds, without),
        Figure::new(WITH, Unit::Milliseconds, with),
    ])
}

/// The median time of a claim, in milliseconds.
async fn claims(stand: &Stand, count: usize, has_snapshot: bool) -> Result<f64> {
    stand.enqueue(0, count).await?;
    let snapshot = if has_snapshot {
        Some(Snapshot::open(stand).await?)
    } else {
        None
    };
    stand.drain(0, count, CONCURRENCY).await?;
    stand.enqueue(count, CLAIM_JOBS).await?;
    let mut times = Vec::new();
    for _ in 0..CLAIMS {
        times.push(stand.contestant.claim().await?.as_secs_f64() * 1e3);
    }
    if let Some(snapshot) = snapshot {
        snapshot.close().await?;
    }
    Ok(median(&mut times).unwrap_or_default())
}

enum Snapshot {
    Mysql(MySqlConnection),
    Sqlite(SqliteConnection),
}

impl Snapshot {
    async fn open(stand: &Stand) -> Result<Self> {
        let url = &stand.fresh.url;
        if stand.entry.place == Place::Sqlite {
            let mut connection = SqliteConnection::connect(url).await?;
            // It begins with the first read.
            let sql = "BEGIN; SELECT COUNT(*) FROM sqlite_master";
            sqlx::raw_sql(sql).execute(&mut connection).await?;
            return Ok(Self::Sqlite(connection));
        }
        let mut connection = MySqlConnection::connect(url).await?;
        let sql = "SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ;
            START TRANSACTION WITH CONSISTENT SNAPSHOT";
        sqlx::raw_sql(sql).execute(&mut connection).await?;
        Ok(Self::Mysql(connection))
    }

    async fn close(self) -> Result<()> {
        match self {
            Self::Mysql(connection) => connection.close().await?,
            Self::Sqlite(connection) => connection.close().await?,
        }
        Ok(())
    }
}
