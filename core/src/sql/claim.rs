//! The statements of due heads, claim and renew.

use sea_query::{
    Alias, Cond, Expr, ExprTrait as _, Func, LockBehavior, LockType, Order, SelectStatement,
    UnionType, UpdateStatement,
};

use super::{
    dialect::Query,
    parts::{CLAIM_INDEX, LEASE_INDEX, Maker, code, col, null, number},
    shards,
    statement::{Slot, Statement, mark, mark_code},
};
use crate::{
    op::due::Lane,
    state::{Move, Status},
    value::ColumnType,
};

/// The earliest waiting job of every shard in each lane, and the database's
/// clock in a row of its own: loose index scans, two index dives a shard however
/// many jobs wait.
pub(super) fn heads(maker: Maker<'_>) -> Statement {
    let [mut heads, retry] = Lane::ALL.map(|lane| heads_of(maker, lane));
    // MariaDB makes a decimal number of an unsigned one beside a plain NULL.
    let no_shard = Func::cast_as(null(), Alias::new("UNSIGNED"));
    let mut clock = SelectStatement::new();
    clock.exprs([null(), no_shard.into(), null(), maker.now()]);
    heads
        .union(UnionType::All, retry)
        .union(UnionType::All, clock);
    let reads = [
        ColumnType::I64,
        ColumnType::U16,
        ColumnType::DateTime,
        ColumnType::DateTime,
    ];
    Statement::new(maker.dialect.write(&Query::Select(heads)), &reads)
}

fn heads_of(maker: Maker<'_>, lane: Lane) -> SelectStatement {
    let names = maker.names();
    let mut select = SelectStatement::new();
    select
        .expr(code(lane.status()))
        .column(names.shard_id.as_str())
        .expr(Func::min(col(names.next_attempt_at)))
        .expr(maker.now())
        .from(maker.table())
        .and_where(col(names.status).eq(code(lane.status())))
        .group_by_col(names.shard_id.as_str());
    maker.force(&mut select, CLAIM_INDEX);
    select
}

/// The database's clock.
pub(super) fn clock(maker: Maker<'_>) -> Statement {
    let mut select = SelectStatement::new();
    select.expr(maker.now());
    let reads = [ColumnType::DateTime];
    Statement::new(maker.dialect.write(&Query::Select(select)), &reads)
}

/// The next due jobs of one shard and lane, oldest first.
///
/// Bounded below by the shard's head: without that, a claim wades through the
/// index entries of finished jobs that an open snapshot keeps the server from
/// removing.
pub(super) fn pick(maker: Maker<'_>, lane: Lane) -> Statement {
    let mut select = waiting(maker, lane);
    select.and_where(col(maker.names().next_attempt_at).gte(mark(Slot::HeadAt, 0)));
    match lane {
        Lane::Fresh | Lane::Alone => {}
        Lane::Retry => {
            select.and_where(maker.may_run_in_company());
        }
        // Which is in the past, and so they are due.
        Lane::Doubt => {
            select.and_where(col(maker.names().next_attempt_at).lte(shards::doubt_until()));
        }
    }
    if lane != Lane::Doubt {
        select.and_where(is_due(maker));
    }
    if maker.dialect.can_skip_locked() {
        select.lock_with_behavior(LockType::Update, LockBehavior::SkipLocked);
    }
    picked(maker, select)
}

/// The next due jobs of a shard that the node holds, after those that it has
/// seen. None when it does not hold the shard.
pub(super) fn pick_held(maker: Maker<'_>) -> Statement {
    let names = maker.names();
    let mut select = waiting(maker, Lane::Fresh);
    select
        .and_where(is_due(maker))
        .and_where(maker.dialect.comes_after(
            [col(names.next_attempt_at), col(names.id)],
            [mark(Slot::HeadAt, 0), mark(Slot::MarkId, 0)],
        ))
        .and_where(shards::stands(maker));
    picked(maker, select)
}

/// The time until the next job of a shard falls due.
pub(super) fn next_due(maker: Maker<'_>) -> Statement {
    let at = || col(maker.names().next_attempt_at);
    let wait = maker.dialect.us_between(maker.now(), at());
    let mut select = of_shard(maker, Lane::Fresh);
    select
        .expr_as(wait, Alias::new("wait_us"))
        .and_where(at().gt(maker.now()));
    let reads = [ColumnType::I64];
    Statement::new(maker.dialect.write(&Query::Select(select)), &reads)
}

fn is_due(maker: Maker<'_>) -> Expr {
    col(maker.names().next_attempt_at).lte(maker.now())
}

fn waiting(maker: Maker<'_>, lane: Lane) -> SelectStatement {
    let names = maker.names();
    let mut select = of_shard(maker, lane);
    select
        .columns([
            names.id.as_str(),
            names.shard_id.as_str(),
            names.attempt_no.as_str(),
            names.lease_seq.as_str(),
            names.next_attempt_at.as_str(),
            names.idempotency_key.as_str(),
        ])
        .expr_as(maker.us_since(names.due_at), Alias::new("age_us"))
        .expr_as(maker.us_since(names.next_attempt_at), Alias::new("lag_us"));
    let content = maker.content();
    select.columns(content.iter().map(|(name, _)| name.as_str()));
    select
}

/// Waiting jobs of one shard and lane, oldest first.
fn of_shard(maker: Maker<'_>, lane: Lane) -> SelectStatement {
    let names = maker.names();
    let mut select = SelectStatement::new();
    select
        .from(maker.table())
        .and_where(col(names.shard_id).eq(mark(Slot::ShardId, 0)))
        .and_where(col(names.status).eq(code(lane.status())))
        .order_by(names.next_attempt_at.as_str(), Order::Asc)
        .order_by(names.id.as_str(), Order::Asc)
        .limit(mark_code(Slot::Limit, 0));
    maker.force(&mut select, CLAIM_INDEX);
    select
}

