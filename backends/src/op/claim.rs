//! Claim: the parts that the backends put together in their own way.

use std::{collections::HashSet, time::Duration};

use retryjob_core::{
    DbTime, IdempotencyKey, JobSchema, Lease, Value,
    op::claim::{CLAIM_SHARDS_MAX, Claim, ClaimedJob, LeaseOwner},
    schema::BATCH_MAX,
    sql::{Bind, Catalogue, Slot},
    time::span_us,
};

use super::{
    alike, by_id, entry, job_table, lease_value, lock, read, read_list, unbound, write_list,
};
use crate::{
    fault::Fault,
    session::{Fields, Row, Session},
};

/// Due jobs as they will be once they are taken.
pub(crate) type Picked = Vec<ClaimedJob>;

/// Picks due jobs, one shard after the other, until there are enough.
pub(crate) async fn pick<S: Session>(
    session: &mut S,
    catalogue: &Catalogue,
    schema: &JobSchema,
    claim: &Claim,
) -> Result<Picked, Fault> {
    let limit = usize::from(claim.limit.min(BATCH_MAX));
    let statement = catalogue.pick(claim.lane);
    let mut picked = Picked::new();
    for head in claim.heads.iter().take(CLAIM_SHARDS_MAX) {
        let wanted = limit - picked.len();
        if wanted == 0 {
            break;
        }
        let value = |bind: Bind| match bind.slot {
            Slot::ShardId => Value::U64(head.shard_id.into()),
            Slot::HeadAt => Value::DateTime(head.next_attempt_at.to_utc()),
            Slot::Limit => Value::U64(wanted as u64),
            slot => job_table(schema, slot),
        };
        for row in read(session, statement, value).await? {
            picked.push(job(row, schema, &claim.owner)?);
        }
    }
    Ok(picked)
}

/// A due row as it will be once it is leased.
pub(crate) fn job(row: Row, schema: &JobSchema, owner: &LeaseOwner) -> Result<ClaimedJob, Fault> {
    let mut fields = Fields::of(row);
    let id = fields.take("id")?;
    let shard_id = fields.take("shard_id")?;
    let attempt_no: u16 = fields.take("attempt_no")?;
    let lease_seq: u64 = fields.take("lease_seq")?;
    let next_attempt_at = DbTime::from_utc(fields.take("next_attempt_at")?);
    let key: [u8; 32] = fields.take("idempotency_key")?;
    let age_us: i64 = fields.take("age_us")?;
    let lag_us: i64 = fields.take("lag_us")?;
    let payload = match schema.has_payload {
        true => Some(fields.take("payload")?),
        false => None,
    };
    Ok(ClaimedJob {
        lease: Lease {
            id,
            owner: owner.clone(),
            lease_seq: lease_seq + 1,
            shard: None,
        },
        shard_id,
        attempt_no: attempt_no.saturating_add(1),
        next_attempt_at,
        age: span(age_us),
        lag: span(lag_us),
        idempotency_key: IdempotencyKey::from_bytes(key),
        columns: fields.rest(),
        payload,
    })
}

/// A span that the database measured; a clock set back can't make it negative.
pub(crate) fn span(us: i64) -> Duration {
    Duration::from_micros(u64::try_from(us).unwrap_or(0))
}

/// Leases picked jobs, and answers those that were won.
///
/// A job is won when its row is as it was picked: `lease_seq` grows with every
/// claim, so one that was claimed and given back meanwhile is not taken for
/// the same.
pub(crate) async fn take<S: Session>(
    session: &mut S,
    catalogue: &Catalogue,
    claim: &Claim,
    picked: &[ClaimedJob],
) -> Result<Picked, Fault> {
    let jobs: Vec<_> = picked.iter().collect();
    let statements = catalogue.take.of(claim.lane);
    let binds = statements.at_least(1).1.binds();
    let groups = match binds.iter().any(|bind| bind.slot == Slot::LeaseSeq) {
        true => alike(&jobs),
        false => vec![by_id(&jobs)],
    };
    if groups.len() > 1 {
        lock(session, catalogue, &jobs).await?;
    }
    let mut are_all_won = true;
    for jobs in groups
        .iter()
        .flat_map(|group| group.chunks(statements.len_max()))
    {
        let value = |bind: Bind| match bind.slot {
            Slot::LeaseUs => Value::I64(span_us(claim.lease)),
            // The lease counts one more than the row that was picked.
            Slot::LeaseSeq => Value::U64(jobs[0].lease.lease_seq - 1),
            slot => lease_value(&entry::<&ClaimedJob>(jobs, bind.entry).lease, slot),
        };
        let done = write_list(session, statements, jobs.len(), value).await?;
        are_all_won &= done.matched == jobs.len() as u64;
    }
    if are_all_won {
        return Ok(picked.to_vec());
    }
    won(session, catalogue, claim, picked).await
}

/// Which of the picked jobs this claim holds.
pub(crate) async fn won<S: Session>(
    session: &mut S,
    catalogue: &Catalogue,
    claim: &Claim,
    picked: &[ClaimedJob],
) -> Result<Picked, Fault> {
    let mut ids = HashSet::new();
    for jobs in picked.chunks(catalogue.won.len_max()) {
        let value = |bind: Bind| match bind.slot {
            Slot::Id => Value::U64(entry(jobs, bind.entry).lease.id),
            Slot::Owner => Value::Text(claim.owner.as_str().to_owned()),
            slot => unbound(slot),
        };
        for row in read_list(session, &catalogue.won, jobs.len(), value).await? {
            ids.insert(Fields::of(row).take::<u64>("id")?);
        }
    }
    let is_won = |job: &&ClaimedJob| ids.contains(&job.lease.id);
    Ok(picked.iter().filter(is_won).cloned().collect())
}

/// Picks and takes in one transaction, for databases where what was picked
/// stays as it is until the transaction ends.
#[cfg(any(feature = "mysql8", feature = "sqlite"))]
pub(crate) struct PickAndTake<'a> {
    pub(crate) schema: &'a JobSchema,
    pub(crate) claim: &'a Claim,
    /// What an earlier run picked, for when its COMMIT got no answer.
    picked: Picked,
}

#[cfg(any(feature = "mysql8", feature = "sqlite"))]
impl<'a> PickAndTake<'a> {
    pub(crate) fn new(schema: &'a JobSchema, claim: &'a Claim) -> Self {
        Self {
            schema,
            claim,
            picked: Picked::new(),
        }
    }
}

#[cfg(any(feature = "mysql8", feature = "sqlite"))]
impl super::Operation for PickAndTake<'_> {
    type Answer = Picked;
    const IS_TRANSACTION: bool = true;

    async fn run<S: Session>(
        &mut self,
        session: &mut S,
        catalogue: &Catalogue,
        is_unsure: bool,
    ) -> Result<Picked, Fault> {
        if is_unsure && !self.picked.is_empty() {
            let won = won(session, catalogue, self.claim, &self.picked).await?;
            if !won.is_empty() {
                return Ok(won);
            }
        }
        self.picked = pick(session, catalogue, self.schema, self.claim).await?;
        if self.picked.is_empty() {
            return Ok(Picked::new());
        }
        take(session, catalogue, self.claim, &self.picked).await
    }
}
