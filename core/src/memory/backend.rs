//! The operations, each a transaction of its own under the lock.

use std::collections::BTreeSet;

use super::{
    Memory,
    table::Table,
    tx::{MemoryConnection, MemoryTx},
};
use crate::{
    backend::{Backend, ShardUse},
    error::{Error, ErrorKind, Result},
    op::{
        claim::{Claim, Claimed},
        counts::Counts,
        doctor::{Finding, Report},
        due::LaneHeads,
        enqueue::{Enqueued, NewJob},
        finish::{Finish, Finished},
        nodes::{Heartbeat, Leave, Members},
        operate::{OPERATE_IDS_MAX, Operate, Operated},
        reap::{Reap, Reaped},
        renew::{Renew, Renewed},
        shards::{ClaimHeld, ClaimedHeld, HoldShards, ReleaseShards, ShardLeases},
    },
    schema::JobSchema,
};

impl Backend for Memory {
    type Connection = MemoryConnection;
    type Tx = MemoryTx;

    const KEEPS_IN_THREAD: bool = false;
    const NAME: &'static str = "memory";
    /// The strictest use, so that tests on it meet what it brings about.
    const SHARDS: ShardUse = ShardUse::Own;

    /// An empty database of its own; the URL is `memory:`.
    async fn connect(url: &str, schema: &'static JobSchema) -> Result<Self> {
        if url != "memory:" {
            let why = format!("expected the URL `memory:`, found `{url}`");
            return Err(Error::new(ErrorKind::Url, why));
        }
        Ok(Self::without_table(schema))
    }

    fn for_schema(&self, schema: &'static JobSchema) -> Self {
        Self {
            schema,
            shared: self.shared.clone(),
        }
    }

    async fn reconnect(&self) -> Result<Self> {
        Ok(self.clone())
    }

