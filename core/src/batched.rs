//! Batched: enqueues of many tasks, gathered into one statement.

use std::{fmt, marker::PhantomData, sync::Arc};

use tokio::sync::{mpsc, oneshot};

use crate::{
    backend::Backend,
    error::{Error, ErrorKind, Result},
    job::{RetryJob, new_job},
    op::enqueue::{Due, Enqueued, NewJob},
    queue::Queue,
};

/// Most jobs of one batch: the rows of the longest INSERT.
const BATCH_MAX: usize = 1000;

/// Enqueues jobs one by one, stored many at a time. Made by
/// [`Queue::batched`]; cheap to clone.
///
/// Calls that come while a batch is on its way make up the next one, so no call
/// waits for company. A call answers after its job is committed.
pub struct Batched<J> {
    calls: mpsc::Sender<Call>,
    job: PhantomData<fn() -> J>,
}

struct Call {
    job: NewJob,
    answer: oneshot::Sender<Result<Enqueued>>,
}

impl Call {
    fn tell(self, answer: Result<Enqueued>) {
        // A caller that is gone asks for no answer.
        let _ = self.answer.send(answer);
    }
}

impl<J: RetryJob> Batched<J> {
    /// Starts the task that gathers; it ends with the last clone.
    pub(crate) fn new<B: Backend>(queue: Queue<J, B>) -> Self {
        let (sender, calls) = mpsc::channel(BATCH_MAX);
        tokio::spawn(gather(queue, calls));
        Self {
            calls: sender,
            job: PhantomData,
        }
    }

    /// Stores a job that is due at once. As [`Queue::enqueue`]; dropped midway,
    /// the job may be stored all the same.
    ///
    /// # Errors
    ///
    /// As [`Queue::enqueue`]. A job that is refused costs no other job of its
    /// batch anything.
    pub async fn enqueue(&self, job: &J) -> Result<Enqueued> {
        self.enqueue_due(job, Due::Now).await
    }

    /// Stores a job that falls due later.
    ///
    /// # Errors
    ///
    /// As [`enqueue`](Self::enqueue).
    pub async fn enqueue_due(&self, job: &J, due: Due) -> Result<Enqueued> {
        let (answer, answered) = oneshot::channel();
        let job = new_job(job, due)?;
        self.calls
            .send(Call { job, answer })
            .await
            .map_err(|_| gone())?;
        answered.await.map_err(|_| gone())?
    }
}

fn gone() -> Error {
    let message =
        "the runtime in which the queue was `batched` was shut down; the job may be stored";
    Error::new(ErrorKind::Transient, message)
}

impl<J> Clone for Batched<J> {
    fn clone(&self) -> Self {
        Self {
            calls: self.calls.clone(),
            job: PhantomData,
        }
    }
}

impl<J: RetryJob> fmt::Debug for Batched<J> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Batched")
            .field("table", &J::schema().table)
            .finish_non_exhaustive()
    }
}

async fn gather<J: RetryJob, B: Backend>(queue: Queue<J, B>, mut calls: mpsc::Receiver<Call>) {
    let mut batch = Vec::new();
    while calls.recv_many(&mut batch, BATCH_MAX).await > 0 {
        store(&queue, std::mem::take(&mut batch)).await;
    }
}

async fn store<J: RetryJob, B: Backend>(queue: &Queue<J, B>, batch: Vec<Call>) {
    let jobs = batch.iter().map(|call| call.job.clone()).collect();
    match queue.store(jobs).await {
        Ok(answers) => {
            for (call, answer) in batch.into_iter().zip(answers) {
                call.tell(Ok(answer));
            }
        }
        // Nothing is stored, since one of them is refused: each on its own
        // tells which.
        Err(error) if !error.is_transient() && batch.len() > 1 => {
            for call in batch {
                let stored = queue.store(vec![call.job.clone()]).await;
                call.tell(stored.map(|answers| answers[0]));
            }
        }
        Err(error) => {
            let error = Arc::new(error);
            for call in batch {
                let own = Error::with_source(error.kind(), error.to_string(), Arc::clone(&error));
                call.tell(Err(own));
            }
        }
    }
}
