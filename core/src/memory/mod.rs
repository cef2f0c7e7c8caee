//! The reference backend: a few maps, and a clock that tests move.
//!
//! Property tests compare every database with it, and users' unit tests run
//! on it. It moves jobs by [`Status::after`](crate::Status::after) alone, and
//! is short enough to be checked by reading.

mod assert;
mod backend;
mod clock;
mod drain;
mod nodes;
mod row;

mod shards;
mod table;
mod tx;

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

pub use self::drain::DRAIN_ATTEMPTS_MAX;
pub use self::{
    clock::MemoryClock,
    row::JobRow,
    tx::{MemoryConnection, MemoryTx},
};
use self::{clock::START, nodes::Nodes, table::Table};
use crate::{
    error::{Error, ErrorKind, Result},
    job::{Parts, RetryJob},
    op::{finish::Finish, nodes::NodeName, reap::Lapsed},
    schema::JobSchema,
    time::DbTime,
};

/// Most bytes of one job: what MySQL 5.7 takes unless told otherwise, the
/// least of all supported servers. What passes here passes there.
pub const JOB_BYTES_MAX: usize = 4 * 1024 * 1024;

/// A database in memory, for tests: no server, no files, no waiting.
///
/// It keeps the same promises as the other backends and is held to them by
/// the same suite, so what a handler does here it does there. Clones share
/// their jobs and their clock, and real time does not move that clock: see
/// [`clock`](Self::clock).
///
/// # Examples
///
/// ```
/// use std::time::Duration;
/// use retryjob_core::{
///     Backend as _, Ident, IdempotencyKey, JobSchema, Status,
///     memory::Memory,
///     op::enqueue::{Due, NewJob},
/// };
///
/// const MAIL: JobSchema = JobSchema::new(Ident::new("mail")).checked();
///
/// # let runtime = tokio::runtime::Builder::new_current_thread().build()?;
/// # runtime.block_on(async {
/// let memory = Memory::new(&MAIL);
/// let mail = NewJob {
///     shard_id: 0,
///     shard_key: None,
///     idempotency_key: IdempotencyKey::random(),
///     due: Due::In(Duration::from_secs(60)),
///     spread: Duration::ZERO,
///     columns: Vec::new(),
///     payload: Some("{}".into()),
/// };
/// memory.enqueue(vec![mail]).await?;
/// memory.clock().advance(Duration::from_secs(60));
///
/// let row = &memory.rows()[0];
/// assert_eq!(row.status, Status::Pending);
/// assert_eq!(row.due_at, memory.clock().now());
/// # Ok::<(), retryjob_core::Error>(())
/// # })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Memory {
    schema: &'static JobSchema,
    shared: Shared,
}

/// What all clones and connections have in common.
#[derive(Clone, Debug)]
struct Shared(Arc<Mutex<State>>);

#[derive(Debug)]
struct State {
    now: DbTime,
    tables: BTreeMap<&'static str, Table>,
    nodes: Nodes,
}

impl Memory {
    /// An empty database with the table of this job type installed.
    #[must_use]
    pub fn new(schema: &'static JobSchema) -> Self {
        let memory = Self::without_table(schema);
        let table = Table::new(schema);
        let mut state = memory.shared.lock();
        state.tables.insert(schema.table.as_str(), table);
        drop(state);
        memory
    }

    fn without_table(schema: &'static JobSchema) -> Self {
        Self {
            schema,
            shared: Shared(Arc::new(Mutex::new(State {
                now: START,
                tables: BTreeMap::new(),
                nodes: Nodes::default(),
            }))),
        }
    }

    /// The clock of this database. It moves when told to, and not otherwise.
    #[must_use]
    pub fn clock(&self) -> MemoryClock {
        MemoryClock::new(self.shared.clone())
    }

    /// The rows of the job table, by id; none before it is installed.
    #[must_use]
    pub fn rows(&self) -> Vec<JobRow> {
        self.read(self.schema, Table::rows)
    }

    /// The rows that moved to the history table, by id.
    #[must_use]
    pub fn history(&self) -> Vec<JobRow> {
        self.read(self.schema, Table::history)
    }

    /// The nodes that sent a heartbeat for this job type and are remembered,
    /// sorted, and when the membership of each ends or ended.
    #[must_use]
    pub fn nodes(&self) -> Vec<(NodeName, DbTime)> {
        self.shared.lock().nodes.known(self.schema)
    }

    /// The jobs in the table of `J`, by id, each with its row.
    ///
    /// [`assert_enqueued!`](crate::assert_enqueued) is made of it.
    ///
    /// # Panics
    ///
    /// When a row is not a job of this type.
    #[must_use]
    pub fn jobs<J: RetryJob>(&self) -> Vec<(JobRow, J)> {
        let rows = self.read(J::schema(), Table::rows);
        let decoded = rows.into_iter().map(|row| {
            let parts = Parts::new(row.columns.clone(), row.payload.clone());
            match J::decode(parts) {
                Ok(job) => (row, job),
                Err(error) => panic!("row {} can't be decoded: {error}", row.id),
            }
        });
        decoded.collect()
    }

    /// The first half of [`reap`](crate::Backend::reap): leases that have
    /// lapsed, longest first. Changes nothing.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Schema`] before the table is installed.
    pub async fn look_lapsed(&self, limit: u16) -> Result<Vec<Lapsed>> {
        self.on_table(|table, now| Ok(table.lapsed(limit.into(), now)))
    }

    /// The second half: takes back those that still are as they were seen, and
    /// says which.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Schema`] before the table is installed.
    pub async fn take_back(&self, lapsed: Vec<Lapsed>) -> Result<Vec<Finish>> {
        let policy = &self.schema.retry;
        self.on_table(|table, now| {
            let finishes = lapsed.into_iter().map(|lapsed| lapsed.finish(policy));
            Ok(finishes
                .filter(|finish| table.take_back(finish, now))
                .collect())
        })
    }

    fn read(&self, schema: &JobSchema, of: impl Fn(&Table) -> Vec<JobRow>) -> Vec<JobRow> {
        let state = self.shared.lock();
        let table = state.tables.get(schema.table.as_str());
        table.map(of).unwrap_or_default()
    }

    /// Runs one operation while nobody else can: a transaction of its own.
    fn on_table<T>(&self, work: impl FnOnce(&mut Table, DbTime) -> Result<T>) -> Result<T> {
        let mut state = self.shared.lock();
        let now = state.now;
        work(state.table(self.schema)?, now)
    }
}

impl Shared {
    /// Never held over an await, and no operation panics halfway, so a
    /// poisoned lock guards nothing broken.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn table(&mut self, schema: &JobSchema) -> Result<&mut Table> {
        let name = schema.table.as_str();
        self.tables.get_mut(name).ok_or_else(|| {
            Error::new(
                ErrorKind::Schema,
                format!("there is no table `{name}`; call `install` first"),
            )
        })
    }
}
