//! Claim with `SKIP LOCKED`.

use retryjob_core::{
    Result,
    op::claim::{Claim, Claimed},
};

use super::WithSkipLocked;
use crate::{op::claim::PickAndTake, store::Store};

/// Picks due rows of one shard after the other, locked and passing over locked
/// ones, and leases them by id before the locks go.
///
/// # Source
///
/// MySQL 8.4 Reference Manual, "Locking Reads".
pub(super) async fn claim(store: &Store<WithSkipLocked>, claim: Claim) -> Result<Claimed> {
    let jobs = store.run(PickAndTake::new(store.schema, &claim)).await?;
    Ok(Claimed { jobs })
}
