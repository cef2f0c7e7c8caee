//! Claims and finishes under the leases of shards.

use std::time::Duration;

use retryjob_core::{
    Backend, ErrorKind, JobSchema, Node, Status,
    op::{
        claim::{Claim, ClaimedJob},
        due::{Head, Lane},
        enqueue::{Due, NewJob},
        finish::Finish,
        operate::Action,
        shards::{ClaimHeld, HoldShards, Mark, ReleaseShards, ShardFence, ShardLease},
    },
    retry::Decision,
};

use crate::{
    TestDatabase,
    act::{
        EARLIEST, claim_shard, enqueue, enqueue_one, failed, finish, given_back, ids, operate,
        owner, succeeded,
    },
    jobs::{BACKOFF, HELD, HELD_ARCHIVED, HELD_DELETED, LEASE, jobs, random_job},
};

const MARGIN: Duration = Duration::from_secs(1);

async fn hold(backend: &impl Backend, node: &Node, shard_ids: &[u16]) -> Vec<ShardLease> {
    let hold = HoldShards {
        node: node.name().clone(),
        shard_ids: shard_ids.to_vec(),
        lease: LEASE,
    };
    backend.hold_shards(hold).await.unwrap().held
}

async fn hold_one(backend: &impl Backend, node: &Node, shard_id: u16) -> ShardFence {
    let held = hold(backend, node, &[shard_id]).await;
    held.iter()
        .map(|lease| lease.fence)
        .find(|fence| fence.shard_id == shard_id)
        .unwrap()
}

async fn release(backend: &impl Backend, node: &Node, fences: &[ShardFence]) {
    let release = ReleaseShards {
        node: node.name().clone(),
        fences: fences.to_vec(),
    };
    backend.release_shards(release).await.unwrap();
}

fn claim_of(node: &Node, fence: ShardFence, mark: Mark, limit: u16) -> ClaimHeld {
    ClaimHeld {
        node: node.name().clone(),
        owner: node.shard_owner(),
        shards: vec![(fence, mark)],
        limit,
    }
}

const FIRST: Mark = Mark {
    next_attempt_at: EARLIEST,
    id: 0,
};

async fn claim(backend: &impl Backend, node: &Node, fence: ShardFence) -> Vec<ClaimedJob> {
    let claim = claim_of(node, fence, FIRST, 100);
    backend.claim_held(claim).await.unwrap().jobs
}

/// One job in hand under the lease of shard 0.
async fn in_hand<D: TestDatabase>(
    db: &D,
    schema: &'static JobSchema,
) -> (D::Backend, Node, ShardFence, ClaimedJob) {
    let backend = db.installed(schema).await;
    let node = Node::new("holder");
    let fence = hold_one(&backend, &node, 0).await;
    let id = enqueue_one(&backend, random_job()).await;
    let mut claimed = claim(&backend, &node, fence).await;
    assert_eq!(ids(&claimed), [id]);
    (backend, node, fence, claimed.remove(0))
}

pub async fn a_shard_has_one_holder_and_a_fence_that_grows<D: TestDatabase>(db: D) {
    let backend = db.installed(&HELD).await;
    let [a, b] = ["a", "b"].map(Node::new);
    let of_a = hold(&backend, &a, &[3, 1]).await;
    let shard_ids: Vec<_> = of_a.iter().map(|lease| lease.fence.shard_id).collect();
    assert_eq!(shard_ids, [1, 3]);
    assert!(of_a.iter().all(|lease| lease.doubt_until.is_none()));

    // What is held already is refused, what is free is not.
    let of_b = hold(&backend, &b, &[1, 2, 3]).await;
    assert_eq!(of_b.len(), 1);
    assert_eq!(of_b[0].fence.shard_id, 2);

    // Kept for as long as it is asked for in time, and all of it.
    for _ in 0..3 {
        db.pass(&HELD, LEASE - MARGIN).await;
        assert_eq!(hold(&backend, &a, &[]).await, of_a);
    }
    // Nor does it take what is free and not asked for.
    let of_c = hold(&backend, &Node::new("c"), &[5]).await;
    assert_eq!(of_c.len(), 1);
    // By now the other has lapsed, and is taken with a larger fence.
    let of_a = hold(&backend, &a, &[2]).await;
    assert_eq!(of_a.len(), 3);
    assert!(of_a[1].fence.fence > of_b[0].fence.fence);
    assert_eq!(hold(&backend, &b, &[2]).await, []);
}

