//! What the run was made on.

use std::fmt;

use anyhow::Result;
use serde::Serialize;
use sqlx::{Connection as _, MySqlConnection};

use crate::{
    database::server_url,
    entry::{Entry, Place},
};

#[derive(Debug, Serialize)]
pub struct Machine {
    date: String,
    processor: String,
    cores: usize,
    /// Runnable processes, over the last minute, when the run began and ended.
    load: Vec<String>,
    servers: Vec<String>,
    size: String,
    rounds: usize,
}

impl Machine {
    #[allow(clippy::disallowed_methods, reason = "the date of the report")]
    pub async fn look(entries: &[Entry], size: String) -> Result<Self> {
        let mut servers = Vec::new();
        for place in Place::ALL {
            if place.server().is_none() || !entries.iter().any(|entry| entry.place == place) {
                continue;
            }
            let mut connection = MySqlConnection::connect(&server_url(place)?).await?;
            let version: String = sqlx::query_scalar("SELECT VERSION()")
                .fetch_one(&mut connection)
                .await?;
            servers.push(format!("{} is {version}", place.name()));
            connection.close().await?;
        }
        Ok(Self {
            date: chrono::Utc::now().format("%Y-%m-%d %H:%M UTC").to_string(),
            processor: processor().unwrap_or_else(|| "unknown processor".to_owned()),
            cores: std::thread::available_parallelism().map_or(0, usize::from),
            load: load().into_iter().collect(),
            servers,
            size,
            rounds: 0,
        })
    }

    /// At the end of the run.
    pub fn ended(&mut self, rounds: usize) {
        self.load.extend(load());
        self.rounds = rounds;
    }
}

impl fmt::Display for Machine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            date,
            processor,
            cores,
            size,
            rounds,
            ..
        } = self;
        writeln!(
            f,
            "{date}, {cores} cores of {processor}; {}.",
            self.servers.join(", ")
        )?;
        writeln!(
            f,
            "Size {size}, {rounds} rounds; load {}.",
            self.load.join(" at the start and at the end ")
        )
    }
}

fn processor() -> Option<String> {
    let info = std::fs::read_to_string("/proc/cpuinfo").ok()?;
    let line = info.lines().find(|line| line.starts_with("model name"))?;
    Some(line.split_once(':')?.1.trim().to_owned())
}

fn load() -> Option<String> {
    let load = std::fs::read_to_string("/proc/loadavg").ok()?;
    load.split(' ').next().map(str::to_owned)
}
