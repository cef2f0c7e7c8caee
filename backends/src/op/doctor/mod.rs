//! Doctor: reads what a server and its tables are like, and changes nothing.
//!
//! A statement that the server refuses is a finding; only a connection that is
//! lost runs the whole again.

mod clock;

mod tables;

use std::time::Duration;

use retryjob_core::{
    DbTime, Error, ErrorKind, JobSchema, Result, Value,
    op::doctor::{Finding, Report},
    sql::{Bind, Catalogue, Slot},
};
use sqlx::{Connection as _, Database, Pool};

use super::unbound;
use crate::{
    fault::Fault,
    kind::{ACQUIRE_MS_MAX, Ask, Kind, SECOND_POOL_CONNECTIONS},
    retry::{Seat, Tries, fault},
};

type ConnectionOf<K> = <<K as Kind>::Db as Database>::Connection;

/// What this database gives a job type.
pub(crate) async fn doctor<K: Kind>(
    pool: &Pool<K::Db>,
    catalogue: &Catalogue,
    schema: &'static JobSchema,
) -> Result<Report> {
    let mut tries = Tries::new();
    loop {
        match once::<K>(pool, catalogue, schema).await {
            Ok(findings) => return Ok(Report { findings }),
            Err(fault) => tries.pause(fault).await?,
        }
    }
}

async fn once<K: Kind>(
    pool: &Pool<K::Db>,
    catalogue: &Catalogue,
    schema: &'static JobSchema,
) -> Result<Vec<Finding>, Fault> {
    let ask = Ask {
        catalogue,
        schema,
        connections_max: pool.options().get_max_connections() + SECOND_POOL_CONNECTIONS,
        tables: Vec::new(),
    };
    match Seat::take::<K>(pool).await {
        Ok(mut seat) => {
            let found = examine::<K>(&mut seat.connection, ask).await;
            if !matches!(&found, Err(stopped) if stopped.spoils_connection()) {
                seat.release();
            }
            found
        }
        Err(refused) if pool.is_closed() => Err(refused),
        // The pool keeps no connection whose settings it could not make so;
        // one outside of it still tells what they are.
        Err(refused) => {
            let mut connection = connect::<K>(pool).await?;
            let mut found = vec![Finding::fault(
                "connections",
                "the pool gives none",
                refused.into_error().to_string(),
            )];
            found.extend(examine::<K>(&mut connection, ask).await?);
            // One that can't say goodbye is gone as well.
            let _ = connection.close().await;
            Ok(found)
        }
    }
}

async fn connect<K: Kind>(pool: &Pool<K::Db>) -> Result<ConnectionOf<K>, Fault> {
    let options = pool.connect_options();
    let connecting = ConnectionOf::<K>::connect_with(&options);
    let limit = Duration::from_millis(ACQUIRE_MS_MAX);
    match tokio::time::timeout(limit, connecting).await {
        Ok(connected) => connected.map_err(fault::<K>),
        Err(_) => Err(Fault::Final(Error::new(
            ErrorKind::Unreachable,
            format!("no answer from the database in {} s", limit.as_secs()),
        ))),
    }
}

/// A claim for EXPLAIN: one job, of the first shard.
pub(crate) fn some_pick(bind: Bind) -> Value {
    match bind.slot {
        Slot::ShardId => Value::U64(0),
        Slot::HeadAt => Value::DateTime(DbTime::default().to_utc()),
        Slot::Limit => Value::U64(1),
        other => unbound(other),
    }
}

/// The server and its settings, the clock, then the tables.
async fn examine<K: Kind>(
    session: &mut ConnectionOf<K>,
    mut ask: Ask<'_>,
) -> Result<Vec<Finding>, Fault> {
    let mut of_tables = Vec::new();
    for want in &ask.catalogue.tables {
        match K::inspect(session, want, ask.schema).await {
            Ok(found) => {
                if found.is_some() {
                    ask.tables.push(want.name.clone());
                }
                of_tables.extend(tables::judge(want, found));
            }
            Err(Fault::Final(refused)) => of_tables.push(Finding::unknown(
                format!("table {}", want.name),
                refused.to_string(),
            )),
            Err(lost) => return Err(lost),
        }
    }
    let mut findings = K::examine(session, &ask).await?;
    findings.push(clock::compare(session, ask.catalogue).await?);
    findings.extend(of_tables);
    Ok(findings)
}
