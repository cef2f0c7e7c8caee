//! Whether what was committed is still there after a crash or a failover.
//!
//! # Source
//!
//! MySQL 8.4 Reference Manual, "InnoDB Startup Options and System Variables",
//! "Binary Logging Options and Variables", "Semisynchronous Replication",
//! "Transaction Consistency Guarantees"; MariaDB, "InnoDB System Variables".

use retryjob_core::op::doctor::Finding;

use super::{Seen, is_on, not_shown};

/// On this server.
pub(super) fn local(settings: &Seen) -> Vec<Finding> {
    vec![
        flush_log(settings.get("innodb_flush_log_at_trx_commit")),
        sync_binlog(settings.get("log_bin"), settings.get("sync_binlog")),
        doublewrite(settings.get("innodb_doublewrite")),
    ]
}

fn flush_log(value: Option<&str>) -> Finding {
    let name = "innodb_flush_log_at_trx_commit";
    match value {
        Some("1") => Finding::ok(name, "1"),
        // MariaDB alone: flushed at the commit, and once more.
        Some("3") => Finding::ok(name, "3"),
        Some(value @ "0") => Finding::fault(
            name,
            value,
            "a crash of the server loses about a second of acknowledged jobs and finishes; set it to 1",
        ),
        Some(value) => Finding::fault(
            name,
            value,
            "a power cut loses about a second of acknowledged jobs and finishes; set it to 1",
        ),
        None => not_shown(name),
    }
}

fn sync_binlog(log_bin: Option<&str>, value: Option<&str>) -> Finding {
    let name = "sync_binlog";
    match (log_bin, value) {
        (Some(log_bin), Some(value)) if !is_on(log_bin) => {
            Finding::note(name, value, "does not matter: `log_bin` is off")
        }
        (_, Some("1")) => Finding::ok(name, "1"),
        (_, Some(value)) => Finding::fault(
            name,
            value,
            "a power cut loses the end of the binary log, and with it what replicas and \
             recovery take for committed; set it to 1",
        ),
        (_, None) => not_shown(name),
    }
}

fn doublewrite(value: Option<&str>) -> Finding {
    let name = "innodb_doublewrite";
    match value {
        Some(value) if value.eq_ignore_ascii_case("OFF") || value == "0" => Finding::fault(
            name,
            value,
            "a power cut can leave half-written pages that recovery can't mend; set it to ON, \
             unless the file system writes whole pages",
        ),
        Some(value) if value.eq_ignore_ascii_case("DETECT_ONLY") => Finding::fault(
            name,
            value,
            "half-written pages are noticed and can't be mended; set it to ON",
        ),
        Some(value) => Finding::ok(name, value),
        None => not_shown(name),
    }
}

/// On the servers that may take this one's place; nothing is said when none
/// are to be seen.
pub(super) fn replicated(settings: &Seen, counters: &Seen) -> Vec<Finding> {
    semi_sync(settings, counters)
        .into_iter()
        .chain(group(settings))
        .collect()
}

fn semi_sync(settings: &Seen, counters: &Seen) -> Option<Finding> {
    let (name, enabled) = settings.any(&[
        "rpl_semi_sync_source_enabled",
        "rpl_semi_sync_master_enabled",
    ])?;
    if !is_on(enabled) {
        return Some(Finding::note(
            name,
            enabled,
            "replicas, if there are any, follow behind: a failover loses what they have not got yet",
        ));
    }
    let (_, status) =
        counters.any(&["Rpl_semi_sync_source_status", "Rpl_semi_sync_master_status"])?;
    if !is_on(status) {
        return Some(Finding::warning(
            name,
            "ON, fallen back to asynchronous",
            "no replica answers in time: a failover now loses acknowledged jobs",
        ));
    }
    let (_, point) = settings
        .any(&[
            "rpl_semi_sync_source_wait_point",
            "rpl_semi_sync_master_wait_point",
        ])
        .unwrap_or_default();
    if point.eq_ignore_ascii_case("AFTER_COMMIT") {
        return Some(Finding::warning(
            name,
            "ON, AFTER_COMMIT",
            "others see a commit before a replica has it, so a failover can undo what was seen; \
             AFTER_SYNC waits first",
        ));
    }
    Some(Finding::note(
        name,
        format!("ON, {point}"),
        "holds until it times out; then commits are asynchronous until a replica answers again",
    ))
}

