//! Enqueue.

use std::{
    collections::{HashMap, HashSet, VecDeque},
    time::Duration,
};

use retryjob_core::{
    Error, ErrorKind, IdempotencyKey, JobSchema, Result, Value,
    op::enqueue::{Due, Enqueued, NewJob},
    sql::{Bind, Catalogue, Slot, Stepped},
    time::span_us,
};

use super::{Operation, entry, read_list, unbound};
use crate::{
    fault::Fault,
    session::{Fields, Session},
};

/// Bytes of a packet that are left for what is around the rows.
const HEADROOM_BYTES: usize = 1024;

/// Most times in a row that an INSERT is refused for a key which is then not
/// found: each time its row was removed in between.
const CONFLICTS_MAX: u32 = 8;

/// Refuses a job that no statement can carry.
pub(crate) fn check_bytes(schema: &JobSchema, jobs: &[NewJob], bytes_max: usize) -> Result<()> {
    let room = bytes_max.saturating_sub(HEADROOM_BYTES);
    let Some(job) = jobs.iter().find(|job| job.wire_bytes() > room) else {
        return Ok(());
    };
    Err(Error::new(
        ErrorKind::TooLarge,
        format!(
            "a job for `{}` takes about {} bytes and the database accepts {room} in one statement; \
             keep large data elsewhere and its address in the job",
            schema.table,
            job.wire_bytes()
        ),
    ))
}

/// Stores jobs inside a transaction, all or none.
pub(crate) struct EnqueueAll<'a> {
    jobs: &'a [NewJob],
    bytes_max: usize,
    /// Keys whose row an earlier run made, for when its COMMIT got no answer.
    made: HashSet<IdempotencyKey>,
    run_count: u32,
}

impl<'a> EnqueueAll<'a> {
    pub(crate) fn new(jobs: &'a [NewJob], bytes_max: usize) -> Self {
        Self {
            jobs,
            bytes_max,
            made: HashSet::new(),
            run_count: 0,
        }
    }
}

impl Operation for EnqueueAll<'_> {
    type Answer = Vec<Enqueued>;
    const IS_TRANSACTION: bool = true;

    async fn run<S: Session>(
        &mut self,
        session: &mut S,
        catalogue: &Catalogue,
        is_unsure: bool,
    ) -> Result<Vec<Enqueued>, Fault> {
        let mut known = HashMap::new();
        let mut waiting = distinct(self.jobs);
        // Ids follow the order of the call, and callers with the same keys in
        // other orders meet crosswise. Once that has been a deadlock, all take
        // the keys in one order: they could go on to collide otherwise.
        if self.run_count > 0 {
            waiting
                .make_contiguous()
                .sort_by_key(|job| job.idempotency_key);
        }
        self.run_count += 1;
        let mut conflicts = 0;
        while !waiting.is_empty() {
            let len = rows(&mut waiting, &catalogue.insert, self.bytes_max);
            let jobs: Vec<&NewJob> = waiting.drain(..len).collect();
            match insert(session, catalogue, &jobs).await {
                Ok(ids) => {
                    conflicts = 0;
                    for (key, id) in ids {
                        known.insert(key, Enqueued { id, is_new: true });
                    }
                }
                Err(Fault::Duplicate(source)) => {
                    let there = find(session, catalogue, &jobs).await?;
                    conflicts += u32::from(there.is_empty());
                    if conflicts > CONFLICTS_MAX {
                        return Err(Fault::Duplicate(source));
                    }
                    let left = jobs.into_iter().rev();
                    left.filter(|job| !there.contains_key(&job.idempotency_key))
                        .for_each(|job| waiting.push_front(job));
                    for (key, id) in there {
                        let is_new = is_unsure && self.made.contains(&key);
                        known.insert(key, Enqueued { id, is_new });
                    }
                }
                Err(other) => return Err(other),
            }
        }
        self.made = known
            .iter()
            .filter_map(|(key, enqueued)| enqueued.is_new.then_some(*key))
            .collect();
        answers(self.jobs, &mut known)
    }
}

/// One job per key, the first.
fn distinct(jobs: &[NewJob]) -> VecDeque<&NewJob> {
    let mut seen = HashSet::with_capacity(jobs.len());
    jobs.iter()
        .filter(|job| seen.insert(job.idempotency_key))
        .collect()
}

/// One answer per job: what a key says first it says once.
fn answers(
    jobs: &[NewJob],
    known: &mut HashMap<IdempotencyKey, Enqueued>,
) -> Result<Vec<Enqueued>, Fault> {
    let answer = |job: &NewJob| {
        let Some(known) = known.get_mut(&job.idempotency_key) else {
            return Err(Fault::database("a row that was inserted is not there"));
        };
        let answer = *known;
        known.is_new = false;
        Ok(answer)
    };
    jobs.iter().map(answer).collect()
}

