//! The wording of every message, and the collector.
//!
//! A message says what is wrong first and what would be right second: lower
//! case, one line, no full stop, code in backticks. It points at the smallest
//! token that is wrong.

mod collector;
mod hint;

use quote::ToTokens;
use syn::{Error, Ident};

use crate::{
    ident::NameError,
    names::{FIELD_ATTRIBUTE, FieldOption, Name, RetryOption, STRUCT_ATTRIBUTE, TypeName},
    sql_type::TypeError,
    template::TemplateError,
};

use self::hint::{closest, did_you_mean, nearest, one_of, snake_case};

pub(crate) use self::collector::Errors;

// Names.

/// A name that nothing has, with the nearest one or all of them.
pub(crate) fn unknown<N: Name>(name: &Ident) -> Error {
    let noun = N::NOUN;
    let hint = nearest(&name.to_string(), N::ALL.iter().map(|known| known.as_str()));
    Error::new_spanned(name, format!("unknown {noun} `{name}`, {hint}"))
}

/// A word that the option does not take.
pub(crate) fn unknown_word<W: Name>(option: impl Name, at: &impl ToTokens, value: &str) -> Error {
    let hint = nearest(value, W::ALL.iter().map(|known| known.as_str()));
    let option = option.as_str();
    Error::new_spanned(at, format!("`{option}` can't be `{value}`, {hint}"))
}

/// The second of two.
pub(crate) fn duplicate<N: Name>(name: &Ident) -> Error {
    let noun = N::NOUN;
    Error::new_spanned(name, format!("duplicate {noun} `{name}`"))
}

/// A name that means something, but elsewhere.
pub(crate) fn misplaced(name: &Ident, home: &str) -> Error {
    Error::new_spanned(name, format!("not expected here; {home}"))
}

/// `#[retry_job]` on a field.
pub(crate) fn struct_attribute_on_field(attribute: &syn::Attribute) -> Error {
    Error::new_spanned(
        attribute,
        format!(
            "not expected here; `#[{STRUCT_ATTRIBUTE}(...)]` belongs on the struct, a field takes `#[{FIELD_ATTRIBUTE}(...)]`"
        ),
    )
}

/// `#[job]` on the struct.
pub(crate) fn field_attribute_on_struct(attribute: &syn::Attribute) -> Error {
    Error::new_spanned(
        attribute,
        format!(
            "not expected here; `#[{FIELD_ATTRIBUTE}(...)]` belongs on a field, the struct takes `#[{STRUCT_ATTRIBUTE}(...)]`"
        ),
    )
}

// Forms.

/// A name with the wrong kind of value, or without one.
pub(crate) fn wrong_form<N: Name>(at: &impl ToTokens, option: N) -> Error {
    let (name, form) = (option.as_str(), option.form());
    Error::new_spanned(
        at,
        format!("`{name}` is not written like this; write `{form}`"),
    )
}

/// `#[attribute = value]`.
pub(crate) fn no_list(attribute: &syn::Attribute) -> Error {
    let path = attribute.path().to_token_stream();
    Error::new_spanned(
        attribute,
        format!("`#[{path}]` is not written like this; write `#[{path}(...)]`"),
    )
}

/// An attribute, or a list in one, that says nothing.
pub(crate) fn empty<N: Name>(at: &impl ToTokens, list: &str) -> Error {
    let hint = one_of(N::ALL.iter().map(|known| known.as_str()));
    Error::new_spanned(at, format!("`{list}` is empty, {hint}"))
}

/// A number, duration or length outside its bounds.
pub(crate) fn out_of_range(at: &impl ToTokens, name: &str, range: &str, got: &str) -> Error {
    Error::new_spanned(at, format!("`{name}` must be {range}, got {got}"))
}

/// A text that is no duration.
pub(crate) fn not_a_duration(at: &impl ToTokens, text: &str) -> Error {
    Error::new_spanned(
        at,
        format!(
            "{text:?} is not a duration; write whole numbers, each with `us`, `ms`, `s`, `m`, `h`, `d` or `w`, such as `1h30m`"
        ),
    )
}

/// A duration outside its bounds.
pub(crate) fn duration_out_of_range(at: &impl ToTokens, name: &str, min: &str, got: &str) -> Error {
    let range = format!("{min} to 100 years");
    out_of_range(at, name, &range, &format!("`{got}`"))
}

