//! A table as SQLite tells it.

use retryjob_core::sql::{ColumnSpec, IndexSpec, TableSpec};
use sqlx::{Row as _, SqliteConnection, sqlite::SqliteRow};

use super::error;
use crate::{fault::Fault, kind::Found};

/// `hidden` is 2 or 3 for generated columns.
const COLUMNS: &str = "SELECT name, type, \"notnull\", dflt_value IS NULL, pk, hidden \
    FROM pragma_table_xinfo(?) ORDER BY cid";

/// Columns of an index that are no columns of the table have no name.
const INDEXES: &str = "SELECT list.name, list.\"unique\", coalesce(info.name, '(expression)'), list.partial \
    FROM pragma_index_list(?) AS list, pragma_index_info(list.name) AS info \
    WHERE list.origin <> 'pk' ORDER BY list.seq, info.seqno";

/// The table of this name, if there is one.
pub(super) async fn inspect(
    session: &mut SqliteConnection,
    want: &TableSpec,
) -> Result<Option<Found>, Fault> {
    let columns = read(session, COLUMNS, &want.name).await?;
    if columns.is_empty() {
        return Ok(None);
    }
    let indexes = read(session, INDEXES, &want.name).await?;
    let decoded = || -> Result<Found, sqlx::Error> {
        let mut spec = TableSpec {
            name: want.name.clone(),
            ..TableSpec::default()
        };
        let mut primary = Vec::new();
        for row in &columns {
            let column = column(row)?;
            let place = row.try_get::<i64, _>(4)?;
            if place > 0 {
                primary.push((place, column.name.clone()));
            }
            spec.columns.push(column);
        }
        spec.indexes = fold_indexes(&indexes)?;
        primary.sort_unstable();
        spec.primary = primary.into_iter().map(|(_, name)| name).collect();
        let faults = Vec::new();
        Ok(Found { spec, faults })
    };
    decoded().map(Some).map_err(error::fault)
}

async fn read(
    session: &mut SqliteConnection,
    sql: &'static str,
    table: &str,
) -> Result<Vec<SqliteRow>, Fault> {
    let query = sqlx::query(sql).bind(table.to_owned());
    query.fetch_all(session).await.map_err(error::fault)
}

fn column(row: &SqliteRow) -> Result<ColumnSpec, sqlx::Error> {
    let is_nullable = row.try_get::<i64, _>(2)? == 0;
    let has_no_default = row.try_get::<i64, _>(3)? != 0;
    let is_primary = row.try_get::<i64, _>(4)? > 0;
    let is_generated = row.try_get::<i64, _>(5)? >= 2;
    Ok(ColumnSpec {
        name: row.try_get(0)?,
        type_text: row.try_get::<String, _>(1)?.to_uppercase(),
        is_nullable,
        is_required: !is_nullable && has_no_default && !is_primary && !is_generated,
    })
}

/// One index per name, from one row per column.
fn fold_indexes(rows: &[SqliteRow]) -> Result<Vec<IndexSpec>, sqlx::Error> {
    let mut indexes: Vec<IndexSpec> = Vec::new();
    for row in rows {
        let name: String = row.try_get(0)?;
        let mut column: String = row.try_get(2)?;
        // Of a partial index a claim could not be sure to find every row.
        if row.try_get::<i64, _>(3)? != 0 {
            column.push_str(" of some rows");
        }
        match indexes.last_mut() {
            Some(last) if last.name == name => last.columns.push(column),
            _ => indexes.push(IndexSpec {
                name,
                columns: vec![column],
                is_unique: row.try_get::<i64, _>(1)? != 0,
            }),
        }
    }
    Ok(indexes)
}
