//! A database in memory behind a bad network, for one process.

use std::{pin::Pin, sync::Arc, time::Duration};

use retryjob::{Backend, Error, ErrorKind, Memory, Result};
use retryjob_core::{
    JobSchema, ShardUse,
    memory::{MemoryConnection, MemoryTx},
    op::{
        claim::{Claim, Claimed},
        counts::Counts,
        doctor::Report,
        due::{Lane, LaneHeads},
        enqueue::{Enqueued, NewJob},
        finish::{Ending, Finish, Finished},
        nodes::{Heartbeat, Leave, Members},
        operate::{Operate, Operated},
        reap::{Reap, Reaped},
        renew::{Renew, Renewed},
        shards::{ClaimHeld, ClaimedHeld, HoldShards, ReleaseShards, ShardLeases},
    },
    retry::Decision,
};

use super::world::{Node, Trouble, World};
use crate::{history::record::LeaseOf, sometimes};

type Work<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// Draws, at every operation, what goes wrong with it.
#[derive(Clone, Debug)]
pub struct Faulty {
    memory: Memory,
    world: Arc<World>,
    node: Arc<Node>,
}

/// A call that was made, whether or not its caller is told.
struct Made<T> {
    first: Result<T>,
    /// The answer of the second time, when it came twice.
    second: Option<Result<T>>,
    is_answer_lost: bool,
}

impl Faulty {
    #[must_use]
    pub fn new(world: Arc<World>, node: Arc<Node>) -> Self {
        let memory = world.memory().clone();
        Self {
            memory,
            world,
            node,
        }
    }

    /// Happens this often, in percent, while faults go on.
    fn draws(&self, percent: u32) -> bool {
        !self.world.is_calm() && self.world.chance.percent(percent)
    }

    /// The way to the database, or back.
    async fn travel(&self) {
        let span = self.delay();
        if !span.is_zero() {
            tokio::time::sleep(span).await;
        }
        self.node.gate().await;
    }

    fn delay(&self) -> Duration {
        let odds = self.world.odds;
        if self.world.is_calm() {
            return Duration::ZERO;
        }
        if self.world.chance.percent(odds.slow) {
            self.world.fault("slow call");
            return self.world.chance.ms(100, 2500);
        }
        self.world.chance.ms(0, odds.delay_ms_max)
    }

    /// Goes there; an error says that nothing was done.
    async fn arrive(&self) -> Result<()> {
        self.node.gate().await;
        self.travel().await;
        if self.draws(self.world.odds.refused) {
            self.world.fault("refused call");
            return Err(Error::new(ErrorKind::Transient, "refused"));
        }
        Ok(())
    }

    /// Makes a call that changes rows. Once it has been sent it may take place
    /// although its caller is gone, as with a server that reads on after its
    /// client has died.
    async fn make<T: Send + 'static>(
        &self,
        first: impl Future<Output = Result<T>> + Send + 'static,
        again: Option<Work<Result<T>>>,
    ) -> Result<Made<T>> {
        self.arrive().await?;
        let world = Arc::clone(&self.world);
        let again = again.filter(|_| self.draws(world.odds.repeated));
        let is_answer_lost = self.draws(world.odds.answer_lost);
        let is_detached = self.draws(world.odds.detached);
        let [wait, between] = [self.delay(), self.delay()];
        let node = Arc::clone(&self.node);
        let run = async move {
            if is_detached && !wait.is_zero() {
                tokio::time::sleep(wait).await;
            }
            if node.is_crashed() {
                sometimes!(world, "a call took effect after its caller was gone");
            }
            let first = world.apply(first);
            let second = match again {
                None => None,
                Some(again) => {
                    world.fault("call that came twice");
                    tokio::time::sleep(between).await;
                    Some(world.apply(again))
                }
            };
            (first, second)
        };
        let (first, second) = if is_detached {
            match tokio::spawn(run).await {
                Ok(done) => done,
                Err(panic) => std::panic::resume_unwind(panic.into_panic()),
            }
        } else {
            run.await
        };
        self.travel().await;
        if is_answer_lost {
            self.world.fault("lost answer");
        }
        Ok(Made {
            first,
            second,
            is_answer_lost,
        })
    }

    async fn look<T>(&self, operation: impl Future<Output = Result<T>>) -> Result<T> {
        self.arrive().await?;
        let answer = self.world.read(operation);
        self.travel().await;
        answer
    }
}

impl<T> Made<T> {
    fn answer(self) -> Result<T> {
        if self.is_answer_lost {
            return Err(Error::new(ErrorKind::Transient, "the answer was lost"));
        }
        self.second.unwrap_or(self.first)
    }
}