/// A text that is no type for a column.
pub(crate) fn bad_type(at: &impl ToTokens, error: &TypeError) -> Error {
    let message = match error {
        TypeError::Unknown(word) => {
            let names: Vec<_> = TypeName::ALL.iter().map(|name| name.as_str()).collect();
            let hint = match closest(word, &names).and_then(TypeName::find) {
                Some(name) => did_you_mean(name.form()),
                None => one_of(TypeName::ALL.iter().map(|name| name.form())),
            };
            format!("unknown column type `{word}`, {hint}")
        }
        TypeError::Form(name) => return wrong_form(at, *name),
        TypeError::Length(name, range, got) => {
            let (name, min, max) = (name.as_str(), range.start(), range.end());
            format!("the length of `{name}` must be {min} to {max}, got {got}")
        }
    };
    Error::new_spanned(at, message)
}

// Names of tables and columns.

/// A text that is no name.
pub(crate) fn bad_name(at: &impl ToTokens, what: &str, error: NameError) -> Error {
    Error::new_spanned(at, format!("the name of {what} {error}"))
}

/// `database.table`.
pub(crate) fn database_in_table(at: &impl ToTokens, database: &str, table: &str) -> Error {
    Error::new_spanned(
        at,
        format!(
            "a table has no database in its name; write `{table}` and put `{database}` in the URL of the connection"
        ),
    )
}

/// A name that one of the databases keeps for itself.
pub(crate) fn reserved_name(at: &impl ToTokens, name: &str, owner: &str) -> Error {
    Error::new_spanned(
        at,
        format!("`{name}` is kept by {owner} for itself; choose another name"),
    )
}

/// A column with the name of one of the framework's.
pub(crate) fn clash_with_own(at: &impl ToTokens, name: &str) -> Error {
    Error::new_spanned(
        at,
        format!(
            "the framework has a column `{name}`; choose another name, or rename the framework's in `columns(...)`"
        ),
    )
}

/// Two of the framework's columns under one name.
pub(crate) fn clash_of_own(at: &impl ToTokens, name: &str) -> Error {
    Error::new_spanned(
        at,
        format!("two of the framework's columns would be called `{name}`; choose another name"),
    )
}

/// A column with the name of another one that the struct has.
pub(crate) fn clash_with_other(at: &impl ToTokens, name: &str, owner: &str) -> Error {
    Error::new_spanned(
        at,
        format!("the column `{name}` is there twice, {owner} has it too; choose another name"),
    )
}

// Items.

/// An enum, a union, or a struct without named fields.
pub(crate) fn wrong_item(at: &impl ToTokens, what: &str) -> Error {
    Error::new_spanned(
        at,
        format!("`RetryJob` can be derived for structs with named fields, not for {what}"),
    )
}

/// A struct with parameters.
pub(crate) fn generic(at: &impl ToTokens, what: &str) -> Error {
    Error::new_spanned(
        at,
        format!("a job can't have {what}, since it is one table; write the types out"),
    )
}

/// No `table`.
pub(crate) fn missing_table(at: &Ident) -> Error {
    let table = snake_case(&at.to_string());
    Error::new_spanned(
        at,
        format!("a job needs a table; add `#[{STRUCT_ATTRIBUTE}(table = \"{table}\")]`"),
    )
}

/// Nothing that a row could hold.
pub(crate) fn nothing_stored(at: &Ident, has_fields: bool) -> Error {
    let message = if has_fields {
        "a job needs something to store; remove `skip` from a field"
    } else {
        "a job needs something to store; add a field"
    };
    Error::new_spanned(at, message)
}

// Options that look at each other.

/// Two options of which one can stay.
pub(crate) fn conflict(at: &impl ToTokens, name: &str, with: &str) -> Error {
    Error::new_spanned(
        at,
        format!("`{name}` conflicts with `{with}`; remove one of them"),
    )
}

/// An option that stands on another one.
pub(crate) fn needs(at: &impl ToTokens, name: &str, other: &str) -> Error {
    Error::new_spanned(
        at,
        format!("`{name}` needs `{other}`; add `{other}` or remove `{name}`"),
    )
}

/// An option that changes nothing.
pub(crate) fn no_effect(at: &impl ToTokens, name: &str, why: &str, fix: &str) -> Error {
    Error::new_spanned(at, format!("`{name}` has no effect {why}; {fix}"))
}

/// `retry(...)` without a delay.
pub(crate) fn missing_delay(at: &impl ToTokens) -> Error {
    let kinds: Vec<_> = RetryOption::KINDS
        .iter()
        .map(|kind| format!("`{}`", kind.as_str()))
        .collect();
    let kinds = kinds.join(", ");
    Error::new_spanned(at, format!("`retry` needs a delay; add one of {kinds}"))
}

/// A missing part of a list.
pub(crate) fn missing<N: Name>(at: &impl ToTokens, list: &str, part: N) -> Error {
    let (name, form) = (part.as_str(), part.form());
    Error::new_spanned(at, format!("`{list}` needs `{name}`; add `{form}`"))
}

