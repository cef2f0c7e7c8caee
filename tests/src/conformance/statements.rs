use std::collections::BTreeMap;

use retryjob_core::{
    Backend, JobSchema, Move, Node, Status,
    memory::JobRow,
    op::{
        due::Lane,
        nodes::{FORGET_AFTER, Heartbeat, NodeName},
        shards::HoldShards,
    },
    sql::{Bind, Slot, Statement},
};

use crate::{
    SqlDatabase,
    act::{NONE, claim, claim_as, enqueue, enqueue_one, finish, owner, running, succeeded},
    jobs::{ARCHIVED, DELETED, HELD, JOB, LEASE, jobs, random_job},
};

/// The statements that write, and the moves that each is for.
const WRITES: [(&str, &[Move]); 13] = [
    ("take_fresh", &[Move::Claim]),
    ("take_retry", &[Move::Claim]),
    ("renew", &[Move::Succeed]),
    ("succeed", &[Move::Succeed]),
    ("settle", &[Move::Fail]),
    ("settle_lapsed", &[Move::Fail]),
    ("hold", &[Move::Hold]),
    ("release", &[Move::Release]),
    ("cancel", &[Move::Cancel]),
    ("requeue", &[Move::Requeue]),
    ("archive_remove", &[]),
    ("succeed_held", &[Move::Claim]),
    ("settle_held", &[Move::Claim]),
];

/// Whether this statement may write rows of this status.
fn may_write(stem: &str, status: Status) -> bool {
    match stem {
        "take_fresh" | "succeed_held" | "settle_held" => status == Status::Pending,
        "take_retry" => status == Status::Retry,
        "archive_copy" | "archive_remove" => status == Status::Success,
        _ => {
            let (_, moves) = WRITES.iter().find(|(name, _)| *name == stem).unwrap();
            moves.iter().any(|step| status.after(*step).is_ok())
        }
    }
}

/// The statement with the values of these rows.
fn spelled_out(statement: &Statement, rows: &[&JobRow]) -> String {
    with_values(statement, |bind| {
        let row = rows[bind.entry.min(rows.len() - 1)];
        match bind.slot {
            Slot::Id => row.id.to_string(),
            Slot::LeaseSeq => row.lease_seq.to_string(),
            Slot::Owner => format!("'{}'", row.lease_owner.as_ref().unwrap().as_str()),
            Slot::LeaseUs => (LEASE * 3).as_micros().to_string(),
            Slot::Status => Status::Dead.code().to_string(),
            Slot::AttemptNo => "1".into(),
            Slot::DelayUs => "0".into(),
            Slot::Error => "NULL".into(),
            slot => panic!("{slot:?} is bound by no statement under test"),
        }
    })
}

/// The statement with a text for each of its binds.
fn with_values(statement: &Statement, value: impl Fn(&Bind) -> String) -> String {
    let mut binds = statement.binds().iter();
    let mut text = String::new();
    for part in statement.sql().split_inclusive('?') {
        let Some(before) = part.strip_suffix('?') else {
            text.push_str(part);
            continue;
        };
        text.push_str(before);
        text.push_str(&value(binds.next().unwrap()));
    }
    text
}

async fn put<D: SqlDatabase>(db: &D, schema: &JobSchema, id: u64, status: Status) {
    let table = schema.table;
    let code = status.code();
    let sql = format!("UPDATE {table} SET status = {code} WHERE id = {id}");
    db.execute(&sql).await;
}

/// Rows with one lease, moved to each status by hand as an operator with an
/// SQL client would: nothing but the status tells them apart.
async fn moved_by_hand<D: SqlDatabase>(
    db: &D,
    backend: &D::Backend,
    schema: &'static JobSchema,
    round: u64,
) -> BTreeMap<u64, JobRow> {
    let first = round * 100;
    let count = Status::ALL.len() as u64;
    let ids = enqueue(backend, jobs(first..first + count)).await;
    assert_eq!(claim(backend, Lane::Fresh).await.len(), ids.len());
    for (id, status) in ids.iter().zip(Status::ALL) {
        put(db, schema, *id, status).await;
    }
    let rows = db.rows(schema).await.into_iter();
    let rows = rows.filter(|row| ids.contains(&row.id));
    rows.map(|row| (row.id, row)).collect()
}

