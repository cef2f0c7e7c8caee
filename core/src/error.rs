//! The one public error, with a kind to match on.

use std::{error::Error as StdError, fmt};

/// What kind of thing went wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The URL can't be understood, or is for another kind of database.
    Url,
    /// No server answers there.
    Unreachable,
    /// The server refuses the user or password.
    Denied,
    /// The database lacks something that this backend needs.
    Unsupported,
    /// The table is not what the job type describes. Nothing was changed.
    Schema,
    /// A job can't be stored. Nothing was sent.
    Encode,
    /// A job is larger than the server takes. Nothing was sent.
    TooLarge,
    /// The lease lapsed or went to another worker. Nothing was changed.
    LeaseLost,
    /// A deadlock, lock wait, lost connection or failover that did not pass
    /// within the retries. The transaction it happened in is gone, unless the
    /// connection was lost while COMMIT was under way: then what was asked for
    /// may have been done. An enqueue with a key, a finish and an operator's
    /// action can be made again.
    Transient,
    /// A setting that can't work.
    Config,
    /// Anything else that the database said.
    Database,
}

/// What went wrong: a kind, a sentence that says what would be right, and the
/// cause.
pub struct Error {
    kind: ErrorKind,
    message: String,
    source: Option<Box<dyn StdError + Send + Sync>>,
}

/// A result with this crate's error.
pub type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    /// An error without a cause.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self {
            kind,
            message: message.into(),
            source: None,
        }
    }

    /// An error with the cause below it.
    pub fn with_source(
        kind: ErrorKind,
        message: impl Into<String>,
        source: impl Into<Box<dyn StdError + Send + Sync>>,
    ) -> Self {
        Self {
            kind,
            message: message.into(),
            source: Some(source.into()),
        }
    }

    /// What kind of thing went wrong.
    #[must_use]
    pub const fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// Whether the same call may succeed when it is made again.
    #[must_use]
    pub const fn is_transient(&self) -> bool {
        matches!(self.kind, ErrorKind::Transient | ErrorKind::Unreachable)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&with_causes(self.message.clone(), self.source()))
    }
}

/// A message with the causes below it, each said once: many errors repeat
/// their cause in their own text.
pub(crate) fn with_causes(
    mut message: String,
    mut cause: Option<&(dyn StdError + 'static)>,
) -> String {
    while let Some(error) = cause {
        let said = error.to_string();
        if !message.ends_with(&said) {
            message = format!("{message}: {said}");
        }
        cause = error.source();
    }
    message
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}: {self}", self.kind)
    }
}

impl StdError for Error {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.source
            .as_deref()
            .map(|source| source as &(dyn StdError + 'static))
    }
}
