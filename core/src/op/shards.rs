//! Leases of shards, for job types with [`LeaseBy::Shard`](crate::LeaseBy).
//!
//! While its lease stands, a node alone claims new jobs from a shard. It marks
//! no row as taken: which jobs it has in hand it knows itself, and a finish
//! proves the shard's lease and writes the row once.
//!
//! When a lease lapses rather than being released, jobs that were due by then
//! may be running, and may have ended the process that ran them. They are in
//! doubt: the next holder leases each of them by its own row, which counts the
//! attempt. Jobs that fall due later can't have been claimed by the former.

use std::time::Duration;

use super::{
    claim::{ClaimedJob, LeaseOwner},
    nodes::NodeName,
};
use crate::time::DbTime;

/// Which lease of a shard: the fence grows with every holder and never resets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ShardFence {
    /// The shard.
    pub shard_id: u16,
    /// Which lease of it.
    pub fence: u64,
}

/// A lease of a shard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShardLease {
    /// The shard, and which lease of it.
    pub fence: ShardFence,
    /// Jobs that were due by then are in doubt.
    pub doubt_until: Option<DbTime>,
}

/// Keeps the leases that a node holds, and takes those of these shards that
/// nobody holds.
#[derive(Clone, Debug)]
pub struct HoldShards {
    /// The node.
    pub node: NodeName,
    /// The shards that it is to hold. Others that it holds it keeps as well,
    /// until they are released.
    pub shard_ids: Vec<u16>,
    /// How long each lease is valid from now, by the database's clock.
    pub lease: Duration,
}

/// The leases that a node holds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ShardLeases {
    /// One per shard, in the order of their ids.
    pub held: Vec<ShardLease>,
}

/// Ends leases of shards at once. No job of theirs may be in hand.
#[derive(Clone, Debug)]
pub struct ReleaseShards {
    /// The node.
    pub node: NodeName,
    /// The leases. Those that it no longer holds are left as they are.
    pub fences: Vec<ShardFence>,
}

/// A place in the order of a shard's jobs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Mark {
    /// When a job is to start.
    pub next_attempt_at: DbTime,
    /// The job.
    pub id: u64,
}

/// Asks for due jobs of shards that a node holds.
#[derive(Clone, Debug)]
pub struct ClaimHeld {
    /// The node.
    pub node: NodeName,
    /// The owner that finishes will write.
    pub owner: LeaseOwner,
    /// The shards to look into, in this order, and after which place.
    pub shards: Vec<(ShardFence, Mark)>,
    /// Most jobs to claim.
    pub limit: u16,
}

/// Jobs that were claimed under the leases of their shards.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ClaimedHeld {
    /// Shard by shard as asked for, oldest first within each, and jobs that are
    /// in hand already among them. None of a shard whose lease does not stand.
    pub jobs: Vec<ClaimedJob>,
    /// When there are fewer than asked for: the time until another job of these
    /// shards falls due, `None` when none waits.
    pub wait: Option<Duration>,
}
