//! The work that goes on while faults happen.
//!
//! A producer stores a job together with a row of its own business; a handler
//! writes its effect together with the finish.

use std::time::Duration;

use retryjob::{Backend, JobResult, Leased, Mysql8, Mysql57, Outcome, RetryJob, Sqlite};
use retryjob_core::{Due, ErrorKind, Event as JobEvent, Queue, RetryPolicy, Worker, job::new_job};
use serde::{Deserialize, Serialize};
use sqlx::{AssertSqlSafe, MySqlConnection, SqliteConnection};
use tokio::sync::broadcast;

use crate::{
    SqlDatabase,
    history::{Answer, Attempt, Call, Effect, Event, History, Record, Recorded, Recorder, Rules},
};

/// How often workers under faults look for lapsed leases.
pub const REAP_EVERY: Duration = Duration::from_millis(500);

/// A job with a short lease and attempts enough for many crashes.
#[derive(Clone, Debug, Serialize, Deserialize, RetryJob)]
#[retry_job(
    table = "fault_task",
    shards = 8,
    lease = "1s",
    retry(fixed = "20ms", max_attempts = 100)
)]
pub struct Task {
    #[job(unique, column)]
    pub no: u64,
    /// Whether it is stored together with a row of the caller's.
    #[job(column)]
    pub has_business: bool,
    pub work: Work,
    /// How long the handler takes.
    pub ms: u64,
}

/// The same with few attempts.
#[derive(Clone, Debug, Serialize, Deserialize, RetryJob)]
#[retry_job(
    table = "fault_fragile",
    shards = 8,
    lease = "1s",
    retry(fixed = "20ms", jitter = "200ms", max_attempts = 3)
)]
pub struct Fragile {
    #[job(unique)]
    pub no: u64,
    pub task: Task,
}

/// A job type that worker processes know.
pub trait Job: RetryJob + AsRef<Task> + Send + Sync {
    /// What such a process calls it.
    const JOBS: &'static str;
}

impl Job for Task {
    const JOBS: &'static str = "task";
}

impl Job for Fragile {
    const JOBS: &'static str = "fragile";
}

impl AsRef<Task> for Fragile {
    fn as_ref(&self) -> &Task {
        &self.task
    }
}

/// What a handler does before it finishes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Work {
    /// Waits.
    Wait,
    /// Waits, and leaves the finish to the worker.
    Plain,
    /// Fails at the first attempt.
    FailOnce,
    /// Blocks its thread.
    Block,
    /// Ends the process.
    Abort,
}

impl Task {
    #[must_use]
    pub const fn new(no: u64, work: Work, ms: u64) -> Self {
        Self {
            no,
            has_business: false,
            work,
            ms,
        }
    }
}

/// Writes of the caller's own, on the backend's connections.
pub trait Writes: Backend {
    fn write(
        connection: &mut Self::Connection,
        sql: String,
    ) -> impl Future<Output = Result<(), sqlx::Error>> + Send;
}

async fn on_mysql(connection: &mut MySqlConnection, sql: String) -> Result<(), sqlx::Error> {
    let written = sqlx::query(AssertSqlSafe(sql)).execute(connection).await;
    written.map(drop)
}

impl Writes for Mysql8 {
    async fn write(connection: &mut MySqlConnection, sql: String) -> Result<(), sqlx::Error> {
        on_mysql(connection, sql).await
    }
}

impl Writes for Mysql57 {
    async fn write(connection: &mut MySqlConnection, sql: String) -> Result<(), sqlx::Error> {
        on_mysql(connection, sql).await
    }
}

impl Writes for Sqlite {
    async fn write(connection: &mut SqliteConnection, sql: String) -> Result<(), sqlx::Error> {
        let written = sqlx::query(AssertSqlSafe(sql)).execute(connection).await;
        written.map(drop)
    }
}

impl<B: Writes> Writes for Recorded<B> {
    async fn write(connection: &mut B::Connection, sql: String) -> Result<(), sqlx::Error> {
        B::write(connection, sql).await
    }
}

/// Creates the job table, the caller's tables and the triggers.
pub async fn prepare<D: SqlDatabase>(db: &D, schema: &'static retryjob::JobSchema) {
    db.installed(schema).await;
    db.watch(schema).await;
    // No key of its own: an effect that is written twice is to be seen.
    db.execute("CREATE TABLE effect (id BIGINT NOT NULL, lease_seq BIGINT NOT NULL)")
        .await;
    db.execute("CREATE TABLE business (no BIGINT NOT NULL PRIMARY KEY)")
        .await;
}

/// All that is known of a run on this database.
pub async fn history<D: SqlDatabase>(
    db: &D,
    schema: &'static retryjob::JobSchema,
    records: Vec<Record>,
) -> History {
    let effects = db.pairs("SELECT id, lease_seq FROM effect").await;
    History {
        records,
        moves: db.moves().await,
        effects: effects
            .into_iter()
            .map(|(id, lease_seq)| Effect { id, lease_seq })
            .collect(),
        rows: db.rows(schema).await,
    }
}

