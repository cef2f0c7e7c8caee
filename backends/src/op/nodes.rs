//! Heartbeats, and leaving.

use std::time::Duration;

use retryjob_core::{
    JobSchema, Value,
    op::nodes::{FORGET_AFTER, FORGET_NODES_MAX, Heartbeat, Leave, Members, NodeName},
    sql::{Bind, Catalogue, Slot},
    time::span_us,
};

use super::{Operation, insert_once, job_table, read, write};
use crate::{
    fault::Fault,
    session::{Fields, Session},
};

/// Writes the node's own row, reads all, and removes what lapsed long ago.
///
/// No transaction: each statement is right by itself, and a heartbeat that
/// holds no lock while it waits for one can't be part of a deadlock.
pub(crate) struct Beat<'a> {
    pub(crate) schema: &'a JobSchema,
    pub(crate) heartbeat: Heartbeat,
}

impl Operation for Beat<'_> {
    type Answer = Members;
    const IS_TRANSACTION: bool = false;

    async fn run<S: Session>(
        &mut self,
        session: &mut S,
        catalogue: &Catalogue,
        _is_unsure: bool,
    ) -> Result<Members, Fault> {
        let Heartbeat { node, member_for } = &self.heartbeat;
        let own = row(self.schema, node, *member_for);
        if write(session, &catalogue.stay, &own).await?.matched == 0 {
            insert_once(session, &catalogue.join, &own).await?;
        }
        let rows = read(session, &catalogue.nodes, &own).await?;
        let mut names = Vec::with_capacity(rows.len());
        let mut forgotten = Vec::new();
        for row in rows {
            let mut fields = Fields::of(row);
            let node = NodeName::from_row(&fields.take::<String>("node")?);
            let left_us: i64 = fields.take("left_us")?;
            if left_us >= 0 {
                names.push(node);
            } else if left_us < -span_us(FORGET_AFTER) {
                forgotten.push(node);
            }
        }
        for node in forgotten.iter().take(FORGET_NODES_MAX) {
            let lapsed = row(self.schema, node, FORGET_AFTER);
            write(session, &catalogue.forget, &lapsed).await?;
        }
        Ok(Members { names })
    }
}

/// Removes the node's own row.
pub(crate) struct LeaveNow<'a> {
    pub(crate) schema: &'a JobSchema,
    pub(crate) leave: Leave,
}

impl Operation for LeaveNow<'_> {
    type Answer = ();
    const IS_TRANSACTION: bool = false;

    async fn run<S: Session>(
        &mut self,
        session: &mut S,
        catalogue: &Catalogue,
        _is_unsure: bool,
    ) -> Result<(), Fault> {
        let own = row(self.schema, &self.leave.node, Duration::ZERO);
        write(session, &catalogue.leave, &own).await?;
        Ok(())
    }
}

/// What the statements of one row bind.
fn row<'a>(
    schema: &'a JobSchema,
    node: &'a NodeName,
    member: Duration,
) -> impl Fn(Bind) -> Value + Send + Sync + 'a {
    move |bind| match bind.slot {
        Slot::Node => Value::Text(node.as_str().to_owned()),
        Slot::MemberUs => Value::I64(span_us(member)),
        slot => job_table(schema, slot),
    }
}
