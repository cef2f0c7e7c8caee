//! Which shard a job belongs to, which node a shard, and how work is spread
//! over a window.

use std::{collections::BTreeSet, time::Duration};

use crate::{
    key::{KeyEncoder, KeyError},
    op::nodes::NodeName,
};

/// Most shards of one table.
pub const SHARDS_MAX: u16 = 4096;

/// Most characters of a shard key that is kept as a column.
pub const SHARD_KEY_CHARS_MAX: u16 = 128;

/// The shard of a hash: the hash modulo the number of shards.
///
/// # Shape
///
/// Always below `shards`; 0 when `shards` is 0.
#[must_use]
pub fn shard_of(hash: u64, shards: u16) -> u16 {
    let shard = hash.checked_rem(u64::from(shards)).unwrap_or(0);
    u16::try_from(shard).unwrap_or(0)
}

/// The hash of a shard key made by a template, such as `UA_20130204`.
///
/// # Errors
///
/// None in practice: a text can always be encoded.
///
/// # Examples
///
/// ```
/// use retryjob_core::shard::{shard_key_hash, shard_of};
///
/// // The same on every platform and in every release.
/// assert_eq!(shard_of(shard_key_hash("UA_20130204")?, 256), 183);
/// # Ok::<(), retryjob_core::KeyError>(())
/// ```
pub fn shard_key_hash(shard_key: &str) -> Result<u64, KeyError> {
    let mut key = KeyEncoder::new();
    key.field("shard_key", shard_key)?;
    Ok(key.shard_hash())
}

/// A stable offset in `[0, window)` for a job, so that work that is due on the
/// hour does not all start on the hour.
///
/// # Units
///
/// Whole microseconds.
#[must_use]
pub fn spread_offset(seed: u64, window: Duration) -> Duration {
    let window_us = u64::try_from(window.as_micros()).unwrap_or(u64::MAX);
    Duration::from_micros(seed.checked_rem(window_us).unwrap_or(0))
}

/// The shards of a node: those that it has the highest weight for among all
/// members (rendezvous hashing).
///
/// Every member computes the same from the same names, so nobody is elected
/// and nothing is handed over. A node that joins takes its part from all
/// others, one that leaves gives its part to all others, and no shard moves
/// between two that stay.
///
/// # Shape
///
/// Every shard below `shards` belongs to exactly one member, whatever the
/// order of the names. A node that is no member has none.
///
/// # Source
///
/// Thaler and Ravishankar, "Using name-based mappings to increase hit rates",
/// 1998.
///
/// # Examples
///
/// ```
/// use retryjob_core::{op::nodes::NodeName, shard::shards_of};
///
/// let members = ["a", "b", "c"].map(NodeName::from_row);
/// let count: usize = members
///     .iter()
///     .map(|node| shards_of(node, &members, 64).len())
///     .sum();
/// assert_eq!(count, 64);
/// ```
#[must_use]
pub fn shards_of(node: &NodeName, members: &[NodeName], shards: u16) -> BTreeSet<u16> {
    (0..shards)
        .filter(|shard_id| owner_of(*shard_id, members) == Some(node))
        .collect()
}

/// The member that a shard belongs to; `None` when there is none.
#[must_use]
pub fn owner_of(shard_id: u16, members: &[NodeName]) -> Option<&NodeName> {
    // Two weights are never the same in practice; the name decides if they are.
    members
        .iter()
        .max_by_key(|node| (weight(shard_id, node), *node))
}

/// A number that depends on the two alone, on every platform and in every
/// release: nodes of two releases work side by side.
fn weight(shard_id: u16, node: &NodeName) -> u64 {
    let mut key = KeyEncoder::new();
    let encoded = key
        .field("node", node.as_str())
        .and_then(|key| key.field("shard_id", &shard_id));
    debug_assert!(encoded.is_ok(), "a text and a number can be encoded");
    key.shard_hash()
}
