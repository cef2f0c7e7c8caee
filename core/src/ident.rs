//! Names of tables and columns: one allow-list, checked at compile time.

use std::fmt;

/// Most bytes in a name; the limit of MySQL and MariaDB.
pub const IDENT_BYTES_MAX: usize = 64;

/// The name of a table or a column, checked against the allow-list
/// `[A-Za-z_][A-Za-z0-9_$]{0,63}`.
///
/// No other text ever becomes a name in a statement, so a name can't carry
/// SQL. Reserved words are fine: statements quote every name.
///
/// # Source
///
/// MySQL 8.4 Reference Manual, "Schema Object Names".
///
/// # Examples
///
/// ```
/// use retryjob_core::Ident;
///
/// const TABLE: Ident = Ident::new("billing_job");
/// assert_eq!(TABLE.as_str(), "billing_job");
/// assert!(Ident::check("a`; DROP TABLE x; --").is_err());
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Ident(&'static str);

/// Why a text can't be a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum IdentError {
    /// No text at all.
    #[error("a name can't be empty")]
    Empty,
    /// Longer than [`IDENT_BYTES_MAX`].
    #[error("a name has at most 64 bytes")]
    TooLong,
    /// A first byte outside `[A-Za-z_]`.
    #[error("a name starts with a letter or `_`")]
    Start,
    /// A later byte outside `[A-Za-z0-9_$]`.
    #[error("a name has only letters, digits, `_` and `$`, all ASCII")]
    Byte,
}

impl Ident {
    /// Takes a name that is known when the program is compiled.
    ///
    /// # Panics
    ///
    /// When the name is not on the allow-list. In a `const` that is a compile
    /// error.
    #[must_use]
    pub const fn new(name: &'static str) -> Self {
        match Self::check(name) {
            Ok(()) => Self(name),
            Err(IdentError::Empty) => panic!("a name can't be empty"),
            Err(IdentError::TooLong) => panic!("a name has at most 64 bytes"),
            Err(IdentError::Start) => panic!("a name starts with a letter or `_`"),
            Err(IdentError::Byte) => panic!("a name has only letters, digits, `_` and `$`"),
        }
    }

    /// Checks a text against the allow-list.
    ///
    /// # Errors
    ///
    /// The first rule of the allow-list that the text breaks.
    pub const fn check(name: &str) -> Result<(), IdentError> {
        let bytes = name.as_bytes();
        if bytes.is_empty() {
            return Err(IdentError::Empty);
        }
        if bytes.len() > IDENT_BYTES_MAX {
            return Err(IdentError::TooLong);
        }
        if !(bytes[0].is_ascii_alphabetic() || bytes[0] == b'_') {
            return Err(IdentError::Start);
        }
        let mut at = 1;
        while at < bytes.len() {
            let byte = bytes[at];
            if !(byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'$') {
                return Err(IdentError::Byte);
            }
            at += 1;
        }
        Ok(())
    }

    /// The name as text.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        self.0
    }
}

impl fmt::Debug for Ident {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.0, f)
    }
}

impl fmt::Display for Ident {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_outside_the_allow_list_are_refused() {
        let long = "a".repeat(65);
        for (name, error) in [
            ("", IdentError::Empty),
            (long.as_str(), IdentError::TooLong),
            ("1job", IdentError::Start),
            ("a`; DROP TABLE x; --", IdentError::Byte),
            ("a\0b", IdentError::Byte),
            ("db.tbl", IdentError::Byte),
            ("job ", IdentError::Byte),
            ("job🚀", IdentError::Byte),
        ] {
            assert_eq!(Ident::check(name), Err(error), "{name:?}");
        }
    }

    #[test]
    fn reserved_words_and_64_bytes_are_names() {
        assert_eq!(Ident::check("select"), Ok(()));
        assert_eq!(Ident::check(&"a".repeat(64)), Ok(()));
    }
}
