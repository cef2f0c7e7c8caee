//! A backend whose calls are recorded.

use retryjob_core::{
    Backend, ErrorKind, JobSchema, Lease, Result, ShardUse,
    op::{
        claim::{Claim, Claimed},
        counts::Counts,
        doctor::Report,
        due::LaneHeads,
        enqueue::{Enqueued, NewJob},
        finish::{Finish, Finished},
        nodes::{Heartbeat, Leave, Members},
        operate::{Operate, Operated, Operation},
        reap::{Reap, Reaped},
        renew::{Renew, Renewed},
        shards::{ClaimHeld, ClaimedHeld, HoldShards, ReleaseShards, ShardLeases},
    },
};

use super::record::{Answer, Call, Ended, Event, LeaseOf, Recorder};

/// Passes every call on, and records those that change jobs.
#[derive(Clone, Debug)]
pub struct Recorded<B> {
    inner: B,
    recorder: Recorder,
}

impl<B: Backend> Recorded<B> {
    #[must_use]
    pub const fn new(inner: B, recorder: Recorder) -> Self {
        Self { inner, recorder }
    }

    /// The backend below.
    #[must_use]
    pub const fn inner(&self) -> &B {
        &self.inner
    }

    /// Where handlers note what they do.
    #[must_use]
    pub const fn recorder(&self) -> &Recorder {
        &self.recorder
    }

    async fn record<T>(
        &self,
        call: Call,
        run: impl Future<Output = Result<T>> + Send,
        answer: impl FnOnce(&T) -> Answer + Send,
    ) -> Result<T> {
        let open = self.recorder.invoke(call);
        let result = run.await;
        open.end(match &result {
            Ok(answered) => Event::Ok(answer(answered)),
            Err(error) if error.kind() == ErrorKind::Transient => Event::Unknown(error.to_string()),
            Err(error) => Event::Fail(error.to_string()),
        });
        result
    }
}

const fn lease_of(lease: &Lease) -> LeaseOf {
    LeaseOf {
        id: lease.id,
        lease_seq: lease.lease_seq,
    }
}

fn enqueue_call(jobs: &[NewJob]) -> Call {
    let keys = jobs.iter().map(|job| job.idempotency_key.to_string());
    Call::Enqueue {
        keys: keys.collect(),
    }
}

fn enqueued(answers: &[Enqueued]) -> Answer {
    let answers = answers.iter().map(|answer| (answer.id, answer.is_new));
    Answer::Enqueued(answers.collect())
}

fn leases<'a>(finishes: impl IntoIterator<Item = &'a Finish>) -> Vec<LeaseOf> {
    let leases = finishes.into_iter().map(|finish| lease_of(&finish.lease));
    leases.collect()
}

impl<B: Backend> Backend for Recorded<B> {
    type Connection = B::Connection;
    type Tx = B::Tx;
    const KEEPS_IN_THREAD: bool = B::KEEPS_IN_THREAD;
    const NAME: &'static str = B::NAME;
    const SHARDS: ShardUse = B::SHARDS;

    async fn connect(url: &str, schema: &'static JobSchema) -> Result<Self> {
        let inner = B::connect(url, schema).await?;
        Ok(Self::new(inner, Recorder::in_memory()))
    }

    fn for_schema(&self, schema: &'static JobSchema) -> Self {
        Self::new(self.inner.for_schema(schema), self.recorder.clone())
    }

    async fn reconnect(&self) -> Result<Self> {
        let inner = self.inner.reconnect().await?;
        Ok(Self::new(inner, self.recorder.clone()))
    }

