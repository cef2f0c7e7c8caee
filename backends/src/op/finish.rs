//! Finish.

use std::collections::{BTreeSet, HashMap, HashSet};

use retryjob_core::{
    Finished as Keeping, JobSchema, Lease, Value,
    op::{
        finish::{Ending, Finish, Finished, Settled},
        shards::ShardFence,
    },
    sql::{Bind, Catalogue, Slot, Stepped},
    time::span_us,
};

use super::{
    Operation, alike, entry, id_value, lease_value, lock, read_list, shards::live, status,
    write_list,
};
use crate::{
    fault::Fault,
    session::{Fields, Session},
};

/// Writes outcomes, in the order of their ids: everyone who locks several rows
/// does so in this order.
pub(crate) struct FinishAll<'a> {
    schema: &'a JobSchema,
    rounds: Vec<Round>,
    /// Whether successes are written one by one.
    is_careful: bool,
}

/// Finishes of different jobs: a statement tells its rows apart by their ids.
#[derive(Default)]
struct Round {
    seen: HashSet<u64>,
    by_row: Vec<Finish>,
    /// All of one node.
    by_shard: Vec<Finish>,
}

impl<'a> FinishAll<'a> {
    pub(crate) fn new(schema: &'a JobSchema, mut finishes: Vec<Finish>) -> Self {
        finishes.sort_by_key(|finish| finish.lease.id);
        let mut rounds = vec![Round::default()];
        for finish in finishes {
            let takes = |round: &Round| round.takes(&finish.lease);
            let at = rounds.iter().position(takes).unwrap_or(rounds.len());
            if at == rounds.len() {
                rounds.push(Round::default());
            }
            rounds[at].push(finish);
        }
        Self {
            schema,
            rounds,
            is_careful: false,
        }
    }
}

impl Operation for FinishAll<'_> {
    type Answer = Finished;
    const IS_TRANSACTION: bool = true;

    async fn run<S: Session>(
        &mut self,
        session: &mut S,
        catalogue: &Catalogue,
        is_unsure: bool,
    ) -> Result<Finished, Fault> {
        let mut lost = Vec::new();
        for round in &self.rounds {
            let mut writing = Writing {
                session,
                catalogue,
                schema: self.schema,
                is_unsure,
                is_careful: &mut self.is_careful,
                lost: &mut lost,
            };
            writing.round(round).await?;
        }
        lost.sort_unstable();
        Ok(Finished { lost })
    }
}

/// One round on its way.
struct Writing<'a, S> {
    session: &'a mut S,
    catalogue: &'a Catalogue,
    schema: &'a JobSchema,
    is_unsure: bool,
    is_careful: &'a mut bool,
    /// The ids of those that came too late.
    lost: &'a mut Vec<u64>,
}

impl<'a, S: Session> Writing<'a, S> {
    async fn round(&mut self, round: &Round) -> Result<(), Fault> {
        let by_shard = self.proven(&round.by_shard).await?;
        let mut successes = Vec::new();
        let mut others = Vec::new();
        for finishes in [by_shard, round.by_row.iter().collect()] {
            let (done, rest): (Vec<_>, Vec<_>) = finishes
                .into_iter()
                .partition(|finish| matches!(finish.ending, Ending::Success));
            successes.extend(self.successes(&done));
            others.push(rest);
        }
        let others: Vec<_> = others.into_iter().filter(|rest| !rest.is_empty()).collect();
        if successes.len() + others.len() > 1 {
            let all = round.by_row.iter().chain(&round.by_shard);
            lock(self.session, self.catalogue, &all.collect::<Vec<_>>()).await?;
        }
        for (statements, finishes) in successes {
            self.succeed(statements, &finishes).await?;
        }
        for finishes in others {
            self.settle(&finishes).await?;
        }
        Ok(())
    }

