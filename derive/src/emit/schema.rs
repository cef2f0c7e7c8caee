//! The `const` description.

use std::time::Duration;

use proc_macro2::TokenStream;
use quote::{format_ident, quote, quote_spanned};

use super::{core, span_of, type_of};
use crate::{
    ident::SqlName,
    model::{Backoff, ColumnModel, FieldModel, Lanes, Model, Retry},
    names::{FinishedName, LeaseByName, Name as _},
    sql_type::SqlType,
};

/// The constants `__RETRYJOB_COLUMNS` and `__RETRYJOB_SCHEMA`.
///
/// Both stand outside the impl: rustc evaluates a constant of an impl only
/// where it is used, and a mistake must not wait for that.
pub(super) fn constants(model: &Model) -> TokenStream {
    let core = core();
    let columns = columns(model);
    let table = name(&model.table);
    let settings = settings(model);
    quote! {
        #columns

        const __RETRYJOB_SCHEMA: #core::JobSchema = #core::JobSchema {
            #(#settings,)*
            ..#core::JobSchema::new(#table)
        }
        .checked();
    }
}

fn columns(model: &Model) -> TokenStream {
    let core = core();
    let entries: Vec<_> = model
        .columns()
        .map(|(field, column)| entry(model, field, column))
        .collect();
    if entries.is_empty() {
        return TokenStream::new();
    }
    let count = entries.len();
    let assertions = model
        .columns()
        .filter_map(|(field, column)| assertion(model, field, column.sql_type?));
    quote! {
        const __RETRYJOB_COLUMNS: [#core::Column; #count] = [#(#entries,)*];
        #(#assertions)*
    }
}

fn entry(model: &Model, field: &FieldModel, column: &ColumnModel) -> TokenStream {
    let core = core();
    let ty = type_of(&field.ty, &model.ident);
    let name = name(&column.name);
    let kind = match column.sql_type {
        Some(given) => kind(given),
        None => quote_spanned!(span_of(&field.ty)=> <#ty as #core::ColumnValue>::TYPE),
    };
    let nullable = quote_spanned!(span_of(&field.ty)=> <#ty as #core::ColumnValue>::NULLABLE);
    let index = column.has_index;
    quote! {
        #core::Column {
            name: #name,
            kind: #kind,
            nullable: #nullable,
            index: #index,
        }
    }
}

/// The field's type must fit in the type that its column was given.
fn assertion(model: &Model, field: &FieldModel, given: SqlType) -> Option<TokenStream> {
    let core = core();
    let ty = type_of(&field.ty, &model.ident);
    let given = kind(given);
    let message = format!(
        "the `type` of the column for `{}` does not fit the field's Rust type; remove it, or write one of the same kind",
        field.name
    );
    Some(quote_spanned! {span_of(&field.ty)=>
        const _: () = ::core::assert!(
            <#ty as #core::ColumnValue>::TYPE.can_be_declared(#given),
            #message
        );
    })
}

/// The members of the schema that differ from what every struct has.
fn settings(model: &Model) -> Vec<TokenStream> {
    let core = core();
    let settings = &model.settings;
    let mut all = Vec::new();
    if !model.renamed.is_empty() {
        let names = model.renamed.iter().map(|(column, to)| {
            let member = format_ident!("{}", column.as_str());
            let to = name(to);
            quote!(#member: #to)
        });
        all.push(quote! {
            names: #core::ColumnNames { #(#names,)* ..#core::ColumnNames::DEFAULT }
        });
    }
    if model.columns().next().is_some() {
        all.push(quote!(columns: &__RETRYJOB_COLUMNS));
    }
    let flags = [
        (!model.has_payload()).then(|| quote!(has_payload: false)),
        model.has_unique().then(|| quote!(has_unique: true)),
    ];
    all.extend(flags.into_iter().flatten());
    let options = [
        model
            .shard_key_column
            .as_ref()
            .map(|column| ("shard_key_column", some(&name(column)))),
        settings.shards.map(|shards| ("shards", quote!(#shards))),
        settings.lease.map(|lease| ("lease", span(lease))),
        settings
            .timeout
            .map(|timeout| ("timeout", some(&span(timeout)))),
        settings
            .retry
            .as_ref()
            .map(|policy| ("retry", retry(policy))),
        settings
            .lanes
            .as_ref()
            .map(|weights| ("lanes", lanes(weights))),
        settings.batch.map(|batch| ("batch", quote!(#batch))),
        settings
            .spread
            .map(|spread| ("spread", some(&span(spread)))),
        settings.finished.map(|word| ("finished", finished(word))),
        settings.lease_by.map(|word| ("lease_by", lease_by(word))),
    ];
    all.extend(options.into_iter().flatten().map(|(member, value)| {
        let member = format_ident!("{member}");
        quote!(#member: #value)
    }));
    all
}

fn retry(policy: &Retry) -> TokenStream {
    let core = core();
    let backoff = backoff(&policy.backoff);
    let cap = option(policy.cap.map(span));
    let jitter = span(policy.jitter);
    let max_attempts = policy.max_attempts;
    let grace = option(policy.grace.map(span));
    let manual_after = option(policy.manual_after.map(|after| quote!(#after)));
    quote! {
        #core::RetryPolicy {
            backoff: #backoff,
            cap: #cap,
            jitter: #jitter,
            max_attempts: #max_attempts,
            grace: #grace,
            manual_after: #manual_after,
        }
    }
}

fn backoff(backoff: &Backoff) -> TokenStream {
    let core = core();
    match backoff {
        Backoff::Fixed(delay) => {
            let delay = span(*delay);
            quote!(#core::Backoff::Fixed { delay: #delay })
        }
        Backoff::Linear(step) => {
            let step = span(*step);
            quote!(#core::Backoff::Linear { step: #step })
        }
        Backoff::Exponential { base, factor } => {
            let base = span(*base);
            quote!(#core::Backoff::Exponential { base: #base, factor: #factor })
        }
        Backoff::Schedule(delays) => {
            let delays = delays.iter().copied().map(span);
            quote!(#core::Backoff::Schedule { delays: &[#(#delays,)*] })
        }
        Backoff::Graded {
            first,
            base,
            factor,
        } => {
            let (first, base) = (span(*first), span(*base));
            quote!(#core::Backoff::Graded { first: #first, base: #base, factor: #factor })
        }
    }
}

fn lanes(weights: &Lanes) -> TokenStream {
    let core = core();
    let default = quote!(#core::Lanes::DEFAULT);
    let weight = |weight: Option<u16>, member| match weight {
        Some(weight) => quote!(#weight),
        None => {
            let member = format_ident!("{member}");
            quote!(#default.#member)
        }
    };
    let (fresh, retry) = (
        weight(weights.fresh, "fresh"),
        weight(weights.retry, "retry"),
    );
    quote!(#core::Lanes { fresh: #fresh, retry: #retry })
}

fn finished(word: FinishedName) -> TokenStream {
    let core = core();
    match word {
        FinishedName::Keep => quote!(#core::Finished::Keep),
        FinishedName::History => quote!(#core::Finished::History),
        FinishedName::Delete => quote!(#core::Finished::Delete),
    }
}

fn lease_by(word: LeaseByName) -> TokenStream {
    let core = core();
    match word {
        LeaseByName::Row => quote!(#core::LeaseBy::Row),
        LeaseByName::Shard => quote!(#core::LeaseBy::Shard),
    }
}

fn kind(sql_type: SqlType) -> TokenStream {
    let core = core();
    let variant = match sql_type {
        SqlType::Bool => quote!(Bool),
        SqlType::I8 => quote!(I8),
        SqlType::I16 => quote!(I16),
        SqlType::I32 => quote!(I32),
        SqlType::I64 => quote!(I64),
        SqlType::U8 => quote!(U8),
        SqlType::U16 => quote!(U16),
        SqlType::U32 => quote!(U32),
        SqlType::U64 => quote!(U64),
        SqlType::F64 => quote!(F64),
        SqlType::Varchar { chars } => quote!(Varchar { chars: #chars }),
        SqlType::Text => quote!(Text),
        SqlType::Binary { bytes } => quote!(Binary { bytes: #bytes }),
        SqlType::Varbinary { bytes } => quote!(Varbinary { bytes: #bytes }),
        SqlType::Date => quote!(Date),
        SqlType::DateTime => quote!(DateTime),
    };
    quote!(#core::ColumnType::#variant)
}

fn name(name: &SqlName) -> TokenStream {
    let core = core();
    let text = name.as_str();
    quote!(#core::Ident::new(#text))
}

/// A span in the largest unit that keeps it whole.
fn span(span: Duration) -> TokenStream {
    let us = u64::try_from(span.as_micros()).unwrap_or(u64::MAX);
    let (unit, count) = if us.is_multiple_of(1_000_000) {
        ("from_secs", us / 1_000_000)
    } else if us.is_multiple_of(1_000) {
        ("from_millis", us / 1_000)
    } else {
        ("from_micros", us)
    };
    let unit = format_ident!("{unit}");
    quote!(::core::time::Duration::#unit(#count))
}

fn option(value: Option<TokenStream>) -> TokenStream {
    match value {
        Some(value) => some(&value),
        None => quote!(::core::option::Option::None),
    }
}

fn some(value: &TokenStream) -> TokenStream {
    quote!(::core::option::Option::Some(#value))
}