pub async fn a_lapse_leaves_jobs_in_doubt_and_a_release_does_not<D: TestDatabase>(db: D) {
    let backend = db.installed(&HELD).await;
    let [a, b, c] = ["a", "b", "c"].map(Node::new);
    let of_a = hold(&backend, &a, &[0, 1]).await;
    let wrong = ShardFence {
        fence: of_a[1].fence.fence + 1,
        ..of_a[1].fence
    };
    release(&backend, &a, &[of_a[0].fence, wrong]).await;
    // Another's is not to be released either.
    release(&backend, &b, &[of_a[1].fence]).await;
    let of_b = hold(&backend, &b, &[0, 1]).await;
    assert_eq!(of_b.len(), 1, "the other stands");
    assert_eq!(of_b[0].doubt_until, None);
    assert!(of_b[0].fence.fence > of_a[0].fence.fence);

    db.pass(&HELD, LEASE + MARGIN).await;
    let of_c = hold(&backend, &c, &[0, 1]).await;
    assert_eq!(of_c.len(), 2);
    assert!(of_c.iter().all(|lease| lease.doubt_until.is_some()));
    let id = enqueue_one(&backend, random_job()).await;
    // A lapsed lease is not released any more.
    db.pass(&HELD, LEASE + MARGIN).await;
    release(&backend, &c, &[of_c[0].fence]).await;
    let of_a = hold(&backend, &a, &[0]).await;
    let due_while_held = db.row(&HELD, id).await.next_attempt_at;
    assert!(of_a[0].doubt_until > Some(due_while_held));
}

pub async fn claim_under_a_shards_lease_writes_nothing<D: TestDatabase>(db: D) {
    let backend = db.installed(&HELD).await;
    let node = Node::new("holder");
    let fence = hold_one(&backend, &node, 0).await;
    let stored = enqueue(&backend, jobs(0..5)).await;
    let later = NewJob {
        due: Due::In(LEASE),
        ..random_job()
    };
    let elsewhere = NewJob {
        shard_id: 1,
        ..random_job()
    };
    enqueue(&backend, vec![later, elsewhere]).await;
    let before = db.rows(&HELD).await;

    let limited = claim_of(&node, fence, FIRST, 2);
    let first = backend.claim_held(limited).await.unwrap().jobs;
    assert_eq!(ids(&first), stored[..2]);
    let mark = Mark {
        next_attempt_at: first[1].next_attempt_at,
        id: first[1].lease.id,
    };
    let rest = claim_of(&node, fence, mark, 100);
    let rest = backend.claim_held(rest).await.unwrap().jobs;
    assert_eq!(ids(&rest), stored[2..]);
    assert_eq!(db.rows(&HELD).await, before);
    for (job, row) in first.iter().chain(&rest).zip(&before) {
        assert_eq!(job.lease.shard, Some(fence));
        assert_eq!((job.attempt_no, job.lease.lease_seq), (1, 1));
        assert_eq!(job.next_attempt_at, row.next_attempt_at);
        assert_eq!(job.payload, row.payload);
    }
}

/// A job in hand is due all the time; a node sleeps until the next one is.
pub async fn claim_under_a_shards_lease_tells_when_the_next_job_is_due<D: TestDatabase>(db: D) {
    let (backend, node, fence, job) = in_hand(&db, &HELD).await;
    let wait = async || {
        let claim = claim_of(&node, fence, FIRST, 100);
        backend.claim_held(claim).await.unwrap().wait
    };
    assert_eq!(wait().await, None);
    let after = |delay, shard_id| NewJob {
        due: Due::In(delay),
        shard_id,
        ..random_job()
    };
    let soon = MARGIN * 60;
    enqueue(
        &backend,
        vec![after(soon, 1), after(soon * 3, 0), after(soon * 2, 0)],
    )
    .await;
    let is_about = |found: Option<Duration>, expected: Duration| {
        let found = found.unwrap();
        assert!(
            found <= expected && found > expected - soon / 2,
            "{found:?}"
        );
    };
    is_about(wait().await, soon * 2);
    // Retries are no business of the shard's lease.
    assert!(finish(&backend, failed(&job, Decision::Retry(soon))).await);
    is_about(wait().await, soon * 2);
    // Where there are as many as asked for, nothing is known of the next.
    enqueue_one(&backend, random_job()).await;
    let full = claim_of(&node, fence, FIRST, 1);
    assert_eq!(backend.claim_held(full).await.unwrap().wait, None);
}

