//! `decode`: the struct put together.

use proc_macro2::TokenStream;
use quote::{quote, quote_spanned};

use super::{core, span_of};
use crate::model::{Model, Store};

/// `RetryJob::decode`. Columns come in the schema's order, which is that of the
/// fields.
pub(super) fn function(model: &Model) -> TokenStream {
    let core = core();
    let payload = model.has_payload().then(|| {
        quote! {
            let __retryjob_payload = __retryjob_parts.payload::<__RetryjobPayload>()?;
        }
    });
    let fields = model.fields.iter().map(|field| {
        let (ident, ty) = (&field.ident, &field.ty);
        let value = match &field.store {
            Store::Column(column) => {
                let name = column.name.as_str();
                quote_spanned!(span_of(ty)=> __retryjob_parts.column::<#ty>(#name)?)
            }
            Store::Payload(_) => quote!(__retryjob_payload.#ident),
            Store::Skip => {
                quote_spanned!(span_of(ty)=> <#ty as ::core::default::Default>::default())
            }
        };
        quote!(#ident: #value)
    });
    quote! {
        fn decode(
            mut __retryjob_parts: #core::job::Parts,
        ) -> ::core::result::Result<Self, #core::DecodeError> {
            #payload
            ::core::result::Result::Ok(Self { #(#fields,)* })
        }
    }
}
