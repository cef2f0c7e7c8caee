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
    Lease, Status, Value,
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
pub(crate) trait Leased {
    fn lease(&self) -> &Lease;
}

impl Leased for Finish {
    fn lease(&self) -> &Lease {
        &self.lease
    }
}

impl Leased for ClaimedJob {
    fn lease(&self) -> &Lease {
        &self.lease
    }
}

/// Groups of one claim with equal fences: what one statement can tell by a list
/// of ids. In the order of their first ids, each in the order of its ids.
pub(crate) fn alike<'a, T: Leased>(items: &[&'a T]) -> Vec<Vec<&'a T>> {
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
pub(crate) fn by_id<'a, T: Leased>(items: &[&'a T]) -> Vec<&'a T> {
    let mut sorted = items.to_vec();
    sorted.sort_by_key(|item| item.lease().id);
    sorted
}

/// Locks rows in the order of their ids, before several statements lock some
/// each: that would be another order than everyone else's.
pub(crate) async fn lock<S: Session, T: Leased + Sync>(
    session: &mut S,
    catalogue: &Catalogue,
    items: &[&T],
) -> Result<(), Fault> {
    let sorted = by_id(items);
    for chunk in sorted.chunks(catalogue.look.len_max()) {
        let value = |bind: Bind| match bind.slot {
            Slot::Id => Value::U64(entry::<&T>(chunk, bind.entry).lease().id),
            slot => unbound(slot),
        };
        read_list(session, &catalogue.look, chunk.len(), value).await?;
    }
    Ok(())
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

/// Runs a statement of one length.
pub(crate) async fn read<S: Session>(
    session: &mut S,
    statement: &Statement,
    value: impl FnMut(Bind) -> Value + Send,
) -> Result<Vec<Row>, Fault> {
    let values = statement.values(value);
    session.rows(statement, values).await
}
