//! The statements of hold, release, cancel and requeue.

use sea_query::{Func, LockType, Order, SelectStatement, UpdateStatement};

use super::{
    dialect::Query,
    parts::{Maker, PRIMARY, code, col, null, number},
    statement::{Slot, Statement, mark},
};
use crate::{op::operate::Action, state::Status, value::ColumnType};

/// Where jobs stand. Where reads can lock, they stay there until the
/// transaction ends.
pub(super) fn look(maker: Maker<'_>, entries: usize) -> Statement {
    let names = maker.names();
    let mut select = SelectStatement::new();
    select
        .columns([names.id.as_str(), names.status.as_str()])
        .from(maker.table())
        .and_where(maker.id_in(entries))
        // Rows are locked in the order of the primary key by everyone.
        .order_by(names.id.as_str(), Order::Asc);
    // The index over the status covers these columns: a long list would be read,
    // and locked, in its order.
    maker.force(&mut select, PRIMARY);
    if maker.dialect.can_lock_rows() {
        select.lock(LockType::Update);
    }
    let reads = [ColumnType::U64, ColumnType::U8];
    Statement::new(maker.dialect.write(&Query::Select(select)), &reads)
}

/// Moves jobs from where the state machine allows it.
pub(super) fn operate(maker: Maker<'_>, action: Action, entries: usize) -> Statement {
    let names = maker.names();
    let mut update = UpdateStatement::new();
    update
        .table(maker.table())
        .value(names.status.as_str(), code(target(action)))
        .value(names.updated_at.as_str(), maker.now());
    match action {
        Action::Hold | Action::Cancel => {
            let reason = [mark(Slot::Error, 0), col(names.last_error)];
            update.value(names.last_error.as_str(), Func::coalesce(reason));
        }
        // PENDING always means no attempt made, so that the attempts after a
        // release stay within the maximum as well.
        Action::Release | Action::Requeue => {
            update
                .value(names.next_attempt_at.as_str(), maker.now())
                .value(names.due_at.as_str(), maker.now())
                .value(names.attempt_no.as_str(), number(0))
                .value(names.lease_owner.as_str(), null());
        }
    }
    update
        .and_where(maker.id_in(entries))
        .and_where(maker.may(action.step()));
    Statement::new(maker.dialect.write(&Query::Update(update)), &[])
}

fn target(action: Action) -> Status {
    let mut sources = action.step().sources();
    let target = sources
        .next()
        .and_then(|from| from.after(action.step()).ok());
    target.unwrap_or_else(|| unreachable!("every action starts somewhere"))
}
