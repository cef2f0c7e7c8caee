//! One row, and the conditions that operations put on it.

use crate::{
    key::IdempotencyKey,
    op::{
        claim::{Lease, LeaseOwner},
        due::Lane,
        enqueue::{Due, NewJob},
        finish::Finish,
        shards::Mark,
    },
    state::{IllegalMove, Move, Status},
    time::DbTime,
    value::Value,
};

/// A row of a job table, as a test looks at it.
#[derive(Clone, Debug, PartialEq)]
pub struct JobRow {
    /// The job's id.
    pub id: u64,
    /// The shard it belongs to.
    pub shard_id: u16,
    /// Where it stands.
    pub status: Status,
    /// When its next attempt starts, or its last one was to.
    pub next_attempt_at: DbTime,
    /// When it first fell due.
    pub due_at: DbTime,
    /// Attempts made.
    pub attempt_no: u16,
    /// Who holds the lease, or held it last.
    pub lease_owner: Option<LeaseOwner>,
    /// How often it was claimed.
    pub lease_seq: u64,
    /// Until when the lease is valid; `None` while it has none.
    pub lease_until: Option<DbTime>,
    /// The key that makes it unique.
    pub idempotency_key: IdempotencyKey,
    /// The readable shard key, when the job type keeps it.
    pub shard_key: Option<String>,
    /// The JSON of the fields without a column.
    pub payload: Option<String>,
    /// What went wrong last, or why an operator moved it.
    pub last_error: Option<String>,
    /// When it was enqueued.
    pub created_at: DbTime,
    /// When it last moved.
    pub updated_at: DbTime,
    /// The struct's own columns, in the schema's order.
    pub columns: Vec<Value>,
}

impl JobRow {
    pub(super) fn new(id: u64, job: NewJob, now: DbTime) -> Self {
        let due_at = match job.due {
            Due::Now => now,
            Due::In(span) => now.plus(span),
            Due::At(at) => at,
        };
        Self {
            id,
            shard_id: job.shard_id,
            status: Status::Pending,
            next_attempt_at: due_at.plus(job.spread),
            due_at,
            attempt_no: 0,
            lease_owner: None,
            lease_seq: 0,
            lease_until: None,
            idempotency_key: job.idempotency_key,
            shard_key: job.shard_key,
            payload: job.payload,
            last_error: None,
            created_at: now,
            updated_at: now,
            columns: job.columns,
        }
    }

    /// Moves by the state machine, or not at all.
    pub(super) fn step(&mut self, moves: &[Move]) -> Result<(), IllegalMove> {
        let mut status = self.status;
        for step in moves {
            status = status.after(*step)?;
        }
        self.status = status;
        Ok(())
    }

    pub(super) fn waits_in(&self, lane: Lane) -> bool {
        self.status == lane.status()
    }

    /// Whether its next attempt is not the last one after a crash. A reaper
    /// clears the owner, a finish keeps it.
    pub(super) fn may_run_in_company(&self, attempts_max: u16) -> bool {
        let has_crashed = self.lease_owner.is_none();
        self.attempt_no.saturating_add(has_crashed.into()) < attempts_max
    }

    /// Whether this is the lease that the row is running under.
    pub(super) fn is_leased(&self, lease: &Lease) -> bool {
        self.status == Status::Running && self.has_lease(lease)
    }

    /// Whether a new job still is as it was picked under its shard's lease.
    pub(super) fn waits_as_picked(&self, lease: &Lease) -> bool {
        self.status == Status::Pending && self.lease_seq.checked_add(1) == Some(lease.lease_seq)
    }

    /// Its place in the order of its shard.
    pub(super) fn mark(&self) -> Mark {
        Mark {
            next_attempt_at: self.next_attempt_at,
            id: self.id,
        }
    }

    pub(super) fn is_live(&self, now: DbTime) -> bool {
        self.lease_until.is_some_and(|until| until >= now)
    }

