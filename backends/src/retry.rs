//! Runs an operation from BEGIN, again and again while what stops it passes.
//!
//! ```text
//! acquire ──▶ BEGIN ──▶ run ──▶ COMMIT ──▶ answer
//!    ▲          │        │         │
//!    │          ▼        ▼         ▼
//!    └─ pause ◀── busy: ROLLBACK; lost: close the connection
//! ```
//!
//! A single statement is never run again: after a deadlock the server has
//! undone the whole transaction and left the session in autocommit, so a
//! repeated statement would commit alone.

use std::{io::ErrorKind as ErrorKindOfIo, time::Duration};

use rand::RngExt as _;
use retryjob_core::{Error, ErrorKind, Result, sql::Catalogue};
use sqlx::{Database, Pool, SqlStr, Transaction, pool::PoolConnection};
use tokio::time::Instant;

use crate::{
    fault::Fault,
    kind::{ACQUIRE_MS_MAX, Kind},
    limited::{Limited, within},
    op::Operation,
    session::Session,
};

/// Most times that a busy database is tried.
const TRIES_MAX: u32 = 8;
/// Most times that a silent server is waited for.
const SILENT_TRIES_MAX: u32 = 3;
/// Milliseconds before the second try; each later pause is twice as long.
const PAUSE_MS_MIN: u64 = 5;
/// Milliseconds of the longest pause.
const PAUSE_MS_MAX: u64 = 500;
/// Milliseconds in which a lost server may come back, or fail over.
const LOST_MS_MAX: u64 = 10_000;

/// Counts tries, and pauses between them.
pub(crate) struct Tries {
    made: u32,
    /// Those that a busy database ended: a server that was away first takes
    /// none of them.
    busy: u32,
    /// Those that a silent server ended; their time is not counted.
    silent: u32,
    since: Instant,
    /// When the try that is under way began.
    began: Instant,
}

impl Tries {
    pub(crate) fn new() -> Self {
        Self {
            made: 0,
            busy: 0,
            silent: 0,
            since: Instant::now(),
            began: Instant::now(),
        }
    }

    /// Waits before the next try, or gives up.
    pub(crate) async fn pause(&mut self, fault: Fault) -> Result<()> {
        if !self.may_pass(&fault) {
            return Err(self.given_up(fault));
        }
        tracing::debug!(tries = self.made, ?fault, "runs again from BEGIN");
        if !matches!(fault, Fault::Again) {
            tokio::time::sleep(pause(self.made, self.began.elapsed())).await;
        }
        self.began = Instant::now();
        Ok(())
    }

    /// Counts a try that ended so, and tells whether another may end better.
    fn may_pass(&mut self, fault: &Fault) -> bool {
        self.made += 1;
        match fault {
            Fault::Busy(_) | Fault::Again => {
                self.busy += 1;
                self.busy < TRIES_MAX
            }
            Fault::Lost(sqlx::Error::Io(error)) if error.kind() == ErrorKindOfIo::TimedOut => {
                self.silent += 1;
                self.since = Instant::now();
                self.silent < SILENT_TRIES_MAX
            }
            Fault::Lost(_) => self.since.elapsed() < Duration::from_millis(LOST_MS_MAX),
            Fault::Duplicate(_) | Fault::Exists | Fault::Final(_) => false,
        }
    }

    fn given_up(&self, fault: Fault) -> Error {
        let tries = self.made;
        let seconds = self.since.elapsed().as_secs();
        match fault {
            Fault::Busy(source) => Error::with_source(
                ErrorKind::Transient,
                format!("the database was still busy after {tries} tries; run it again"),
                source,
            ),
            Fault::Lost(source) => Error::with_source(
                ErrorKind::Transient,
                format!("no usable connection to the database for {seconds} s ({tries} tries)"),
                source,
            ),
            other => other.into_error(),
        }
    }
}

/// The pause after this many tries, of which the last one took so long:
/// doubling, and no less than that, then between half and all of it, so that two
/// that collided do not collide again.
fn pause(tries: u32, took: Duration) -> Duration {
    let doubled = PAUSE_MS_MIN.saturating_mul(1 << (tries - 1).min(16));
    let took_ms = u64::try_from(took.as_millis()).unwrap_or(u64::MAX);
    let most_us = doubled.max(took_ms).min(PAUSE_MS_MAX) * 1000;
    Duration::from_micros(rand::rng().random_range(most_us / 2..=most_us))
}

/// Runs an operation in a transaction of its own, or without one when it only
/// reads.
pub(crate) async fn run<K: Kind, O: Operation>(
    pool: &Pool<K::Db>,
    catalogue: &Catalogue,
    mut op: O,
) -> Result<O::Answer> {
    let mut tries = Tries::new();
    let mut is_unsure = false;
    loop {
        match once::<K, O>(pool, catalogue, &mut op, is_unsure).await {
            Ok(answer) => return Ok(answer),
            Err(stopped) => {
                is_unsure |= stopped.may_have_committed;
                tries.pause(stopped.fault).await?;
            }
        }
    }
}

struct Stopped {
    fault: Fault,
    /// The connection was lost while the outcome was under way.
    may_have_committed: bool,
    is_connection_spoilt: bool,
}

impl From<Fault> for Stopped {
    fn from(fault: Fault) -> Self {
        Self {
            may_have_committed: false,
            is_connection_spoilt: fault.spoils_connection(),
            fault,
        }
    }
}

impl Stopped {
    fn while_committing(fault: Fault) -> Self {
        Self {
            may_have_committed: matches!(fault, Fault::Lost(_)),
            ..Self::from(fault)
        }
    }
}

