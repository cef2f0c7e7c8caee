//! Which shard a job belongs to, and how work is spread over a window.

use std::time::Duration;

use crate::key::{KeyEncoder, KeyError};

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
