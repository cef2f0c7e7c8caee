//! One statement: its text, what it binds and what it reads.

use std::sync::Arc;

use sea_query::{Expr, Value as SeaValue, Values};

use crate::value::{ColumnType, Value};

/// What is bound at a `?`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u16)]
#[expect(missing_docs, reason = "each is bound to the column or limit it names")]
pub enum Slot {
    Id,
    ShardId,
    ShardKey,
    Key,
    Payload,
    /// Microseconds from the enqueue to when the job is due.
    DueUs,
    /// Microseconds from the enqueue to the first attempt.
    StartUs,
    /// The instant that the two above count from, or NULL for now.
    DueAt,
    /// The low-water mark of a shard.
    HeadAt,
    /// The job at that mark.
    MarkId,
    Owner,
    LeaseSeq,
    LeaseUs,
    Status,
    AttemptNo,
    DelayUs,
    Error,
    Limit,
    /// The name of the job table, as the table of nodes holds it.
    JobTable,
    Node,
    /// Microseconds that a membership stands, or has lapsed.
    MemberUs,
    /// Which lease of a shard.
    Fence,
    /// One of the struct's own columns, by its place in the schema.
    Column(u16),
}

/// A slot in one of the rows or list entries of a statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Bind {
    /// What is bound.
    pub slot: Slot,
    /// For which entry; 0 when there is one.
    pub entry: usize,
}

/// A statement of the catalogue.
///
/// # Shape
///
/// [`binds`](Self::binds) has one item per `?`, in the order of the text.
#[derive(Clone, Debug)]
pub struct Statement {
    sql: Arc<str>,
    binds: Arc<[Bind]>,
    reads: Arc<[ColumnType]>,
}

impl Statement {
    /// Takes a text that sea-query wrote and the values it collected, which
    /// are the marks that [`mark`] made.
    #[must_use]
    pub(super) fn new((sql, values): (String, Values), reads: &[ColumnType]) -> Self {
        Self {
            sql: sql.into(),
            binds: values.0.iter().map(unmark).collect(),
            reads: reads.into(),
        }
    }

    /// The text, with a `?` for every value.
    #[must_use]
    pub fn sql(&self) -> &Arc<str> {
        &self.sql
    }

    /// What is bound, in the order of the text.
    #[must_use]
    pub fn binds(&self) -> &[Bind] {
        &self.binds
    }

    /// The types of the columns it reads, in order; empty when it writes.
    #[must_use]
    pub fn reads(&self) -> &[ColumnType] {
        &self.reads
    }

    /// The values to bind, in the order of the text, given what each slot
    /// holds.
    pub fn values(&self, mut of: impl FnMut(Bind) -> Value) -> Vec<Value> {
        self.binds.iter().map(|bind| of(*bind)).collect()
    }
}

/// The same statement for lists of a few fixed lengths.
///
/// A text per list length would defeat the server's and the driver's cache of
/// prepared statements, so a list is padded to the next length by repeating
/// its last entry, which changes nothing.
#[derive(Clone, Debug)]
pub struct Stepped(Vec<(usize, Statement)>);

impl Stepped {
    /// One statement per length, shortest first.
    pub(super) fn new(lengths: &[usize], build: impl Fn(usize) -> Statement) -> Self {
        Self(lengths.iter().map(|len| (*len, build(*len))).collect())
    }

    /// The statement for at least `len` entries, or for as many as it can.
    ///
    /// # Panics
    ///
    /// Never: there is always a statement.
    #[must_use]
    pub fn at_least(&self, len: usize) -> (usize, &Statement) {
        let fitting = self.0.iter().find(|(entries, _)| *entries >= len);
        let (entries, statement) = fitting.unwrap_or(&self.0[self.0.len() - 1]);
        (*entries, statement)
    }

    /// The statement for at most `len` entries; the one for 1 when `len` is 0.
    ///
    /// # Panics
    ///
    /// Never: there is always a statement.
    #[must_use]
    pub fn at_most(&self, len: usize) -> (usize, &Statement) {
        let fitting = self.0.iter().rev().find(|(entries, _)| *entries <= len);
        let (entries, statement) = fitting.unwrap_or(&self.0[0]);
        (*entries, statement)
    }

    /// Most entries in one statement.
    #[must_use]
    pub fn len_max(&self) -> usize {
        self.0.last().map_or(0, |(entries, _)| *entries)
    }

    /// The statements with their lengths, shortest first.
    pub fn iter(&self) -> impl Iterator<Item = (usize, &Statement)> {
        self.0
            .iter()
            .map(|(entries, statement)| (*entries, statement))
    }
}

/// Slots are told apart in sea-query's list of values by their number.
const COLUMN_BASE: u64 = 1 << 32;
const ENTRY_SHIFT: u32 = 16;

/// An expression that becomes a `?` bound to this slot.
pub(super) fn mark(slot: Slot, entry: usize) -> Expr {
    Expr::val(mark_code(slot, entry))
}

/// The number that stands for a slot until the statement is written.
pub(super) fn mark_code(slot: Slot, entry: usize) -> u64 {
    let code = match slot {
        Slot::Column(at) => COLUMN_BASE * (u64::from(at) + 1),
        own => OWN_SLOTS
            .iter()
            .position(|known| *known == own)
            .unwrap_or_default() as u64,
    };
    code + ((entry as u64) << ENTRY_SHIFT)
}

fn unmark(value: &SeaValue) -> Bind {
    let SeaValue::BigUnsigned(Some(code)) = value else {
        unreachable!("every value of a statement is a mark, found {value:?}");
    };
    let column = code / COLUMN_BASE;
    let rest = code % COLUMN_BASE;
    let slot = match u16::try_from(column) {
        Ok(0) => OWN_SLOTS[usize::try_from(rest % (1 << ENTRY_SHIFT)).unwrap_or_default()],
        Ok(at) => Slot::Column(at - 1),
        Err(_) => unreachable!("a mark has at most 65535 columns"),
    };
    Bind {
        slot,
        entry: usize::try_from(rest >> ENTRY_SHIFT).unwrap_or_default(),
    }
}

const OWN_SLOTS: [Slot; 22] = [
    Slot::Id,
    Slot::ShardId,
    Slot::ShardKey,
    Slot::Key,
    Slot::Payload,
    Slot::DueUs,
    Slot::StartUs,
    Slot::DueAt,
    Slot::HeadAt,
    Slot::MarkId,
    Slot::Owner,
    Slot::LeaseSeq,
    Slot::LeaseUs,
    Slot::Status,
    Slot::AttemptNo,
    Slot::DelayUs,
    Slot::Error,
    Slot::Limit,
    Slot::JobTable,
    Slot::Node,
    Slot::MemberUs,
    Slot::Fence,
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_slot_survives_the_way_through_sea_query() {
        let columns = [Slot::Column(0), Slot::Column(7), Slot::Column(300)];
        for slot in OWN_SLOTS.into_iter().chain(columns) {
            for entry in [0, 1, 999] {
                let value = SeaValue::BigUnsigned(Some(mark_code(slot, entry)));
                assert_eq!(unmark(&value), Bind { slot, entry });
            }
        }
    }
}
