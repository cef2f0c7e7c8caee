//! The user's end: jobs of one type in one database.

use std::{fmt, future::Future, marker::PhantomData, sync::Arc};

use tokio::sync::{broadcast, watch};

use crate::{
    backend::Backend,
    batched::Batched,
    error::Result,
    event::{Event, Events, Transition},
    handler::{Handler, IntoOutcome, Leased},
    job::{RetryJob, new_job},
    op::{
        counts::Counts,
        doctor::Report,
        enqueue::{Due, Enqueued, NewJob},
        operate::{Action, Operate, Operated, Operation},
    },
    state::Status,
    worker::Worker,
};

/// Jobs of type `J` in the database `B`. Cheap to clone; clones share their
/// connections and their subscribers.
pub struct Queue<J, B> {
    backend: B,
    events: Events,
    /// Changes when jobs may have fallen due. Every poller is told: which of
    /// them may claim from the shard is not known here.
    wake: Arc<watch::Sender<()>>,
    job: PhantomData<fn() -> J>,
}

impl<J: RetryJob, B: Backend> Queue<J, B> {
    /// Connects, and checks what the server can do.
    ///
    /// # Errors
    ///
    /// [`ErrorKind`](crate::ErrorKind)`::Url`, `Unreachable`, `Denied` or
    /// `Unsupported`, with what would be right. A password is never part of it.
    pub async fn connect(url: &str) -> Result<Self> {
        Ok(Self::new(B::connect(url, J::schema()).await?))
    }

    /// Uses a backend that is connected already, perhaps for another job type.
    pub fn new(backend: B) -> Self {
        Self {
            backend: backend.for_schema(J::schema()),
            events: Events::new(),
            wake: Arc::default(),
            job: PhantomData,
        }
    }

    /// The backend below.
    #[must_use]
    pub const fn backend(&self) -> &B {
        &self.backend
    }

    /// Creates the table, or verifies the one that is there.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Schema`](crate::ErrorKind::Schema) with every difference;
    /// then nothing was changed.
    pub async fn install(&self) -> Result<()> {
        self.backend.install().await
    }

    /// Stores a job that is due at once.
    ///
    /// # Errors
    ///
    /// See [`Backend::enqueue`]. Nothing was stored then, save that after
    /// [`Transient`](crate::ErrorKind::Transient) it may have been: enqueue again,
    /// and the same key makes no second job.
    pub async fn enqueue(&self, job: &J) -> Result<Enqueued> {
        self.enqueue_due(job, Due::Now).await
    }

    /// Stores a job that falls due later.
    ///
    /// # Errors
    ///
    /// See [`Backend::enqueue`]. Nothing was stored then, save that after
    /// [`Transient`](crate::ErrorKind::Transient) it may have been: enqueue again,
    /// and the same key makes no second job.
    pub async fn enqueue_due(&self, job: &J, due: Due) -> Result<Enqueued> {
        let answers = self.store(vec![new_job(job, due)?]).await?;
        Ok(answers[0])
    }

