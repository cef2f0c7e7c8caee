//! What a database can say, and how.

use sea_query::{
    ColumnDef, DeleteStatement, Expr, IndexCreateStatement, InsertStatement, SelectStatement,
    TableCreateStatement, UpdateStatement, Values,
};

use crate::{ident::Ident, value::ColumnType};

/// How a database writes what the catalogue needs. A new database brings its
/// own; nothing here or in the catalogue changes for it.
pub trait Dialect: Sync {
    /// The database's name as users know it, such as `mysql8`.
    fn name(&self) -> &'static str;

    /// The database's clock, UTC, in whole microseconds.
    fn now(&self) -> Expr;

    /// An instant moved later by microseconds.
    fn plus_us(&self, at: Expr, us: Expr) -> Expr;

    /// Microseconds from one instant to a later one, a signed integer.
    fn us_between(&self, earlier: Expr, later: Expr) -> Expr;

    /// How a column type is written in the table, and found in it later.
    fn type_text(&self, kind: ColumnType) -> String;

    /// Adds what makes this column number its rows.
    fn numbered(&self, column: &mut ColumnDef);

    /// Whether a key of two columns is greater than another, in the order of an
    /// index over them, so that the index serves it.
    fn comes_after(&self, key: [Expr; 2], than: [Expr; 2]) -> Expr;

    /// Whether a claim locks the rows it picks and passes over locked ones.
    fn can_skip_locked(&self) -> bool;

    /// Whether a read can lock its rows until the transaction ends. Without
    /// it, a writing transaction has the database to itself.
    fn can_lock_rows(&self) -> bool;

    /// Makes a read use this index, where the optimizer could choose worse.
    fn force_index(&self, select: &mut SelectStatement, index: &str);

    /// The name of an index. Where such names are shared by all tables of a
    /// database, the table's name has to be part of it.
    fn index_name(&self, table: Ident, name: &str) -> String;

    /// Whether indexes are part of the statement that creates the table.
    fn has_inline_indexes(&self) -> bool;

    /// Most `?` in one statement.
    fn binds_max(&self) -> usize;

    /// Writes a query, with the values it binds.
    fn write(&self, query: &Query) -> (String, Values);

    /// Writes the statement that creates a table.
    fn write_table(&self, table: &TableCreateStatement) -> String;

    /// Writes the statement that creates an index.
    fn write_index(&self, index: &IndexCreateStatement) -> String;
}

/// A query for a dialect to write.
#[derive(Clone, Debug)]
#[expect(missing_docs, reason = "the names say it")]
pub enum Query {
    Select(SelectStatement),
    Insert(InsertStatement),
    Update(UpdateStatement),
    Delete(DeleteStatement),
}