fn picked(maker: Maker<'_>, select: SelectStatement) -> Statement {
    let mut reads = vec![
        ColumnType::U64,
        ColumnType::U16,
        ColumnType::U16,
        ColumnType::U64,
        ColumnType::DateTime,
        ColumnType::Binary { bytes: 32 },
        ColumnType::I64,
        ColumnType::I64,
    ];
    reads.extend(maker.content().iter().map(|(_, kind)| *kind));
    Statement::new(maker.dialect.write(&Query::Select(select)), &reads)
}

/// Leases picked rows that still wait in their lane.
///
/// Where what was picked is not kept from others until it is taken, the fence
/// is compared as well: a row that was claimed and given back meanwhile has
/// the same status, but another fence, and may no longer be due.
pub(super) fn take(maker: Maker<'_>, lane: Lane, entries: usize) -> Statement {
    let names = maker.names();
    let one_more = |name| col(name).add(number(1));
    let mut update = UpdateStatement::new();
    update
        .table(maker.table())
        .value(names.status.as_str(), code(Status::Running))
        .value(names.attempt_no.as_str(), one_more(names.attempt_no))
        .value(names.lease_seq.as_str(), one_more(names.lease_seq))
        .value(names.lease_owner.as_str(), mark(Slot::Owner, 0))
        .value(
            names.lease_until.as_str(),
            maker.now_plus(mark(Slot::LeaseUs, 0)),
        )
        .value(names.updated_at.as_str(), maker.now());
    let keeps_picked = maker.dialect.can_skip_locked() || !maker.dialect.can_lock_rows();
    let picked = match keeps_picked {
        true => Cond::all().add(maker.id_in(entries)),
        false => maker.as_picked(entries),
    };
    update.cond_where(
        Cond::all()
            .add(maker.filtered_status().eq(code(lane.status())))
            .add(picked),
    );
    debug_assert!(lane.status().after(Move::Claim).is_ok());
    Statement::new(maker.dialect.write(&Query::Update(update)), &[])
}

/// Which of the picked rows this owner got. An owner is made for one claim
/// alone, so whatever it holds among these ids was won by this claim.
pub(super) fn won(maker: Maker<'_>, entries: usize) -> Statement {
    let names = maker.names();
    let mut select = SelectStatement::new();
    select
        .column(names.id.as_str())
        .from(maker.table())
        .and_where(maker.id_in(entries))
        .and_where(maker.filtered_status().eq(code(Status::Running)))
        .and_where(col(names.lease_owner).eq(mark(Slot::Owner, 0)));
    let reads = [ColumnType::U64];
    Statement::new(maker.dialect.write(&Query::Select(select)), &reads)
}

/// Keeps leases that still stand.
pub(super) fn renew(maker: Maker<'_>, entries: usize) -> Statement {
    let mut update = UpdateStatement::new();
    update
        .table(maker.table())
        .value(
            maker.names().lease_until.as_str(),
            maker.now_plus(mark(Slot::LeaseUs, 0)),
        )
        .cond_where(maker.is_leased(entries).add(maker.is_live()));
    Statement::new(maker.dialect.write(&Query::Update(update)), &[])
}

/// Which of these leases still stand.
pub(super) fn live(maker: Maker<'_>, entries: usize) -> Statement {
    let names = maker.names();
    let mut select = SelectStatement::new();
    select
        .column(names.id.as_str())
        .from(maker.table())
        .cond_where(maker.is_leased(entries).add(maker.is_live()));
    let reads = [ColumnType::U64];
    Statement::new(maker.dialect.write(&Query::Select(select)), &reads)
}

/// Whether any job waits or runs.
///
/// One statement, and so one look: a job that moves on between two would be
/// seen by neither.
pub(super) fn any_open(maker: Maker<'_>) -> Statement {
    let exists = |status| Expr::exists(any(maker, status));
    let any = exists(Status::Pending)
        .or(exists(Status::Retry))
        .or(exists(Status::Running));
    let mut select = SelectStatement::new();
    select.expr(any);
    let reads = [ColumnType::I64];
    Statement::new(maker.dialect.write(&Query::Select(select)), &reads)
}

fn any(maker: Maker<'_>, status: Status) -> SelectStatement {
    let names = maker.names();
    let mut select = SelectStatement::new();
    select
        .column(names.id.as_str())
        .from(maker.table())
        .cond_where(Cond::all().add(col(names.status).eq(code(status))));
    maker.force(&mut select, LEASE_INDEX);
    select
}

/// How many jobs stand in each status.
pub(super) fn counts(maker: Maker<'_>) -> Statement {
    let status = maker.names().status;
    let mut select = SelectStatement::new();
    select
        .column(status.as_str())
        .expr(Func::count(Expr::col(sea_query::Asterisk)))
        .from(maker.table())
        .group_by_col(status.as_str());
    maker.force(&mut select, LEASE_INDEX);
    let reads = [ColumnType::U8, ColumnType::I64];
    Statement::new(maker.dialect.write(&Query::Select(select)), &reads)
}

impl Maker<'_> {
    /// An optimizer that thinks a table small may read all of it, and a
    /// reading claim locks what it reads.
    pub(super) fn force(&self, select: &mut SelectStatement, index: &str) {
        let name = self.dialect.index_name(self.schema.table, index);
        self.dialect.force_index(select, &name);
    }
}
