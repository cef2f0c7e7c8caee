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

use super::{Operation, id_value, look, status, write_list};
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
        if is_unsure && let Some(from) = self.moved_before(at, id) {
            return Answer::Done { from };
        }
        match at {
            None => Answer::Missing,
            Some(from) if from.after(self.action.step()).is_ok() => Answer::Done { from },
            Some(status) => Answer::Refused { status },
        }
    }

    /// Where an earlier run, whose COMMIT got no answer, moved this job from,
    /// if that shows in where the job stands now.
    ///
    /// Where a release or a requeue starts, only an operator leads away: a job
    /// that is elsewhere was moved, and may have run since. It is not started
    /// a second time. Where a hold or a cancel starts, workers lead away as
    /// well, so only a job that stands where it was to go was moved.
    fn moved_before(&self, at: Option<Status>, id: u64) -> Option<Status> {
        let from = *self.done.get(&id)?;
        let is_moved = match self.action {
            Action::Release | Action::Requeue => at != Some(from),
            Action::Hold | Action::Cancel => {
                at.is_some() && from.after(self.action.step()).ok() == at
            }
        };
        is_moved.then_some(from)
    }
}

impl Operation for OperateAll {
    type Answer = Operated;
    const IS_TRANSACTION: bool = true;
    const PATIENCE: u32 = 10;

    async fn run<S: Session>(
        &mut self,
        session: &mut S,
        catalogue: &Catalogue,
        is_unsure: bool,
    ) -> Result<Operated, Fault> {
        let mut stands = HashMap::new();
        for row in look(session, catalogue, &self.sorted).await? {
            let mut fields = Fields::of(row);
            let id: u64 = fields.take("id")?;
            stands.insert(id, status(fields.take("status")?)?);
        }
        let may_move = |id: &&u64| {
            let at = stands.get(*id).copied();
            let was_moved = is_unsure && self.moved_before(at, **id).is_some();
            at.is_some_and(|status| status.after(self.action.step()).is_ok()) && !was_moved
        };
        let moving: Vec<u64> = self.sorted.iter().filter(may_move).copied().collect();
        let statements = catalogue.operate(self.action);
        for ids in moving.chunks(statements.len_max()) {
            let value = |bind: Bind| match bind.slot {
                Slot::Error => self.reason.clone().map_or(Value::Null, Value::Text),
                _ => id_value(ids, bind),
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

#[cfg(test)]
#[cfg(feature = "sqlite")]
mod tests {
    use retryjob_core::{Ident, JobSchema, sql::Statement};

    use super::*;
    use crate::{
        kind::Kind as _,
        session::{Done, Row},
        sqlite::InFile,
    };

    /// A table of one job.
    struct OneJob {
        status: Option<Status>,
        /// Where the statement under test leads.
        to: Status,
        moves: usize,
    }

    impl Session for OneJob {
        async fn execute(&mut self, _: &Statement, _: Vec<Value>) -> Result<Done, Fault> {
            self.status = Some(self.to);
            self.moves += 1;
            Ok(Done {
                matched: 1,
                last_id: 0,
            })
        }

        async fn rows(&mut self, _: &Statement, _: Vec<Value>) -> Result<Vec<Row>, Fault> {
            let row = |status: Status| vec![Value::U64(7), Value::U64(status.code().into())];
            Ok(self.status.map(row).into_iter().collect())
        }

        async fn run(&mut self, _: &str) -> Result<(), Fault> {
            Ok(())
        }

        fn fault(error: sqlx::Error) -> Fault {
            Fault::Lost(error)
        }
    }

    /// Runs once, lets the job go on, and runs again as after a COMMIT without
    /// an answer: the second answer, and how often the job was moved.
    async fn twice(action: Action, from: Status, later: Option<Status>) -> (Answer, usize) {
        let schema = JobSchema::new(Ident::new("job"));
        let catalogue = Catalogue::new(&schema, InFile::dialect());
        let mut job = OneJob {
            status: Some(from),
            to: from.after(action.step()).unwrap(),
            moves: 0,
        };
        let mut operate = OperateAll::new(Operate {
            action,
            ids: vec![7],
            reason: None,
        })
        .unwrap();
        let first = operate.run(&mut job, &catalogue, false).await.unwrap();
        assert_eq!(first.answers, [(7, Answer::Done { from })]);
        job.status = later;
        let second = operate.run(&mut job, &catalogue, true).await.unwrap();
        (second.answers[0].1, job.moves)
    }

    #[tokio::test]
    async fn a_requeue_without_an_answer_is_made_once_though_the_job_has_run_since() {
        let from = Status::Dead;
        for later in [
            Some(Status::Pending),
            Some(Status::Running),
            Some(Status::Retry),
            Some(Status::Success),
            None,
        ] {
            let twice = twice(Action::Requeue, from, later).await;
            assert_eq!(twice, (Answer::Done { from }, 1), "{later:?}");
        }
        let again = twice(Action::Requeue, from, Some(from)).await;
        assert_eq!(again, (Answer::Done { from }, 2), "it was not committed");
    }

    #[tokio::test]
    async fn a_hold_without_an_answer_is_not_told_of_a_job_that_runs() {
        let from = Status::Pending;
        let held = twice(Action::Hold, from, Some(Status::Hold)).await;
        assert_eq!(held, (Answer::Done { from }, 1));
        let status = Status::Running;
        let claimed = twice(Action::Hold, from, Some(status)).await;
        assert_eq!(claimed, (Answer::Refused { status }, 1));
        let again = twice(Action::Hold, from, Some(from)).await;
        assert_eq!(again, (Answer::Done { from }, 2));
    }
}
