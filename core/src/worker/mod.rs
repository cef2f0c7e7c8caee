//! The worker: four loops that never wait for each other.
//!
//! ```text
//!          claims            outcomes
//!  poll ───────────▶ run ──────────────▶ finish
//!    ▲                │ leases             │
//!    │ wake           ▼                    │ wake
//!    └───────────── keep ◀─────────────────┘
//! ```
//!
//! **poll** asks which shards are due, claims a batch and sleeps until the next
//! due time. **run** has one task per claimed job: it waits for a free slot,
//! then runs the handler with its timeout, panics caught. **finish** collects
//! outcomes for a few milliseconds and writes them in one transaction. **keep**
//! renews leases, stops handlers whose lease is about to end, reaps, and sends the
//! heartbeats by which nodes share the shards; on a real database it lives in a
//! thread of its own, so that a handler which blocks its thread does not cost
//! other jobs their lease.

mod settings;

mod poll;

mod lanes;

mod pace;

mod alone;

mod run;

mod finish;

mod keep;

mod assign;

mod shards;

mod held;

use std::{future::Future, sync::Arc, time::Duration};

use tokio::sync::{Semaphore, mpsc};
use tokio_util::{sync::CancellationToken, task::TaskTracker};
use tracing::Instrument as _;

pub(crate) use self::run::{Attempted, attempt};
pub use self::settings::Summary;
use self::{
    assign::Assigned,
    held::Held,
    settings::{Settings, Tally},
    shards::Shards,
};
use crate::{
    backend::Backend, error::Result, handler::Handler, job::RetryJob, op::claim::Node,
    op::finish::Finish, queue::Queue,
};

/// Runs the jobs of a queue. Made by [`Queue::worker`], then told how, then
/// run.
#[derive(Debug)]
pub struct Worker<J: RetryJob, B: Backend> {
    queue: Queue<J, B>,
    handler: Handler<J, B>,
    settings: Settings,
}

/// What the loops of one worker share.
struct Shared<J: RetryJob, B: Backend> {
    queue: Queue<J, B>,
    handler: Handler<J, B>,
    settings: Settings,
    node: Node,
    held: Held,
    assigned: Assigned,
    shards: Shards,
    tally: Tally,
    /// One permit per job in hand: running, or claimed and waiting for a slot.
    hands: Arc<Semaphore>,
    /// One permit per running handler.
    slots: Arc<Semaphore>,
    /// No more claims; jobs that wait for a slot are given back.
    stop: CancellationToken,
    /// Running handlers are dropped and their jobs given back.
    abort: CancellationToken,
    tasks: TaskTracker,
}

impl<J: RetryJob, B: Backend> Worker<J, B> {
    pub(crate) fn new(queue: Queue<J, B>, handler: Handler<J, B>) -> Self {
        let settings = Settings::new(J::schema(), B::KEEPS_IN_THREAD);
        Self {
            queue,
            handler,
            settings,
        }
    }

    /// Most handlers at once. Default 16, at least 1.
    #[must_use]
    pub fn concurrency(mut self, handlers: usize) -> Self {
        self.settings.concurrency = handlers.clamp(1, settings::CONCURRENCY_MAX);
        self
    }

    /// Most jobs that wait, claimed, for a free handler. Default: as many as
    /// handlers started within the last tenth of a second, at least a quarter of
    /// those that run at once and at most 1,000. So slow handlers leave jobs to
    /// other nodes, and fast ones get them in few and large claims.
    #[must_use]
    pub fn prefetch(mut self, jobs: usize) -> Self {
        self.settings.prefetch = Some(jobs.min(settings::CONCURRENCY_MAX));
        self
    }

    /// Loops that claim at the same time. Default 1, which is enough for most
    /// servers; 1 to 16.
    #[must_use]
    pub fn pollers(mut self, pollers: usize) -> Self {
        self.settings.pollers = pollers.clamp(1, settings::POLLERS_MAX);
        self
    }

    /// The longest sleep between two looks at the table while nothing is due.
    /// Default one second. Work enqueued through the same queue wakes the
    /// worker at once.
    #[must_use]
    pub fn poll_max(mut self, wait: Duration) -> Self {
        self.settings.poll_max = wait.max(settings::POLL_MIN);
        self
    }

    /// How long an outcome waits for others to be written with, in one
    /// transaction. Default 3 milliseconds. Longer makes fewer and larger
    /// transactions, and lets each outcome be seen that much later; handlers
    /// never wait for it.
    #[must_use]
    pub fn finish_linger(mut self, wait: Duration) -> Self {
        self.settings.finish_linger = wait;
        self
    }

    /// Most outcomes that are written in one transaction. Default and most 500,
    /// at least 1.
    #[must_use]
    pub fn finish_batch(mut self, outcomes: usize) -> Self {
        self.settings.finish_batch = outcomes.clamp(1, settings::FINISH_BATCH_MAX);
        self
    }

    /// How often lapsed leases are looked for. Default a lease, at most ten
    /// seconds.
    #[must_use]
    pub fn reap_every(mut self, period: Duration) -> Self {
        self.settings.reap_every = period.max(settings::POLL_MIN);
        self
    }

    /// How long handlers may go on after shutdown began. Default 30 seconds.
    /// What still runs then is dropped, and its job given back.
    #[must_use]
    pub fn drain_for(mut self, time: Duration) -> Self {
        self.settings.drain_for = time;
        self
    }

