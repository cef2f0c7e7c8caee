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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::op::claim::LeaseOwner;

    const HOUR: Duration = Duration::from_secs(3600);
    const MINUTE: Duration = Duration::from_secs(60);

    fn lease(id: u64, lease_seq: u64) -> Lease {
        Lease {
            id,
            owner: LeaseOwner::from_row("node:1"),
            lease_seq,
            shard: None,
        }
    }

    fn in_minutes(minutes: u32) -> Instant {
        Instant::now() + MINUTE * minutes
    }

    #[test]
    fn a_lease_is_in_hand_until_it_is_dropped() {
        let held = Held::default();
        assert!(held.is_empty());
        let ends = in_minutes(1);
        held.hold(lease(7, 3), ends);
        assert!(!held.is_empty());
        assert_eq!(held.ends(&lease(7, 3)), Some(ends));
        // Neither another claim of the job nor another job is this lease.
        assert_eq!(held.ends(&lease(7, 4)), None);
        assert_eq!(held.ends(&lease(8, 3)), None);
        held.drop_lease(&lease(7, 3));
        assert!(held.is_empty());
    }

    #[test]
    fn a_newer_lease_of_a_job_ends_the_older_one_and_outlives_its_drop() {
        let held = Held::default();
        let older = held.hold(lease(7, 3), in_minutes(1));
        let other = held.hold(lease(8, 1), in_minutes(1));
        let newer = held.hold(lease(7, 4), in_minutes(1));
        assert!(older.is_cancelled());
        assert!(!other.is_cancelled() && !newer.is_cancelled());
        held.drop_lease(&lease(7, 3));
        assert!(held.ends(&lease(7, 4)).is_some());
    }

    #[test]
    fn leases_are_renewed_from_half_of_their_time_on_while_they_are_worth_it() {
        let held = Held::default();
        held.hold(lease(1, 1), in_minutes(29));
        held.hold(lease(2, 1), in_minutes(31));
        let lost = held.hold(lease(3, 1), in_minutes(1));
        lost.cancel();
        assert_eq!(held.to_renew(HOUR), [lease(1, 1)]);
        assert_eq!(held.to_renew(HOUR / 2), Vec::new());
    }

    #[test]
    fn a_renewal_moves_the_end_of_what_stands_and_stops_what_is_lost() {
        let held = Held::default();
        let first = in_minutes(1);
        let tokens = [1, 2, 3, 4].map(|id| held.hold(lease(id, 1), first));
        let later = in_minutes(60);
        // The third was claimed anew since it was asked for, the fifth is gone.
        let asked = [lease(1, 1), lease(2, 1), lease(3, 0), lease(5, 1)];
        held.renewed(&asked, &[2, 3, 5], later);
        assert_eq!(held.ends(&lease(1, 1)), Some(later));
        for id in [2, 3, 4] {
            assert_eq!(held.ends(&lease(id, 1)), Some(first), "{id}");
        }
        let lost = tokens.map(|token| token.is_cancelled());
        assert_eq!(lost, [false, true, false, false]);
    }

    #[test]
    fn handlers_are_stopped_a_tenth_before_their_lease_ends() {
        let held = Held::default();
        let ending = held.hold(lease(1, 1), in_minutes(5));
        let standing = held.hold(lease(2, 1), in_minutes(7));
        held.revoke_ending(HOUR);
        assert!(ending.is_cancelled());
        assert!(!standing.is_cancelled());
    }
}
