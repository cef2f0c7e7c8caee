//! Claim: due rows become leased attempts.

use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use crate::{
    key::IdempotencyKey,
    op::{
        due::{Head, Lane},
        nodes::NodeName,
        shards::ShardFence,
    },
    time::DbTime,
    value::Value,
};

/// Most bytes in the name of a node; a lease owner adds a colon and at
/// most 20 digits.
pub const NODE_BYTES_MAX: usize = 40;

/// Most shards that one claim looks into.
pub const CLAIM_SHARDS_MAX: usize = 32;

/// A worker among those that work on jobs; a process may run several.
///
/// # Examples
///
/// ```
/// use retryjob_core::Node;
///
/// let node = Node::new("billing-7");
/// assert_ne!(node.lease_owner(), node.lease_owner());
/// ```
#[derive(Clone, Debug)]
pub struct Node {
    name: NodeName,
    claims: Arc<AtomicU64>,
}

impl Node {
    /// A node with this name and a random suffix, which keeps two workers of
    /// the same name apart. Whatever is outside `[A-Za-z0-9._-]` is left out, and
    /// so is the end of a name that would exceed [`NODE_BYTES_MAX`] bytes.
    #[must_use]
    pub fn new(name: &str) -> Self {
        Self::with_suffix(name, rand::random())
    }

    /// The same with a suffix that the caller knows to be no other's. Which
    /// shards a node owns depends on it, so a run that is to be repeated gives
    /// it.
    #[doc(hidden)]
    #[must_use]
    pub fn with_suffix(name: &str, suffix: u32) -> Self {
        let kept: String = name
            .chars()
            .filter(|c| c.is_ascii_alphanumeric() || "._-".contains(*c))
            .take(NODE_BYTES_MAX - 9)
            .collect();
        Self {
            name: NodeName::from_row(&format!("{kept}-{suffix:08x}")),
            claims: Arc::default(),
        }
    }

    /// The node's name, suffix included.
    #[must_use]
    pub const fn name(&self) -> &NodeName {
        &self.name
    }

    /// The owner of what is finished under leases of shards, which no claim has
    /// written before.
    #[must_use]
    pub fn shard_owner(&self) -> LeaseOwner {
        LeaseOwner(self.name.as_str().into())
    }

    /// An owner for one claim. Each claim gets its own, so that two claims of
    /// the same node can never take each other's rows for their own.
    #[must_use]
    pub fn lease_owner(&self) -> LeaseOwner {
        let claim_no = self.claims.fetch_add(1, Ordering::Relaxed);
        LeaseOwner(format!("{}:{claim_no}", self.name).into())
    }
}

/// Who holds a lease: a node and the number of its claim, such as
/// `billing-7-1f0e9a2c:41`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct LeaseOwner(Arc<str>);

impl LeaseOwner {
    /// The owner that a row names.
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

impl fmt::Display for LeaseOwner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Proof of a claim. Finish, renew and reap compare all of it with the row:
/// `lease_seq` is the fence, it grows with every claim and never resets.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Lease {
    /// The job's id.
    pub id: u64,
    /// Who holds it.
    pub owner: LeaseOwner,
    /// Which claim of this job it is.
    pub lease_seq: u64,
    /// The shard's lease that stands for the row's, when there is one.
    pub shard: Option<ShardFence>,
}

/// Asks for due jobs of one lane.
#[derive(Clone, Debug)]
pub struct Claim {
    /// Owner of the leases; made for this claim alone by
    /// [`Node::lease_owner`].
    pub owner: LeaseOwner,
    /// New or retried jobs.
    pub lane: Lane,
    /// The shards to look into, in this order, with the instant of each one's
    /// earliest waiting job as [`DueHeads`](crate::op::due::DueHeads) gave it.
    /// Rows before that instant are not looked at: they are finished ones
    /// whose index entries the server has not yet removed.
    pub heads: Vec<Head>,
    /// Most jobs to claim.
    pub limit: u16,
    /// How long the leases are valid.
    pub lease: Duration,
}

/// Jobs that were claimed: due longest first within each shard, shards in the
/// order asked for.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Claimed {
    /// The jobs, each with its own lease.
    pub jobs: Vec<ClaimedJob>,
}

/// A job under lease, as its row holds it.
#[derive(Clone, Debug, PartialEq)]
pub struct ClaimedJob {
    /// Proof of the claim.
    pub lease: Lease,
    /// The shard.
    pub shard_id: u16,
    /// Which attempt this is: 1 is the first.
    pub attempt_no: u16,
    /// When this attempt was to start, by the database's clock.
    pub next_attempt_at: DbTime,
    /// Time since the job first fell due, when it was claimed.
    pub age: Duration,
    /// Time since this attempt fell due, when it was claimed.
    pub lag: Duration,
    /// The key that makes it unique.
    pub idempotency_key: IdempotencyKey,
    /// The struct's own columns, in the schema's order.
    pub columns: Vec<Value>,
    /// The JSON of the other fields.
    pub payload: Option<String>,
}
