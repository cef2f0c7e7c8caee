//! Random sequences of operations, done to the reference and to a database
//! side by side, with answers and rows compared after every step.

mod compare;
mod shards;
mod step;

use std::{collections::BTreeMap, time::Duration};

use retryjob_core::{
    Backoff, Finished, Ident, JobSchema, LeaseBy, Memory, RetryPolicy,
    op::{
        claim::{ClaimedJob, Lease},
        shards::ShardFence,
    },
};

pub use self::step::{Step, steps};
use crate::TestDatabase;

/// Time goes by in steps of this, and every span below ends halfway between
/// two of them: the little time that a real clock adds decides nothing.
pub const TICK: Duration = Duration::from_secs(200);

/// Half of it.
pub const HALF: Duration = Duration::from_secs(100);

/// A lease is valid over one tick, not over two.
pub const LEASE: Duration = Duration::from_secs(300);

/// What passes between any two steps, so that no two of them happen at the
/// same instant on the reference, whose clock stands still.
const BETWEEN: Duration = Duration::from_millis(1);

const BASE: JobSchema = JobSchema {
    shards: 3,
    lease: LEASE,
    retry: RetryPolicy {
        backoff: Backoff::Fixed { delay: HALF },
        max_attempts: 3,
        ..RetryPolicy::DEFAULT
    },
    ..JobSchema::new(Ident::new("model_keep"))
};

/// The job types that sequences run on: what succeeded stays, or goes; leases of
/// rows, or of shards.
pub static SCHEMAS: [JobSchema; 5] = [
    BASE.checked(),
    JobSchema {
        table: Ident::new("model_delete"),
        finished: Finished::Delete,
        ..BASE
    }
    .checked(),
    JobSchema {
        table: Ident::new("model_history"),
        finished: Finished::History,
        ..BASE
    }
    .checked(),
    JobSchema {
        table: Ident::new("model_held_keep"),
        lease_by: LeaseBy::Shard,
        ..BASE
    }
    .checked(),
    JobSchema {
        table: Ident::new("model_held_delete"),
        lease_by: LeaseBy::Shard,
        finished: Finished::Delete,
        ..BASE
    }
    .checked(),
];

/// The reference and the database under test, and what is known of both.
#[derive(Debug)]
pub struct Pair<'a, D: TestDatabase> {
    pub db: &'a D,
    pub schema: &'static JobSchema,
    pub memory: Memory,
    pub backend: D::Backend,
    /// Ids differ: a database may leave out numbers.
    ids: BTreeMap<u64, u64>,
    /// Every claim ever made, in the reference's ids.
    claimed: Vec<ClaimedJob>,
    next_owner: u64,
    /// Every lease of a shard that each node was ever told of.
    fences: [Vec<ShardFence>; shards::NODES],
}

impl<'a, D: TestDatabase> Pair<'a, D> {
    pub async fn new(db: &'a D, schema: &'static JobSchema) -> Self {
        let memory = Memory::new(schema);
        Self {
            db,
            schema,
            memory,
            backend: db.installed(schema).await,
            ids: BTreeMap::new(),
            claimed: Vec::new(),
            next_owner: 0,
            fences: Default::default(),
        }
    }

    /// Does these steps to both.
    ///
    /// # Panics
    ///
    /// When they differ, with the step after which they did.
    pub async fn run(&mut self, steps: &[Step]) {
        for (at, step) in steps.iter().enumerate() {
            let context = format!("step {at}, {step:?}");
            self.step(step, &context).await;
            self.compare(&context).await;
            self.pass(BETWEEN).await;
        }
    }

    async fn pass(&self, span: Duration) {
        self.memory.clock().advance(span);
        self.db.pass(self.schema, span).await;
    }

    /// The id of the database's row for one of the reference.
    fn there(&self, id: u64) -> u64 {
        self.ids.get(&id).copied().unwrap_or(id + 1_000_000)
    }

    fn lease_there(&self, lease: &Lease) -> Lease {
        Lease {
            id: self.there(lease.id),
            ..lease.clone()
        }
    }

    /// The reference's id for a row of the database.
    fn here(&self, id: u64) -> u64 {
        let found = self.ids.iter().find(|(_, there)| **there == id);
        found.map_or_else(|| id.saturating_sub(1_000_000), |(here, _)| *here)
    }

    fn all_here(&self, ids: Vec<u64>) -> Vec<u64> {
        let mut here: Vec<_> = ids.into_iter().map(|id| self.here(id)).collect();
        here.sort_unstable();
        here
    }
}
