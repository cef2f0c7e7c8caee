//! Operate.

use std::collections::{HashMap, HashSet};

use retryjob_core::{
    Error, ErrorKind, Result, Status, Value,
    op::{
        finish::shortened,
        operate::{Action, OPERATE_IDS_MAX, Operate, Operated, Operation as Answer},
    },
    sql::{Bind, Catalogue, Slot},
};

use super::{Operation, entry, read_list, status, unbound, write_list};
use crate::{
    fault::Fault,
    session::{Fields, Session},
};

/// Does what an operator asks, to jobs in the order of their ids.
pub(crate) struct OperateAll {
    action: Action,
    reason: Option<String>,
    /// As asked for, each once.
    ids: Vec<u64>,
    sorted: Vec<u64>,
    /// What an earlier run did, for when its COMMIT got no answer.
    done: HashMap<u64, Status>,
}

impl OperateAll {
    pub(crate) fn new(request: Operate) -> Result<Self> {
        if request.ids.len() > OPERATE_IDS_MAX {
            return Err(Error::new(
                ErrorKind::Config,
                format!(
                    "{} ids in one request, at most {OPERATE_IDS_MAX}; split it",
                    request.ids.len()
                ),
            ));
        }
        let mut seen = HashSet::new();
        let ids: Vec<u64> = request
            .ids
            .into_iter()
            .filter(|id| seen.insert(*id))
            .collect();
        let mut sorted = ids.clone();
        sorted.sort_unstable();
        Ok(Self {
            action: request.action,
            reason: request.reason.as_deref().map(shortened),
            ids,
            sorted,
            done: HashMap::new(),
        })
    }

    fn answer(&self, at: Option<Status>, id: u64, is_unsure: bool) -> Answer {
        let Some(status) = at else {
            return Answer::Missing;
        };
        if status.after(self.action.step()).is_ok() {
            return Answer::Done { from: status };
        }
        match self.done.get(&id) {
            Some(from) if is_unsure && from.after(self.action.step()) == Ok(status) => {
                Answer::Done { from: *from }
            }
            _ => Answer::Refused { status },
        }
    }
}

impl Operation for OperateAll {
    type Answer = Operated;
    const IS_TRANSACTION: bool = true;

    async fn run<S: Session>(
        &mut self,
        session: &mut S,
        catalogue: &Catalogue,
        is_unsure: bool,
    ) -> Result<Operated, Fault> {
        let mut stands = HashMap::new();
        for ids in self.sorted.chunks(catalogue.look.len_max()) {
            let value = |bind: Bind| Value::U64(*entry(ids, bind.entry));
            for row in read_list(session, &catalogue.look, ids.len(), value).await? {
                let mut fields = Fields::of(row);
                let id: u64 = fields.take("id")?;
                stands.insert(id, status(fields.take("status")?)?);
            }
        }
        let may_move = |id: &&u64| {
            let at = stands.get(*id);
            at.is_some_and(|status| status.after(self.action.step()).is_ok())
        };
        let moving: Vec<u64> = self.sorted.iter().filter(may_move).copied().collect();
        let statements = catalogue.operate(self.action);
        for ids in moving.chunks(statements.len_max()) {
            let value = |bind: Bind| match bind.slot {
                Slot::Id => Value::U64(*entry(ids, bind.entry)),
                Slot::Error => self.reason.clone().map_or(Value::Null, Value::Text),
                slot => unbound(slot),
            };
            write_list(session, statements, ids.len(), value).await?;
        }
        let answers = self
            .ids
            .iter()
            .map(|id| (*id, self.answer(stands.get(id).copied(), *id, is_unsure)))
            .collect();
        self.done.extend(moving.iter().map(|id| (*id, stands[id])));
        Ok(Operated { answers })
    }
}