pub async fn claim_without_the_shards_lease_gives_nothing<D: TestDatabase>(db: D) {
    let (backend, node, fence, job) = in_hand(&db, &HELD).await;
    let other = Node::new("other");
    let older = ShardFence {
        fence: fence.fence - 1,
        ..fence
    };
    let elsewhere = ShardFence {
        shard_id: 1,
        ..fence
    };
    let in_other_shard = NewJob {
        shard_id: 1,
        ..random_job()
    };
    enqueue_one(&backend, in_other_shard).await;
    // The other holds the same shard of another job type.
    let archived = backend.for_schema(&HELD_ARCHIVED);
    archived.install().await.unwrap();
    assert_eq!(hold_one(&archived, &other, 0).await, fence);
    assert_eq!(claim(&backend, &other, fence).await, []);
    assert_eq!(claim(&backend, &node, older).await, []);
    assert_eq!(claim(&backend, &node, elsewhere).await, []);
    assert_eq!(ids(&claim(&backend, &node, fence).await), [job.lease.id]);
    db.pass(&HELD, LEASE + MARGIN).await;
    assert_eq!(claim(&backend, &node, fence).await, []);
}

pub async fn finish_under_a_shards_lease_claims_and_finishes_at_once<D: TestDatabase>(db: D) {
    type Case = fn(&ClaimedJob) -> Finish;
    let cases: [(Case, Status, u16); 5] = [
        (succeeded, Status::Success, 1),
        (
            |job| failed(job, Decision::Retry(BACKOFF)),
            Status::Retry,
            1,
        ),
        (|job| failed(job, Decision::Dead), Status::Dead, 1),
        (|job| failed(job, Decision::Hold), Status::Hold, 1),
        (|job| given_back(job, BACKOFF), Status::Pending, 0),
    ];
    let backend = db.installed(&HELD).await;
    let node = Node::new("holder");
    let fence = hold_one(&backend, &node, 0).await;
    enqueue(&backend, jobs(0..cases.len() as u64)).await;
    let claimed = claim(&backend, &node, fence).await;
    let ended = claimed.iter().zip(cases).map(|(job, (case, ..))| case(job));
    let finishes: Vec<_> = ended.collect();
    for _ in 0..2 {
        // Written once, and no error the second time.
        let finished = backend.finish(finishes.clone()).await.unwrap();
        assert_eq!(finished.lost, [0; 0]);
    }
    for (job, (_, status, attempt_no)) in claimed.iter().zip(cases) {
        let row = db.row(&HELD, job.lease.id).await;
        assert_eq!((row.status, row.attempt_no), (status, attempt_no));
        assert_eq!(row.lease_seq, job.lease.lease_seq);
        let owner = (status != Status::Success).then(|| node.shard_owner());
        assert_eq!(row.lease_owner, owner);
        assert_eq!(row.lease_until, None);
    }
    assert_eq!(claim_shard(&backend, Lane::Retry, 0, 9).await, []);
    db.pass(&HELD, BACKOFF).await;
    let again = claim_shard(&backend, Lane::Retry, 0, 9).await;
    assert_eq!(ids(&again), [claimed[1].lease.id]);
    assert_eq!((again[0].attempt_no, again[0].lease.lease_seq), (2, 2));
}

