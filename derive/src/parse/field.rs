//! `#[job(...)]` on a field.

use syn::{Attribute, Field, Ident, Result, Type, ext::IdentExt as _};

use super::{
    entry::{self, Entry, EntryValue, Slot, given},
    value,
};
use crate::{
    diagnostics::{self, Errors},
    ident::SqlName,
    names::{ColumnOption, FIELD_ATTRIBUTE, FieldOption, Name as _, STRUCT_ATTRIBUTE},
    sql_type::SqlType,
};

/// A field with everything its attributes say.
pub(crate) struct ParsedField {
    pub(crate) ident: Ident,
    /// The name without `r#`.
    pub(crate) name: String,
    pub(crate) ty: Type,
    pub(crate) shard_by: Slot<()>,
    pub(crate) unique: Slot<()>,
    pub(crate) column: Slot<ParsedColumn>,
    pub(crate) index: Slot<()>,
    pub(crate) skip: Slot<()>,
    /// Its `#[serde]` attributes, as they are.
    pub(crate) serde: Vec<Attribute>,
}

/// The options of `column(...)`.
#[derive(Default)]
pub(crate) struct ParsedColumn {
    pub(crate) name: Slot<SqlName>,
    pub(crate) sql_type: Slot<SqlType>,
}

impl ParsedField {
    /// Reads a field. `None` only for one without a name.
    pub(super) fn parse(field: &Field, errors: &Errors) -> Option<Self> {
        let ident = field.ident.clone()?;
        let mut parsed = Self {
            name: ident.unraw().to_string(),
            ident,
            ty: field.ty.clone(),
            shard_by: Slot::Absent,
            unique: Slot::Absent,
            column: Slot::Absent,
            index: Slot::Absent,
            skip: Slot::Absent,
            serde: Vec::new(),
        };
        for attribute in &field.attrs {
            parsed.attribute(attribute, errors);
        }
        Some(parsed)
    }

    fn attribute(&mut self, attribute: &Attribute, errors: &Errors) {
        if attribute.path().is_ident(STRUCT_ATTRIBUTE) {
            errors.push(diagnostics::struct_attribute_on_field(attribute));
        } else if attribute.path().is_ident("serde") {
            self.serde.push(attribute.clone());
        } else if attribute.path().is_ident(FIELD_ATTRIBUTE) {
            let entries = errors.take(entry::of_attribute::<FieldOption>(attribute));
            for entry in entries.unwrap_or_default() {
                self.read(&entry, errors);
            }
        }
    }

    fn read(&mut self, entry: &Entry, errors: &Errors) {
        let Some(option) = FieldOption::find(&entry.name.to_string()) else {
            errors.push(super::unknown_or_misplaced::<FieldOption>(&entry.name));
            return;
        };
        match option {
            FieldOption::ShardBy => self.shard_by.fill(option, entry, errors, value::flag),
            FieldOption::Unique => self.unique.fill(option, entry, errors, value::flag),
            FieldOption::Column => self.column.fill(option, entry, errors, |option, entry| {
                given(entry, ParsedColumn::parse(option, entry, errors)?)
            }),
            FieldOption::Index => self.index.fill(option, entry, errors, value::flag),
            FieldOption::Skip => self.skip.fill(option, entry, errors, value::flag),
        }
    }
}

impl ParsedColumn {
    fn parse(option: FieldOption, entry: &Entry, errors: &Errors) -> Result<Self> {
        let mut column = Self::default();
        let entries = match &entry.value {
            EntryValue::Flag => Vec::new(),
            EntryValue::Expr(_) | EntryValue::List(_) => entry.list::<_, ColumnOption>(option)?,
        };
        for entry in entries {
            let Some(option) = ColumnOption::find(&entry.name.to_string()) else {
                errors.push(super::unknown_or_misplaced::<ColumnOption>(&entry.name));
                continue;
            };
            match option {
                ColumnOption::Name => column.name.fill(option, &entry, errors, value::column),
                ColumnOption::Type => column
                    .sql_type
                    .fill(option, &entry, errors, value::sql_type),
            }
        }
        Ok(column)
    }
}

/// The name of a field's column when none is given.
pub(crate) fn default_column_name(field: &ParsedField) -> Result<SqlName> {
    value::column_name(&field.ident, &field.name)
}
