//! The table of one job type, and what each operation does to it.

use std::{collections::BTreeMap, time::Duration};

use super::{JOB_BYTES_MAX, row::JobRow, shards::Shards};
use crate::{
    error::{Error, ErrorKind, Result},
    key::IdempotencyKey,
    op::{
        claim::{CLAIM_SHARDS_MAX, Claim, ClaimedJob, Lease},
        counts::Counts,
        due::{Head, Lane, LaneHeads},
        enqueue::{Enqueued, NewJob},
        finish::{Finish, shortened},
        operate::{Action, Operate, Operation},
        reap::Lapsed,
        renew::Renew,
        shards::ClaimHeld,
    },
    schema::{Finished, JobSchema},
    state::{Move, Status},
    time::DbTime,
    value::Value,
};

#[derive(Debug)]
pub(super) struct Table {
    pub(super) schema: &'static JobSchema,
    id_max: u64,
    rows: BTreeMap<u64, JobRow>,
    keys: BTreeMap<IdempotencyKey, u64>,
    history: BTreeMap<u64, JobRow>,
    pub(super) shards: Shards,
}

impl Table {
    pub(super) fn new(schema: &'static JobSchema) -> Self {
        Self {
            schema,
            id_max: 0,
            rows: BTreeMap::new(),
            keys: BTreeMap::new(),
            history: BTreeMap::new(),
            shards: Shards::default(),
        }
    }

    pub(super) fn rows(&self) -> Vec<JobRow> {
        self.rows.values().cloned().collect()
    }

    pub(super) fn history(&self) -> Vec<JobRow> {
        self.history.values().cloned().collect()
    }

    /// An id that no row has or had, committed or not.
    pub(super) fn next_id(&mut self) -> u64 {
        self.id_max += 1;
        self.id_max
    }

    pub(super) fn id_of(&self, key: &IdempotencyKey) -> Option<u64> {
        self.keys.get(key).copied()
    }

    pub(super) fn insert(&mut self, row: JobRow) {
        self.keys.insert(row.idempotency_key, row.id);
        self.rows.insert(row.id, row);
    }

    pub(super) fn enqueue(&mut self, jobs: Vec<NewJob>, now: DbTime) -> Result<Vec<Enqueued>> {
        jobs.iter()
            .try_for_each(|job| check_job(self.schema, job))?;
        let enqueued = jobs.into_iter().map(|job| {
            if let Some(id) = self.id_of(&job.idempotency_key) {
                return Enqueued { id, is_new: false };
            }
            let id = self.next_id();
            self.insert(JobRow::new(id, job, now));
            Enqueued { id, is_new: true }
        });
        Ok(enqueued.collect())
    }

    pub(super) fn heads(&self, now: DbTime) -> LaneHeads {
        let mut earliest = BTreeMap::new();
        let waiting = [Status::Pending, Status::Retry];
        for row in self.rows.values() {
            if waiting.contains(&row.status) {
                let head = earliest.entry((row.status, row.shard_id));
                let head = head.or_insert(row.next_attempt_at);
                *head = row.next_attempt_at.min(*head);
            }
        }
        let head = |((status, shard_id), next_attempt_at)| {
            let head = Head {
                shard_id,
                next_attempt_at,
            };
            (status, head)
        };
        LaneHeads::new(now, earliest.into_iter().map(head))
    }

    pub(super) fn claim(&mut self, claim: &Claim, now: DbTime) -> Vec<ClaimedJob> {
        let mut jobs = Vec::new();
        for head in claim.heads.iter().take(CLAIM_SHARDS_MAX) {
            let rest = usize::from(claim.limit).saturating_sub(jobs.len());
            for id in self.pick(*head, claim.lane, rest, now) {
                let row = self.rows.get_mut(&id);
                jobs.extend(row.and_then(|row| take(row, claim, now)));
            }
        }
        jobs
    }

    fn pick(&self, head: Head, lane: Lane, limit: usize, now: DbTime) -> Vec<u64> {
        let attempts_max = self.schema.retry.max_attempts;
        let doubt_until = self.shards.doubt_until(head.shard_id);
        let mut due: Vec<_> = self
            .rows
            .values()
            .filter(|row| row.shard_id == head.shard_id && row.waits_in(lane))
            .filter(|row| lane != Lane::Retry || row.may_run_in_company(attempts_max))
            .filter(|row| lane != Lane::Doubt || Some(row.next_attempt_at) <= doubt_until)
            .filter(|row| (head.next_attempt_at..=now).contains(&row.next_attempt_at))
            .map(|row| (row.next_attempt_at, row.id))
            .collect();
        due.sort_unstable();
        due.into_iter().take(limit).map(|(_, id)| id).collect()
    }

