//! Values on their way to a column and back, and the types columns can have.

use chrono::{DateTime, NaiveDate, NaiveDateTime, Timelike as _, Utc};

/// The type of a column, as every backend can store it.
///
/// | type | MySQL and MariaDB | SQLite |
/// | --- | --- | --- |
/// | `Bool` | `TINYINT UNSIGNED` | `INTEGER` |
/// | `I8` to `U64` | `TINYINT` to `BIGINT UNSIGNED` | `INTEGER` |
/// | `F64` | `DOUBLE` | `REAL` |
/// | `Varchar` | `VARCHAR(n)`, `utf8mb4_bin` | `TEXT` |
/// | `Text` | `LONGTEXT`, `utf8mb4_bin` | `TEXT` |
/// | `Binary` | `BINARY(n)` | `BLOB` |
/// | `Varbinary` | `VARBINARY(n)` | `BLOB` |
/// | `Date` | `DATE` | `TEXT`, `YYYY-MM-DD` |
/// | `DateTime` | `DATETIME(6)` | `INTEGER`, microseconds since 1970 |
///
/// SQLite has no unsigned 64-bit integer: a `U64` above `i64::MAX` is stored as
/// the negative number with the same bits, and read back the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the table above says what each is")]
pub enum ColumnType {
    Bool,
    I8,
    I16,
    I32,
    I64,
    U8,
    U16,
    U32,
    U64,
    F64,
    Varchar { chars: u16 },
    Text,
    Binary { bytes: u16 },
    Varbinary { bytes: u16 },
    Date,
    DateTime,
}

impl ColumnType {
    /// Bytes that a value of this type takes in an index, at most.
    ///
    /// # Source
    ///
    /// MySQL 8.4 Reference Manual, "InnoDB Limits": 3072 for a whole key; a
    /// `utf8mb4` character counts four. 0 stands for "can't be indexed".
    #[must_use]
    pub const fn index_bytes(self) -> u32 {
        match self {
            Self::Bool | Self::I8 | Self::U8 => 1,
            Self::I16 | Self::U16 => 2,
            Self::Date => 3,
            Self::I32 | Self::U32 => 4,
            Self::I64 | Self::U64 | Self::F64 | Self::DateTime => 8,
            Self::Varchar { chars } => chars as u32 * 4,
            Self::Binary { bytes } | Self::Varbinary { bytes } => bytes as u32,
            Self::Text => 0,
        }
    }

    /// Bytes that a value of this type takes in a row, at most. MySQL allows
    /// 65,535 for all columns together; a `Text` keeps 12 of them and the rest
    /// elsewhere.
    #[must_use]
    pub const fn row_bytes(self) -> u32 {
        match self {
            Self::Text => 12,
            Self::Varchar { .. } | Self::Varbinary { .. } => self.index_bytes() + 2,
            _ => self.index_bytes(),
        }
    }

    /// Whether a field of type `self` can be kept in a column declared as
    /// `given`: the same kind, with another length at most.
    #[must_use]
    pub const fn can_be_declared(self, given: Self) -> bool {
        match (self, given) {
            (Self::Varchar { .. } | Self::Text, Self::Varchar { .. } | Self::Text) => true,
            (Self::Varbinary { .. }, Self::Binary { .. } | Self::Varbinary { .. }) => true,
            (Self::Binary { bytes: own }, Self::Binary { bytes: given }) => own == given,
            (own, given) => own.kind_code() == given.kind_code(),
        }
    }
}

impl ColumnType {
    /// A number per kind: `==` is not const yet.
    const fn kind_code(self) -> u8 {
        match self {
            Self::Bool => 0,
            Self::I8 => 1,
            Self::I16 => 2,
            Self::I32 => 3,
            Self::I64 => 4,
            Self::U8 => 5,
            Self::U16 => 6,
            Self::U32 => 7,
            Self::U64 => 8,
            Self::F64 => 9,
            Self::Varchar { .. } => 10,
            Self::Text => 11,
            Self::Binary { .. } => 12,
            Self::Varbinary { .. } => 13,
            Self::Date => 14,
            Self::DateTime => 15,
        }
    }
}

