//! Reap, in its two halves: what has lapsed is read, and then taken back if
//! it is still so.

use retryjob_core::{
    Lease, RetryPolicy, Value,
    op::{
        claim::LeaseOwner,
        finish::{Finish, Settled},
        reap::Lapsed,
    },
    schema::BATCH_MAX,
    sql::{Bind, Catalogue, Slot},
};

use super::{
    Operation,
    claim::span,
    entry,
    finish::{outcomes, settle_value},
    read, unbound, write_list,
};
use crate::{
    fault::Fault,
    session::{Fields, Session},
};

/// Reads lapsed leases; changes and locks nothing.
pub(crate) struct LookLapsed {
    pub(crate) limit: u16,
}

impl Operation for LookLapsed {
    type Answer = Vec<Lapsed>;
    const IS_TRANSACTION: bool = false;

    async fn run<S: Session>(
        &mut self,
        session: &mut S,
        catalogue: &Catalogue,
        _is_unsure: bool,
    ) -> Result<Vec<Lapsed>, Fault> {
        let value = |bind: Bind| match bind.slot {
            Slot::Limit => Value::U64(self.limit.min(BATCH_MAX).into()),
            slot => unbound(slot),
        };
        let rows = read(session, &catalogue.lapsed, value).await?;
        let lapsed = |row| {
            let mut fields = Fields::of(row);
            let id = fields.take("id")?;
            let owner: String = fields.take("lease_owner")?;
            let lease_seq = fields.take("lease_seq")?;
            Ok(Lapsed {
                lease: Lease {
                    id,
                    owner: LeaseOwner::from_row(&owner),
                    lease_seq,
                    shard: None,
                },
                attempt_no: fields.take("attempt_no")?,
                age: span(fields.take("age_us")?),
            })
        };
        rows.into_iter().map(lapsed).collect()
    }
}

/// Ends attempts whose lease is still lapsed, in the order of their ids.
pub(crate) struct TakeBack {
    finishes: Vec<Finish>,
    /// Whether they are written one by one.
    is_careful: bool,
}

impl TakeBack {
    pub(crate) fn new(lapsed: Vec<Lapsed>, policy: &RetryPolicy) -> Self {
        let mut finishes: Vec<Finish> = lapsed
            .into_iter()
            .map(|lapsed| lapsed.finish(policy))
            .collect();
        finishes.sort_by_key(|finish| finish.lease.id);
        finishes.dedup_by_key(|finish| finish.lease.id);
        Self {
            finishes,
            is_careful: false,
        }
    }
}

impl Operation for TakeBack {
    type Answer = Vec<Finish>;
    const IS_TRANSACTION: bool = true;

    async fn run<S: Session>(
        &mut self,
        session: &mut S,
        catalogue: &Catalogue,
        is_unsure: bool,
    ) -> Result<Vec<Finish>, Fault> {
        let len_max = match self.is_careful {
            true => 1,
            false => catalogue.settle_lapsed.len_max(),
        };
        let mut ended = Vec::with_capacity(self.finishes.len());
        for chunk in self.finishes.chunks(len_max) {
            let settled: Vec<Settled> = chunk.iter().map(Finish::settled).collect();
            let value = |Bind { slot, entry: at }| {
                settle_value(entry(chunk, at), entry(&settled, at), slot)
            };
            let done = write_list(session, &catalogue.settle_lapsed, chunk.len(), value).await?;
            if done.matched == chunk.len() as u64 {
                ended.extend_from_slice(chunk);
                continue;
            }
            if !is_unsure && done.matched == 0 {
                continue;
            }
            if !is_unsure && chunk.len() > 1 {
                // Which of them this ended and which another reaper ended
                // before can't be told afterwards: the rows look the same.
                self.is_careful = true;
                return Err(Fault::Again);
            }
            let ids: Vec<_> = chunk.iter().map(|finish| finish.lease.id).collect();
            let rows = outcomes(session, catalogue, &ids).await?;
            let is_reaped = |finish: &&Finish| {
                let row = rows.get(&finish.lease.id);
                row.is_some_and(|row| row.is_reaped_as(finish))
            };
            ended.extend(chunk.iter().filter(is_reaped).cloned());
        }
        Ok(ended)
    }
}
