//! What the options of `retry(...)` mean together.

use syn::Ident;

use crate::{
    diagnostics::{self, Errors},
    duration,
    names::{GradedOption, Name as _, RetryOption},
    parse::{Given, ParsedRetry, Slot},
};

/// Why much has no effect.
pub(super) const NEVER_RETRIES: &str = "with `max_attempts = 1`, which never retries";

/// A kind of delay that was given.
struct Kind<'a> {
    option: RetryOption,
    name: &'a Ident,
}

pub(super) fn check(given: &Given<ParsedRetry>, errors: &Errors) {
    let retry = &given.value;
    let kinds = kinds(retry);
    if retry.max_attempts.given().is_some_and(|max| max.value == 1) {
        never_retries(retry, &kinds, errors);
        return;
    }
    let [kind, others @ ..] = &kinds[..] else {
        errors.push(diagnostics::missing_delay(&given.name));
        return;
    };
    for other in others {
        let (own, with) = (other.option.as_str(), kind.option.as_str());
        errors.push(diagnostics::conflict(other.name, own, with));
    }
    if others.is_empty() {
        factor(retry, kind, errors);
        cap(retry, kind, errors);
    }
    schedule(retry, errors);
    manual_after(retry, errors);
}

fn kinds(retry: &ParsedRetry) -> Vec<Kind<'_>> {
    let given = [
        (RetryOption::Fixed, retry.fixed.name()),
        (RetryOption::Linear, retry.linear.name()),
        (RetryOption::Exponential, retry.exponential.name()),
        (RetryOption::Schedule, retry.schedule.name()),
        (RetryOption::Graded, retry.graded.name()),
    ];
    given
        .into_iter()
        .filter_map(|(option, name)| name.map(|name| Kind { option, name }))
        .collect()
}

fn never_retries(retry: &ParsedRetry, kinds: &[Kind<'_>], errors: &Errors) {
    let rest = [
        (RetryOption::Factor, retry.factor.name()),
        (RetryOption::Cap, retry.cap.name()),
        (RetryOption::Jitter, retry.jitter.name()),
        (RetryOption::Grace, retry.grace.name()),
        (RetryOption::ManualAfter, retry.manual_after.name()),
    ];
    let rest = rest
        .into_iter()
        .filter_map(|(option, name)| name.map(|name| (option, name)));
    let kinds = kinds.iter().map(|kind| (kind.option, kind.name));
    for (option, name) in kinds.chain(rest) {
        let fix = "remove it, or allow more attempts";
        errors.push(diagnostics::no_effect(
            name,
            option.as_str(),
            NEVER_RETRIES,
            fix,
        ));
    }
}

fn factor(retry: &ParsedRetry, kind: &Kind<'_>, errors: &Errors) {
    let Some(factor) = retry.factor.name() else {
        return;
    };
    match kind.option {
        RetryOption::Exponential => {}
        RetryOption::Graded => errors.push(diagnostics::misplaced(
            factor,
            &format!(
                "`{}` belongs in `graded(...)`",
                GradedOption::Factor.outline()
            ),
        )),
        other => {
            let why = format!("with `{}`", other.as_str());
            let fix = "remove it, or use `exponential`";
            errors.push(diagnostics::no_effect(
                factor,
                RetryOption::Factor.as_str(),
                &why,
                fix,
            ));
        }
    }
}

/// A cap has an effect when some delays are below it and some above.
fn cap(retry: &ParsedRetry, kind: &Kind<'_>, errors: &Errors) {
    let Some(cap) = retry.cap.given() else {
        return;
    };
    let refuse = |at: &dyn quote::ToTokens, why: &str, fix: &str| {
        let name = RetryOption::Cap.as_str();
        errors.push(diagnostics::no_effect(&at, name, why, fix));
    };
    let lowest = match kind.option {
        RetryOption::Fixed => {
            let why = "with `fixed`, whose delay is always the same";
            return refuse(&cap.name, why, "remove it");
        }
        RetryOption::Schedule => {
            let delays = retry.schedule.given().map(|given| &given.value);
            if let Some(longest) = delays.and_then(|delays| delays.iter().max())
                && cap.value >= *longest
            {
                let why = format!(
                    "since no delay is longer than `{}`",
                    duration::show(*longest)
                );
                refuse(&cap.tokens, &why, "remove it, or lower it");
            }
            return;
        }
        RetryOption::Graded => retry
            .graded
            .given()
            .and_then(|graded| value(&graded.value.then)),
        RetryOption::Linear => value(&retry.linear),
        _ => value(&retry.exponential),
    };
    if let Some(lowest) = lowest
        && cap.value <= lowest
    {
        errors.push(diagnostics::cap_too_low(
            &cap.tokens,
            kind.option,
            &duration::show(lowest),
        ));
    }
}

fn schedule(retry: &ParsedRetry, errors: &Errors) {
    let (Some(schedule), Some(max)) = (retry.schedule.given(), retry.max_attempts.given()) else {
        return;
    };
    let delays = schedule.value.len();
    if delays > usize::from(max.value) - 1 {
        errors.push(diagnostics::schedule_too_long(
            &schedule.name,
            delays,
            max.value,
        ));
    }
}

fn manual_after(retry: &ParsedRetry, errors: &Errors) {
    let Some(manual_after) = retry.manual_after.given() else {
        return;
    };
    let Some(max) = max_attempts(retry) else {
        return;
    };
    if manual_after.value >= max {
        let range = format!("1 to {}, below the {max} of `max_attempts`", max - 1);
        errors.push(diagnostics::out_of_range(
            &manual_after.tokens,
            RetryOption::ManualAfter.as_str(),
            &range,
            &manual_after.value.to_string(),
        ));
    }
}

/// Attempts in all; `None` when what decides them is wrong.
pub(crate) fn max_attempts(retry: &ParsedRetry) -> Option<u16> {
    match (&retry.max_attempts, &retry.schedule) {
        (Slot::Given(given), _) => Some(given.value),
        (Slot::Absent, Slot::Given(given)) => u16::try_from(given.value.len() + 1).ok(),
        (Slot::Absent, Slot::Absent) => Some(MAX_ATTEMPTS_DEFAULT),
        (Slot::Broken(_), _) | (_, Slot::Broken(_)) => None,
    }
}

/// Attempts in all when nothing else says so.
const MAX_ATTEMPTS_DEFAULT: u16 = 10;

fn value<T: Copy>(slot: &Slot<T>) -> Option<T> {
    slot.given().map(|given| given.value)
}
