//! Names of tables and columns: the one parser of the allow-list
//! `[A-Za-z_][A-Za-z0-9_$]{0,63}`.

use std::fmt;

/// Most bytes in the name of a column; the limit of MySQL and MariaDB.
pub(crate) const COLUMN_BYTES_MAX: usize = 64;

/// Most bytes in the name of a table, since `_history` may follow.
pub(crate) const TABLE_BYTES_MAX: usize = 56;

/// A name on the allow-list. There is no other way to make one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SqlName(String);

/// Why a text can't be a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NameError {
    /// No text at all.
    Empty,
    /// More bytes than there may be.
    TooLong { found: usize, max: usize },
    /// A first character outside `[A-Za-z_]`.
    Start,
    /// A later character outside `[A-Za-z0-9_$]`.
    Character(char),
}

impl SqlName {
    /// Takes a name of at most `bytes_max` bytes.
    pub(crate) fn parse(text: &str, bytes_max: usize) -> Result<Self, NameError> {
        let first = text.chars().next().ok_or(NameError::Empty)?;
        if !(first.is_ascii_alphabetic() || first == '_') {
            return Err(NameError::Start);
        }
        let is_allowed = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '$';
        if let Some(other) = text.chars().find(|&c| !is_allowed(c)) {
            return Err(NameError::Character(other));
        }
        if text.len() > bytes_max {
            return Err(NameError::TooLong {
                found: text.len(),
                max: bytes_max,
            });
        }
        Ok(Self(text.to_owned()))
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether two names are the same to a database: ASCII case does not count.
    pub(crate) fn is_same(&self, other: &str) -> bool {
        self.0.eq_ignore_ascii_case(other)
    }
}

impl fmt::Display for NameError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => f.write_str("is empty; it needs at least one letter or `_`"),
            Self::TooLong { found, max } => {
                write!(f, "has {found} bytes; it can have at most {max}")
            }
            Self::Start => f.write_str("must start with an ASCII letter or `_`"),
            Self::Character(other) => write!(
                f,
                "has the character {other:?}; only ASCII letters, digits, `_` and `$` are allowed"
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_outside_the_allow_list_are_refused() {
        let long = "a".repeat(65);
        for (text, error) in [
            ("", NameError::Empty),
            ("1job", NameError::Start),
            ("$job", NameError::Start),
            ("job name", NameError::Character(' ')),
            ("a`; DROP TABLE x; --", NameError::Character('`')),
            ("a\0b", NameError::Character('\0')),
            ("jobé", NameError::Character('é')),
            (&long, NameError::TooLong { found: 65, max: 64 }),
        ] {
            assert_eq!(
                SqlName::parse(text, COLUMN_BYTES_MAX),
                Err(error),
                "{text:?}"
            );
        }
    }

    #[test]
    fn reserved_words_and_64_bytes_are_names() {
        for text in ["select", "_", "A$9", "a".repeat(64).as_str()] {
            let name = SqlName::parse(text, COLUMN_BYTES_MAX).unwrap();
            assert_eq!(name.as_str(), text);
        }
    }
}
