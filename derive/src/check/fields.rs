//! What one field's attributes and its type say together.

use syn::{GenericArgument, PathArguments, PathSegment, Type};

use crate::{
    diagnostics::{self, Errors},
    names::{FieldOption, Name as _},
    parse::ParsedField,
};

/// Bytes that MySQL allows in the key of one index.
pub(crate) const INDEX_BYTES_MAX: u32 = 3072;

/// Types that look like columns and are none, with what to use.
const NO_COLUMNS: [(&str, &str); 6] = [
    ("f32", "`f64`"),
    ("usize", "`u64`"),
    ("isize", "`i64`"),
    ("u128", "`u64`, or `String`"),
    ("i128", "`i64`, or `String`"),
    ("char", "`String`"),
];

pub(super) fn check(field: &ParsedField, errors: &Errors) {
    if field.skip.name().is_some() {
        skip(field, errors);
        return;
    }
    index(field, errors);
    rust_type(field, errors);
}

fn skip(field: &ParsedField, errors: &Errors) {
    for (option, name) in [
        (FieldOption::ShardBy, field.shard_by.name()),
        (FieldOption::Unique, field.unique.name()),
        (FieldOption::Column, field.column.name()),
        (FieldOption::Index, field.index.name()),
    ] {
        if let Some(name) = name {
            let skip = FieldOption::Skip.as_str();
            errors.push(diagnostics::conflict(name, option.as_str(), skip));
        }
    }
}

fn index(field: &ParsedField, errors: &Errors) {
    let Some(index) = field.index.name() else {
        return;
    };
    if field.column.name().is_none() {
        let (index_name, column) = (FieldOption::Index, FieldOption::Column);
        errors.push(diagnostics::needs(
            index,
            index_name.as_str(),
            column.as_str(),
        ));
        return;
    }
    let column = field.column.given().map(|given| &given.value);
    let Some(given) = column.and_then(|column| column.sql_type.given()) else {
        return;
    };
    match given.value.index_bytes() {
        None => errors.push(diagnostics::index_on_text(&given.tokens)),
        Some(bytes) if bytes > INDEX_BYTES_MAX => errors.push(diagnostics::index_too_long(
            &given.tokens,
            bytes,
            INDEX_BYTES_MAX,
        )),
        Some(_) => {}
    }
}

fn rust_type(field: &ParsedField, errors: &Errors) {
    if let Type::Reference(_) = field.ty {
        errors.push(diagnostics::borrowed_field(&field.ty));
        return;
    }
    let Some(segment) = last_segment(within_option(&field.ty)) else {
        return;
    };
    let name = segment.ident.to_string();
    let is_float = name == "f32" || name == "f64";
    for (option, in_key) in [
        (FieldOption::Unique, field.unique.name()),
        (FieldOption::ShardBy, field.shard_by.name()),
    ] {
        if is_float && in_key.is_some() {
            errors.push(diagnostics::float_in_key(&field.ty, option));
        }
    }
    let known = NO_COLUMNS.iter().find(|(found, _)| *found == name);
    if let (Some((found, instead)), Some(_)) = (known, field.column.name()) {
        errors.push(diagnostics::not_a_column(segment, found, instead));
    }
}

/// The `T` of `Option<T>`, and any other type as it is.
fn within_option(ty: &Type) -> &Type {
    let arguments = last_segment(ty)
        .filter(|segment| segment.ident == "Option")
        .map(|segment| &segment.arguments);
    match arguments {
        Some(PathArguments::AngleBracketed(list)) => match list.args.first() {
            Some(GenericArgument::Type(inner)) => inner,
            _ => ty,
        },
        _ => ty,
    }
}

fn last_segment(ty: &Type) -> Option<&PathSegment> {
    match ty {
        Type::Path(path) if path.qself.is_none() => path.path.segments.last(),
        Type::Group(group) => last_segment(&group.elem),
        _ => None,
    }
}
