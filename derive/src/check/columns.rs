//! No two columns of one name, and no renaming that changes nothing.

use proc_macro2::TokenStream;
use quote::ToTokens as _;

use super::is_payload;
use crate::{
    diagnostics::{self, Errors},
    ident::SqlName,
    names::{Name as _, OwnColumn},
    parse::{Parsed, ParsedField, Renamed, default_column_name},
};

pub(super) fn check(parsed: &Parsed, errors: &Errors) {
    let mut taken = own_names(parsed, errors);
    if let Some(given) = parsed.options.shard_key_column.given() {
        taken.take(&given.value, &given.tokens, "`shard_key_column`", errors);
    }
    for field in &parsed.fields {
        if field.column.name().is_none() {
            continue;
        }
        if let Some((name, at)) = column_of(field, errors) {
            let owner = format!("the field `{}`", field.name);
            taken.take(&name, &at, &owner, errors);
        }
    }
}

/// The name of a field's column, with the tokens that decide it.
fn column_of(field: &ParsedField, errors: &Errors) -> Option<(SqlName, TokenStream)> {
    let given = field.column.given()?;
    if given.value.name.name().is_none() {
        let name = errors.take(default_column_name(field))?;
        return Some((name, field.ident.to_token_stream()));
    }
    let name = given.value.name.given()?;
    if name.value.as_str() == field.name {
        let written = format!("name = {}", name.tokens);
        errors.push(already_called_that(&name.tokens, &written));
    }
    Some((name.value.clone(), name.tokens.clone()))
}

fn already_called_that(at: &TokenStream, written: &str) -> syn::Error {
    let why = "since the column is called that already";
    diagnostics::no_effect(at, written, why, "remove it")
}

/// Names that columns have, with whose they are.
struct Taken {
    names: Vec<(SqlName, Owner)>,
}

enum Owner {
    /// One of the framework's columns.
    Framework,
    /// Something that the user named.
    User(String),
}

impl Taken {
    fn take(&mut self, name: &SqlName, at: &TokenStream, owner: &str, errors: &Errors) {
        let other = self
            .names
            .iter()
            .find(|(other, _)| other.is_same(name.as_str()));
        match other {
            None => self.names.push((name.clone(), Owner::User(owner.into()))),
            Some((_, Owner::Framework)) => {
                errors.push(diagnostics::clash_with_own(at, name.as_str()));
            }
            Some((_, Owner::User(other))) => {
                errors.push(diagnostics::clash_with_other(at, name.as_str(), other));
            }
        }
    }
}

/// The framework's columns as they are called in this table.
fn own_names(parsed: &Parsed, errors: &Errors) -> Taken {
    let mut taken = Taken { names: Vec::new() };
    let given = parsed.options.columns.given();
    let renamed: &[Renamed] = given.map_or(&[], |given| &given.value);
    let is_renamed = |column| renamed.iter().any(|renamed| renamed.column == column);
    for &column in OwnColumn::ALL {
        if !is_renamed(column)
            && let Ok(name) = SqlName::parse(column.as_str(), crate::ident::COLUMN_BYTES_MAX)
        {
            taken.names.push((name, Owner::Framework));
        }
    }
    for Renamed { column, to } in renamed {
        let name = column.as_str();
        if to.value.as_str() == name {
            let written = format!("{name} = {}", to.tokens);
            errors.push(already_called_that(&to.tokens, &written));
        } else if *column == OwnColumn::Payload && !parsed.fields.iter().any(is_payload) {
            let why = "since every field has a column";
            errors.push(diagnostics::no_effect(&to.name, name, why, "remove it"));
        }
        let clashes = |(other, _): &&(SqlName, Owner)| other.is_same(to.value.as_str());
        if taken.names.iter().any(|entry| clashes(&entry)) {
            errors.push(diagnostics::clash_of_own(&to.tokens, to.value.as_str()));
        } else {
            taken.names.push((to.value.clone(), Owner::Framework));
        }
    }
    taken
}