fn leases(finishes: &[Finish]) -> Vec<LeaseOf> {
    let leases = finishes.iter().map(|finish| LeaseOf {
        id: finish.lease.id,
        lease_seq: finish.lease.lease_seq,
    });
    leases.collect()
}

impl Faulty {
    /// What there is to see in a finish that was made.
    fn see_finish(&self, finishes: &[Finish], made: &Made<Finished>) {
        let (world, leases) = (&self.world, leases(finishes));
        let Ok(first) = &made.first else { return };
        let is_lost = |id| first.lost.contains(&id);
        if let Some(Ok(second)) = &made.second {
            let is_same = first.lost.is_empty() && second.lost.is_empty();
            sometimes!(world, is_same, "a finish that came twice was no error");
        }
        for (finish, lease) in finishes.iter().zip(&leases) {
            let before = world.settled(*lease);
            if is_lost(lease.id) {
                sometimes!(world, "a finish was refused for its lease");
                continue;
            }
            match before {
                Some(Trouble::Refused) => {
                    sometimes!(world, "a finish was lost on its way and came again");
                }
                Some(Trouble::AnswerLost) if !made.is_answer_lost => {
                    sometimes!(world, "a finish was made, its answer lost, and came again");
                }
                _ => {}
            }
            if let Ending::GiveBack { delay } = finish.ending {
                sometimes!(world, delay.is_zero(), "a stopping worker gave a job back");
                sometimes!(world, !delay.is_zero(), "a snoozed job went back");
            }
        }
        if made.is_answer_lost {
            world.trouble(&leases, Trouble::AnswerLost);
        }
    }

    /// What there is to see in a claim that was made.
    fn see_claim(&self, claim: &Claim, made: &Made<Claimed>) {
        let (world, Ok(claimed)) = (&self.world, &made.first) else {
            return;
        };
        let is_empty = claimed.jobs.is_empty();
        sometimes!(world, is_empty, "a claim found nothing left to take");
        let is_lost = made.is_answer_lost && !is_empty;
        sometimes!(world, is_lost, "a claim was made and its answer lost");
        let max = self.memory.schema().retry.max_attempts;
        let is_last = claimed.jobs.iter().any(|job| job.attempt_no >= max);
        let is_alone = claim.lane == Lane::Alone && is_last;
        sometimes!(world, is_alone, "a last attempt ran alone");
        let node = claim.owner.as_str().split(':').next();
        let is_others = |row: &retryjob_core::memory::JobRow| {
            let owner = row.lease_owner.as_ref();
            let other = owner.and_then(|owner| owner.as_str().split(':').next());
            row.lease_until.is_some() && other != node
        };
        let shards: Vec<_> = claimed.jobs.iter().map(|job| job.shard_id).collect();
        let has_moved = world
            .rows()
            .iter()
            .any(|row| shards.contains(&row.shard_id) && is_others(row));
        sometimes!(world, has_moved, "a shard had jobs of two nodes in hand");
    }
}

impl Backend for Faulty {
    type Connection = MemoryConnection;
    type Tx = MemoryTx;
    const KEEPS_IN_THREAD: bool = false;
    const NAME: &'static str = "memory";
    const SHARDS: ShardUse = Memory::SHARDS;

    async fn connect(url: &str, _: &'static JobSchema) -> Result<Self> {
        Err(Error::new(ErrorKind::Url, format!("`{url}` has no world")))
    }

    fn for_schema(&self, schema: &'static JobSchema) -> Self {
        Self {
            memory: self.memory.for_schema(schema),
            ..self.clone()
        }
    }

    async fn reconnect(&self) -> Result<Self> {
        Ok(self.clone())
    }

