//! Jobs and databases for the tests of this crate.
#![allow(dead_code, reason = "each test file uses a part")]
#![allow(clippy::unwrap_used, reason = "a test ends where something fails")]

use std::{
    sync::atomic::{AtomicU32, Ordering},
    time::Duration,
};

use retryjob_core::{
    Backend, Column, ColumnType, IdempotencyKey, Ident, JobSchema, Node, Value,
    op::{
        claim::{Claim, Claimed},
        due::Lane,
        enqueue::{Due, NewJob},
        finish::{Ending, Finish},
    },
};

/// A job with a column of every type.
pub(crate) static SCHEMA: JobSchema = JobSchema {
    columns: &[
        column("c_bool", ColumnType::Bool),
        column("c_i8", ColumnType::I8),
        column("c_i16", ColumnType::I16),
        column("c_i32", ColumnType::I32),
        column("c_i64", ColumnType::I64),
        column("c_u8", ColumnType::U8),
        column("c_u16", ColumnType::U16),
        column("c_u32", ColumnType::U32),
        column("c_u64", ColumnType::U64),
        column("c_f64", ColumnType::F64),
        column("c_varchar", ColumnType::Varchar { chars: 40 }),
        column("c_text", ColumnType::Text),
        column("c_binary", ColumnType::Binary { bytes: 4 }),
        column("c_varbinary", ColumnType::Varbinary { bytes: 40 }),
        column("c_date", ColumnType::Date),
        column("c_datetime", ColumnType::DateTime),
    ],
    ..JobSchema::new(Ident::new("every_type"))
}
.checked();

const fn column(name: &'static str, kind: ColumnType) -> Column {
    Column {
        name: Ident::new(name),
        kind,
        nullable: true,
        index: false,
    }
}

/// A job with nothing but a payload.
pub(crate) static PLAIN: JobSchema = JobSchema::new(Ident::new("plain_job")).checked();

pub(crate) fn plain_job(shard_id: u16) -> NewJob {
    NewJob {
        shard_id,
        shard_key: None,
        idempotency_key: IdempotencyKey::random(),
        due: Due::Now,
        spread: Duration::ZERO,
        columns: Vec::new(),
        payload: Some("{}".into()),
    }
}

/// The least, the largest and the missing value of every column.
pub(crate) fn extremes() -> Vec<Vec<Value>> {
    let date = |y, m, d| chrono::NaiveDate::from_ymd_opt(y, m, d).unwrap();
    let least = vec![
        Value::Bool(false),
        Value::I64(i8::MIN.into()),
        Value::I64(i16::MIN.into()),
        Value::I64(i32::MIN.into()),
        Value::I64(i64::MIN),
        Value::U64(0),
        Value::U64(0),
        Value::U64(0),
        Value::U64(0),
        Value::F64(-1.5e300),
        Value::Text(String::new()),
        Value::Text("it's \\ \" ` ? \n".into()),
        Value::Bytes(vec![0, 255, 0, 1]),
        Value::Bytes(Vec::new()),
        Value::Date(date(1000, 1, 1)),
        Value::DateTime(date(1000, 1, 1).and_hms_micro_opt(0, 0, 0, 1).unwrap()),
    ];
    let largest = vec![
        Value::Bool(true),
        Value::I64(i8::MAX.into()),
        Value::I64(i16::MAX.into()),
        Value::I64(i32::MAX.into()),
        Value::I64(i64::MAX),
        Value::U64(u8::MAX.into()),
        Value::U64(u16::MAX.into()),
        Value::U64(u32::MAX.into()),
        Value::U64(u64::MAX),
        Value::F64(1.0 / 3.0),
        Value::Text("😀 ".repeat(20)),
        Value::Text("x".repeat(70_000)),
        Value::Bytes(vec![255; 4]),
        Value::Bytes(vec![255; 40]),
        Value::Date(date(9999, 12, 31)),
        Value::DateTime(
            date(9999, 12, 31)
                .and_hms_micro_opt(23, 59, 59, 999_999)
                .unwrap(),
        ),
    ];
    let missing = vec![Value::Null; SCHEMA.columns.len()];
    vec![least, largest, missing]
}

pub(crate) async fn claim_all<B: Backend>(backend: &B, limit: u16) -> Claimed {
    claim_for(backend, limit, Duration::from_secs(60)).await
}

pub(crate) async fn claim_for<B: Backend>(backend: &B, limit: u16, lease: Duration) -> Claimed {
    let due = backend.due_heads().await.unwrap().fresh;
    let claim = Claim {
        owner: Node::new("test").lease_owner(),
        lane: Lane::Fresh,
        heads: due.due().collect(),
        limit,
        lease,
    };
    backend.claim(claim).await.unwrap()
}

pub(crate) fn success(job: &retryjob_core::op::claim::ClaimedJob) -> Finish {
    Finish {
        lease: job.lease.clone(),
        attempt_no: job.attempt_no,
        ending: Ending::Success,
    }
}

/// A name that no other test uses, also of another run.
pub(crate) fn unique(prefix: &str) -> String {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    format!("{prefix}_{}_{count}", std::process::id())
}

/// Every value comes back as it was written.
pub(crate) async fn every_type_survives<B: Backend>(backend: &B) {
    backend.install().await.unwrap();
    let jobs: Vec<NewJob> = extremes()
        .into_iter()
        .map(|columns| NewJob {
            columns,
            payload: Some("{\"a\":\"é\\u0000\"}".into()),
            ..plain_job(3)
        })
        .collect();
    let enqueued = backend.enqueue(jobs.clone()).await.unwrap();
    assert!(enqueued.iter().all(|enqueued| enqueued.is_new));
    let claimed = claim_all(backend, 10).await;
    assert_eq!(claimed.jobs.len(), jobs.len());
    for (claimed, job) in claimed.jobs.iter().zip(&jobs) {
        let numbers = |values: &[Value]| values.iter().map(number).collect::<Vec<_>>();
        assert_eq!(numbers(&claimed.columns), numbers(&job.columns));
        assert_eq!(claimed.payload, job.payload);
        assert_eq!(claimed.idempotency_key, job.idempotency_key);
        assert_eq!(claimed.shard_id, 3);
        assert_eq!((claimed.attempt_no, claimed.lease.lease_seq), (1, 1));
    }
}

/// Integers of both signs compare by value.
fn number(value: &Value) -> String {
    match value {
        Value::I64(number) => number.to_string(),
        Value::U64(number) => number.to_string(),
        other => format!("{other:?}"),
    }
}
