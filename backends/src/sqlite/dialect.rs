//! How SQLite writes the catalogue.

use retryjob_core::{
    ColumnType, Ident,
    sql::{Dialect, Query},
};
use sea_query::{
    Alias, ColumnDef, Expr, ExprTrait as _, Func, IndexCreateStatement, SelectStatement,
    SqliteQueryBuilder, TableCreateStatement, Values,
};

/// SQLite.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SqliteDialect;

impl Dialect for SqliteDialect {
    fn name(&self) -> &'static str {
        "sqlite"
    }

    /// The clock ticks in milliseconds, so the last three digits are zeros.
    fn now(&self) -> Expr {
        let seconds = Func::cust("unixepoch").args([Expr::cust("'now'"), Expr::cust("'subsec'")]);
        let ms = Func::round(Expr::from(seconds).mul(Expr::cust("1000")));
        Expr::from(Func::cast_as(ms, Alias::new("INTEGER"))).mul(Expr::cust("1000"))
    }

    fn plus_us(&self, at: Expr, us: Expr) -> Expr {
        at.add(us)
    }

    fn us_between(&self, earlier: Expr, later: Expr) -> Expr {
        later.sub(earlier)
    }

    fn type_text(&self, kind: ColumnType) -> String {
        match kind {
            ColumnType::Bool
            | ColumnType::I8
            | ColumnType::I16
            | ColumnType::I32
            | ColumnType::I64
            | ColumnType::U8
            | ColumnType::U16
            | ColumnType::U32
            | ColumnType::U64
            | ColumnType::DateTime => "INTEGER",
            ColumnType::F64 => "REAL",
            ColumnType::Varchar { .. } | ColumnType::Text | ColumnType::Date => "TEXT",
            ColumnType::Binary { .. } | ColumnType::Varbinary { .. } => "BLOB",
        }
        .into()
    }

    /// AUTOINCREMENT, so that the id of a deleted row is never given again.
    fn numbered(&self, column: &mut ColumnDef) {
        column.auto_increment();
    }

    fn comes_after(&self, key: [Expr; 2], than: [Expr; 2]) -> Expr {
        Expr::tuple(key).gt(Expr::tuple(than))
    }

    fn can_skip_locked(&self) -> bool {
        false
    }

    fn can_lock_rows(&self) -> bool {
        false
    }

    fn force_index(&self, _select: &mut SelectStatement, _index: &str) {
        // It reads no table whole while an index serves, however small.
    }

    fn index_name(&self, table: Ident, name: &str) -> String {
        format!("{table}_{name}")
    }

    fn has_inline_indexes(&self) -> bool {
        false
    }

    fn binds_max(&self) -> usize {
        // SQLITE_MAX_VARIABLE_NUMBER since 3.32.
        32_766
    }

    fn write(&self, query: &Query) -> (String, Values) {
        match query {
            Query::Select(select) => select.build(SqliteQueryBuilder),
            Query::Insert(insert) => insert.build(SqliteQueryBuilder),
            Query::Update(update) => update.build(SqliteQueryBuilder),
            Query::Delete(delete) => delete.build(SqliteQueryBuilder),
        }
    }

    fn write_table(&self, table: &TableCreateStatement) -> String {
        table.build(SqliteQueryBuilder)
    }

    fn write_index(&self, index: &IndexCreateStatement) -> String {
        index.build(SqliteQueryBuilder)
    }
}