    fn schema(&self) -> &'static JobSchema {
        self.memory.schema()
    }

    async fn install(&self) -> Result<()> {
        self.look(self.memory.install()).await
    }

    async fn enqueue(&self, jobs: Vec<NewJob>) -> Result<Vec<Enqueued>> {
        let (memory, repeated) = (self.memory.clone(), self.memory.clone());
        let copy = jobs.clone();
        let first = async move { memory.enqueue(jobs).await };
        let again = Box::pin(async move { repeated.enqueue(copy).await });
        self.make(first, Some(again)).await?.answer()
    }

    async fn enqueue_in(
        &self,
        connection: &mut MemoryConnection,
        jobs: Vec<NewJob>,
    ) -> Result<Vec<Enqueued>> {
        self.look(self.memory.enqueue_in(connection, jobs)).await
    }

    async fn finish_in(&self, connection: &mut MemoryConnection, finish: Finish) -> Result<()> {
        self.look(self.memory.finish_in(connection, finish)).await
    }

    async fn due_heads(&self) -> Result<LaneHeads> {
        self.look(self.memory.due_heads()).await
    }

    async fn claim(&self, claim: Claim) -> Result<Claimed> {
        let (memory, asked) = (self.memory.clone(), claim.clone());
        let first = async move { memory.claim(claim).await };
        let made = self.make(first, None).await?;
        self.see_claim(&asked, &made);
        made.answer()
    }

    async fn renew(&self, renew: Renew) -> Result<Renewed> {
        let (memory, repeated) = (self.memory.clone(), self.memory.clone());
        let copy = renew.clone();
        let first = async move { memory.renew(renew).await };
        let again = Box::pin(async move { repeated.renew(copy).await });
        let renewed = self.make(first, Some(again)).await?.answer()?;
        let is_lost = !renewed.lost.is_empty();
        sometimes!(self.world, is_lost, "a renewal was refused");
        Ok(renewed)
    }

    async fn finish(&self, finishes: Vec<Finish>) -> Result<Finished> {
        let (memory, repeated) = (self.memory.clone(), self.memory.clone());
        let (asked, copy) = (finishes.clone(), finishes.clone());
        let first = async move { memory.finish(finishes).await };
        let again = Box::pin(async move { repeated.finish(copy).await });
        match self.make(first, Some(again)).await {
            Ok(made) => {
                self.see_finish(&asked, &made);
                made.answer()
            }
            Err(error) => {
                self.world.trouble(&leases(&asked), Trouble::Refused);
                Err(error)
            }
        }
    }

    /// In its two halves, with time between them.
    async fn reap(&self, reap: Reap) -> Result<Reaped> {
        let lapsed = self.look(self.memory.look_lapsed(reap.limit)).await?;
        let (count, memory) = (lapsed.len(), self.memory.clone());
        if count == 0 {
            return Ok(Reaped::default());
        }
        let first = async move { memory.take_back(lapsed).await };
        let finishes = self.make(first, None).await?.answer()?;
        let is_late = finishes.len() < count;
        sometimes!(self.world, is_late, "a reaper found that another was first");
        let dead = |finish: &Finish| match &finish.ending {
            Ending::Failed { decision, .. } => *decision == Decision::Dead,
            _ => false,
        };
        let has_dead = finishes.iter().any(dead);
        sometimes!(
            self.world,
            has_dead,
            "a job died when its last lease lapsed"
        );
        let has_more = count >= usize::from(reap.limit);
        Ok(Reaped { finishes, has_more })
    }

    async fn operate(&self, operate: Operate) -> Result<Operated> {
        let memory = self.memory.clone();
        let first = async move { memory.operate(operate).await };
        self.make(first, None).await?.answer()
    }

    async fn counts(&self) -> Result<Counts> {
        self.look(self.memory.counts()).await
    }

    async fn has_open(&self) -> Result<bool> {
        self.look(self.memory.has_open()).await
    }

    async fn heartbeat(&self, heartbeat: Heartbeat) -> Result<Members> {
        self.look(self.memory.heartbeat(heartbeat)).await
    }

    async fn leave(&self, leave: Leave) -> Result<()> {
        self.look(self.memory.leave(leave)).await
    }

    async fn hold_shards(&self, hold: HoldShards) -> Result<ShardLeases> {
        self.look(self.memory.hold_shards(hold)).await
    }

    async fn release_shards(&self, release: ReleaseShards) -> Result<()> {
        self.look(self.memory.release_shards(release)).await
    }

    async fn claim_held(&self, claim: ClaimHeld) -> Result<ClaimedHeld> {
        self.look(self.memory.claim_held(claim)).await
    }

    async fn doctor(&self) -> Result<Report> {
        self.look(self.memory.doctor()).await
    }

    async fn begin(&self) -> Result<MemoryTx> {
        self.look(self.memory.begin()).await
    }

    async fn commit(&self, tx: MemoryTx) -> Result<()> {
        let memory = self.memory.clone();
        let made = self
            .make(async move { memory.commit(tx).await }, None)
            .await?;
        if let Err(error) = &made.first {
            let is_lost = error.kind() == ErrorKind::LeaseLost;
            sometimes!(self.world, is_lost, "a commit was refused for its lease");
        } else if made.is_answer_lost {
            sometimes!(self.world, "a commit was made and its answer lost");
        }
        made.answer()
    }

    async fn rollback(&self, tx: MemoryTx) -> Result<()> {
        self.look(self.memory.rollback(tx)).await
    }

    async fn close(&self) {}
}
