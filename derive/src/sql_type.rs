//! The SQL types that a column can be given.

use std::ops::RangeInclusive;

use crate::names::{Name as _, TypeName};

/// A column's type, with the same names as the core's `ColumnType`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SqlType {
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

/// Why a text can't be a type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum TypeError {
    /// No type has this name.
    Unknown(String),
    /// The type exists, written in another form.
    Form(TypeName),
    /// The length is outside this range.
    Length(TypeName, RangeInclusive<u16>, String),
}

impl SqlType {
    /// Reads a type, in any case.
    pub(crate) fn parse(text: &str) -> Result<Self, TypeError> {
        let upper = text.trim().to_ascii_uppercase();
        let (base, is_unsigned) = match upper.strip_suffix(" UNSIGNED") {
            Some(base) => (base.trim_end(), true),
            None => (upper.as_str(), false),
        };
        let (word, length) = match base.split_once('(') {
            Some((word, rest)) => (word.trim_end(), Some(rest)),
            None => (base, None),
        };
        let name = TypeName::find(word).ok_or_else(|| TypeError::Unknown(word.to_owned()))?;
        let length = length
            .map(|rest| rest.strip_suffix(')').map(str::trim))
            .map(|inner| inner.ok_or(TypeError::Form(name)))
            .transpose()?;
        Self::build(name, length, is_unsigned)
    }

    fn build(name: TypeName, length: Option<&str>, is_unsigned: bool) -> Result<Self, TypeError> {
        let within = |max| length_within(name, length, max);
        let built = match name {
            TypeName::Varchar => Self::Varchar {
                chars: within(16_383)?,
            },
            TypeName::Binary => Self::Binary {
                bytes: within(255)?,
            },
            TypeName::Varbinary => Self::Varbinary {
                bytes: within(u16::MAX)?,
            },
            TypeName::DateTime if length == Some("6") => Self::DateTime,
            TypeName::DateTime => return Err(TypeError::Form(name)),
            _ if length.is_some() => return Err(TypeError::Form(name)),
            TypeName::TinyInt if is_unsigned => return Ok(Self::U8),
            TypeName::SmallInt if is_unsigned => return Ok(Self::U16),
            TypeName::Int if is_unsigned => return Ok(Self::U32),
            TypeName::BigInt if is_unsigned => return Ok(Self::U64),
            TypeName::TinyInt => Self::I8,
            TypeName::SmallInt => Self::I16,
            TypeName::Int => Self::I32,
            TypeName::BigInt => Self::I64,
            TypeName::Boolean => Self::Bool,
            TypeName::Double => Self::F64,
            TypeName::Text => Self::Text,
            TypeName::Date => Self::Date,
        };
        if is_unsigned {
            return Err(TypeError::Form(name));
        }
        Ok(built)
    }

    /// Bytes in an index, at most, as the core counts them; `None` when the
    /// type can't be indexed.
    pub(crate) fn index_bytes(self) -> Option<u32> {
        match self {
            Self::Text => None,
            Self::Varchar { chars } => Some(u32::from(chars) * 4),
            Self::Binary { bytes } | Self::Varbinary { bytes } => Some(u32::from(bytes)),
            _ => Some(8),
        }
    }
}

fn length_within(name: TypeName, length: Option<&str>, max: u16) -> Result<u16, TypeError> {
    let digits = length.ok_or(TypeError::Form(name))?;
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(TypeError::Form(name));
    }
    match digits.parse() {
        Ok(length) if (1..=max).contains(&length) => Ok(length),
        _ => Err(TypeError::Length(name, 1..=max, digits.to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_type_is_read_in_any_case() {
        for (text, expected) in [
            ("BOOLEAN", SqlType::Bool),
            ("tinyint", SqlType::I8),
            ("SMALLINT", SqlType::I16),
            ("Int", SqlType::I32),
            ("BIGINT", SqlType::I64),
            ("TINYINT UNSIGNED", SqlType::U8),
            ("SMALLINT UNSIGNED", SqlType::U16),
            ("INT unsigned", SqlType::U32),
            ("bigint  unsigned", SqlType::U64),
            ("DOUBLE", SqlType::F64),
            ("VARCHAR(64)", SqlType::Varchar { chars: 64 }),
            ("varchar( 16383 )", SqlType::Varchar { chars: 16_383 }),
            ("TEXT", SqlType::Text),
            ("BINARY(16)", SqlType::Binary { bytes: 16 }),
            ("VARBINARY(65535)", SqlType::Varbinary { bytes: 65_535 }),
            ("DATE", SqlType::Date),
            ("DATETIME(6)", SqlType::DateTime),
        ] {
            assert_eq!(SqlType::parse(text), Ok(expected), "{text}");
        }
    }

    #[test]
    fn forms_that_would_mean_something_else_are_refused() {
        for (text, name) in [
            ("VARCHAR", TypeName::Varchar),
            ("VARCHAR()", TypeName::Varchar),
            ("VARCHAR(64", TypeName::Varchar),
            ("VARCHAR(-1)", TypeName::Varchar),
            ("VARCHAR(64) UNSIGNED", TypeName::Varchar),
            ("BIGINT(20)", TypeName::BigInt),
            ("DATE UNSIGNED", TypeName::Date),
            ("DATETIME", TypeName::DateTime),
            ("DATETIME(3)", TypeName::DateTime),
        ] {
            assert_eq!(SqlType::parse(text), Err(TypeError::Form(name)), "{text}");
        }
    }

    #[test]
    fn lengths_have_bounds() {
        for text in [
            "VARCHAR(0)",
            "VARCHAR(16384)",
            "BINARY(256)",
            "VARBINARY(65536)",
            "VARBINARY(99999999999)",
        ] {
            assert!(
                matches!(SqlType::parse(text), Err(TypeError::Length(..))),
                "{text}"
            );
        }
    }

    #[test]
    fn other_types_are_unknown() {
        for (text, word) in [("DECIMAL(10,2)", "DECIMAL"), ("", ""), ("JSON", "JSON")] {
            assert_eq!(
                SqlType::parse(text),
                Err(TypeError::Unknown(word.to_owned()))
            );
        }
    }
}
