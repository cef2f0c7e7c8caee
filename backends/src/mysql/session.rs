//! A MySQL connection that runs statements of the catalogue.

use chrono::{NaiveDate, NaiveDateTime};
use retryjob_core::{
    ColumnType, Error, ErrorKind, Value,
    sql::{Slot, Statement},
};
use sqlx::{
    AssertSqlSafe, Column as _, MySql, MySqlConnection, Row as _,
    mysql::{MySqlArguments, MySqlRow},
    query::Query,
};
use std::sync::Arc;

use super::{error, statements::is_kept};
use crate::{
    fault::Fault,
    session::{Done, Row, Session},
};

impl Session for MySqlConnection {
    async fn execute(&mut self, statement: &Statement, values: Vec<Value>) -> Result<Done, Fault> {
        let is_kept = is_kept(self, statement).await?;
        let query = query(statement, values).persistent(is_kept);
        let done = query.execute(self).await;
        let done = done.map_err(error::fault)?;
        Ok(Done {
            // The driver asks for rows that were matched, changed or not.
            matched: done.rows_affected(),
            last_id: done.last_insert_id(),
        })
    }

    async fn rows(&mut self, statement: &Statement, values: Vec<Value>) -> Result<Vec<Row>, Fault> {
        let is_kept = is_kept(self, statement).await?;
        let query = query(statement, values).persistent(is_kept);
        let rows = query.fetch_all(self).await;
        let rows = rows.map_err(error::fault)?;
        rows.iter()
            .map(|row| decode_row(row, statement.reads()))
            .collect()
    }

    async fn run(&mut self, sql: &str) -> Result<(), Fault> {
        let text = sqlx::raw_sql(AssertSqlSafe(sql.to_owned()));
        text.execute(self).await.map(drop).map_err(error::fault)
    }

    fn fault(error: sqlx::Error) -> Fault {
        error::fault(error)
    }
}

fn query(statement: &Statement, values: Vec<Value>) -> Query<'static, MySql, MySqlArguments> {
    let query = sqlx::query(AssertSqlSafe(Arc::clone(statement.sql())));
    let slots = statement.binds().iter().map(|bind| bind.slot);
    slots.zip(values).fold(query, bind)
}

pub(super) fn bind(
    query: Query<'static, MySql, MySqlArguments>,
    (slot, value): (Slot, Value),
) -> Query<'static, MySql, MySqlArguments> {
    match value {
        // An instant is an instant also when it is NULL: the server derives
        // the type of `COALESCE(?, …)` from it.
        Value::Null if slot == Slot::DueAt => query.bind(None::<NaiveDateTime>),
        Value::Null => query.bind(None::<String>),
        Value::Bool(flag) => query.bind(flag),
        Value::I64(number) => query.bind(number),
        Value::U64(number) => query.bind(number),
        Value::F64(number) => query.bind(number),
        Value::Text(text) => query.bind(text),
        Value::Bytes(bytes) => query.bind(bytes),
        Value::Date(date) => query.bind(date),
        Value::DateTime(at) => query.bind(at),
    }
}

fn decode_row(row: &MySqlRow, reads: &[ColumnType]) -> Result<Row, Fault> {
    let decode = |(at, kind): (usize, &ColumnType)| {
        decode(row, at, *kind).map_err(|source| {
            Fault::Final(Error::with_source(
                ErrorKind::Database,
                format!("column `{}` can't be read", row.column(at).name()),
                source,
            ))
        })
    };
    reads.iter().enumerate().map(decode).collect()
}

/// Each type is read as what the server sends for it: `BIGINT UNSIGNED` is no
/// `i64` to the driver, and `BIGINT` no `u64`.
fn decode(row: &MySqlRow, at: usize, kind: ColumnType) -> Result<Value, sqlx::Error> {
    use ColumnType as T;
    let value = match kind {
        T::Bool => row.try_get::<Option<bool>, _>(at)?.map(Value::Bool),
        T::I8 | T::I16 | T::I32 | T::I64 => row.try_get::<Option<i64>, _>(at)?.map(Value::I64),
        T::U8 | T::U16 | T::U32 | T::U64 => row.try_get::<Option<u64>, _>(at)?.map(Value::U64),
        T::F64 => row.try_get::<Option<f64>, _>(at)?.map(Value::F64),
        T::Varchar { .. } | T::Text => row.try_get::<Option<String>, _>(at)?.map(Value::Text),
        T::Binary { .. } | T::Varbinary { .. } => {
            row.try_get::<Option<Vec<u8>>, _>(at)?.map(Value::Bytes)
        }
        T::Date => row.try_get::<Option<NaiveDate>, _>(at)?.map(Value::Date),
        T::DateTime => {
            let at = row.try_get::<Option<NaiveDateTime>, _>(at)?;
            at.map(Value::DateTime)
        }
    };
    Ok(value.unwrap_or(Value::Null))
}
