//! Who takes part, and on which database.

use std::fmt;

use clap::ValueEnum;
use serde::{Deserialize, Serialize};

use crate::options::Measure;

/// A database.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, ValueEnum, Serialize, Deserialize,
)]
#[serde(rename_all = "kebab-case")]
pub enum Place {
    Mysql9,
    Mysql57,
    Mariadb,
    Sqlite,
}

impl Place {
    pub const ALL: [Self; 4] = [Self::Mysql9, Self::Mysql57, Self::Mariadb, Self::Sqlite];

    pub const fn name(self) -> &'static str {
        match self {
            Self::Mysql9 => "MySQL 9",
            Self::Mysql57 => "MySQL 5.7",
            Self::Mariadb => "MariaDB",
            Self::Sqlite => "SQLite",
        }
    }

    /// What `tests/servers` calls the server.
    pub const fn server(self) -> Option<&'static str> {
        match self {
            Self::Mysql9 => Some("mysql8"),
            Self::Mysql57 => Some("mysql57"),
            Self::Mariadb => Some("mariadb"),
            Self::Sqlite => None,
        }
    }
}

/// A way to keep jobs in a database.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, ValueEnum, Serialize, Deserialize,
)]
#[serde(rename_all = "kebab-case")]
pub enum Who {
    /// Hand-written SQL, a lease on each row: the floor of row leases
    RowFloor,
    /// Hand-written SQL, a lease on the shard, a job finished by UPDATE
    ShardFloor,
    /// The same, a job finished by DELETE
    ShardFloorDelete,
    /// This library, row leases, as it is without settings
    Ours,
    /// This library, leases of shards
    OursShard,
    /// The same, finished jobs deleted
    OursShardDelete,
    /// Locks that are held through the work, without SKIP LOCKED
    Naive,
    /// apalis-mysql with its defaults
    Apalis,
    /// apalis-mysql with larger batches and more connections
    ApalisTuned,
    /// fang
    Fang,
}

impl Who {
    pub const ALL: [Self; 10] = [
        Self::RowFloor,
        Self::ShardFloor,
        Self::ShardFloorDelete,
        Self::Ours,
        Self::OursShard,
        Self::OursShardDelete,
        Self::Naive,
        Self::Apalis,
        Self::ApalisTuned,
        Self::Fang,
    ];

    pub const fn name(self) -> &'static str {
        match self {
            Self::RowFloor => "row floor",
            Self::ShardFloor => "shard floor",
            Self::ShardFloorDelete => "shard floor, delete",
            Self::Ours => "retryjob",
            Self::OursShard => "retryjob, shard leases",
            Self::OursShardDelete => "retryjob, shard leases, delete",
            Self::Naive => "naive",
            Self::Apalis => "apalis",
            Self::ApalisTuned => "apalis, tuned",
            Self::Fang => "fang",
        }
    }

    pub const fn is_peer(self) -> bool {
        matches!(self, Self::Apalis | Self::ApalisTuned | Self::Fang)
    }

    pub const fn is_ours(self) -> bool {
        self.floor().is_some()
    }

    /// The hand-written SQL that it is compared with.
    pub const fn floor(self) -> Option<Self> {
        match self {
            Self::Ours => Some(Self::RowFloor),
            Self::OursShard => Some(Self::ShardFloor),
            Self::OursShardDelete => Some(Self::ShardFloorDelete),
            _ => None,
        }
    }

    fn runs_on(self, place: Place) -> bool {
        match self {
            Self::RowFloor | Self::Ours => true,
            Self::ShardFloor
            | Self::ShardFloorDelete
            | Self::OursShard
            | Self::OursShardDelete
            | Self::Naive => place != Place::Sqlite,
            Self::Apalis | Self::ApalisTuned | Self::Fang => place == Place::Mysql9,
        }
    }

    /// The peers and the anti-pattern are asked what can be asked of everyone;
    /// what takes long is asked of the others, and in a short run only of the
    /// library's defaults and their floor.
    pub const fn takes(self, measure: Measure, is_short: bool) -> bool {
        match measure {
            Measure::Enqueue => !matches!(self, Self::ShardFloorDelete | Self::OursShardDelete),
            Measure::Drain | Measure::Two => true,
            Measure::Latency | Measure::Backlog | Measure::Snapshot => match self {
                Self::RowFloor | Self::Ours => true,
                Self::ShardFloor | Self::OursShard => !is_short,
                _ => false,
            },
        }
    }

    /// How many jobs it can be given.
    pub const fn pace(self) -> Pace {
        match self {
            Self::Apalis | Self::Fang => Pace::Crawl,
            Self::ApalisTuned => Pace::Slow,
            _ => Pace::Fast,
        }
    }
}

/// How fast jobs are drained, roughly.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pace {
    /// Tens a second.
    Crawl,
    /// Hundreds a second.
    Slow,
    /// Thousands a second.
    Fast,
}

/// One contestant: a way on a database.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Entry {
    pub place: Place,
    pub who: Who,
}

impl Entry {
    /// All of them, floors and our own first, peers last.
    pub fn all() -> Vec<Self> {
        let entries = Who::ALL.into_iter().flat_map(|who| {
            let places = Place::ALL
                .into_iter()
                .filter(move |place| who.runs_on(*place));
            places.map(move |place| Self { place, who })
        });
        entries
            .filter(|entry| cfg!(feature = "peers") || !entry.who.is_peer())
            .collect()
    }
}

impl fmt::Display for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} on {}", self.who.name(), self.place.name())
    }
}
