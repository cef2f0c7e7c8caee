//! Drain: runs everything that a test enqueued, without waiting.

use std::{future::Future, time::Duration};

use tokio_util::sync::CancellationToken;

use super::Memory;
use crate::{
    backend::Backend as _,
    error::{Error, ErrorKind, Result},
    handler::{Handler, IntoOutcome, Leased},
    job::RetryJob,
    op::{
        claim::{Claim, ClaimedJob, Node},
        due::Lane,
        finish::{Ending, Finish},
    },
    queue::Queue,
    worker::{Attempted, Summary, attempt},
};

/// Most attempts of one drain: a handler that snoozes for ever ends here.
pub const DRAIN_ATTEMPTS_MAX: u64 = 100_000;

impl<J: RetryJob> Queue<J, Memory> {
    /// Runs every job until none waits, one at a time, oldest first. When
    /// nothing is due, the clock moves on to the next due time.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Config`] after [`DRAIN_ATTEMPTS_MAX`] attempts.
    pub async fn drain<F, Fut>(&self, handler: F) -> Result<Summary>
    where
        F: Fn(Leased<J, Memory>) -> Fut + Send + Sync + 'static,
        Fut: Future<Output: IntoOutcome> + Send + 'static,
    {
        let handler = Handler::new(handler);
        let node = Node::new("drain");
        let mut summary = Summary::default();
        while let Some(job) = self.next_job(&node).await? {
            if summary.attempt_count == DRAIN_ATTEMPTS_MAX {
                let why = format!("jobs still wait after {DRAIN_ATTEMPTS_MAX} attempts");
                return Err(Error::new(ErrorKind::Config, why));
            }
            summary.attempt_count += 1;
            let never = CancellationToken::new();
            let written = match attempt(&handler, self.backend(), job, &never, &never).await {
                Attempted::Finish(finish) => self.write(finish).await?,
                Attempted::FinishedIn => Some(true),
                Attempted::Lost => None,
            };
            match written {
                Some(true) => summary.success_count += 1,
                Some(false) => summary.failure_count += 1,
                None => summary.lost_count += 1,
            }
        }
        Ok(summary)
    }

    /// Whether the finish was a success; `None` when its lease was lost.
    async fn write(&self, finish: Finish) -> Result<Option<bool>> {
        let is_success = finish.ending == Ending::Success;
        let finished = self.backend().finish(vec![finish.clone()]).await?;
        if !finished.lost.is_empty() {
            return Ok(None);
        }
        self.event_sender().finished(&finish);
        Ok(Some(is_success))
    }

    /// Claims the job that is due longest, moving the clock when none is.
    async fn next_job(&self, node: &Node) -> Result<Option<ClaimedJob>> {
        let mut next: Option<(Duration, Lane)> = None;
        // One job at a time is alone.
        for lane in [Lane::Fresh, Lane::Alone] {
            let wait = self.backend().due_heads().await?.of(lane).wait();
            if let Some(wait) = wait
                && next.is_none_or(|(earliest, _)| wait < earliest)
            {
                next = Some((wait, lane));
            }
        }
        let Some((wait, lane)) = next else {
            return Ok(None);
        };
        self.backend().clock().advance(wait);
        let claim = Claim {
            owner: node.lease_owner(),
            lane,
            heads: self
                .backend()
                .due_heads()
                .await?
                .of(lane)
                .due()
                .take(1)
                .collect(),
            limit: 1,
            lease: J::schema().lease,
        };
        let claimed = self.backend().claim(claim).await?.jobs.pop();
        if let Some(job) = &claimed {
            self.event_sender()
                .claimed(job.lease.id, lane.status(), job.attempt_no);
        }
        Ok(claimed)
    }
}