/// A value that is bound to a statement, or was read from a row.
#[derive(Clone, Debug, PartialEq)]
#[expect(missing_docs, reason = "the names say it")]
pub enum Value {
    Null,
    Bool(bool),
    I64(i64),
    U64(u64),
    F64(f64),
    Text(String),
    Bytes(Vec<u8>),
    Date(NaiveDate),
    /// UTC, whole microseconds.
    DateTime(NaiveDateTime),
}

/// Why a value can't go to a column, or what is in the column can't be taken.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ValueError {
    /// Another kind of value than the field has.
    #[error("expected {expected}, found {found}")]
    Kind {
        /// What the field needs.
        expected: &'static str,
        /// What was there.
        found: String,
    },
    /// A number outside the field's type.
    #[error("{value} is out of range for {expected}")]
    Range {
        /// What the field needs.
        expected: &'static str,
        /// What was there.
        value: String,
    },
    /// More characters or bytes than the column takes.
    #[error("has {found} {unit}, its column takes {max}")]
    TooLong {
        /// `characters` or `bytes`.
        unit: &'static str,
        /// How many there are.
        found: usize,
        /// How many the column takes.
        max: usize,
    },
    /// NaN or infinite.
    #[error("{0} is not a number that a column can hold")]
    NotFinite(String),
    /// Outside the years 1000 to 9999, which is all that MySQL promises.
    #[error("{0} is outside the years 1000 to 9999")]
    Year(String),
    /// A text that a bound column of fixed length can't hold.
    #[error("{0}")]
    Other(String),
}

impl Value {
    /// Checks that a column of this type takes the value as it is, so that no
    /// server ever cuts, rounds or refuses it later.
    ///
    /// # Errors
    ///
    /// [`ValueError`] with what the column takes.
    pub fn check(&self, column: ColumnType) -> Result<(), ValueError> {
        match (self, column) {
            (Self::Text(text), ColumnType::Varchar { chars }) => {
                at_most(text.chars().count(), chars, "characters")
            }
            (Self::Bytes(bytes), ColumnType::Varbinary { bytes: max }) => {
                at_most(bytes.len(), max, "bytes")
            }
            // MySQL fills a shorter one up with zeros, and what is read is no
            // longer what was written.
            (Self::Bytes(bytes), ColumnType::Binary { bytes: len })
                if bytes.len() != usize::from(len) =>
            {
                Err(ValueError::Other(format!(
                    "has {} bytes, its column takes exactly {len}",
                    bytes.len()
                )))
            }
            (Self::F64(number), _) if !number.is_finite() => {
                Err(ValueError::NotFinite(number.to_string()))
            }
            (Self::Date(date), _) => in_years(chrono::Datelike::year(date), date),
            (Self::DateTime(at), _) => in_years(chrono::Datelike::year(at), at),
            _ => Ok(()),
        }
    }

    /// About how many bytes the value takes on the wire.
    #[must_use]
    pub fn wire_bytes(&self) -> usize {
        match self {
            Self::Text(text) => text.len() + 9,
            Self::Bytes(bytes) => bytes.len() + 9,
            _ => 12,
        }
    }

    fn kind(&self) -> String {
        match self {
            Self::Null => "NULL".into(),
            Self::Bool(_) => "a boolean".into(),
            Self::I64(n) => format!("the integer {n}"),
            Self::U64(n) => format!("the integer {n}"),
            Self::F64(n) => format!("the number {n}"),
            Self::Text(_) => "text".into(),
            Self::Bytes(_) => "bytes".into(),
            Self::Date(_) => "a date".into(),
            Self::DateTime(_) => "a date and time".into(),
        }
    }

