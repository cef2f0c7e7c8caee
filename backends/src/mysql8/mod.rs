//! MySQL from 8.0.1 and MariaDB from 10.6: servers with `SKIP LOCKED`.

mod claim;

use std::time::Duration;

use retryjob_core::{
    Error, ErrorKind, JobSchema, Result, ShardUse,
    op::{
        claim::{Claim, Claimed},
        doctor::Finding,
    },
    sql::{Dialect, TableSpec},
};
use sqlx::{MySql, MySqlConnection, Pool};

use crate::{
    fault::Fault,
    kind::{Ask, Found, Kind, SECOND_POOL_CONNECTIONS},
    mysql::{connect, dialect::MysqlDialect, doctor, inspect::inspect, skip_locked},
    store::Store,
};

/// Servers with `SKIP LOCKED`.
pub(crate) enum WithSkipLocked {}

impl Kind for WithSkipLocked {
    type Db = MySql;
    const NAME: &'static str = "mysql8";
    const SHARDS: ShardUse = ShardUse::OwnFirst;
    const BEGIN: Option<&'static str> = None;
    const ANSWER_MAX: Option<Duration> = Some(connect::ANSWER_MAX);
    const BEGIN_TO_WRITE: Option<&'static str> = Some(connect::BEGIN_TO_WRITE);

    fn dialect() -> &'static dyn Dialect {
        &MysqlDialect::SKIPPING
    }

    async fn open(url: &str) -> Result<Pool<MySql>> {
        connect::open(url).await
    }

    async fn check(pool: &Pool<MySql>) -> Result<usize> {
        let bytes_max = connect::check(pool).await?;
        if skip_locked::can_skip_locked(pool).await? {
            return Ok(bytes_max);
        }
        Err(Error::new(
            ErrorKind::Unsupported,
            "this server has no SKIP LOCKED (needs MySQL 8.0.1 or MariaDB 10.6); \
             use the backend `mysql57`",
        ))
    }

    fn second_pool(pool: &Pool<MySql>) -> Pool<MySql> {
        connect::second_pool(pool, SECOND_POOL_CONNECTIONS)
    }

    fn note_fault(pool: &Pool<MySql>, fault: &Fault) {
        connect::note_fault(pool, fault);
    }

    async fn inspect(
        session: &mut MySqlConnection,
        want: &TableSpec,
        schema: &JobSchema,
    ) -> Result<Option<Found>, Fault> {
        inspect(session, want, schema).await
    }

    async fn examine(session: &mut MySqlConnection, ask: &Ask<'_>) -> Result<Vec<Finding>, Fault> {
        doctor::examine(session, ask, true).await
    }

    fn session_statements() -> Vec<&'static str> {
        connect::session_statements()
    }

    async fn claim(store: &Store<Self>, claim: Claim) -> Result<Claimed> {
        claim::claim(store, claim).await
    }
}

crate::surface::backend! {
    /// A job table on MySQL 8.0.1 or later, or MariaDB 10.6 or later.
    ///
    /// A claim locks the rows it picks and passes over those that another
    /// worker holds, so a node that has worked off its own shards helps with
    /// any other.
    Mysql8, WithSkipLocked, MySql, sqlx::MySqlConnection
}

impl Mysql8 {
    /// What `connect` sends once, to learn whether the server has
    /// `SKIP LOCKED`.
    #[must_use]
    pub fn probe_statement() -> String {
        skip_locked::statement()
    }
}
