//! Shards: the leases that this node holds of them, for job types with
//! [`LeaseBy::Shard`](crate::LeaseBy).
//!
//! ```text
//! assigned ──▶ hold ──▶ claim ──▶ … ──▶ finish
//!                │ kept, or lost           │ none in hand
//!                ▼                         ▼
//!           handlers stop               release
//! ```
//!
//! A claim reads from where the last one ended. Jobs can come to lie before
//! that place: stored with an earlier time, or in a transaction that committed
//! late. So a shard is read from its head whenever none of its jobs is in hand,
//! and once in a while when some are.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::{
    sync,
    time::{Instant, timeout},
};

use super::{Shared, assign::LEAVE_FOR_MAX, settings::POLL_MIN};
use crate::{
    backend::Backend,
    error::Result,
    job::RetryJob,
    op::{
        claim::{CLAIM_SHARDS_MAX, ClaimedJob},
        due::Head,
        shards::{ClaimHeld, ClaimedHeld, HoldShards, Mark, ReleaseShards, ShardFence, ShardLease},
    },
    time::DbTime,
};

/// A shard with jobs in hand is read from its head this often.
const SWEEP_EVERY: Duration = Duration::from_secs(1);

/// Leases are kept this many times while one lasts.
const KEEPS_PER_LEASE: u32 = 4;

/// The longest wait before a shard that another still holds is asked for again.
const ASK_AGAIN_MAX: Duration = Duration::from_millis(250);

/// The leases that this node holds, by shard.
#[derive(Debug, Default)]
pub(super) struct Shards {
    held: Mutex<BTreeMap<u16, Holding>>,
    /// One claim at a time: until its jobs are in hand, another would read the
    /// same.
    claiming: sync::Mutex<()>,
    /// One request at a time: an answer that another has overtaken would undo
    /// what that one told.
    asking: sync::Mutex<()>,
}

#[derive(Clone, Copy, Debug)]
struct Holding {
    lease: ShardLease,
    /// When the lease ends, counted from before it was asked for.
    ends: Instant,
    /// Where the last claim ended.
    read_until: Mark,
    swept_at: Instant,
    /// Whether it is still this node's; else it is released when no job is in
    /// hand.
    is_own: bool,
}

/// Due shards of this node, told apart by how their jobs are claimed.
#[derive(Debug, Default)]
pub(super) struct Due {
    /// With jobs in doubt, which are leased by their rows.
    pub(super) in_doubt: Vec<Head>,
    pub(super) clear: Vec<Head>,
}

impl Shards {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<u16, Holding>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Which of these this node may claim from.
    pub(super) fn due(&self, heads: &[Head]) -> Due {
        let held = self.lock();
        let mut due = Due::default();
        for head in heads {
            match held.get(&head.shard_id) {
                Some(holding) if holding.is_own && holding.ends > Instant::now() => {
                    match Some(head.next_attempt_at) <= holding.lease.doubt_until {
                        true => due.in_doubt.push(*head),
                        false => due.clear.push(*head),
                    }
                }
                _ => {}
            }
        }
        due.in_doubt.truncate(CLAIM_SHARDS_MAX);
        due.clear.truncate(CLAIM_SHARDS_MAX);
        due
    }

    /// From where each of these shards is to be read, and how many jobs in hand
    /// lie beyond that place.
    fn marks(
        &self,
        heads: &[Head],
        in_hand: &BTreeMap<u16, usize>,
    ) -> (Vec<(ShardFence, Mark)>, usize) {
        let mut held = self.lock();
        let mut again = 0;
        let marks = heads.iter().filter_map(|head| {
            let holding = held.get_mut(&head.shard_id)?;
            let count = in_hand.get(&head.shard_id).copied().unwrap_or(0);
            let mark = if count == 0 || holding.swept_at.elapsed() >= SWEEP_EVERY {
                holding.swept_at = Instant::now();
                again += count;
                before(head.next_attempt_at)
            } else {
                holding.read_until
            };
            let after_doubt = holding.lease.doubt_until.map(after);
            Some((
                holding.lease.fence,
                after_doubt.map_or(mark, |doubt| doubt.max(mark)),
            ))
        });
        let marks = marks.collect();
        (marks, again)
    }

    /// Takes note of what was read, and answers when the leases end.
    fn read(&self, jobs: &[ClaimedJob]) -> BTreeMap<u16, Instant> {
        let mut held = self.lock();
        let mut ends = BTreeMap::new();
        for job in jobs {
            let fence = job.lease.shard;
            if let Some(holding) = held.get_mut(&job.shard_id)
                && fence == Some(holding.lease.fence)
            {
                holding.read_until = Mark {
                    next_attempt_at: job.next_attempt_at,
                    id: job.lease.id,
                };
                ends.insert(job.shard_id, holding.ends);
            }
        }
        ends
    }

    /// Takes note of what the node holds now; whether that is more than before.
    fn keep(&self, leases: &[ShardLease], own: &BTreeSet<u16>, ends: Instant) -> bool {
        let mut held = self.lock();
        let before = std::mem::take(&mut *held);
        let mut is_more = false;
        for lease in leases {
            let shard_id = lease.fence.shard_id;
            let is_own = own.contains(&shard_id);
            let known = before.get(&shard_id);
            let known = known.filter(|known| known.lease.fence == lease.fence);
            is_more |= is_own && known.is_none_or(|known| !known.is_own);
            let fresh = Holding {
                lease: *lease,
                ends,
                read_until: before_all(),
                swept_at: Instant::now(),
                is_own,
            };
            let holding = known.map_or(fresh, |known| Holding {
                ends,
                is_own,
                ..*known
            });
            held.insert(shard_id, holding);
        }
        is_more
    }

