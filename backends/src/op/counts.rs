//! Counts, and whether any job is open.

use retryjob_core::{op::counts::Counts, sql::Catalogue};

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
    const PATIENCE: u32 = 20;

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
        let rows = read(session, &catalogue.any_open, |bind| unbound(bind.slot)).await?;
        let Some(row) = rows.into_iter().next() else {
            return Err(Fault::database("a look for open jobs has no answer"));
        };
        let any: i64 = Fields::of(row).take("any_open")?;
        Ok(any != 0)
    }
}
