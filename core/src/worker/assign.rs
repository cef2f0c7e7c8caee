//! Assign: which shards are this node's, by its last heartbeat.
//!
//! ```text
//! join ──▶ beat ──▶ … ──▶ beat ──▶ leave
//!            │ members
//!            ▼
//!        shards_of ──▶ poll
//! ```
//!
//! A node that crashed is a member until its membership lapses, and the others
//! learn that with their next heartbeat: well within a lease of the job type.
//! A node counts its own membership from before the heartbeat was sent, so it
//! never takes itself for a member longer than the database does. When it does
//! not know, it goes on with any shard, its own of before first: a lone worker
//! whose heartbeats fail works on, and several mostly stay out of each other's
//! way.

use std::{collections::BTreeSet, time::Duration};

use tokio::{
    sync::watch,
    time::{Instant, timeout},
};

use super::{Shared, shards};
use crate::{
    backend::{Backend, ShardUse},
    error::{Error, ErrorKind, Result},
    job::RetryJob,
    op::{
        claim::CLAIM_SHARDS_MAX,
        due::{DueHeads, Head},
        nodes::{Heartbeat, Leave, Members, NodeName},
    },
    schema::LeaseBy,
    shard::shards_of,
};

/// Memberships that fit into a lease. Several, since the node that is next in
/// line for a shard may have crashed as well.
const MEMBERSHIPS_PER_LEASE: u32 = 8;
/// Within it no busy server or host loses a heartbeat.
const MEMBER_FOR_MIN: Duration = Duration::from_millis(250);
/// The longest that shards of a crashed node wait.
const MEMBER_FOR_MAX: Duration = Duration::from_secs(10);
const BEATS_PER_MEMBERSHIP: u32 = 4;
/// How long a worker that stops waits to be let go.
pub(super) const LEAVE_FOR_MAX: Duration = Duration::from_secs(1);

/// How long a heartbeat makes a node a member.
pub(super) fn member_for(lease: Duration) -> Duration {
    (lease / MEMBERSHIPS_PER_LEASE)
        .clamp(MEMBER_FOR_MIN, MEMBER_FOR_MAX)
        .min(lease / 2)
}

/// What this node knows of its shards, for the pollers to read and to be woken
/// by.
#[derive(Debug, Default)]
pub(super) struct Assigned(watch::Sender<Assignment>);

#[derive(Debug, Default)]
struct Assignment {
    members: Vec<NodeName>,
    shard_ids: BTreeSet<u16>,
    /// When the membership ends; `None` when it has not begun or has lapsed.
    until: Option<Instant>,
}

/// What a node may claim of one lane.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Claimable {
    /// The shards to look into, in this order.
    pub(super) due: Vec<Head>,
    /// Time until another shard has a job that is due; `None` when none waits.
    pub(super) wait: Option<Duration>,
}

impl Assigned {
    /// What of these heads this node may claim, at this moment.
    pub(super) fn claimable(&self, shards: ShardUse, heads: DueHeads) -> Claimable {
        self.0.borrow().claimable(shards, heads)
    }

    /// The shards of this node; `None` when it does not know.
    pub(super) fn own(&self) -> Option<BTreeSet<u16>> {
        let known = self.0.borrow();
        known.stands().then(|| known.shard_ids.clone())
    }

    /// Tells of every change from now on.
    pub(super) fn changes(&self) -> Changes {
        Changes(self.0.subscribe())
    }

    /// Takes note of a heartbeat that was answered.
    fn beaten(&self, node: &NodeName, members: Members, shards: u16, until: Instant) {
        let is_known = self.0.borrow().members == members.names;
        if is_known {
            self.0.send_if_modified(|known| {
                let stood = known.stands();
                known.until = Some(until);
                !stood
            });
            return;
        }
        let shard_ids = shards_of(node, &members.names, shards);
        let (owned, member_count) = (shard_ids.len(), members.names.len());
        tracing::info!(%node, owned, shards, member_count, "shards assigned");
        self.0.send_replace(Assignment {
            members: members.names,
            shard_ids,
            until: Some(until),
        });
    }

    /// Takes note of a heartbeat that failed.
    fn failed(&self, node: &NodeName) {
        self.0.send_if_modified(|known| {
            let has_lapsed = known.until.is_some() && !known.stands();
            if has_lapsed {
                known.until = None;
                tracing::warn!(%node, "the membership lapsed, working on any shard, its own first");
            }
            has_lapsed
        });
    }
}

