//! Durations as users write them: `1h30m`.

use std::time::Duration;

/// The longest span that a database is ever given: 100 years.
pub(crate) const SPAN_MAX: Duration = Duration::from_secs(100 * 366 * 24 * 60 * 60);

/// Every unit, longest last, with its microseconds.
const UNITS: [(&str, u64); 7] = [
    ("us", 1),
    ("ms", 1_000),
    ("s", 1_000_000),
    ("m", 60_000_000),
    ("h", 3_600_000_000),
    ("d", 86_400_000_000),
    ("w", 604_800_000_000),
];

/// Reads whole numbers, each with its unit, and adds them up.
///
/// # Units
///
/// Whole microseconds. A sum past [`Duration::MAX`]'s neighbourhood saturates
/// at `u64::MAX` microseconds, which is above every bound.
///
/// # Errors
///
/// `None` when the text is anything else.
pub(crate) fn parse(text: &str) -> Option<Duration> {
    let mut rest = text;
    let mut total_us = 0u64;
    while !rest.is_empty() {
        let (digits, after) = split_where(rest, |c| !c.is_ascii_digit());
        let (unit, after) = split_where(after, |c| c.is_ascii_digit());
        let (_, unit_us) = UNITS.iter().find(|(name, _)| *name == unit)?;
        if digits.is_empty() {
            return None;
        }
        // Digits alone fail to parse only when there are too many of them.
        let count = digits.parse::<u64>().unwrap_or(u64::MAX);
        total_us = total_us.saturating_add(count.saturating_mul(*unit_us));
        rest = after;
    }
    (!text.is_empty()).then(|| Duration::from_micros(total_us))
}

/// The span as users would write it.
pub(crate) fn show(span: Duration) -> String {
    let mut rest_us = u64::try_from(span.as_micros()).unwrap_or(u64::MAX);
    let mut text = String::new();
    for (unit, unit_us) in UNITS.iter().rev() {
        let count = rest_us / unit_us;
        if count > 0 {
            text += &format!("{count}{unit}");
        }
        rest_us %= unit_us;
    }
    if text.is_empty() { "0s".into() } else { text }
}

fn split_where(text: &str, at: impl Fn(char) -> bool) -> (&str, &str) {
    text.split_at(text.find(at).unwrap_or(text.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_unit_is_read() {
        for (text, us) in [
            ("1us", 1),
            ("20ms", 20_000),
            ("3s", 3_000_000),
            ("5m", 300_000_000),
            ("1h30m", 5_400_000_000),
            ("2d", 172_800_000_000),
            ("1w", 604_800_000_000),
            ("0s", 0),
            ("007s", 7_000_000),
        ] {
            assert_eq!(parse(text), Some(Duration::from_micros(us)), "{text}");
        }
    }

    #[test]
    fn anything_else_is_refused() {
        for text in [
            "", "5", "m", "5 m", " 5m", "5m ", "-5m", "+5m", "1.5h", "5min", "5M", "5m30", "5µs",
            "٣s", "1_000s",
        ] {
            assert_eq!(parse(text), None, "{text:?}");
        }
    }

    #[test]
    fn a_number_past_the_largest_saturates() {
        for text in ["99999999999999999999999us", "18446744073709551615w"] {
            assert_eq!(parse(text), Some(Duration::from_micros(u64::MAX)));
        }
    }

    #[test]
    fn what_is_shown_reads_back_the_same() {
        for text in ["5m", "1h30m", "1w2d3h4m5s6ms7us", "0s"] {
            assert_eq!(show(parse(text).unwrap()), text);
        }
    }
}
