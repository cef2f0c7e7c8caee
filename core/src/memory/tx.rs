//! Transactions: what they write is put off until they commit.

use std::ops::{Deref, DerefMut};

use super::{
    Shared, State,
    row::JobRow,
    table::{Table, check_job},
};
use crate::{
    error::{Error, ErrorKind, Result},
    key::IdempotencyKey,
    op::{
        enqueue::{Enqueued, NewJob},
        finish::{Ending, Finish},
    },
    schema::JobSchema,
};

/// A connection to a [`Memory`](super::Memory) inside a transaction.
///
/// It takes no locks: what it relies on is checked when it is asked for and
/// again when it commits.
#[derive(Debug)]
pub struct MemoryConnection {
    shared: Shared,
    writes: Vec<Write>,
}

/// A transaction on a [`Memory`](super::Memory). Dropping it undoes it.
#[derive(Debug)]
pub struct MemoryTx(MemoryConnection);

#[derive(Debug)]
struct Write {
    schema: &'static JobSchema,
    what: What,
}

#[derive(Debug)]
enum What {
    Insert(JobRow),
    Finish(Finish),
}

impl MemoryTx {
    pub(super) fn new(shared: Shared) -> Self {
        Self(MemoryConnection {
            shared,
            writes: Vec::new(),
        })
    }

    /// All that was written, or nothing when something else was written
    /// meanwhile that it can't stand beside.
    pub(super) fn commit(self) -> Result<()> {
        let MemoryConnection { shared, writes } = self.0;
        let mut state = shared.lock();
        let now = state.now;
        for write in &writes {
            write.check(&mut state)?;
        }
        for Write { schema, what } in writes {
            let table = state.table(schema)?;
            match what {
                What::Insert(row) => table.insert(row),
                What::Finish(finish) => {
                    table.finish(&finish, now);
                }
            }
        }
        Ok(())
    }
}

impl MemoryConnection {
    pub(super) fn enqueue(
        &mut self,
        schema: &'static JobSchema,
        jobs: Vec<NewJob>,
    ) -> Result<Vec<Enqueued>> {
        jobs.iter().try_for_each(|job| check_job(schema, job))?;
        let mut state = self.shared.lock();
        let now = state.now;
        let table = state.table(schema)?;
        let mut enqueued = Vec::new();
        for job in jobs {
            let key = job.idempotency_key;
            let known = table.id_of(&key).or_else(|| self.own_id(schema, &key));
            let id = known.unwrap_or_else(|| table.next_id());
            let is_new = known.is_none();
            if is_new {
                let what = What::Insert(JobRow::new(id, job, now));
                self.writes.push(Write { schema, what });
            }
            enqueued.push(Enqueued { id, is_new });
        }
        Ok(enqueued)
    }

    fn own_id(&self, schema: &JobSchema, key: &IdempotencyKey) -> Option<u64> {
        let mut own = self.writes.iter();
        own.find_map(|write| match &write.what {
            What::Insert(row)
                if write.schema.table == schema.table && row.idempotency_key == *key =>
            {
                Some(row.id)
            }
            What::Insert(_) | What::Finish(_) => None,
        })
    }
}

impl MemoryConnection {
    /// Puts a success off until the commit, if the lease stands now.
    pub(super) fn finish(&mut self, schema: &'static JobSchema, finish: Finish) -> Result<()> {
        // The caller's transaction commits what succeeded, and nothing else.
        let finish = Finish {
            ending: Ending::Success,
            ..finish
        };
        let what = What::Finish(finish);
        let write = Write { schema, what };
        write.check(&mut self.shared.lock())?;
        self.writes.push(write);
        Ok(())
    }
}

impl Write {
    fn check(&self, state: &mut State) -> Result<()> {
        let now = state.now;
        let table: &Table = state.table(self.schema)?;
        match &self.what {
            What::Insert(row) if table.id_of(&row.idempotency_key).is_some() => Err(Error::new(
                ErrorKind::Transient,
                "another transaction has stored a job of this key meanwhile",
            )),
            What::Finish(finish) if !table.can_finish(finish, now) => Err(Error::new(
                ErrorKind::LeaseLost,
                format!("the lease of job {} is lost", finish.lease.id),
            )),
            What::Insert(_) | What::Finish(_) => Ok(()),
        }
    }
}

impl Deref for MemoryTx {
    type Target = MemoryConnection;

    fn deref(&self) -> &MemoryConnection {
        &self.0
    }
}

impl DerefMut for MemoryTx {
    fn deref_mut(&mut self) -> &mut MemoryConnection {
        &mut self.0
    }
}
