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
    /// What a look itself adds: it reads some hundred rows.
    own: HashMap<String, i64>,
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
        let first = Self::once(place).await?;
        let second = Self::once(place).await?;
        let own = less(second.status.clone(), &first.status);
        Ok(Self { own, ..second })
    }

    async fn once(place: Place) -> Result<Self> {
        let status = match place {
            Place::Sqlite => HashMap::new(),
            _ => status(place).await?,
        };
        Ok(Self {
            client: cpu::own(),
            server: database::server_pid(place).and_then(cpu::of),
            status,
            own: HashMap::new(),
        })
    }

    pub async fn spent(self, place: Place) -> Result<Spent> {
        let client = cpu::own().saturating_sub(self.client);
        let now = Self::once(place).await?;
        let server = now.server.zip(self.server);
        Ok(Spent {
            client,
            server: server.map(|(now, then)| now.saturating_sub(then)),
            status: (place != Place::Sqlite)
                .then(|| less(less(now.status, &self.status), &self.own)),
        })
    }
}

fn less(mut now: HashMap<String, i64>, then: &HashMap<String, i64>) -> HashMap<String, i64> {
    for (name, value) in &mut now {
        *value -= then.get(name).copied().unwrap_or_default();
    }
    now
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
