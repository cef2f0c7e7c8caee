//! Every span that is read is written as one that reads the same.
#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../../derive/src/duration.rs"]
#[allow(dead_code, reason = "only what reads and writes is under test")]
mod duration;

fuzz_target!(|text: &str| {
    let Some(span) = duration::parse(text) else {
        return;
    };
    let shown = duration::show(span);
    assert_eq!(
        duration::parse(&shown),
        Some(span),
        "{text:?} shown as {shown:?}"
    );
    // Only digits and units are read.
    assert!(
        text.bytes().all(|byte| byte.is_ascii_alphanumeric()),
        "{text:?}"
    );
});
