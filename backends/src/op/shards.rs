//! Leases of shards: held, released, and claimed under.

use std::{collections::BTreeSet, time::Duration};

use retryjob_core::{
    DbTime, JobSchema, Lease, Value,
    op::{
        claim::{CLAIM_SHARDS_MAX, LeaseOwner},
        shards::{
            ClaimHeld, ClaimedHeld, HoldShards, ReleaseShards, ShardFence, ShardLease, ShardLeases,
        },
    },
    schema::BATCH_MAX,
    sql::{Bind, Catalogue, Slot},
    time::span_us,
};

use super::{
    Operation,
    claim::{job, span},
    entry, insert_once, job_table, read, read_list, unbound, write, write_list,
};
use crate::{
    fault::Fault,
    session::{Fields, Session},
};

/// Keeps what a node holds, then takes what nobody holds.
///
/// No transaction: each statement is right by itself.
pub(crate) struct Hold<'a> {
    pub(crate) schema: &'a JobSchema,
    pub(crate) hold: HoldShards,
}

/// A row of the table of shards.
struct Shard {
    lease: ShardLease,
    node: String,
    is_live: bool,
}

impl Operation for Hold<'_> {
    type Answer = ShardLeases;
    const IS_TRANSACTION: bool = false;

    async fn run<S: Session>(
        &mut self,
        session: &mut S,
        catalogue: &Catalogue,
        _is_unsure: bool,
    ) -> Result<ShardLeases, Fault> {
        let held = catalogue.held();
        write(session, &held.keep, |bind| self.value(bind, &[])).await?;
        let mut shards = self.read(session, catalogue).await?;
        let of_id = |shards: &[Shard], id| {
            let found = shards.iter().find(|shard| shard.lease.fence.shard_id == id);
            found.map(|shard| shard.node.is_empty() || !shard.is_live)
        };
        let mut free = Vec::new();
        for shard_id in &self.hold.shard_ids {
            match of_id(&shards, *shard_id) {
                Some(false) => continue,
                Some(true) => {}
                None => self.add(session, catalogue, *shard_id).await?,
            }
            free.push(*shard_id);
        }
        free.sort_unstable();
        for ids in free.chunks(held.take.len_max()) {
            let value = |bind: Bind| self.value(bind, ids);
            write_list(session, &held.take, ids.len(), value).await?;
        }
        if !free.is_empty() {
            shards = self.read(session, catalogue).await?;
        }
        let own = |shard: &Shard| shard.is_live && shard.node == self.hold.node.as_str();
        let held = shards.into_iter().filter(own).map(|shard| shard.lease);
        Ok(ShardLeases {
            held: held.collect(),
        })
    }
}

impl Hold<'_> {
    fn value(&self, bind: Bind, shard_ids: &[u16]) -> Value {
        match bind.slot {
            Slot::ShardId => Value::U64((*entry(shard_ids, bind.entry)).into()),
            Slot::Node => Value::Text(self.hold.node.as_str().to_owned()),
            Slot::LeaseUs => Value::I64(span_us(self.hold.lease)),
            slot => job_table(self.schema, slot),
        }
    }

    async fn read<S: Session>(
        &self,
        session: &mut S,
        catalogue: &Catalogue,
    ) -> Result<Vec<Shard>, Fault> {
        let value = |bind: Bind| job_table(self.schema, bind.slot);
        let rows = read(session, &catalogue.held().shards, value).await?;
        let shard = |row| {
            let mut fields = Fields::of(row);
            let shard_id = fields.take("shard_id")?;
            let node = fields.take("node")?;
            let fence = fields.take("fence")?;
            let doubt_until: Option<chrono::NaiveDateTime> = fields.take("doubt_until")?;
            Ok(Shard {
                lease: ShardLease {
                    fence: ShardFence { shard_id, fence },
                    doubt_until: doubt_until.map(DbTime::from_utc),
                },
                node,
                is_live: fields.take::<i64>("left_us")? >= 0,
            })
        };
        rows.into_iter().map(shard).collect()
    }

    /// The row of a shard that nobody held yet.
    async fn add<S: Session>(
        &self,
        session: &mut S,
        catalogue: &Catalogue,
        shard_id: u16,
    ) -> Result<(), Fault> {
        let value = |bind: Bind| match bind.slot {
            Slot::Node => Value::Text(String::new()),
            _ => self.value(bind, &[shard_id]),
        };
        insert_once(session, &catalogue.held().add, value).await
    }
}

