//! A session that waits for no answer for ever.

use std::{future::Future, io, time::Duration};

use retryjob_core::{Value, sql::Statement};

use crate::{
    fault::Fault,
    session::{Done, Row, Session},
};

/// The operation's own session, where each answer has to come in this time: a
/// server that was frozen or cut off sends none, and its connection stays open.
///
/// A caller's session has no limit: one that is given up within a statement is
/// only good to be closed, which is the caller's to do.
pub(crate) struct Limited<'a, S> {
    pub(crate) session: &'a mut S,
    pub(crate) limit: Option<Duration>,
}

impl<S: Session> Session for Limited<'_, S> {
    async fn execute(&mut self, statement: &Statement, values: Vec<Value>) -> Result<Done, Fault> {
        within(self.limit, self.session.execute(statement, values)).await
    }

    async fn rows(&mut self, statement: &Statement, values: Vec<Value>) -> Result<Vec<Row>, Fault> {
        within(self.limit, self.session.rows(statement, values)).await
    }

    async fn run(&mut self, sql: &str) -> Result<(), Fault> {
        within(self.limit, self.session.run(sql)).await
    }

    fn fault(error: sqlx::Error) -> Fault {
        S::fault(error)
    }
}

/// What comes in time; else the connection is lost.
pub(crate) async fn within<T>(
    limit: Option<Duration>,
    answer: impl Future<Output = Result<T, Fault>>,
) -> Result<T, Fault> {
    let Some(limit) = limit else {
        return answer.await;
    };
    let answer = tokio::time::timeout(limit, answer).await;
    answer.unwrap_or_else(|_| Err(Fault::Lost(io::Error::from(io::ErrorKind::TimedOut).into())))
}
