//! Expressions that several statements share.

use sea_query::{CaseStatement, Cond, Expr, ExprTrait as _, IntoCondition as _, Value as SeaValue};

use super::{
    dialect::Dialect,
    statement::{Slot, mark},
};
use crate::{
    ident::Ident,
    schema::{ColumnNames, JobSchema},
    state::{Move, Status},
    value::ColumnType,
};

/// Name of the index that claims and due heads read.
pub(super) const CLAIM_INDEX: &str = "claim";
/// Name of the index that reapers and counts read.
pub(super) const LEASE_INDEX: &str = "lease";
/// Name of the primary key, where it can be named.
pub(super) const PRIMARY: &str = "PRIMARY";
/// Name of the unique index over the key.
pub(super) const KEY_INDEX: &str = "idempotency_key";

/// Schema and dialect together, while statements are made.
#[derive(Clone, Copy)]
pub(super) struct Maker<'a> {
    pub(super) schema: &'a JobSchema,
    pub(super) dialect: &'a dyn Dialect,
}

impl Maker<'_> {
    pub(super) fn names(&self) -> &ColumnNames {
        &self.schema.names
    }

    pub(super) fn table(&self) -> &'static str {
        self.schema.table.as_str()
    }

    pub(super) fn now(&self) -> Expr {
        self.dialect.now()
    }

    pub(super) fn now_plus(&self, us: Expr) -> Expr {
        self.dialect.plus_us(self.dialect.now(), us)
    }

    /// `status IN (…)` with the statuses that a step starts from.
    pub(super) fn may(&self, step: Move) -> Expr {
        let codes: Vec<Expr> = step.sources().map(code).collect();
        let status = self.filtered_status();
        match <[Expr; 1]>::try_from(codes) {
            Ok([only]) => status.eq(only),
            Err(codes) => status.is_in(codes),
        }
    }

    /// `id IN (?, …)`, with one `?` per entry.
    pub(super) fn id_in(&self, entries: usize) -> Expr {
        col(self.names().id).is_in((0..entries).map(|entry| mark(Slot::Id, entry)))
    }

    /// The rows whose lease is the bound one: `(id, owner, fence)`, one per
    /// entry, each still running.
    pub(super) fn is_leased(&self, entries: usize) -> Cond {
        let owner = |entry| col(self.names().lease_owner).eq(mark(Slot::Owner, entry));
        let leases = (0..entries).fold(Cond::any(), |any, entry| {
            any.add(self.has_fence(entry).add(owner(entry)))
        });
        Cond::all()
            .add(self.filtered_status().eq(code(Status::Running)))
            .add(leases)
    }

    /// Rows that one claim leased, all with the same fence, each still running.
    ///
    /// A fence per row would say the same with a comparison of every row with
    /// half of the list: with 500 rows three times the server's work
    /// (docs/decisions/0011-finish-by-claim.md).
    pub(super) fn is_leased_alike(&self, entries: usize) -> Cond {
        Cond::all()
            .add(self.filtered_status().eq(code(Status::Running)))
            .add(col(self.names().lease_owner).eq(mark(Slot::Owner, 0)))
            .add(self.as_picked(entries))
    }

    /// The status in a condition beside ids, as an expression that no index
    /// serves. While few jobs run, a planner finds it cheaper to read all of
    /// them by the index over the status than a list of ids by the primary
    /// key; but then the rows of other nodes are locked as well, and in
    /// another order than everyone else's.
    pub(super) fn filtered_status(&self) -> Expr {
        col(self.names().status).add(number(0))
    }

    /// Rows as they were picked, all with the same fence.
    pub(super) fn as_picked(&self, entries: usize) -> Cond {
        Cond::all()
            .add(col(self.names().lease_seq).eq(mark(Slot::LeaseSeq, 0)))
            .add(self.id_in(entries))
    }

    /// New jobs as they were picked under the leases of their shards, all with
    /// the same fence.
    pub(super) fn is_waiting_alike(&self, entries: usize) -> Cond {
        Cond::all()
            .add(self.filtered_status().eq(code(Status::Pending)))
            .add(self.as_picked(entries))
    }

    /// The same, each with its own fence.
    pub(super) fn is_waiting(&self, entries: usize) -> Cond {
        let fences = (0..entries).fold(Cond::any(), |any, entry| any.add(self.has_fence(entry)));
        Cond::all()
            .add(self.filtered_status().eq(code(Status::Pending)))
            .add(fences)
    }

    fn has_fence(&self, entry: usize) -> Cond {
        Cond::all()
            .add(col(self.names().id).eq(mark(Slot::Id, entry)))
            .add(col(self.names().lease_seq).eq(mark(Slot::LeaseSeq, entry)))
    }

    pub(super) fn is_running(&self) -> Cond {
        Cond::all().add(col(self.names().status).eq(code(Status::Running)))
    }

    /// The lease is valid by the database's clock.
    pub(super) fn is_live(&self) -> Expr {
        col(self.names().lease_until).gte(self.now())
    }

    /// The lease is no longer valid by the database's clock.
    pub(super) fn has_lapsed(&self) -> Expr {
        col(self.names().lease_until).lt(self.now())
    }

    /// A value per entry, chosen by the row's id.
    pub(super) fn by_id(&self, slot: Slot, entries: usize) -> Expr {
        let id = self.names().id;
        let mut case = CaseStatement::new();
        for entry in 0..entries {
            case = case.case(
                col(id).eq(mark(Slot::Id, entry)).into_condition(),
                mark(slot, entry),
            );
        }
        case.into()
    }

    /// Of the rows in RETRY, all but those that crashed and have one attempt
    /// left. A reaper clears the owner, a finish keeps it.
    pub(super) fn may_run_in_company(&self) -> Expr {
        let attempts_max = self.schema.retry.max_attempts;
        col(self.names().attempt_no)
            .add(col(self.names().lease_owner).is_null())
            .lt(number(attempts_max.into()))
    }

    /// Microseconds from a column's instant until now.
    pub(super) fn us_since(&self, column: Ident) -> Expr {
        self.dialect.us_between(col(column), self.now())
    }

    /// The columns that hold the job itself, with their types.
    pub(super) fn content(&self) -> Vec<(Ident, ColumnType)> {
        let payload = self
            .schema
            .has_payload
            .then_some((self.names().payload, ColumnType::Text));
        let own = self.schema.columns.iter().map(|own| (own.name, own.kind));
        payload.into_iter().chain(own).collect()
    }
}

pub(super) fn col(name: Ident) -> Expr {
    Expr::col(name.as_str())
}

/// A status as the number it is, written into the text.
pub(super) fn code(status: Status) -> Expr {
    number(u64::from(status.code()))
}

/// A number written into the text.
pub(super) fn number(n: u64) -> Expr {
    Expr::Constant(SeaValue::BigUnsigned(Some(n)))
}

/// NULL, written into the text.
pub(super) fn null() -> Expr {
    Expr::Constant(SeaValue::BigUnsigned(None))
}