/// Lets a poller wait for a change.
#[derive(Debug)]
pub(super) struct Changes(watch::Receiver<Assignment>);

impl Changes {
    /// What has changed so far is known.
    pub(super) fn seen(&mut self) {
        self.0.mark_unchanged();
    }

    pub(super) async fn next(&mut self) {
        if self.0.changed().await.is_err() {
            std::future::pending().await
        }
    }
}

impl Assignment {
    fn stands(&self) -> bool {
        self.until.is_some_and(|until| Instant::now() < until)
    }

    fn claimable(&self, shards: ShardUse, mut heads: DueHeads) -> Claimable {
        let is_own = |head: &Head| self.shard_ids.contains(&head.shard_id);
        if shards == ShardUse::Own && self.stands() {
            heads.heads.retain(is_own);
        }
        let (mut due, others): (Vec<_>, Vec<_>) = match shards {
            ShardUse::Any => (heads.due().collect(), Vec::new()),
            ShardUse::Own | ShardUse::OwnFirst => heads.due().partition(is_own),
        };
        due.extend(others);
        due.truncate(CLAIM_SHARDS_MAX);
        let later = heads.heads.iter().map(|head| head.next_attempt_at);
        let later = later.filter(|at| *at > heads.now).min();
        let wait = later.map(|at| at.since(heads.now));
        Claimable { due, wait }
    }
}

/// The first heartbeat, before the first poll, and with it the first leases of
/// shards.
///
/// # Errors
///
/// What no retry cures, such as a missing table.
pub(super) async fn join<J: RetryJob, B: Backend>(shared: &Shared<J, B>) -> Result<()> {
    let joining = async {
        beat(shared, shared.queue.backend()).await?;
        if J::schema().lease_by == LeaseBy::Shard {
            shards::hold(shared, shared.queue.backend()).await?;
        }
        Ok(())
    };
    match joining.await {
        Err(error) if Error::is_transient(&error) => {
            tracing::warn!(%error, "the first heartbeat failed, trying again");
            Ok(())
        }
        joined => joined,
    }
}

/// Sends heartbeats until the worker stops, then leaves.
pub(super) async fn beat_until_stopped<J: RetryJob, B: Backend>(
    shared: &Shared<J, B>,
    backend: &B,
) {
    let every = member_for(J::schema().lease) / BEATS_PER_MEMBERSHIP;
    let beating = async {
        loop {
            tokio::time::sleep(every).await;
            if let Err(error) = beat(shared, backend).await {
                tracing::warn!(%error, "a heartbeat failed, trying again");
                shared.assigned.failed(shared.node.name());
            }
        }
    };
    tokio::select! {
        biased;
        () = shared.stop.cancelled() => {}
        () = beating => {}
    }
    let node = shared.node.name().clone();
    match timeout(LEAVE_FOR_MAX, backend.leave(Leave { node })).await {
        Ok(Ok(())) => {}
        Ok(Err(error)) => tracing::warn!(%error, "can't leave; the membership will lapse"),
        Err(_) => tracing::warn!("can't leave in time; the membership will lapse"),
    }
}

