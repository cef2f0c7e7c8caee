//! The job types of the suite, described by hand, and rows of them.

use std::time::Duration;

use retryjob_core::{
    Backoff, Column, ColumnType, Finished, IdempotencyKey, Ident, JobSchema, KeyEncoder, LeaseBy,
    RetryPolicy, Value,
    op::enqueue::{Due, NewJob},
};

/// How long a claim of [`JOB`] is valid.
pub const LEASE: Duration = Duration::from_secs(60);

/// What [`JOB`] waits after a failure.
pub const BACKOFF: Duration = Duration::from_secs(10);

/// Attempts of [`JOB`].
pub const ATTEMPTS_MAX: u16 = 3;

/// The job type of most tests: three attempts, no column of its own.
pub const JOB: JobSchema = base("job").checked();

/// A second one in the same database, with columns.
pub const MAIL: JobSchema = JobSchema {
    columns: &[
        column("service_id", ColumnType::U64, false, true),
        column("memo", ColumnType::Varchar { chars: 100 }, true, false),
    ],
    ..base("mail")
}
.checked();

/// The caller's own table, where that has to be a job table.
pub const NOTE: JobSchema = base("note").checked();

/// Rows that succeeded are deleted.
pub const DELETED: JobSchema = JobSchema {
    finished: Finished::Delete,
    ..base("deleted")
}
.checked();

/// Rows that succeeded move to a history table.
pub const ARCHIVED: JobSchema = JobSchema {
    finished: Finished::History,
    ..base("archived")
}
.checked();

/// Jobs under the leases of their shards.
pub const HELD: JobSchema = JobSchema {
    lease_by: LeaseBy::Shard,
    ..base("held")
}
.checked();

/// The same, and rows that succeeded are deleted.
pub const HELD_DELETED: JobSchema = JobSchema {
    lease_by: LeaseBy::Shard,
    finished: Finished::Delete,
    ..base("held_deleted")
}
.checked();

/// The same, and rows that succeeded move to a history table.
pub const HELD_ARCHIVED: JobSchema = JobSchema {
    lease_by: LeaseBy::Shard,
    finished: Finished::History,
    ..base("held_archived")
}
.checked();

/// A column of every type, one of them nullable, no payload.
pub const WIDE: JobSchema = JobSchema {
    has_payload: false,
    columns: &[
        column("a_bool", ColumnType::Bool, false, false),
        column("a_i8", ColumnType::I8, false, false),
        column("a_i16", ColumnType::I16, false, false),
        column("a_i32", ColumnType::I32, false, false),
        column("a_i64", ColumnType::I64, false, true),
        column("a_u8", ColumnType::U8, false, false),
        column("a_u16", ColumnType::U16, false, false),
        column("a_u32", ColumnType::U32, false, false),
        column("a_u64", ColumnType::U64, false, true),
        column("a_f64", ColumnType::F64, false, false),
        column("a_varchar", ColumnType::Varchar { chars: 50 }, false, true),
        column("a_text", ColumnType::Text, false, false),
        column("a_binary", ColumnType::Binary { bytes: 4 }, false, false),
        column(
            "a_varbinary",
            ColumnType::Varbinary { bytes: 50 },
            false,
            true,
        ),
        column("a_date", ColumnType::Date, false, false),
        column("a_date_time", ColumnType::DateTime, false, true),
    ],
    ..base("wide")
}
.checked();

/// The same columns, and every one of them takes NULL.
pub const SPARSE: JobSchema = JobSchema {
    has_payload: false,
    shard_key_column: Some(Ident::new("shard_key")),
    columns: &[
        column("a_bool", ColumnType::Bool, true, false),
        column("a_i64", ColumnType::I64, true, true),
        column("a_u64", ColumnType::U64, true, false),
        column("a_f64", ColumnType::F64, true, false),
        column("a_varchar", ColumnType::Varchar { chars: 50 }, true, false),
        column("a_text", ColumnType::Text, true, false),
        column("a_binary", ColumnType::Binary { bytes: 4 }, true, false),
        column(
            "a_varbinary",
            ColumnType::Varbinary { bytes: 50 },
            true,
            false,
        ),
        column("a_date", ColumnType::Date, true, false),
        column("a_date_time", ColumnType::DateTime, true, false),
    ],
    ..base("sparse")
}
.checked();

const fn base(table: &'static str) -> JobSchema {
    JobSchema {
        shards: 32,
        lease: LEASE,
        retry: RetryPolicy {
            backoff: Backoff::Fixed { delay: BACKOFF },
            max_attempts: ATTEMPTS_MAX,
            ..RetryPolicy::DEFAULT
        },
        ..JobSchema::new(Ident::new(table))
    }
}

const fn column(name: &'static str, kind: ColumnType, nullable: bool, index: bool) -> Column {
    Column {
        name: Ident::new(name),
        kind,
        nullable,
        index,
    }
}

/// Job number `n`, for shard 0, due now: the same number is the same key.
pub fn job(n: u64) -> NewJob {
    NewJob {
        idempotency_key: key_of(&n),
        payload: Some(payload(n)),
        ..random_job()
    }
}

/// Jobs of these numbers.
pub fn jobs(numbers: impl IntoIterator<Item = u64>) -> Vec<NewJob> {
    numbers.into_iter().map(job).collect()
}

/// The payload of job number `n`.
pub fn payload(n: u64) -> String {
    format!(r#"{{"n":{n}}}"#)
}

/// A job that no other has the key of.
pub fn random_job() -> NewJob {
    NewJob {
        shard_id: 0,
        shard_key: None,
        idempotency_key: IdempotencyKey::random(),
        due: Due::Now,
        spread: Duration::ZERO,
        columns: Vec::new(),
        payload: Some("{}".into()),
    }
}

/// A job of [`MAIL`].
pub fn mail(n: u64) -> NewJob {
    NewJob {
        columns: vec![Value::U64(n), Value::Null],
        ..job(n)
    }
}

/// A job whose content is these columns alone.
pub fn columns_job(columns: Vec<Value>) -> NewJob {
    NewJob {
        columns,
        payload: None,
        ..random_job()
    }
}

/// The key that a job with this one unique field has.
pub fn key_of<T: serde::Serialize + ?Sized>(field: &T) -> IdempotencyKey {
    let mut fields = KeyEncoder::new();
    fields.field("field", field).unwrap();
    fields.key("job")
}