    /// Due jobs of shards that the node holds; nothing is written.
    /// Time until another new job of these shards falls due.
    pub(super) fn next_due(&self, claim: &ClaimHeld, now: DbTime) -> Option<Duration> {
        let is_of = |row: &&JobRow| {
            let mut shards = claim.shards.iter();
            shards.any(|(fence, _)| fence.shard_id == row.shard_id)
        };
        self.rows
            .values()
            .filter(|row| row.waits_in(Lane::Fresh) && row.next_attempt_at > now)
            .filter(is_of)
            .map(|row| row.next_attempt_at.since(now))
            .min()
    }

    pub(super) fn claim_held(&self, claim: &ClaimHeld, now: DbTime) -> Vec<ClaimedJob> {
        let mut jobs = Vec::new();
        for (fence, mark) in &claim.shards {
            if !self.shards.stands(&claim.owner, *fence, now) {
                continue;
            }
            let mut due: Vec<_> = self
                .rows
                .values()
                .filter(|row| row.shard_id == fence.shard_id && row.waits_in(Lane::Fresh))
                .filter(|row| row.next_attempt_at <= now && row.mark() > *mark)
                .collect();
            due.sort_by_key(|row| row.mark());
            let rest = usize::from(claim.limit).saturating_sub(jobs.len());
            jobs.extend(due.into_iter().take(rest).map(|row| {
                let lease = Lease {
                    id: row.id,
                    owner: claim.owner.clone(),
                    lease_seq: row.lease_seq + 1,
                    shard: Some(*fence),
                };
                claimed(row, lease, row.attempt_no.saturating_add(1), now)
            }));
        }
        jobs
    }

    pub(super) fn renew(&mut self, renew: &Renew, now: DbTime) -> Vec<u64> {
        let mut lost = Vec::new();
        for lease in &renew.leases {
            // A shard's lease is kept by `hold_shards`.
            let row = self.live_mut(lease, now).filter(|_| lease.shard.is_none());
            match row {
                Some(row) => row.lease_until = Some(now.plus(renew.lease)),
                None => lost.push(lease.id),
            }
        }
        lost
    }

    fn live_mut(&mut self, lease: &Lease, now: DbTime) -> Option<&mut JobRow> {
        let stands = self.stands(lease, now);
        self.rows.get_mut(&lease.id).filter(|_| stands)
    }

    fn stands(&self, lease: &Lease, now: DbTime) -> bool {
        let Some(row) = self.rows.get(&lease.id) else {
            return false;
        };
        match lease.shard {
            None => row.is_leased(lease) && row.is_live(now),
            Some(fence) => {
                row.waits_as_picked(lease) && self.shards.stands(&lease.owner, fence, now)
            }
        }
    }

    /// Whether this finish can be written or already was.
    pub(super) fn can_finish(&self, finish: &Finish, now: DbTime) -> bool {
        let lease = &finish.lease;
        let row = self.rows.get(&lease.id);
        let is_left = row.is_some_and(|row| row.is_left_by(finish));
        // What another wrote after the shard's lease looks the same.
        let may_be_anothers = finish.is_held_success()
            && !lease
                .shard
                .is_some_and(|fence| self.shards.stands(&lease.owner, fence, now));
        self.stands(lease, now) || (is_left && !may_be_anothers)
    }

    /// Writes a finish; `false` when its lease is lost.
    pub(super) fn finish(&mut self, finish: &Finish, now: DbTime) -> bool {
        if !self.can_finish(finish, now) {
            return false;
        }
        let Some(row) = self.live_mut(&finish.lease, now) else {
            return true;
        };
        let written = row.settle(finish, now).is_ok();
        if row.status == Status::Success {
            self.clear_away(finish.lease.id);
        }
        written
    }

    fn clear_away(&mut self, id: u64) {
        if self.schema.finished == Finished::Keep {
            return;
        }
        let Some(row) = self.rows.remove(&id) else {
            return;
        };
        self.keys.remove(&row.idempotency_key);
        if self.schema.finished == Finished::History {
            self.history.insert(id, row);
        }
    }

