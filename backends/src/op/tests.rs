//! Claim, renew, finish and reap on one connection, and run again as after a
//! COMMIT without an answer. What each promises is the conformance suite's; here
//! is what one run leaves to the next.

#![allow(clippy::unwrap_used, reason = "a panic is a failed test")]

use std::time::Duration;

use retryjob_core::{
    Finished as Keeping, IdempotencyKey, Ident, JobSchema, Lease, Node,
    op::{
        claim::{Claim, ClaimedJob},
        due::{Head, Lane},
        enqueue::{Due, NewJob},
        finish::{Ending, Finish},
        reap::Lapsed,
        renew::Renew,
    },
    retry::Decision,
    sql::Catalogue,
    time::DbTime,
};
use sqlx::{AssertSqlSafe, Connection as _, SqliteConnection};

use super::{
    Operation,
    claim::{PickAndTake, pick, take},
    enqueue::EnqueueAll,
    finish::FinishAll,
    reap::{LookLapsed, TakeBack},
    renew::RenewAll,
};
use crate::{fault::Fault, kind::Kind as _, session::Session, sqlite::InFile};

const LEASE: Duration = Duration::from_secs(60);

const KEPT: JobSchema = JobSchema::new(Ident::new("job"));
const DELETED: JobSchema = JobSchema {
    finished: Keeping::Delete,
    ..KEPT
};
const ARCHIVED: JobSchema = JobSchema {
    finished: Keeping::History,
    ..KEPT
};

/// A database in memory, and what works on it.
struct Bench {
    schema: JobSchema,
    catalogue: Catalogue,
    session: SqliteConnection,
}

impl Bench {
    /// With so many jobs, each due for as many minutes as its id says.
    async fn with(schema: JobSchema, count: u8) -> Self {
        let catalogue = Catalogue::new(&schema, InFile::dialect());
        let mut session = SqliteConnection::connect("sqlite::memory:").await.unwrap();
        for create in &catalogue.create {
            session.run(create).await.unwrap();
        }
        let jobs: Vec<_> = (0..count)
            .map(|n| NewJob {
                idempotency_key: IdempotencyKey::from_bytes([n; 32]),
                shard_id: 0,
                shard_key: None,
                payload: Some("{}".into()),
                columns: Vec::new(),
                due: Due::Now,
                spread: Duration::ZERO,
            })
            .collect();
        let mut op = EnqueueAll::new(&jobs, usize::MAX);
        op.run(&mut session, &catalogue, false).await.unwrap();
        let mut bench = Self {
            schema,
            catalogue,
            session,
        };
        // The fence of a row is no stranger to larger numbers.
        bench.set("lease_seq = 5").await;
        let due = "due_at = due_at - id * 60000000";
        bench.set(due).await;
        bench.set("next_attempt_at = due_at").await;
        bench
    }

    async fn set(&mut self, columns: &str) {
        let sql = format!("UPDATE job SET {columns}");
        self.session.run(&sql).await.unwrap();
    }

    async fn pass(&mut self, span: Duration) {
        let us = span.as_micros();
        self.set(&format!("lease_until = lease_until - {us}")).await;
    }

    /// `id:status`, of every row.
    async fn statuses(&mut self) -> Vec<(i64, i64)> {
        self.pairs("SELECT id, status FROM job ORDER BY id").await
    }

    async fn pairs(&mut self, sql: &str) -> Vec<(i64, i64)> {
        let rows = sqlx::query_as(AssertSqlSafe(sql.to_owned()));
        rows.fetch_all(&mut self.session).await.unwrap()
    }

    async fn run<O: Operation>(&mut self, op: &mut O, is_unsure: bool) -> O::Answer {
        let ran = op.run(&mut self.session, &self.catalogue, is_unsure).await;
        ran.unwrap_or_else(|fault| panic!("{fault:?}"))
    }

    async fn claimed(&mut self) -> Vec<ClaimedJob> {
        let schema = self.schema;
        let claim = claim(100);
        let mut jobs = self
            .run(&mut PickAndTake::new(&schema, &claim), false)
            .await;
        jobs.sort_by_key(|job| job.lease.id);
        jobs
    }

