//! What the value of one option can be.

use std::{ops::RangeInclusive, time::Duration};

use quote::ToTokens as _;
use syn::{Expr, ExprArray, ExprLit, ExprUnary, Lit, LitStr, Result, UnOp};

use super::entry::{Entry, EntryValue, Given, given};
use crate::{
    diagnostics,
    duration::{self, SPAN_MAX},
    ident::{COLUMN_BYTES_MAX, SqlName, TABLE_BYTES_MAX},
    names::Name,
    sql_type::SqlType,
    template::{self, Piece},
};

/// The prefix of SQLite's own tables.
const SQLITE_PREFIX: &str = "sqlite_";

/// Columns that InnoDB adds to every table, or gives a meaning.
const INNODB_COLUMNS: [&str; 4] = ["DB_ROW_ID", "DB_TRX_ID", "DB_ROLL_PTR", "FTS_DOC_ID"];

/// A name that stands alone.
pub(super) fn flag<N: Name>(option: N, entry: &Entry) -> Result<Given<()>> {
    match entry.value {
        EntryValue::Flag => given(entry, ()),
        EntryValue::Expr(_) | EntryValue::List(_) => {
            Err(diagnostics::wrong_form(&entry.name, option))
        }
    }
}

/// A whole number.
pub(super) fn number<N: Name, T>(
    option: N,
    entry: &Entry,
    range: RangeInclusive<T>,
) -> Result<Given<T>>
where
    T: TryFrom<u64> + PartialOrd + Copy + std::fmt::Display,
{
    let shown = format!("{} to {}", range.start(), range.end());
    let refuse = |got: &str| diagnostics::out_of_range(entry, option.as_str(), &shown, got);
    match entry.expr(option)? {
        Expr::Lit(ExprLit {
            lit: Lit::Int(digits),
            ..
        }) if digits.suffix().is_empty() => {
            let number = digits.base10_parse::<u64>().ok();
            let number = number.and_then(|number| T::try_from(number).ok());
            match number.filter(|number| range.contains(number)) {
                Some(number) => given(entry, number),
                None => Err(refuse(digits.base10_digits())),
            }
        }
        Expr::Unary(ExprUnary {
            op: UnOp::Neg(_),
            expr,
            ..
        }) if matches!(&**expr, Expr::Lit(_)) => {
            Err(refuse(&format!("-{}", expr.to_token_stream())))
        }
        _ => Err(diagnostics::wrong_form(entry, option)),
    }
}

/// A span that is more than nothing.
pub(super) fn span<N: Name>(option: N, entry: &Entry) -> Result<Given<Duration>> {
    duration(option, entry, Duration::from_micros(1))
}

/// A span of at least `min`.
pub(super) fn duration<N: Name>(
    option: N,
    entry: &Entry,
    min: Duration,
) -> Result<Given<Duration>> {
    let literal = text(option, entry)?;
    given(entry, duration_of(option.as_str(), &literal, min)?)
}

/// A list of spans.
pub(super) fn durations<N: Name>(option: N, entry: &Entry) -> Result<Given<Vec<Duration>>> {
    let Expr::Array(ExprArray { elems, .. }) = entry.expr(option)? else {
        return Err(diagnostics::wrong_form(entry, option));
    };
    if !(1..=SCHEDULE_DELAYS_MAX).contains(&elems.len()) {
        let range = format!("1 to {SCHEDULE_DELAYS_MAX} delays");
        let got = elems.len().to_string();
        return Err(diagnostics::out_of_range(
            entry,
            option.as_str(),
            &range,
            &got,
        ));
    }
    let delays = elems.iter().map(|elem| match elem {
        Expr::Lit(ExprLit {
            lit: Lit::Str(literal),
            ..
        }) => duration_of(option.as_str(), literal, Duration::ZERO),
        other => Err(diagnostics::wrong_form(other, option)),
    });
    let mut all = Vec::new();
    let mut wrong = Vec::new();
    for delay in delays {
        match delay {
            Ok(delay) => all.push(delay),
            Err(error) => wrong.push(error),
        }
    }
    match wrong.into_iter().reduce(combined) {
        Some(error) => Err(error),
        None => given(entry, all),
    }
}

/// Most delays of one schedule.
const SCHEDULE_DELAYS_MAX: usize = 1000;

fn combined(mut all: syn::Error, error: syn::Error) -> syn::Error {
    all.combine(error);
    all
}

fn duration_of(name: &str, literal: &LitStr, min: Duration) -> Result<Duration> {
    let text = literal.value();
    let span = duration::parse(&text).ok_or_else(|| diagnostics::not_a_duration(literal, &text))?;
    if !(min..=SPAN_MAX).contains(&span) {
        let min = duration::show(min);
        return Err(diagnostics::duration_out_of_range(
            literal, name, &min, &text,
        ));
    }
    Ok(span)
}

/// The name of a table.
pub(super) fn table<N: Name>(option: N, entry: &Entry) -> Result<Given<SqlName>> {
    let literal = text(option, entry)?;
    let value = literal.value();
    if let Some((database, table)) = value.split_once('.') {
        return Err(diagnostics::database_in_table(&literal, database, table));
    }
    let name = SqlName::parse(&value, TABLE_BYTES_MAX)
        .map_err(|error| diagnostics::bad_name(&literal, "a table", error))?;
    let prefix = value.get(..SQLITE_PREFIX.len());
    if prefix.is_some_and(|prefix| prefix.eq_ignore_ascii_case(SQLITE_PREFIX)) {
        return Err(diagnostics::reserved_name(&literal, &value, "SQLite"));
    }
    given(entry, name)
}

/// The name of a column.
pub(super) fn column<N: Name>(option: N, entry: &Entry) -> Result<Given<SqlName>> {
    let literal = text(option, entry)?;
    given(entry, column_name(&literal, &literal.value())?)
}

/// The name of a column, which may be that of its field.
pub(super) fn column_name(at: &impl quote::ToTokens, text: &str) -> Result<SqlName> {
    let name = SqlName::parse(text, COLUMN_BYTES_MAX)
        .map_err(|error| diagnostics::bad_name(at, "a column", error))?;
    if INNODB_COLUMNS.iter().any(|reserved| name.is_same(reserved)) {
        return Err(diagnostics::reserved_name(at, text, "InnoDB"));
    }
    Ok(name)
}

/// The template of a shard key.
pub(super) fn template<N: Name>(option: N, entry: &Entry) -> Result<Given<Vec<Piece>>> {
    let literal = text(option, entry)?;
    let pieces = template::parse(&literal.value())
        .map_err(|error| diagnostics::bad_template(&literal, &error))?;
    given(entry, pieces)
}

/// A column's type.
pub(super) fn sql_type<N: Name>(option: N, entry: &Entry) -> Result<Given<SqlType>> {
    let literal = text(option, entry)?;
    let sql_type = SqlType::parse(&literal.value())
        .map_err(|error| diagnostics::bad_type(&literal, &error))?;
    given(entry, sql_type)
}

/// One of a few words.
pub(super) fn word<N: Name, W: Name>(option: N, entry: &Entry) -> Result<Given<W>> {
    let literal = text(option, entry)?;
    let value = literal.value();
    let word =
        W::find(&value).ok_or_else(|| diagnostics::unknown_word::<W>(option, &literal, &value))?;
    given(entry, word)
}

fn text<N: Name>(option: N, entry: &Entry) -> Result<LitStr> {
    match entry.expr(option)? {
        Expr::Lit(ExprLit {
            lit: Lit::Str(literal),
            ..
        }) => Ok(literal.clone()),
        _ => Err(diagnostics::wrong_form(entry, option)),
    }
}
