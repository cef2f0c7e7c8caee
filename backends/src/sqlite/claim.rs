//! Claim in SQLite.

use retryjob_core::{
    Result,
    op::claim::{Claim, Claimed},
};

use super::InFile;
use crate::{op::claim::PickAndTake, store::Store};

/// Picks and leases in one transaction, which has the file to itself.
pub(super) async fn claim(store: &Store<InFile>, claim: Claim) -> Result<Claimed> {
    let jobs = store.run(PickAndTake::new(store.schema, &claim)).await?;
    Ok(Claimed { jobs })
}
