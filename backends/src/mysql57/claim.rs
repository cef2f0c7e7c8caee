//! Claim without `SKIP LOCKED`.

use retryjob_core::{
    Result,
    op::claim::{Claim, Claimed},
};

use super::WithoutSkipLocked;
use crate::{
    op::claim::{Pick, Take},
    store::Store,
};

/// Reads due rows without a lock, then leases those that are still as they
/// were read: the row's status and `lease_seq` are compared.
pub(super) async fn claim(store: &Store<WithoutSkipLocked>, claim: Claim) -> Result<Claimed> {
    let pick = Pick {
        schema: store.schema,
        claim: &claim,
    };
    let picked = store.run(pick).await?;
    if picked.is_empty() {
        return Ok(Claimed::default());
    }
    let take = Take {
        claim: &claim,
        picked: &picked,
    };
    let jobs = store.run(take).await?;
    Ok(Claimed { jobs })
}
