use std::fmt::Debug;

use chrono::{DateTime, NaiveDate, NaiveDateTime, Utc};
use proptest::prelude::*;

use crate::value::{ColumnType, ColumnValue, Value, ValueError};

const VARCHAR3: ColumnType = ColumnType::Varchar { chars: 3 };
const BINARY3: ColumnType = ColumnType::Binary { bytes: 3 };
const VARBINARY3: ColumnType = ColumnType::Varbinary { bytes: 3 };

fn text(text: &str) -> Value {
    Value::Text(text.into())
}

fn day(year: i32) -> NaiveDate {
    NaiveDate::from_ymd_opt(year, 2, 4).unwrap()
}

fn at(year: i32, second: u32, nanosecond: u32) -> NaiveDateTime {
    day(year)
        .and_hms_nano_opt(23, 59, second, nanosecond)
        .unwrap()
}

#[test]
fn varchar_counts_characters_and_not_bytes() {
    for fits in ["", "abc", "äöü", "🚀🚀🚀"] {
        assert_eq!(text(fits).check(VARCHAR3), Ok(()), "{fits:?}");
    }
    let error = text("äöü🚀").check(VARCHAR3).unwrap_err();
    assert_eq!(error.to_string(), "has 4 characters, its column takes 3");
}

#[test]
fn text_has_no_bound_of_its_own() {
    assert_eq!(text(&"a".repeat(100_000)).check(ColumnType::Text), Ok(()));
}

#[test]
fn varbinary_takes_fewer_bytes_and_binary_exactly_its_own() {
    for (len, varbinary, binary) in [
        (0, None, Some("has 0 bytes, its column takes exactly 3")),
        (2, None, Some("has 2 bytes, its column takes exactly 3")),
        (3, None, None),
        (
            4,
            Some("has 4 bytes, its column takes 3"),
            Some("has 4 bytes, its column takes exactly 3"),
        ),
    ] {
        let bytes = Value::Bytes(vec![1; len]);
        let message = |column| bytes.check(column).err().map(|error| error.to_string());
        assert_eq!(message(VARBINARY3).as_deref(), varbinary, "{len}");
        assert_eq!(message(BINARY3).as_deref(), binary, "{len}");
    }
}

#[test]
fn only_finite_numbers_are_taken() {
    for number in [0.0, -0.0, f64::MIN, f64::MAX, f64::MIN_POSITIVE] {
        assert_eq!(Value::F64(number).check(ColumnType::F64), Ok(()));
    }
    for (number, shown) in [
        (f64::NAN, "NaN"),
        (f64::INFINITY, "inf"),
        (f64::NEG_INFINITY, "-inf"),
    ] {
        assert_eq!(
            Value::F64(number).check(ColumnType::F64),
            Err(ValueError::NotFinite(shown.into()))
        );
    }
}

#[test]
fn only_the_years_1000_to_9999_are_taken() {
    for (year, is_taken) in [
        (-1, false),
        (999, false),
        (1000, true),
        (9999, true),
        (10_000, false),
    ] {
        let date = Value::Date(day(year)).check(ColumnType::Date);
        let time = Value::DateTime(at(year, 0, 0)).check(ColumnType::DateTime);
        assert_eq!(date.is_ok(), is_taken, "{year}");
        assert_eq!(time.is_ok(), is_taken, "{year}");
    }
    let error = Value::Date(day(999)).check(ColumnType::Date).unwrap_err();
    assert_eq!(
        error.to_string(),
        "0999-02-04 is outside the years 1000 to 9999"
    );
}

#[test]
fn null_fits_every_type() {
    for column in [VARCHAR3, BINARY3, ColumnType::Date, ColumnType::F64] {
        assert_eq!(Value::Null.check(column), Ok(()));
    }
}

