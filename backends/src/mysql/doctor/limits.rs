//! Limits that a worker can run into.

use retryjob_core::op::doctor::Finding;

use super::{Seen, is_on, not_shown};
use crate::kind::Ask;

/// Statements that the driver keeps prepared on each connection.
const PREPARED_PER_CONNECTION: usize = 100;

/// Seconds of idleness below which connections are made anew all the time.
const WAIT_S_MIN: u64 = 30;

/// Bytes below which a job with an ordinary payload may not fit.
const PACKET_BYTES_MIN: u64 = 1024 * 1024;

/// Most statements that one worker prepares at once.
pub(super) fn prepared_max(ask: &Ask<'_>) -> u64 {
    let texts = ask.catalogue.statements().len();
    let per_connection = u64::try_from(texts.min(PREPARED_PER_CONNECTION)).unwrap_or(u64::MAX);
    per_connection.saturating_mul(ask.connections_max.into())
}

pub(super) fn judge(settings: &Seen, counters: &Seen, prepared: u64) -> Vec<Finding> {
    let number = |name| settings.get(name).and_then(|value| value.parse().ok());
    let in_use = counters
        .get("Prepared_stmt_count")
        .and_then(|value| value.parse().ok());
    vec![
        rollback_on_timeout(settings.get("innodb_rollback_on_timeout")),
        wait_timeout(number("wait_timeout")),
        max_prepared(number("max_prepared_stmt_count"), in_use, prepared),
        max_packet(number("max_allowed_packet")),
    ]
}

fn rollback_on_timeout(value: Option<&str>) -> Finding {
    let name = "innodb_rollback_on_timeout";
    match value {
        Some(value) if is_on(value) => Finding::ok(name, value),
        Some(value) => Finding::note(
            name,
            value,
            "either is right for the job statements; a transaction of your own still holds its \
             earlier writes after a lock wait timed out (1205), so roll it back yourself",
        ),
        None => not_shown(name),
    }
}

fn wait_timeout(seconds: Option<u64>) -> Finding {
    let name = "wait_timeout";
    match seconds {
        Some(seconds) if seconds >= WAIT_S_MIN => Finding::ok(name, format!("{seconds} s")),
        Some(seconds) => Finding::warning(
            name,
            format!("{seconds} s"),
            "idle connections are closed so soon that most polls open a new one",
        ),
        None => not_shown(name),
    }
}

/// `prepared` is what one worker may use.
fn max_prepared(limit: Option<u64>, in_use: Option<u64>, prepared: u64) -> Finding {
    let name = "max_prepared_stmt_count";
    let Some(limit) = limit else {
        return not_shown(name);
    };
    let used = in_use.map_or_else(String::new, |used| format!(", {used} in use"));
    let value = format!("{limit}{used}");
    let asks = format!("a worker may keep {prepared} statements prepared");
    if limit < prepared {
        let advice = format!("{asks}; beyond the limit the server refuses (1461)");
        return Finding::warning(name, value, advice);
    }
    if in_use.is_some_and(|used| used.saturating_add(prepared) > limit) {
        let advice = format!("{asks}, and so many are not left; raise the limit");
        return Finding::warning(name, value, advice);
    }
    Finding::note(name, value, asks)
}

fn max_packet(bytes: Option<u64>) -> Finding {
    let name = "max_allowed_packet";
    match bytes {
        Some(bytes) if bytes >= PACKET_BYTES_MIN => Finding::note(
            name,
            format!("{bytes} bytes"),
            "a job that is larger is refused when it is enqueued",
        ),
        Some(bytes) => Finding::warning(
            name,
            format!("{bytes} bytes"),
            "jobs with an ordinary payload may be refused when they are enqueued",
        ),
        None => not_shown(name),
    }
}

#[cfg(test)]
mod tests {
    use retryjob_core::op::doctor::{Level, UNKNOWN};

    use super::*;

    #[test]
    fn settings_that_are_not_shown_are_unknown() {
        for finding in judge(&Seen::default(), &Seen::default(), 1) {
            assert_eq!(finding.value, UNKNOWN, "{}", finding.subject);
        }
    }

    #[test]
    fn a_lock_wait_that_undoes_its_statement_alone_is_explained() {
        assert_eq!(rollback_on_timeout(Some("ON")).advice, "");
        assert!(rollback_on_timeout(Some("OFF")).advice.contains("1205"));
    }

    #[test]
    fn connections_that_are_closed_at_once_are_worth_a_change() {
        assert_eq!(wait_timeout(Some(28_800)).level, Level::Ok);
        assert_eq!(wait_timeout(Some(1)).level, Level::Warning);
    }

    #[test]
    fn a_worker_has_to_find_room_for_its_prepared_statements() {
        for (limit, in_use, level) in [
            (16_382, Some(10), Level::Ok),
            (16_382, None, Level::Ok),
            (16_382, Some(16_000), Level::Warning),
            (50, Some(0), Level::Warning),
        ] {
            let finding = max_prepared(Some(limit), in_use, 1200);
            assert_eq!(finding.level, level, "{limit} {in_use:?}");
            assert!(finding.advice.contains("1200"));
        }
    }

    #[test]
    fn a_packet_too_small_for_ordinary_jobs_is_worth_a_change() {
        assert_eq!(max_packet(Some(67_108_864)).level, Level::Ok);
        assert_eq!(max_packet(Some(1024)).level, Level::Warning);
    }
}
