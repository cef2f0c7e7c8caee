//! Counts, and whether any job is open.

use retryjob_core::{Value, op::counts::Counts, sql::Catalogue};

use super::{Operation, read, status, unbound};
use crate::{
    fault::Fault,
    session::{Fields, Session},
};

/// Counts the jobs of every status.
pub(crate) struct CountAll;

impl Operation for CountAll {
    type Answer = Counts;
    const IS_TRANSACTION: bool = false;

    async fn run<S: Session>(
        &mut self,
        session: &mut S,
        catalogue: &Catalogue,
        _is_unsure: bool,
    ) -> Result<Counts, Fault> {
        let rows = read(session, &catalogue.counts, |bind| unbound(bind.slot)).await?;
        let mut counts = Counts::default();
        for row in rows {
            let mut fields = Fields::of(row);
            let status = status(fields.take("status")?)?;
            let count: i64 = fields.take("count")?;
            counts.set(status, u64::try_from(count).unwrap_or(0));
        }
        Ok(counts)
    }
}

/// Looks for a job that a worker still has to do something for.
pub(crate) struct AnyOpen;

impl Operation for AnyOpen {
    type Answer = bool;
    const IS_TRANSACTION: bool = false;

    async fn run<S: Session>(
        &mut self,
        session: &mut S,
        catalogue: &Catalogue,
        _is_unsure: bool,
    ) -> Result<bool, Fault> {
        for (_, statement) in &catalogue.any {
            let one = read(session, statement, |_| Value::U64(1)).await?;
            if !one.is_empty() {
                return Ok(true);
            }
        }
        Ok(false)
    }
}
