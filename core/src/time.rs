//! Instants by the database's clock, and the bound of every span.

use std::time::Duration;

use chrono::{DateTime, NaiveDateTime};

/// The longest span that is ever bound: 100 years.
///
/// Far beyond it `NOW() + INTERVAL` is `NOW()` on MySQL 5.7 and NULL on 9.x,
/// so a span is bounded here, before it reaches SQL.
pub const SPAN_MAX: Duration = Duration::from_secs(100 * 366 * 24 * 60 * 60);

/// Whole microseconds of a span, at most [`SPAN_MAX`].
#[must_use]
pub fn span_us(span: Duration) -> i64 {
    i64::try_from(span.min(SPAN_MAX).as_micros()).unwrap_or(i64::MAX)
}

/// An instant by the database's clock: microseconds since 1970-01-01 UTC.
///
/// It is read from a database and handed back to the same database. A worker
/// never makes one from its own clock.
///
/// # Units
///
/// Microseconds, as `DATETIME(6)` has them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct DbTime {
    us: i64,
}

impl DbTime {
    /// The instant `us` microseconds after 1970-01-01 UTC.
    #[must_use]
    pub const fn from_us(us: i64) -> Self {
        Self { us }
    }

    /// Microseconds since 1970-01-01 UTC.
    #[must_use]
    pub const fn us(self) -> i64 {
        self.us
    }

    /// The instant of a UTC date and time; what is finer than a microsecond
    /// is cut off, never rounded up.
    #[must_use]
    pub fn from_utc(at: NaiveDateTime) -> Self {
        Self::from_us(at.and_utc().timestamp_micros())
    }

    /// The UTC date and time, for a driver to bind; at the end of the calendar
    /// for an instant past it.
    #[must_use]
    pub fn to_utc(self) -> NaiveDateTime {
        let end = if self.us < 0 {
            NaiveDateTime::MIN
        } else {
            NaiveDateTime::MAX
        };
        DateTime::from_timestamp_micros(self.us).map_or(end, |at| at.naive_utc())
    }

    /// The time from `earlier` to here; zero when `earlier` is later.
    #[must_use]
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_micros(u64::try_from(self.us.saturating_sub(earlier.us)).unwrap_or(0))
    }

    /// This instant moved later by a span, saturating.
    #[must_use]
    pub fn plus(self, span: Duration) -> Self {
        Self::from_us(self.us.saturating_add(span_us(span)))
    }
}
