//! From syn to attributes, each with the tokens it came from.
//!
//! What one option can be is decided here: its form, its bounds, its grammar.
//! What several options mean together is for `check`.

mod entry;
mod field;
mod retry;
mod serde;
mod value;

use std::time::Duration;

use syn::{Attribute, Data, DeriveInput, Fields, Ident};

use crate::{
    diagnostics::{self, Errors},
    ident::SqlName,
    names::{
        FIELD_ATTRIBUTE, FinishedName, JobOption, LaneOption, LeaseByName, Name as _, OwnColumn,
        STRUCT_ATTRIBUTE, home_of,
    },
    template::Piece,
};

pub(crate) use self::{
    entry::{Entry, Given, Slot},
    field::{ParsedField, default_column_name},
    retry::ParsedRetry,
};

/// A struct with everything its attributes say.
pub(crate) struct Parsed {
    pub(crate) ident: Ident,
    pub(crate) options: JobOptions,
    pub(crate) fields: Vec<ParsedField>,
    /// What of the struct's `#[serde]` the payload takes over, and what it
    /// can't.
    pub(crate) serde: serde::ContainerSerde,
}

/// The options of the struct.
#[derive(Default)]
pub(crate) struct JobOptions {
    pub(crate) table: Slot<SqlName>,
    pub(crate) shards: Slot<u16>,
    pub(crate) shard_key: Slot<Vec<Piece>>,
    pub(crate) shard_key_column: Slot<SqlName>,
    pub(crate) lease: Slot<Duration>,
    pub(crate) timeout: Slot<Duration>,
    pub(crate) retry: Slot<ParsedRetry>,
    pub(crate) lanes: Slot<ParsedLanes>,
    pub(crate) batch: Slot<u16>,
    pub(crate) spread: Slot<Duration>,
    pub(crate) finished: Slot<FinishedName>,
    pub(crate) lease_by: Slot<LeaseByName>,
    pub(crate) columns: Slot<Vec<Renamed>>,
    /// Whether an attribute could not be read, so that anything may be missing.
    pub(crate) has_unread: bool,
}

/// The weights of `lanes(...)`.
#[derive(Default)]
pub(crate) struct ParsedLanes {
    pub(crate) fresh: Slot<u16>,
    pub(crate) retry: Slot<u16>,
}

/// One entry of `columns(...)`.
pub(crate) struct Renamed {
    pub(crate) column: OwnColumn,
    pub(crate) to: Given<SqlName>,
}

/// Reads a derive's input. `None` when it is no struct with named fields.
pub(crate) fn parse(input: &DeriveInput, errors: &Errors) -> Option<Parsed> {
    let options = job_options(&input.attrs, errors);
    generics(input, errors);
    let fields = match &input.data {
        Data::Struct(data) => match &data.fields {
            Fields::Named(fields) => &fields.named,
            Fields::Unnamed(fields) => {
                errors.push(diagnostics::wrong_item(fields, "tuple structs"));
                return None;
            }
            Fields::Unit => {
                errors.push(diagnostics::wrong_item(&input.ident, "unit structs"));
                return None;
            }
        },
        Data::Enum(data) => {
            errors.push(diagnostics::wrong_item(&data.enum_token, "enums"));
            return None;
        }
        Data::Union(data) => {
            errors.push(diagnostics::wrong_item(&data.union_token, "unions"));
            return None;
        }
    };
    Some(Parsed {
        ident: input.ident.clone(),
        options,
        fields: fields
            .iter()
            .filter_map(|field| ParsedField::parse(field, errors))
            .collect(),
        serde: serde::ContainerSerde::parse(&input.attrs),
    })
}

fn generics(input: &DeriveInput, errors: &Errors) {
    for param in &input.generics.params {
        let what = match param {
            syn::GenericParam::Lifetime(_) => "lifetimes",
            syn::GenericParam::Type(_) => "type parameters",
            syn::GenericParam::Const(_) => "const parameters",
        };
        errors.push(diagnostics::generic(param, what));
    }
}