async fn once<K: Kind, O: Operation>(
    pool: &Pool<K::Db>,
    catalogue: &Catalogue,
    op: &mut O,
    is_unsure: bool,
) -> Result<O::Answer, Stopped> {
    let mut seat = Seat::take::<K>(pool).await?;
    let session: &mut <K::Db as Database>::Connection = &mut seat.connection;
    let ran = if O::IS_TRANSACTION {
        in_transaction::<K, O>(session, catalogue, op, is_unsure).await
    } else {
        let limit = K::ANSWER_MAX.map(|limit| limit * O::PATIENCE);
        op.run(&mut Limited { session, limit }, catalogue, is_unsure)
            .await
            .map_err(Stopped::while_committing)
    };
    if let Err(stopped) = &ran {
        K::note_fault(pool, &stopped.fault);
    }
    match &ran {
        Err(stopped) if stopped.is_connection_spoilt => {}
        _ => seat.release(),
    }
    ran
}

async fn in_transaction<K: Kind, O: Operation>(
    session: &mut <K::Db as Database>::Connection,
    catalogue: &Catalogue,
    op: &mut O,
    is_unsure: bool,
) -> Result<O::Answer, Stopped> {
    let begin = Transaction::<K::Db>::begin(session, K::BEGIN.map(SqlStr::from_static));
    let limit = K::ANSWER_MAX.map(|limit| limit * O::PATIENCE);
    let mut tx = within(limit, async { begin.await.map_err(fault::<K>) }).await?;
    let session = &mut Limited {
        session: &mut *tx,
        limit,
    };
    match op.run(session, catalogue, is_unsure).await {
        Ok(answer) => {
            let commit = async { tx.commit().await.map_err(fault::<K>) };
            let committed = within(limit, commit).await;
            committed.map_err(Stopped::while_committing)?;
            Ok(answer)
        }
        Err(fault) => {
            let mut stopped = Stopped::from(fault);
            if !stopped.is_connection_spoilt {
                let rollback = async { tx.rollback().await.map_err(self::fault::<K>) };
                stopped.is_connection_spoilt = within(limit, rollback).await.is_err();
            }
            Err(stopped)
        }
    }
}

/// Opens a transaction for a caller.
pub(crate) async fn begin<K: Kind>(pool: &Pool<K::Db>) -> Result<Transaction<'static, K::Db>> {
    let mut tries = Tries::new();
    loop {
        let seats = pool.clone();
        // In a task of its own, BEGIN is seen through to its answer when the
        // caller drops this future, and the transaction is then undone.
        let begun = tokio::spawn(async move {
            match K::BEGIN_TO_WRITE {
                Some(sql) => seats.begin_with(SqlStr::from_static(sql)).await,
                None => seats.begin().await,
            }
        });
        let begun = async {
            let begun = begun.await.unwrap_or(Err(sqlx::Error::WorkerCrashed));
            begun.map_err(fault::<K>)
        };
        // The pool's own limit comes first where it has no connection.
        let limit = K::ANSWER_MAX.map(|limit| limit + Duration::from_millis(ACQUIRE_MS_MAX));
        let fault = match within(limit, begun).await {
            Ok(tx) => return Ok(tx),
            Err(fault) => fault,
        };
        K::note_fault(pool, &fault);
        tries.pause(fault).await?;
    }
}

pub(crate) fn fault<K: Kind>(error: sqlx::Error) -> Fault {
    <<K::Db as Database>::Connection as Session>::fault(error)
}

/// A connection of the pool, spoilt until its operation has ended well: then it
/// goes back, else it is closed.
///
/// Dropped while BEGIN is under way, the driver leaves a transaction open;
/// dropped within a statement, it can wait for ever for an answer that it has
/// already read. A connection that an operation was dropped on is therefore
/// not used again.
pub(crate) struct Seat<DB: Database> {
    pub(crate) connection: PoolConnection<DB>,
    is_spoilt: bool,
}

impl<DB: Database> Seat<DB> {
    pub(crate) async fn take<K: Kind<Db = DB>>(pool: &Pool<DB>) -> Result<Self, Fault> {
        let connection = pool.acquire().await.map_err(fault::<K>)?;
        Ok(Self {
            connection,
            is_spoilt: true,
        })
    }

    /// Gives the connection back to the pool.
    pub(crate) fn release(mut self) {
        self.is_spoilt = false;
    }
}

impl<DB: Database> Drop for Seat<DB> {
    fn drop(&mut self) {
        if self.is_spoilt {
            self.connection.close_on_drop();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_busy_database_after_a_lost_one_is_tried_as_often_as_any() {
        let mut tries = Tries::new();
        for _ in 0..TRIES_MAX * 2 {
            assert!(tries.may_pass(&Fault::Lost(sqlx::Error::WorkerCrashed)));
        }
        for _ in 1..TRIES_MAX {
            assert!(tries.may_pass(&Fault::Busy(sqlx::Error::RowNotFound)));
        }
        assert!(!tries.may_pass(&Fault::Busy(sqlx::Error::RowNotFound)));
    }

    #[test]
    fn pauses_double_within_their_bounds() {
        for tries in 1..100 {
            for took in [0, 100, 10_000] {
                let ms = pause(tries, Duration::from_millis(took)).as_millis();
                let least = PAUSE_MS_MIN.max(took.min(PAUSE_MS_MAX)) / 2;
                assert!(ms >= least.into(), "{tries}: {ms} ms");
                assert!(ms <= u128::from(PAUSE_MS_MAX), "{tries}: {ms} ms");
            }
        }
    }
}
