//! Rules that look at several attributes together.

mod columns;
mod fields;
mod retry;
mod shard;

pub(crate) use self::retry::max_attempts;

use crate::{
    diagnostics::{self, Errors},
    names::{JobOption, Name as _},
    parse::{Parsed, ParsedField},
};

/// Attributes that have been through [`check`].
pub(crate) struct Checked(Parsed);

impl Checked {
    /// The attributes, for the model.
    pub(crate) fn into_parsed(self) -> Parsed {
        self.0
    }
}

/// Holds the attributes against every rule.
pub(crate) fn check(parsed: Parsed, errors: &Errors) -> Checked {
    let options = &parsed.options;
    if options.table.name().is_none() && !options.has_unread {
        errors.push(diagnostics::missing_table(&parsed.ident));
    }
    parsed
        .fields
        .iter()
        .for_each(|field| fields::check(field, errors));
    shard::check(&parsed, errors);
    columns::check(&parsed, errors);
    if let Some(given) = options.retry.given() {
        retry::check(given, errors);
    }
    lanes(&parsed, errors);
    contents(&parsed, errors);
    Checked(parsed)
}

fn lanes(parsed: &Parsed, errors: &Errors) {
    let retry = parsed.options.retry.given();
    let max_attempts = retry.and_then(|retry| retry.value.max_attempts.given());
    let never_retries = max_attempts.is_some_and(|given| given.value == 1);
    if let Some(name) = parsed.options.lanes.name()
        && never_retries
    {
        errors.push(diagnostics::no_effect(
            name,
            JobOption::Lanes.as_str(),
            retry::NEVER_RETRIES,
            "remove it, or allow more attempts",
        ));
    }
}

/// What the row holds, and whether the payload can follow the struct's serde.
fn contents(parsed: &Parsed, errors: &Errors) {
    if parsed
        .fields
        .iter()
        .all(|field| field.skip.name().is_some())
    {
        let has_fields = !parsed.fields.is_empty();
        errors.push(diagnostics::nothing_stored(&parsed.ident, has_fields));
    }
    if !parsed.fields.iter().any(is_payload) {
        return;
    }
    for meta in &parsed.serde.refused {
        let path = meta.path();
        let name = quote::ToTokens::to_token_stream(path).to_string();
        errors.push(diagnostics::serde_on_struct(path, &name));
    }
}

fn is_payload(field: &ParsedField) -> bool {
    field.skip.name().is_none() && field.column.name().is_none()
}