fn assert_range<T: ColumnValue + PartialEq + Debug>(name: &str, min: i64, max: u64) {
    for value in [Value::I64(min), Value::U64(max)] {
        let field = T::from_value(value.clone());
        assert!(field.is_ok(), "{name} from {value:?}: {field:?}");
    }
    // The same number comes from either sign's kind, as databases differ.
    if let Ok(signed) = i64::try_from(max) {
        assert_eq!(
            T::from_value(Value::I64(signed)),
            T::from_value(Value::U64(max))
        );
    }
    let below = min.checked_sub(1).map(Value::I64);
    let above = max.checked_add(1).map(Value::U64);
    let above_signed = i64::try_from(max)
        .ok()
        .and_then(|max| max.checked_add(1))
        .map(Value::I64);
    for value in [below, above, above_signed].into_iter().flatten() {
        match T::from_value(value.clone()) {
            Err(ValueError::Range { expected, .. }) => assert_eq!(expected, name),
            other => panic!("{name} from {value:?}: {other:?}"),
        }
    }
}

#[test]
fn an_integer_is_taken_from_either_kind_within_its_range() {
    assert_range::<i8>("i8", -128, 127);
    assert_range::<i16>("i16", -32_768, 32_767);
    assert_range::<i32>("i32", i32::MIN.into(), 2_147_483_647);
    assert_range::<i64>("i64", i64::MIN, i64::MAX.unsigned_abs());
    assert_range::<u8>("u8", 0, 255);
    assert_range::<u16>("u16", 0, 65_535);
    assert_range::<u32>("u32", 0, 4_294_967_295);
    assert_range::<u64>("u64", 0, u64::MAX);
}

#[test]
fn a_number_out_of_range_is_named() {
    let error = u8::from_value(Value::I64(-1)).unwrap_err();
    assert_eq!(error.to_string(), "-1 is out of range for u8");
}

#[test]
fn another_kind_of_value_is_refused_with_both_kinds() {
    fn refused<T: ColumnValue + Debug>(value: Value, message: &str) {
        assert_eq!(T::from_value(value).unwrap_err().to_string(), message);
    }
    refused::<u64>(text("7"), "expected u64, found text");
    refused::<u64>(Value::Null, "expected u64, found NULL");
    refused::<bool>(Value::I64(1), "expected a boolean, found the integer 1");
    refused::<f64>(
        Value::U64(1),
        "expected a floating-point number, found the integer 1",
    );
    refused::<String>(Value::Bytes(vec![]), "expected text, found bytes");
    refused::<Vec<u8>>(text(""), "expected bytes, found text");
    refused::<NaiveDate>(
        Value::DateTime(at(2013, 0, 0)),
        "expected a date, found a date and time",
    );
    refused::<NaiveDateTime>(
        Value::Date(day(2013)),
        "expected a date and time, found a date",
    );
    refused::<[u8; 3]>(Value::Bytes(vec![1, 2]), "has 2 bytes, expected 3");
}

#[test]
fn none_is_null_and_only_an_option_takes_it() {
    assert_eq!(None::<u64>.to_value(), Value::Null);
    assert_eq!(Option::<u64>::from_value(Value::Null), Ok(None));
    assert_eq!(Option::<u64>::from_value(Value::U64(7)), Ok(Some(7)));
    assert!(Option::<u8>::from_value(Value::U64(256)).is_err());
    const { assert!(Option::<u64>::NULLABLE && !u64::NULLABLE) }
    assert_eq!(Option::<u64>::TYPE, ColumnType::U64);
}

#[test]
fn a_date_and_time_is_cut_to_its_microsecond_and_never_rounded_up() {
    let cut = |nanosecond| at(2013, 59, nanosecond).to_value();
    assert_eq!(cut(123_456_999), Value::DateTime(at(2013, 59, 123_456_000)));
    // Rounded up, this would be another year.
    let new_years_eve = NaiveDate::from_ymd_opt(9999, 12, 31).unwrap();
    let last = |nanosecond| new_years_eve.and_hms_nano_opt(23, 59, 59, nanosecond);
    assert_eq!(
        last(999_999_999).unwrap().and_utc().to_value(),
        Value::DateTime(last(999_999_000).unwrap())
    );
}

