//! The core of [`retryjob`](https://docs.rs/retryjob): what a job is, the only
//! list of legal moves, every statement, the worker and the reference backend.
//!
//! No driver, no wall clock and no SQL text by hand. Users depend on
//! `retryjob`; backends depend on this.

pub mod ident;
pub mod time;

pub mod state;

pub mod retry;

pub mod key;

pub mod shard;

pub mod value;

pub mod schema;

pub mod job;

pub mod op;

pub mod sql;

pub mod backend;

pub mod memory;

pub mod error;

pub mod handler;

pub mod event;

pub mod queue;

pub mod batched;

pub mod worker;

#[cfg(test)]
mod tests;

pub use backend::{Backend, ShardUse};
pub use batched::Batched;
pub use error::{Error, ErrorKind, Result};
pub use event::{Event, Transition};
pub use handler::{HandlerError, IntoOutcome, JobResult, JobResultExt, Leased, Outcome};
pub use ident::{Ident, IdentError};
pub use job::{DecodeError, EncodeError, RetryJob};
pub use key::{IdempotencyKey, KeyEncoder, KeyError};
pub use memory::Memory;
pub use op::{
    claim::{Lease, Node},
    counts::Counts,
    enqueue::{Due, Enqueued},
    operate::{Operated, Operation},
};
pub use queue::Queue;
pub use retry::{Backoff, RetryPolicy, Verdict};
pub use schema::{Column, ColumnNames, Finished, JobSchema, Lanes, LeaseBy};
pub use state::{IllegalMove, Move, Status};
pub use time::DbTime;
pub use value::{ColumnType, ColumnValue, Value, ValueError};
pub use worker::{Summary, Worker};