    fn schema(&self) -> &'static JobSchema {
        self.schema
    }

    async fn install(&self) -> Result<()> {
        let mut state = self.shared.lock();
        let tables = &mut state.tables;
        let table = tables
            .entry(self.schema.table.as_str())
            .or_insert_with(|| Table::new(self.schema));
        let differences = differences(self.schema, table.schema);
        if differences.is_empty() {
            return Ok(());
        }
        let why = format!("table `{}`: {}", self.schema.table, differences.join("; "));
        Err(Error::new(ErrorKind::Schema, why))
    }

    async fn enqueue(&self, jobs: Vec<NewJob>) -> Result<Vec<Enqueued>> {
        self.on_table(|table, now| table.enqueue(jobs, now))
    }

    async fn enqueue_in(
        &self,
        connection: &mut MemoryConnection,
        jobs: Vec<NewJob>,
    ) -> Result<Vec<Enqueued>> {
        connection.enqueue(self.schema, jobs)
    }

    async fn finish_in(&self, connection: &mut MemoryConnection, finish: Finish) -> Result<()> {
        connection.finish(self.schema, finish)
    }

    async fn due_heads(&self) -> Result<LaneHeads> {
        self.on_table(|table, now| Ok(table.heads(now)))
    }

    async fn claim(&self, claim: Claim) -> Result<Claimed> {
        self.on_table(|table, now| {
            let jobs = table.claim(&claim, now);
            Ok(Claimed { jobs })
        })
    }

    async fn renew(&self, renew: Renew) -> Result<Renewed> {
        self.on_table(|table, now| {
            let lost = table.renew(&renew, now);
            Ok(Renewed { lost })
        })
    }

    async fn finish(&self, finishes: Vec<Finish>) -> Result<Finished> {
        self.on_table(|table, now| {
            let late = finishes.iter().filter(|finish| !table.finish(finish, now));
            let lost = late.map(|finish| finish.lease.id).collect();
            Ok(Finished { lost })
        })
    }

    async fn reap(&self, reap: Reap) -> Result<Reaped> {
        let lapsed = self.look_lapsed(reap.limit).await?;
        let has_more = lapsed.len() >= usize::from(reap.limit);
        let finishes = self.take_back(lapsed).await?;
        Ok(Reaped { finishes, has_more })
    }

    async fn operate(&self, operate: Operate) -> Result<Operated> {
        let count = operate.ids.len();
        if count > OPERATE_IDS_MAX {
            let why = format!("{count} ids at once, at most {OPERATE_IDS_MAX} can be given");
            return Err(Error::new(ErrorKind::Config, why));
        }
        self.on_table(|table, now| {
            let mut seen = BTreeSet::new();
            let first = operate.ids.iter().filter(|id| seen.insert(**id));
            let answers = first.map(|id| (*id, table.operate(&operate, *id, now)));
            Ok(Operated {
                answers: answers.collect(),
            })
        })
    }

    async fn counts(&self) -> Result<Counts> {
        self.on_table(|table, _| Ok(table.counts()))
    }

    async fn has_open(&self) -> Result<bool> {
        self.on_table(|table, _| Ok(table.counts().open() > 0))
    }

    async fn heartbeat(&self, heartbeat: Heartbeat) -> Result<Members> {
        let mut state = self.shared.lock();
        state.table(self.schema)?;
        let now = state.now;
        Ok(state.nodes.heartbeat(self.schema, heartbeat, now))
    }

    async fn leave(&self, leave: Leave) -> Result<()> {
        let mut state = self.shared.lock();
        state.table(self.schema)?;
        state.nodes.leave(self.schema, &leave);
        Ok(())
    }

    async fn hold_shards(&self, hold: HoldShards) -> Result<ShardLeases> {
        self.on_table(|table, now| Ok(table.shards.hold(&hold, now)))
    }

    async fn release_shards(&self, release: ReleaseShards) -> Result<()> {
        self.on_table(|table, now| {
            table.shards.release(&release, now);
            Ok(())
        })
    }

    async fn claim_held(&self, claim: ClaimHeld) -> Result<ClaimedHeld> {
        self.on_table(|table, now| {
            let jobs = table.claim_held(&claim, now);
            let is_all = jobs.len() < usize::from(claim.limit);
            let wait = is_all.then(|| table.next_due(&claim, now)).flatten();
            Ok(ClaimedHeld { jobs, wait })
        })
    }

    async fn doctor(&self) -> Result<Report> {
        let name = self.schema.table.as_str();
        let subject = format!("table {name}");
        let mut findings = vec![Finding::note(
            "server",
            "memory",
            "for tests: jobs are gone with the process",
        )];
        let state = self.shared.lock();
        match state.tables.get(name) {
            None => findings.push(Finding::fault(subject, "missing", "run `install`")),
            Some(table) => {
                let differences = differences(self.schema, table.schema);
                let faults = differences.iter().map(|difference| {
                    Finding::fault(&subject, difference, "made for another job type")
                });
                findings.extend(faults);
                if differences.is_empty() {
                    findings.push(Finding::ok(subject, "as the job type describes"));
                }
            }
        }
        Ok(Report { findings })
    }

    async fn begin(&self) -> Result<MemoryTx> {
        Ok(MemoryTx::new(self.shared.clone()))
    }

    async fn commit(&self, tx: MemoryTx) -> Result<()> {
        tx.commit()
    }

    async fn rollback(&self, tx: MemoryTx) -> Result<()> {
        drop(tx);
        Ok(())
    }

    async fn close(&self) {}
}

/// Every way in which a table made for `have` can't serve `want`.
fn differences(want: &JobSchema, have: &JobSchema) -> Vec<String> {
    let mut differences = Vec::new();
    for column in want.columns {
        match have.columns.iter().find(|have| have.name == column.name) {
            Some(have) if have == column => {}
            Some(_) => differences.push(format!("column `{}` is of another type", column.name)),
            None => differences.push(format!("column `{}` is missing", column.name)),
        }
    }
    for column in have.columns {
        let is_known = want.columns.iter().any(|want| want.name == column.name);
        if !is_known && !column.nullable {
            differences.push(format!("column `{}` is not part of the job", column.name));
        }
    }
    if want.names != have.names || want.has_payload != have.has_payload {
        differences.push("the framework's own columns are others".into());
    }
    if want.shard_key_column != have.shard_key_column {
        differences.push("the column of the shard key is another".into());
    }
    differences
}