#[test]
fn a_leap_second_is_cut_to_the_last_microsecond_before_it() {
    // No server has 23:59:60; chrono writes it as a second of two seconds.
    let leap = at(2016, 59, 1_500_000_000);
    assert_eq!(leap.to_value(), Value::DateTime(at(2016, 59, 999_999_000)));
}

#[test]
fn a_field_can_be_declared_as_its_own_kind_and_few_others() {
    use ColumnType::{
        Binary, Bool, Date, DateTime, F64, I8, I16, I32, I64, Text, U8, U16, U32, U64, Varbinary,
        Varchar,
    };
    let (varchar, varbinary, binary) = (
        Varchar { chars: 9 },
        Varbinary { bytes: 9 },
        Binary { bytes: 3 },
    );
    let kinds = [
        Bool, I8, I16, I32, I64, U8, U16, U32, U64, F64, varchar, Text, binary, varbinary, Date,
        DateTime,
    ];
    let others = [(varchar, Text), (Text, varchar), (varbinary, binary)];
    for own in kinds {
        for given in kinds {
            let want = own == given || others.contains(&(own, given));
            assert_eq!(own.can_be_declared(given), want, "{own:?} as {given:?}");
        }
    }
    assert!(varchar.can_be_declared(VARCHAR3));
    assert!(varbinary.can_be_declared(VARBINARY3));
    assert!(!binary.can_be_declared(Binary { bytes: 4 }));
}

#[test]
fn bytes_of_an_index_and_a_row_are_those_of_mysql() {
    for (column, index_bytes, row_bytes) in [
        (ColumnType::Bool, 1, 1),
        (ColumnType::I8, 1, 1),
        (ColumnType::U16, 2, 2),
        (ColumnType::Date, 3, 3),
        (ColumnType::I32, 4, 4),
        (ColumnType::U64, 8, 8),
        (ColumnType::F64, 8, 8),
        (ColumnType::DateTime, 8, 8),
        (ColumnType::Varchar { chars: 255 }, 1020, 1022),
        (ColumnType::Binary { bytes: 32 }, 32, 32),
        (ColumnType::Varbinary { bytes: 255 }, 255, 257),
        (ColumnType::Text, 0, 12),
    ] {
        assert_eq!(column.index_bytes(), index_bytes, "{column:?}");
        assert_eq!(column.row_bytes(), row_bytes, "{column:?}");
    }
}

fn assert_round_trip<T: ColumnValue + PartialEq + Debug>(field: &T) {
    let value = field.to_value();
    assert_eq!(value.check(T::TYPE), Ok(()));
    assert_eq!(T::from_value(value).as_ref(), Ok(field));
}

proptest! {
    #[test]
    fn what_is_written_is_what_is_read(
        signed in any::<(i8, i16, i32, i64)>(),
        unsigned in any::<(u8, u16, u32, u64)>(),
        flag in any::<Option<bool>>(),
        number in prop::num::f64::NORMAL,
        text in "\\PC{0,255}",
        bytes in prop::collection::vec(any::<u8>(), 0..=255),
        array in any::<[u8; 32]>(),
        us in -30_000_000_000_000_000i64..253_402_300_799_999_999,
    ) {
        assert_round_trip(&signed.0);
        assert_round_trip(&signed.1);
        assert_round_trip(&signed.2);
        assert_round_trip(&signed.3);
        assert_round_trip(&unsigned.0);
        assert_round_trip(&unsigned.1);
        assert_round_trip(&unsigned.2);
        assert_round_trip(&unsigned.3);
        assert_round_trip(&flag);
        assert_round_trip(&number);
        assert_round_trip(&text);
        assert_round_trip(&bytes);
        assert_round_trip(&array);
        let at = DateTime::<Utc>::from_timestamp_micros(us).unwrap();
        assert_round_trip(&at);
        assert_round_trip(&at.naive_utc());
        assert_round_trip(&at.date_naive());
    }
}
