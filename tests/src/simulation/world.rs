//! The database of a run, its clock, and the processes around it.

use std::{
    collections::BTreeMap,
    future::Future,
    pin::pin,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll, Waker},
    time::Duration,
};

use retryjob::{Memory, RetryJob as _, Status};
use retryjob_core::{DbTime, memory::JobRow};
use tokio::{sync::Notify, time::Instant};

use super::{
    SimJob,
    chance::Chance,
    seen::{SOMETIMES, Seen},
};
use crate::{
    always,
    history::{Moved, record::LeaseOf},
    sometimes,
};

/// What all processes of a run share.
#[derive(Debug)]
pub struct World {
    pub chance: Chance,
    pub odds: Odds,
    memory: Memory,
    started: Instant,
    is_calm: AtomicBool,
    has_effects: bool,
    has_poison: bool,
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    passed: Duration,
    rows: Vec<JobRow>,
    moves: Vec<Moved>,
    seen: Seen,
    /// Handlers that run now, by job.
    running: BTreeMap<u64, u32>,
    /// Leases whose finish went wrong on its way, and how.
    troubled: BTreeMap<LeaseOf, Trouble>,
}

/// How the last try of a call went wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trouble {
    /// Nothing was done.
    Refused,
    /// It was done, and its caller was not told.
    AnswerLost,
}

/// How likely each fault is, in percent; a seed leaves some out, so that the
/// others can be seen alone.
#[derive(Clone, Copy, Debug)]
pub struct Odds {
    pub refused: u32,
    pub answer_lost: u32,
    pub repeated: u32,
    pub detached: u32,
    pub delay_ms_max: u64,
    pub slow: u32,
    pub stalled: u32,
    pub jumped: u32,
}

impl Odds {
    fn draw(chance: &Chance) -> Self {
        let percent = |choices: &[u32]| chance.pick(choices).unwrap_or_default();
        Self {
            refused: percent(&[0, 2, 10]),
            answer_lost: percent(&[0, 2, 10]),
            repeated: percent(&[0, 2, 10]),
            detached: percent(&[0, 50, 100]),
            delay_ms_max: chance.pick(&[0, 3, 20, 80]).unwrap_or_default(),
            slow: percent(&[0, 0, 2]),
            stalled: percent(&[0, 10, 30]),
            jumped: percent(&[0, 30, 60]),
        }
    }
}

impl World {
    #[must_use]
    pub fn new(seed: u64) -> Arc<Self> {
        let chance = Chance::new(seed);
        Arc::new(Self {
            odds: Odds::draw(&chance),
            has_effects: chance.percent(50),
            has_poison: chance.percent(50),
            chance,
            memory: Memory::new(SimJob::schema()),
            started: Instant::now(),
            is_calm: AtomicBool::new(false),
            inner: Mutex::default(),
        })
    }

    pub const fn memory(&self) -> &Memory {
        &self.memory
    }

    /// Whether every success of this run comes with an effect.
    pub const fn has_effects(&self) -> bool {
        self.has_effects
    }

    /// Whether a job of this run aborts whichever process runs it.
    pub const fn has_poison(&self) -> bool {
        self.has_poison
    }

    /// The database's clock is set: what it is to do later is due earlier than
    /// any process thinks.
    pub fn jump(&self, span: Duration) {
        self.memory.clock().advance(span);
    }

    /// No more faults, and handlers succeed.
    pub fn calm(&self) {
        self.is_calm.store(true, Ordering::Relaxed);
    }

