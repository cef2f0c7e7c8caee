//! What an operation needs of a connection.

use std::future::Future;

use retryjob_core::{ColumnValue, Error, ErrorKind, Value, sql::Statement};

use crate::fault::Fault;

/// A row, its columns decoded as the statement says.
pub(crate) type Row = Vec<Value>;

/// What a statement that writes did.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Done {
    /// Rows that its WHERE matched, changed or not.
    pub(crate) matched: u64,
    /// The id that the last inserted row got.
    pub(crate) last_id: u64,
}

/// A connection that runs statements of the catalogue.
pub(crate) trait Session: Send {
    /// Runs a statement that writes.
    fn execute(
        &mut self,
        statement: &Statement,
        values: Vec<Value>,
    ) -> impl Future<Output = Result<Done, Fault>> + Send;

    /// Runs a statement that reads; each row holds what
    /// [`Statement::reads`] names.
    fn rows(
        &mut self,
        statement: &Statement,
        values: Vec<Value>,
    ) -> impl Future<Output = Result<Vec<Row>, Fault>> + Send;

    /// Runs a text without values, such as one that creates a table.
    fn run(&mut self, sql: &str) -> impl Future<Output = Result<(), Fault>> + Send;

    /// What an error of the driver means.
    fn fault(error: sqlx::Error) -> Fault;
}

/// The columns of a row, taken in order.
pub(crate) struct Fields(std::vec::IntoIter<Value>);

impl Fields {
    pub(crate) fn of(row: Row) -> Self {
        Self(row.into_iter())
    }

    /// The next column as this type.
    pub(crate) fn take<T: ColumnValue>(&mut self, column: &str) -> Result<T, Fault> {
        let value = self.0.next().unwrap_or(Value::Null);
        T::from_value(value).map_err(|source| {
            Fault::Final(Error::with_source(
                ErrorKind::Database,
                format!("column `{column}` holds what it never should"),
                source,
            ))
        })
    }

    /// All columns that are left.
    pub(crate) fn rest(self) -> Vec<Value> {
        self.0.collect()
    }
}
