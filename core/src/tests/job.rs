use std::time::Duration;

use chrono::NaiveDate;

use crate::{
    error::ErrorKind,
    ident::Ident,
    job::{
        DecodeError, EncodeError, Encoded, Parts, RetryJob, ShardSource, encode_column,
        encode_payload, new_job,
    },
    key::KeyEncoder,
    op::enqueue::Due,
    schema::JobSchema,
    shard::{SHARD_KEY_CHARS_MAX, shard_key_hash, shard_of},
    value::{ColumnType, Value},
};

/// A job by hand, its shard from a template. `KEEPS` says whether the shard key
/// is a column.
#[derive(Debug)]
struct FlightJob<const KEEPS: bool> {
    carrier: String,
    flight: u32,
    has_unique: bool,
}

impl<const KEEPS: bool> RetryJob for FlightJob<KEEPS> {
    const SCHEMA: JobSchema = JobSchema {
        shards: 256,
        spread: Some(Duration::from_secs(3_600)),
        shard_key_column: if KEEPS {
            Some(Ident::new("shard_key"))
        } else {
            None
        },
        ..JobSchema::new(Ident::new("flight_job"))
    };

    fn encode(&self) -> Result<Encoded, EncodeError> {
        let unique = self.has_unique.then(|| self.key_fields());
        Ok(Encoded {
            unique,
            shard: ShardSource::Template(format!("{}_20130204", self.carrier)),
            columns: vec![encode_column("flight", ColumnType::U32, &self.flight)?],
            payload: encode_payload(&self.carrier)?,
        })
    }

    fn decode(mut parts: Parts) -> Result<Self, DecodeError> {
        Ok(Self {
            flight: parts.column("flight")?,
            carrier: parts.payload()?,
            has_unique: true,
        })
    }
}

impl<const KEEPS: bool> FlightJob<KEEPS> {
    fn new(carrier: impl Into<String>) -> Self {
        Self {
            carrier: carrier.into(),
            flight: 650,
            has_unique: true,
        }
    }

    fn key_fields(&self) -> KeyEncoder {
        let mut fields = KeyEncoder::new();
        fields.field("flight", &self.flight).unwrap();
        fields
    }
}

#[test]
fn a_job_becomes_a_row_and_the_row_becomes_the_job() {
    let job = FlightJob::<true>::new("UA");
    let row = new_job(&job, Due::Now).unwrap();
    assert_eq!(row.shard_key.as_deref(), Some("UA_20130204"));
    assert_eq!(row.shard_id, 183);
    assert_eq!(row.idempotency_key, job.key_fields().key("flight_job"));
    assert_eq!(row.columns, [Value::U64(650)]);
    assert_eq!(row.payload.as_deref(), Some("\"UA\""));
    assert!(row.spread < Duration::from_secs(3_600));

    let again = FlightJob::<true>::decode(Parts::new(row.columns, row.payload)).unwrap();
    assert_eq!((again.flight, again.carrier.as_str()), (650, "UA"));
}

#[test]
fn the_same_job_gets_the_same_key_shard_and_offset() {
    let [one, other] = [Due::Now, Due::In(Duration::from_secs(9))]
        .map(|due| new_job(&FlightJob::<true>::new("UA"), due).unwrap());
    assert_eq!(one.idempotency_key, other.idempotency_key);
    assert_eq!(one.shard_id, other.shard_id);
    assert_eq!(one.spread, other.spread);
}

#[test]
fn without_unique_fields_no_two_jobs_are_the_same() {
    let job = FlightJob::<true> {
        has_unique: false,
        ..FlightJob::new("UA")
    };
    let [one, other] = [(); 2].map(|()| new_job(&job, Due::Now).unwrap());
    assert_ne!(one.idempotency_key, other.idempotency_key);
    assert_eq!(one.shard_id, other.shard_id);
}

#[test]
fn a_shard_key_without_a_column_is_hashed_and_dropped() {
    let long = "ü".repeat(500);
    let row = new_job(&FlightJob::<false>::new(long.as_str()), Due::Now).unwrap();
    assert_eq!(row.shard_key, None);
    let hash = shard_key_hash(&format!("{long}_20130204")).unwrap();
    assert_eq!(row.shard_id, shard_of(hash, 256));
}

#[test]
fn a_shard_key_longer_than_its_column_is_refused() {
    let rest = usize::from(SHARD_KEY_CHARS_MAX) - "_20130204".len();
    let longest = FlightJob::<true>::new("ü".repeat(rest));
    assert!(new_job(&longest, Due::Now).is_ok());

    let longer = FlightJob::<true>::new("ü".repeat(rest + 1));
    let error = new_job(&longer, Due::Now).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Encode);
    let source = std::error::Error::source(&error).unwrap();
    assert!(source.to_string().ends_with("has more than 128 characters"));
}

#[test]
fn a_value_that_its_column_can_not_hold_is_refused_with_the_column() {
    let (kind, memo) = (ColumnType::Varchar { chars: 3 }, "späte".to_owned());
    let error = encode_column("memo", kind, &memo).unwrap_err();
    assert_eq!(
        error.to_string(),
        "the column `memo` can't hold this value: it has 5 characters, its column takes 3"
    );
}

#[test]
fn a_row_that_is_no_longer_this_job_is_refused_with_the_column() {
    let mut parts = Parts::new(vec![Value::Text("650".into())], Some("{}".into()));
    let column = parts.column::<u32>("flight").unwrap_err();
    assert_eq!(
        column.to_string(),
        "the column `flight` can't be decoded: expected u32, found text"
    );
    let missing = parts.column::<NaiveDate>("day").unwrap_err();
    assert_eq!(
        missing.to_string(),
        "the column `day` can't be decoded: expected a date, found NULL"
    );
    let payload = parts.payload::<String>().unwrap_err();
    assert!(matches!(payload, DecodeError::Payload(_)));
}
