//! A database of its own for every test, and ways to look at it from outside.

pub mod memory;
pub mod server;
pub mod sqlite;

use std::time::Duration;

use retryjob_core::{
    Backend, DbTime, IdempotencyKey, JobSchema,
    memory::JobRow,
    op::{finish::Finish, nodes::NodeName, reap::Lapsed},
    sql::Catalogue,
};

use crate::history::Moved;

/// A connection that the backend's transactions run on.
pub type ConnectionOf<D> = <<D as TestDatabase>::Backend as Backend>::Connection;

/// A fresh database that is gone when the test ends, failed or not.
pub trait TestDatabase: Sized + Send + Sync + 'static {
    type Backend: Backend;

    /// URLs that this backend has to refuse.
    const BAD_URLS: &'static [&'static str];

    /// Whether its clock moves of itself.
    const CLOCK_RUNS: bool = true;

    fn create() -> impl Future<Output = Self> + Send;

    /// The backend under test, on this database.
    fn connect(&self, schema: &'static JobSchema) -> impl Future<Output = Self::Backend> + Send;

    /// The rows of the job table by id, read past the backend.
    fn rows(&self, schema: &'static JobSchema) -> impl Future<Output = Vec<JobRow>> + Send;

    /// The rows of the history table by id.
    fn history(&self, schema: &'static JobSchema) -> impl Future<Output = Vec<JobRow>> + Send;

    /// The nodes of the job type that the table of nodes holds, sorted, and when
    /// the membership of each ends.
    fn memberships(
        &self,
        schema: &'static JobSchema,
    ) -> impl Future<Output = Vec<(NodeName, DbTime)>> + Send;

    /// Lets this much time go by for the rows of a table, and for its nodes: the clock of the
    /// memory is moved on; where it can't be, every instant is moved back.
    fn pass(&self, schema: &'static JobSchema, span: Duration) -> impl Future<Output = ()> + Send;

    /// A write of the caller's own, in the caller's transaction.
    fn note(&self, connection: &mut ConnectionOf<Self>) -> impl Future<Output = ()> + Send;

    /// How many notes were committed.
    fn notes(&self) -> impl Future<Output = usize> + Send;

    /// The first half of a reap.
    fn look_lapsed(backend: &Self::Backend, limit: u16)
    -> impl Future<Output = Vec<Lapsed>> + Send;

    /// The second half.
    fn take_back(
        backend: &Self::Backend,
        lapsed: Vec<Lapsed>,
    ) -> impl Future<Output = Vec<Finish>> + Send;

    /// More bytes than one job may have; `None` where that is more than a
    /// test should allocate.
    fn oversize_bytes(&self) -> impl Future<Output = Option<usize>> + Send;

    /// The nodes of the job type that the table of nodes holds, sorted.
    fn nodes(&self, schema: &'static JobSchema) -> impl Future<Output = Vec<NodeName>> + Send {
        async move {
            let memberships = self.memberships(schema).await;
            memberships.into_iter().map(|(node, _)| node).collect()
        }
    }

    /// The backend with its table in place.
    fn installed(&self, schema: &'static JobSchema) -> impl Future<Output = Self::Backend> + Send {
        async move {
            let backend = self.connect(schema).await;
            backend.install().await.unwrap();
            backend
        }
    }

    /// One row, which has to be there.
    fn row(&self, schema: &'static JobSchema, id: u64) -> impl Future<Output = JobRow> + Send {
        async move {
            let rows = self.rows(schema).await;
            let found = rows.into_iter().find(|row| row.id == id);
            found.unwrap_or_else(|| panic!("there is no row {id}"))
        }
    }
}

/// A database that SQL can be sent to.
pub trait SqlDatabase: TestDatabase {
    /// Spoils the installed table in ways that `install` has to name: each
    /// with the name that its message must have.
    fn spoil(&self, schema: &'static JobSchema) -> impl Future<Output = Vec<&'static str>> + Send;

    /// The name of the index that claims read by.
    fn claim_index(&self, schema: &'static JobSchema) -> String;

    /// The statement that drops an index.
    fn drop_index_sql(&self, schema: &'static JobSchema, index: &str) -> String;

    /// How the table was created, as the database tells it.
    fn create_sql(&self, schema: &'static JobSchema) -> impl Future<Output = String> + Send;

    /// Every statement of this backend.
    fn catalogue(backend: &Self::Backend) -> &Catalogue;

    /// The numbers in the first column of what a query answers, sorted.
    fn ids(&self, sql: &str) -> impl Future<Output = Vec<u64>> + Send;

    /// Runs a statement on a connection of its own.
    fn execute(&self, sql: &str) -> impl Future<Output = ()> + Send;

    /// What a process of its own connects with.
    fn url(&self) -> String;

    /// Has every change of this table noted from now on.
    fn watch(&self, schema: &'static JobSchema) -> impl Future<Output = ()> + Send;

    /// What was noted.
    fn moves(&self) -> impl Future<Output = Vec<Moved>> + Send;

    /// Whether only one transaction at a time can write.
    const HAS_ONE_WRITER: bool = false;

    /// Transactions of other connections to this database.
    fn open_transactions(&self) -> impl Future<Output = usize> + Send;

    /// The rows of a statement that selects two whole numbers.
    fn pairs(&self, sql: &str) -> impl Future<Output = Vec<(u64, u64)>> + Send;
}

/// A database that locks single rows.
pub trait RowLocks: SqlDatabase {
    /// A transaction that has locked a row.
    type Lock: Send;

    fn lock_row(
        &self,
        schema: &'static JobSchema,
        id: u64,
    ) -> impl Future<Output = Self::Lock> + Send;

    /// Changes what was locked, and commits.
    fn change(&self, lock: Self::Lock, sql: &str) -> impl Future<Output = ()> + Send;

    /// Whether a transaction waits for a lock in this database.
    fn is_any_waiting(&self) -> impl Future<Output = bool> + Send;
}

pub(crate) fn random_name() -> String {
    let number = IdempotencyKey::random().to_u64();
    format!("retryjob_test_{number:016x}")
}
