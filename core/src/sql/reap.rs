//! The statement that finds lapsed leases.

use sea_query::{Alias, Order, SelectStatement};

use super::{
    dialect::Query,
    parts::{LEASE_INDEX, Maker},
    statement::{Slot, Statement, mark_code},
};
use crate::value::ColumnType;

/// Attempts whose lease has lapsed, longest first. Locks nothing: what is
/// written afterwards repeats the condition.
pub(super) fn lapsed(maker: Maker<'_>) -> Statement {
    let names = maker.names();
    let mut select = SelectStatement::new();
    select
        .columns([
            names.id.as_str(),
            names.lease_owner.as_str(),
            names.lease_seq.as_str(),
            names.attempt_no.as_str(),
        ])
        .expr_as(maker.us_since(names.due_at), Alias::new("age_us"))
        .from(maker.table())
        .cond_where(maker.is_running().add(maker.has_lapsed()))
        .order_by(names.lease_until.as_str(), Order::Asc)
        .order_by(names.id.as_str(), Order::Asc)
        .limit(mark_code(Slot::Limit, 0));
    maker.force(&mut select, LEASE_INDEX);
    let reads = [
        ColumnType::U64,
        ColumnType::Varchar { chars: 64 },
        ColumnType::U64,
        ColumnType::U16,
        ColumnType::I64,
    ];
    Statement::new(maker.dialect.write(&Query::Select(select)), &reads)
}
