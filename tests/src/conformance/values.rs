use chrono::{NaiveDate, NaiveDateTime};
use retryjob_core::{
    Value,
    op::{due::Lane, enqueue::NewJob},
};

use crate::{
    TestDatabase,
    act::{claim, enqueue, enqueue_one},
    jobs::{JOB, SPARSE, WIDE, columns_job, random_job},
};

fn date(year: i32, month: u32, day: u32) -> NaiveDate {
    NaiveDate::from_ymd_opt(year, month, day).unwrap()
}

fn instant(date: NaiveDate, us: u32) -> NaiveDateTime {
    date.and_hms_micro_opt(23, 59, 59, us).unwrap()
}

/// Least, greatest and awkward values of every type of column, within a number
/// of bytes.
fn wide_rows(bytes_max: usize) -> [Vec<Value>; 3] {
    let text = |text: &str| Value::Text(text.into());
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
        Value::F64(f64::MIN),
        text(""),
        text(""),
        Value::Bytes(vec![0; 4]),
        Value::Bytes(Vec::new()),
        Value::Date(date(1000, 1, 1)),
        Value::DateTime(date(1000, 1, 1).and_hms_opt(0, 0, 0).unwrap()),
    ];
    let greatest = vec![
        Value::Bool(true),
        Value::I64(i8::MAX.into()),
        Value::I64(i16::MAX.into()),
        Value::I64(i32::MAX.into()),
        Value::I64(i64::MAX),
        Value::U64(u8::MAX.into()),
        Value::U64(u16::MAX.into()),
        Value::U64(u32::MAX.into()),
        Value::U64(u64::MAX),
        Value::F64(f64::MAX),
        text(&"😀".repeat(50)),
        text(&"é😀\n".repeat(30_000.min(bytes_max / 16))),
        Value::Bytes(vec![0xff; 4]),
        Value::Bytes(vec![0xff; 50]),
        Value::Date(date(9999, 12, 31)),
        Value::DateTime(instant(date(9999, 12, 31), 999_999)),
    ];
    let awkward = vec![
        Value::Bool(true),
        Value::I64(-1),
        Value::I64(-1),
        Value::I64(-1),
        Value::I64(-9_007_199_254_740_993),
        Value::U64(128),
        Value::U64(32_768),
        Value::U64(2_147_483_648),
        Value::U64(9_223_372_036_854_775_808),
        Value::F64(0.1 + 0.2),
        text("trailing \u{301}\0 ' \" \\ ` % _ \\n -- ;  "),
        text("nul \0 in the middle, and a BOM \u{feff}"),
        Value::Bytes(b"\0a\0 ".to_vec()),
        Value::Bytes(b"\0\xc3\x28' \\ \0 ".to_vec()),
        Value::Date(date(2024, 2, 29)),
        // Within the hour that spring skips in many zones.
        Value::DateTime(date(2026, 3, 8).and_hms_micro_opt(2, 30, 0, 1).unwrap()),
    ];
    [least, greatest, awkward]
}

pub async fn values_come_back_as_they_were_stored<D: TestDatabase>(db: D) {
    let backend = db.installed(&WIDE).await;
    let rows = wide_rows(db.oversize_bytes().await.unwrap_or(usize::MAX));
    let ids = enqueue(&backend, rows.clone().map(columns_job).to_vec()).await;

    let claimed = claim(&backend, Lane::Fresh).await;
    assert_eq!(claimed.len(), rows.len());
    for (id, columns) in ids.into_iter().zip(rows) {
        let job = claimed.iter().find(|job| job.lease.id == id).unwrap();
        for (at, value) in columns.iter().enumerate() {
            let name = WIDE.columns[at].name;
            assert_eq!(&job.columns[at], value, "`{name}` as claimed");
        }
        assert_eq!(job.payload, None);
        assert_eq!(db.row(&WIDE, id).await.columns, columns, "as stored");
    }
}

pub async fn null_comes_back_as_null<D: TestDatabase>(db: D) {
    let backend = db.installed(&SPARSE).await;
    let nulls = vec![Value::Null; SPARSE.columns.len()];
    let new = NewJob {
        shard_key: Some("UA_20130204 ".into()),
        ..columns_job(nulls.clone())
    };
    let id = enqueue_one(&backend, new).await;
    let row = db.row(&SPARSE, id).await;
    assert_eq!(row.columns, nulls);
    assert_eq!(row.shard_key.as_deref(), Some("UA_20130204 "));
    assert_eq!(claim(&backend, Lane::Fresh).await[0].columns, nulls);
}

pub async fn payload_is_kept_byte_for_byte<D: TestDatabase>(db: D) {
    let backend = db.installed(&JOB).await;
    // A JSON column would sort the keys, drop one `a`, and round the number.
    let payloads = [
        r#"{"b":1,"a":18446744073709551615,"a":2, "c" : 1.10}"#,
        "{\"text\":\"\\u0000 é 😀 \\\\ ' \\\" \"}",
        " [1e400, 123456789012345678901234567890] ",
        "null",
    ];
    for payload in payloads {
        let new = NewJob {
            payload: Some(payload.into()),
            ..random_job()
        };
        let id = enqueue_one(&backend, new).await;
        assert_eq!(db.row(&JOB, id).await.payload.as_deref(), Some(payload));
        let claimed = claim(&backend, Lane::Fresh).await;
        assert_eq!(claimed[0].payload.as_deref(), Some(payload));
    }
}
