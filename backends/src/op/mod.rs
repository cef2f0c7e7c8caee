//! The operations, written once for every database.

pub(crate) mod install;

pub(crate) mod enqueue;

pub(crate) mod due;

pub(crate) mod claim;

pub(crate) mod renew;

pub(crate) mod finish;

pub(crate) mod reap;

pub(crate) mod operate;

pub(crate) mod counts;

pub(crate) mod nodes;

pub(crate) mod shards;

pub(crate) mod doctor;

#[cfg(all(test, feature = "sqlite"))]
mod tests;

use std::future::Future;

use retryjob_core::{
    JobSchema, Lease, Status, Value,
    op::{claim::ClaimedJob, finish::Finish},
    sql::{Bind, Catalogue, Slot, Statement, Stepped},
};

use crate::{
    fault::Fault,
    session::{Done, Row, Session},
};

/// A request with all that it needs to be run, more than once if need be.
pub(crate) trait Operation: Send {
    /// What it answers.
    type Answer: Send;

    /// Whether it runs between BEGIN and COMMIT.
    const IS_TRANSACTION: bool;

    /// How much longer than others one of its statements may take: a count
    /// reads as much as there is, and an operator's list waits for each of its
    /// rows.
    const PATIENCE: u32 = 1;

    /// Runs it. `is_unsure` when an earlier run lost its connection while
    /// committing, so that what it wrote may be there.
    fn run<S: Session>(
        &mut self,
        session: &mut S,
        catalogue: &Catalogue,
        is_unsure: bool,
    ) -> impl Future<Output = Result<Self::Answer, Fault>> + Send;
}

/// An entry of a list that is padded by repeating its last entry.
pub(crate) fn entry<T>(list: &[T], at: usize) -> &T {
    &list[at.min(list.len() - 1)]
}

/// Runs a statement that reads rows by a list, padded.
pub(crate) async fn read_list<S: Session>(
    session: &mut S,
    statements: &Stepped,
    len: usize,
    value: impl FnMut(Bind) -> Value + Send,
) -> Result<Vec<Row>, Fault> {
    let (_, statement) = statements.at_least(len);
    let values = statement.values(value);
    session.rows(statement, values).await
}

/// Runs a statement that writes rows by a list, padded.
pub(crate) async fn write_list<S: Session>(
    session: &mut S,
    statements: &Stepped,
    len: usize,
    value: impl FnMut(Bind) -> Value + Send,
) -> Result<Done, Fault> {
    let (_, statement) = statements.at_least(len);
    let values = statement.values(value);
    session.execute(statement, values).await
}

/// What is about a lease.
pub(crate) trait HasLease {
    fn lease(&self) -> &Lease;
}

impl HasLease for Finish {
    fn lease(&self) -> &Lease {
        &self.lease
    }
}

impl HasLease for ClaimedJob {
    fn lease(&self) -> &Lease {
        &self.lease
    }
}

/// Groups of one claim with equal fences: what one statement can tell by a list
/// of ids. In the order of their first ids, each in the order of its ids.
pub(crate) fn alike<'a, T: HasLease>(items: &[&'a T]) -> Vec<Vec<&'a T>> {
    let mut groups: Vec<Vec<&T>> = Vec::new();
    for item in by_id(items) {
        let is_alike = |group: &&mut Vec<&T>| {
            let (one, other) = (group[0].lease(), item.lease());
            (one.lease_seq, &one.owner) == (other.lease_seq, &other.owner)
        };
        match groups.iter_mut().find(is_alike) {
            Some(group) => group.push(item),
            None => groups.push(vec![item]),
        }
    }
    groups
}

/// In the order of their ids: everyone who locks several rows does so in this
/// order.
pub(crate) fn by_id<'a, T: HasLease>(items: &[&'a T]) -> Vec<&'a T> {
    let mut sorted = items.to_vec();
    sorted.sort_by_key(|item| item.lease().id);
    sorted
}

/// Locks rows in the order of their ids, before several statements lock some
/// each: that would be another order than everyone else's.
pub(crate) async fn lock<S: Session, T: HasLease + Sync>(
    session: &mut S,
    catalogue: &Catalogue,
    items: &[&T],
) -> Result<(), Fault> {
    let ids: Vec<_> = by_id(items).iter().map(|item| item.lease().id).collect();
    look(session, catalogue, &ids).await.map(drop)
}

/// Reads where these jobs stand and, where reads can lock, keeps them there; the
/// ids are in their order.
pub(crate) async fn look<S: Session>(
    session: &mut S,
    catalogue: &Catalogue,
    ids: &[u64],
) -> Result<Vec<Row>, Fault> {
    let mut rows = Vec::with_capacity(ids.len());
    for ids in ids.chunks(catalogue.look.len_max()) {
        let value = |bind| id_value(ids, bind);
        rows.extend(read_list(session, &catalogue.look, ids.len(), value).await?);
    }
    Ok(rows)
}

/// What a list of ids binds.
pub(crate) fn id_value(ids: &[u64], bind: Bind) -> Value {
    match bind.slot {
        Slot::Id => Value::U64(*entry(ids, bind.entry)),
        slot => unbound(slot),
    }
}

/// The name of the job table, which the tables that job types share go by.
pub(crate) fn job_table(schema: &JobSchema, slot: Slot) -> Value {
    match slot {
        Slot::JobTable => Value::Text(schema.table.as_str().to_owned()),
        slot => unbound(slot),
    }
}

/// What a lease binds.
pub(crate) fn lease_value(lease: &Lease, slot: Slot) -> Value {
    match slot {
        Slot::Id => Value::U64(lease.id),
        Slot::LeaseSeq => Value::U64(lease.lease_seq),
        Slot::Owner => Value::Text(lease.owner.as_str().to_owned()),
        other => unbound(other),
    }
}

/// A slot that the statement does not have; the catalogue and the operations
/// are made for each other.
pub(crate) fn unbound(slot: Slot) -> Value {
    unreachable!("{slot:?} is bound by another statement")
}

/// The status that a row holds.
pub(crate) fn status(code: u8) -> Result<Status, Fault> {
    Status::from_code(code)
        .ok_or_else(|| Fault::database(format!("column `status` holds {code}, which is none")))
}

/// Runs a statement of one length that reads.
pub(crate) async fn read<S: Session>(
    session: &mut S,
    statement: &Statement,
    value: impl FnMut(Bind) -> Value + Send,
) -> Result<Vec<Row>, Fault> {
    let values = statement.values(value);
    session.rows(statement, values).await
}

/// Runs a statement of one length that writes.
pub(crate) async fn write<S: Session>(
    session: &mut S,
    statement: &Statement,
    value: impl FnMut(Bind) -> Value + Send,
) -> Result<Done, Fault> {
    let values = statement.values(value);
    session.execute(statement, values).await
}

/// Inserts a row, unless it is there: another node was first, or an earlier run
/// got there after all.
pub(crate) async fn insert_once<S: Session>(
    session: &mut S,
    statement: &Statement,
    value: impl FnMut(Bind) -> Value + Send,
) -> Result<(), Fault> {
    match write(session, statement, value).await {
        Ok(_) | Err(Fault::Duplicate(_)) => Ok(()),
        Err(other) => Err(other),
    }
}