pub async fn finish_under_a_shards_lease_that_is_lost_changes_nothing<D: TestDatabase>(db: D) {
    for schema in [&HELD, &HELD_DELETED, &HELD_ARCHIVED] {
        let (backend, node, fence, job) = in_hand(&db, schema).await;
        let before = db.rows(schema).await;
        let older = ShardFence {
            fence: fence.fence - 1,
            ..fence
        };
        let mut of_older = succeeded(&job);
        of_older.lease.shard = Some(older);
        let mut of_other = succeeded(&job);
        of_other.lease.owner = Node::new("other").shard_owner();
        for late in [of_older, of_other] {
            assert!(!finish(&backend, late).await);
        }
        assert_eq!(db.rows(schema).await, before);

        // Lapsed, though nobody else holds the shard yet.
        db.pass(schema, LEASE + MARGIN).await;
        let before = db.rows(schema).await;
        assert!(!finish(&backend, succeeded(&job)).await);
        assert!(!finish(&backend, failed(&job, Decision::Dead)).await);
        let mut tx = backend.begin().await.unwrap();
        let late = backend.finish_in(&mut tx, succeeded(&job)).await;
        assert_eq!(late.unwrap_err().kind(), ErrorKind::LeaseLost);
        backend.rollback(tx).await.unwrap();
        assert_eq!(db.rows(schema).await, before);

        // Held by the same node again: another lease.
        assert!(hold_one(&backend, &node, 0).await.fence > fence.fence);
        assert!(!finish(&backend, succeeded(&job)).await);
        assert_eq!(db.rows(schema).await, before);
    }
}

/// A row that was claimed and given back has the status that was read, and
/// another fence.
pub async fn finish_under_a_shards_lease_compares_the_rows_fence<D: TestDatabase>(db: D) {
    for schema in [&HELD, &HELD_DELETED] {
        let (backend, node, fence, job) = in_hand(&db, schema).await;
        let claimed = claim_shard(&backend, Lane::Fresh, 0, 9).await.remove(0);
        assert!(!finish(&backend, succeeded(&job)).await, "it runs");
        assert!(finish(&backend, given_back(&claimed, Duration::ZERO)).await);
        let before = db.rows(schema).await;
        assert!(!finish(&backend, succeeded(&job)).await);
        assert!(!finish(&backend, failed(&job, Decision::Dead)).await);
        assert_eq!(db.rows(schema).await, before);
        let again = claim(&backend, &node, fence).await.remove(0);
        assert_eq!(again.lease.lease_seq, job.lease.lease_seq + 1);
        assert!(finish(&backend, succeeded(&again)).await);
    }
}

pub async fn success_under_a_shards_lease_moves_or_deletes_the_row<D: TestDatabase>(db: D) {
    let (backend, _, _, job) = in_hand(&db, &HELD_DELETED).await;
    let other = enqueue_one(&backend, random_job()).await;
    assert!(finish(&backend, succeeded(&job)).await);
    let left: Vec<_> = db.rows(&HELD_DELETED).await;
    assert_eq!(left.iter().map(|row| row.id).collect::<Vec<_>>(), [other]);

    let (backend, _, _, job) = in_hand(&db, &HELD_ARCHIVED).await;
    assert!(finish(&backend, succeeded(&job)).await);
    assert_eq!(db.rows(&HELD_ARCHIVED).await, []);
    let moved = db.history(&HELD_ARCHIVED).await;
    assert_eq!(moved.len(), 1);
    assert_eq!((moved[0].status, moved[0].attempt_no), (Status::Success, 1));
    assert_eq!(moved[0].lease_seq, 1);
}

pub async fn finish_in_under_a_shards_lease_commits_with_the_callers_writes<D: TestDatabase>(
    db: D,
) {
    let (backend, _, _, job) = in_hand(&db, &HELD).await;
    let mut undone = backend.begin().await.unwrap();
    db.note(&mut undone).await;
    let written = backend.finish_in(&mut undone, succeeded(&job)).await;
    written.unwrap();
    backend.rollback(undone).await.unwrap();
    let row = db.row(&HELD, job.lease.id).await;
    assert_eq!((row.status, db.notes().await), (Status::Pending, 0));

    let mut tx = backend.begin().await.unwrap();
    db.note(&mut tx).await;
    backend.finish_in(&mut tx, succeeded(&job)).await.unwrap();
    backend.commit(tx).await.unwrap();
    let row = db.row(&HELD, job.lease.id).await;
    assert_eq!((row.status, db.notes().await), (Status::Success, 1));
}

