//! What the server counted between two looks, with the CPU time of both ends.

use std::{collections::HashMap, time::Duration};

use anyhow::Result;
use sqlx::{Connection as _, MySqlConnection, Row as _};

use crate::{cpu, database, entry::Place};

/// One look at the counters.
#[derive(Debug)]
pub struct Look {
    client: Duration,
    server: Option<Duration>,
    status: HashMap<String, i64>,
}

/// What went by between two looks.
#[derive(Debug)]
pub struct Spent {
    pub client: Duration,
    pub server: Option<Duration>,
    status: Option<HashMap<String, i64>>,
}

impl Look {
    pub async fn take(place: Place) -> Result<Self> {
        let status = if place == Place::Sqlite {
            HashMap::new()
        } else {
            status(place).await?
        };
        let server = database::server_pid(place).and_then(cpu::of);
        Ok(Self {
            client: cpu::own(),
            server,
            status,
        })
    }

    pub async fn spent(self, place: Place) -> Result<Spent> {
        let client = cpu::own().saturating_sub(self.client);
        let mut now = Self::take(place).await?;
        for (name, value) in &mut now.status {
            *value -= self.status.get(name).copied().unwrap_or_default();
        }
        Ok(Spent {
            client,
            server: now
                .server
                .zip(self.server)
                .map(|(now, then)| now.saturating_sub(then)),
            status: (place != Place::Sqlite).then_some(now.status),
        })
    }
}

impl Spent {
    /// Statements that clients sent; preparing one is not counted.
    pub fn statements(&self) -> Option<i64> {
        self.sum(&["Questions"])
    }

    /// Commits of the storage engine, those of single statements included.
    pub fn commits(&self) -> Option<i64> {
        self.sum(&["Handler_commit"])
    }

    pub fn rows_examined(&self) -> Option<i64> {
        let status = self.status.as_ref()?;
        let reads = status
            .iter()
            .filter(|(name, _)| name.starts_with("Handler_read_"));
        Some(reads.map(|(_, value)| value).sum())
    }

    /// By InnoDB; MariaDB no longer has those counters, and tells the writes
    /// that the server asked of it.
    pub fn rows_written(&self) -> Option<i64> {
        self.sum(&[
            "Innodb_rows_inserted",
            "Innodb_rows_updated",
            "Innodb_rows_deleted",
        ])
        .or_else(|| self.sum(&["Handler_write", "Handler_update", "Handler_delete"]))
    }

    pub fn lock_waits(&self) -> Option<i64> {
        self.sum(&["Innodb_row_lock_waits"])
    }

    pub fn deadlocks(&self) -> Option<i64> {
        self.sum(&["Innodb_deadlocks"])
            .or_else(|| self.sum(&["lock_deadlocks"]))
    }

    /// `None` when the server has none of them.
    fn sum(&self, names: &[&str]) -> Option<i64> {
        let status = self.status.as_ref()?;
        names.iter().map(|name| status.get(*name)).sum()
    }
}

async fn status(place: Place) -> Result<HashMap<String, i64>> {
    let mut connection = MySqlConnection::connect(&database::server_url(place)?).await?;
    let mut status = HashMap::new();
    for sql in [
        "SHOW GLOBAL STATUS",
        "SELECT NAME, `COUNT` FROM information_schema.INNODB_METRICS WHERE NAME = 'lock_deadlocks'",
    ] {
        // As text, so that numbers and names come alike.
        for row in sqlx::raw_sql(sql).fetch_all(&mut connection).await? {
            let name: String = row.try_get_unchecked(0)?;
            let value: String = row.try_get_unchecked(1)?;
            if let Ok(value) = value.parse() {
                status.insert(name, value);
            }
        }
    }
    connection.close().await?;
    Ok(status)
}
