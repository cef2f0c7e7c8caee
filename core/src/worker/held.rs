//! The leases that this worker holds, from claim to written finish.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::op::{claim::Lease, shards::ShardFence};

/// A part of the lease that is kept as distance: handlers are stopped this
/// much before it ends.
const STOP_BEFORE: u32 = 10;

/// The leases in hand, by job id and in its order, so that what a worker asks
/// for depends on its jobs alone.
#[derive(Debug, Default)]
pub(super) struct Held(Mutex<BTreeMap<u64, Holding>>);

#[derive(Debug)]
struct Holding {
    lease: Lease,
    /// When the lease ends, counted from before the request that gave it was
    /// sent, and so never later than the database thinks.
    ends: Instant,
    revoke: CancellationToken,
}

impl Held {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<u64, Holding>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes note of a lease; the token is cancelled when it is lost.
    ///
    /// An older lease of the same job is lost by that: its attempt may still be
    /// running here, and nothing else would tell it.
    pub(super) fn hold(&self, lease: Lease, ends: Instant) -> CancellationToken {
        let revoke = CancellationToken::new();
        let holding = Holding {
            ends,
            revoke: revoke.clone(),
            lease,
        };
        if let Some(older) = self.lock().insert(holding.lease.id, holding) {
            older.revoke.cancel();
        }
        revoke
    }

    /// Forgets a lease: its finish is written, or it is lost.
    pub(super) fn drop_lease(&self, lease: &Lease) {
        let mut held = self.lock();
        // The same job may be in hand again, under a newer lease.
        if held
            .get(&lease.id)
            .is_some_and(|holding| holding.lease == *lease)
        {
            held.remove(&lease.id);
        }
    }

    /// Whether no lease is in hand.
    pub(super) fn is_empty(&self) -> bool {
        self.lock().is_empty()
    }

    /// When this lease ends; `None` when it is not held.
    pub(super) fn ends(&self, lease: &Lease) -> Option<Instant> {
        let held = self.lock();
        let holding = held.get(&lease.id)?;
        (holding.lease == *lease).then_some(holding.ends)
    }

    /// Whether this job is in hand.
    pub(super) fn contains(&self, id: u64) -> bool {
        self.lock().contains_key(&id)
    }

    /// How many jobs are in hand under the lease of each shard.
    pub(super) fn by_shard(&self) -> BTreeMap<u16, usize> {
        let mut counts = BTreeMap::new();
        for holding in self.lock().values() {
            if let Some(fence) = holding.lease.shard {
                *counts.entry(fence.shard_id).or_default() += 1;
            }
        }
        counts
    }

    /// Takes note of the leases of shards that stand; jobs under any other are
    /// lost.
    pub(super) fn keep_shards(&self, fences: &BTreeSet<ShardFence>, ends: Instant) {
        for holding in self.lock().values_mut() {
            match holding.lease.shard {
                None => {}
                Some(fence) if fences.contains(&fence) => holding.ends = ends,
                Some(_) => holding.revoke.cancel(),
            }
        }
    }

    /// Leases of rows that have outlived half of theirs.
    pub(super) fn to_renew(&self, lease: Duration) -> Vec<Lease> {
        let half_gone = Instant::now() + lease / 2;
        self.lock()
            .values()
            .filter(|holding| holding.lease.shard.is_none())
            .filter(|holding| holding.ends < half_gone && !holding.revoke.is_cancelled())
            .map(|holding| holding.lease.clone())
            .collect()
    }

    /// Takes note that leases were renewed, and which were lost.
    pub(super) fn renewed(&self, leases: &[Lease], lost: &[u64], ends: Instant) {
        let mut held = self.lock();
        for lease in leases {
            let Some(holding) = held.get_mut(&lease.id) else {
                continue;
            };
            if holding.lease != *lease {
                continue;
            }
            if lost.contains(&lease.id) {
                holding.revoke.cancel();
            } else {
                holding.ends = ends;
            }
        }
    }

    /// Stops the handlers of leases that are about to end.
    pub(super) fn revoke_ending(&self, lease: Duration) {
        let soon = Instant::now() + lease / STOP_BEFORE;
        for holding in self.lock().values() {
            if holding.ends <= soon {
                holding.revoke.cancel();
            }
        }
    }
}
