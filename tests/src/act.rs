//! What tests do to a backend, in few words.

use std::{collections::BTreeSet, time::Duration};

use retryjob_core::{
    Backend, Node, Status,
    op::{
        claim::{Claim, ClaimedJob, LeaseOwner},
        due::{Head, Lane},
        enqueue::NewJob,
        finish::{Ending, Finish},
        operate::{Action, Operate, Operation},
        reap::Reap,
    },
    retry::Decision,
    time::DbTime,
};

use crate::jobs::{LEASE, random_job};

/// No ids.
pub const NONE: [u64; 0] = [];

/// Before every job.
pub const EARLIEST: DbTime = DbTime::from_us(0);

/// Stores jobs that have to be new.
pub async fn enqueue(backend: &impl Backend, jobs: Vec<NewJob>) -> Vec<u64> {
    let enqueued = backend.enqueue(jobs).await.unwrap();
    assert!(enqueued.iter().all(|enqueued| enqueued.is_new));
    enqueued.into_iter().map(|enqueued| enqueued.id).collect()
}

/// Stores one job that has to be new.
pub async fn enqueue_one(backend: &impl Backend, job: NewJob) -> u64 {
    enqueue(backend, vec![job]).await[0]
}

/// An owner of a node of its own.
pub fn owner() -> LeaseOwner {
    Node::new("test").lease_owner()
}

/// Claims from all shards with due jobs of a lane, as a worker does.
pub async fn claim_as(
    backend: &impl Backend,
    owner: LeaseOwner,
    lane: Lane,
    limit: u16,
) -> Vec<ClaimedJob> {
    let heads = backend.due_heads().await.unwrap().of(lane).due().collect();
    let claim = Claim {
        owner,
        lane,
        heads,
        limit,
        lease: LEASE,
    };
    backend.claim(claim).await.unwrap().jobs
}

/// Claims up to 100 due jobs of a lane.
pub async fn claim(backend: &impl Backend, lane: Lane) -> Vec<ClaimedJob> {
    claim_as(backend, owner(), lane, 100).await
}

/// Claims up to `limit` jobs of a lane and one shard.
pub async fn claim_shard(
    backend: &impl Backend,
    lane: Lane,
    shard_id: u16,
    limit: u16,
) -> Vec<ClaimedJob> {
    let head = Head {
        shard_id,
        next_attempt_at: EARLIEST,
    };
    let claim = Claim {
        owner: owner(),
        lane,
        heads: vec![head],
        limit,
        lease: LEASE,
    };
    backend.claim(claim).await.unwrap().jobs
}

/// Stores a job and claims it.
pub async fn running(backend: &impl Backend, job: NewJob) -> ClaimedJob {
    let id = enqueue_one(backend, job).await;
    let mut claimed = claim(backend, Lane::Fresh).await;
    assert_eq!(ids(&claimed), [id], "only the job under test is due");
    claimed.remove(0)
}

/// Stores jobs that wait in this lane; nothing else may be due.
pub async fn waiting(backend: &impl Backend, lane: Lane, jobs: Vec<NewJob>) -> Vec<u64> {
    let stored = enqueue(backend, jobs).await;
    if lane != Lane::Fresh {
        let claimed = claim(backend, Lane::Fresh).await;
        assert_eq!(id_set(&claimed), stored.iter().copied().collect());
        for job in &claimed {
            let retry = failed(job, Decision::Retry(Duration::ZERO));
            assert!(finish(backend, retry).await);
        }
    }
    stored
}

pub fn ids(jobs: &[ClaimedJob]) -> Vec<u64> {
    jobs.iter().map(|job| job.lease.id).collect()
}

pub fn id_set(jobs: &[ClaimedJob]) -> BTreeSet<u64> {
    jobs.iter().map(|job| job.lease.id).collect()
}

pub fn ended(job: &ClaimedJob, ending: Ending) -> Finish {
    Finish {
        lease: job.lease.clone(),
        attempt_no: job.attempt_no,
        ending,
    }
}

pub fn succeeded(job: &ClaimedJob) -> Finish {
    ended(job, Ending::Success)
}

pub fn failed(job: &ClaimedJob, decision: Decision) -> Finish {
    let error = "it failed".into();
    ended(job, Ending::Failed { decision, error })
}

pub fn given_back(job: &ClaimedJob, delay: Duration) -> Finish {
    ended(job, Ending::GiveBack { delay })
}

/// Writes one finish, and says whether its lease stood.
pub async fn finish(backend: &impl Backend, finish: Finish) -> bool {
    let id = finish.lease.id;
    let lost = backend.finish(vec![finish]).await.unwrap().lost;
    assert!(lost.is_empty() || lost == [id]);
    lost.is_empty()
}

pub async fn operate(backend: &impl Backend, action: Action, id: u64) -> Operation {
    let operate = Operate {
        action,
        ids: vec![id],
        reason: None,
    };
    let answers = backend.operate(operate).await.unwrap().answers;
    assert_eq!(answers.len(), 1);
    assert_eq!(answers[0].0, id);
    answers[0].1
}

pub const fn reap_of(limit: u16) -> Reap {
    Reap { limit }
}

/// A new job in this status, on a shard where no other job is due.
pub async fn put_in(backend: &impl Backend, status: Status, shard_id: u16) -> u64 {
    let new = NewJob {
        shard_id,
        ..random_job()
    };
    let id = enqueue_one(backend, new).await;
    if status == Status::Pending {
        return id;
    }
    if status == Status::Hold {
        operate(backend, Action::Hold, id).await;
        return id;
    }
    let claimed = claim_shard(backend, Lane::Fresh, shard_id, 1).await;
    assert_eq!(ids(&claimed), [id]);
    let outcome = match status {
        Status::Success => succeeded(&claimed[0]),
        Status::Dead => failed(&claimed[0], Decision::Dead),
        Status::Retry => failed(&claimed[0], Decision::Retry(Duration::ZERO)),
        Status::Failed => failed(&claimed[0], Decision::Manual),
        Status::Running | Status::Pending | Status::Hold => return id,
    };
    assert!(finish(backend, outcome).await);
    id
}