/// A cap below the first delay, so that none can grow.
pub(crate) fn cap_too_low(at: &impl ToTokens, kind: RetryOption, lowest: &str) -> Error {
    let kind = kind.as_str();
    Error::new_spanned(
        at,
        format!(
            "`cap` stops `{kind}` at its start of `{lowest}`, so that no delay grows; raise it or use `fixed`"
        ),
    )
}

/// More delays than there can be retries.
pub(crate) fn schedule_too_long(at: &impl ToTokens, delays: usize, max_attempts: u16) -> Error {
    let retries = max_attempts - 1;
    let all = delays + 1;
    Error::new_spanned(
        at,
        format!(
            "`schedule` has {delays} delays and `max_attempts = {max_attempts}` leaves room for {retries}; shorten it or write `max_attempts = {all}`"
        ),
    )
}

// Shard keys.

/// A template's reference to a field, as messages show it.
const FIELD: &str = "{field}";

/// A text that is no template.
pub(crate) fn bad_template(at: &impl ToTokens, error: &TemplateError) -> Error {
    let message = match error {
        TemplateError::Unclosed => {
            format!("the template has a `{{` without `}}`; write `{FIELD}`, or `{{{{` for a brace")
        }
        TemplateError::Unopened => {
            format!("the template has a `}}` without `{{`; write `{FIELD}`, or `}}}}` for a brace")
        }
        TemplateError::NotAField(text) => {
            format!(
                "the template has no field in `{{{text}}}`; write `{FIELD}` or `{{field:%Y%m%d}}`"
            )
        }
        TemplateError::NoField => format!(
            "the template names no field, so all jobs would share one shard; write `{FIELD}`"
        ),
        TemplateError::NoConversion { field } => {
            format!(
                "the format of `{field}` shows nothing of it; write one such as `{{{field}:%Y%m%d}}`"
            )
        }
        TemplateError::Conversion { field, conversion } => format!(
            "`{conversion}` in the format of `{field}` is not supported; use the date and time conversions of strftime, such as `%Y%m%d` or `%H`"
        ),
    };
    Error::new_spanned(at, message)
}

/// A field in a template that the struct does not have.
pub(crate) fn unknown_field<'a>(
    at: &impl ToTokens,
    name: &str,
    fields: impl Iterator<Item = &'a str>,
) -> Error {
    let hint = nearest(name, fields);
    Error::new_spanned(
        at,
        format!("unknown field `{name}` in the template, {hint}"),
    )
}

/// A field in a template that is not stored.
pub(crate) fn skipped_in_template(at: &impl ToTokens, name: &str) -> Error {
    Error::new_spanned(
        at,
        format!(
            "the template has `{name}`, which `skip` keeps out of the row; use a field that is stored"
        ),
    )
}

// Fields.

/// A floating-point number in a key.
pub(crate) fn float_in_key(at: &impl ToTokens, option: FieldOption) -> Error {
    let name = option.as_str();
    Error::new_spanned(
        at,
        format!(
            "`{name}` can't be a floating-point number, which may differ in its last bit; use an integer or a text"
        ),
    )
}

/// A field that borrows.
pub(crate) fn borrowed_field(at: &impl ToTokens) -> Error {
    Error::new_spanned(
        at,
        "a field can't borrow, since a job is read back from its row; use an owned type, such as `String`",
    )
}

/// A Rust type that no column holds.
pub(crate) fn not_a_column(at: &impl ToTokens, found: &str, instead: &str) -> Error {
    Error::new_spanned(at, format!("no column can hold `{found}`; use {instead}"))
}

/// An index over a type that can't have one.
pub(crate) fn index_on_text(at: &impl ToTokens) -> Error {
    Error::new_spanned(
        at,
        "`index` can't be on a column of type `TEXT`; give it a length with `type = \"VARCHAR(n)\"`",
    )
}

/// An index over more bytes than MySQL takes.
pub(crate) fn index_too_long(at: &impl ToTokens, bytes: u32, max: u32) -> Error {
    Error::new_spanned(
        at,
        format!(
            "`index` has at most {max} bytes and this type takes {bytes}, a character of `VARCHAR` counts 4; give a shorter type"
        ),
    )
}

/// A `#[serde]` on the struct that changes its form in a way the payload can't
/// follow.
pub(crate) fn serde_on_struct(at: &impl ToTokens, name: &str) -> Error {
    let fix = if name == "default" {
        "write it on the fields"
    } else {
        "remove it, or put those fields into a struct of their own"
    };
    Error::new_spanned(
        at,
        format!("`serde({name})` on the struct does not reach the payload; {fix}"),
    )
}
