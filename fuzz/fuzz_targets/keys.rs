//! Two keys are the same when table and fields are, and only then.
#![no_main]

use std::collections::BTreeMap;

use arbitrary::Arbitrary;
use libfuzzer_sys::fuzz_target;
use retryjob_core::KeyEncoder;
use serde::Serialize;

/// Whatever a `unique` field may hold.
#[derive(Arbitrary, Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
enum Value {
    Null,
    Bool(bool),
    Unsigned(u64),
    Signed(i64),
    Text(String),
    Items(Vec<Value>),
    Map(BTreeMap<String, Value>),
}

/// A value of each field, in the order of the struct.
type Fields = [Value; 3];

const NAMES: [&str; 3] = ["a", "ab", "b"];

fn encoder(fields: &Fields, order: [usize; 3]) -> KeyEncoder {
    let mut encoder = KeyEncoder::new();
    for at in order {
        encoder.field(NAMES[at], &fields[at]).expect("no float");
    }
    encoder
}

fuzz_target!(|input: (String, Fields, String, Fields)| {
    let (table, fields, other_table, other_fields) = input;
    let json = |fields: &Fields| serde_json::to_value(fields).expect("a value");
    let key = encoder(&fields, [0, 1, 2]).key(&table);
    let other = encoder(&other_fields, [0, 1, 2]).key(&other_table);
    let is_same = table == other_table && json(&fields) == json(&other_fields);
    assert_eq!(key == other, is_same);

    // The order of the fields is no part of the key.
    assert_eq!(encoder(&fields, [2, 0, 1]).key(&table), key);
    assert_eq!(
        encoder(&fields, [1, 2, 0]).shard_hash(),
        encoder(&fields, [0, 1, 2]).shard_hash()
    );
});
