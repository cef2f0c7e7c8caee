//! The `#[serde]` attributes of the struct, sorted by whether the payload can
//! have them too.

use syn::{Attribute, Meta, Token, punctuated::Punctuated};

/// What shapes the fields, and therefore the payload's as well.
const COPIED: [&str; 3] = ["rename_all", "deny_unknown_fields", "expecting"];

/// What does not shape the JSON of the payload.
const HARMLESS: [&str; 3] = ["bound", "crate", "rename"];

/// The `#[serde]` attributes of the struct.
#[derive(Default)]
pub(crate) struct ContainerSerde {
    /// What the payload's structs take over.
    pub(crate) copied: Vec<Meta>,
    /// What they can't.
    pub(crate) refused: Vec<Meta>,
}

impl ContainerSerde {
    pub(super) fn parse(attributes: &[Attribute]) -> Self {
        let mut sorted = Self::default();
        let lists = attributes
            .iter()
            .filter(|attribute| attribute.path().is_ident("serde"))
            // What serde itself can't read, serde's derive reports.
            .filter_map(|attribute| {
                attribute
                    .parse_args_with(Punctuated::<Meta, Token![,]>::parse_terminated)
                    .ok()
            });
        for meta in lists.flatten() {
            let is_one_of = |names: &[&str]| names.iter().any(|name| meta.path().is_ident(name));
            if is_one_of(&COPIED) {
                sorted.copied.push(meta);
            } else if !is_one_of(&HARMLESS) {
                sorted.refused.push(meta);
            }
        }
        sorted
    }
}