/// Every statement that changes a status names the status that it expects.
pub async fn statements_that_write_leave_rows_in_any_other_status<D: SqlDatabase>(db: D) {
    let mut checked = 0;
    for schema in [&JOB, &DELETED, &ARCHIVED, &HELD] {
        let backend = db.installed(schema).await;
        let catalogue = D::catalogue(&backend);
        for (round, (name, statement)) in (0..).zip(catalogue.statements()) {
            // A list of eight takes all the seven rows in.
            let Some(stem) = name.strip_suffix("[8]") else {
                continue;
            };
            if stem != "archive_copy" && !WRITES.iter().any(|(name, _)| *name == stem) {
                continue;
            }
            let before = moved_by_hand(&db, &backend, schema, round).await;
            let lapses = stem == "settle_lapsed";
            if lapses {
                db.pass(schema, LEASE * 2).await;
            }
            let rows: Vec<_> = before.values().collect();
            db.execute(&spelled_out(statement, &rows)).await;

            let after = db.rows(schema).await.into_iter();
            let after: BTreeMap<_, _> = after.map(|row| (row.id, row)).collect();
            let archived: Vec<_> = match stem {
                "archive_copy" => db.history(schema).await,
                _ => Vec::new(),
            };
            for (id, row) in &before {
                let is_written = match stem {
                    "archive_copy" => archived.iter().any(|copy| copy.id == *id),
                    _ => !after.get(id).is_some_and(|now| is_same(row, now, lapses)),
                };
                let status = row.status;
                assert_eq!(is_written, may_write(stem, status), "{name}, {status}");
            }
            db.execute(&format!("DELETE FROM {}", schema.table)).await;
            checked += 1;
        }
    }
    assert_eq!(checked, 4 * 10 + 2 + 2, "statements");
}

/// Whether a row is as it was; instants are, but for the time that passed.
fn is_same(before: &JobRow, now: &JobRow, has_passed: bool) -> bool {
    let same = |row: &JobRow| (row.status, row.lease_owner.clone(), row.lease_seq);
    same(before) == same(now) && (has_passed || before.lease_until == now.lease_until)
}

/// A job type that kept its rows until its history table was added.
pub async fn history_leaves_rows_that_succeeded_before_there_was_one<D: SqlDatabase>(db: D) {
    let backend = db.installed(&ARCHIVED).await;
    let earlier = enqueue_one(&backend, random_job()).await;
    put(&db, &ARCHIVED, earlier, Status::Success).await;
    let before = db.row(&ARCHIVED, earlier).await;

    let job = running(&backend, random_job()).await;
    assert!(finish(&backend, succeeded(&job)).await);
    let moved: Vec<_> = db
        .history(&ARCHIVED)
        .await
        .iter()
        .map(|row| row.id)
        .collect();
    assert_eq!(moved, [job.lease.id]);
    assert_eq!(db.rows(&ARCHIVED).await, [before]);
}

/// The reads that tell which leases were won, or still stand.
pub async fn statements_that_read_leases_pass_over_all_other_rows<D: SqlDatabase>(db: D) {
    let backend = db.installed(&JOB).await;
    enqueue(&backend, jobs(0..8)).await;
    let own = claim_as(&backend, owner(), Lane::Fresh, 6).await;
    let other = claim_as(&backend, owner(), Lane::Fresh, 6).await;
    assert_eq!((own.len(), other.len()), (6, 2));
    put(&db, &JOB, own[2].lease.id, Status::Hold).await;

    let rows = db.rows(&JOB).await;
    let row = |id| rows.iter().find(|row| row.id == id).unwrap();
    // The last of this claim's jobs is not asked for.
    let mut asked: Vec<_> = own[..5].iter().map(|job| row(job.lease.id)).collect();
    asked.extend(other.iter().map(|job| row(job.lease.id)));
    let catalogue = D::catalogue(&backend);
    let won = catalogue.won.at_least(asked.len()).1;
    let mut expected: Vec<_> = own[..5].iter().map(|job| job.lease.id).collect();
    expected.remove(2);
    assert_eq!(db.ids(&spelled_out(won, &asked)).await, expected, "won");

    let live = catalogue.live.at_least(asked.len()).1;
    expected.extend(other.iter().map(|job| job.lease.id));
    assert_eq!(db.ids(&spelled_out(live, &asked)).await, expected, "live");
    db.pass(&JOB, LEASE * 2).await;
    assert_eq!(db.ids(&spelled_out(live, &asked)).await, NONE, "lapsed");
    assert_eq!(
        D::look_lapsed(&backend, 100).await.len(),
        rows.len() - 1,
        "the one that was moved by hand has no lease to lapse"
    );
}

