//! The idempotency key, and the encoding that it and the shard hash rest on.
//!
//! # The encoding
//!
//! A value is a tag byte, the length of what follows in bytes as a big-endian
//! `u64`, and then:
//!
//! | value | tag | what follows |
//! | --- | --- | --- |
//! | null | `n` | nothing |
//! | boolean | `b` | one byte, 0 or 1 |
//! | integer | `i` | its decimal digits, with `-` when negative |
//! | text | `t` | its UTF-8 bytes, as they are |
//! | sequence | `s` | its items, encoded |
//! | map, struct | `m` | name and value in turn, encoded, in byte order of the names |
//!
//! The length in front makes `("ab", "c")` and `("a", "bc")` differ. A value is
//! first brought to JSON's data model by serde, so an enum counts as serde
//! writes it. Floating-point numbers are refused: two ways to compute the
//! same amount can differ in the last bit, and a key must not. NaN and the
//! infinities, which JSON does not have, come from serde as null.
//!
//! A key is the SHA-256 of `"retryjob.key.1"`, then the table's name as a text,
//! then the `unique` fields as a map. It therefore stays the same when fields
//! are put in another order, and changes when one is renamed.

use std::fmt;

use rand::RngExt as _;
use serde::Serialize;
use serde_json::Value as Json;
use sha2::{Digest as _, Sha256};

/// Says which enqueues are the same job: 32 bytes, unique within the table as
/// long as the row is kept.
///
/// Handlers pass it on, for instance to a payment provider, so that an
/// attempt that is repeated has no second effect.
///
/// # Examples
///
/// ```
/// use retryjob_core::{IdempotencyKey, KeyEncoder};
///
/// let mut fields = KeyEncoder::new();
/// fields.field("invoice", &7u64)?;
/// let key: IdempotencyKey = fields.key("billing_job");
/// assert_eq!(key.to_string().len(), 64);
/// # Ok::<(), retryjob_core::KeyError>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct IdempotencyKey([u8; 32]);

impl IdempotencyKey {
    /// A key that no other job has, for job types without `unique` fields.
    #[must_use]
    pub fn random() -> Self {
        Self(rand::rng().random())
    }

    /// The key with these bytes, as a row holds them.
    #[must_use]
    pub const fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// The 32 bytes that the row holds.
    #[must_use]
    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// A stable number made of the key, for spreading work.
    #[must_use]
    pub fn to_u64(self) -> u64 {
        first_u64(&self.0)
    }
}

impl fmt::Display for IdempotencyKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for IdempotencyKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "IdempotencyKey({self})")
    }
}

/// Why a field can't be part of a key.
#[derive(Debug, thiserror::Error)]
pub enum KeyError {
    /// A floating-point number somewhere in the field.
    #[error(
        "`{field}` holds a floating-point number, which can't be part of a key; use an integer or text"
    )]
    Float {
        /// The field.
        field: &'static str,
    },
    /// serde could not bring the field to JSON's data model.
    #[error("`{field}` can't be part of a key")]
    Serialize {
        /// The field.
        field: &'static str,
        /// What serde said.
        source: serde_json::Error,
    },
}

/// Collects the fields of a key and hashes them.
#[derive(Debug, Default)]
pub struct KeyEncoder {
    fields: Vec<(&'static str, Vec<u8>)>,
}

impl KeyEncoder {
    /// No fields yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds one field.
    ///
    /// # Errors
    ///
    /// [`KeyError`] for floating-point numbers, and for what serde can't bring
    /// to JSON.
    pub fn field<T: Serialize + ?Sized>(
        &mut self,
        field: &'static str,
        value: &T,
    ) -> Result<&mut Self, KeyError> {
        let json =
            serde_json::to_value(value).map_err(|source| KeyError::Serialize { field, source })?;
        let mut bytes = Vec::new();
        encode(&json, &mut bytes).map_err(|Float| KeyError::Float { field })?;
        self.fields.push((field, bytes));
        Ok(self)
    }

    /// The key of these fields in that table.
    #[must_use]
    pub fn key(self, table: &str) -> IdempotencyKey {
        IdempotencyKey(self.digest("retryjob.key.1", table))
    }

    /// The number that places these fields on a shard: the first eight bytes,
    /// big-endian, of a SHA-256 made like the key's, with `"retryjob.shard.1"`
    /// and an empty table name in front.
    #[must_use]
    pub fn shard_hash(self) -> u64 {
        first_u64(&self.digest("retryjob.shard.1", ""))
    }

    fn digest(mut self, purpose: &str, table: &str) -> [u8; 32] {
        self.fields.sort_unstable();
        let mut map = Vec::new();
        for (name, value) in &self.fields {
            put(b't', name.as_bytes(), &mut map);
            map.extend_from_slice(value);
        }
        let mut bytes = purpose.as_bytes().to_vec();
        put(b't', table.as_bytes(), &mut bytes);
        put(b'm', &map, &mut bytes);
        Sha256::digest(&bytes).into()
    }
}

struct Float;

fn encode(value: &Json, out: &mut Vec<u8>) -> Result<(), Float> {
    match value {
        Json::Null => put(b'n', &[], out),
        Json::Bool(flag) => put(b'b', &[u8::from(*flag)], out),
        Json::Number(number) if number.is_f64() => return Err(Float),
        Json::Number(number) => put(b'i', number.to_string().as_bytes(), out),
        Json::String(text) => put(b't', text.as_bytes(), out),
        Json::Array(items) => {
            let mut inner = Vec::new();
            items.iter().try_for_each(|item| encode(item, &mut inner))?;
            put(b's', &inner, out);
        }
        Json::Object(entries) => {
            let mut sorted: Vec<_> = entries.iter().collect();
            sorted.sort_unstable_by_key(|(name, _)| name.as_bytes());
            let mut inner = Vec::new();
            for (name, value) in sorted {
                put(b't', name.as_bytes(), &mut inner);
                encode(value, &mut inner)?;
            }
            put(b'm', &inner, out);
        }
    }
    Ok(())
}

fn put(tag: u8, bytes: &[u8], out: &mut Vec<u8>) {
    out.push(tag);
    out.extend_from_slice(&(bytes.len() as u64).to_be_bytes());
    out.extend_from_slice(bytes);
}

fn first_u64(digest: &[u8; 32]) -> u64 {
    let mut bytes = [0; 8];
    bytes.copy_from_slice(&digest[..8]);
    u64::from_be_bytes(bytes)
}
