//! Due heads.

use chrono::NaiveDateTime;
use retryjob_core::{
    DbTime,
    op::due::{Head, LaneHeads},
    sql::Catalogue,
};

use super::{Operation, read, status, unbound};
use crate::{
    fault::Fault,
    session::{Fields, Session},
};

/// Reads the heads.
pub(crate) struct Heads;

impl Operation for Heads {
    type Answer = LaneHeads;
    const IS_TRANSACTION: bool = false;

    async fn run<S: Session>(
        &mut self,
        session: &mut S,
        catalogue: &Catalogue,
        _is_unsure: bool,
    ) -> Result<LaneHeads, Fault> {
        let rows = read(session, &catalogue.heads, |bind| unbound(bind.slot)).await?;
        let mut now = None;
        let mut heads = Vec::with_capacity(rows.len());
        for row in rows {
            let mut fields = Fields::of(row);
            let code: Option<u8> = fields.take("status")?;
            let shard_id: Option<u16> = fields.take("shard_id")?;
            let at: Option<NaiveDateTime> = fields.take("next_attempt_at")?;
            now = Some(DbTime::from_utc(fields.take("now")?));
            if let (Some(code), Some(shard_id), Some(at)) = (code, shard_id, at) {
                let next_attempt_at = DbTime::from_utc(at);
                let head = Head {
                    shard_id,
                    next_attempt_at,
                };
                heads.push((status(code)?, head));
            }
        }
        let now = now.ok_or_else(no_time)?;
        Ok(LaneHeads::new(now, heads))
    }
}

fn no_time() -> Fault {
    Fault::database("the database did not tell its time")
}

/// The database's clock.
pub(crate) async fn clock<S: Session>(
    session: &mut S,
    catalogue: &Catalogue,
) -> Result<DbTime, Fault> {
    let rows = read(session, &catalogue.clock, |bind| unbound(bind.slot)).await?;
    let Some(row) = rows.into_iter().next() else {
        return Err(no_time());
    };
    Ok(DbTime::from_utc(Fields::of(row).take("now")?))
}