/// Between the read of a heartbeat and what it removes, a node may come back.
pub async fn forget_leaves_a_node_that_came_back<D: SqlDatabase>(db: D) {
    let backend = db.installed(&JOB).await;
    let forget = |node: &NodeName| {
        with_values(&D::catalogue(&backend).forget, |bind| match bind.slot {
            Slot::JobTable => format!("'{}'", JOB.table),
            Slot::Node => format!("'{node}'"),
            Slot::MemberUs => FORGET_AFTER.as_micros().to_string(),
            slot => panic!("{slot:?} is not of a node"),
        })
    };
    let node = Node::new("back").name().clone();
    let heartbeat = Heartbeat {
        node: node.clone(),
        member_for: LEASE,
    };
    backend.heartbeat(heartbeat.clone()).await.unwrap();
    db.pass(&JOB, FORGET_AFTER * 2).await;
    backend.heartbeat(heartbeat).await.unwrap();
    db.execute(&forget(&node)).await;
    assert_eq!(db.nodes(&JOB).await.len(), 1);

    db.pass(&JOB, FORGET_AFTER * 2).await;
    db.execute(&forget(&node)).await;
    assert_eq!(db.nodes(&JOB).await, []);
}

/// Between the read of who holds a shard and the take, another may take it.
pub async fn a_shard_that_was_taken_meanwhile_is_not_taken<D: SqlDatabase>(db: D) {
    let backend = db.installed(&HELD).await;
    let [holder, other] = ["holder", "other"].map(Node::new);
    let hold = |node: &Node| HoldShards {
        node: node.name().clone(),
        shard_ids: vec![3],
        lease: LEASE,
    };
    let held = backend.hold_shards(hold(&holder)).await.unwrap();
    let take = D::catalogue(&backend).held().take.at_least(1).1;
    let take = with_values(take, |bind| match bind.slot {
        Slot::JobTable => format!("'{}'", HELD.table),
        Slot::Node => format!("'{}'", other.name()),
        Slot::ShardId => "3".into(),
        Slot::LeaseUs => LEASE.as_micros().to_string(),
        slot => panic!("{slot:?} is not of a shard"),
    });
    db.execute(&take).await;
    assert_eq!(backend.hold_shards(hold(&holder)).await.unwrap(), held);
}

pub async fn the_leases_that_stand_are_those_that_were_asked_for<D: SqlDatabase>(db: D) {
    let backend = db.installed(&HELD).await;
    let node = Node::new("holder");
    let hold = HoldShards {
        node: node.name().clone(),
        shard_ids: vec![3, 4, 5],
        lease: LEASE,
    };
    let held = backend.hold_shards(hold).await.unwrap().held;
    let live = D::catalogue(&backend).held().live.at_least(2).1;
    let live = with_values(live, |bind| match bind.slot {
        Slot::JobTable => format!("'{}'", HELD.table),
        Slot::Node => format!("'{}'", node.name()),
        Slot::ShardId => ["3", "5"][bind.entry.min(1)].into(),
        Slot::Fence => held[0].fence.fence.to_string(),
        slot => panic!("{slot:?} is not of a shard"),
    });
    assert_eq!(db.ids(&live).await, [3, 5]);
}
