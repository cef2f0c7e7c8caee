//! `retry(...)`: one kind of delay, and what bounds it.

use std::time::Duration;

use syn::Result;

use super::{
    entry::{Entry, Slot, given},
    value,
};
use crate::{
    diagnostics::{self, Errors},
    names::{GradedOption, JobOption, Name as _, RetryOption},
};

/// The options of `retry(...)`.
#[derive(Default)]
pub(crate) struct ParsedRetry {
    pub(crate) fixed: Slot<Duration>,
    pub(crate) linear: Slot<Duration>,
    pub(crate) exponential: Slot<Duration>,
    pub(crate) schedule: Slot<Vec<Duration>>,
    pub(crate) graded: Slot<ParsedGraded>,
    pub(crate) factor: Slot<u32>,
    pub(crate) cap: Slot<Duration>,
    pub(crate) jitter: Slot<Duration>,
    pub(crate) max_attempts: Slot<u16>,
    pub(crate) grace: Slot<Duration>,
    pub(crate) manual_after: Slot<u16>,
}

/// The options of `graded(...)`.
#[derive(Default)]
pub(crate) struct ParsedGraded {
    pub(crate) first: Slot<Duration>,
    pub(crate) then: Slot<Duration>,
    pub(crate) factor: Slot<u32>,
}

impl ParsedRetry {
    pub(super) fn parse(option: JobOption, entry: &Entry, errors: &Errors) -> Result<Self> {
        let mut retry = Self::default();
        for entry in entry.list::<_, RetryOption>(option)? {
            match RetryOption::find(&entry.name.to_string()) {
                Some(option) => retry.read(option, &entry, errors),
                None => errors.push(super::unknown_or_misplaced::<RetryOption>(&entry.name)),
            }
        }
        Ok(retry)
    }

    fn read(&mut self, option: RetryOption, entry: &Entry, errors: &Errors) {
        match option {
            RetryOption::Fixed => self.fixed.fill(option, entry, errors, |option, entry| {
                value::duration(option, entry, Duration::ZERO)
            }),
            RetryOption::Linear => self.linear.fill(option, entry, errors, value::span),
            RetryOption::Exponential => self.exponential.fill(option, entry, errors, value::span),
            RetryOption::Schedule => self.schedule.fill(option, entry, errors, value::durations),
            RetryOption::Graded => self.graded.fill(option, entry, errors, |option, entry| {
                given(entry, ParsedGraded::parse(option, entry, errors)?)
            }),
            RetryOption::Factor => self.factor.fill(option, entry, errors, |option, entry| {
                value::number(option, entry, 1..=1000)
            }),
            RetryOption::Cap => self.cap.fill(option, entry, errors, value::span),
            RetryOption::Jitter => self.jitter.fill(option, entry, errors, value::span),
            RetryOption::MaxAttempts => {
                self.max_attempts
                    .fill(option, entry, errors, |option, entry| {
                        value::number(option, entry, 1..=u16::MAX)
                    });
            }
            RetryOption::Grace => self.grace.fill(option, entry, errors, value::span),
            RetryOption::ManualAfter => {
                self.manual_after
                    .fill(option, entry, errors, |option, entry| {
                        value::number(option, entry, 1..=u16::MAX - 1)
                    });
            }
        }
    }
}

impl ParsedGraded {
    fn parse(option: RetryOption, entry: &Entry, errors: &Errors) -> Result<Self> {
        let mut graded = Self::default();
        for entry in entry.list::<_, GradedOption>(option)? {
            match GradedOption::find(&entry.name.to_string()) {
                Some(option) => graded.read(option, &entry, errors),
                None => errors.push(super::unknown_or_misplaced::<GradedOption>(&entry.name)),
            }
        }
        for (part, is_there) in [
            (GradedOption::First, graded.first.name().is_some()),
            (GradedOption::Then, graded.then.name().is_some()),
        ] {
            if !is_there {
                errors.push(diagnostics::missing(&entry.name, option.as_str(), part));
            }
        }
        Ok(graded)
    }

    fn read(&mut self, option: GradedOption, entry: &Entry, errors: &Errors) {
        match option {
            GradedOption::First => self.first.fill(option, entry, errors, |option, entry| {
                value::duration(option, entry, Duration::ZERO)
            }),
            GradedOption::Then => self.then.fill(option, entry, errors, value::span),
            GradedOption::Factor => self.factor.fill(option, entry, errors, |option, entry| {
                value::number(option, entry, 1..=1000)
            }),
        }
    }
}
