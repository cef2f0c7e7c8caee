//! Who works on which job type, until when.

use std::collections::BTreeMap;

use crate::{
    op::nodes::{FORGET_AFTER, FORGET_NODES_MAX, Heartbeat, Leave, Members, NodeName},
    schema::JobSchema,
    time::DbTime,
};

/// The end of each membership, by job table and node.
#[derive(Debug, Default)]
pub(super) struct Nodes(BTreeMap<&'static str, BTreeMap<NodeName, DbTime>>);

impl Nodes {
    pub(super) fn heartbeat(
        &mut self,
        schema: &JobSchema,
        heartbeat: Heartbeat,
        now: DbTime,
    ) -> Members {
        let nodes = self.0.entry(schema.table.as_str()).or_default();
        nodes.insert(heartbeat.node, now.plus(heartbeat.member_for));
        let forgotten = nodes
            .extract_if(.., |_, until| until.plus(FORGET_AFTER) < now)
            .take(FORGET_NODES_MAX);
        forgotten.for_each(drop);
        let members = nodes.iter().filter(|(_, until)| **until >= now);
        Members {
            names: members.map(|(node, _)| node.clone()).collect(),
        }
    }

    pub(super) fn leave(&mut self, schema: &JobSchema, leave: &Leave) {
        if let Some(nodes) = self.0.get_mut(schema.table.as_str()) {
            nodes.remove(&leave.node);
        }
    }

    /// Every node that is remembered, sorted, and when its membership ends.
    pub(super) fn known(&self, schema: &JobSchema) -> Vec<(NodeName, DbTime)> {
        let nodes = self.0.get(schema.table.as_str());
        let known = nodes.into_iter().flatten();
        known.map(|(node, until)| (node.clone(), *until)).collect()
    }
}
