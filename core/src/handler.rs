//! What a handler gets, and what it says at the end.

use std::{
    error::Error as StdError, fmt, future::Future, ops::Deref, pin::Pin, sync::Arc, time::Duration,
};

use tokio_util::sync::CancellationToken;

use crate::{
    backend::Backend,
    error::{Result, with_causes},
    key::IdempotencyKey,
    op::{
        claim::Lease,
        finish::{Ending, Finish},
    },
    retry::Verdict,
};

/// A job under lease: the struct itself, by `Deref`, and its attempt.
pub struct Leased<J, B> {
    pub(crate) job: J,
    pub(crate) backend: B,
    pub(crate) lease: Lease,
    pub(crate) attempt_no: u16,
    pub(crate) shard_id: u16,
    pub(crate) idempotency_key: IdempotencyKey,
    pub(crate) lag: Duration,
    pub(crate) revoked: CancellationToken,
}

impl<J, B: Backend> Leased<J, B> {
    /// The row's id.
    #[must_use]
    pub fn id(&self) -> u64 {
        self.lease.id
    }

    /// Which attempt this is: 1 is the first.
    #[must_use]
    pub const fn attempt_no(&self) -> u16 {
        self.attempt_no
    }

    /// The same at every attempt of this job: give it to whoever must not act
    /// twice.
    #[must_use]
    pub const fn idempotency_key(&self) -> IdempotencyKey {
        self.idempotency_key
    }

    /// The shard.
    #[must_use]
    pub const fn shard_id(&self) -> u16 {
        self.shard_id
    }

    /// The proof of this attempt.
    #[must_use]
    pub const fn lease(&self) -> &Lease {
        &self.lease
    }

    /// How long after it fell due this attempt was claimed, by the database's
    /// clock.
    #[must_use]
    pub const fn lag(&self) -> Duration {
        self.lag
    }

    /// Waits until the worker takes the job away: its lease is lost, or the
    /// process shuts down. The handler's future is dropped then; this is for
    /// work that it has handed to other threads.
    pub fn revoked(&self) -> impl Future<Output = ()> + Send + 'static {
        self.revoked.clone().cancelled_owned()
    }

    /// Writes SUCCESS in the caller's own transaction, so that the caller's
    /// writes and the finish are committed together or not at all.
    ///
    /// Commit, and then return the outcome that this gives. When it is returned
    /// without a commit, nothing was finished: the lease lapses and the job is
    /// tried again.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::LeaseLost`](crate::ErrorKind::LeaseLost) when the lease no
    /// longer stands: roll back, another attempt may be running.
    pub async fn finish_in(&self, connection: &mut B::Connection) -> Result<Outcome> {
        let finish = Finish {
            lease: self.lease.clone(),
            attempt_no: self.attempt_no,
            ending: Ending::Success,
        };
        self.backend.finish_in(connection, finish).await?;
        Ok(Outcome::Finished(FinishedIn(())))
    }

    /// The job itself.
    #[must_use]
    pub fn into_inner(self) -> J {
        self.job
    }
}

impl<J, B> Deref for Leased<J, B> {
    type Target = J;

    fn deref(&self) -> &J {
        &self.job
    }
}

impl<J: fmt::Debug, B> fmt::Debug for Leased<J, B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Leased")
            .field("job", &self.job)
            .field("lease", &self.lease)
            .field("attempt_no", &self.attempt_no)
            .finish_non_exhaustive()
    }
}

/// What a handler says at the end of an attempt.
///
/// Handlers return this, or a `Result` of this or of `()`, with any error:
/// `?` works, and an error counts as [`Outcome::Retry`] unless
/// [`JobResultExt`] gives it another verdict.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// SUCCESS.
    Done,
    /// The attempt failed; the policy decides what follows.
    Retry {
        /// Why.
        error: String,
    },
    /// The attempt failed; the next one, if the policy grants it, starts after
    /// this delay.
    RetryAfter {
        /// Time until the next attempt.
        delay: Duration,
        /// Why.
        error: String,
    },
    /// Nothing failed, but it is too early: come back after this delay. Costs
    /// no attempt.
    Snooze {
        /// Time until the next attempt.
        delay: Duration,
    },
    /// Set aside until someone acts, such as a customer who must first renew a
    /// card.
    Hold {
        /// What is waited for.
        reason: String,
    },
    /// No attempt can succeed.
    Dead {
        /// Why.
        reason: String,
    },
    /// The finish was written in the caller's transaction; only
    /// [`Leased::finish_in`] gives this.
    Finished(FinishedIn),
}

/// Proof that [`Leased::finish_in`] was called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FinishedIn(());

impl Outcome {
    /// [`Outcome::Retry`] with this error.
    pub fn retry(error: impl Into<String>) -> Self {
        let error = error.into();
        Self::Retry { error }
    }

    /// [`Outcome::RetryAfter`] with this error.
    pub fn retry_after(delay: Duration, error: impl Into<String>) -> Self {
        let error = error.into();
        Self::RetryAfter { delay, error }
    }