    /// Successes, by the statements that write them.
    fn successes<'f>(&self, finishes: &[&'f Finish]) -> Vec<(&'a Stepped, Vec<&'f Finish>)> {
        let statements = match finishes.first().map(|first| first.lease.shard) {
            None | Some(None) => &self.catalogue.succeed,
            Some(Some(_)) => &self.catalogue.held().succeed,
        };
        let groups = alike(finishes).into_iter();
        groups.map(|group| (statements, group)).collect()
    }

    /// Those whose shard's lease stands. The others came too late, unless an
    /// earlier run has written them.
    async fn proven<'b>(&mut self, finishes: &'b [Finish]) -> Result<Vec<&'b Finish>, Fault> {
        let fences = finishes.iter().filter_map(|finish| finish.lease.shard);
        let fences: BTreeSet<ShardFence> = fences.collect();
        let Some(first) = finishes.first() else {
            return Ok(Vec::new());
        };
        let owner = &first.lease.owner;
        let live = live(self.session, self.catalogue, self.schema, owner, &fences).await?;
        let stands = |finish: &&Finish| {
            let shard = finish.lease.shard;
            shard.is_some_and(|fence| live.contains(&fence.shard_id))
        };
        let (standing, late): (Vec<_>, Vec<_>) = finishes.iter().partition(stands);
        // The row of a success does not tell who wrote it: while the lease stands
        // it was this node, afterwards it may have been another.
        let (unclear, others): (Vec<_>, Vec<_>) = late
            .into_iter()
            .partition(|finish| finish.is_held_success() && !self.is_unsure);
        self.lost
            .extend(unclear.iter().map(|finish| finish.lease.id));
        self.look(&others).await?;
        Ok(standing)
    }

    async fn succeed(&mut self, statements: &Stepped, finishes: &[&Finish]) -> Result<(), Fault> {
        let is_deleting = self.schema.finished == Keeping::Delete;
        let len_max = match *self.is_careful {
            true => 1,
            false => statements.len_max(),
        };
        for chunk in finishes.chunks(len_max) {
            let value =
                |bind: Bind| fence_value(&entry::<&Finish>(chunk, bind.entry).lease, bind.slot);
            let done = write_list(self.session, statements, chunk.len(), value).await?;
            if done.matched == chunk.len() as u64 {
                let ids: Vec<_> = chunk.iter().map(|finish| finish.lease.id).collect();
                archive(self.session, self.catalogue, &ids).await?;
                continue;
            }
            if is_deleting && chunk.len() > 1 {
                // Which rows this deleted and which were gone before can't be
                // told afterwards.
                *self.is_careful = true;
                return Err(Fault::Again);
            }
            let written = self.look(chunk).await?;
            archive(self.session, self.catalogue, &written).await?;
        }
        Ok(())
    }

    async fn settle(&mut self, finishes: &[&Finish]) -> Result<(), Fault> {
        let Some(first) = finishes.first() else {
            return Ok(());
        };
        let statements = match first.lease.shard {
            None => &self.catalogue.settle,
            Some(_) => &self.catalogue.held().settle,
        };
        for chunk in finishes.chunks(statements.len_max()) {
            let settled: Vec<Settled> = chunk.iter().map(|finish| finish.settled()).collect();
            let value = |Bind { slot, entry: at }| {
                settle_value(entry::<&Finish>(chunk, at), entry(&settled, at), slot)
            };
            let done = write_list(self.session, statements, chunk.len(), value).await?;
            if done.matched < chunk.len() as u64 {
                self.look(chunk).await?;
            }
        }
        Ok(())
    }

    /// Looks which of these were written, and answers their ids; the others are
    /// lost. A row that is gone was written by a run before, if there was one.
    async fn look(&mut self, finishes: &[&Finish]) -> Result<Vec<u64>, Fault> {
        let mut written = Vec::new();
        for chunk in finishes.chunks(self.catalogue.outcome.len_max()) {
            let ids: Vec<_> = chunk.iter().map(|finish| finish.lease.id).collect();
            let rows = outcomes(self.session, self.catalogue, &ids).await?;
            for finish in chunk {
                let id = finish.lease.id;
                let may_be_gone = self.schema.finished != Keeping::Keep
                    && matches!(finish.ending, Ending::Success);
                let is_written = match rows.get(&id) {
                    Some(row) => row.is_of(finish),
                    None => self.is_unsure && may_be_gone,
                };
                match is_written {
                    true => written.push(id),
                    false => self.lost.push(id),
                }
            }
        }
        Ok(written)
    }
}

