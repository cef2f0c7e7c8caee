//! The statements of finish.

use sea_query::{
    Cond, DeleteStatement, ExprTrait as _, Func, InsertStatement, SelectStatement, UpdateStatement,
};

use super::{
    dialect::Query,
    parts::{Maker, code, col, null, number},
    statement::{Slot, Statement, mark},
    table::{history_table, specs},
};
use crate::{state::Status, value::ColumnType};

/// SUCCESS for leases of one claim that still stand.
pub(super) fn succeed(maker: Maker<'_>, entries: usize) -> Statement {
    let names = maker.names();
    let mut update = UpdateStatement::new();
    update
        .table(maker.table())
        .value(names.status.as_str(), code(Status::Success))
        .value(names.lease_until.as_str(), null())
        .value(names.updated_at.as_str(), maker.now())
        .cond_where(maker.is_leased_alike(entries).add(maker.is_live()));
    Statement::new(maker.dialect.write(&Query::Update(update)), &[])
}

/// Deletes rows that succeeded, for leases of one claim that still stand.
pub(super) fn delete(maker: Maker<'_>, entries: usize) -> Statement {
    let mut delete = DeleteStatement::new();
    delete
        .from_table(maker.table())
        .cond_where(maker.is_leased_alike(entries).add(maker.is_live()));
    Statement::new(maker.dialect.write(&Query::Delete(delete)), &[])
}

/// Every other outcome, for leases that still stand: each row takes its own
/// status, delay, attempt number and error.
pub(super) fn settle(maker: Maker<'_>, entries: usize) -> Statement {
    // The owner stays: reading it back tells a finish that was written from
    // one that came too late.
    let update = settling(maker, entries)
        .cond_where(maker.is_leased(entries).add(maker.is_live()))
        .to_owned();
    Statement::new(maker.dialect.write(&Query::Update(update)), &[])
}

/// The same for lapsed leases. The lease may have been renewed, or the job
/// finished or claimed anew, since the reaper looked: the whole condition is
/// repeated.
pub(super) fn settle_lapsed(maker: Maker<'_>, entries: usize) -> Statement {
    // Without its owner the row no longer looks like one that the late
    // finisher wrote.
    let update = settling(maker, entries)
        .value(maker.names().lease_owner.as_str(), null())
        .cond_where(maker.is_leased(entries).add(maker.has_lapsed()))
        .to_owned();
    Statement::new(maker.dialect.write(&Query::Update(update)), &[])
}

fn settling(maker: Maker<'_>, entries: usize) -> UpdateStatement {
    let mut update = UpdateStatement::new();
    update.table(maker.table());
    settling_into(&mut update, maker, entries);
    update
}

fn settling_into(update: &mut UpdateStatement, maker: Maker<'_>, entries: usize) {
    let names = maker.names();
    let error = maker.by_id(Slot::Error, entries);
    update
        .value(names.status.as_str(), maker.by_id(Slot::Status, entries))
        .value(
            names.next_attempt_at.as_str(),
            maker.now_plus(maker.by_id(Slot::DelayUs, entries)),
        )
        .value(
            names.attempt_no.as_str(),
            maker.by_id(Slot::AttemptNo, entries),
        )
        .value(
            names.last_error.as_str(),
            Func::coalesce([error, col(names.last_error)]),
        )
        .value(names.lease_until.as_str(), null())
        .value(names.updated_at.as_str(), maker.now());
}

/// What became of rows, to tell which finishes were written.
pub(super) fn outcome(maker: Maker<'_>, entries: usize) -> Statement {
    let names = maker.names();
    let mut select = SelectStatement::new();
    select
        .columns([
            names.id.as_str(),
            names.status.as_str(),
            names.attempt_no.as_str(),
            names.lease_seq.as_str(),
            names.lease_owner.as_str(),
        ])
        .from(maker.table())
        .and_where(maker.id_in(entries));
    let reads = [
        ColumnType::U64,
        ColumnType::U8,
        ColumnType::U16,
        ColumnType::U64,
        ColumnType::Varchar { chars: 64 },
    ];
    Statement::new(maker.dialect.write(&Query::Select(select)), &reads)
}

/// SUCCESS for new jobs under the leases of their shards, which were proven
/// before: claim and finish in one. The owner is left out: it would make the
/// row longer, which costs as much again as the rest
/// (docs/decisions/0010-leases-of-shards.md).
pub(super) fn succeed_held(maker: Maker<'_>, entries: usize) -> Statement {
    let names = maker.names();
    let one_more = |name| col(name).add(number(1));
    let mut update = UpdateStatement::new();
    update
        .table(maker.table())
        .value(names.status.as_str(), code(Status::Success))
        .value(names.attempt_no.as_str(), one_more(names.attempt_no))
        .value(names.lease_seq.as_str(), one_more(names.lease_seq))
        .value(names.updated_at.as_str(), maker.now())
        .cond_where(maker.is_waiting_alike(entries));
    Statement::new(maker.dialect.write(&Query::Update(update)), &[])
}

/// Deletes new jobs that succeeded under the leases of their shards.
pub(super) fn delete_held(maker: Maker<'_>, entries: usize) -> Statement {
    let mut delete = DeleteStatement::new();
    delete
        .from_table(maker.table())
        .cond_where(maker.is_waiting_alike(entries));
    Statement::new(maker.dialect.write(&Query::Delete(delete)), &[])
}

/// Every other outcome of new jobs under the leases of their shards.
pub(super) fn settle_held(maker: Maker<'_>, entries: usize) -> Statement {
    let names = maker.names();
    let mut update = UpdateStatement::new();
    update
        .table(maker.table())
        .value(
            names.lease_seq.as_str(),
            col(names.lease_seq).add(number(1)),
        )
        .value(names.lease_owner.as_str(), mark(Slot::Owner, 0));
    settling_into(&mut update, maker, entries);
    update.cond_where(maker.is_waiting(entries));
    Statement::new(maker.dialect.write(&Query::Update(update)), &[])
}

/// Copies rows that succeeded into the history table.
pub(super) fn archive(maker: Maker<'_>, entries: usize) -> Statement {
    let job = specs(maker).swap_remove(0);
    let columns: Vec<_> = job.columns.into_iter().map(|column| column.name).collect();
    let mut select = SelectStatement::new();
    select
        .columns(columns.clone())
        .from(maker.table())
        .cond_where(succeeded(maker, entries));
    let mut insert = InsertStatement::new();
    insert
        .into_table(history_table(maker.schema.table))
        .columns(columns);
    if let Err(error) = insert.select_from(select) {
        unreachable!("the same columns on both sides: {error}");
    }
    Statement::new(maker.dialect.write(&Query::Insert(insert)), &[])
}

/// Removes rows that were copied into the history table.
pub(super) fn remove(maker: Maker<'_>, entries: usize) -> Statement {
    let mut delete = DeleteStatement::new();
    delete
        .from_table(maker.table())
        .cond_where(succeeded(maker, entries));
    Statement::new(maker.dialect.write(&Query::Delete(delete)), &[])
}

fn succeeded(maker: Maker<'_>, entries: usize) -> Cond {
    Cond::all()
        .add(maker.id_in(entries))
        .add(maker.filtered_status().eq(code(Status::Success)))
}
