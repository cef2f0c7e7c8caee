//! The table of nodes, and the statements of heartbeats.
//!
//! One small table for all job types of a database. Every statement that
//! writes is for one row by its primary key and commits by itself, so no two
//! heartbeats can wait for each other in a circle.

use sea_query::{
    Alias, DeleteStatement, ExprTrait as _, InsertStatement, Order, SelectStatement,
    UpdateStatement,
};

use super::{
    dialect::Query,
    parts::{Maker, col},
    statement::{Slot, Statement, mark},
    table::{TableSpec, column},
};
use crate::{
    ident::{IDENT_BYTES_MAX, Ident},
    op::claim::NODE_BYTES_MAX,
    schema::NODE_TABLE,
    value::ColumnType,
};

const JOB_TABLE: Ident = Ident::new("job_table");
const NODE: Ident = Ident::new("node");
const MEMBER_UNTIL: Ident = Ident::new("member_until");

/// The table: a row per job type and node.
pub(super) fn spec(maker: Maker<'_>) -> TableSpec {
    let text = |name, bytes| {
        let chars = u16::try_from(bytes).unwrap_or(u16::MAX);
        column(maker.dialect, name, ColumnType::Varchar { chars }, false)
    };
    TableSpec {
        name: NODE_TABLE.as_str().to_owned(),
        columns: vec![
            text(JOB_TABLE, IDENT_BYTES_MAX),
            text(NODE, NODE_BYTES_MAX),
            column(maker.dialect, MEMBER_UNTIL, ColumnType::DateTime, false),
        ],
        primary: vec![JOB_TABLE.as_str().to_owned(), NODE.as_str().to_owned()],
        indexes: Vec::new(),
    }
}

/// Makes a node a member.
pub(super) fn join(maker: Maker<'_>) -> Statement {
    let mut insert = InsertStatement::new();
    insert
        .into_table(NODE_TABLE.as_str())
        .columns([JOB_TABLE, NODE, MEMBER_UNTIL].map(Ident::as_str))
        .values_panic([
            mark(Slot::JobTable, 0),
            mark(Slot::Node, 0),
            maker.now_plus(mark(Slot::MemberUs, 0)),
        ]);
    Statement::new(maker.dialect.write(&Query::Insert(insert)), &[])
}

/// Keeps a node a member.
pub(super) fn stay(maker: Maker<'_>) -> Statement {
    let mut update = UpdateStatement::new();
    update
        .table(NODE_TABLE.as_str())
        .value(
            MEMBER_UNTIL.as_str(),
            maker.now_plus(mark(Slot::MemberUs, 0)),
        )
        .and_where(col(JOB_TABLE).eq(mark(Slot::JobTable, 0)))
        .and_where(col(NODE).eq(mark(Slot::Node, 0)));
    Statement::new(maker.dialect.write(&Query::Update(update)), &[])
}

/// All nodes of a job type, with the microseconds that each one's membership
/// still stands; below zero when it has lapsed.
pub(super) fn nodes(maker: Maker<'_>) -> Statement {
    let mut select = SelectStatement::new();
    let left_us = maker.dialect.us_between(maker.now(), col(MEMBER_UNTIL));
    select
        .column(NODE.as_str())
        .expr_as(left_us, Alias::new("left_us"))
        .from(NODE_TABLE.as_str())
        .and_where(col(JOB_TABLE).eq(mark(Slot::JobTable, 0)))
        .order_by(NODE.as_str(), Order::Asc);
    let chars = u16::try_from(NODE_BYTES_MAX).unwrap_or(u16::MAX);
    let reads = [ColumnType::Varchar { chars }, ColumnType::I64];
    Statement::new(maker.dialect.write(&Query::Select(select)), &reads)
}

/// Removes a node that has lapsed for some time, unless it came back since it
/// was read.
pub(super) fn forget(maker: Maker<'_>) -> Statement {
    let lapsed_us = mark(Slot::MemberUs, 0);
    let forgotten_at = maker.dialect.plus_us(col(MEMBER_UNTIL), lapsed_us);
    let mut delete = one_node();
    delete.and_where(forgotten_at.lt(maker.now()));
    Statement::new(maker.dialect.write(&Query::Delete(delete)), &[])
}

/// Removes a node that says so itself.
pub(super) fn leave(maker: Maker<'_>) -> Statement {
    Statement::new(maker.dialect.write(&Query::Delete(one_node())), &[])
}

fn one_node() -> DeleteStatement {
    let mut delete = DeleteStatement::new();
    delete
        .from_table(NODE_TABLE.as_str())
        .and_where(col(JOB_TABLE).eq(mark(Slot::JobTable, 0)))
        .and_where(col(NODE).eq(mark(Slot::Node, 0)));
    delete
}
