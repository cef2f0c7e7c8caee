//! Install: creates what is missing, verifies what is there.

use retryjob_core::{Error, ErrorKind, JobSchema, sql::Catalogue};
use sqlx::{Database, Pool, SqlStr, Transaction};

use crate::{
    fault::Fault,
    kind::{Found, Kind},
    retry::{Seat, fault},
    session::Session,
};

/// Creates the tables that are missing and verifies the others. Every table
/// is looked at before one is created.
pub(crate) async fn install<K: Kind>(
    pool: &Pool<K::Db>,
    catalogue: &Catalogue,
    schema: &JobSchema,
) -> Result<(), Fault> {
    let mut seat = Seat::take::<K>(pool).await?;
    let session: &mut <K::Db as Database>::Connection = &mut seat.connection;
    let installed = match K::BEGIN {
        // Every statement that creates commits by itself.
        None => on::<K>(session, catalogue, schema).await,
        Some(begin) => {
            let begin = Some(SqlStr::from_static(begin));
            let begun = Transaction::<K::Db>::begin(session, begin).await;
            let mut tx = begun.map_err(fault::<K>)?;
            match on::<K>(&mut tx, catalogue, schema).await {
                Ok(()) => tx.commit().await.map_err(fault::<K>),
                Err(refused) => {
                    tx.rollback().await.map_err(fault::<K>)?;
                    Err(refused)
                }
            }
        }
    };
    match &installed {
        Err(stopped) if stopped.spoils_connection() => {}
        _ => seat.release(),
    }
    installed
}

async fn on<K: Kind>(
    session: &mut <K::Db as Database>::Connection,
    catalogue: &Catalogue,
    schema: &JobSchema,
) -> Result<(), Fault> {
    let missing = verify::<K>(session, catalogue, schema).await?;
    if missing.is_empty() {
        return Ok(());
    }
    let mut creates = catalogue.create.iter();
    for spec in &catalogue.tables {
        let indexes = match K::dialect().has_inline_indexes() {
            true => 0,
            false => spec.indexes.len(),
        };
        for sql in creates.by_ref().take(1 + indexes) {
            if missing.contains(&spec.name) {
                create(session, &spec.name, sql).await?;
            }
        }
    }
    match verify::<K>(session, catalogue, schema).await? {
        none if none.is_empty() => Ok(()),
        still => Err(schema_error(format!(
            "`{}` was created and is not there",
            still.join("`, `")
        ))),
    }
}

async fn create<S: Session>(session: &mut S, table: &str, sql: &str) -> Result<(), Fault> {
    match session.run(sql).await {
        // Another node was faster; what it made is verified next.
        Err(Fault::Exists) => Ok(()),
        Err(Fault::Final(error)) => Err(Fault::Final(Error::with_source(
            ErrorKind::Schema,
            format!("`{table}` can't be created"),
            error,
        ))),
        other => other,
    }
}

fn schema_error(message: String) -> Fault {
    Fault::Final(Error::new(ErrorKind::Schema, message))
}

/// Compares the tables that are there, and answers the names of those that are
/// not.
async fn verify<K: Kind>(
    session: &mut <K::Db as Database>::Connection,
    catalogue: &Catalogue,
    schema: &JobSchema,
) -> Result<Vec<String>, Fault> {
    let mut missing = Vec::new();
    let mut differences = Vec::new();
    for want in &catalogue.tables {
        let found = K::inspect(session, want, schema).await?;
        let Some(Found { spec, faults }) = found else {
            missing.push(want.name.clone());
            continue;
        };
        let all = want.differences(&spec).into_iter().chain(faults);
        differences.extend(all.map(|difference| format!("`{}`: {difference}", want.name)));
    }
    if differences.is_empty() {
        return Ok(missing);
    }
    Err(schema_error(format!(
        "the table is not what the job type describes; nothing was changed\n{}",
        differences.join("\n")
    )))
}
