//! Steps of nodes that hold shards and claim under the leases of them.

use proptest::{collection::vec, prelude::*};
use retryjob_core::{
    Backend,
    op::{
        claim::LeaseOwner,
        due::Lane,
        nodes::NodeName,
        shards::{ClaimHeld, HoldShards, Mark, ReleaseShards, ShardFence, ShardLeases},
    },
    time::DbTime,
};

use super::{LEASE, Pair};
use crate::TestDatabase;

/// Nodes that hold shards.
pub(super) const NODES: usize = 3;

/// What a node does. Leases are chosen among those it was told of, by number.
#[derive(Clone, Debug)]
pub enum Step {
    Hold(usize, Vec<u16>),
    Release(usize, Vec<usize>),
    Claim(usize, usize, u16),
    /// Claims what a lapse has left in doubt, by its rows.
    Doubt(Vec<u16>, u16),
}

pub(super) fn step() -> impl Strategy<Value = Step> {
    let node = || 0..NODES;
    prop_oneof![
        4 => (node(), vec(0..3u16, 0..4)).prop_map(|(node, ids)| Step::Hold(node, ids)),
        1 => (node(), vec(any::<usize>(), 1..3)).prop_map(|(node, at)| Step::Release(node, at)),
        5 => (node(), any::<usize>(), 1..6u16)
            .prop_map(|(node, at, limit)| Step::Claim(node, at, limit)),
        2 => (vec(0..3u16, 1..3), 1..6u16).prop_map(|(ids, limit)| Step::Doubt(ids, limit)),
    ]
}

fn node_name(node: usize) -> NodeName {
    NodeName::from_row(&format!("node-{node}"))
}

impl<D: TestDatabase> Pair<'_, D> {
    pub(super) async fn shard_step(&mut self, step: &Step, context: &str) {
        match step {
            Step::Hold(node, shard_ids) => self.hold(*node, shard_ids, context).await,
            Step::Release(node, chosen) => self.release(*node, chosen).await,
            Step::Claim(node, at, limit) => self.claim_held(*node, *at, *limit, context).await,
            Step::Doubt(shard_ids, limit) => {
                self.claim(Lane::Doubt, shard_ids, *limit, context).await;
            }
        }
    }

    async fn hold(&mut self, node: usize, shard_ids: &[u16], context: &str) {
        let hold = HoldShards {
            node: node_name(node),
            shard_ids: shard_ids.to_vec(),
            lease: LEASE,
        };
        let here = self.memory.hold_shards(hold.clone()).await.unwrap();
        let there = self.backend.hold_shards(hold).await.unwrap();
        // Two clocks agree on whether there is doubt, not on when to the
        // microsecond; what is in doubt is compared by claims.
        let plain = |leases: &ShardLeases| -> Vec<_> {
            let leases = leases.held.iter();
            leases
                .map(|lease| (lease.fence, lease.doubt_until.is_some()))
                .collect()
        };
        assert_eq!(plain(&there), plain(&here), "{context}");
        self.fences[node].extend(here.held.iter().map(|lease| lease.fence));
    }

    /// A lease that the node was told of; late ones are likelier to still stand.
    fn fence(&self, node: usize, at: usize) -> Option<ShardFence> {
        let known = &self.fences[node];
        let count = known.len();
        (count > 0).then(|| known[count - 1 - at % count.min(6)])
    }

    async fn release(&mut self, node: usize, chosen: &[usize]) {
        let fences = chosen.iter().filter_map(|at| self.fence(node, *at));
        let release = ReleaseShards {
            node: node_name(node),
            fences: fences.collect(),
        };
        self.memory.release_shards(release.clone()).await.unwrap();
        self.backend.release_shards(release).await.unwrap();
    }

    async fn claim_held(&mut self, node: usize, at: usize, limit: u16, context: &str) {
        let Some(fence) = self.fence(node, at) else {
            return;
        };
        let first = Mark {
            next_attempt_at: DbTime::from_us(0),
            id: 0,
        };
        let claim = ClaimHeld {
            node: node_name(node),
            owner: LeaseOwner::from_row(node_name(node).as_str()),
            shards: vec![(fence, first)],
            limit,
        };
        let here = self.memory.claim_held(claim.clone()).await.unwrap().jobs;
        let there = self.backend.claim_held(claim).await.unwrap().jobs;
        self.claimed(here, there, context);
    }
}
