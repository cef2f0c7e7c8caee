//! A stub impl, so that one mistake is reported once and not again as a
//! missing trait.

use proc_macro2::TokenStream;
use quote::quote;
use syn::{DeriveInput, Error};

use crate::emit::core;

/// Every mistake, and an impl that compiles. The program does not, so the impl
/// never runs.
pub(crate) fn fallback(input: &DeriveInput, mistakes: &Error) -> TokenStream {
    let mistakes = mistakes.to_compile_error();
    let ident = &input.ident;
    let (impl_generics, type_generics, where_clause) = input.generics.split_for_impl();
    let mut bounds = where_clause.cloned();
    if !input.generics.params.is_empty() {
        let clause = bounds.get_or_insert_with(|| syn::parse_quote!(where));
        clause.predicates.push(syn::parse_quote! {
            Self: ::core::marker::Send + ::core::marker::Sync + 'static
        });
    }
    let core = core();
    quote! {
        #mistakes

        #[automatically_derived]
        impl #impl_generics #core::RetryJob for #ident #type_generics #bounds {
            const SCHEMA: #core::JobSchema =
                #core::JobSchema::new(#core::Ident::new("invalid"));

            fn encode(
                &self,
            ) -> ::core::result::Result<#core::job::Encoded, #core::EncodeError> {
                ::core::unreachable!("the derive reported a mistake")
            }

            fn decode(
                _: #core::job::Parts,
            ) -> ::core::result::Result<Self, #core::DecodeError> {
                ::core::unreachable!("the derive reported a mistake")
            }
        }
    }
}
