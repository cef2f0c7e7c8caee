//! The const description of a job type: what the derive emits, and all that
//! the statements are made from.

use std::time::Duration;

use crate::{
    ident::Ident,
    retry::{Backoff, RetryPolicy},
    shard::SHARDS_MAX,
    value::ColumnType,
};

/// Most jobs in one claim, finish or reap.
pub const BATCH_MAX: u16 = 1000;

/// Bytes that MySQL allows in the key of one index.
pub const INDEX_BYTES_MAX: u32 = 3072;

/// Bytes that MySQL allows for all columns of a row.
pub const ROW_BYTES_MAX: u32 = 65_535;

/// The table of nodes: one for all job types of a database.
pub const NODE_TABLE: Ident = Ident::new("retryjob_node");

/// The table of the leases of shards: one for all job types of a database.
pub const SHARD_TABLE: Ident = Ident::new("retryjob_shard");

/// Bytes of a row that the framework's own columns take, generously.
const OWN_ROW_BYTES: u32 = 1200;

/// Everything that is fixed about a job type.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct JobSchema {
    /// The job table.
    pub table: Ident,
    /// What the framework's own columns are called.
    pub names: ColumnNames,
    /// The struct's own columns, in the order of the fields.
    pub columns: &'static [Column],
    /// Whether some field travels as JSON; without one there is no `payload`.
    pub has_payload: bool,
    /// Whether the idempotency key is made of `unique` fields, or random.
    pub has_unique: bool,
    /// The column that keeps the shard key of a template readable.
    pub shard_key_column: Option<Ident>,
    /// Number of shards.
    pub shards: u16,
    /// How long a claim is valid unless renewed.
    pub lease: Duration,
    /// How long one attempt may take.
    pub timeout: Option<Duration>,
    /// When to try again.
    pub retry: RetryPolicy,
    /// How a batch is shared between new and retried jobs.
    pub lanes: Lanes,
    /// Most jobs in one claim.
    pub batch: u16,
    /// The window that due times are spread over.
    pub spread: Option<Duration>,
    /// What becomes of rows that reach SUCCESS.
    pub finished: Finished,
    /// What a claim leases.
    pub lease_by: LeaseBy,
}

/// One of the struct's own columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Column {
    /// Its name.
    pub name: Ident,
    /// Its type.
    pub kind: ColumnType,
    /// Whether it takes NULL.
    pub nullable: bool,
    /// Whether it has an index of its own.
    pub index: bool,
}

/// What the framework's own columns are called in this table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(
    missing_docs,
    reason = "each holds the name of the column it is called after"
)]
pub struct ColumnNames {
    pub id: Ident,
    pub shard_id: Ident,
    pub status: Ident,
    pub next_attempt_at: Ident,
    pub due_at: Ident,
    pub attempt_no: Ident,
    pub lease_owner: Ident,
    pub lease_seq: Ident,
    pub lease_until: Ident,
    pub idempotency_key: Ident,
    pub payload: Ident,
    pub last_error: Ident,
    pub created_at: Ident,
    pub updated_at: Ident,
}

impl ColumnNames {
    /// Every column under its own name.
    pub const DEFAULT: Self = Self {
        id: Ident::new("id"),
        shard_id: Ident::new("shard_id"),
        status: Ident::new("status"),
        next_attempt_at: Ident::new("next_attempt_at"),
        due_at: Ident::new("due_at"),
        attempt_no: Ident::new("attempt_no"),
        lease_owner: Ident::new("lease_owner"),
        lease_seq: Ident::new("lease_seq"),
        lease_until: Ident::new("lease_until"),
        idempotency_key: Ident::new("idempotency_key"),
        payload: Ident::new("payload"),
        last_error: Ident::new("last_error"),
        created_at: Ident::new("created_at"),
        updated_at: Ident::new("updated_at"),
    };

    const fn all(&self) -> [Ident; 14] {
        [
            self.id,
            self.shard_id,
            self.status,
            self.next_attempt_at,
            self.due_at,
            self.attempt_no,
            self.lease_owner,
            self.lease_seq,
            self.lease_until,
            self.idempotency_key,
            self.payload,
            self.last_error,
            self.created_at,
            self.updated_at,
        ]
    }
}

/// Which share of a batch new and retried jobs get while both are waiting.
///
/// What one lane leaves unused goes to the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lanes {
    /// Weight of PENDING jobs; at least 1.
    pub fresh: u16,
    /// Weight of RETRY jobs; at least 1.
    pub retry: u16,
}

impl Lanes {
    /// Three new jobs for every retried one.
    pub const DEFAULT: Self = Self { fresh: 3, retry: 1 };
}

/// What becomes of a row when its job reaches SUCCESS.
///
/// A key is unique as long as its row is kept: with `Delete` and `History` the
/// same job can be enqueued again once it has succeeded. Rows that reach DEAD
/// stay for an operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Finished {
    /// It stays in the job table.
    #[default]
    Keep,
    /// It moves to the table `<table>_history`, in the same transaction.
    History,
    /// It is deleted.
    Delete,
}

