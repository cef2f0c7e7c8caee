//! Nodes: who works on a job table, by heartbeats and the database's clock.

use std::{fmt, sync::Arc, time::Duration};

/// How long a lapsed membership is remembered, for people who look at the
/// table; afterwards a heartbeat of another node removes it.
pub const FORGET_AFTER: Duration = Duration::from_secs(600);

/// Most lapsed memberships that one heartbeat removes.
pub const FORGET_NODES_MAX: usize = 8;

/// The name of a node, no other's: see [`Node`](crate::Node).
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeName(Arc<str>);

impl NodeName {
    /// The name that a row holds.
    #[must_use]
    pub fn from_row(text: &str) -> Self {
        Self(text.into())
    }

    /// The text that the row holds.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for NodeName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Says that a node works on this job type, and asks who else does.
#[derive(Clone, Debug)]
pub struct Heartbeat {
    /// The node.
    pub node: NodeName,
    /// How long it is a member from now, by the database's clock.
    pub member_for: Duration,
}

/// The nodes whose membership stands, by the database's clock: the one that
/// asked among them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Members {
    /// Their names, sorted.
    pub names: Vec<NodeName>,
}

/// Ends a membership at once, rather than when it lapses.
#[derive(Clone, Debug)]
pub struct Leave {
    /// The node.
    pub node: NodeName,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_shown_as_the_row_holds_it() {
        let name = NodeName::from_row("billing-7:42");
        assert_eq!(name.to_string(), name.as_str());
        assert_eq!(name.to_string(), "billing-7:42");
    }
}