    /// Writes finishes; the ids of those that came too late.
    async fn finish(&mut self, finishes: Vec<Finish>, is_unsure: bool) -> Vec<u64> {
        let schema = self.schema;
        let mut op = FinishAll::new(&schema, finishes);
        self.session.run("BEGIN").await.unwrap();
        let mut ran = op.run(&mut self.session, &self.catalogue, is_unsure).await;
        if matches!(ran, Err(Fault::Again)) {
            self.session.run("ROLLBACK; BEGIN").await.unwrap();
            ran = op.run(&mut self.session, &self.catalogue, is_unsure).await;
        }
        self.session.run("COMMIT").await.unwrap();
        ran.unwrap_or_else(|fault| panic!("{fault:?}")).lost
    }
}

fn claim(limit: u16) -> Claim {
    Claim {
        owner: Node::new("test").lease_owner(),
        lane: Lane::Fresh,
        heads: vec![Head {
            shard_id: 0,
            next_attempt_at: DbTime::from_us(0),
        }],
        limit,
        lease: LEASE,
    }
}

fn ids(jobs: &[ClaimedJob]) -> Vec<u64> {
    jobs.iter().map(|job| job.lease.id).collect()
}

fn ended(job: &ClaimedJob, ending: Ending) -> Finish {
    Finish {
        lease: job.lease.clone(),
        attempt_no: job.attempt_no,
        ending,
    }
}

fn succeeded(job: &ClaimedJob) -> Finish {
    ended(job, Ending::Success)
}

fn failed(job: &ClaimedJob) -> Finish {
    let decision = Decision::Retry(LEASE);
    let error = "it failed".into();
    ended(job, Ending::Failed { decision, error })
}

/// Under a fence that is no longer the row's.
fn late(mut finish: Finish) -> Finish {
    finish.lease.lease_seq -= 1;
    finish
}

#[tokio::test]
async fn claim_raises_the_fence_by_one_and_tells_how_late_it_is() {
    let mut bench = Bench::with(KEPT, 2).await;
    let jobs = bench.claimed().await;
    assert_eq!(ids(&jobs), [1, 2]);
    for job in &jobs {
        assert_eq!((job.lease.lease_seq, job.attempt_no), (6, 1));
        assert!(job.lag >= LEASE * u32::try_from(job.lease.id).unwrap());
        assert!(job.age >= job.lag);
    }
    let rows = bench.pairs("SELECT lease_seq, status FROM job").await;
    assert_eq!(rows, [(6, 1), (6, 1)]);
}

#[tokio::test]
async fn take_answers_what_was_still_as_it_was_picked() {
    let mut bench = Bench::with(KEPT, 3).await;
    let claim = claim(100);
    let Bench {
        session, catalogue, ..
    } = &mut bench;
    let picked = pick(session, catalogue, &KEPT, &claim).await.unwrap();
    session
        .run("UPDATE job SET status = 6 WHERE id = 2")
        .await
        .unwrap();
    let taken = take(session, catalogue, &claim, &picked).await.unwrap();
    // Longest due first.
    assert_eq!(ids(&taken), [3, 1]);
}

#[tokio::test]
async fn claim_without_an_answer_gives_what_it_took_and_nothing_more() {
    let mut bench = Bench::with(KEPT, 2).await;
    let schema = bench.schema;
    let claim = claim(1);
    let mut op = PickAndTake::new(&schema, &claim);
    assert_eq!(ids(&bench.run(&mut op, false).await), [2]);
    assert_eq!(
        ids(&bench.run(&mut op, true).await),
        [2],
        "it was committed"
    );
    assert_eq!(bench.statuses().await, [(1, 0), (2, 1)]);

    bench.set("status = 0, lease_owner = NULL").await;
    assert_eq!(ids(&bench.run(&mut op, true).await), [2], "it was not");
    assert_eq!(bench.statuses().await, [(1, 0), (2, 1)]);
    // Run again for another reason, it claims again.
    assert_eq!(ids(&bench.run(&mut op, false).await), [1]);
    assert_eq!(ids(&bench.run(&mut op, false).await), [0; 0]);
}

#[tokio::test]
async fn claim_of_several_shards_keeps_to_its_limit() {
    let mut bench = Bench::with(KEPT, 6).await;
    bench.set("shard_id = id % 2").await;
    let heads = [0, 1].map(|shard_id| Head {
        shard_id,
        next_attempt_at: DbTime::from_us(0),
    });
    let claim = Claim {
        heads: heads.to_vec(),
        ..claim(4)
    };
    let jobs = bench.run(&mut PickAndTake::new(&KEPT, &claim), false).await;
    assert_eq!(ids(&jobs), [6, 4, 2, 5]);
}

