//! Finish.

use std::collections::{HashMap, HashSet};

use retryjob_core::{
    Finished as Keeping, JobSchema, Value,
    op::finish::{Ending, Finish, Finished, Settled},
    sql::{Bind, Catalogue, Slot},
    time::span_us,
};

use super::{Operation, entry, lease_value, read_list, status, unbound, write_list};
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
    successes: Vec<Finish>,
    others: Vec<Finish>,
}

impl<'a> FinishAll<'a> {
    pub(crate) fn new(schema: &'a JobSchema, mut finishes: Vec<Finish>) -> Self {
        finishes.sort_by_key(|finish| finish.lease.id);
        let mut rounds = vec![Round::default()];
        for finish in finishes {
            // A job comes twice when a late attempt ends beside the next one:
            // each is judged by its own lease.
            let is_free = |round: &Round| !round.seen.contains(&finish.lease.id);
            let at = rounds.iter().position(is_free).unwrap_or(rounds.len());
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

    async fn succeed<S: Session>(
        &mut self,
        round: usize,
        session: &mut S,
        catalogue: &Catalogue,
        is_unsure: bool,
    ) -> Result<Vec<u64>, Fault> {
        let is_deleting = self.schema.finished == Keeping::Delete;
        let len_max = match self.is_careful {
            true => 1,
            false => catalogue.succeed.len_max(),
        };
        let mut lost = Vec::new();
        for chunk in self.rounds[round].successes.chunks(len_max) {
            let value = |bind: Bind| lease_value(&entry(chunk, bind.entry).lease, bind.slot);
            let done = write_list(session, &catalogue.succeed, chunk.len(), value).await?;
            if done.matched == chunk.len() as u64 {
                archive(session, catalogue, &ids(chunk)).await?;
                continue;
            }
            if is_deleting && chunk.len() > 1 {
                // Which rows this deleted and which were gone before can't be
                // told afterwards.
                self.is_careful = true;
                return Err(Fault::Again);
            }
            let rows = outcomes(session, catalogue, chunk).await?;
            let (written, late): (Vec<&Finish>, Vec<&Finish>) =
                chunk
                    .iter()
                    .partition(|finish| match rows.get(&finish.lease.id) {
                        Some(row) => row.is_of(finish),
                        None => is_unsure && self.schema.finished != Keeping::Keep,
                    });
            let written: Vec<u64> = written.iter().map(|finish| finish.lease.id).collect();
            archive(session, catalogue, &written).await?;
            lost.extend(late.iter().map(|finish| finish.lease.id));
        }
        Ok(lost)
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
        for round in 0..self.rounds.len() {
            let late = self.succeed(round, session, catalogue, is_unsure).await?;
            lost.extend(late);
            lost.extend(settle(session, catalogue, &self.rounds[round].others).await?);
        }
        Ok(Finished { lost })
    }
}

impl Round {
    fn push(&mut self, finish: Finish) {
        self.seen.insert(finish.lease.id);
        match finish.ending {
            Ending::Success => self.successes.push(finish),
            Ending::Failed { .. } | Ending::GiveBack { .. } => self.others.push(finish),
        }
    }
}

/// Writes outcomes other than success; the ids of those that came too late.
async fn settle<S: Session>(
    session: &mut S,
    catalogue: &Catalogue,
    finishes: &[Finish],
) -> Result<Vec<u64>, Fault> {
    let mut lost = Vec::new();
    for chunk in finishes.chunks(catalogue.settle.len_max()) {
        let settled: Vec<Settled> = chunk.iter().map(Finish::settled).collect();
        let value = |bind: Bind| settle_value(chunk, &settled, bind);
        let done = write_list(session, &catalogue.settle, chunk.len(), value).await?;
        if done.matched < chunk.len() as u64 {
            let rows = outcomes(session, catalogue, chunk).await?;
            let is_late = |finish: &&Finish| {
                let row = rows.get(&finish.lease.id);
                !row.is_some_and(|row| row.is_of(finish))
            };
            lost.extend(chunk.iter().filter(is_late).map(|finish| finish.lease.id));
        }
    }
    Ok(lost)
}

fn ids(finishes: &[Finish]) -> Vec<u64> {
    finishes.iter().map(|finish| finish.lease.id).collect()
}

/// What the statements that settle bind.
pub(crate) fn settle_value(finishes: &[Finish], settled: &[Settled], bind: Bind) -> Value {
    let row = entry(settled, bind.entry);
    match bind.slot {
        Slot::Status => Value::U64(row.status.code().into()),
        Slot::AttemptNo => Value::U64(row.attempt_no.into()),
        Slot::DelayUs => Value::I64(span_us(row.delay)),
        Slot::Error => row.error.clone().map_or(Value::Null, Value::Text),
        slot => lease_value(&entry(finishes, bind.entry).lease, slot),
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
    let value = |bind: Bind| match bind.slot {
        Slot::Id => Value::U64(*entry(ids, bind.entry)),
        slot => unbound(slot),
    };
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
        self.is_settled_as(finish) && self.owner.as_deref() == Some(finish.lease.owner.as_str())
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

/// What became of the rows of these finishes, by id.
pub(crate) async fn outcomes<S: Session>(
    session: &mut S,
    catalogue: &Catalogue,
    finishes: &[Finish],
) -> Result<HashMap<u64, Outcome>, Fault> {
    let value = |bind: Bind| match bind.slot {
        Slot::Id => Value::U64(entry(finishes, bind.entry).lease.id),
        slot => unbound(slot),
    };
    let mut outcomes = HashMap::with_capacity(finishes.len());
    for row in read_list(session, &catalogue.outcome, finishes.len(), value).await? {
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
