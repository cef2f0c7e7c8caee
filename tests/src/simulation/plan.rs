//! What handlers do: each attempt draws its own way to end.

use std::{panic::resume_unwind, sync::Arc, time::Duration};

use retryjob::{Backend as _, ErrorKind, Leased, Outcome, Queue, Result};

use super::{
    LEASE, Sim, SimEffect, SimJob, TIMEOUT,
    world::{Node, World},
};
use crate::{
    history::{Attempt, Event, Recorder, record::LeaseOf},
    sometimes,
};

/// What the handlers of one process know.
#[derive(Clone, Debug)]
pub struct Stage {
    pub world: Arc<World>,
    pub node: Arc<Node>,
    pub recorder: Recorder,
    pub backend: Sim,
}

/// The job that aborts its process, in runs that have one.
const POISON: u32 = 1000;

#[derive(Clone, Copy, Debug)]
enum Plan {
    Done,
    FinishIn,
    NoCommit,
    Retry,
    RetryAfter,
    Snooze,
    Hold,
    Dead,
    Panic,
    TooLong,
    Long,
}

const PLANS: [(Plan, u64); 11] = [
    (Plan::Done, 20),
    (Plan::FinishIn, 30),
    (Plan::NoCommit, 4),
    (Plan::Retry, 10),
    (Plan::RetryAfter, 5),
    (Plan::Snooze, 6),
    (Plan::Hold, 5),
    (Plan::Dead, 3),
    (Plan::Panic, 5),
    (Plan::TooLong, 4),
    (Plan::Long, 12),
];

fn draw(world: &World) -> Plan {
    if world.is_calm() {
        return Plan::FinishIn;
    }
    let at = world.chance.weighted(&PLANS.map(|(_, weight)| weight));
    let plan = PLANS.get(at).map_or(Plan::Done, |(plan, _)| *plan);
    match plan {
        // The history of this run has an effect for every success.
        Plan::Done if world.has_effects() => Plan::FinishIn,
        plan => plan,
    }
}

/// One attempt.
pub async fn handle(job: Leased<SimJob, Sim>, stage: Stage) -> Outcome {
    let (world, node) = (&stage.world, &stage.node);
    node.gate().await;
    let attempt = Attempt::of(&job);
    stage.recorder.note(Event::Started(attempt));
    let _running = world.enter(attempt.id);
    if job.no == POISON && world.has_poison() && !world.is_calm() {
        world.fault("abort in a handler");
        node.abort().await
    }
    let plan = draw(world);
    let span = match plan {
        Plan::TooLong => Duration::from_secs(60),
        Plan::Long => world.chance.ms(1500, 2900),
        _ if world.is_calm() => Duration::ZERO,
        _ => world.chance.ms(0, 120),
    };
    let timer = TooLong {
        world,
        is_too_long: matches!(plan, Plan::TooLong),
        began: tokio::time::Instant::now(),
    };
    node.sleep(span).await;
    drop(timer);
    let lease = LeaseOf {
        id: attempt.id,
        lease_seq: attempt.lease_seq,
    };
    let has_outlived = span > LEASE && world.is_leased(lease);
    sometimes!(world, has_outlived, "a handler outlived its first lease");
    match plan {
        Plan::Done => Outcome::Done,
        Plan::Long if !world.has_effects() => Outcome::Done,
        Plan::FinishIn | Plan::Long => or_retry(&stage, attempt, finish_in(&stage, &job).await),
        Plan::NoCommit => {
            let ended = without_commit(&stage, &job).await;
            or_retry(&stage, attempt, ended)
        }
        Plan::Retry | Plan::TooLong => Outcome::retry("once more"),
        Plan::RetryAfter => Outcome::retry_after(world.chance.ms(0, 900), "later"),
        Plan::Snooze => Outcome::snooze(world.chance.ms(1, 900)),
        Plan::Hold => Outcome::hold("someone has to look"),
        Plan::Dead => Outcome::dead("it can't succeed"),
        Plan::Panic => {
            sometimes!(world, "a handler panicked");
            // Without the hook: no text for each of thousands.
            resume_unwind(Box::new("planned"))
        }
    }
}

/// Sees a handler that is dropped by its timeout.
struct TooLong<'a> {
    world: &'a World,
    is_too_long: bool,
    began: tokio::time::Instant,
}

impl Drop for TooLong<'_> {
    fn drop(&mut self) {
        let timeout = TIMEOUT;
        let is_over = self.is_too_long && self.began.elapsed() >= timeout;
        sometimes!(self.world, is_over, "a handler ran over its timeout");
    }
}

fn or_retry(stage: &Stage, attempt: Attempt, ended: Result<Outcome>) -> Outcome {
    match ended {
        Ok(outcome) => outcome,
        Err(error) => {
            if error.kind() == ErrorKind::LeaseLost {
                stage.recorder.note(Event::Lost(attempt));
            }
            Outcome::retry(error.to_string())
        }
    }
}

/// An effect and the finish in one transaction.
async fn finish_in(stage: &Stage, job: &Leased<SimJob, Sim>) -> Result<Outcome> {
    let backend = &stage.backend;
    let mut tx = backend.begin().await?;
    let outcome = write(stage, job, &mut tx).await?;
    if stage.world.chance.percent(15) && !stage.world.is_calm() {
        stage.node.sleep(LEASE / 2).await;
    }
    backend.commit(tx).await?;
    stage.recorder.note(Event::Committed(Attempt::of(job)));
    Ok(outcome)
}

/// A handler with a mistake in it: it says that it has finished, and has not.
async fn without_commit(stage: &Stage, job: &Leased<SimJob, Sim>) -> Result<Outcome> {
    let mut tx = stage.backend.begin().await?;
    let outcome = write(stage, job, &mut tx).await?;
    sometimes!(
        stage.world,
        "a handler ended without the commit that it spoke of"
    );
    Ok(outcome)
}

async fn write(
    stage: &Stage,
    job: &Leased<SimJob, Sim>,
    tx: &mut retryjob_core::memory::MemoryConnection,
) -> Result<Outcome> {
    let effects = Queue::<SimEffect, Sim>::new(stage.backend.clone());
    let effect = SimEffect {
        id: job.id(),
        lease_seq: job.lease().lease_seq,
    };
    effects.enqueue_in(tx, &effect).await?;
    job.finish_in(tx).await
}