#[tokio::test]
async fn renew_names_the_lost_alone() {
    let mut bench = Bench::with(KEPT, 3).await;
    let leases: Vec<Lease> = bench
        .claimed()
        .await
        .into_iter()
        .map(|job| job.lease)
        .collect();
    let renew = |leases: &[Lease]| {
        RenewAll::new(Renew {
            leases: leases.to_vec(),
            lease: LEASE * 3,
        })
    };
    assert_eq!(bench.run(&mut renew(&leases), false).await.lost, [0; 0]);
    let mut with_lost = leases.clone();
    with_lost[1].lease_seq -= 1;
    assert_eq!(bench.run(&mut renew(&with_lost), false).await.lost, [2]);
    bench.pass(LEASE * 2).await;
    assert_eq!(bench.run(&mut renew(&leases), false).await.lost, [0; 0]);
}

#[tokio::test]
async fn finish_writes_each_kind_of_outcome_and_names_the_late() {
    for schema in [KEPT, DELETED, ARCHIVED] {
        let mut bench = Bench::with(schema, 6).await;
        let jobs = bench.claimed().await;
        let finishes = vec![
            succeeded(&jobs[0]),
            late(succeeded(&jobs[1])),
            failed(&jobs[2]),
            late(failed(&jobs[3])),
            succeeded(&jobs[4]),
            failed(&jobs[5]),
        ];
        let mut lost = bench.finish(finishes, false).await;
        lost.sort_unstable();
        assert_eq!(lost, [2, 4]);
        let mut expected = vec![(2, 1), (3, 4), (4, 1), (6, 4)];
        if schema.finished == Keeping::Keep {
            expected.extend([(1, 2), (5, 2)]);
            expected.sort_unstable();
        }
        assert_eq!(bench.statuses().await, expected, "{:?}", schema.finished);
        if schema.finished == Keeping::History {
            let moved = "SELECT id, status FROM job_history ORDER BY id";
            assert_eq!(bench.pairs(moved).await, [(1, 2), (5, 2)]);
        }
        // One alone, where nothing can be told apart by doing it again.
        let alone = bench.finish(vec![late(succeeded(&jobs[1]))], false).await;
        assert_eq!(alone, [2]);
        assert_eq!(bench.finish(vec![succeeded(&jobs[1])], false).await, [0; 0]);
    }
}

#[tokio::test]
async fn finish_without_an_answer_is_no_loss_when_it_was_written() {
    for schema in [KEPT, DELETED, ARCHIVED] {
        let mut bench = Bench::with(schema, 3).await;
        let jobs = bench.claimed().await;
        let finishes = || vec![succeeded(&jobs[2]), failed(&jobs[1])];
        assert_eq!(bench.finish(finishes(), false).await, [0; 0]);
        let left = bench.statuses().await;
        let is_gone = !left.iter().any(|(id, _)| *id == 3);
        assert_eq!(is_gone, schema.finished != Keeping::Keep);
        assert_eq!(bench.finish(finishes(), true).await, [0; 0]);
        // A row that is gone was finished by somebody, maybe not by this.
        let again = bench.finish(finishes(), false).await;
        match schema.finished {
            Keeping::Keep => assert_eq!(again, [0; 0]),
            Keeping::Delete | Keeping::History => assert_eq!(again, [3]),
        }
        bench.session.run("DELETE FROM job").await.unwrap();
        let gone = bench.finish(vec![succeeded(&jobs[0])], true).await;
        match schema.finished {
            Keeping::Keep => assert_eq!(gone, [1], "none of ours is gone"),
            Keeping::Delete | Keeping::History => assert_eq!(gone, [0; 0]),
        }
    }
}

#[tokio::test]
async fn a_finish_is_written_only_when_the_row_is_as_it_left_it() {
    for change in [
        "status = 3",
        "attempt_no = attempt_no + 1",
        "lease_seq = lease_seq + 1",
        "lease_owner = 'other:1'",
        "lease_owner = NULL",
    ] {
        let mut bench = Bench::with(KEPT, 2).await;
        let jobs = bench.claimed().await;
        let finishes = || vec![succeeded(&jobs[0]), failed(&jobs[1])];
        assert_eq!(bench.finish(finishes(), false).await, [0; 0]);
        bench.set(change).await;
        let mut lost = bench.finish(finishes(), true).await;
        lost.sort_unstable();
        assert_eq!(lost, [1, 2], "{change}");
    }
}

