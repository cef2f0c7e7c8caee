//! What a job is: the trait that `#[derive(RetryJob)]` implements.

use std::time::Duration;

use crate::{
    error::{Error, ErrorKind},
    key::{IdempotencyKey, KeyEncoder, KeyError},
    op::enqueue::{Due, NewJob},
    schema::JobSchema,
    shard::{shard_key_hash, shard_of, spread_offset},
    value::{ColumnType, Value, ValueError},
};

/// A struct that is a job. Derive it; see the guide of the derive.
pub trait RetryJob: Sized + Send + Sync + 'static {
    /// Everything that is fixed about this type of job.
    const SCHEMA: JobSchema;

    /// The struct taken apart into what its row holds.
    ///
    /// # Errors
    ///
    /// [`EncodeError`] with the field that can't be stored.
    fn encode(&self) -> Result<Encoded, EncodeError>;

    /// The struct put together from what its row holds.
    ///
    /// # Errors
    ///
    /// [`DecodeError`] with the column that can't be taken. The row stays as
    /// it is.
    fn decode(parts: Parts) -> Result<Self, DecodeError>;

    /// The description as a reference, for everything that outlives a call.
    #[must_use]
    fn schema() -> &'static JobSchema {
        const { &Self::SCHEMA }
    }
}

/// A job taken apart.
#[derive(Debug)]
pub struct Encoded {
    /// The `unique` fields; `None` when the struct has none.
    pub unique: Option<KeyEncoder>,
    /// What places the job on a shard.
    pub shard: ShardSource,
    /// The struct's own columns, in the schema's order.
    pub columns: Vec<Value>,
    /// The JSON of the other fields; `None` when every field is a column.
    pub payload: Option<String>,
}

/// What places a job on a shard.
#[derive(Debug)]
pub enum ShardSource {
    /// No `shard_by`: the idempotency key does.
    Key,
    /// The `shard_by` fields.
    Fields(KeyEncoder),
    /// The text that the template made.
    Template(String),
}

/// A row's values, as [`RetryJob::decode`] takes them.
#[derive(Debug)]
pub struct Parts {
    columns: std::vec::IntoIter<Value>,
    payload: Option<String>,
}

/// A field that can't be stored.
#[derive(Debug, thiserror::Error)]
pub enum EncodeError {
    /// A `unique` or `shard_by` field.
    #[error(transparent)]
    Key(#[from] KeyError),
    /// A `column` field.
    #[error("the column `{column}` can't hold this value: it {source}")]
    Column {
        /// The column.
        column: &'static str,
        /// What is wrong with the value.
        source: ValueError,
    },
    /// A payload field.
    #[error("the payload can't be written as JSON")]
    Payload(#[source] serde_json::Error),
    /// A shard key that is too long for its column.
    #[error("the shard key {0:?} has more than 128 characters")]
    ShardKey(String),
}

/// A row that is no longer a job of this type.
#[derive(Debug, thiserror::Error)]
pub enum DecodeError {
    /// A `column` field.
    #[error("the column `{column}` can't be decoded: {source}")]
    Column {
        /// The column.
        column: &'static str,
        /// What is wrong with it.
        source: ValueError,
    },
    /// A payload field.
    #[error("the payload can't be decoded: {0}")]
    Payload(#[source] serde_json::Error),
}

impl Parts {
    /// The values of a claimed row.
    #[must_use]
    pub fn new(columns: Vec<Value>, payload: Option<String>) -> Self {
        Self {
            columns: columns.into_iter(),
            payload,
        }
    }

    /// The next column, in the schema's order.
    ///
    /// # Errors
    ///
    /// [`DecodeError::Column`] when it holds something else.
    pub fn column<T: crate::ColumnValue>(
        &mut self,
        column: &'static str,
    ) -> Result<T, DecodeError> {
        T::from_value(self.columns.next().unwrap_or(Value::Null))
            .map_err(|source| DecodeError::Column { column, source })
    }

    /// The payload.
    ///
    /// # Errors
    ///
    /// [`DecodeError::Payload`] when it is not the JSON of these fields.
    pub fn payload<T: serde::de::DeserializeOwned>(&mut self) -> Result<T, DecodeError> {
        serde_json::from_str(self.payload.as_deref().unwrap_or("null"))
            .map_err(DecodeError::Payload)
    }
}

/// The value for a column, checked against its type. Called by generated code.
///
/// # Errors
///
/// [`EncodeError::Column`] when the column can't hold it.
pub fn encode_column<T: crate::ColumnValue>(
    column: &'static str,
    kind: ColumnType,
    field: &T,
) -> Result<Value, EncodeError> {
    let value = field.to_value();
    value
        .check(kind)
        .map_err(|source| EncodeError::Column { column, source })?;
    Ok(value)
}

/// The JSON of the payload fields. Called by generated code.
///
/// # Errors
///
/// [`EncodeError::Payload`] when serde can't write it.
pub fn encode_payload<T: serde::Serialize>(payload: &T) -> Result<Option<String>, EncodeError> {
    serde_json::to_string(payload)
        .map(Some)
        .map_err(EncodeError::Payload)
}

/// The row that a job becomes when it is enqueued to fall due at `due`.
///
/// # Errors
///
/// [`ErrorKind::Encode`] when a field can't be stored.
pub fn new_job<J: RetryJob>(job: &J, due: Due) -> Result<NewJob, Error> {
    let schema = J::schema();
    let row = try_new_job(job, due, schema);
    row.map_err(|source| {
        Error::with_source(
            ErrorKind::Encode,
            format!("a job for `{}` can't be stored", schema.table),
            source,
        )
    })
}

fn try_new_job<J: RetryJob>(
    job: &J,
    due: Due,
    schema: &'static JobSchema,
) -> Result<NewJob, EncodeError> {
    let encoded = job.encode()?;
    let idempotency_key = encoded
        .unique
        .map_or_else(IdempotencyKey::random, |fields| {
            fields.key(schema.table.as_str())
        });
    let (hash, shard_key) = match encoded.shard {
        ShardSource::Key => (idempotency_key.to_u64(), None),
        ShardSource::Fields(fields) => (fields.shard_hash(), None),
        ShardSource::Template(text) => (shard_key_hash(&text)?, Some(text)),
    };
    let shard_key = shard_key.filter(|_| schema.shard_key_column.is_some());
    if let Some(text) = &shard_key
        && text.chars().count() > usize::from(crate::shard::SHARD_KEY_CHARS_MAX)
    {
        return Err(EncodeError::ShardKey(text.clone()));
    }
    let spread = schema.spread.map_or(Duration::ZERO, |window| {
        spread_offset(idempotency_key.to_u64(), window)
    });
    Ok(NewJob {
        shard_id: shard_of(hash, schema.shards),
        shard_key,
        idempotency_key,
        due,
        spread,
        columns: encoded.columns,
        payload: encoded.payload,
    })
}