/// Gives shards back.
pub(crate) struct Release<'a> {
    pub(crate) schema: &'a JobSchema,
    pub(crate) release: ReleaseShards,
}

impl Operation for Release<'_> {
    type Answer = ();
    const IS_TRANSACTION: bool = false;

    async fn run<S: Session>(
        &mut self,
        session: &mut S,
        catalogue: &Catalogue,
        _is_unsure: bool,
    ) -> Result<(), Fault> {
        let mut fences = self.release.fences.clone();
        fences.sort_unstable();
        let statements = &catalogue.held().release;
        for chunk in fences.chunks(statements.len_max()) {
            let node = self.release.node.as_str();
            let value = |bind: Bind| fence_value(self.schema, node, chunk, bind);
            write_list(session, statements, chunk.len(), value).await?;
        }
        Ok(())
    }
}

/// Reads due jobs of shards that the node holds.
pub(crate) struct PickHeld<'a> {
    pub(crate) schema: &'a JobSchema,
    pub(crate) claim: ClaimHeld,
}

impl Operation for PickHeld<'_> {
    type Answer = ClaimedHeld;
    const IS_TRANSACTION: bool = false;

    async fn run<S: Session>(
        &mut self,
        session: &mut S,
        catalogue: &Catalogue,
        _is_unsure: bool,
    ) -> Result<ClaimedHeld, Fault> {
        let claim = &self.claim;
        let limit = usize::from(claim.limit.min(BATCH_MAX));
        let mut jobs = Vec::new();
        for (fence, mark) in claim.shards.iter().take(CLAIM_SHARDS_MAX) {
            let wanted = limit - jobs.len();
            if wanted == 0 {
                break;
            }
            let fences = [*fence];
            let value = |bind: Bind| match bind.slot {
                Slot::HeadAt => Value::DateTime(mark.next_attempt_at.to_utc()),
                Slot::MarkId => Value::U64(mark.id),
                Slot::Limit => Value::U64(wanted as u64),
                _ => fence_value(self.schema, claim.node.as_str(), &fences, bind),
            };
            for row in read(session, &catalogue.held().pick, value).await? {
                let picked = job(row, self.schema, &claim.owner)?;
                jobs.push(retryjob_core::op::claim::ClaimedJob {
                    lease: Lease {
                        shard: Some(*fence),
                        ..picked.lease
                    },
                    ..picked
                });
            }
        }
        let wait = match jobs.len() < limit {
            true => self.wait(session, catalogue).await?,
            false => None,
        };
        Ok(ClaimedHeld { jobs, wait })
    }
}

impl PickHeld<'_> {
    /// Time until another job of these shards falls due.
    async fn wait<S: Session>(
        &self,
        session: &mut S,
        catalogue: &Catalogue,
    ) -> Result<Option<Duration>, Fault> {
        let mut waits = Vec::new();
        for (fence, _) in &self.claim.shards {
            let value = |bind: Bind| match bind.slot {
                Slot::ShardId => Value::U64(fence.shard_id.into()),
                Slot::Limit => Value::U64(1),
                slot => unbound(slot),
            };
            for row in read(session, &catalogue.held().next_due, value).await? {
                waits.push(span(Fields::of(row).take("wait_us")?));
            }
        }
        Ok(waits.into_iter().min())
    }
}

/// Which of a node's leases stand, by their shards.
pub(crate) async fn live<S: Session>(
    session: &mut S,
    catalogue: &Catalogue,
    schema: &JobSchema,
    owner: &LeaseOwner,
    fences: &BTreeSet<ShardFence>,
) -> Result<BTreeSet<u16>, Fault> {
    let fences: Vec<_> = fences.iter().copied().collect();
    let statements = &catalogue.held().live;
    let mut live = BTreeSet::new();
    for chunk in fences.chunks(statements.len_max()) {
        let value = |bind: Bind| fence_value(schema, owner.as_str(), chunk, bind);
        for row in read_list(session, statements, chunk.len(), value).await? {
            live.insert(Fields::of(row).take("shard_id")?);
        }
    }
    Ok(live)
}

fn fence_value(schema: &JobSchema, node: &str, fences: &[ShardFence], bind: Bind) -> Value {
    let fence = entry(fences, bind.entry);
    match bind.slot {
        Slot::ShardId => Value::U64(fence.shard_id.into()),
        Slot::Fence => Value::U64(fence.fence),
        Slot::Node => Value::Text(node.to_owned()),
        slot => job_table(schema, slot),
    }
}
