//! The table of shards' leases, and its statements.
//!
//! Every statement that writes commits by itself and locks its rows in the
//! order of the primary key.

use sea_query::{
    Alias, CaseStatement, Cond, Expr, ExprTrait as _, InsertStatement, IntoCondition as _, Order,
    SelectStatement, UpdateStatement,
};

use super::{
    dialect::Query,
    parts::{Maker, col, number},
    statement::{Slot, Statement, mark},
    table::{TableSpec, column},
};
use crate::{
    ident::{IDENT_BYTES_MAX, Ident},
    op::claim::NODE_BYTES_MAX,
    schema::SHARD_TABLE,
    value::ColumnType,
};

const JOB_TABLE: Ident = Ident::new("job_table");
const SHARD_ID: Ident = Ident::new("shard_id");
/// Empty when nobody holds the lease.
const NODE: Ident = Ident::new("node");
const FENCE: Ident = Ident::new("fence");
const LEASE_UNTIL: Ident = Ident::new("lease_until");
const DOUBT_UNTIL: Ident = Ident::new("doubt_until");

/// The table: a row per job type and shard.
pub(super) fn spec(maker: Maker<'_>) -> TableSpec {
    let column = |name, kind, is_nullable| column(maker.dialect, name, kind, is_nullable);
    let text = |bytes| ColumnType::Varchar {
        chars: u16::try_from(bytes).unwrap_or(u16::MAX),
    };
    TableSpec {
        name: SHARD_TABLE.as_str().to_owned(),
        columns: vec![
            column(JOB_TABLE, text(IDENT_BYTES_MAX), false),
            column(SHARD_ID, ColumnType::U16, false),
            column(NODE, text(NODE_BYTES_MAX), false),
            column(FENCE, ColumnType::U64, false),
            column(LEASE_UNTIL, ColumnType::DateTime, false),
            column(DOUBT_UNTIL, ColumnType::DateTime, true),
        ],
        primary: vec![JOB_TABLE.as_str().to_owned(), SHARD_ID.as_str().to_owned()],
        indexes: Vec::new(),
    }
}

fn of_job_type() -> Expr {
    col(JOB_TABLE).eq(mark(Slot::JobTable, 0))
}

fn of_node() -> Expr {
    col(NODE).eq(mark(Slot::Node, 0))
}

fn is_live(maker: Maker<'_>) -> Expr {
    col(LEASE_UNTIL).gte(maker.now())
}

/// `(shard, fence)`, one per entry.
fn fences(entries: usize) -> Cond {
    (0..entries).fold(Cond::any(), |any, entry| {
        any.add(
            Cond::all()
                .add(col(SHARD_ID).eq(mark(Slot::ShardId, entry)))
                .add(col(FENCE).eq(mark(Slot::Fence, entry))),
        )
    })
}

/// Every shard that was ever held.
pub(super) fn read(maker: Maker<'_>) -> Statement {
    let mut select = SelectStatement::new();
    let left_us = maker.dialect.us_between(maker.now(), col(LEASE_UNTIL));
    select
        .columns([SHARD_ID, NODE, FENCE, DOUBT_UNTIL].map(Ident::as_str))
        .expr_as(left_us, Alias::new("left_us"))
        .from(SHARD_TABLE.as_str())
        .and_where(of_job_type())
        .order_by(SHARD_ID.as_str(), Order::Asc);
    let chars = u16::try_from(NODE_BYTES_MAX).unwrap_or(u16::MAX);
    let reads = [
        ColumnType::U16,
        ColumnType::Varchar { chars },
        ColumnType::U64,
        ColumnType::DateTime,
        ColumnType::I64,
    ];
    Statement::new(maker.dialect.write(&Query::Select(select)), &reads)
}

/// The row of a shard that was never held; nobody holds it yet.
pub(super) fn add(maker: Maker<'_>) -> Statement {
    let mut insert = InsertStatement::new();
    insert
        .into_table(SHARD_TABLE.as_str())
        .columns([JOB_TABLE, SHARD_ID, NODE, FENCE, LEASE_UNTIL].map(Ident::as_str))
        .values_panic([
            mark(Slot::JobTable, 0),
            mark(Slot::ShardId, 0),
            mark(Slot::Node, 0),
            number(0),
            maker.now(),
        ]);
    Statement::new(maker.dialect.write(&Query::Insert(insert)), &[])
}

