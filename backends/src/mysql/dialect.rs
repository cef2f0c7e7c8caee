//! How MySQL and MariaDB write the catalogue.

use retryjob_core::{
    ColumnType, Ident,
    sql::{Dialect, Query},
};
use sea_query::{
    ColumnDef, Expr, ExprTrait as _, Func, IndexCreateStatement, MysqlQueryBuilder,
    SelectStatement, TableCreateStatement, Values,
    extension::mysql::{IndexHintScope, MySqlSelectStatementExt as _},
};

/// Collation of every text column: compares bytes, and is there on all servers.
pub(super) const COLLATION: &str = "utf8mb4_bin";

/// MySQL and MariaDB, with or without `SKIP LOCKED`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MysqlDialect {
    name: &'static str,
    can_skip_locked: bool,
}

impl MysqlDialect {
    /// With `SKIP LOCKED`.
    #[cfg(feature = "mysql8")]
    pub(crate) const SKIPPING: Self = Self {
        name: "mysql8",
        can_skip_locked: true,
    };

    /// Without.
    #[cfg(feature = "mysql57")]
    pub(crate) const PLAIN: Self = Self {
        name: "mysql57",
        can_skip_locked: false,
    };
}

/// `MICROSECOND` as the unit of a function of time.
fn microsecond() -> Expr {
    Expr::custom_keyword("MICROSECOND")
}

impl Dialect for MysqlDialect {
    fn name(&self) -> &'static str {
        self.name
    }

    fn now(&self) -> Expr {
        Func::cust("UTC_TIMESTAMP").arg(Expr::cust("6")).into()
    }

    fn plus_us(&self, at: Expr, us: Expr) -> Expr {
        Func::cust("TIMESTAMPADD")
            .args([microsecond(), us, at])
            .into()
    }

    fn us_between(&self, earlier: Expr, later: Expr) -> Expr {
        Func::cust("TIMESTAMPDIFF")
            .args([microsecond(), earlier, later])
            .into()
    }

    fn type_text(&self, kind: ColumnType) -> String {
        match kind {
            ColumnType::Bool | ColumnType::U8 => "tinyint unsigned".into(),
            ColumnType::I8 => "tinyint".into(),
            ColumnType::I16 => "smallint".into(),
            ColumnType::I32 => "int".into(),
            ColumnType::I64 => "bigint".into(),
            ColumnType::U16 => "smallint unsigned".into(),
            ColumnType::U32 => "int unsigned".into(),
            ColumnType::U64 => "bigint unsigned".into(),
            ColumnType::F64 => "double".into(),
            ColumnType::Varchar { chars } => format!("varchar({chars}) collate {COLLATION}"),
            ColumnType::Text => format!("longtext collate {COLLATION}"),
            ColumnType::Binary { bytes } => format!("binary({bytes})"),
            ColumnType::Varbinary { bytes } => format!("varbinary({bytes})"),
            ColumnType::Date => "date".into(),
            ColumnType::DateTime => "datetime(6)".into(),
        }
    }

    fn numbered(&self, column: &mut ColumnDef) {
        column.auto_increment();
    }

    /// Two ranges of one index; a comparison of rows would be none.
    fn comes_after(&self, [first, second]: [Expr; 2], [than, then]: [Expr; 2]) -> Expr {
        let is_later = first.clone().gt(than.clone());
        is_later.or(first.eq(than).and(second.gt(then)))
    }

    fn can_skip_locked(&self) -> bool {
        self.can_skip_locked
    }

    fn can_lock_rows(&self) -> bool {
        true
    }

    fn force_index(&self, select: &mut SelectStatement, index: &str) {
        select.force_index(index.to_owned(), IndexHintScope::All);
    }

    fn index_name(&self, _table: Ident, name: &str) -> String {
        name.to_owned()
    }

    fn has_inline_indexes(&self) -> bool {
        true
    }

    fn binds_max(&self) -> usize {
        // The protocol counts them with 16 bits.
        65_535
    }

    fn write(&self, query: &Query) -> (String, Values) {
        match query {
            Query::Select(select) => {
                let (sql, values) = select.build(MysqlQueryBuilder);
                (in_share_mode(sql), values)
            }
            Query::Insert(insert) => insert.build(MysqlQueryBuilder),
            Query::Update(update) => update.build(MysqlQueryBuilder),
            Query::Delete(delete) => delete.build(MysqlQueryBuilder),
        }
    }

    fn write_table(&self, table: &TableCreateStatement) -> String {
        let mut table = table.clone();
        // DYNAMIC, since COMPACT allows 767 bytes for an index.
        table
            .engine("InnoDB")
            .character_set("utf8mb4")
            .collate(COLLATION)
            .extra("ROW_FORMAT=DYNAMIC");
        table.build(MysqlQueryBuilder)
    }

    fn write_index(&self, index: &IndexCreateStatement) -> String {
        index.build(MysqlQueryBuilder)
    }
}

/// Words that MySQL 5.7 and MariaDB know as well.
fn in_share_mode(sql: String) -> String {
    match sql.strip_suffix(" FOR SHARE") {
        Some(unlocked) => format!("{unlocked} LOCK IN SHARE MODE"),
        None => sql,
    }
}