    fn fences(&self) -> Vec<ShardFence> {
        let held = self.lock();
        held.values().map(|holding| holding.lease.fence).collect()
    }

    /// Forgets what is held and no longer wanted, and not in hand.
    fn let_go(&self, own: &BTreeSet<u16>, in_hand: &BTreeMap<u16, usize>) -> Vec<ShardFence> {
        let mut held = self.lock();
        for (shard_id, holding) in held.iter_mut() {
            holding.is_own = own.contains(shard_id);
        }
        let unwanted = held.extract_if(.., |shard_id, holding| {
            !holding.is_own && !in_hand.contains_key(shard_id)
        });
        unwanted.map(|(_, holding)| holding.lease.fence).collect()
    }
}

const fn before(at: DbTime) -> Mark {
    Mark {
        next_attempt_at: at,
        id: 0,
    }
}

const fn before_all() -> Mark {
    before(DbTime::from_us(0))
}

fn after(at: DbTime) -> Mark {
    before(at.plus(Duration::from_micros(1)))
}

/// A job that was claimed under its shard's lease, and when that ends.
pub(super) type Claimed = (ClaimedJob, Instant);

/// Claims up to `limit` jobs of these shards, which are in hand when `take`
/// returns, and answers the time until another falls due, where that is known.
pub(super) async fn claim<J: RetryJob, B: Backend>(
    shared: &Shared<J, B>,
    heads: &[Head],
    limit: usize,
    take: impl FnOnce(Vec<Claimed>) + Send,
) -> Result<Option<Duration>> {
    let _one_at_a_time = shared.shards.claiming.lock().await;
    let in_hand = shared.held.by_shard();
    let (marks, again) = shared.shards.marks(heads, &in_hand);
    let claim = ClaimHeld {
        node: shared.node.name().clone(),
        owner: shared.node.shard_owner(),
        shards: marks,
        limit: u16::try_from(limit + again).unwrap_or(u16::MAX),
    };
    let ClaimedHeld { jobs, wait } = shared.queue.backend().claim_held(claim).await?;
    let ends = shared.shards.read(&jobs);
    let new = jobs.into_iter().filter_map(|job| {
        let ends = *ends.get(&job.shard_id)?;
        (!shared.held.contains(job.lease.id)).then_some((job, ends))
    });
    take(new.take(limit).collect());
    Ok(wait)
}

/// Holds this node's shards until the worker has ended, then releases them.
pub(super) async fn hold_until_stopped<J: RetryJob, B: Backend>(
    shared: &Shared<J, B>,
    backend: &B,
    stopped: impl Future<Output = ()>,
) {
    let mut changes = shared.assigned.changes();
    let lease = J::schema().lease;
    let holding = async {
        loop {
            changes.seen();
            let wait = match hold(shared, backend).await {
                Ok(true) => lease / KEEPS_PER_LEASE,
                Ok(false) => (lease / KEEPS_PER_LEASE).min(ASK_AGAIN_MAX),
                Err(error) => {
                    tracing::warn!(%error, "shards can't be held, trying again");
                    (lease / KEEPS_PER_LEASE / 2).min(ASK_AGAIN_MAX)
                }
            };
            let wait = tokio::time::sleep(wait.max(POLL_MIN));
            tokio::select! {
                biased;
                () = changes.next() => {}
                () = wait => {}
            }
        }
    };
    tokio::select! {
        biased;
        () = stopped => {}
        () = holding => {}
    }
    let fences = shared.shards.fences();
    if fences.is_empty() {
        return;
    }
    let release = ReleaseShards {
        node: shared.node.name().clone(),
        fences,
    };
    match timeout(LEAVE_FOR_MAX, backend.release_shards(release)).await {
        Ok(Ok(())) => {}
        Ok(Err(error)) => tracing::warn!(%error, "shards can't be released; they will lapse"),
        Err(_) => tracing::warn!("shards can't be released in time; they will lapse"),
    }
}

/// Keeps and takes leases; whether the node holds just what is its own.
pub(super) async fn hold<J: RetryJob, B: Backend>(
    shared: &Shared<J, B>,
    backend: &B,
) -> Result<bool> {
    let lease = J::schema().lease;
    let _one_at_a_time = shared.shards.asking.lock().await;
    let held = || -> BTreeSet<u16> {
        let fences = shared.shards.fences();
        fences.into_iter().map(|fence| fence.shard_id).collect()
    };
    // A node that does not know whether it is a member keeps what it has, and a
    // worker that stops takes nothing more.
    let own = match shared.assigned.own() {
        Some(own) if !shared.stop.is_cancelled() => own,
        _ => held(),
    };
    let unwanted = shared.shards.let_go(&own, &shared.held.by_shard());
    let node = shared.node.name().clone();
    if !unwanted.is_empty() {
        let release = ReleaseShards {
            node: node.clone(),
            fences: unwanted,
        };
        backend.release_shards(release).await?;
    }
    let ends = Instant::now() + lease;
    let hold = HoldShards {
        node,
        shard_ids: own.iter().copied().collect(),
        lease,
    };
    let leases = backend.hold_shards(hold).await?.held;
    let is_more = shared.shards.keep(&leases, &own, ends);
    let fences: BTreeSet<ShardFence> = leases.iter().map(|lease| lease.fence).collect();
    shared.held.keep_shards(&fences, ends);
    if is_more {
        shared.queue.wake();
    }
    Ok(held() == own)
}
