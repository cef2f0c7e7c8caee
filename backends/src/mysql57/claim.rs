//! Claim without `SKIP LOCKED`.

use retryjob_core::{
    JobSchema, Result,
    op::claim::{Claim, Claimed, ClaimedJob},
    sql::Catalogue,
};

use super::WithoutSkipLocked;
use crate::{
    fault::Fault,
    op::{
        Operation,
        claim::{Picked, pick, take, won},
    },
    session::Session,
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

/// Picks without a transaction and without a lock.
struct Pick<'a> {
    schema: &'a JobSchema,
    claim: &'a Claim,
}

impl Operation for Pick<'_> {
    type Answer = Picked;
    const IS_TRANSACTION: bool = false;

    async fn run<S: Session>(
        &mut self,
        session: &mut S,
        catalogue: &Catalogue,
        _is_unsure: bool,
    ) -> Result<Picked, Fault> {
        pick(session, catalogue, self.schema, self.claim).await
    }
}

/// Takes what was picked before, as a compare-and-set.
struct Take<'a> {
    claim: &'a Claim,
    picked: &'a [ClaimedJob],
}

impl Operation for Take<'_> {
    type Answer = Picked;
    const IS_TRANSACTION: bool = true;

    async fn run<S: Session>(
        &mut self,
        session: &mut S,
        catalogue: &Catalogue,
        is_unsure: bool,
    ) -> Result<Picked, Fault> {
        // What an earlier run took no longer matches, so the rows that are
        // read back hold what both runs won.
        let taken = take(session, catalogue, self.claim, self.picked).await?;
        if is_unsure && taken.is_empty() {
            return won(session, catalogue, self.claim, self.picked).await;
        }
        Ok(taken)
    }
}