    pub(super) fn has_lapsed(&self, now: DbTime) -> bool {
        self.status == Status::Running && self.lease_until.is_some_and(|until| until < now)
    }

    /// Whether the row is as this finish leaves it, so that repeating it
    /// changes nothing.
    pub(super) fn is_left_by(&self, finish: &Finish) -> bool {
        let settled = finish.settled();
        let owner = match finish.is_held_success() {
            true => None,
            false => Some(&finish.lease.owner),
        };
        self.has_fence(&finish.lease)
            && self.lease_owner.as_ref() == owner
            && self.status == settled.status
            && self.attempt_no == settled.attempt_no
    }

    fn has_lease(&self, lease: &Lease) -> bool {
        self.has_fence(lease) && self.lease_owner.as_ref() == Some(&lease.owner)
    }

    fn has_fence(&self, lease: &Lease) -> bool {
        self.id == lease.id && self.lease_seq == lease.lease_seq
    }

    /// Writes a finish whose lease was checked.
    pub(super) fn settle(&mut self, finish: &Finish, now: DbTime) -> Result<(), IllegalMove> {
        // Under a shard's lease nothing was written yet of the claim.
        if finish.lease.shard.is_some() {
            self.step(&[Move::Claim])?;
            self.lease_seq = finish.lease.lease_seq;
            if !finish.is_held_success() {
                self.lease_owner = Some(finish.lease.owner.clone());
            }
        }
        self.step(&finish.moves())?;
        let settled = finish.settled();
        debug_assert_eq!(self.status, settled.status);
        // A success leaves it: it says when the attempt was to start.
        if self.status != Status::Success {
            self.next_attempt_at = now.plus(settled.delay);
        }
        self.attempt_no = settled.attempt_no;
        self.last_error = settled.error.or(self.last_error.take());
        self.lease_until = None;
        self.updated_at = now;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::{op::finish::Ending, retry::Decision};

    const NOW: DbTime = DbTime::from_us(1_000_000);
    const SECOND: Duration = Duration::from_secs(1);

    fn new(due: Due) -> NewJob {
        NewJob {
            idempotency_key: IdempotencyKey::from_bytes([7; 32]),
            shard_id: 3,
            shard_key: None,
            payload: Some("{}".into()),
            columns: Vec::new(),
            due,
            spread: SECOND,
        }
    }

    fn lease() -> Lease {
        Lease {
            id: 9,
            owner: LeaseOwner::from_row("node:1"),
            lease_seq: 4,
            shard: None,
        }
    }

    /// Running its second attempt, until a second from now.
    fn running() -> JobRow {
        JobRow {
            status: Status::Running,
            attempt_no: 2,
            lease_owner: Some(lease().owner),
            lease_seq: lease().lease_seq,
            lease_until: Some(NOW.plus(SECOND)),
            last_error: Some("before".into()),
            ..JobRow::new(9, new(Due::Now), NOW)
        }
    }

    fn finish(ending: Ending) -> Finish {
        Finish {
            lease: lease(),
            attempt_no: 2,
            ending,
        }
    }

    fn failed(decision: Decision) -> Finish {
        let error = "now".into();
        finish(Ending::Failed { decision, error })
    }

    #[test]
    fn a_new_row_waits_from_its_due_time_on() {
        let later = NOW.plus(SECOND * 60);
        for (due, due_at) in [
            (Due::Now, NOW),
            (Due::In(SECOND * 60), later),
            (Due::At(later), later),
        ] {
            let row = JobRow::new(9, new(due), NOW);
            assert_eq!((row.status, row.attempt_no), (Status::Pending, 0));
            assert_eq!(row.due_at, due_at);
            assert_eq!(row.next_attempt_at, due_at.plus(SECOND));
            assert_eq!((row.created_at, row.updated_at), (NOW, NOW));
        }
    }

    #[test]
    fn a_row_moves_by_all_of_the_steps_or_by_none() {
        let mut row = running();
        assert!(row.step(&[Move::Fail, Move::Release]).is_err());
        assert_eq!(row.status, Status::Running);
        row.step(&[Move::Fail, Move::Retry]).unwrap();
        assert_eq!(row.status, Status::Retry);
        assert!(row.waits_in(Lane::Retry) && row.waits_in(Lane::Alone));
        assert!(!row.waits_in(Lane::Fresh));
        assert!(JobRow::new(1, new(Due::Now), NOW).waits_in(Lane::Fresh));
    }

    #[test]
    fn a_row_is_leased_by_its_id_owner_and_fence_while_it_runs() {
        assert!(running().is_leased(&lease()));
        let (mut id, mut owner, mut fence) = (lease(), lease(), lease());
        id.id += 1;
        owner.owner = LeaseOwner::from_row("node:2");
        fence.lease_seq += 1;
        for other in [id, owner, fence] {
            assert!(!running().is_leased(&other), "{other:?}");
        }
        let mut row = running();
        row.status = Status::Hold;
        assert!(!row.is_leased(&lease()));
    }

    #[test]
    fn a_lease_stands_up_to_its_last_microsecond() {
        let row = running();
        let last = NOW.plus(SECOND);
        assert!(row.is_live(last) && !row.has_lapsed(last));
        let after = last.plus(Duration::from_micros(1));
        assert!(!row.is_live(after) && row.has_lapsed(after));
        let held = JobRow {
            status: Status::Hold,
            ..row.clone()
        };
        assert!(!held.has_lapsed(after));
        let none = JobRow {
            lease_until: None,
            ..row
        };
        assert!(!none.is_live(NOW) && !none.has_lapsed(after));
    }

    #[test]
    fn last_attempt_after_a_crash_may_not_run_in_company() {
        let row = |attempt_no, lease_owner: Option<LeaseOwner>| JobRow {
            attempt_no,
            lease_owner,
            ..running()
        };
        let owner = Some(lease().owner);
        assert!(row(1, None).may_run_in_company(3));
        assert!(!row(2, None).may_run_in_company(3));
        assert!(row(2, owner.clone()).may_run_in_company(3));
        assert!(!row(3, owner).may_run_in_company(3));
        assert!(!row(u16::MAX, None).may_run_in_company(u16::MAX));
    }

    #[test]
    fn success_leaves_the_row_as_it_was_but_for_its_lease() {
        let mut row = running();
        let later = NOW.plus(SECOND * 9);
        let finish = finish(Ending::Success);
        row.settle(&finish, later).unwrap();
        let expected = JobRow {
            status: Status::Success,
            lease_until: None,
            updated_at: later,
            ..running()
        };
        assert_eq!(row, expected);
        assert!(row.is_left_by(&finish));
        assert!(row.settle(&finish, later).is_err());
    }

    #[test]
    fn failure_says_when_it_is_tried_again_and_why() {
        let mut row = running();
        let finish = failed(Decision::Retry(SECOND));
        row.settle(&finish, NOW).unwrap();
        assert_eq!((row.status, row.attempt_no), (Status::Retry, 2));
        assert_eq!(row.next_attempt_at, NOW.plus(SECOND));
        assert_eq!(row.last_error.as_deref(), Some("now"));
        assert!(row.is_left_by(&finish));
        assert!(!row.is_left_by(&failed(Decision::Dead)));
        let earlier = Finish {
            attempt_no: 1,
            ..finish.clone()
        };
        assert!(!row.is_left_by(&earlier));
        let mut of_other = finish;
        of_other.lease.owner = LeaseOwner::from_row("node:2");
        assert!(!row.is_left_by(&of_other));
    }

    #[test]
    fn giving_back_keeps_the_last_error_and_the_attempt() {
        let mut row = running();
        let delay = SECOND * 5;
        row.settle(&finish(Ending::GiveBack { delay }), NOW)
            .unwrap();
        assert_eq!((row.status, row.attempt_no), (Status::Retry, 1));
        assert_eq!(row.next_attempt_at, NOW.plus(delay));
        assert_eq!(row.last_error.as_deref(), Some("before"));
    }
}
