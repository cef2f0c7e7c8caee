//! Install: creates what is missing, verifies what is there.

use retryjob_core::{Error, ErrorKind, JobSchema, Result, sql::Catalogue};
use sqlx::{Database, Pool, SqlStr, Transaction};

use crate::{
    fault::Fault,
    kind::{Found, Kind},
    session::Session,
};

/// Creates the tables that are missing and verifies the others. Every table
/// is looked at before one is created.
pub(crate) async fn install<K: Kind>(
    pool: &Pool<K::Db>,
    catalogue: &Catalogue,
    schema: &JobSchema,
) -> Result<()> {
    let lost = |error| <<K::Db as Database>::Connection as Session>::fault(error).into_error();
    let mut connection = pool.acquire().await.map_err(lost)?;
    let Some(begin) = K::BEGIN else {
        // Every statement that creates commits by itself.
        return on::<K>(&mut connection, catalogue, schema).await;
    };
    let begin = SqlStr::from_static(begin);
    let begun = Transaction::<K::Db>::begin(&mut *connection, Some(begin));
    let mut tx = begun.await.map_err(lost)?;
    on::<K>(&mut tx, catalogue, schema).await?;
    tx.commit().await.map_err(lost)
}

async fn on<K: Kind>(
    session: &mut <K::Db as Database>::Connection,
    catalogue: &Catalogue,
    schema: &JobSchema,
) -> Result<()> {
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
        still => Err(Error::new(
            ErrorKind::Schema,
            format!("`{}` was created and is not there", still.join("`, `")),
        )),
    }
}

async fn create<S: Session>(session: &mut S, table: &str, sql: &str) -> Result<()> {
    match session.run(sql).await {
        // Another node was faster; what it made is verified next.
        Ok(()) | Err(Fault::Exists) => Ok(()),
        Err(Fault::Final(error)) => Err(Error::with_source(
            ErrorKind::Schema,
            format!("`{table}` can't be created"),
            error,
        )),
        Err(other) => Err(other.into_error()),
    }
}

/// Compares the tables that are there, and answers the names of those that are
/// not.
async fn verify<K: Kind>(
    session: &mut <K::Db as Database>::Connection,
    catalogue: &Catalogue,
    schema: &JobSchema,
) -> Result<Vec<String>> {
    let mut missing = Vec::new();
    let mut differences = Vec::new();
    for want in &catalogue.tables {
        let found = K::inspect(session, want, schema)
            .await
            .map_err(Fault::into_error)?;
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
    Err(Error::new(
        ErrorKind::Schema,
        format!(
            "the table is not what the job type describes; nothing was changed\n{}",
            differences.join("\n")
        ),
    ))
}
