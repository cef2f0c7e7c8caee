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
        self.has_lease(&finish.lease)
            && self.status == settled.status
            && self.attempt_no == settled.attempt_no
    }

    fn has_lease(&self, lease: &Lease) -> bool {
        self.id == lease.id
            && self.lease_seq == lease.lease_seq
            && self.lease_owner.as_ref() == Some(&lease.owner)
    }

    /// Writes a finish whose lease was checked.
    pub(super) fn settle(&mut self, finish: &Finish, now: DbTime) -> Result<(), IllegalMove> {
        // Under a shard's lease nothing was written yet of the claim.
        if finish.lease.shard.is_some() {
            self.step(&[Move::Claim])?;
            self.lease_seq = finish.lease.lease_seq;
            self.lease_owner = Some(finish.lease.owner.clone());
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
