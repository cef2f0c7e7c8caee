//! How far the database's clock and this machine's are apart.
//!
//! Told for a person alone: no statement depends on this machine's clock.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use retryjob_core::{op::doctor::Finding, sql::Catalogue};

use crate::{fault::Fault, op::due, session::Session};

/// Times that the clock is read; the quickest answer tells most.
const READS: u32 = 5;

/// Microseconds apart at which the logs of both machines are hard to read
/// together.
const APART_US_MAX: u64 = 1_000_000;

pub(super) async fn compare<S: Session>(
    session: &mut S,
    catalogue: &Catalogue,
) -> Result<Finding, Fault> {
    let mut best: Option<(Duration, i64)> = None;
    for _ in 0..READS {
        let (asked, before_us) = (Instant::now(), wall_us());
        let database = match due::clock(session, catalogue).await {
            Ok(at) => at,
            Err(Fault::Final(refused)) => {
                return Ok(Finding::unknown("clock", refused.to_string()));
            }
            Err(lost) => return Err(lost),
        };
        let way = asked.elapsed() / 2;
        let here_us = before_us + i64::try_from(way.as_micros()).unwrap_or(i64::MAX);
        if best.is_none_or(|(shortest, _)| way < shortest) {
            best = Some((way, database.us() - here_us));
        }
    }
    let (way, ahead_us) = best.unwrap_or_default();
    Ok(judge(ahead_us, way))
}

#[expect(
    clippy::disallowed_methods,
    reason = "compared with the database's clock for a person to read, and never bound"
)]
fn wall_us() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    let us = since.unwrap_or_default().as_micros();
    i64::try_from(us).unwrap_or(i64::MAX)
}

/// `way` is half of the round trip: the answer is that far from sure.
fn judge(ahead_us: i64, way: Duration) -> Finding {
    let apart_us = ahead_us.unsigned_abs();
    let apart = Duration::from_micros(apart_us);
    let side = if ahead_us < 0 { "behind" } else { "ahead of" };
    let value = format!("the database is {apart:?} {side} this machine, give or take {way:?}");
    if apart_us <= APART_US_MAX {
        return Finding::ok("clock", value);
    }
    Finding::note(
        "clock",
        value,
        "leases and due times follow the database's clock alone; the logs of both will disagree",
    )
}

#[cfg(test)]
mod tests {
    use retryjob_core::op::doctor::Level;

    use super::*;

    #[test]
    fn a_clock_that_is_off_is_told_and_is_no_fault() {
        let way = Duration::from_micros(100);
        for (ahead_us, value, has_advice) in [
            (0, "0ns ahead of", false),
            (-1500, "1.5ms behind", false),
            (1_000_000, "1s ahead of", false),
            (3_600_000_000, "3600s ahead of", true),
            (i64::MIN, "behind", true),
        ] {
            let finding = judge(ahead_us, way);
            assert!(finding.value.contains(value), "{}", finding.value);
            assert!(finding.value.ends_with("give or take 100µs"));
            assert_eq!(finding.level, Level::Ok);
            assert_eq!(!finding.advice.is_empty(), has_advice, "{ahead_us}");
        }
    }
}