impl Round {
    /// Whether a finish under this lease may be one of the round. A job comes
    /// twice when a late attempt ends beside the next one: each is judged by its
    /// own lease.
    fn takes(&self, lease: &Lease) -> bool {
        let other = self.by_shard.first();
        let is_same_node = other.is_none_or(|other| other.lease.owner == lease.owner);
        !self.seen.contains(&lease.id) && (lease.shard.is_none() || is_same_node)
    }

    fn push(&mut self, finish: Finish) {
        self.seen.insert(finish.lease.id);
        match finish.lease.shard {
            None => self.by_row.push(finish),
            Some(_) => self.by_shard.push(finish),
        }
    }
}

/// What tells a row that a lease is on. Under a shard's lease the row has not
/// been claimed yet: its own fence is one less.
fn fence_value(lease: &Lease, slot: Slot) -> Value {
    match slot {
        Slot::LeaseSeq if lease.shard.is_some() => Value::U64(lease.lease_seq - 1),
        slot => lease_value(lease, slot),
    }
}

/// What the statements that settle bind for a row.
pub(crate) fn settle_value(finish: &Finish, settled: &Settled, slot: Slot) -> Value {
    match slot {
        Slot::Status => Value::U64(settled.status.code().into()),
        Slot::AttemptNo => Value::U64(settled.attempt_no.into()),
        Slot::DelayUs => Value::I64(span_us(settled.delay)),
        Slot::Error => settled.error.clone().map_or(Value::Null, Value::Text),
        slot => fence_value(&finish.lease, slot),
    }
}

/// Moves rows that succeeded to the history, when the job type has one.
async fn archive<S: Session>(
    session: &mut S,
    catalogue: &Catalogue,
    ids: &[u64],
) -> Result<(), Fault> {
    let Some(archive) = &catalogue.archive else {
        return Ok(());
    };
    if ids.is_empty() {
        return Ok(());
    }
    let value = |bind| id_value(ids, bind);
    write_list(session, &archive.copy, ids.len(), value).await?;
    write_list(session, &archive.remove, ids.len(), value).await?;
    Ok(())
}

/// What became of a row.
pub(crate) struct Outcome {
    status: retryjob_core::Status,
    attempt_no: u16,
    lease_seq: u64,
    owner: Option<String>,
}

impl Outcome {
    /// Whether the row is as this finish leaves it, written by its lease.
    fn is_of(&self, finish: &Finish) -> bool {
        let owner = match finish.is_held_success() {
            true => None,
            false => Some(finish.lease.owner.as_str()),
        };
        self.is_settled_as(finish) && self.owner.as_deref() == owner
    }

    /// Whether the row is as a reaper leaves it.
    pub(crate) fn is_reaped_as(&self, finish: &Finish) -> bool {
        self.is_settled_as(finish) && self.owner.is_none()
    }

    fn is_settled_as(&self, finish: &Finish) -> bool {
        let settled = finish.settled();
        self.status == settled.status
            && self.attempt_no == settled.attempt_no
            && self.lease_seq == finish.lease.lease_seq
    }
}

/// What became of rows, by id.
pub(crate) async fn outcomes<S: Session>(
    session: &mut S,
    catalogue: &Catalogue,
    ids: &[u64],
) -> Result<HashMap<u64, Outcome>, Fault> {
    let value = |bind| id_value(ids, bind);
    let mut outcomes = HashMap::with_capacity(ids.len());
    for row in read_list(session, &catalogue.outcome, ids.len(), value).await? {
        let mut fields = Fields::of(row);
        let id = fields.take("id")?;
        let outcome = Outcome {
            status: status(fields.take("status")?)?,
            attempt_no: fields.take("attempt_no")?,
            lease_seq: fields.take("lease_seq")?,
            owner: fields.take("lease_owner")?,
        };
        outcomes.insert(id, outcome);
    }
    Ok(outcomes)
}
