//! The grammar that all attributes share: `name`, `name = value`, `name(...)`.

use proc_macro2::TokenStream;
use quote::ToTokens;
use syn::{
    Attribute, Expr, Ident, Meta, Result, Token,
    ext::IdentExt as _,
    parenthesized,
    parse::{Parse, ParseStream, Parser as _},
    punctuated::Punctuated,
    token::Paren,
};

use crate::{
    diagnostics::{self, Errors},
    names::Name,
};

/// One entry of an attribute's list.
pub(crate) struct Entry {
    pub(crate) name: Ident,
    pub(crate) value: EntryValue,
}

/// What follows the name.
pub(crate) enum EntryValue {
    /// Nothing.
    Flag,
    /// `= value`.
    Expr(Expr),
    /// `(...)`, read once it is known what belongs there.
    List(TokenStream),
}

/// A value that was given, with the tokens it came from.
pub(crate) struct Given<T> {
    pub(crate) value: T,
    pub(crate) name: Ident,
    pub(crate) tokens: TokenStream,
}

/// What is known about an option.
#[derive(Default)]
pub(crate) enum Slot<T> {
    /// Nobody wrote it.
    #[default]
    Absent,
    /// It was written and is wrong, which has been reported.
    Broken(Ident),
    /// It was written and is right.
    Given(Given<T>),
}

impl<T> Slot<T> {
    /// Takes the value that an entry holds; the second one is a mistake.
    pub(crate) fn fill<N: Name>(
        &mut self,
        option: N,
        entry: &Entry,
        errors: &Errors,
        parse: impl FnOnce(N, &Entry) -> Result<Given<T>>,
    ) {
        if self.name().is_some() {
            errors.push(diagnostics::duplicate::<N>(&entry.name));
            return;
        }
        *self = match errors.take(parse(option, entry)) {
            Some(given) => Self::Given(given),
            None => Self::Broken(entry.name.clone()),
        };
    }

    /// The name as it was written, right or wrong.
    pub(crate) fn name(&self) -> Option<&Ident> {
        match self {
            Self::Absent => None,
            Self::Broken(name) => Some(name),
            Self::Given(given) => Some(&given.name),
        }
    }

    pub(crate) fn given(&self) -> Option<&Given<T>> {
        match self {
            Self::Given(given) => Some(given),
            Self::Absent | Self::Broken(_) => None,
        }
    }

    pub(crate) fn into_value(self) -> Option<T> {
        match self {
            Self::Given(given) => Some(given.value),
            Self::Absent | Self::Broken(_) => None,
        }
    }
}

impl Parse for Entry {
    fn parse(input: ParseStream<'_>) -> Result<Self> {
        let name = input.call(Ident::parse_any)?;
        let value = if input.peek(Token![=]) {
            input.parse::<Token![=]>()?;
            EntryValue::Expr(input.parse()?)
        } else if input.peek(Paren) {
            let content;
            parenthesized!(content in input);
            EntryValue::List(content.parse()?)
        } else {
            EntryValue::Flag
        };
        Ok(Self { name, value })
    }
}

impl Entry {
    /// The entries of `name(...)`, at least one.
    pub(crate) fn list<N: Name, Inner: Name>(&self, option: N) -> Result<Vec<Self>> {
        let EntryValue::List(tokens) = &self.value else {
            return Err(diagnostics::wrong_form(&self.name, option));
        };
        let entries = of_tokens(tokens.clone())?;
        if entries.is_empty() {
            let list = format!("{}()", option.as_str());
            return Err(diagnostics::empty::<Inner>(&self.name, &list));
        }
        Ok(entries)
    }

    /// The expression of `name = value`. One that came through a
    /// `macro_rules!` fragment has invisible brackets around it.
    pub(crate) fn expr<N: Name>(&self, option: N) -> Result<&Expr> {
        match &self.value {
            EntryValue::Expr(Expr::Group(group)) => Ok(&group.expr),
            EntryValue::Expr(expr) => Ok(expr),
            EntryValue::Flag | EntryValue::List(_) => {
                Err(diagnostics::wrong_form(&self.name, option))
            }
        }
    }
}

impl ToTokens for Entry {
    /// The value's tokens, or the name where there is no value.
    fn to_tokens(&self, tokens: &mut TokenStream) {
        match &self.value {
            EntryValue::Expr(expr) => expr.to_tokens(tokens),
            EntryValue::Flag | EntryValue::List(_) => self.name.to_tokens(tokens),
        }
    }
}

/// A value with the tokens of its entry.
pub(crate) fn given<T>(entry: &Entry, value: T) -> Result<Given<T>> {
    Ok(Given {
        value,
        name: entry.name.clone(),
        tokens: entry.to_token_stream(),
    })
}

/// The entries of `#[attribute(...)]`, at least one.
pub(crate) fn of_attribute<N: Name>(attribute: &Attribute) -> Result<Vec<Entry>> {
    let entries = match &attribute.meta {
        Meta::Path(_) => Vec::new(),
        Meta::List(list) => of_tokens(list.tokens.clone())?,
        Meta::NameValue(_) => return Err(diagnostics::no_list(attribute)),
    };
    if entries.is_empty() {
        let path = attribute.path().to_token_stream();
        return Err(diagnostics::empty::<N>(attribute, &format!("#[{path}]")));
    }
    Ok(entries)
}

fn of_tokens(tokens: TokenStream) -> Result<Vec<Entry>> {
    let entries = Punctuated::<Entry, Token![,]>::parse_terminated.parse2(tokens)?;
    Ok(entries.into_iter().collect())
}