/// What a claim leases.
///
/// Under a shard's lease a claim of new jobs writes nothing and a finish writes
/// each row once, so that far more jobs pass; jobs that are tried again are
/// leased row by row all the same. In exchange the rows of jobs that run look
/// as if they waited, an operator may hold or cancel them, and new jobs of a
/// shard whose node crashed wait until its lease has lapsed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum LeaseBy {
    /// Each job's row has a lease of its own.
    #[default]
    Row,
    /// A node has a lease of the shard, and the jobs of that shard with it.
    Shard,
}

impl JobSchema {
    /// What a struct without any options has.
    #[must_use]
    pub const fn new(table: Ident) -> Self {
        Self {
            table,
            names: ColumnNames::DEFAULT,
            columns: &[],
            has_payload: true,
            has_unique: false,
            shard_key_column: None,
            shards: 16,
            lease: Duration::from_secs(60),
            timeout: None,
            retry: RetryPolicy::DEFAULT,
            lanes: Lanes::DEFAULT,
            batch: 500,
            spread: None,
            finished: Finished::Keep,
            lease_by: LeaseBy::Row,
        }
    }

    /// Checks the rules that only the whole description can show. The derive
    /// emits the call inside a `const`, where a panic is a compile error.
    ///
    /// # Panics
    ///
    /// When a rule is broken: bounds of `shards`, `batch`, `lease` and the
    /// policy, two columns of one name, an index over more than
    /// [`INDEX_BYTES_MAX`], a row over [`ROW_BYTES_MAX`].
    #[must_use]
    pub const fn checked(self) -> Self {
        assert!(
            self.shards >= 1 && self.shards <= SHARDS_MAX,
            "`shards` must be 1 to 4096"
        );
        assert!(
            self.batch >= 1 && self.batch <= BATCH_MAX,
            "`batch` must be 1 to 1000"
        );
        assert!(
            self.lease.as_millis() >= 100,
            "`lease` must be at least 100ms"
        );
        assert!(
            self.lanes.fresh >= 1 && self.lanes.retry >= 1,
            "a lane's share must be at least 1"
        );
        assert!(
            self.table.as_str().len() <= 56,
            "the name of a table has at most 56 bytes, since `_history` may follow"
        );
        assert!(
            !same(self.table.as_str(), NODE_TABLE.as_str()),
            "`retryjob_node` is the table of nodes, which all job types share"
        );
        assert!(
            !same(self.table.as_str(), SHARD_TABLE.as_str()),
            "`retryjob_shard` is the table of shards, which all job types share"
        );
        self.check_policy();
        self.check_names();
        self.check_bytes();
        self
    }

    const fn check_policy(&self) {
        assert!(
            self.retry.max_attempts >= 1,
            "`max_attempts` must be at least 1"
        );
        if let Some(after) = self.retry.manual_after {
            assert!(
                after < self.retry.max_attempts,
                "`manual_after` must be below `max_attempts`"
            );
        }
        if let Backoff::Schedule { delays } = self.retry.backoff {
            assert!(
                !delays.is_empty(),
                "`schedule` must have at least one delay"
            );
        }
    }

    const fn check_names(&self) {
        let own = self.names.all();
        let mut at = 0;
        while at < own.len() {
            let mut other = at + 1;
            while other < own.len() {
                assert!(
                    !same(own[at].as_str(), own[other].as_str()),
                    "two of the framework's columns have the same name"
                );
                other += 1;
            }
            at += 1;
        }
        let mut at = 0;
        while at < self.columns.len() {
            let name = self.columns[at].name.as_str();
            let mut other = 0;
            while other < own.len() {
                assert!(
                    !same(name, own[other].as_str()),
                    "a field's column has the name of one of the framework's columns"
                );
                other += 1;
            }
            let mut other = at + 1;
            while other < self.columns.len() {
                assert!(
                    !same(name, self.columns[other].name.as_str()),
                    "two fields' columns have the same name"
                );
                other += 1;
            }
            at += 1;
        }
        if let Some(shard_key) = self.shard_key_column {
            self.check_shard_key(shard_key.as_str());
        }
    }

    const fn check_shard_key(&self, name: &str) {
        let own = self.names.all();
        let mut is_taken = false;
        let mut at = 0;
        while at < own.len() {
            is_taken |= same(name, own[at].as_str());
            at += 1;
        }
        let mut at = 0;
        while at < self.columns.len() {
            is_taken |= same(name, self.columns[at].name.as_str());
            at += 1;
        }
        assert!(
            !is_taken,
            "the shard key's column has the name of another column"
        );
    }

    const fn check_bytes(&self) {
        let mut row_bytes = OWN_ROW_BYTES;
        let mut at = 0;
        while at < self.columns.len() {
            let column = self.columns[at];
            row_bytes += column.kind.row_bytes();
            if column.index {
                let bytes = column.kind.index_bytes();
                assert!(
                    bytes > 0,
                    "a TEXT column can't have an index; give `type = \"VARCHAR(n)\"`"
                );
                assert!(
                    bytes <= INDEX_BYTES_MAX,
                    "an index has at most 3072 bytes, and a character of VARCHAR counts 4; give a shorter `type`"
                );
            }
            at += 1;
        }
        assert!(
            row_bytes <= ROW_BYTES_MAX,
            "the columns take more than the 65535 bytes of a row; a character of VARCHAR counts 4"
        );
    }
}

/// Whether two names are the same to a database: ASCII case does not count.
const fn same(a: &str, b: &str) -> bool {
    a.eq_ignore_ascii_case(b)
}
