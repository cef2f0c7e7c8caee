//! SQLite, in a file.

mod claim;

mod connect;

mod session;

mod error;

mod dialect;

mod inspect;

mod doctor;

use retryjob_core::{
    JobSchema, Result, ShardUse,
    op::{
        claim::{Claim, Claimed},
        doctor::Finding,
    },
    sql::{Dialect, TableSpec},
};
use sqlx::{Pool, SqliteConnection};

use crate::{
    fault::Fault,
    kind::{Ask, Found, Kind, SECOND_POOL_CONNECTIONS},
    store::Store,
};
use dialect::SqliteDialect;

/// SQLite.
pub(crate) enum InFile {}

impl Kind for InFile {
    type Db = sqlx::Sqlite;
    const NAME: &'static str = "sqlite";
    /// One claim has the whole file to itself, whatever its shards.
    const SHARDS: ShardUse = ShardUse::Any;
    /// A transaction that begins as a reader is refused at once, whatever the
    /// busy timeout says, when it writes after another has written.
    const BEGIN: Option<&'static str> = Some("BEGIN IMMEDIATE");

    fn dialect() -> &'static dyn Dialect {
        &SqliteDialect
    }

    async fn open(url: &str) -> Result<Pool<sqlx::Sqlite>> {
        connect::open(url).await
    }

    async fn check(pool: &Pool<sqlx::Sqlite>) -> Result<usize> {
        connect::check(pool).await
    }

    fn second_pool(pool: &Pool<sqlx::Sqlite>) -> Pool<sqlx::Sqlite> {
        connect::second_pool(pool, SECOND_POOL_CONNECTIONS)
    }

    async fn inspect(
        session: &mut SqliteConnection,
        want: &TableSpec,
        _schema: &JobSchema,
    ) -> Result<Option<Found>, Fault> {
        inspect::inspect(session, want).await
    }

    async fn examine(session: &mut SqliteConnection, ask: &Ask<'_>) -> Result<Vec<Finding>, Fault> {
        doctor::examine(session, ask).await
    }

    fn session_statements() -> Vec<&'static str> {
        connect::session_statements()
    }

    async fn claim(store: &Store<Self>, claim: Claim) -> Result<Claimed> {
        claim::claim(store, claim).await
    }
}

crate::surface::backend! {
    /// A job table in an SQLite file.
    ///
    /// One transaction writes at a time, and each has the file to itself; the
    /// others wait. Instants are whole microseconds in the table, and the
    /// clock ticks in milliseconds.
    Sqlite, InFile, sqlx::Sqlite, sqlx::SqliteConnection
}
