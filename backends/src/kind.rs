//! What differs between the backends.

use std::{future::Future, time::Duration};

use retryjob_core::{
    JobSchema, Result, ShardUse,
    op::{
        claim::{Claim, Claimed},
        doctor::Finding,
    },
    sql::{Catalogue, Dialect, TableSpec},
};
use sqlx::{Database, Pool};

use crate::{fault::Fault, session::Session, store::Store};

/// Connections of a pool that a backend opens.
pub(crate) const POOL_CONNECTIONS: u32 = 10;

/// Connections of the second pool, which only keeps leases alive.
pub(crate) const SECOND_POOL_CONNECTIONS: u32 = 2;

/// Milliseconds that an operation waits for a connection of the pool.
pub(crate) const ACQUIRE_MS_MAX: u64 = 5_000;

/// A database with its way to claim.
pub(crate) trait Kind: Sized + Send + Sync + 'static {
    /// The driver.
    type Db: Database<Connection: Session>;

    /// The name as users know it.
    const NAME: &'static str;

    /// What a worker makes of the shards that its node owns.
    const SHARDS: ShardUse;

    /// What opens a transaction, when it is not the driver's own `BEGIN`.
    const BEGIN: Option<&'static str>;

    /// What opens a transaction that a caller writes in.
    const BEGIN_TO_WRITE: Option<&'static str> = Self::BEGIN;

    /// How long a statement of an operation may take, where the answer comes
    /// over a network.
    const ANSWER_MAX: Option<Duration> = None;

    /// How it writes the catalogue.
    fn dialect() -> &'static dyn Dialect;

    /// A pool for this URL, after one connection has been tried.
    fn open(url: &str) -> impl Future<Output = Result<Pool<Self::Db>>> + Send;

    /// Checks that the pool's connections are set up as the statements need
    /// them, and answers the most bytes that one statement may carry.
    fn check(pool: &Pool<Self::Db>) -> impl Future<Output = Result<usize>> + Send;

    /// Another pool to the same database.
    fn second_pool(pool: &Pool<Self::Db>) -> Pool<Self::Db>;

    /// Takes note of what stopped an operation on a connection of the pool.
    fn note_fault(_pool: &Pool<Self::Db>, _fault: &Fault) {}

    /// The table of this name as it is, if there is one.
    fn inspect(
        session: &mut <Self::Db as Database>::Connection,
        want: &TableSpec,
        schema: &JobSchema,
    ) -> impl Future<Output = Result<Option<Found>, Fault>> + Send;

    /// What the server of this connection gives, and what it does not.
    fn examine(
        session: &mut <Self::Db as Database>::Connection,
        ask: &Ask<'_>,
    ) -> impl Future<Output = Result<Vec<Finding>, Fault>> + Send;

    /// What every new connection sends before the first statement.
    fn session_statements() -> Vec<&'static str>;

    /// Claims due jobs.
    fn claim(store: &Store<Self>, claim: Claim) -> impl Future<Output = Result<Claimed>> + Send;
}

/// What a backend's doctor needs to know besides the connection.
#[derive(Debug)]
pub(crate) struct Ask<'a> {
    pub(crate) catalogue: &'a Catalogue,
    pub(crate) schema: &'static JobSchema,
    /// Connections that a worker may open, of both pools.
    #[cfg_attr(
        not(feature = "_mysql"),
        allow(dead_code, reason = "SQLite has no limit that it counts against")
    )]
    pub(crate) connections_max: u32,
    /// The names of the tables that are there.
    pub(crate) tables: Vec<String>,
}

impl Ask<'_> {
    /// Whether there is a table to claim from.
    pub(crate) fn has_job_table(&self) -> bool {
        self.tables
            .iter()
            .any(|table| table == self.schema.table.as_str())
    }

    /// The index that claims read by: the first of the job table.
    pub(crate) fn claim_index(&self) -> &str {
        let indexes = self.catalogue.tables.iter().flat_map(|t| &t.indexes);
        indexes
            .map(|index| index.name.as_str())
            .next()
            .unwrap_or_default()
    }
}

/// A table that is there.
#[derive(Debug)]
pub(crate) struct Found {
    /// Its columns and indexes.
    pub(crate) spec: TableSpec,
    /// What else keeps it from serving.
    pub(crate) faults: Vec<String>,
}