fn group(settings: &Seen) -> Option<Finding> {
    let group = settings.get("group_replication_group_name")?;
    if group.is_empty() {
        return None;
    }
    let name = "group_replication_consistency";
    let Some(value) = settings.get(name) else {
        return Some(not_shown(name));
    };
    Some(Finding::note(
        name,
        value,
        match value {
            "EVENTUAL" => {
                "after a failover the new primary may answer before it has applied all that was \
                 acknowledged; BEFORE_ON_PRIMARY_FAILOVER waits"
            }
            _ => "a majority has each acknowledged commit",
        },
    ))
}

#[cfg(test)]
mod tests {
    use retryjob_core::op::doctor::{Level, UNKNOWN};

    use super::*;

    #[test]
    fn only_a_log_that_is_flushed_at_every_commit_is_durable() {
        for (value, level) in [
            (Some("1"), Level::Ok),
            (Some("3"), Level::Ok),
            (Some("0"), Level::Fault),
            (Some("2"), Level::Fault),
            (None, Level::Warning),
        ] {
            let finding = flush_log(value);
            assert_eq!(finding.level, level, "{value:?}");
            assert_eq!(finding.value, value.unwrap_or(UNKNOWN));
        }
    }

    #[test]
    fn the_binary_log_has_to_be_synced_where_there_is_one() {
        for (log_bin, value, level) in [
            (Some("ON"), Some("1"), Level::Ok),
            (Some("ON"), Some("0"), Level::Fault),
            (Some("ON"), Some("100"), Level::Fault),
            (Some("OFF"), Some("0"), Level::Ok),
            (None, Some("0"), Level::Fault),
            (None, Some("1"), Level::Ok),
            (Some("ON"), None, Level::Warning),
        ] {
            let finding = sync_binlog(log_bin, value);
            assert_eq!(finding.level, level, "{log_bin:?} {value:?}");
        }
    }

    #[test]
    fn pages_have_to_be_mended_after_a_power_cut() {
        for (value, level) in [
            ("ON", Level::Ok),
            ("DETECT_AND_RECOVER", Level::Ok),
            ("fast", Level::Ok),
            ("OFF", Level::Fault),
            ("0", Level::Fault),
            ("DETECT_ONLY", Level::Fault),
        ] {
            assert_eq!(doublewrite(Some(value)).level, level, "{value}");
        }
        assert_eq!(doublewrite(None).value, UNKNOWN);
    }

    #[test]
    fn replication_is_not_spoken_of_where_none_is_seen() {
        let alone = Seen::of([("group_replication_group_name", "")]);
        assert_eq!(replicated(&alone, &Seen::default()), []);
        assert_eq!(replicated(&Seen::default(), &Seen::default()), []);
    }

    #[test]
    fn semi_synchronous_replication_that_fell_back_is_worth_a_change() {
        let name = "rpl_semi_sync_source_enabled";
        let on = |point| Seen::of([(name, "ON"), ("rpl_semi_sync_source_wait_point", point)]);
        let status = |status| Seen::of([("Rpl_semi_sync_source_status", status)]);
        for (settings, counters, level) in [
            (on("AFTER_SYNC"), status("ON"), Level::Ok),
            (on("AFTER_COMMIT"), status("ON"), Level::Warning),
            (on("AFTER_SYNC"), status("OFF"), Level::Warning),
            (Seen::of([(name, "OFF")]), status("OFF"), Level::Ok),
        ] {
            let findings = replicated(&settings, &counters);
            assert_eq!(findings.len(), 1);
            assert_eq!(findings[0].level, level, "{:?}", findings[0]);
            assert!(!findings[0].advice.is_empty());
        }
    }

    #[test]
    fn a_group_that_answers_before_it_has_caught_up_is_told() {
        let group = |value| {
            Seen::of([
                ("group_replication_group_name", "aaaa"),
                ("group_replication_consistency", value),
            ])
        };
        let said = |value| replicated(&group(value), &Seen::default())[0].clone();
        let eventual = said("EVENTUAL");
        assert!(eventual.advice.contains("BEFORE_ON_PRIMARY_FAILOVER"));
        assert!(said("AFTER").advice.contains("majority"));
    }
}
