//! Doctor: what the connected server really gives, without changing it.

use std::fmt;

use serde::Serialize;

/// What a finding says when the server does not let it be read.
pub const UNKNOWN: &str = "unknown";

/// What is found about a server and the tables of one job type.
///
/// # Examples
///
/// ```
/// use retryjob_core::op::doctor::{Finding, Level, Report};
///
/// let report = Report {
///     findings: vec![
///         Finding::ok("innodb_doublewrite", "ON"),
///         Finding::fault("innodb_flush_log_at_trx_commit", "2", "set it to 1"),
///     ],
/// };
/// assert_eq!(report.level(), Level::Fault);
/// assert_eq!(
///     report.to_string(),
///     "ok     innodb_doublewrite              ON\n\
///      FAULT  innodb_flush_log_at_trx_commit  2\n\
///      \x20                                      set it to 1\n"
/// );
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Report {
    /// One or more for each subject: first the server, then its settings, then
    /// the tables.
    pub findings: Vec<Finding>,
}

/// One thing that was looked at.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// What was looked at: a setting by the server's own name for it, a table
    /// as `table x`, an index as `index x`.
    pub subject: String,
    /// How it stands.
    pub level: Level,
    /// What was found; [`UNKNOWN`] when it can't be read.
    pub value: String,
    /// What it means or what would be right; empty where nothing is to be
    /// said.
    pub advice: String,
}

/// How a finding stands, from best to worst.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// As it should be, or told for information.
    #[default]
    Ok,
    /// The promises hold, but something costs more than it should, or can't be
    /// read.
    Warning,
    /// A promise does not hold, or jobs can't run.
    Fault,
}

impl Finding {
    /// As it should be.
    pub fn ok(subject: impl Into<String>, value: impl Into<String>) -> Self {
        Self::new(Level::Ok, subject, value, "")
    }

    /// As it should be, with a word about what it means.
    pub fn note(
        subject: impl Into<String>,
        value: impl Into<String>,
        advice: impl Into<String>,
    ) -> Self {
        Self::new(Level::Ok, subject, value, advice)
    }

    /// Worth a change.
    pub fn warning(
        subject: impl Into<String>,
        value: impl Into<String>,
        advice: impl Into<String>,
    ) -> Self {
        Self::new(Level::Warning, subject, value, advice)
    }

    /// Against a promise.
    pub fn fault(
        subject: impl Into<String>,
        value: impl Into<String>,
        advice: impl Into<String>,
    ) -> Self {
        Self::new(Level::Fault, subject, value, advice)
    }

    /// Not to be read by this user or from this server.
    pub fn unknown(subject: impl Into<String>, advice: impl Into<String>) -> Self {
        Self::new(Level::Warning, subject, UNKNOWN, advice)
    }

    fn new(
        level: Level,
        subject: impl Into<String>,
        value: impl Into<String>,
        advice: impl Into<String>,
    ) -> Self {
        Self {
            subject: subject.into(),
            level,
            value: value.into(),
            advice: advice.into(),
        }
    }
}

impl Report {
    /// The worst level of all findings.
    #[must_use]
    pub fn level(&self) -> Level {
        let levels = self.findings.iter().map(|finding| finding.level);
        levels.max().unwrap_or_default()
    }

    /// The findings of this level.
    pub fn at(&self, level: Level) -> impl Iterator<Item = &Finding> {
        self.findings.iter().filter(move |f| f.level == level)
    }

    /// The findings about this subject.
    pub fn of(&self, subject: &str) -> impl Iterator<Item = &Finding> {
        self.findings.iter().filter(move |f| f.subject == subject)
    }
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Ok => "ok",
            Self::Warning => "warn",
            Self::Fault => "FAULT",
        })
    }
}

/// A table for a person: a line per finding, its advice below the value.
impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lengths = self.findings.iter().map(|f| f.subject.chars().count());
        let width = lengths.max().unwrap_or_default();
        for finding in &self.findings {
            let Finding {
                subject,
                level,
                value,
                advice,
            } = finding;
            writeln!(f, "{level:5}  {subject:width$}  {value}")?;
            if !advice.is_empty() {
                writeln!(f, "{:5}  {:width$}  {advice}", "", "")?;
            }
        }
        Ok(())
    }
}
