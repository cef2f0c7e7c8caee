//! What would be right: the second half of many messages.

/// What comes closest, or else everything there is.
pub(super) fn nearest<'a>(text: &str, known: impl Iterator<Item = &'a str>) -> String {
    let known: Vec<_> = known.collect();
    match closest(text, &known) {
        Some(name) => did_you_mean(name),
        None => one_of(known.into_iter()),
    }
}

/// What comes closest, when it is close.
pub(super) fn closest<'a>(text: &str, known: &[&'a str]) -> Option<&'a str> {
    let likeness = |name: &str| strsim::jaro_winkler(text, name);
    known
        .iter()
        .copied()
        .max_by(|a, b| likeness(a).total_cmp(&likeness(b)))
        .filter(|name| likeness(name) > LIKENESS_MIN)
}

/// Below this two names have too little in common for a question. darling
/// draws the same line.
const LIKENESS_MIN: f64 = 0.8;

/// A question.
pub(super) fn did_you_mean(name: &str) -> String {
    format!("did you mean `{name}`?")
}

/// Everything there is.
pub(super) fn one_of<'a>(known: impl Iterator<Item = &'a str>) -> String {
    let known: Vec<_> = known.map(|name| format!("`{name}`")).collect();
    match &known[..] {
        [] => "there is none".to_owned(),
        [only] => format!("expected {only}"),
        all => format!("expected one of {}", all.join(", ")),
    }
}

/// A type's name as tables are called.
pub(super) fn snake_case(name: &str) -> String {
    let mut snake = String::new();
    for (at, c) in name.char_indices() {
        if c.is_uppercase() && at > 0 {
            snake.push('_');
        }
        snake.extend(c.to_lowercase());
    }
    snake
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::names::{FieldOption, Name as _};

    #[test]
    fn only_close_names_are_suggested() {
        let known = || FieldOption::ALL.iter().map(|name| name.as_str());
        assert_eq!(nearest("uniq", known()), "did you mean `unique`?");
        assert_eq!(nearest("shardby", known()), "did you mean `shard_by`?");
        assert!(nearest("priority", known()).starts_with("expected one of"));
    }
}