    pub(super) fn lapsed(&self, limit: usize, now: DbTime) -> Vec<Lapsed> {
        let mut lapsed: Vec<_> = self
            .rows
            .values()
            .filter(|row| row.has_lapsed(now))
            .collect();
        lapsed.sort_by_key(|row| (row.lease_until, row.id));
        let read = lapsed.into_iter().filter_map(|row| {
            Some(Lapsed {
                lease: Lease {
                    id: row.id,
                    owner: row.lease_owner.clone()?,
                    lease_seq: row.lease_seq,
                    shard: None,
                },
                attempt_no: row.attempt_no,
                age: now.since(row.due_at),
            })
        });
        read.take(limit).collect()
    }

    /// Ends a lapsed attempt, unless the row moved since it was read.
    pub(super) fn take_back(&mut self, finish: &Finish, now: DbTime) -> bool {
        let Some(row) = self.rows.get_mut(&finish.lease.id) else {
            return false;
        };
        if !(row.is_leased(&finish.lease) && row.has_lapsed(now)) {
            return false;
        }
        let written = row.settle(finish, now).is_ok();
        row.lease_owner = None;
        written
    }

    pub(super) fn operate(&mut self, operate: &Operate, id: u64, now: DbTime) -> Operation {
        let Some(row) = self.rows.get_mut(&id) else {
            return Operation::Missing;
        };
        let from = row.status;
        if row.step(&[operate.action.step()]).is_err() {
            return Operation::Refused { status: from };
        }
        row.updated_at = now;
        match operate.action {
            Action::Hold | Action::Cancel => {
                let reason = operate.reason.as_deref().map(shortened);
                row.last_error = reason.or(row.last_error.take());
            }
            Action::Release | Action::Requeue => {
                row.next_attempt_at = now;
                row.due_at = now;
                row.attempt_no = 0;
                row.lease_owner = None;
            }
        }
        Operation::Done { from }
    }

    pub(super) fn counts(&self) -> Counts {
        let mut counts = Counts::default();
        for row in self.rows.values() {
            counts.set(row.status, counts.of(row.status) + 1);
        }
        counts
    }
}

fn take(row: &mut JobRow, claim: &Claim, now: DbTime) -> Option<ClaimedJob> {
    row.step(&[Move::Claim]).ok()?;
    row.attempt_no = row.attempt_no.saturating_add(1);
    row.lease_seq += 1;
    row.lease_owner = Some(claim.owner.clone());
    row.lease_until = Some(now.plus(claim.lease));
    row.updated_at = now;
    let lease = Lease {
        id: row.id,
        owner: claim.owner.clone(),
        lease_seq: row.lease_seq,
        shard: None,
    };
    Some(claimed(row, lease, row.attempt_no, now))
}

fn claimed(row: &JobRow, lease: Lease, attempt_no: u16, now: DbTime) -> ClaimedJob {
    ClaimedJob {
        lease,
        shard_id: row.shard_id,
        attempt_no,
        next_attempt_at: row.next_attempt_at,
        age: now.since(row.due_at),
        lag: now.since(row.next_attempt_at),
        idempotency_key: row.idempotency_key,
        columns: row.columns.clone(),
        payload: row.payload.clone(),
    }
}

/// Refuses what no database would store.
pub(super) fn check_job(schema: &JobSchema, job: &NewJob) -> Result<()> {
    let refuse = |why: String| Err(Error::new(ErrorKind::Encode, why));
    let bytes = job.wire_bytes();
    if bytes > JOB_BYTES_MAX {
        let why = format!("a job has {bytes} bytes, at most {JOB_BYTES_MAX} can be stored");
        return Err(Error::new(ErrorKind::TooLarge, why));
    }
    if job.columns.len() != schema.columns.len() {
        return refuse(format!(
            "the table `{}` has {} columns of its own, found {} values",
            schema.table,
            schema.columns.len(),
            job.columns.len()
        ));
    }
    if job.payload.is_some() != schema.has_payload {
        return refuse("a job has a payload just when its type has one".into());
    }
    for (column, value) in schema.columns.iter().zip(&job.columns) {
        if *value == Value::Null && !column.nullable {
            return refuse(format!("the column `{}` takes no NULL", column.name));
        }
        if let Err(source) = value.check(column.kind) {
            let why = format!("the column `{}` can't hold this value", column.name);
            return Err(Error::with_source(ErrorKind::Encode, why, source));
        }
    }
    Ok(())
}