    /// Stores many jobs that are due at once, all of them or none, and says
    /// for each whether it is new.
    ///
    /// # Errors
    ///
    /// See [`Backend::enqueue`]. Nothing was stored then, save that after
    /// [`Transient`](crate::ErrorKind::Transient) it may have been: enqueue again,
    /// and the same key makes no second job.
    pub async fn enqueue_many<'a>(
        &self,
        jobs: impl IntoIterator<Item = &'a J>,
    ) -> Result<Vec<Enqueued>> {
        self.enqueue_many_due(jobs.into_iter().map(|job| (job, Due::Now)))
            .await
    }

    /// Stores many jobs, each with the time it falls due.
    ///
    /// # Errors
    ///
    /// See [`Backend::enqueue`]. Nothing was stored then, save that after
    /// [`Transient`](crate::ErrorKind::Transient) it may have been: enqueue again,
    /// and the same key makes no second job.
    pub async fn enqueue_many_due<'a>(
        &self,
        jobs: impl IntoIterator<Item = (&'a J, Due)>,
    ) -> Result<Vec<Enqueued>> {
        let rows: Result<Vec<_>> = jobs
            .into_iter()
            .map(|(job, due)| new_job(job, due))
            .collect();
        self.store(rows?).await
    }

    /// Lets many tasks enqueue one job each, and stores what they bring
    /// together: as fast as [`enqueue_many`](Self::enqueue_many), and each is
    /// told of its own job. Keep it and clone it; each call of this starts a
    /// task.
    ///
    /// ```
    /// # use retryjob_core::{Column, DecodeError, EncodeError, Ident, JobSchema, RetryJob};
    /// # use retryjob_core::job::{Encoded, Parts, ShardSource};
    /// # struct Mail;
    /// # impl RetryJob for Mail {
    /// #     const SCHEMA: JobSchema = JobSchema::new(Ident::new("mail")).checked();
    /// #     fn encode(&self) -> Result<Encoded, EncodeError> {
    /// #         Ok(Encoded { unique: None, shard: ShardSource::Key, columns: vec![], payload: Some("{}".into()) })
    /// #     }
    /// #     fn decode(_: Parts) -> Result<Self, DecodeError> { Ok(Mail) }
    /// # }
    /// use retryjob_core::{Memory, Queue};
    ///
    /// # let runtime = tokio::runtime::Builder::new_current_thread().build()?;
    /// # runtime.block_on(async {
    /// let queue = Queue::<Mail, _>::new(Memory::new(Mail::schema()));
    /// queue.install().await?;
    /// let batched = queue.batched();
    /// let (first, second) = tokio::join!(batched.enqueue(&Mail), batched.enqueue(&Mail));
    /// assert_ne!(first?.id, second?.id);
    /// # Ok::<(), retryjob_core::Error>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Panics
    ///
    /// Outside of a tokio runtime.
    #[must_use]
    pub fn batched(&self) -> Batched<J> {
        Batched::new(self.clone())
    }

    pub(crate) async fn store(&self, rows: Vec<NewJob>) -> Result<Vec<Enqueued>> {
        let answers = self.backend.enqueue(rows).await?;
        for answer in answers.iter().filter(|answer| answer.is_new) {
            self.events.moved(answer.id, None, Status::Pending);
        }
        self.wake();
        Ok(answers)
    }

    /// Stores a job inside the caller's own transaction: it is there when that
    /// commits, and never was when it does not.
    ///
    /// # Errors
    ///
    /// See [`Backend::enqueue_in`]. After a deadlock the caller's transaction
    /// is gone.
    pub async fn enqueue_in(&self, connection: &mut B::Connection, job: &J) -> Result<Enqueued> {
        self.enqueue_in_due(connection, job, Due::Now).await
    }

    /// The same, to fall due later.
    ///
    /// # Errors
    ///
    /// See [`Backend::enqueue_in`].
    pub async fn enqueue_in_due(
        &self,
        connection: &mut B::Connection,
        job: &J,
        due: Due,
    ) -> Result<Enqueued> {
        let row = new_job(job, due)?;
        let answers = self.backend.enqueue_in(connection, vec![row]).await?;
        Ok(answers[0])
    }

    /// Sets jobs aside until they are released. Running ones are refused.
    ///
    /// # Errors
    ///
    /// See [`Backend::operate`].
    pub async fn hold(&self, ids: &[u64], reason: &str) -> Result<Operated> {
        self.operate(Action::Hold, ids, Some(reason)).await
    }

    /// Lets held jobs go on, due at once, with all their attempts.
    ///
    /// # Errors
    ///
    /// See [`Backend::operate`].
    pub async fn release(&self, ids: &[u64]) -> Result<Operated> {
        self.operate(Action::Release, ids, None).await
    }

    /// Gives up on jobs. Running ones are refused.
    ///
    /// # Errors
    ///
    /// See [`Backend::operate`].
    pub async fn cancel(&self, ids: &[u64], reason: &str) -> Result<Operated> {
        self.operate(Action::Cancel, ids, Some(reason)).await
    }

    /// Starts jobs anew that are DEAD, FAILED or SUCCESS, with all their
    /// attempts.
    ///
    /// # Errors
    ///
    /// See [`Backend::operate`].
    pub async fn requeue(&self, ids: &[u64]) -> Result<Operated> {
        self.operate(Action::Requeue, ids, None).await
    }

    async fn operate(&self, action: Action, ids: &[u64], reason: Option<&str>) -> Result<Operated> {
        let operate = Operate {
            action,
            ids: ids.to_vec(),
            reason: reason.map(str::to_owned),
        };
        let operated = self.backend.operate(operate).await?;
        for (id, operation) in &operated.answers {
            if let Operation::Done { from } = operation
                && let Ok(to) = from.after(action.step())
            {
                self.events.send(|| {
                    Event::Moved(Transition {
                        id: *id,
                        from: Some(*from),
                        to,
                        attempt_no: None,
                        reason: reason.map(str::to_owned),
                    })
                });
            }
        }
        self.wake();
        Ok(operated)
    }

    /// How many jobs stand in each status.
    ///
    /// # Errors
    ///
    /// See [`Backend::counts`].
    pub async fn counts(&self) -> Result<Counts> {
        self.backend.counts().await
    }

    /// Reports what the connected server really gives: version, durability and
    /// session settings, clock, the job table's engine, columns and indexes,
    /// and how it would run a claim. Changes nothing, and sends statements that
    /// are not of the catalogue; it is for a person or a deployment, not for
    /// every minute.
    ///
    /// ```
    /// use retryjob_core::{Ident, JobSchema, Memory, op::doctor::Level, Backend as _};
    ///
    /// # let runtime = tokio::runtime::Builder::new_current_thread().build()?;
    /// # runtime.block_on(async {
    /// static JOB: JobSchema = JobSchema::new(Ident::new("job")).checked();
    /// let report = Memory::new(&JOB).doctor().await?; // or queue.doctor()
    /// println!("{report}");
    /// assert_eq!(report.at(Level::Fault).count(), 0);
    /// # Ok::<(), retryjob_core::Error>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Transient`](crate::ErrorKind::Transient) when there is no
    /// connection; whatever a connected server lacks is a finding.
    pub async fn doctor(&self) -> Result<Report> {
        self.backend.doctor().await
    }

    /// Events of everything that this queue, its clones and their workers do
    /// from now on. A subscriber that lags by more than
    /// [`EVENTS_MAX`](crate::event::EVENTS_MAX) misses the oldest.
    #[must_use]
    pub fn events(&self) -> broadcast::Receiver<Event> {
        self.events.subscribe()
    }

    /// A worker that runs this handler.
    pub fn worker<F, Fut>(&self, handler: F) -> Worker<J, B>
    where
        F: Fn(Leased<J, B>) -> Fut + Send + Sync + 'static,
        Fut: Future<Output: IntoOutcome> + Send + 'static,
    {
        Worker::new(self.clone(), Handler::new(handler))
    }

    /// A worker that runs this handler with shared state, such as a client or
    /// a pool. The state is cloned for every attempt.
    pub fn worker_with<S, F, Fut>(&self, state: S, handler: F) -> Worker<J, B>
    where
        S: Clone + Send + Sync + 'static,
        F: Fn(Leased<J, B>, S) -> Fut + Send + Sync + 'static,
        Fut: Future<Output: IntoOutcome> + Send + 'static,
    {
        self.worker(move |job| handler(job, state.clone()))
    }

    /// Closes the connections.
    pub async fn close(&self) {
        self.backend.close().await;
    }

    pub(crate) const fn event_sender(&self) -> &Events {
        &self.events
    }

    pub(crate) fn wake(&self) {
        self.wake.send_replace(());
    }

    pub(crate) fn wakes(&self) -> watch::Receiver<()> {
        self.wake.subscribe()
    }
}

impl<J, B: Clone> Clone for Queue<J, B> {
    fn clone(&self) -> Self {
        Self {
            backend: self.backend.clone(),
            events: self.events.clone(),
            wake: Arc::clone(&self.wake),
            job: PhantomData,
        }
    }
}

impl<J: RetryJob, B: Backend> fmt::Debug for Queue<J, B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Queue")
            .field("backend", &B::NAME)
            .field("table", &J::schema().table)
            .finish_non_exhaustive()
    }
}
