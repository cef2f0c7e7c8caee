//! An SQLite connection that runs statements of the catalogue.

use std::sync::Arc;

use chrono::NaiveDate;
use retryjob_core::{ColumnType, DbTime, Error, ErrorKind, Value, sql::Statement};
use sqlx::{
    AssertSqlSafe, Column as _, Row as _, Sqlite, SqliteConnection,
    query::Query,
    sqlite::{SqliteArguments, SqliteRow},
};

use super::error;
use crate::{
    fault::Fault,
    session::{Done, Row, Session},
};

impl Session for SqliteConnection {
    async fn execute(&mut self, statement: &Statement, values: Vec<Value>) -> Result<Done, Fault> {
        let done = query(statement, values).execute(self).await;
        let done = done.map_err(error::fault)?;
        Ok(Done {
            matched: done.rows_affected(),
            last_id: done.last_insert_rowid().cast_unsigned(),
        })
    }

    async fn rows(&mut self, statement: &Statement, values: Vec<Value>) -> Result<Vec<Row>, Fault> {
        let rows = query(statement, values).fetch_all(self).await;
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

fn query(statement: &Statement, values: Vec<Value>) -> Query<'static, Sqlite, SqliteArguments> {
    let query = sqlx::query(AssertSqlSafe(Arc::clone(statement.sql())));
    values.into_iter().fold(query, bind)
}

pub(super) fn bind(
    query: Query<'static, Sqlite, SqliteArguments>,
    value: Value,
) -> Query<'static, Sqlite, SqliteArguments> {
    match value {
        Value::Null => query.bind(None::<i64>),
        Value::Bool(flag) => query.bind(i64::from(flag)),
        Value::I64(number) => query.bind(number),
        // There is no unsigned type: the same bits, and back when read.
        Value::U64(number) => query.bind(number.cast_signed()),
        Value::F64(number) => query.bind(number),
        Value::Text(text) => query.bind(text),
        Value::Bytes(bytes) => query.bind(bytes),
        Value::Date(date) => query.bind(date.format("%Y-%m-%d").to_string()),
        Value::DateTime(at) => query.bind(DbTime::from_utc(at).us()),
    }
}

fn decode_row(row: &SqliteRow, reads: &[ColumnType]) -> Result<Row, Fault> {
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

fn decode(row: &SqliteRow, at: usize, kind: ColumnType) -> Result<Value, sqlx::Error> {
    use ColumnType as T;
    let integer = || row.try_get::<Option<i64>, _>(at);
    let value = match kind {
        T::Bool => integer()?.map(|number| Value::Bool(number != 0)),
        T::I8 | T::I16 | T::I32 | T::I64 => integer()?.map(Value::I64),
        // A negative number stays one: the job it belongs to is refused by its
        // field, and the others are not.
        T::U8 | T::U16 | T::U32 => {
            integer()?.map(|number| u64::try_from(number).map_or(Value::I64(number), Value::U64))
        }
        T::U64 => integer()?.map(|number| Value::U64(number.cast_unsigned())),
        T::F64 => row.try_get::<Option<f64>, _>(at)?.map(Value::F64),
        T::Varchar { .. } | T::Text => row.try_get::<Option<String>, _>(at)?.map(Value::Text),
        T::Binary { .. } | T::Varbinary { .. } => {
            row.try_get::<Option<Vec<u8>>, _>(at)?.map(Value::Bytes)
        }
        T::Date => {
            let text = row.try_get::<Option<String>, _>(at)?;
            // What is no date is left for the field to refuse.
            text.map(|text| {
                NaiveDate::parse_from_str(&text, "%Y-%m-%d").map_or(Value::Text(text), Value::Date)
            })
        }
        T::DateTime => integer()?.map(|us| Value::DateTime(DbTime::from_us(us).to_utc())),
    };
    Ok(value.unwrap_or(Value::Null))
}