/// Keeps every lease of a node that still stands.
pub(super) fn keep(maker: Maker<'_>) -> Statement {
    let mut update = UpdateStatement::new();
    update
        .table(SHARD_TABLE.as_str())
        .value(LEASE_UNTIL.as_str(), maker.now_plus(mark(Slot::LeaseUs, 0)))
        .and_where(of_job_type())
        .and_where(of_node())
        .and_where(is_live(maker));
    Statement::new(maker.dialect.write(&Query::Update(update)), &[])
}

/// Takes shards that nobody holds. A lease that lapsed leaves jobs in doubt;
/// one that was released does not.
pub(super) fn take(maker: Maker<'_>, entries: usize) -> Statement {
    let is_released = || col(NODE).eq(Expr::cust("''"));
    let doubt = CaseStatement::new()
        .case(is_released().into_condition(), col(DOUBT_UNTIL))
        .finally(col(LEASE_UNTIL));
    let mut update = UpdateStatement::new();
    update
        .table(SHARD_TABLE.as_str())
        // First, since MySQL reads what the assignments before have written.
        .value(DOUBT_UNTIL.as_str(), doubt)
        .value(NODE.as_str(), mark(Slot::Node, 0))
        .value(FENCE.as_str(), col(FENCE).add(number(1)))
        .value(LEASE_UNTIL.as_str(), maker.now_plus(mark(Slot::LeaseUs, 0)))
        .and_where(of_job_type())
        .and_where(col(SHARD_ID).is_in((0..entries).map(|entry| mark(Slot::ShardId, entry))))
        .cond_where(
            Cond::any()
                .add(is_released())
                .add(col(LEASE_UNTIL).lt(maker.now())),
        );
    Statement::new(maker.dialect.write(&Query::Update(update)), &[])
}

/// Gives shards back.
pub(super) fn release(maker: Maker<'_>, entries: usize) -> Statement {
    let mut update = UpdateStatement::new();
    update
        .table(SHARD_TABLE.as_str())
        .value(NODE.as_str(), Expr::cust("''"))
        .and_where(of_job_type())
        .and_where(of_node())
        .and_where(is_live(maker))
        .cond_where(fences(entries));
    Statement::new(maker.dialect.write(&Query::Update(update)), &[])
}

/// Which of these leases stand.
pub(super) fn live(maker: Maker<'_>, entries: usize) -> Statement {
    let mut select = SelectStatement::new();
    select
        .column(SHARD_ID.as_str())
        .from(SHARD_TABLE.as_str())
        .and_where(of_job_type())
        .and_where(of_node())
        .and_where(is_live(maker))
        .cond_where(fences(entries));
    let reads = [ColumnType::U16];
    Statement::new(maker.dialect.write(&Query::Select(select)), &reads)
}

/// Whether the lease of the one shard stands, as part of another statement.
pub(super) fn stands(maker: Maker<'_>) -> Expr {
    let mut select = SelectStatement::new();
    select
        .column(FENCE.as_str())
        .from(SHARD_TABLE.as_str())
        .and_where(of_job_type())
        .and_where(col(SHARD_ID).eq(mark(Slot::ShardId, 0)))
        .and_where(of_node())
        .and_where(col(FENCE).eq(mark(Slot::Fence, 0)))
        .and_where(is_live(maker));
    Expr::exists(select)
}

/// Until when jobs of the one shard are in doubt, as part of another statement.
pub(super) fn doubt_until() -> Expr {
    let mut select = SelectStatement::new();
    select
        .column(DOUBT_UNTIL.as_str())
        .from(SHARD_TABLE.as_str())
        .and_where(of_job_type())
        .and_where(col(SHARD_ID).eq(mark(Slot::ShardId, 0)));
    Expr::SubQuery(None, Box::new(select.into()))
}
