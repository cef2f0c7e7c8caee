use std::collections::{BTreeMap, HashMap};

use chrono::NaiveDate;
use proptest::prelude::*;
use serde::Serialize;
use sha2::{Digest as _, Sha256};

use crate::key::{IdempotencyKey, KeyEncoder, KeyError};

const TABLE: &str = "billing_job";

fn key_of<T: Serialize + ?Sized>(field: &'static str, value: &T) -> IdempotencyKey {
    fields(&[(field, value)]).key(TABLE)
}

fn fields<T: Serialize + ?Sized>(pairs: &[(&'static str, &T)]) -> KeyEncoder {
    let mut encoder = KeyEncoder::new();
    for (field, value) in pairs {
        encoder.field(field, *value).unwrap();
    }
    encoder
}

fn assert_key<T: Serialize + ?Sized>(field: &'static str, value: &T, want: &str) {
    assert_eq!(key_of(field, value).to_string(), want, "{field}");
}

#[derive(Serialize)]
enum Charge {
    Monthly,
    Usage(u32),
    Refund { of: u64, reason: &'static str },
}

#[derive(Serialize)]
struct Line {
    tags: Vec<&'static str>,
    note: Option<String>,
    amount: Amount,
}

#[derive(Serialize)]
struct Amount {
    currency: &'static str,
    cents: i64,
}

#[test]
fn a_key_is_the_sha_256_of_the_documented_bytes() {
    let bytes = [
        b"retryjob.key.1".as_slice(),
        b"t\0\0\0\0\0\0\0\x0bbilling_job",
        // 16 bytes of the name, 10 of the number.
        b"m\0\0\0\0\0\0\0\x1a",
        b"t\0\0\0\0\0\0\0\x07invoice",
        b"i\0\0\0\0\0\0\0\x017",
    ];
    let want: [u8; 32] = Sha256::digest(bytes.concat()).into();
    assert_eq!(key_of("invoice", &7u64).as_bytes(), &want);
}

#[test]
fn a_shard_hash_is_the_start_of_the_sha_256_of_the_documented_bytes() {
    let bytes = [
        b"retryjob.shard.1".as_slice(),
        b"t\0\0\0\0\0\0\0\0",
        b"m\0\0\0\0\0\0\0\x23",
        b"t\0\0\0\0\0\0\0\x0fsubscription_id",
        b"i\0\0\0\0\0\0\0\x0242",
    ];
    let digest: [u8; 32] = Sha256::digest(bytes.concat()).into();
    let first = u64::from_be_bytes(digest[..8].try_into().unwrap());
    let hash = fields(&[("subscription_id", &42u64)]).shard_hash();
    assert_eq!(hash, first);
    assert_eq!(hash, 0xb47c_c1bc_535a_62b3);
}

// The keys below were computed by another program from the documented
// encoding. They never change: a key that changed would let a job in twice.

#[test]
fn keys_of_numbers_never_change() {
    assert_key(
        "invoice",
        &7u64,
        "c68aa9f6ca4b0b0bfc4715d44c8060110b26003fec65221b0654d4d54bc6eaf6",
    );
    assert_key(
        "invoice",
        &u64::MAX,
        "d37f7c14eacd28e98f99eb9995c591cd25fb01e8dd017ea2d27a9d737655a7d1",
    );
    assert_key(
        "delta",
        &-5i32,
        "b32a7a7808be7a1f5f0ac641f2c2b33d75fb65add09e76769dad139c6e87896e",
    );
    assert_key(
        "delta",
        &i64::MIN,
        "2e1316232ae7bbe286e0db6be640f42f7f6e3f4ad7a9113e56e5b2e742813db2",
    );
}

#[test]
fn keys_of_null_and_booleans_never_change() {
    assert_key(
        "voucher",
        &None::<u64>,
        "5f5bd2f19fcfe2cb19996ec0e84feeb3862bca590ac541d5d84cb8982c1b2db7",
    );
    assert_key(
        "is_trial",
        &true,
        "b09fb4c7a85bffe0801a319a4e11b05601bf4d1d5d0749c9cfb4d43000a83ab0",
    );
    assert_key(
        "is_trial",
        &false,
        "875435c6dcf547731dfb037ca412728daec563db79a4bc0493d16d8c8d94e8fa",
    );
}

#[test]
fn keys_of_texts_and_dates_never_change() {
    assert_key(
        "name",
        "Zoë 🚀",
        "798c4e5619f2c6921ba1a6c1083829097f736e28c65e8159993fe509132cbe16",
    );
    assert_key(
        "name",
        "",
        "f85bb58354db774c789d7c2508e57effa1ebce04718258864aa8cf7dacc10829",
    );
    assert_key(
        "day",
        &NaiveDate::from_ymd_opt(2013, 2, 4).unwrap(),
        "6ec9840329cab75c16f2062f989ec50f225c9c60baad77f8cb6b44ce144533a1",
    );
}

#[test]
fn keys_of_enums_never_change() {
    assert_key(
        "charge",
        &Charge::Monthly,
        "d405260b08c2307ba46a1169671b9405e43e26ea7713526b159592eea8d93aa3",
    );
    assert_key(
        "charge",
        &Charge::Usage(3),
        "fba61df99e243048c05779d4b7d546963d3acedc7aca9198f28e99e6bc9fc266",
    );
    let refund = Charge::Refund {
        of: 9,
        reason: "late",
    };
    assert_key(
        "charge",
        &refund,
        "49a0837e69faf7783762e4c87fe0e21f78aeb270e7415882e58830e6a897c7aa",
    );
}

#[test]
fn keys_of_sequences_structs_and_maps_never_change() {
    assert_key(
        "parts",
        &[1, 2, 3],
        "fcc70ed3e01e14848b18f13f7297788d160eeb7bcd19f9e991d64d0be52951a6",
    );
    let line = Line {
        tags: vec!["a", "bc"],
        note: None,
        amount: Amount {
            currency: "EUR",
            cents: 1999,
        },
    };
    assert_key(
        "line",
        &line,
        "a02067592e3f288788042d058f441be4750a09debd6da39e4b9ae8d33413306b",
    );
    let totals = BTreeMap::from([("a", 1), ("b", 2), ("ä", 3)]);
    assert_key(
        "totals",
        &totals,
        "781c3e7714c165960c7823a133f4762f0d935d2f2b02b34ee56098487f23dc25",
    );
}

#[test]
fn a_key_of_no_fields_never_changes() {
    assert_eq!(
        KeyEncoder::new().key(TABLE).to_string(),
        "b4807c7fad07c37e7d741070d67bd8c0ea86334cf019b8c7e199dd6ec3599f4c"
    );
}

#[test]
fn the_order_of_fields_does_not_count() {
    let (id, start) = (serde_json::json!(42), serde_json::json!("2013-02-01"));
    let one = fields(&[("subscription_id", &id), ("period_start", &start)]);
    let other = fields(&[("period_start", &start), ("subscription_id", &id)]);
    let key = one.key(TABLE);
    assert_eq!(key, other.key(TABLE));
    assert_eq!(
        key.to_string(),
        "e296ec8c5f87204d143bb62222181fca8d352e6a8904cfb82c8f2f01a0984bce"
    );
}

#[test]
fn the_order_of_a_map_does_not_count() {
    let names: Vec<_> = (0..50).map(|no| format!("name-{no}")).collect();
    let forwards: HashMap<_, _> = names.iter().map(|name| (name, name.len())).collect();
    let backwards: HashMap<_, _> = names.iter().rev().map(|name| (name, name.len())).collect();
    assert_eq!(key_of("totals", &forwards), key_of("totals", &backwards));
}

#[test]
fn the_names_of_the_table_and_the_field_count() {
    let invoice = key_of("invoice", &7u64);
    let refund = fields(&[("invoice", &7u64)]).key("refund_job");
    assert_eq!(
        refund.to_string(),
        "8c92f14d7f8146f56f1eee53d8e8470cdaa340d77cfcfae17e218c0a4973c160"
    );
    assert_ne!(invoice, refund);
    assert_ne!(invoice, key_of("receipt", &7u64));
}

#[test]
fn the_kind_of_a_value_counts_and_its_width_does_not() {
    assert_ne!(key_of("invoice", &7u64), key_of("invoice", "7"));
    assert_ne!(key_of("invoice", &None::<u64>), key_of("invoice", ""));
    assert_ne!(key_of("invoice", &false), key_of("invoice", &0));
    assert_ne!(key_of("invoice", &[7]), key_of("invoice", &7));
    assert_eq!(key_of("invoice", &7u8), key_of("invoice", &7i64));
    assert_eq!(key_of("invoice", &Some(7)), key_of("invoice", &7));
}

#[test]
fn where_one_text_ends_and_the_next_begins_counts() {
    let one = fields(&[("a", "ab"), ("b", "c")]).key(TABLE);
    let other = fields(&[("a", "a"), ("b", "bc")]).key(TABLE);
    assert_eq!(
        one.to_string(),
        "54b37ccb0e7bbd58047ec04e173d036a795ea6af1742cd84f939e54ea4105fa1"
    );
    assert_eq!(
        other.to_string(),
        "b516159de5ff818cccda42fd19a251616aa668616f7dfbe2ad56be78d0580d7a"
    );
}

#[test]
fn a_floating_point_number_is_refused_at_any_depth_with_its_field() {
    fn refused<T: Serialize>(value: &T) {
        let mut encoder = KeyEncoder::new();
        let error = encoder.field("amount", value).unwrap_err();
        assert!(matches!(error, KeyError::Float { field: "amount" }));
        assert_eq!(
            error.to_string(),
            "`amount` holds a floating-point number, which can't be part of a key; \
             use an integer or text"
        );
    }
    refused(&1.5);
    refused(&2.0f32);
    refused(&Some(1.5));
    refused(&[1.5]);
    refused(&BTreeMap::from([("net", vec![Some(0.0)])]));
}

#[test]
fn what_is_no_number_to_json_counts_as_null() {
    for number in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
        assert_eq!(key_of("amount", &number), key_of("amount", &()));
    }
}

#[test]
fn a_number_past_64_bits_is_refused_with_its_field() {
    let mut encoder = KeyEncoder::new();
    let error = encoder.field("amount", &u128::MAX).unwrap_err();
    assert!(matches!(
        error,
        KeyError::Serialize {
            field: "amount",
            ..
        }
    ));
    assert_eq!(error.to_string(), "`amount` can't be part of a key");
    assert_eq!(key_of("amount", &7u128), key_of("amount", &7u64));
}

#[test]
fn a_random_key_is_never_the_same() {
    assert_ne!(IdempotencyKey::random(), IdempotencyKey::random());
}

#[test]
fn a_key_is_shown_as_64_lower_case_digits_and_keeps_its_bytes() {
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&[0x0a, 0xff, 0, 1, 2, 3, 4, 5]);
    let key = IdempotencyKey::from_bytes(bytes);
    assert_eq!(key.as_bytes(), &bytes);
    assert_eq!(key.to_u64(), 0x0aff_0001_0203_0405);
    assert_eq!(key.to_string(), format!("0aff000102030405{:048}", 0));
    assert_eq!(format!("{key:?}"), format!("IdempotencyKey({key})"));
}

/// Texts of few letters, so that many pairs join to the same text.
fn short_text() -> impl Strategy<Value = String> {
    "[ab\u{0}]{0,3}"
}

proptest! {
    #[test]
    fn different_pairs_of_texts_have_different_keys(
        one in (short_text(), short_text()),
        other in (short_text(), short_text()),
    ) {
        let key = |(a, b): &(String, String)| {
            fields(&[("a", a.as_str()), ("b", b.as_str())]).key(TABLE)
        };
        prop_assert_eq!(key(&one) == key(&other), one == other);
    }

    #[test]
    fn different_nestings_have_different_keys(
        one in prop::collection::vec(prop::collection::vec(short_text(), 0..3), 0..3),
        other in prop::collection::vec(prop::collection::vec(short_text(), 0..3), 0..3),
    ) {
        prop_assert_eq!(key_of("a", &one) == key_of("a", &other), one == other);
    }
}
