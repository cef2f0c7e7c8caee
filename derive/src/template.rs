//! The template of a shard key: `{carrier}_{date:%Y%m%d}`.

/// Conversions that need a calendar date.
const DATE: &str = "YCymbBhdeaAwuUWGgVjDF";

/// Conversions that need a time of day.
const TIME: &str = "HkIlPpMSTR";

/// Conversions that need both.
const DATE_AND_TIME: &str = "s";

/// Conversions that can be padded with `-`, `_` or `0`.
const PADDED: &str = "YCymdewuUWGgVjHkIlMSs";

/// One part of a template.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Piece {
    /// Text as it is.
    Text(String),
    /// A field's value.
    Field {
        /// The field, without `r#`.
        name: String,
        /// How to format it; as `Display` does when there is none.
        format: Option<Format>,
    },
}

/// A format that chrono takes, checked: chrono panics on a bad one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Format {
    /// The text for chrono.
    pub(crate) text: String,
    /// Whether the value must have a calendar date.
    pub(crate) needs_date: bool,
    /// Whether the value must have a time of day.
    pub(crate) needs_time: bool,
}

/// Why a text can't be a template.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum TemplateError {
    /// A `{` without its `}`.
    Unclosed,
    /// A `}` without its `{`.
    Unopened,
    /// Something between braces that can't be a field.
    NotAField(String),
    /// No field at all: every job would have the same key.
    NoField,
    /// A format without any conversion: the field's value would not show.
    NoConversion { field: String },
    /// A conversion that is not on the list.
    Conversion { field: String, conversion: String },
}

/// Reads a template. `{{` and `}}` stand for braces.
pub(crate) fn parse(text: &str) -> Result<Vec<Piece>, TemplateError> {
    let mut pieces = Vec::new();
    let mut literal = String::new();
    let mut rest = text;
    while let Some(at) = rest.find(['{', '}']) {
        literal.push_str(&rest[..at]);
        let brace = &rest[at..=at];
        rest = &rest[at + 1..];
        if let Some(after) = rest.strip_prefix(brace) {
            literal.push_str(brace);
            rest = after;
            continue;
        }
        if brace == "}" {
            return Err(TemplateError::Unopened);
        }
        let (inner, after) = rest.split_once('}').ok_or(TemplateError::Unclosed)?;
        if !literal.is_empty() {
            pieces.push(Piece::Text(std::mem::take(&mut literal)));
        }
        pieces.push(field(inner)?);
        rest = after;
    }
    literal.push_str(rest);
    if !literal.is_empty() {
        pieces.push(Piece::Text(literal));
    }
    if !pieces
        .iter()
        .any(|piece| matches!(piece, Piece::Field { .. }))
    {
        return Err(TemplateError::NoField);
    }
    Ok(pieces)
}

fn field(inner: &str) -> Result<Piece, TemplateError> {
    let (name, format) = match inner.split_once(':') {
        Some((name, format)) => (name, Some(format)),
        None => (inner, None),
    };
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    if name.is_empty() || !name.chars().all(is_word) {
        return Err(TemplateError::NotAField(inner.to_owned()));
    }
    let format = format.map(|text| self::format(name, text)).transpose()?;
    Ok(Piece::Field {
        name: name.to_owned(),
        format,
    })
}

fn format(field: &str, text: &str) -> Result<Format, TemplateError> {
    let (mut needs_date, mut needs_time) = (false, false);
    let mut rest = text.split_once('%').map(|(_, rest)| rest);
    while let Some(after) = rest {
        let (conversion, letter) = conversion(after);
        let both = DATE_AND_TIME.contains(letter);
        let (date, time) = (DATE.contains(letter) || both, TIME.contains(letter) || both);
        let is_padded = conversion.len() > 1;
        if !(date || time || letter == '%') || (is_padded && !PADDED.contains(letter)) {
            return Err(TemplateError::Conversion {
                field: field.to_owned(),
                conversion: format!("%{conversion}"),
            });
        }
        (needs_date, needs_time) = (needs_date | date, needs_time | time);
        rest = after[conversion.len()..]
            .split_once('%')
            .map(|(_, rest)| rest);
    }
    if !(needs_date || needs_time) {
        return Err(TemplateError::NoConversion {
            field: field.to_owned(),
        });
    }
    Ok(Format {
        text: text.to_owned(),
        needs_date,
        needs_time,
    })
}

/// What follows a `%`: all of it, and its last character. The end of the text
/// counts as a character that is on no list.
fn conversion(after: &str) -> (&str, char) {
    let flag = usize::from(after.starts_with(['-', '_', '0']));
    match after[flag..].chars().next() {
        Some(letter) => (&after[..flag + letter.len_utf8()], letter),
        None => (after, '\0'),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(text: &str) -> Piece {
        Piece::Text(text.to_owned())
    }

    fn plain(name: &str) -> Piece {
        Piece::Field {
            name: name.to_owned(),
            format: None,
        }
    }

    #[test]
    fn pieces_keep_their_order_and_braces_can_be_escaped() {
        let pieces = parse("{{a}}{b}-{c}é").unwrap();
        assert_eq!(
            pieces,
            [text("{a}"), plain("b"), text("-"), plain("c"), text("é")]
        );
    }

    #[test]
    fn a_format_says_what_it_needs() {
        for (format, needs) in [
            ("%Y%m%d", (true, false)),
            ("%-H", (false, true)),
            ("%Y at %H", (true, true)),
            ("%s", (true, true)),
            ("100%% %d", (true, false)),
        ] {
            let pieces = parse(&format!("{{at:{format}}}")).unwrap();
            let [
                Piece::Field {
                    format: Some(found),
                    ..
                },
            ] = &pieces[..]
            else {
                panic!("{pieces:?}");
            };
            assert_eq!(found.text, format);
            assert_eq!((found.needs_date, found.needs_time), needs, "{format}");
        }
    }

    #[test]
    fn broken_templates_are_refused() {
        for (template, error) in [
            ("{a", TemplateError::Unclosed),
            ("a}", TemplateError::Unopened),
            ("{a}}", TemplateError::Unopened),
            ("{}", TemplateError::NotAField(String::new())),
            ("{a.b}", TemplateError::NotAField("a.b".into())),
            ("{ a }", TemplateError::NotAField(" a ".into())),
            ("", TemplateError::NoField),
            ("{{a}}", TemplateError::NoField),
            ("{a:}", TemplateError::NoConversion { field: "a".into() }),
            ("{a:%%}", TemplateError::NoConversion { field: "a".into() }),
        ] {
            assert_eq!(parse(template), Err(error), "{template}");
        }
    }

    #[test]
    fn conversions_off_the_list_are_refused() {
        for conversion in ["%Q", "%", "%-", "%-a", "%Z", "%+", "%é", "%3f", "%--d"] {
            let template = format!("{{a:%Y{conversion}}}");
            assert!(
                matches!(parse(&template), Err(TemplateError::Conversion { .. })),
                "{template}"
            );
        }
    }
}