    fn unlike(&self, expected: &'static str) -> ValueError {
        ValueError::Kind {
            expected,
            found: self.kind(),
        }
    }
}

fn at_most(found: usize, max: u16, unit: &'static str) -> Result<(), ValueError> {
    let max = usize::from(max);
    if found > max {
        return Err(ValueError::TooLong { unit, found, max });
    }
    Ok(())
}

fn in_years(year: i32, shown: &impl ToString) -> Result<(), ValueError> {
    if (1000..=9999).contains(&year) {
        return Ok(());
    }
    Err(ValueError::Year(shown.to_string()))
}

/// A Rust type that can be a column of its own.
///
/// Implemented for integers up to 64 bits, `bool`, `f64`, `String`, `Vec<u8>`,
/// `[u8; N]`, chrono's `NaiveDate`, `NaiveDateTime` and `DateTime<Utc>`, and
/// `Option` of these. Implement it for your own types by way of one of them.
///
/// # Examples
///
/// ```
/// use retryjob_core::{ColumnType, ColumnValue, Value, ValueError};
///
/// #[derive(Debug, PartialEq)]
/// enum Tier { Free, Paid }
///
/// impl ColumnValue for Tier {
///     const TYPE: ColumnType = ColumnType::Varchar { chars: 8 };
///
///     fn to_value(&self) -> Value {
///         Value::Text(match self { Tier::Free => "free", Tier::Paid => "paid" }.into())
///     }
///
///     fn from_value(value: Value) -> Result<Self, ValueError> {
///         match String::from_value(value)?.as_str() {
///             "free" => Ok(Tier::Free),
///             "paid" => Ok(Tier::Paid),
///             other => Err(ValueError::Other(format!("unknown tier {other:?}"))),
///         }
///     }
/// }
///
/// assert_eq!(Tier::from_value(Tier::Paid.to_value()), Ok(Tier::Paid));
/// ```
pub trait ColumnValue: Sized {
    /// The column's type when the attribute gives none.
    const TYPE: ColumnType;
    /// Whether the column takes NULL.
    const NULLABLE: bool = false;

    /// The value for the column.
    fn to_value(&self) -> Value;

    /// The field from what the column holds.
    ///
    /// # Errors
    ///
    /// [`ValueError`] when the column holds something else.
    fn from_value(value: Value) -> Result<Self, ValueError>;
}

macro_rules! integer_columns {
    ($($rust:ident $kind:ident $variant:ident $as:ident),+ $(,)?) => {$(
        impl ColumnValue for $rust {
            const TYPE: ColumnType = ColumnType::$kind;

            fn to_value(&self) -> Value {
                Value::$variant($as::from(*self))
            }

            fn from_value(value: Value) -> Result<Self, ValueError> {
                let expected = stringify!($rust);
                let (number, shown) = match value {
                    Value::I64(n) => ($rust::try_from(n).ok(), n.to_string()),
                    Value::U64(n) => ($rust::try_from(n).ok(), n.to_string()),
                    other => return Err(other.unlike(expected)),
                };
                number.ok_or(ValueError::Range { expected, value: shown })
            }
        }
    )+};
}

integer_columns! {
    i8 I8 I64 i64, i16 I16 I64 i64, i32 I32 I64 i64, i64 I64 I64 i64,
    u8 U8 U64 u64, u16 U16 U64 u64, u32 U32 U64 u64, u64 U64 U64 u64,
}

impl ColumnValue for bool {
    const TYPE: ColumnType = ColumnType::Bool;

    fn to_value(&self) -> Value {
        Value::Bool(*self)
    }

    fn from_value(value: Value) -> Result<Self, ValueError> {
        match value {
            Value::Bool(flag) => Ok(flag),
            other => Err(other.unlike("a boolean")),
        }
    }
}

impl ColumnValue for f64 {
    const TYPE: ColumnType = ColumnType::F64;

