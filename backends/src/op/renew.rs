//! Renew.

use std::{collections::HashSet, time::Duration};

use retryjob_core::{
    Lease, Value,
    op::renew::{Renew, Renewed},
    sql::{Bind, Catalogue, Slot},
    time::span_us,
};

use super::{Operation, entry, lease_value, read_list, write_list};
use crate::{
    fault::Fault,
    session::{Fields, Session},
};

/// Keeps leases; they are written in the order of their ids.
pub(crate) struct RenewAll {
    leases: Vec<Lease>,
    lease: Duration,
}

impl RenewAll {
    pub(crate) fn new(request: Renew) -> Self {
        let mut leases = request.leases;
        leases.sort_unstable_by_key(|lease| lease.id);
        leases.dedup();
        Self {
            leases,
            lease: request.lease,
        }
    }
}

impl Operation for RenewAll {
    type Answer = Renewed;
    const IS_TRANSACTION: bool = true;

    async fn run<S: Session>(
        &mut self,
        session: &mut S,
        catalogue: &Catalogue,
        _is_unsure: bool,
    ) -> Result<Renewed, Fault> {
        let mut lost = Vec::new();
        for leases in self.leases.chunks(catalogue.renew.len_max()) {
            let value = |bind: Bind| match bind.slot {
                Slot::LeaseUs => Value::I64(span_us(self.lease)),
                slot => lease_value(entry(leases, bind.entry), slot),
            };
            let done = write_list(session, &catalogue.renew, leases.len(), value).await?;
            if done.matched < leases.len() as u64 {
                let rows = read_list(session, &catalogue.live, leases.len(), value).await?;
                let mut live = HashSet::with_capacity(rows.len());
                for row in rows {
                    live.insert(Fields::of(row).take::<u64>("id")?);
                }
                let ids = leases.iter().map(|lease| lease.id);
                lost.extend(ids.filter(|id| !live.contains(id)));
            }
        }
        Ok(Renewed { lost })
    }
}
