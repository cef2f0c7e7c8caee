//! Bounds and names that the derive repeats, held against the core.
//!
//! The derive can't depend on the core, so the sources are compared.

use std::fs;

use crate::{
    ident::{COLUMN_BYTES_MAX, TABLE_BYTES_MAX},
    names::{Name as _, OwnColumn},
};

fn core_source(file: &str) -> String {
    let path = format!("{}/../core/src/{file}", env!("CARGO_MANIFEST_DIR"));
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"))
}

#[test]
fn bounds_are_those_of_the_core() {
    let table = format!("self.table.as_str().len() <= {TABLE_BYTES_MAX}");
    let column = format!("IDENT_BYTES_MAX: usize = {COLUMN_BYTES_MAX};");
    for (file, line) in [
        ("schema.rs", table.as_str()),
        ("schema.rs", "BATCH_MAX: u16 = 1000;"),
        ("schema.rs", "INDEX_BYTES_MAX: u32 = 3072;"),
        ("schema.rs", "self.lease.as_millis() >= 100"),
        ("shard.rs", "SHARDS_MAX: u16 = 4096;"),
        ("ident.rs", column.as_str()),
        ("time.rs", "Duration::from_secs(100 * 366 * 24 * 60 * 60);"),
    ] {
        assert!(core_source(file).contains(line), "{file} has no {line:?}");
    }
}

#[test]
fn the_default_attempts_are_those_of_the_core() {
    assert!(core_source("retry.rs").contains("max_attempts: 10,"));
}

#[test]
fn framework_columns_are_those_of_the_core() {
    let file = syn::parse_file(&core_source("schema.rs")).unwrap();
    let fields = file.items.iter().find_map(|item| match item {
        syn::Item::Struct(item) if item.ident == "ColumnNames" => Some(&item.fields),
        _ => None,
    });
    let theirs: Vec<_> = fields
        .expect("the core has `ColumnNames`")
        .iter()
        .filter_map(|field| field.ident.as_ref().map(ToString::to_string))
        .collect();
    let ours: Vec<_> = OwnColumn::ALL
        .iter()
        .map(|column| column.as_str())
        .collect();
    assert_eq!(ours, theirs);
}