    fn schema(&self) -> &'static JobSchema {
        self.inner.schema()
    }

    async fn install(&self) -> Result<()> {
        self.inner.install().await
    }

    async fn enqueue(&self, jobs: Vec<NewJob>) -> Result<Vec<Enqueued>> {
        let call = enqueue_call(&jobs);
        let answer = |answers: &Vec<Enqueued>| enqueued(answers);
        self.record(call, self.inner.enqueue(jobs), answer).await
    }

    /// Not recorded: whether it counts is known to the caller, who commits.
    async fn enqueue_in(
        &self,
        connection: &mut Self::Connection,
        jobs: Vec<NewJob>,
    ) -> Result<Vec<Enqueued>> {
        self.inner.enqueue_in(connection, jobs).await
    }

    async fn finish_in(&self, connection: &mut Self::Connection, finish: Finish) -> Result<()> {
        let lease = lease_of(&finish.lease);
        let run = self.inner.finish_in(connection, finish);
        let call = Call::FinishIn { lease };
        self.record(call, run, |()| Answer::FinishedIn).await
    }

    async fn due_heads(&self) -> Result<LaneHeads> {
        self.inner.due_heads().await
    }

    async fn claim(&self, claim: Claim) -> Result<Claimed> {
        let call = Call::Claim {
            owner: claim.owner.as_str().to_owned(),
            shards: claim.heads.iter().map(|head| head.shard_id).collect(),
        };
        let answer = |claimed: &Claimed| {
            let leases = claimed.jobs.iter().map(|job| lease_of(&job.lease));
            Answer::Claimed(leases.collect())
        };
        self.record(call, self.inner.claim(claim), answer).await
    }

    async fn renew(&self, renew: Renew) -> Result<Renewed> {
        let leases = renew.leases.iter().map(lease_of).collect();
        let answer = |renewed: &Renewed| Answer::Renewed {
            lost: renewed.lost.clone(),
        };
        self.record(Call::Renew { leases }, self.inner.renew(renew), answer)
            .await
    }

    async fn finish(&self, finishes: Vec<Finish>) -> Result<Finished> {
        let ended = |finish: &Finish| Ended {
            lease: lease_of(&finish.lease),
            status: finish.settled().status.code(),
        };
        let call = Call::Finish {
            finishes: finishes.iter().map(ended).collect(),
        };
        let answer = |finished: &Finished| Answer::Finished {
            lost: finished.lost.clone(),
        };
        self.record(call, self.inner.finish(finishes), answer).await
    }

    async fn reap(&self, reap: Reap) -> Result<Reaped> {
        let answer = |reaped: &Reaped| Answer::Reaped(leases(&reaped.finishes));
        self.record(Call::Reap, self.inner.reap(reap), answer).await
    }

    async fn operate(&self, operate: Operate) -> Result<Operated> {
        let call = Call::Operate {
            action: format!("{:?}", operate.action),
            ids: operate.ids.clone(),
        };
        let answer = |operated: &Operated| {
            let done = |(id, operation): &(u64, Operation)| {
                matches!(operation, Operation::Done { .. }).then_some(*id)
            };
            Answer::Operated {
                done: operated.answers.iter().filter_map(done).collect(),
            }
        };
        self.record(call, self.inner.operate(operate), answer).await
    }

    async fn counts(&self) -> Result<Counts> {
        self.inner.counts().await
    }

    async fn has_open(&self) -> Result<bool> {
        self.inner.has_open().await
    }

    async fn heartbeat(&self, heartbeat: Heartbeat) -> Result<Members> {
        self.inner.heartbeat(heartbeat).await
    }

    async fn leave(&self, leave: Leave) -> Result<()> {
        self.inner.leave(leave).await
    }

    async fn hold_shards(&self, hold: HoldShards) -> Result<ShardLeases> {
        self.inner.hold_shards(hold).await
    }

    async fn release_shards(&self, release: ReleaseShards) -> Result<()> {
        self.inner.release_shards(release).await
    }

    async fn claim_held(&self, claim: ClaimHeld) -> Result<ClaimedHeld> {
        self.inner.claim_held(claim).await
    }

    async fn doctor(&self) -> Result<Report> {
        self.inner.doctor().await
    }

    async fn begin(&self) -> Result<Self::Tx> {
        self.inner.begin().await
    }

    async fn commit(&self, tx: Self::Tx) -> Result<()> {
        self.inner.commit(tx).await
    }

    async fn rollback(&self, tx: Self::Tx) -> Result<()> {
        self.inner.rollback(tx).await
    }

    async fn close(&self) {
        self.inner.close().await;
    }
}
