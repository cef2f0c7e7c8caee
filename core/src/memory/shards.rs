//! Who holds the lease of each shard.

use std::collections::BTreeMap;

use crate::{
    op::{
        claim::LeaseOwner,
        nodes::NodeName,
        shards::{HoldShards, ReleaseShards, ShardFence, ShardLease, ShardLeases},
    },
    time::DbTime,
};

#[derive(Debug, Default)]
pub(super) struct Shards(BTreeMap<u16, Shard>);

#[derive(Debug)]
struct Shard {
    /// `None` when it was released, or never held.
    node: Option<NodeName>,
    fence: u64,
    lease_until: DbTime,
    doubt_until: Option<DbTime>,
}

impl Shards {
    pub(super) fn hold(&mut self, hold: &HoldShards, now: DbTime) -> ShardLeases {
        let until = now.plus(hold.lease);
        for shard in self.0.values_mut() {
            if shard.is_held_by(&hold.node, now) {
                shard.lease_until = until;
            }
        }
        for shard_id in &hold.shard_ids {
            let shard = self.0.entry(*shard_id).or_insert(Shard {
                node: None,
                fence: 0,
                lease_until: now,
                doubt_until: None,
            });
            let has_lapsed = shard.lease_until < now;
            if shard.node.is_some() && !has_lapsed {
                continue;
            }
            if shard.node.is_some() {
                shard.doubt_until = Some(shard.lease_until);
            }
            shard.node = Some(hold.node.clone());
            shard.fence += 1;
            shard.lease_until = until;
        }
        let held = self.0.iter();
        let held = held.filter(|(_, shard)| shard.is_held_by(&hold.node, now));
        ShardLeases {
            held: held
                .map(|(shard_id, shard)| ShardLease {
                    fence: ShardFence {
                        shard_id: *shard_id,
                        fence: shard.fence,
                    },
                    doubt_until: shard.doubt_until,
                })
                .collect(),
        }
    }

    pub(super) fn release(&mut self, release: &ReleaseShards, now: DbTime) {
        for fence in &release.fences {
            if let Some(shard) = self.0.get_mut(&fence.shard_id)
                && shard.fence == fence.fence
                && shard.is_held_by(&release.node, now)
            {
                shard.node = None;
            }
        }
    }

    /// Whether a node's lease of a shard stands. What is finished under it
    /// bears the node's name as its owner.
    pub(super) fn stands(&self, owner: &LeaseOwner, fence: ShardFence, now: DbTime) -> bool {
        self.0.get(&fence.shard_id).is_some_and(|shard| {
            let node = shard.node.as_ref();
            shard.fence == fence.fence
                && shard.lease_until >= now
                && node.is_some_and(|node| node.as_str() == owner.as_str())
        })
    }

    pub(super) fn doubt_until(&self, shard_id: u16) -> Option<DbTime> {
        self.0.get(&shard_id)?.doubt_until
    }
}

impl Shard {
    fn is_held_by(&self, node: &NodeName, now: DbTime) -> bool {
        self.node.as_ref() == Some(node) && self.lease_until >= now
    }
}
