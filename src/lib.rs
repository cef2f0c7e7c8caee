//! A domain struct as a durable, retrying job table in the database you
//! already run: MySQL, MariaDB or SQLite.
//!
//! ```
//! use retryjob::{JobResult, Leased, Outcome, Queue, RetryJob};
//!
//! #[derive(RetryJob)]
//! #[retry_job(table = "charge", shards = 8, retry(schedule = ["5m", "30m", "2h"]))]
//! struct Charge {
//!     #[job(shard_by, unique)]
//!     subscription_id: u64,
//!     #[job(unique)]
//!     period: String,
//!     amount_cents: u64, // travels in the JSON payload
//! }
//!
//! async fn charge(job: Leased<Charge>) -> JobResult {
//!     // The key is the same at every attempt: give it to the payment provider.
//!     println!("{} cents, key {}", job.amount_cents, job.idempotency_key());
//!     Ok(Outcome::Done)
//! }
//!
//! # let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
//! # runtime.block_on(async {
//! # let folder = std::env::temp_dir().join(format!("retryjob-doc-{}", std::process::id()));
//! # std::fs::create_dir_all(&folder)?;
//! # let url = format!("sqlite://{}/jobs.sqlite", folder.display());
//! let queue = Queue::<Charge>::connect(&url).await?;
//! queue.install().await?;
//! let report = queue.doctor().await?; // what the database really gives
//! assert_eq!(report.level(), retryjob::op::doctor::Level::Ok, "{report}");
//! let job = Charge { subscription_id: 7, period: "2026-12".into(), amount_cents: 990 };
//! queue.enqueue(&job).await?;
//! assert!(!queue.enqueue(&job).await?.is_new); // the same charge, once
//!
//! let done = queue.worker(charge).concurrency(64).run_until_idle().await?;
//! assert_eq!(done.success_count, 1);
//! # queue.close().await;
//! # std::fs::remove_dir_all(&folder)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! # })?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Backends
//!
//! One cargo feature each, and additive:
//!
//! | feature | backend | for |
//! | --- | --- | --- |
//! | `sqlite` (default) | `Sqlite` | a file, no server |
//! | `mysql8` | `Mysql8` | MySQL 8 and 9, also MariaDB 10.6 and later: what has `SKIP LOCKED` |
//! | `mysql57` | `Mysql57` | MySQL 5.7, and every server above |
//!
//! [`Queue`]`<J>` is on [`DefaultBackend`]; [`Queue`]`<J, Mysql57>` names
//! another one. [`Memory`] is for unit tests.

pub use retryjob_backends::*;
pub use retryjob_core::{
    Backend, Backoff, Batched, Column, ColumnNames, ColumnType, ColumnValue, Counts, DbTime,
    DecodeError, Due, EncodeError, Enqueued, Error, ErrorKind, Event, Finished, HandlerError,
    IdempotencyKey, Ident, IntoOutcome, JobResult, JobResultExt, JobSchema, KeyEncoder, KeyError,
    Lanes, Lease, LeaseBy, Memory, Node, Operated, Operation, Outcome, Result, RetryJob,
    RetryPolicy, ShardUse, Status, Summary, Transition, Value, ValueError, Verdict, Worker,
    assert_enqueued, event, memory, op, retry, sql,
};
pub use retryjob_derive::RetryJob;

/// Jobs of type `J` in the database `B`: enqueue, operate, and make workers.
///
/// See [`retryjob_core::Queue`].
#[cfg(any(feature = "sqlite", feature = "mysql8", feature = "mysql57"))]
pub type Queue<J, B = DefaultBackend> = retryjob_core::Queue<J, B>;

/// A job under lease, in the database `B`: what a handler gets.
///
/// See [`retryjob_core::Leased`].
#[cfg(any(feature = "sqlite", feature = "mysql8", feature = "mysql57"))]
pub type Leased<J, B = DefaultBackend> = retryjob_core::Leased<J, B>;

#[cfg(not(any(feature = "sqlite", feature = "mysql8", feature = "mysql57")))]
pub use retryjob_core::{Leased, Queue};

/// The backend of a [`Queue`] that names none: `Sqlite` when that feature is
/// on, else `Mysql8`, else `Mysql57`.
#[cfg(feature = "sqlite")]
pub type DefaultBackend = Sqlite;

/// The backend of a [`Queue`] that names none: `Sqlite` when that feature is
/// on, else `Mysql8`, else `Mysql57`.
#[cfg(all(not(feature = "sqlite"), feature = "mysql8"))]
pub type DefaultBackend = Mysql8;

/// The backend of a [`Queue`] that names none: `Sqlite` when that feature is
/// on, else `Mysql8`, else `Mysql57`.
#[cfg(all(not(feature = "sqlite"), not(feature = "mysql8"), feature = "mysql57"))]
pub type DefaultBackend = Mysql57;

/// What generated code names. Not part of the API.
#[doc(hidden)]
pub mod __private {
    pub use chrono;
    pub use retryjob_core as core;
    pub use serde;
}