    pub fn is_calm(&self) -> bool {
        self.is_calm.load(Ordering::Relaxed)
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// One operation that reads, at this instant of tokio's clock.
    pub fn read<T>(&self, operation: impl Future<Output = T>) -> T {
        let mut inner = self.inner();
        self.tick(&mut inner);
        inner.seen.operation_count += 1;
        at_once(operation)
    }

    /// The database's clock goes as far as tokio's went.
    fn tick(&self, inner: &mut Inner) {
        let passed = self.started.elapsed();
        let clock = self.memory.clock();
        clock.advance(passed.saturating_sub(inner.passed));
        inner.passed = passed;
    }

    /// One operation that may change rows, at this instant of tokio's clock.
    pub fn apply<T>(&self, operation: impl Future<Output = T>) -> T {
        let mut inner = self.inner();
        self.tick(&mut inner);
        let answer = at_once(operation);
        let clock = self.memory.clock();
        let (rows, now) = (self.memory.rows(), clock.now());
        let moves = Moved::between(&inner.rows, &rows, now);
        let is_growing =
            inner.rows.iter().zip(&rows).all(|(before, after)| {
                before.id == after.id && before.lease_seq <= after.lease_seq
            });
        inner.moves.extend(moves);
        inner.rows.clone_from(&rows);
        inner.seen.operation_count += 1;
        drop(inner);
        always!(self, is_growing, "a row or a fence went back at {now:?}");
        self.check_rows(&rows, now);
        answer
    }

    fn check_rows(&self, rows: &[JobRow], now: DbTime) {
        for row in rows {
            let (id, status) = (row.id, row.status);
            let is_leased = row.lease_until.is_some();
            let is_running = status == Status::Running;
            always!(
                self,
                is_leased == is_running,
                "job {id}: {status} at {now:?}"
            );
            let is_fresh = row.attempt_no == 0;
            let may_be_fresh = !matches!(status, Status::Running | Status::Retry);
            always!(
                self,
                !is_fresh || may_be_fresh,
                "job {id}: {status} at {now:?}"
            );
        }
    }

    /// The rows after the last operation.
    pub fn rows(&self) -> Vec<JobRow> {
        self.inner().rows.clone()
    }

    /// The leases that this node has.
    pub fn in_hand(&self, node: &Node) -> Vec<LeaseOf> {
        let prefix = format!("{}-", node.name);
        let has = |row: &&JobRow| {
            let owner = row.lease_owner.as_ref();
            row.status == Status::Running
                && owner.is_some_and(|owner| owner.as_str().starts_with(&prefix))
        };
        let inner = self.inner();
        inner.rows.iter().filter(has).map(lease_of_row).collect()
    }

    /// Whether a job still runs under this lease.
    pub fn is_leased(&self, lease: LeaseOf) -> bool {
        let is = |row: &JobRow| row.status == Status::Running && lease_of_row(row) == lease;
        self.inner().rows.iter().any(is)
    }

    /// The last try to finish under these leases went wrong.
    pub fn trouble(&self, leases: &[LeaseOf], trouble: Trouble) {
        let mut inner = self.inner();
        inner
            .troubled
            .extend(leases.iter().map(|lease| (*lease, trouble)));
    }

    /// How the try before this one went wrong, if it did.
    pub fn settled(&self, lease: LeaseOf) -> Option<Trouble> {
        self.inner().troubled.remove(&lease)
    }

    /// Looks for what can be told from the whole run alone.
    pub fn look_back(&self) {
        let mut crashes: BTreeMap<u64, bool> = BTreeMap::new();
        for moved in self.moves() {
            let status = moved.after.as_ref().map(|after| after.status);
            let was = moved.before.as_ref().map(|before| before.status);
            let is_alone = crashes.entry(moved.id).or_insert(true);
            if was == Some(Status::Running) && status != was {
                *is_alone &= moved.is_reap();
                let is_dead = *is_alone && status == Some(Status::Dead);
                sometimes!(self, is_dead, "a job died of crashes alone");
            }
        }
    }

    pub fn moves(&self) -> Vec<Moved> {
        self.inner().moves.clone()
    }

    pub fn seen(&self) -> Seen {
        self.inner().seen.clone()
    }

    /// A fault was injected.
    pub fn fault(&self, kind: &'static str) {
        *self.inner().seen.faults.entry(kind).or_default() += 1;
    }

    pub fn sometimes(&self, name: &'static str) {
        assert!(SOMETIMES.contains(&name), "`{name}` is not listed");
        *self.inner().seen.sometimes.entry(name).or_default() += 1;
    }

    pub fn always(&self, holds: bool, what: impl FnOnce() -> String) {
        let mut inner = self.inner();
        inner.seen.always_count += 1;
        if !holds {
            inner.seen.broken.push(what());
        }
    }

    /// A handler runs until what this gives is dropped.
    pub fn enter(self: &Arc<Self>, id: u64) -> Running {
        let mut inner = self.inner();
        let count = inner.running.entry(id).or_default();
        *count += 1;
        let is_beside = *count > 1;
        drop(inner);
        if is_beside {
            self.sometimes("an attempt began beside an older one of its job");
        }
        let world = Arc::clone(self);
        Running { world, id }
    }
}

/// A handler that runs.
#[derive(Debug)]
pub struct Running {
    world: Arc<World>,
    id: u64,
}

impl Drop for Running {
    fn drop(&mut self) {
        let mut inner = self.world.inner();
        inner.running.entry(self.id).and_modify(|count| *count -= 1);
    }
}

/// A process. Everything that it does passes its gate.
#[derive(Debug)]
pub struct Node {
    pub name: String,
    is_crashed: AtomicBool,
    aborted: Notify,
    stalled_until: Mutex<Instant>,
}

impl Node {
    #[must_use]
    pub fn new(name: impl Into<String>) -> Arc<Self> {
        Arc::new(Self {
            name: name.into(),
            is_crashed: AtomicBool::new(false),
            aborted: Notify::new(),
            stalled_until: Mutex::new(Instant::now()),
        })
    }

    /// From now on nothing passes the gate: whatever its tasks were about to
    /// do, they never do. What it sent before may still arrive.
    pub fn crash(&self) {
        self.is_crashed.store(true, Ordering::Relaxed);
    }

    /// A handler takes its process down.
    pub async fn abort(&self) -> ! {
        self.crash();
        self.aborted.notify_one();
        std::future::pending().await
    }

    /// Waits for that.
    pub async fn aborted(&self) {
        self.aborted.notified().await;
    }

    pub fn is_crashed(&self) -> bool {
        self.is_crashed.load(Ordering::Relaxed)
    }

    /// Nothing passes until then.
    pub fn stall(&self, span: Duration) {
        let mut until = self.stalled_until.lock().unwrap();
        *until = (*until).max(Instant::now() + span);
    }

    /// Waits while the process is paused, and for ever once it has crashed.
    pub async fn gate(&self) {
        loop {
            if self.is_crashed() {
                std::future::pending::<()>().await;
            }
            let until = *self.stalled_until.lock().unwrap();
            if until <= Instant::now() {
                return;
            }
            tokio::time::sleep_until(until).await;
        }
    }

    /// Waits as a handler does: no earlier than the process goes on.
    pub async fn sleep(&self, span: Duration) {
        if span.is_zero() {
            tokio::task::yield_now().await;
        } else {
            tokio::time::sleep(span).await;
        }
        self.gate().await;
    }
}

const fn lease_of_row(row: &JobRow) -> LeaseOf {
    LeaseOf {
        id: row.id,
        lease_seq: row.lease_seq,
    }
}

/// The memory's operations never wait.
fn at_once<T>(operation: impl Future<Output = T>) -> T {
    match pin!(operation).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(answer) => answer,
        Poll::Pending => panic!("an operation of the memory waits"),
    }
}
