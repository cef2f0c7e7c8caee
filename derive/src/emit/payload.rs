//! The structs that bring the payload fields to JSON and back.

use proc_macro2::TokenStream;
use quote::quote;

use super::type_of;
use crate::model::Model;

/// Two structs with the payload fields, under the user's `#[serde]`
/// attributes.
///
/// Reading makes `__RetryjobPayload`. Writing must not move the fields out of
/// the job, nor put references in their place: a function in
/// `skip_serializing_if` or `with` expects the field's own type. serde's
/// `remote` does that, so `__RetryjobPayloadFields` only lists the fields and
/// the job itself is written.
pub(super) fn structs(model: &Model) -> TokenStream {
    if !model.has_payload() {
        return TokenStream::new();
    }
    let ident = &model.ident;
    let remote = ident.to_string();
    let container = &model.serde;
    let fields: Vec<_> = model
        .payload()
        .map(|(field, serde)| {
            let (name, ty) = (&field.ident, type_of(&field.ty, ident));
            quote!(#(#serde)* #name: #ty)
        })
        .collect();
    quote! {
        #[derive(::retryjob::__private::serde::Deserialize)]
        #[serde(crate = "::retryjob::__private::serde" #(, #container)*)]
        struct __RetryjobPayload {
            #(#fields,)*
        }

        #[allow(dead_code)]
        #[derive(::retryjob::__private::serde::Serialize)]
        #[serde(crate = "::retryjob::__private::serde", remote = #remote #(, #container)*)]
        struct __RetryjobPayloadFields {
            #(#fields,)*
        }

        struct __RetryjobPayloadRef<'__retryjob>(&'__retryjob #ident);

        #[automatically_derived]
        impl ::retryjob::__private::serde::Serialize for __RetryjobPayloadRef<'_> {
            fn serialize<__RetryjobSerializer>(
                &self,
                __retryjob_serializer: __RetryjobSerializer,
            ) -> ::core::result::Result<__RetryjobSerializer::Ok, __RetryjobSerializer::Error>
            where
                __RetryjobSerializer: ::retryjob::__private::serde::Serializer,
            {
                __RetryjobPayloadFields::serialize(self.0, __retryjob_serializer)
            }
        }
    }
}
