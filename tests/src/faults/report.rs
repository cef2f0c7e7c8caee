//! How often each fault is made, and one line of what came of it.

use std::{fmt::Display, io::Write as _};

use crate::history::{Checked, History, Rules, check};

/// Whether the long run was asked for, with `RETRYJOB_FAULTS=nightly`.
#[must_use]
pub fn is_nightly() -> bool {
    std::env::var("RETRYJOB_FAULTS").is_ok_and(|faults| faults == "nightly")
}

/// One number for every run of the tests, another for the night.
#[must_use]
pub fn times(daily: usize, nightly: usize) -> usize {
    if is_nightly() { nightly } else { daily }
}

/// A line past the test harness, which keeps what passing tests print.
pub fn say(line: impl Display) {
    let line = format!("{line}\n");
    std::io::stderr().write_all(line.as_bytes()).unwrap();
}

/// Holds a history against the promises, and says what it held.
///
/// # Panics
///
/// When a promise was broken, with every violation.
pub fn settle(fault: &str, database: &str, counts: &str, history: &History, rules: &Rules) {
    match check(history, rules) {
        Ok(checked) => say(line(fault, database, counts, &checked)),
        Err(violations) => {
            let lines: Vec<_> = violations
                .iter()
                .take(20)
                .map(ToString::to_string)
                .collect();
            panic!(
                "{fault} on {database}, {counts}: {} violations\n{}",
                violations.len(),
                lines.join("\n")
            );
        }
    }
}

fn line(fault: &str, database: &str, counts: &str, checked: &Checked) -> String {
    format!(
        "fault: {fault} | {database} | {counts} | {} jobs, {} claims, {} runs, {} unknown, \
         0 violations",
        checked.job_count, checked.claim_count, checked.run_count, checked.unknown_count
    )
}
