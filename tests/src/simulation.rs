//! The worker of `core`, its loops as they are, under faults that a seed draws.
//!
//! ```text
//! seed ──▶ Chance ──┬──▶ Faulty: delays, repeats, loses, refuses
//!                   ├──▶ crowd: workers join, leave, pause, crash
//!                   └──▶ plan: what each handler does
//! one thread, tokio's paused clock ──▶ Recorded ──▶ history::check
//! ```
//!
//! One thread runs everything, time passes only when nothing else is left to
//! do, and whatever is random is drawn from one stream. So a seed gives the
//! same run every time. At the end the faults stop, what is left is worked off,
//! and the history is held against every promise.

pub mod chance;

pub mod seen;

pub mod world;

pub mod faulty;

pub mod plan;

pub mod crowd;

use std::{sync::Arc, time::Duration};

use retryjob::{Backend as _, RetryJob};

use self::{
    crowd::Crowd,
    faulty::Faulty,
    seen::Seen,
    world::{Node, World},
};
use crate::history::{Effect, History, Promise, Recorded, Recorder, Rules, Violation, check};

/// How long a lease of the simulated job is.
pub const LEASE: Duration = Duration::from_secs(2);

/// How long its handlers may take.
pub const TIMEOUT: Duration = Duration::from_secs(3);

/// The job that is simulated.
#[derive(Debug, RetryJob)]
#[retry_job(
    table = "sim_job",
    shards = 3,
    lease = "2s",
    timeout = "3s",
    batch = 4,
    retry(fixed = "200ms", jitter = "100ms", max_attempts = 3)
)]
pub struct SimJob {
    #[job(unique)]
    pub no: u32,
}

/// What handlers write beside their finish, in one transaction.
#[derive(Debug, RetryJob)]
#[retry_job(table = "sim_effect")]
pub struct SimEffect {
    pub id: u64,
    pub lease_seq: u64,
}

/// The backend of everyone in the simulation.
pub type Sim = Recorded<Faulty>;

/// One run.
#[derive(Debug)]
pub struct Run {
    pub seed: u64,
    pub history: History,
    pub seen: Seen,
    pub violations: Vec<Violation>,
}

/// Runs one seed to its end and holds its history against the promises.
#[must_use]
pub fn run(seed: u64) -> Run {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build();
    runtime.unwrap().block_on(play(seed))
}

async fn play(seed: u64) -> Run {
    let world = World::new(seed);
    let recorder = Recorder::in_memory();
    // Before the first fault: what is tested begins with an installed table.
    world.memory().install().await.unwrap();
    let effects = world.memory().for_schema(SimEffect::schema());
    effects.install().await.unwrap();
    let is_drained = Crowd::new(&world, &recorder).play().await;
    world.look_back();

    let history = History {
        records: recorder.records(),
        moves: world.moves(),
        effects: effects
            .jobs::<SimEffect>()
            .iter()
            .map(|(_, effect)| of(effect))
            .collect(),
        rows: world.memory().rows(),
    };
    let rules = Rules {
        has_effects: world.has_effects(),
        is_drained,
        ..Rules::of(&SimJob::schema().retry)
    };
    let mut violations = check(&history, &rules).err().unwrap_or_default();
    if !is_drained {
        let what = "the last worker did not come to an end".into();
        let promise = Promise::Drained;
        violations.push(Violation { promise, what });
    }
    Run {
        seed,
        history,
        seen: world.seen(),
        violations,
    }
}

const fn of(effect: &SimEffect) -> Effect {
    Effect {
        id: effect.id,
        lease_seq: effect.lease_seq,
    }
}

/// A process of the simulation and its way to the database.
fn backend(world: &Arc<World>, node: &Arc<Node>, recorder: &Recorder) -> Sim {
    let faulty = Faulty::new(Arc::clone(world), Arc::clone(node));
    Recorded::new(faulty, recorder.clone())
}

impl Run {
    /// Whatever went wrong, a line each.
    #[must_use]
    pub fn faults(&self) -> Vec<String> {
        let broken = self.violations.iter().map(ToString::to_string);
        broken.chain(self.seen.broken.iter().cloned()).collect()
    }

    /// Everything that happened, to hold two runs against each other.
    #[must_use]
    pub fn transcript(&self) -> String {
        let (records, moves) = (&self.history.records, &self.history.moves);
        let lines = records.iter().map(|record| format!("{record:?}\n"));
        lines
            .chain(moves.iter().map(|moved| format!("{moved:?}\n")))
            .collect()
    }
}