/// The row of a job in hand looks as if it waited, so an operator may move it.
pub async fn an_operators_hold_or_cancel_is_honoured_at_finish<D: TestDatabase>(db: D) {
    for (schema, action, status) in [
        (&HELD, Action::Hold, Status::Hold),
        (&HELD_DELETED, Action::Hold, Status::Hold),
        (&HELD, Action::Cancel, Status::Dead),
    ] {
        let (backend, node, fence, job) = in_hand(&db, schema).await;
        operate(&backend, action, job.lease.id).await;
        let before = db.rows(schema).await;
        let retry: fn(&ClaimedJob) -> Finish = |job| failed(job, Decision::Retry(BACKOFF));
        for late in [succeeded, retry] {
            assert!(!finish(&backend, late(&job)).await, "{action:?}");
        }
        assert_eq!(db.rows(schema).await, before);
        assert_eq!(db.row(schema, job.lease.id).await.status, status);
        release(&backend, &node, &[fence]).await;
    }
}

/// Whoever holds the shard next leases them one by one, which counts.
pub async fn jobs_in_doubt_are_claimed_by_their_rows<D: TestDatabase>(db: D) {
    let (backend, _, _, job) = in_hand(&db, &HELD).await;
    assert_eq!(
        claim_shard(&backend, Lane::Doubt, 0, 9).await,
        [],
        "nothing is in doubt while nothing has lapsed"
    );
    db.pass(&HELD, LEASE + MARGIN).await;
    let next = Node::new("next");
    let lease = hold(&backend, &next, &[0]).await[0];
    let due = db.row(&HELD, job.lease.id).await.next_attempt_at;
    assert!(lease.doubt_until >= Some(due));
    let fresh = enqueue_one(&backend, random_job()).await;

    let doubtful = claim_shard(&backend, Lane::Doubt, 0, 9).await;
    assert_eq!(ids(&doubtful), [job.lease.id]);
    assert_eq!((doubtful[0].attempt_no, doubtful[0].lease.shard), (1, None));
    let row = db.row(&HELD, job.lease.id).await;
    assert_eq!((row.status, row.attempt_no), (Status::Running, 1));
    // The former's finish comes too late, and the latter's does not.
    assert!(!finish(&backend, succeeded(&job)).await);
    assert!(finish(&backend, succeeded(&doubtful[0])).await);
    assert_eq!(ids(&claim(&backend, &next, lease.fence).await), [fresh]);
}

pub async fn claim_of_jobs_in_doubt_looks_at_nothing_before_the_head<D: TestDatabase>(db: D) {
    let (backend, _, _, first) = in_hand(&db, &HELD).await;
    db.pass(&HELD, MARGIN).await;
    let second = enqueue_one(&backend, random_job()).await;
    db.pass(&HELD, LEASE + MARGIN).await;
    hold_one(&backend, &Node::new("next"), 0).await;
    let head = Head {
        shard_id: 0,
        next_attempt_at: db.row(&HELD, second).await.next_attempt_at,
    };
    let claim = Claim {
        owner: owner(),
        lane: Lane::Doubt,
        heads: vec![head],
        limit: 9,
        lease: LEASE,
    };
    let claimed = backend.claim(claim).await.unwrap().jobs;
    assert_eq!(ids(&claimed), [second]);
    let rest = claim_shard(&backend, Lane::Doubt, 0, 9).await;
    assert_eq!(ids(&rest), [first.lease.id]);
}

pub async fn finishes_of_both_kinds_of_lease_are_written_together<D: TestDatabase>(db: D) {
    let (backend, node, fence, by_shard) = in_hand(&db, &HELD).await;
    let retry = failed(&by_shard, Decision::Retry(Duration::ZERO));
    assert!(finish(&backend, retry).await);
    let by_row = claim_shard(&backend, Lane::Retry, 0, 9).await.remove(0);
    let id = enqueue_one(&backend, random_job()).await;
    let by_shard = claim(&backend, &node, fence).await.remove(0);
    let mut late = by_shard.clone();
    late.lease.id = enqueue_one(&backend, random_job()).await;
    late.lease.shard = Some(ShardFence {
        shard_id: 9,
        ..fence
    });
    let finishes = vec![
        succeeded(&by_row),
        succeeded(&late),
        failed(&by_shard, Decision::Dead),
    ];
    let finished = backend.finish(finishes).await.unwrap();
    assert_eq!(finished.lost, [late.lease.id]);
    let status = async |id| db.row(&HELD, id).await.status;
    assert_eq!(status(by_row.lease.id).await, Status::Success);
    assert_eq!(status(id).await, Status::Dead);
    assert_eq!(status(late.lease.id).await, Status::Pending);
}