    fn to_value(&self) -> Value {
        Value::F64(*self)
    }

    fn from_value(value: Value) -> Result<Self, ValueError> {
        match value {
            Value::F64(number) => Ok(number),
            other => Err(other.unlike("a floating-point number")),
        }
    }
}

impl ColumnValue for String {
    const TYPE: ColumnType = ColumnType::Varchar { chars: 255 };

    fn to_value(&self) -> Value {
        Value::Text(self.clone())
    }

    fn from_value(value: Value) -> Result<Self, ValueError> {
        match value {
            Value::Text(text) => Ok(text),
            other => Err(other.unlike("text")),
        }
    }
}

impl ColumnValue for Vec<u8> {
    const TYPE: ColumnType = ColumnType::Varbinary { bytes: 255 };

    fn to_value(&self) -> Value {
        Value::Bytes(self.clone())
    }

    fn from_value(value: Value) -> Result<Self, ValueError> {
        match value {
            Value::Bytes(bytes) => Ok(bytes),
            other => Err(other.unlike("bytes")),
        }
    }
}

impl<const N: usize> ColumnValue for [u8; N] {
    const TYPE: ColumnType = ColumnType::Binary {
        bytes: array_bytes(N),
    };

    fn to_value(&self) -> Value {
        Value::Bytes(self.to_vec())
    }

    fn from_value(value: Value) -> Result<Self, ValueError> {
        let bytes = Vec::<u8>::from_value(value)?;
        Self::try_from(bytes)
            .map_err(|bytes| ValueError::Other(format!("has {} bytes, expected {N}", bytes.len())))
    }
}

const fn array_bytes(n: usize) -> u16 {
    assert!(
        n >= 1 && n <= 255,
        "an array of bytes as a column has 1 to 255 of them; use `Vec<u8>` with `type = \"VARBINARY(n)\"`"
    );
    #[expect(
        clippy::cast_possible_truncation,
        reason = "at most 255, asserted above"
    )]
    let bytes = n as u16;
    bytes
}

impl ColumnValue for NaiveDate {
    const TYPE: ColumnType = ColumnType::Date;

    fn to_value(&self) -> Value {
        Value::Date(*self)
    }

    fn from_value(value: Value) -> Result<Self, ValueError> {
        match value {
            Value::Date(date) => Ok(date),
            other => Err(other.unlike("a date")),
        }
    }
}

/// What is finer than a microsecond is cut off, since a server would round up.
/// So is a leap second, which no server has: it becomes the last microsecond
/// before it.
impl ColumnValue for NaiveDateTime {
    const TYPE: ColumnType = ColumnType::DateTime;

    fn to_value(&self) -> Value {
        // chrono writes a leap second as nanoseconds past a billion.
        let whole_us = self.nanosecond().min(999_999_999) / 1000 * 1000;
        Value::DateTime(self.with_nanosecond(whole_us).unwrap_or(*self))
    }

    fn from_value(value: Value) -> Result<Self, ValueError> {
        match value {
            Value::DateTime(at) => Ok(at),
            other => Err(other.unlike("a date and time")),
        }
    }
}

impl ColumnValue for DateTime<Utc> {
    const TYPE: ColumnType = ColumnType::DateTime;

    fn to_value(&self) -> Value {
        self.naive_utc().to_value()
    }

    fn from_value(value: Value) -> Result<Self, ValueError> {
        NaiveDateTime::from_value(value).map(|at| at.and_utc())
    }
}

impl<T: ColumnValue> ColumnValue for Option<T> {
    const TYPE: ColumnType = T::TYPE;
    const NULLABLE: bool = true;

    fn to_value(&self) -> Value {
        self.as_ref().map_or(Value::Null, T::to_value)
    }

    fn from_value(value: Value) -> Result<Self, ValueError> {
        match value {
            Value::Null => Ok(None),
            value => T::from_value(value).map(Some),
        }
    }
}