    /// [`Outcome::Snooze`] for this long.
    #[must_use]
    pub const fn snooze(delay: Duration) -> Self {
        Self::Snooze { delay }
    }

    /// [`Outcome::Hold`] for this reason.
    pub fn hold(reason: impl Into<String>) -> Self {
        let reason = reason.into();
        Self::Hold { reason }
    }

    /// [`Outcome::Dead`] for this reason.
    pub fn dead(reason: impl Into<String>) -> Self {
        let reason = reason.into();
        Self::Dead { reason }
    }
}

/// What a handler's error says: its text with all causes, and a verdict.
///
/// Any error becomes one by `?`. It is deliberately no
/// [`std::error::Error`] itself, which is what makes that conversion possible.
#[derive(Debug)]
pub struct HandlerError {
    verdict: Verdict,
    text: String,
}

impl HandlerError {
    /// The same error with another verdict.
    #[must_use]
    pub fn with_verdict(mut self, verdict: Verdict) -> Self {
        self.verdict = verdict;
        self
    }
}

impl<E: Into<Box<dyn StdError + Send + Sync>>> From<E> for HandlerError {
    fn from(error: E) -> Self {
        let error = error.into();
        let text = with_causes(error.to_string(), error.source());
        Self {
            verdict: Verdict::Retry,
            text,
        }
    }
}

/// What a handler returns when it uses `?`.
pub type JobResult<T = Outcome> = std::result::Result<T, HandlerError>;

/// A verdict for an error, in front of `?`.
///
/// # Examples
///
/// ```
/// use retryjob_core::{JobResult, JobResultExt, Outcome};
///
/// fn amount(text: &str) -> JobResult<u64> {
///     // No later attempt can read this amount either.
///     text.parse::<u64>().permanent()
/// }
/// assert!(amount("12,50").is_err());
/// ```
pub trait JobResultExt<T> {
    /// No attempt can succeed.
    ///
    /// # Errors
    ///
    /// The same error, with the verdict.
    fn permanent(self) -> JobResult<T>;

    /// Try again after this time.
    ///
    /// # Errors
    ///
    /// The same error, with the verdict.
    fn retry_after(self, delay: Duration) -> JobResult<T>;

    /// Set aside until someone acts.
    ///
    /// # Errors
    ///
    /// The same error, with the verdict.
    fn hold(self) -> JobResult<T>;
}

impl<T, E: Into<HandlerError>> JobResultExt<T> for std::result::Result<T, E> {
    fn permanent(self) -> JobResult<T> {
        self.map_err(|error| error.into().with_verdict(Verdict::Permanent))
    }

    fn retry_after(self, delay: Duration) -> JobResult<T> {
        self.map_err(|error| error.into().with_verdict(Verdict::RetryAfter(delay)))
    }

    fn hold(self) -> JobResult<T> {
        self.map_err(|error| error.into().with_verdict(Verdict::Hold))
    }
}

/// What a handler can return.
pub trait IntoOutcome {
    /// The outcome of the attempt.
    fn into_outcome(self) -> Outcome;
}

impl IntoOutcome for Outcome {
    fn into_outcome(self) -> Outcome {
        self
    }
}

impl IntoOutcome for () {
    fn into_outcome(self) -> Outcome {
        Outcome::Done
    }
}

impl<T: IntoOutcome, E: Into<HandlerError>> IntoOutcome for std::result::Result<T, E> {
    fn into_outcome(self) -> Outcome {
        match self {
            Ok(value) => value.into_outcome(),
            Err(error) => error.into().into_outcome(),
        }
    }
}

impl IntoOutcome for HandlerError {
    fn into_outcome(self) -> Outcome {
        let text = self.text;
        match self.verdict {
            Verdict::Retry => Outcome::retry(text),
            Verdict::RetryAfter(delay) => Outcome::retry_after(delay, text),
            Verdict::Permanent => Outcome::dead(text),
            Verdict::Hold => Outcome::hold(text),
        }
    }
}

type OutcomeFuture = Pin<Box<dyn Future<Output = Outcome> + Send>>;

/// A handler with its type forgotten.
pub(crate) struct Handler<J, B>(Arc<dyn Fn(Leased<J, B>) -> OutcomeFuture + Send + Sync>);

impl<J: Send + 'static, B: Backend> Handler<J, B> {
    pub(crate) fn new<F, Fut>(handler: F) -> Self
    where
        F: Fn(Leased<J, B>) -> Fut + Send + Sync + 'static,
        Fut: Future<Output: IntoOutcome> + Send + 'static,
    {
        Self(Arc::new(move |job| {
            let future = handler(job);
            Box::pin(async move { future.await.into_outcome() })
        }))
    }

    pub(crate) fn call(&self, job: Leased<J, B>) -> OutcomeFuture {
        (self.0)(job)
    }
}

impl<J, B> Clone for Handler<J, B> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<J, B> fmt::Debug for Handler<J, B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Handler")
    }
}