    /// The node's name, as `lease_owner` and the table of nodes show it, with a
    /// suffix that no other worker has. Default the process id.
    #[must_use]
    pub fn node(mut self, name: &str) -> Self {
        self.settings.node = Node::new(name);
        self
    }

    /// The node itself, suffix included: for a simulation, which draws both
    /// from its seed. Two workers of one name and suffix take each other's
    /// shards.
    #[doc(hidden)]
    #[must_use]
    pub fn as_node(mut self, node: Node) -> Self {
        self.settings.node = node;
        self
    }

    /// Whether leases are kept from a thread of their own. Default yes on a
    /// real database.
    #[must_use]
    pub fn keep_in_thread(mut self, is_own_thread: bool) -> Self {
        self.settings.keeps_in_thread = is_own_thread;
        self
    }

    /// Works until `shutdown` completes, then stops claiming, lets handlers
    /// finish and gives back what is left.
    ///
    /// # Errors
    ///
    /// What the backend can't recover from, such as a missing table; jobs in
    /// hand are finished or given back first.
    pub async fn run_until(self, shutdown: impl Future<Output = ()> + Send) -> Result<Summary> {
        self.run(shutdown, false).await
    }

    /// Works until no job is PENDING, RETRY or RUNNING, waiting for retries to
    /// fall due: for batch programs and tests.
    ///
    /// # Errors
    ///
    /// As [`run_until`](Self::run_until).
    pub async fn run_until_idle(self) -> Result<Summary> {
        self.run(std::future::pending(), true).await
    }

    /// Works until idle or until `shutdown` completes, whichever is first.
    ///
    /// # Errors
    ///
    /// As [`run_until`](Self::run_until).
    pub async fn run_until_idle_or(
        self,
        shutdown: impl Future<Output = ()> + Send,
    ) -> Result<Summary> {
        self.run(shutdown, true).await
    }

    async fn run(
        self,
        shutdown: impl Future<Output = ()> + Send,
        until_idle: bool,
    ) -> Result<Summary> {
        let span = tracing::info_span!("worker", table = %J::schema().table, backend = B::NAME);
        let stops = Stops::default();
        // A worker whose future is dropped must not leave its loops behind.
        let _guard = stops.drop_guard();
        let (sender, receiver) = mpsc::channel(self.settings.finishes_max());
        let shared = self.shared(&stops);
        let finisher = tokio::spawn(
            finish::finish_loop(Arc::clone(&shared), receiver).instrument(span.clone()),
        );
        let warming = shared
            .queue
            .backend()
            .warm_up(shared.settings.connections());
        let keeper = keep::start(&shared, stops.keep.clone());
        let (keeper, ()) = tokio::join!(keeper, warming);
        let keeper = keeper?;
        let polling = async {
            assign::join(&shared).await?;
            poll_until(&shared, sender, shutdown, until_idle).await
        };
        let polled = polling.instrument(span).await;
        shared.stop.cancel();
        shared.tasks.close();
        if tokio::time::timeout(shared.settings.drain_for, shared.tasks.wait())
            .await
            .is_err()
        {
            shared.abort.cancel();
            shared.tasks.wait().await;
        }
        // All senders are gone with the tasks: the finisher writes the rest
        // and ends. Leases are kept until it has.
        let _ = finisher.await;
        stops.keep.cancel();
        keeper.stopped().await;
        polled.map(|()| shared.tally.summary())
    }

    fn shared(self, stops: &Stops) -> Arc<Shared<J, B>> {
        let settings = self.settings;
        Arc::new(Shared {
            node: settings.node.clone(),
            held: Held::default(),
            assigned: Assigned::default(),
            shards: Shards::default(),
            tally: Tally::default(),
            hands: Arc::new(Semaphore::new(settings.hands())),
            slots: Arc::new(Semaphore::new(settings.concurrency)),
            stop: stops.stop.clone(),
            abort: stops.abort.clone(),
            tasks: TaskTracker::new(),
            queue: self.queue,
            handler: self.handler,
            settings,
        })
    }
}

#[derive(Default)]
struct Stops {
    stop: CancellationToken,
    abort: CancellationToken,
    keep: CancellationToken,
}

impl Stops {
    fn drop_guard(&self) -> [tokio_util::sync::DropGuard; 3] {
        [&self.stop, &self.abort, &self.keep].map(|token| token.clone().drop_guard())
    }
}

/// Runs the pollers until shutdown, idleness, or an error that no retry cures.
async fn poll_until<J: RetryJob, B: Backend>(
    shared: &Arc<Shared<J, B>>,
    finishes: mpsc::Sender<Finish>,
    shutdown: impl Future<Output = ()> + Send,
    until_idle: bool,
) -> Result<()> {
    let mut pollers = tokio::task::JoinSet::new();
    for _ in 0..shared.settings.pollers {
        let poller = poll::poll_loop(Arc::clone(shared), finishes.clone(), until_idle);
        pollers.spawn(poller.in_current_span());
    }
    drop(finishes);
    let mut shutdown = std::pin::pin!(shutdown);
    loop {
        tokio::select! {
            biased;
            () = &mut shutdown, if !shared.stop.is_cancelled() => {
                tracing::info!("shutting down: no more claims");
                shared.stop.cancel();
            }
            ended = pollers.join_next() => match ended {
                None => return Ok(()),
                Some(Ok(Ok(()))) => {}
                Some(Ok(Err(error))) => {
                    shared.stop.cancel();
                    while pollers.join_next().await.is_some() {}
                    return Err(error);
                }
                Some(Err(panic)) => std::panic::resume_unwind(panic.into_panic()),
            },
        }
    }
}
