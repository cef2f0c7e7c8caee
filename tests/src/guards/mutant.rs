//! A database whose backend runs on a changed catalogue.

use std::{cell::RefCell, sync::Arc, time::Duration};

use retryjob_backends::{Mysql8, Mysql57, Sqlite};
use retryjob_core::{
    DbTime, JobSchema,
    memory::JobRow,
    op::{finish::Finish, nodes::NodeName, reap::Lapsed},
    sql::{Catalogue, Dialect},
};

use super::{Case, changed::Change};
use crate::{
    Mariadb, Mysql8Server, Mysql57Server, SqlDatabase, SqliteFile, TestDatabase,
    conformance_compare_and_set,
    database::{ConnectionOf, RowLocks},
    history::Moved,
    inspect::ServerUnderTest,
    plans::{Plans, ServerPlans, SqlitePlans},
};

/// A database whose backend takes another catalogue.
pub trait Guarded: SqlDatabase {
    fn dialect() -> &'static dyn Dialect;

    /// The catalogue as it is.
    fn statements(schema: &'static JobSchema) -> Arc<Catalogue>;

    #[must_use]
    fn with_catalogue(backend: &Self::Backend, catalogue: Arc<Catalogue>) -> Self::Backend;

    /// The tests that only this database has to pass.
    fn own_cases() -> Vec<Case> {
        Vec::new()
    }

    /// Where its plans are asked for.
    type Plans: Plans;

    fn plans() -> impl Future<Output = Self::Plans> + Send;
}

macro_rules! guarded {
    ($($database:ty: $backend:ty, $plans:ty, $open:expr $(, $own:item)?;)+) => {$(
        impl Guarded for $database {
            fn dialect() -> &'static dyn Dialect {
                <$backend>::dialect()
            }

            fn statements(schema: &'static JobSchema) -> Arc<Catalogue> {
                <$backend>::statements(schema)
            }

            fn with_catalogue(backend: &$backend, catalogue: Arc<Catalogue>) -> $backend {
                backend.with_catalogue(catalogue)
            }

            $($own)?

            type Plans = $plans;

            async fn plans() -> $plans {
                $open.await
            }
        }
    )+};
}

guarded! {
    SqliteFile: Sqlite, SqlitePlans, SqlitePlans::open();
    Mysql8Server: Mysql8, ServerPlans, ServerPlans::filled::<Mysql8>(ServerUnderTest::Mysql8);
    Mysql57Server: Mysql57, ServerPlans, ServerPlans::filled::<Mysql57>(ServerUnderTest::Mysql57),
        fn own_cases() -> Vec<Case> { conformance_compare_and_set!(cases, Mutant<Self>) };
    Mariadb: Mysql8, ServerPlans, ServerPlans::filled::<Mysql8>(ServerUnderTest::Mariadb);
}

thread_local! {
    /// What is changed in the tests of this thread. A test makes its database
    /// itself, so it can't be handed to it.
    static CURRENT: RefCell<Option<Arc<Change>>> = const { RefCell::new(None) };
}

/// Sets what is changed for all that runs in this thread.
pub(super) fn set(change: Option<Arc<Change>>) {
    CURRENT.set(change);
}

/// Whether this thread runs a changed catalogue.
pub(super) fn is_set() -> bool {
    CURRENT.with_borrow(Option::is_some)
}

/// A database whose backend runs on the changed catalogue of this thread.
#[derive(Debug)]
pub struct Mutant<D>(D);

impl<D: Guarded> TestDatabase for Mutant<D> {
    type Backend = D::Backend;
    const BAD_URLS: &'static [&'static str] = D::BAD_URLS;
    const CLOCK_RUNS: bool = D::CLOCK_RUNS;

    async fn create() -> Self {
        Self(D::create().await)
    }
    async fn connect(&self, schema: &'static JobSchema) -> D::Backend {
        let change = CURRENT.with_borrow(Option::clone);
        let change = change.expect("a change is set for every thread of the test");
        let backend = self.0.connect(schema).await;
        D::with_catalogue(&backend, change.catalogue::<D>(schema))
    }
    async fn rows(&self, schema: &'static JobSchema) -> Vec<JobRow> {
        self.0.rows(schema).await
    }
    async fn history(&self, schema: &'static JobSchema) -> Vec<JobRow> {
        self.0.history(schema).await
    }
    async fn memberships(&self, schema: &'static JobSchema) -> Vec<(NodeName, DbTime)> {
        self.0.memberships(schema).await
    }
    async fn pass(&self, schema: &'static JobSchema, span: Duration) {
        self.0.pass(schema, span).await;
    }
    async fn note(&self, connection: &mut ConnectionOf<Self>) {
        self.0.note(connection).await;
    }
    async fn notes(&self) -> usize {
        self.0.notes().await
    }
    async fn look_lapsed(backend: &D::Backend, limit: u16) -> Vec<Lapsed> {
        D::look_lapsed(backend, limit).await
    }
    async fn take_back(backend: &D::Backend, lapsed: Vec<Lapsed>) -> Vec<Finish> {
        D::take_back(backend, lapsed).await
    }
    async fn oversize_bytes(&self) -> Option<usize> {
        self.0.oversize_bytes().await
    }
}

impl<D: Guarded> SqlDatabase for Mutant<D> {
    fn catalogue(backend: &D::Backend) -> &Catalogue {
        D::catalogue(backend)
    }
    async fn spoil(&self, schema: &'static JobSchema) -> Vec<&'static str> {
        self.0.spoil(schema).await
    }
    fn claim_index(&self, schema: &'static JobSchema) -> String {
        self.0.claim_index(schema)
    }
    fn drop_index_sql(&self, schema: &'static JobSchema, index: &str) -> String {
        self.0.drop_index_sql(schema, index)
    }
    const HAS_ONE_WRITER: bool = D::HAS_ONE_WRITER;
    fn url(&self) -> String {
        self.0.url()
    }
    async fn watch(&self, schema: &'static JobSchema) {
        self.0.watch(schema).await;
    }
    async fn moves(&self) -> Vec<Moved> {
        self.0.moves().await
    }
    async fn open_transactions(&self) -> usize {
        self.0.open_transactions().await
    }
    async fn pairs(&self, sql: &str) -> Vec<(u64, u64)> {
        self.0.pairs(sql).await
    }
    async fn create_sql(&self, schema: &'static JobSchema) -> String {
        self.0.create_sql(schema).await
    }
    async fn execute(&self, sql: &str) {
        self.0.execute(sql).await;
    }
    async fn ids(&self, sql: &str) -> Vec<u64> {
        self.0.ids(sql).await
    }
}

impl<D: Guarded + RowLocks> RowLocks for Mutant<D> {
    type Lock = D::Lock;

    async fn lock_row(&self, schema: &'static JobSchema, id: u64) -> D::Lock {
        self.0.lock_row(schema, id).await
    }
    async fn change(&self, lock: D::Lock, sql: &str) {
        self.0.change(lock, sql).await;
    }
    async fn is_any_waiting(&self) -> bool {
        self.0.is_any_waiting().await
    }
}
