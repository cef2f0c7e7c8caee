//! A table as `information_schema` tells it, in the words of the dialect.

use retryjob_core::{
    JobSchema,
    sql::{ColumnSpec, IndexSpec, TableSpec},
};
use sea_query::{Alias, Expr, ExprTrait as _, Func, MysqlQueryBuilder, Order, SelectStatement};
use sqlx::{AssertSqlSafe, MySqlConnection, Row as _, mysql::MySqlRow};

use super::error;
use crate::{fault::Fault, kind::Found};

/// The table of this name, if there is one.
pub(crate) async fn inspect(
    session: &mut MySqlConnection,
    want: &TableSpec,
    schema: &JobSchema,
) -> Result<Option<Found>, Fault> {
    let columns = read(
        session,
        "COLUMNS",
        &want.name,
        &[
            "COLUMN_NAME",
            "COLUMN_TYPE",
            "COLLATION_NAME",
            "IS_NULLABLE",
            "COLUMN_DEFAULT",
            "EXTRA",
        ],
        &["ORDINAL_POSITION"],
    )
    .await?;
    if columns.is_empty() {
        return Ok(None);
    }
    let indexes = read(
        session,
        "STATISTICS",
        &want.name,
        &["INDEX_NAME", "NON_UNIQUE", "COLUMN_NAME", "SUB_PART"],
        &["INDEX_NAME", "SEQ_IN_INDEX"],
    )
    .await?;
    let tables = read(session, "TABLES", &want.name, &["ENGINE"], &["TABLE_NAME"]).await?;

    let id = schema.names.id.as_str();
    let mut faults = Vec::new();
    let is_numbered = columns.iter().any(|row| {
        text(row, 0).eq_ignore_ascii_case(id) && text(row, 5).contains("auto_increment")
    });
    if !is_numbered && want.name == schema.table.as_str() {
        faults.push(format!("column `{id}` is not AUTO_INCREMENT"));
    }
    let engine = tables.first().map_or_else(String::new, |row| text(row, 0));
    if !engine.eq_ignore_ascii_case("InnoDB") {
        faults.push(format!("the engine is {engine}, expected InnoDB"));
    }
    let (primary, indexes): (Vec<_>, Vec<_>) = fold_indexes(&indexes)
        .into_iter()
        .partition(|index| index.name == "PRIMARY");
    let spec = TableSpec {
        name: want.name.clone(),
        columns: columns.iter().map(column).collect(),
        primary: primary
            .into_iter()
            .flat_map(|index| index.columns)
            .collect(),
        indexes,
    };
    Ok(Some(Found { spec, faults }))
}

async fn read(
    session: &mut MySqlConnection,
    view: &'static str,
    table: &str,
    columns: &[&'static str],
    order: &[&'static str],
) -> Result<Vec<MySqlRow>, Fault> {
    let sql = select(view, table, columns, order);
    let rows = sqlx::raw_sql(AssertSqlSafe(sql)).fetch_all(session).await;
    rows.map_err(error::fault)
}

/// Columns of a view of `information_schema`, each cast to text: their own
/// types differ from server to server.
fn select(
    view: &'static str,
    table: &str,
    columns: &[&'static str],
    order: &[&'static str],
) -> String {
    let mut select = SelectStatement::new();
    for column in columns {
        select.expr(Func::cast_as(Expr::col(*column), Alias::new("CHAR")));
    }
    select
        .from(("information_schema", view))
        .and_where(Expr::col("TABLE_SCHEMA").eq(Func::cust("DATABASE")))
        .and_where(Expr::col("TABLE_NAME").eq(table));
    for column in order {
        select.order_by(*column, Order::Asc);
    }
    select.to_string(MysqlQueryBuilder)
}

/// A column as text; empty for NULL.
fn text(row: &MySqlRow, at: usize) -> String {
    let text = row.try_get_unchecked::<Option<String>, _>(at);
    text.ok().flatten().unwrap_or_default()
}

fn is_null(row: &MySqlRow, at: usize) -> bool {
    let text = row.try_get_unchecked::<Option<String>, _>(at);
    matches!(text, Ok(None))
}

fn column(row: &MySqlRow) -> ColumnSpec {
    let is_nullable = text(row, 3) == "YES";
    let extra = text(row, 5).to_lowercase();
    let fills_itself = extra.contains("auto_increment") || extra.contains("generated");
    ColumnSpec {
        name: text(row, 0),
        type_text: canonical(&text(row, 1), &text(row, 2)),
        is_nullable,
        is_required: !is_nullable && is_null(row, 4) && !fills_itself,
    }
}

/// A column type as the dialect writes it: older servers show integers with a
/// display width, `bigint(20) unsigned`, and the collation stands beside.
fn canonical(column_type: &str, collation: &str) -> String {
    let lower = column_type.to_lowercase();
    let shown = match lower.split_once('(') {
        Some((name, rest)) if name.ends_with("int") => {
            let after = rest.split_once(')').map_or("", |(_, after)| after);
            format!("{name}{after}")
        }
        _ => lower,
    };
    match collation {
        "" => shown,
        collation => format!("{shown} collate {collation}"),
    }
}

/// One index per name, from one row per column.
fn fold_indexes(rows: &[MySqlRow]) -> Vec<IndexSpec> {
    let mut indexes: Vec<IndexSpec> = Vec::new();
    for row in rows {
        let name = text(row, 0);
        // A prefix is not the column, and neither is an expression.
        let column = match (text(row, 2), text(row, 3)) {
            (column, part) if part.is_empty() => column,
            (column, part) => format!("{column}({part})"),
        };
        match indexes.last_mut() {
            Some(last) if last.name == name => last.columns.push(column),
            _ => indexes.push(IndexSpec {
                name,
                columns: vec![column],
                is_unique: text(row, 1) == "0",
            }),
        }
    }
    indexes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn display_widths_of_older_servers_do_not_count() {
        for (shown, collation, canonical_text) in [
            ("bigint(20) unsigned", "", "bigint unsigned"),
            ("bigint unsigned", "", "bigint unsigned"),
            ("int(11)", "", "int"),
            ("tinyint(1)", "", "tinyint"),
            ("datetime(6)", "", "datetime(6)"),
            ("binary(32)", "", "binary(32)"),
            (
                "varchar(64)",
                "utf8mb4_bin",
                "varchar(64) collate utf8mb4_bin",
            ),
        ] {
            assert_eq!(canonical(shown, collation), canonical_text);
        }
    }
}
