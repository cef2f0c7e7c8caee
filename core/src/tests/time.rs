use std::time::Duration;

use chrono::{NaiveDate, NaiveDateTime};
use proptest::prelude::*;

use crate::time::{DbTime, SPAN_MAX, span_us};

fn utc(year: i32, nanosecond: u32) -> NaiveDateTime {
    let day = NaiveDate::from_ymd_opt(year, 2, 4).unwrap();
    day.and_hms_nano_opt(5, 25, 0, nanosecond).unwrap()
}

#[test]
fn a_span_is_cut_to_whole_microseconds_and_bounded() {
    assert_eq!(span_us(Duration::ZERO), 0);
    assert_eq!(span_us(Duration::from_nanos(1_999)), 1);
    assert_eq!(span_us(Duration::from_secs(60)), 60_000_000);
    assert_eq!(span_us(SPAN_MAX), 3_162_240_000_000_000);
    assert_eq!(span_us(Duration::MAX), span_us(SPAN_MAX));
}

#[test]
fn an_instant_is_cut_to_its_microsecond_on_both_sides_of_1970() {
    let after = DbTime::from_utc(utc(2013, 123_456_999));
    assert_eq!(after.us(), 1_359_955_500_123_456);
    // Truncating the number toward zero would move this one later.
    let before = DbTime::from_utc(utc(1960, 123_456_999));
    assert_eq!(before.us(), -312_662_099_876_544);
    assert_eq!(before.to_utc(), utc(1960, 123_456_000));
}

#[test]
fn the_time_since_a_later_instant_is_zero() {
    let departure = DbTime::from_us(1_000);
    assert_eq!(
        departure.since(DbTime::from_us(400)),
        Duration::from_micros(600)
    );
    assert_eq!(DbTime::from_us(400).since(departure), Duration::ZERO);
}

#[test]
fn since_and_plus_saturate() {
    let (first, last) = (DbTime::from_us(i64::MIN), DbTime::from_us(i64::MAX));
    assert_eq!(
        last.since(first),
        Duration::from_micros(i64::MAX.unsigned_abs())
    );
    assert_eq!(first.since(last), Duration::ZERO);
    assert_eq!(last.plus(Duration::from_micros(1)), last);
    assert_eq!(
        DbTime::default().plus(Duration::MAX).us(),
        span_us(SPAN_MAX)
    );
}

#[test]
fn an_instant_past_the_calendar_stays_at_its_end() {
    // 1970 would make a job due at once that was meant for the far future.
    let last = DbTime::from_us(i64::MAX).to_utc();
    let first = DbTime::from_us(i64::MIN).to_utc();
    assert!(last > utc(9999, 0), "{last}");
    assert!(first < utc(-9999, 0), "{first}");
}

proptest! {
    #[test]
    fn an_instant_survives_the_way_to_utc_and_back(
        us in -30_000_000_000_000_000i64..253_402_300_799_999_999,
    ) {
        let at = DbTime::from_us(us);
        prop_assert_eq!(DbTime::from_utc(at.to_utc()), at);
    }

    #[test]
    fn plus_is_undone_by_since(us in any::<i32>(), span_us in 0..1u64 << 50) {
        let (start, span) = (DbTime::from_us(us.into()), Duration::from_micros(span_us));
        prop_assert_eq!(start.plus(span).since(start), span);
    }
}