fn job_options(attributes: &[Attribute], errors: &Errors) -> JobOptions {
    let mut options = JobOptions::default();
    for attribute in attributes {
        if attribute.path().is_ident(FIELD_ATTRIBUTE) {
            errors.push(diagnostics::field_attribute_on_struct(attribute));
        } else if attribute.path().is_ident(STRUCT_ATTRIBUTE) {
            match entry::of_attribute::<JobOption>(attribute) {
                Ok(entries) => entries.iter().for_each(|entry| options.read(entry, errors)),
                Err(error) => {
                    options.has_unread = true;
                    errors.push(error);
                }
            }
        }
    }
    options
}

impl JobOptions {
    fn read(&mut self, entry: &Entry, errors: &Errors) {
        let Some(option) = JobOption::find(&entry.name.to_string()) else {
            errors.push(unknown_or_misplaced::<JobOption>(&entry.name));
            return;
        };
        match option {
            JobOption::Table => self.table.fill(option, entry, errors, value::table),
            JobOption::Shards => self.shards.fill(option, entry, errors, |option, entry| {
                value::number(option, entry, 1..=4096)
            }),
            JobOption::ShardKey => self.shard_key.fill(option, entry, errors, value::template),
            JobOption::ShardKeyColumn => {
                self.shard_key_column
                    .fill(option, entry, errors, value::column);
            }
            JobOption::Lease => self.lease.fill(option, entry, errors, |option, entry| {
                value::duration(option, entry, Duration::from_millis(100))
            }),
            JobOption::Timeout => self.timeout.fill(option, entry, errors, value::span),
            JobOption::Retry => self.retry.fill(option, entry, errors, |option, entry| {
                entry::given(entry, ParsedRetry::parse(option, entry, errors)?)
            }),
            JobOption::Lanes => self.lanes.fill(option, entry, errors, |option, entry| {
                entry::given(entry, ParsedLanes::parse(option, entry, errors)?)
            }),
            JobOption::Batch => self.batch.fill(option, entry, errors, |option, entry| {
                value::number(option, entry, 1..=1000)
            }),
            JobOption::Spread => self.spread.fill(option, entry, errors, value::span),
            JobOption::Finished => self.finished.fill(option, entry, errors, value::word),
            JobOption::LeaseBy => self.lease_by.fill(option, entry, errors, value::word),
            JobOption::Columns => self.columns.fill(option, entry, errors, |option, entry| {
                entry::given(entry, renamed(option, entry, errors)?)
            }),
        }
    }
}

impl ParsedLanes {
    fn parse(option: JobOption, entry: &Entry, errors: &Errors) -> syn::Result<Self> {
        let mut lanes = Self::default();
        for entry in entry.list::<_, LaneOption>(option)? {
            let Some(lane) = LaneOption::find(&entry.name.to_string()) else {
                errors.push(diagnostics::unknown::<LaneOption>(&entry.name));
                continue;
            };
            let slot = match lane {
                LaneOption::Fresh => &mut lanes.fresh,
                LaneOption::Retry => &mut lanes.retry,
            };
            slot.fill(lane, &entry, errors, |lane, entry| {
                value::number(lane, entry, 1..=1000)
            });
        }
        Ok(lanes)
    }
}

fn renamed(option: JobOption, entry: &Entry, errors: &Errors) -> syn::Result<Vec<Renamed>> {
    let mut all: Vec<Renamed> = Vec::new();
    for entry in entry.list::<_, OwnColumn>(option)? {
        let Some(column) = OwnColumn::find(&entry.name.to_string()) else {
            errors.push(diagnostics::unknown::<OwnColumn>(&entry.name));
            continue;
        };
        if all.iter().any(|other| other.column == column) {
            errors.push(diagnostics::duplicate::<OwnColumn>(&entry.name));
        } else if let Some(to) = errors.take(value::column(column, &entry)) {
            all.push(Renamed { column, to });
        }
    }
    Ok(all)
}

/// What to say about a name that is not one of `N`.
fn unknown_or_misplaced<N: crate::names::Name>(name: &Ident) -> syn::Error {
    match home_of(&name.to_string()) {
        Some(home) => diagnostics::misplaced(name, &home),
        None => diagnostics::unknown::<N>(name),
    }
}
