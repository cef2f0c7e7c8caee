//! MySQL from 5.7 and MariaDB: servers of which nothing special is asked.

mod claim;

use std::time::Duration;

use retryjob_core::{
    JobSchema, Result, ShardUse,
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
    mysql::{connect, dialect::MysqlDialect, doctor, inspect::inspect},
    store::Store,
};

/// Servers without `SKIP LOCKED`, or with it unused.
pub(crate) enum WithoutSkipLocked {}

impl Kind for WithoutSkipLocked {
    type Db = MySql;
    const NAME: &'static str = "mysql57";
    const SHARDS: ShardUse = ShardUse::Own;
    const BEGIN: Option<&'static str> = None;
    const ANSWER_MAX: Option<Duration> = Some(connect::ANSWER_MAX);
    const BEGIN_TO_WRITE: Option<&'static str> = Some(connect::BEGIN_TO_WRITE);

    fn dialect() -> &'static dyn Dialect {
        &MysqlDialect::PLAIN
    }

    async fn open(url: &str) -> Result<Pool<MySql>> {
        connect::open(url).await
    }

    async fn check(pool: &Pool<MySql>) -> Result<usize> {
        connect::check(pool).await
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
        doctor::examine(session, ask, false).await
    }

    fn session_statements() -> Vec<&'static str> {
        connect::session_statements()
    }

    async fn claim(store: &Store<Self>, claim: Claim) -> Result<Claimed> {
        claim::claim(store, claim).await
    }
}

crate::surface::backend! {
    /// A job table on MySQL 5.7 or later, or MariaDB.
    ///
    /// A claim reads due rows without a lock and leases those that are still
    /// as they were read. Nodes that read the same shard take each other's
    /// picks away, so each reads its own shards only.
    Mysql57, WithoutSkipLocked, MySql, sqlx::MySqlConnection
}
