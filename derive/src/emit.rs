//! The generated impl: a plain description of the job, and how it is taken
//! apart and put together.

mod decode;
mod encode;
mod payload;
mod schema;

use proc_macro2::{Ident, Span, TokenStream, TokenTree};
use quote::{ToTokens, quote};

use crate::model::Model;

/// The path of the core in generated code.
pub(crate) fn core() -> TokenStream {
    quote!(::retryjob::__private::core)
}

/// The generated code of a job type.
pub(crate) fn emit(model: &Model) -> TokenStream {
    let ident = &model.ident;
    let core = core();
    let payload = payload::structs(model);
    let schema = schema::constants(model);
    let helpers = encode::helpers(model);
    let encode = encode::function(model);
    let decode = decode::function(model);
    quote! {
        #[doc(hidden)]
        #[allow(unused_qualifications, clippy::absolute_paths)]
        const _: () = {
            #payload
            #schema
            #helpers

            #[automatically_derived]
            impl #core::RetryJob for #ident {
                const SCHEMA: #core::JobSchema = __RETRYJOB_SCHEMA;
                #encode
                #decode
            }
        };
    }
}

/// A type for use outside the struct, where `Self` would be something else.
fn type_of(ty: &syn::Type, ident: &Ident) -> TokenStream {
    without_self(ty.to_token_stream(), ident)
}

fn without_self(tokens: TokenStream, ident: &Ident) -> TokenStream {
    tokens
        .into_iter()
        .map(|tree| match tree {
            TokenTree::Ident(word) if word == "Self" => TokenTree::Ident(ident.clone()),
            TokenTree::Group(group) => {
                let inner = without_self(group.stream(), ident);
                let mut changed = proc_macro2::Group::new(group.delimiter(), inner);
                changed.set_span(group.span());
                TokenTree::Group(changed)
            }
            other => other,
        })
        .collect()
}

/// The place of some tokens, with names looked up where the derive stands.
fn span_of(tokens: &impl ToTokens) -> Span {
    let first = tokens.to_token_stream().into_iter().next();
    let span = first.map_or_else(Span::call_site, |tree| tree.span());
    span.resolved_at(Span::call_site())
}
