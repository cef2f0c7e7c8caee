//! Enqueue: a job becomes a row.

use std::time::Duration;

use crate::{key::IdempotencyKey, time::DbTime, value::Value};

/// When a job falls due.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Due {
    /// As soon as it is enqueued, by the database's clock.
    #[default]
    Now,
    /// This long after it is enqueued, by the database's clock.
    In(Duration),
    /// At an instant that the domain gives, such as a departure. Never an
    /// instant that was read from this machine's clock.
    At(DbTime),
}

/// A job as it is about to be stored.
#[derive(Clone, Debug, PartialEq)]
pub struct NewJob {
    /// The shard it belongs to.
    pub shard_id: u16,
    /// The readable shard key, when the job type keeps it.
    pub shard_key: Option<String>,
    /// The key that makes it unique.
    pub idempotency_key: IdempotencyKey,
    /// When it falls due.
    pub due: Due,
    /// How much later than due it starts, to spread work.
    pub spread: Duration,
    /// The struct's own columns, in the schema's order.
    pub columns: Vec<Value>,
    /// The JSON of the other fields.
    pub payload: Option<String>,
}

impl NewJob {
    /// About how many bytes the row takes on the wire.
    #[must_use]
    pub fn wire_bytes(&self) -> usize {
        const FIXED_BYTES: usize = 160;
        let columns: usize = self.columns.iter().map(Value::wire_bytes).sum();
        let payload = self.payload.as_ref().map_or(0, String::len);
        let shard_key = self.shard_key.as_ref().map_or(0, String::len);
        FIXED_BYTES + columns + payload + shard_key
    }
}

/// What became of a job that was enqueued.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Enqueued {
    /// The row's id.
    pub id: u64,
    /// Whether this call made the row; `false` when the key was already there
    /// and nothing was changed.
    pub is_new: bool,
}
