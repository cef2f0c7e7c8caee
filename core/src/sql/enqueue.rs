//! The statements of enqueue.

use sea_query::{Expr, ExprTrait as _, Func, InsertStatement, LockType, SelectStatement};

use super::{
    dialect::Query,
    parts::{KEY_INDEX, Maker, code, col, number},
    statement::{Slot, Statement, mark},
};
use crate::{ident::Ident, state::Status, value::ColumnType};

/// Stores rows. Fails as a whole when a key is already there, so that nothing
/// is ever cut, skipped or overwritten in silence, as `INSERT IGNORE` and
/// `ON DUPLICATE KEY UPDATE` would.
pub(super) fn insert(maker: Maker<'_>, rows: usize) -> Statement {
    let mut insert = InsertStatement::new();
    insert.into_table(maker.table());
    insert.columns(row(maker, 0).into_iter().map(|(name, _)| name.as_str()));
    for entry in 0..rows {
        insert.values_panic(row(maker, entry).into_iter().map(|(_, value)| value));
    }
    Statement::new(maker.dialect.write(&Query::Insert(insert)), &[])
}

/// Columns in one row of the INSERT that are bound.
pub(super) fn binds_per_row(maker: Maker<'_>) -> usize {
    insert(maker, 1).binds().len()
}

fn row(maker: Maker<'_>, entry: usize) -> Vec<(Ident, Expr)> {
    let names = maker.names();
    let due_from = || -> Expr { Func::coalesce([mark(Slot::DueAt, entry), maker.now()]).into() };
    let after = |slot| maker.dialect.plus_us(due_from(), mark(slot, entry));
    let mut row = vec![
        (names.shard_id, mark(Slot::ShardId, entry)),
        (names.status, code(Status::Pending)),
        (names.next_attempt_at, after(Slot::StartUs)),
        (names.due_at, after(Slot::DueUs)),
        (names.attempt_no, number(0)),
        (names.lease_seq, number(0)),
        (names.idempotency_key, mark(Slot::Key, entry)),
        (names.created_at, maker.now()),
        (names.updated_at, maker.now()),
    ];
    if maker.schema.has_payload {
        row.push((names.payload, mark(Slot::Payload, entry)));
    }
    if let Some(name) = maker.schema.shard_key_column {
        row.push((name, mark(Slot::ShardKey, entry)));
    }
    for (own, at) in maker.schema.columns.iter().zip(0..) {
        row.push((own.name, mark(Slot::Column(at), entry)));
    }
    row
}

/// The rows that hold these keys.
///
/// Where reads can lock, this one does: in a caller's transaction at
/// REPEATABLE READ a plain read would not see the row that another transaction
/// has just committed and that the INSERT failed on. Shared, as the lock that
/// the failed INSERT left: of several callers with the same keys, those who
/// asked for more would meet in a deadlock.
pub(super) fn find_keys(maker: Maker<'_>, keys: usize) -> Statement {
    let names = maker.names();
    let mut select = SelectStatement::new();
    select
        .columns([names.id.as_str(), names.idempotency_key.as_str()])
        .from(maker.table())
        .and_where(col(names.idempotency_key).is_in((0..keys).map(|entry| mark(Slot::Key, entry))));
    maker.force(&mut select, KEY_INDEX);
    if maker.dialect.can_lock_rows() {
        select.lock(LockType::Share);
    }
    let reads = [ColumnType::U64, ColumnType::Binary { bytes: 32 }];
    Statement::new(maker.dialect.write(&Query::Select(select)), &reads)
}