async fn beat<J: RetryJob, B: Backend>(shared: &Shared<J, B>, backend: &B) -> Result<()> {
    let member_for = member_for(J::schema().lease);
    let until = Instant::now() + member_for;
    let node = shared.node.name();
    let heartbeat = Heartbeat {
        node: node.clone(),
        member_for,
    };
    // An answer that comes later tells of a membership that is over.
    let Ok(answer) = timeout(member_for, backend.heartbeat(heartbeat)).await else {
        let message = format!("the heartbeat was not answered in {member_for:?}");
        return Err(Error::new(ErrorKind::Transient, message));
    };
    let members = answer?;
    if B::SHARDS != ShardUse::Any || J::schema().lease_by == LeaseBy::Shard {
        let shards = J::schema().shards;
        shared.assigned.beaten(node, members, shards, until);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::DbTime;

    const HOUR: Duration = Duration::from_secs(3600);

    /// Two of four shards, for an hour; due are 0 to 2, the third in a second.
    fn assigned(until: Option<Instant>) -> Assignment {
        Assignment {
            members: Vec::new(),
            shard_ids: BTreeSet::from([2, 3]),
            until,
        }
    }

    fn heads() -> DueHeads {
        let head = |(shard_id, us)| Head {
            shard_id,
            next_attempt_at: DbTime::from_us(us),
        };
        DueHeads {
            now: DbTime::from_us(10),
            heads: [(0, 1), (2, 5), (1, 10), (3, 1_000_010)].map(head).to_vec(),
        }
    }

    fn shards_due(claimable: &Claimable) -> Vec<u16> {
        claimable.due.iter().map(|head| head.shard_id).collect()
    }

    #[test]
    fn a_member_claims_from_its_own_shards_only_or_first_or_from_any() {
        let assignment = assigned(Some(Instant::now() + HOUR));
        let own = assignment.claimable(ShardUse::Own, heads());
        assert_eq!(shards_due(&own), [2]);
        let own_first = assignment.claimable(ShardUse::OwnFirst, heads());
        assert_eq!(shards_due(&own_first), [2, 0, 1]);
        let any = assignment.claimable(ShardUse::Any, heads());
        assert_eq!(shards_due(&any), [0, 2, 1]);
    }

    #[test]
    fn a_member_waits_for_jobs_of_its_own_shards() {
        let assignment = Assignment {
            shard_ids: BTreeSet::from([3]),
            ..assigned(Some(Instant::now() + HOUR))
        };
        let own = assignment.claimable(ShardUse::Own, heads());
        assert_eq!(shards_due(&own), [0; 0]);
        assert_eq!(own.wait, Some(Duration::from_secs(1)));
        let own_first = assignment.claimable(ShardUse::OwnFirst, heads());
        // The others are due; when more falls due is another matter.
        assert_eq!(shards_due(&own_first), [0, 2, 1]);
        assert_eq!(own_first.wait, Some(Duration::from_secs(1)));
    }

    #[test]
    fn a_node_that_does_not_know_claims_from_any_shard_its_own_of_before_first() {
        let lapsed = assigned(Some(Instant::now()));
        let own = lapsed.claimable(ShardUse::Own, heads());
        assert_eq!(shards_due(&own), [2, 0, 1]);
        let never = Assignment::default().claimable(ShardUse::Own, heads());
        assert_eq!(shards_due(&never), [0, 2, 1]);
    }

    #[test]
    fn no_claim_looks_into_more_shards_than_one_may() {
        let head = |shard_id| Head {
            shard_id,
            next_attempt_at: DbTime::from_us(shard_id.into()),
        };
        let many = DueHeads {
            now: DbTime::from_us(1000),
            heads: (0..100).map(head).collect(),
        };
        let assignment = Assignment {
            shard_ids: BTreeSet::from([98, 99]),
            ..assigned(Some(Instant::now() + HOUR))
        };
        let due = assignment.claimable(ShardUse::OwnFirst, many);
        let expected: Vec<u16> = [98, 99].into_iter().chain(0..30).collect();
        assert_eq!(shards_due(&due), expected);
    }

    #[test]
    fn several_memberships_fit_into_a_lease() {
        let ms = Duration::from_millis;
        for (lease, member) in [
            (ms(100), ms(50)),
            (ms(800), ms(250)),
            (ms(8_000), ms(1_000)),
            (HOUR, ms(10_000)),
        ] {
            assert_eq!(member_for(lease), member, "{lease:?}");
        }
    }

    #[test]
    fn pollers_are_told_of_a_change_and_of_a_lapse_and_of_nothing_else() {
        let [a, b] = ["a", "b"].map(NodeName::from_row);
        let members = |names: &[&NodeName]| Members {
            names: names.iter().copied().cloned().collect(),
        };
        let assigned = Assigned::default();
        let mut changes = assigned.changes();
        let mut is_told = || {
            let told = changes.0.has_changed().unwrap();
            changes.seen();
            told
        };
        let later = Instant::now() + HOUR;
        assigned.beaten(&a, members(&[&a]), 8, later);
        assert!(is_told());
        assigned.beaten(&a, members(&[&a]), 8, later);
        assert!(!is_told());
        assigned.failed(&a);
        assert!(!is_told(), "one failure is no lapse");
        assigned.beaten(&a, members(&[&a, &b]), 8, Instant::now());
        assert!(is_told());
        assigned.failed(&a);
        assert!(is_told());
        assigned.failed(&a);
        assert!(!is_told());
        assigned.beaten(&a, members(&[&a, &b]), 8, later);
        assert!(is_told(), "a member again");
    }
}
