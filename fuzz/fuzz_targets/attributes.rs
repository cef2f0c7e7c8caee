//! Whatever a struct and its attributes say, the derive answers with code that
//! parses, or with mistakes that do.
#![no_main]

use libfuzzer_sys::fuzz_target;

// The derive's modules from its own source: a proc macro exports nothing else.
#[path = "../../derive/src"]
#[allow(dead_code, reason = "the macro's entry point is left out")]
mod derive {
    pub(crate) mod check;
    pub(crate) mod diagnostics;
    pub(crate) mod duration;
    pub(crate) mod emit;
    pub(crate) mod fallback;
    pub(crate) mod ident;
    pub(crate) mod model;
    pub(crate) mod names;
    pub(crate) mod parse;
    pub(crate) mod sql_type;
    pub(crate) mod template;
}
use derive::{
    check, diagnostics, duration, emit, fallback, ident, model, names, parse, sql_type, template,
};

/// The steps of the derive, in its order.
fn expand(input: &syn::DeriveInput) -> syn::Result<proc_macro2::TokenStream> {
    let errors = diagnostics::Errors::new();
    let model = parse::parse(input, &errors)
        .map(|parsed| check::check(parsed, &errors))
        .and_then(model::Model::new);
    let model = errors.finish(model)?;
    Ok(emit::emit(&model))
}

fuzz_target!(|text: &str| {
    // A whole struct, or only what stands within its attribute and a field's.
    let (own, field) = text.split_once('\n').unwrap_or((text, "skip"));
    let attributes =
        format!("#[retry_job({own})] struct Job {{ #[job({field})] name: u64, memo: String }}");
    for source in [text, &attributes] {
        let Ok(input) = syn::parse_str::<syn::DeriveInput>(source) else {
            continue;
        };
        let tokens = expand(&input).unwrap_or_else(|mistakes| {
            assert!(!mistakes.to_string().is_empty());
            fallback::fallback(&input, &mistakes)
        });
        syn::parse2::<syn::File>(tokens).expect("what the derive answers is Rust");
    }
});