/// The rules of a run whose handlers all write effects.
#[must_use]
pub const fn rules(policy: &RetryPolicy) -> Rules {
    Rules {
        has_effects: true,
        ..Rules::of(policy)
    }
}

/// Whether each row of the caller's has its job, and each job its row.
///
/// # Panics
///
/// When not.
pub async fn check_business<D: SqlDatabase>(db: &D) {
    let alone = [
        "SELECT no, no FROM business WHERE no NOT IN (SELECT no FROM fault_task)",
        "SELECT no, no FROM fault_task WHERE has_business AND no NOT IN (SELECT no FROM business)",
    ];
    for sql in alone {
        let found = db.pairs(sql).await;
        assert!(
            found.is_empty(),
            "one without the other: {found:?} by {sql}"
        );
    }
}

/// Stores a job together with a row of the caller's, or neither.
///
/// What was told of the COMMIT is recorded. When that is nothing the caller may
/// ask again: the key says whether the job is there.
pub async fn enqueue_in_business<B: Writes>(
    queue: &Queue<Task, Recorded<B>>,
    task: &Task,
) -> Result<(), retryjob::Error> {
    let backend = queue.backend();
    let mut tx = backend.begin().await?;
    let no = task.no;
    let insert = format!(
        "INSERT INTO business (no) SELECT no FROM (SELECT {no} AS no) AS new \
         WHERE NOT EXISTS (SELECT 1 FROM business WHERE no = {no})"
    );
    let task = &Task {
        has_business: true,
        ..task.clone()
    };
    Recorded::<B>::write(&mut tx, insert)
        .await
        .map_err(|error| retryjob::Error::new(ErrorKind::Transient, error.to_string()))?;
    let enqueued = queue.enqueue_in(&mut tx, task).await?;
    let keys = vec![new_job(task, Due::Now)?.idempotency_key.to_string()];
    let open = backend.recorder().invoke(Call::Enqueue { keys });
    let committed = backend.commit(tx).await;
    open.end(match &committed {
        Ok(()) => Event::Ok(Answer::Enqueued(vec![(enqueued.id, enqueued.is_new)])),
        Err(error) => Event::Unknown(error.to_string()),
    });
    committed
}

/// A worker whose handlers do what their tasks say.
pub fn worker<J, B>(queue: &Queue<J, Recorded<B>>) -> Worker<J, Recorded<B>>
where
    J: Job,
    B: Writes,
{
    let backend = queue.backend().clone();
    queue
        .worker_with(backend, handle::<J, B>)
        .reap_every(REAP_EVERY)
        .poll_max(Duration::from_millis(100))
}

impl AsRef<Self> for Task {
    fn as_ref(&self) -> &Self {
        self
    }
}

async fn handle<J, B>(job: Leased<J, Recorded<B>>, backend: Recorded<B>) -> JobResult
where
    J: Job,
    B: Writes,
{
    let attempt = Attempt::of(&job);
    let recorder = backend.recorder();
    recorder.note(Event::Started(attempt));
    let task = (*job).as_ref().clone();
    let takes = Duration::from_millis(task.ms);
    match task.work {
        Work::Wait => tokio::time::sleep(takes).await,
        Work::Plain => {
            tokio::time::sleep(takes).await;
            return Ok(Outcome::Done);
        }
        Work::FailOnce if job.attempt_no() == 1 => return Ok(Outcome::retry("the first attempt")),
        Work::FailOnce => {}
        Work::Block => std::thread::sleep(takes),
        Work::Abort => std::process::abort(),
    }
    let mut tx = backend.begin().await?;
    let Attempt { id, lease_seq, .. } = attempt;
    let effect = format!("INSERT INTO effect (id, lease_seq) VALUES ({id}, {lease_seq})");
    Recorded::<B>::write(&mut tx, effect).await?;
    match job.finish_in(&mut tx).await {
        Ok(finished) => {
            backend.commit(tx).await?;
            recorder.note(Event::Committed(attempt));
            Ok(finished)
        }
        Err(error) => {
            if error.kind() == ErrorKind::LeaseLost {
                recorder.note(Event::Lost(attempt));
            }
            Err(error.into())
        }
    }
}

/// Notes in the side log which attempts were told that their lease is lost.
pub async fn note_lost(mut events: broadcast::Receiver<JobEvent>, recorder: Recorder) {
    loop {
        match events.recv().await {
            Ok(JobEvent::LeaseLost { id, attempt_no }) => {
                recorder.note(Event::LostTold { id, attempt_no });
            }
            Ok(JobEvent::Moved(_)) | Err(broadcast::error::RecvError::Lagged(_)) => {}
            Err(broadcast::error::RecvError::Closed) => return,
        }
    }
}
