//! Due heads.

use retryjob_core::{
    DbTime,
    op::due::{DueHeads, Head, Lane},
    sql::Catalogue,
};

use super::{Operation, read, unbound};
use crate::{
    fault::Fault,
    session::{Fields, Session},
};

/// Reads the heads of one lane.
pub(crate) struct Heads(pub(crate) Lane);

impl Operation for Heads {
    type Answer = DueHeads;
    const IS_TRANSACTION: bool = false;

    async fn run<S: Session>(
        &mut self,
        session: &mut S,
        catalogue: &Catalogue,
        _is_unsure: bool,
    ) -> Result<DueHeads, Fault> {
        let statement = catalogue.heads.of(self.0);
        let rows = read(session, statement, |bind| unbound(bind.slot)).await?;
        let mut now = None;
        let mut heads = Vec::with_capacity(rows.len());
        for row in rows {
            let mut fields = Fields::of(row);
            let head = Head {
                shard_id: fields.take("shard_id")?,
                next_attempt_at: DbTime::from_utc(fields.take("next_attempt_at")?),
            };
            now = Some(DbTime::from_utc(fields.take("now")?));
            heads.push(head);
        }
        let now = match now {
            Some(now) => now,
            None => clock(session, catalogue).await?,
        };
        heads.sort_unstable_by_key(|head| (head.next_attempt_at, head.shard_id));
        Ok(DueHeads { now, heads })
    }
}

/// The database's clock.
pub(crate) async fn clock<S: Session>(
    session: &mut S,
    catalogue: &Catalogue,
) -> Result<DbTime, Fault> {
    let rows = read(session, &catalogue.clock, |bind| unbound(bind.slot)).await?;
    let Some(row) = rows.into_iter().next() else {
        return Err(Fault::database("the database did not tell its time"));
    };
    Ok(DbTime::from_utc(Fields::of(row).take("now")?))
}