/// How many of the first jobs one INSERT carries: as many as fit into a packet
/// and have a statement.
fn rows(jobs: &mut VecDeque<&NewJob>, insert: &Stepped, bytes_max: usize) -> usize {
    let room = bytes_max.saturating_sub(HEADROOM_BYTES);
    let mut bytes = 0;
    let mut fitting = jobs
        .iter()
        .take(insert.len_max())
        .take_while(|job| {
            bytes += job.wire_bytes();
            bytes <= room
        })
        .count();
    loop {
        let (len, statement) = insert.at_most(fitting);
        if len <= 1 || statement.sql().len() <= room {
            return len;
        }
        fitting = len - 1;
    }
}

/// Inserts these jobs with one statement; their number is one of its lengths.
async fn insert<S: Session>(
    session: &mut S,
    catalogue: &Catalogue,
    jobs: &[&NewJob],
) -> Result<HashMap<IdempotencyKey, u64>, Fault> {
    let (_, statement) = catalogue.insert.at_most(jobs.len());
    let values = statement.values(|bind| value(jobs[bind.entry], bind.slot));
    let done = session.execute(statement, values).await?;
    let (first, last) = match jobs {
        [only] => return Ok(HashMap::from([(only.idempotency_key, done.last_id)])),
        [first, .., last] => (first, last),
        [] => return Ok(HashMap::new()),
    };
    // Rows of one statement get growing numbers in its order. Whether without
    // gaps depends on the server's mode, but as many numbers as rows leave none.
    let ends = find(session, catalogue, &[*first, *last]).await?;
    let id_of = |job: &NewJob| ends.get(&job.idempotency_key).copied();
    match (id_of(first), id_of(last)) {
        (Some(from), Some(to)) if to.wrapping_sub(from) == jobs.len() as u64 - 1 => {
            let keys = jobs.iter().map(|job| job.idempotency_key);
            Ok(keys.zip(from..).collect())
        }
        _ => find(session, catalogue, jobs).await,
    }
}

/// The rows that hold the keys of these jobs.
async fn find<S: Session>(
    session: &mut S,
    catalogue: &Catalogue,
    jobs: &[&NewJob],
) -> Result<HashMap<IdempotencyKey, u64>, Fault> {
    let mut found = HashMap::with_capacity(jobs.len());
    for jobs in jobs.chunks(catalogue.find_keys.len_max()) {
        let value = |bind: Bind| value(entry::<&NewJob>(jobs, bind.entry), bind.slot);
        for row in read_list(session, &catalogue.find_keys, jobs.len(), value).await? {
            let mut fields = Fields::of(row);
            let id = fields.take("id")?;
            let key = IdempotencyKey::from_bytes(fields.take("idempotency_key")?);
            found.insert(key, id);
        }
    }
    Ok(found)
}

fn value(job: &NewJob, slot: Slot) -> Value {
    let (due_at, due_in) = match job.due {
        Due::Now => (Value::Null, Duration::ZERO),
        Due::In(delay) => (Value::Null, delay),
        Due::At(at) => (Value::DateTime(at.to_utc()), Duration::ZERO),
    };
    let text = |text: &Option<String>| text.clone().map_or(Value::Null, Value::Text);
    match slot {
        Slot::ShardId => Value::U64(job.shard_id.into()),
        Slot::ShardKey => text(&job.shard_key),
        Slot::Key => Value::Bytes(job.idempotency_key.as_bytes().to_vec()),
        Slot::Payload => text(&job.payload),
        Slot::DueUs => Value::I64(span_us(due_in)),
        Slot::StartUs => Value::I64(span_us(due_in.saturating_add(job.spread))),
        Slot::DueAt => due_at,
        Slot::Column(at) => job
            .columns
            .get(usize::from(at))
            .cloned()
            .unwrap_or(Value::Null),
        other => unbound(other),
    }
}

/// Stores one job with one statement, without BEGIN and COMMIT around it.
pub(crate) struct EnqueueOne<'a>(pub(crate) &'a NewJob);

impl Operation for EnqueueOne<'_> {
    type Answer = Vec<Enqueued>;
    const IS_TRANSACTION: bool = false;

    async fn run<S: Session>(
        &mut self,
        session: &mut S,
        catalogue: &Catalogue,
        is_unsure: bool,
    ) -> Result<Vec<Enqueued>, Fault> {
        let mut conflicts = 0;
        loop {
            let source = match insert(session, catalogue, &[self.0]).await {
                Ok(ids) => {
                    let new = |id| Enqueued { id, is_new: true };
                    return Ok(ids.into_values().map(new).collect());
                }
                Err(Fault::Duplicate(source)) => source,
                Err(other) => return Err(other),
            };
            let there = find(session, catalogue, &[self.0]).await?;
            if let Some(id) = there.into_values().next() {
                let is_new = is_unsure;
                return Ok(vec![Enqueued { id, is_new }]);
            }
            conflicts += 1;
            if conflicts > CONFLICTS_MAX {
                return Err(Fault::Duplicate(source));
            }
        }
    }
}
