//! `encode`: the struct taken apart.

use proc_macro2::{Span, TokenStream};
use quote::{quote, quote_spanned};

use super::{core, span_of};
use crate::model::{FieldModel, Model, Shard, ShardPiece};

/// `RetryJob::encode`.
pub(super) fn function(model: &Model) -> TokenStream {
    let core = core();
    let unique = unique(model);
    let shard = shard(model);
    let columns = columns(model);
    let payload = if model.has_payload() {
        quote!(#core::job::encode_payload(&__RetryjobPayloadRef(self))?)
    } else {
        quote!(::core::option::Option::None)
    };
    quote! {
        fn encode(&self) -> ::core::result::Result<#core::job::Encoded, #core::EncodeError> {
            ::core::result::Result::Ok(#core::job::Encoded {
                unique: #unique,
                shard: #shard,
                columns: #columns,
                payload: #payload,
            })
        }
    }
}

fn unique(model: &Model) -> TokenStream {
    if !model.has_unique() {
        return quote!(::core::option::Option::None);
    }
    let key = key(model.fields.iter().filter(|field| field.is_unique));
    quote!(::core::option::Option::Some(#key))
}

fn shard(model: &Model) -> TokenStream {
    let core = core();
    match &model.shard {
        Shard::Key => quote!(#core::job::ShardSource::Key),
        Shard::Fields => {
            let key = key(model.fields.iter().filter(|field| field.is_shard_by));
            quote!(#core::job::ShardSource::Fields(#key))
        }
        Shard::Template { pieces, tokens } => {
            let text = template(pieces, span_of(tokens));
            quote!(#core::job::ShardSource::Template(#text))
        }
    }
}

/// A `KeyEncoder` that holds these fields.
fn key<'a>(fields: impl Iterator<Item = &'a FieldModel>) -> TokenStream {
    let core = core();
    let fields = fields.map(|field| {
        let (ident, name) = (&field.ident, &field.name);
        let span = span_of(&field.ty);
        quote_spanned!(span=> __retryjob_key.field(#name, &self.#ident)?;)
    });
    quote!({
        let mut __retryjob_key = #core::KeyEncoder::new();
        #(#fields)*
        __retryjob_key
    })
}

/// The shard key as a `String`. What its fields lack is reported at `span`.
fn template(pieces: &[ShardPiece], span: Span) -> TokenStream {
    let mut text = String::new();
    let mut arguments = Vec::new();
    for piece in pieces {
        match piece {
            ShardPiece::Text(literal) => {
                text += &literal.replace('{', "{{").replace('}', "}}");
            }
            ShardPiece::Field { ident, format } => {
                text += "{}";
                let mut value = quote_spanned!(span=> &self.#ident);
                let Some(format) = format else {
                    arguments.push(value);
                    continue;
                };
                if format.needs_date {
                    value = quote_spanned!(span=> __retryjob_with_date(#value));
                }
                if format.needs_time {
                    value = quote_spanned!(span=> __retryjob_with_time(#value));
                }
                let format = &format.text;
                arguments.push(quote_spanned!(span=> #value.format(#format)));
            }
        }
    }
    quote!(::std::format!(#text, #(#arguments),*))
}

/// Functions that let a format only at values that have what it shows: chrono
/// would panic.
pub(super) fn helpers(model: &Model) -> TokenStream {
    let Shard::Template { pieces, .. } = &model.shard else {
        return TokenStream::new();
    };
    let formats = || {
        pieces.iter().filter_map(|piece| match piece {
            ShardPiece::Field { format, .. } => format.as_ref(),
            ShardPiece::Text(_) => None,
        })
    };
    let with_date = formats().any(|format| format.needs_date).then(|| {
        quote! {
            fn __retryjob_with_date<__RetryjobValue: ::retryjob::__private::chrono::Datelike>(
                __retryjob_value: &__RetryjobValue,
            ) -> &__RetryjobValue {
                __retryjob_value
            }
        }
    });
    let with_time = formats().any(|format| format.needs_time).then(|| {
        quote! {
            fn __retryjob_with_time<__RetryjobValue: ::retryjob::__private::chrono::Timelike>(
                __retryjob_value: &__RetryjobValue,
            ) -> &__RetryjobValue {
                __retryjob_value
            }
        }
    });
    quote!(#with_date #with_time)
}

fn columns(model: &Model) -> TokenStream {
    let core = core();
    let values = model.columns().enumerate().map(|(at, (field, column))| {
        let (ident, name) = (&field.ident, column.name.as_str());
        quote_spanned! {span_of(&field.ty)=>
            #core::job::encode_column(#name, __RETRYJOB_COLUMNS[#at].kind, &self.#ident)?
        }
    });
    quote!(::std::vec![#(#values,)*])
}