/// Jobs whose leases have lapsed, as a reaper reads them.
async fn lapsed(schema: JobSchema, count: u8) -> (Bench, Vec<ClaimedJob>, Vec<Lapsed>) {
    let mut bench = Bench::with(schema, count).await;
    let jobs = bench.claimed().await;
    bench.pass(LEASE * 2).await;
    let lapsed = bench.run(&mut LookLapsed { limit: 100 }, false).await;
    (bench, jobs, lapsed)
}

fn reaped(finishes: &[Finish]) -> Vec<u64> {
    finishes.iter().map(|finish| finish.lease.id).collect()
}

#[tokio::test]
async fn reap_ends_what_it_read_and_tells_of_that() {
    let (mut bench, jobs, lapsed) = lapsed(KEPT, 2).await;
    let read: Vec<_> = lapsed.iter().map(|lapsed| lapsed.lease.clone()).collect();
    let held: Vec<_> = jobs.iter().map(|job| job.lease.clone()).collect();
    assert_eq!(read, held);
    assert!(lapsed[1].age >= LEASE * 2);
    let mut op = TakeBack::new(lapsed, &KEPT.retry);
    assert_eq!(reaped(&bench.run(&mut op, false).await), [1, 2]);
    assert_eq!(bench.statuses().await, [(1, 4), (2, 4)]);
    // Another reaper was first.
    assert_eq!(reaped(&bench.run(&mut op, false).await), [0; 0]);
    // This one was, and did not hear of it.
    assert_eq!(reaped(&bench.run(&mut op, true).await), [1, 2]);
    // Since then one was claimed anew.
    let claimed = "lease_owner = 'other:1', lease_seq = lease_seq + (id = 2)";
    bench.set(claimed).await;
    bench.set("lease_owner = NULL").await;
    assert_eq!(reaped(&bench.run(&mut op, true).await), [1]);
}

#[tokio::test]
async fn reap_leaves_what_moved_since_it_was_read() {
    let (mut bench, jobs, lapsed) = lapsed(KEPT, 3).await;
    bench
        .set("lease_until = lease_until + 600000000 * (id = 2)")
        .await;
    let mut op = TakeBack::new(lapsed, &KEPT.retry);
    bench.session.run("BEGIN").await.unwrap();
    let first = op.run(&mut bench.session, &bench.catalogue, false).await;
    assert!(matches!(first, Err(Fault::Again)), "{first:?}");
    bench.session.run("ROLLBACK").await.unwrap();
    assert_eq!(reaped(&bench.run(&mut op, false).await), [1, 3]);
    assert_eq!(bench.statuses().await, [(1, 4), (2, 1), (3, 4)]);
    assert_eq!(bench.finish(vec![succeeded(&jobs[1])], false).await, [0; 0]);
}

/// Which row a claim takes is decided by its fence, where nothing keeps it as
/// it was picked.
#[cfg(feature = "mysql57")]
mod without_skip_locked {
    use retryjob_core::{
        Value,
        sql::{Slot, Statement},
    };

    use super::*;
    use crate::session::{Done, Row};

    /// What was bound.
    struct Asked(Vec<(Slot, Value)>);

    impl Session for Asked {
        async fn execute(
            &mut self,
            statement: &Statement,
            values: Vec<Value>,
        ) -> Result<Done, Fault> {
            let slots = statement.binds().iter().map(|bind| bind.slot);
            self.0.extend(slots.zip(values));
            Ok(Done {
                matched: 1,
                last_id: 0,
            })
        }

        async fn rows(&mut self, _: &Statement, _: Vec<Value>) -> Result<Vec<Row>, Fault> {
            Ok(Vec::new())
        }

        async fn run(&mut self, _: &str) -> Result<(), Fault> {
            Ok(())
        }

        fn fault(error: sqlx::Error) -> Fault {
            Fault::Lost(error)
        }
    }

    #[tokio::test]
    async fn take_compares_the_fence_that_was_picked() {
        let mut bench = Bench::with(KEPT, 1).await;
        let picked = bench.claimed().await;
        let catalogue = crate::Mysql57::statements(const { &KEPT });
        let mut asked = Asked(Vec::new());
        let taken = take(&mut asked, &catalogue, &claim(1), &picked).await;
        assert_eq!(taken.unwrap(), picked);
        let fences = asked.0.into_iter();
        let fences = fences.filter(|(slot, _)| *slot == Slot::LeaseSeq);
        let fences: Vec<_> = fences.map(|(_, value)| value).collect();
        assert_eq!(fences, [Value::U64(5)]);
    }
}
