//! Every message, under the line it is about.

use quote::ToTokens as _;

use crate::{expand, fallback::fallback};

/// The files with mistakes, each with its text.
const TOPICS: [(&str, &str); 6] = [
    ("structs", include_str!("ui/structs.rs")),
    ("values", include_str!("ui/values.rs")),
    ("names", include_str!("ui/names.rs")),
    ("retry", include_str!("ui/retry.rs")),
    ("shards", include_str!("ui/shards.rs")),
    ("fields", include_str!("ui/fields.rs")),
];

#[test]
fn messages_point_at_what_is_wrong() {
    for (topic, source) in TOPICS {
        insta::assert_snapshot!(topic, annotated(source));
    }
}

#[test]
fn every_struct_in_these_files_has_a_mistake() {
    for (topic, source) in TOPICS {
        for item in syn::parse_file(source).unwrap().items {
            let input = syn::parse2(item.to_token_stream()).unwrap();
            assert!(expand(&input).is_err(), "{topic}: {}", input.ident);
        }
    }
}

/// A message that no snapshot shows is one that nobody has read.
#[test]
fn every_wording_is_in_a_snapshot() {
    let messages: Vec<_> = TOPICS
        .iter()
        .flat_map(|(_, source)| mistakes(source))
        .map(|mistake| mistake.message)
        .collect();
    let wordings = wordings(include_str!("../diagnostics.rs"));
    assert!(wordings.len() > 30, "the wordings were not found");
    for wording in wordings {
        let is_shown = messages.iter().any(|message| matches(message, &wording));
        assert!(is_shown, "no case shows {wording:?}");
    }
}

#[test]
fn messages_keep_to_the_style() {
    for mistake in TOPICS.iter().flat_map(|(_, source)| mistakes(source)) {
        let message = mistake.message;
        let first = message.chars().next().unwrap();
        assert!(!first.is_uppercase(), "not in lower case: {message}");
        assert!(!message.ends_with('.'), "a full stop: {message}");
        assert!(!message.contains('\n'), "more than a line: {message}");
        let backticks = message.matches('`').count();
        // One case has a backtick in a name, which the message quotes.
        let quoted = message.matches("'`'").count();
        assert_eq!((backticks - quoted) % 2, 0, "open code: {message}");
    }
}

#[test]
fn mistakes_leave_one_stub_impl_beside_them() {
    for (topic, source) in TOPICS {
        for item in syn::parse_file(source).unwrap().items {
            let input = syn::parse2(item.to_token_stream()).unwrap();
            let mistakes = expand(&input).unwrap_err();
            let count = mistakes.clone().into_iter().count();
            let file: syn::File = syn::parse2(fallback(&input, &mistakes)).unwrap();
            let [messages @ .., syn::Item::Impl(stub)] = &file.items[..] else {
                panic!("{topic}: {} has no impl", input.ident);
            };
            assert_eq!(messages.len(), count, "{topic}: {}", input.ident);
            assert_eq!(stub.items.len(), 3);
        }
    }
}

/// One mistake, where it is: a line counted from 1, columns from 0.
struct Mistake {
    message: String,
    line: usize,
    columns: std::ops::Range<usize>,
}

fn mistakes(source: &str) -> Vec<Mistake> {
    let items = syn::parse_file(source).unwrap().items;
    let inputs = items
        .iter()
        .map(|item| syn::parse2(item.to_token_stream()).unwrap());
    let errors = inputs.filter_map(|input| expand(&input).err());
    errors.flatten().map(|error| Mistake::new(&error)).collect()
}

impl Mistake {
    fn new(error: &syn::Error) -> Self {
        let (start, end) = (error.span().start(), error.span().end());
        let end_column = if end.line == start.line {
            end.column
        } else {
            start.column + 1
        };
        Self {
            message: error.to_string(),
            line: start.line,
            columns: start.column..end_column,
        }
    }
}

/// The source with every message under its line.
fn annotated(source: &str) -> String {
    let mistakes = mistakes(source);
    let mut text = String::new();
    for (at, line) in source.lines().enumerate() {
        text += &format!("{line}\n");
        let mut here: Vec<_> = mistakes.iter().filter(|m| m.line == at + 1).collect();
        here.sort_by_key(|mistake| mistake.columns.start);
        for mistake in here {
            let (indent, carets) = (mistake.columns.start, mistake.columns.len());
            let (indent, carets) = (" ".repeat(indent), "^".repeat(carets));
            text += &format!("{indent}{carets} {}\n", mistake.message);
        }
    }
    text
}

/// The fixed parts of every message in the source of `diagnostics`.
fn wordings(source: &str) -> Vec<Vec<String>> {
    let file = syn::parse_file(source).unwrap();
    let functions = file.items.iter().filter_map(|item| match item {
        syn::Item::Fn(function) if returns_error(function) => Some(function),
        _ => None,
    });
    let literals = functions.flat_map(|function| {
        let mut literals = Vec::new();
        texts(function.block.to_token_stream(), &mut literals);
        literals
    });
    literals
        .filter(|text| text.contains(' ') && !text.starts_with("{} to"))
        .map(|text| fixed_parts(&text))
        .collect()
}

fn returns_error(function: &syn::ItemFn) -> bool {
    matches!(&function.sig.output, syn::ReturnType::Type(_, ty)
        if ty.to_token_stream().to_string() == "Error")
}

fn texts(tokens: proc_macro2::TokenStream, literals: &mut Vec<String>) {
    for tree in tokens {
        match tree {
            proc_macro2::TokenTree::Group(group) => texts(group.stream(), literals),
            proc_macro2::TokenTree::Literal(literal) => {
                if let syn::Lit::Str(text) = syn::Lit::new(literal) {
                    literals.push(text.value());
                }
            }
            _ => {}
        }
    }
}

/// What is left of a format when its `{...}` are taken out.
fn fixed_parts(format: &str) -> Vec<String> {
    let mut parts = vec![String::new()];
    let mut rest = format.replace("{{", "\u{1}").replace("}}", "\u{2}");
    while let Some((before, after)) = rest.split_once('{') {
        let (_, after) = after.split_once('}').unwrap_or(("", after));
        parts.last_mut().unwrap().push_str(before);
        parts.push(String::new());
        rest = after.to_owned();
    }
    parts.last_mut().unwrap().push_str(&rest);
    parts
        .into_iter()
        .map(|part| part.replace('\u{1}', "{").replace('\u{2}', "}"))
        .filter(|part| part.trim().len() > 1)
        .collect()
}

fn matches(message: &str, parts: &[String]) -> bool {
    let mut rest = message;
    parts.iter().all(|part| match rest.split_once(part) {
        Some((_, after)) => {
            rest = after;
            true
        }
        None => false,
    })
}
