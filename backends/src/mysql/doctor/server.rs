//! The server itself, its sessions, and whether it takes writes.

use retryjob_core::op::doctor::Finding;

use super::{Seen, is_on, not_shown};
use crate::mysql::connect::{WANTED, words};

/// Product and version.
pub(super) fn version(settings: &Seen) -> Vec<Finding> {
    let Some(version) = settings.get("version") else {
        return vec![not_shown("version")];
    };
    let comment = settings.get("version_comment").unwrap_or_default();
    let product = match is_mariadb(settings) {
        true => "MariaDB",
        false => "MySQL",
    };
    let value = format!("{product} {version}, {comment}");
    vec![Finding::ok("version", value)]
}

/// The two servers differ in what EXPLAIN understands.
pub(super) fn is_mariadb(settings: &Seen) -> bool {
    let version = settings.get("version").unwrap_or_default();
    version.contains("MariaDB")
}

/// Whether claims can pass over locked rows: asked of the server, as `connect`
/// does.
pub(super) fn skip_locked(can: Option<bool>, is_needed: bool, settings: &Seen) -> Finding {
    let subject = "SKIP LOCKED";
    match (can, is_needed) {
        (Some(true), true) if is_mariadb(settings) => Finding::note(
            subject,
            "yes",
            "on MariaDB its claims wait for each other; with many workers use `mysql57`",
        ),
        (Some(true), false) if !is_mariadb(settings) => Finding::note(
            subject,
            "yes",
            "this backend does without; `mysql8` would let every node work on every shard",
        ),
        (Some(true), true) => Finding::ok(subject, "yes"),
        (Some(true), false) => Finding::ok(subject, "yes, and this backend does without"),
        (Some(false), true) => Finding::fault(
            subject,
            "no",
            "needs MySQL 8.0.1 or MariaDB 10.6; use the backend `mysql57`",
        ),
        (Some(false), false) => Finding::ok(subject, "no, and this backend does without"),
        (None, _) => Finding::unknown(subject, "the server refuses the statement that asks"),
    }
}

/// What the statements need of every session.
pub(super) fn session(session: &Seen) -> Vec<Finding> {
    let isolation = ["transaction_isolation", "tx_isolation"];
    let mut findings = Vec::new();
    for (name, wanted) in WANTED {
        let subject = format!("session {name}");
        match session.get(name) {
            Some(value) if words(value) == words(wanted) => {
                findings.push(Finding::ok(subject, value));
            }
            Some(value) => findings.push(Finding::fault(
                subject,
                if value.is_empty() { "empty" } else { value },
                format!("the statements need '{wanted}'; a proxy or another pool changes sessions"),
            )),
            // Some servers have only one of the two names.
            None if isolation.contains(&name) && session.any(&isolation).is_some() => {}
            None => findings.push(not_shown(&subject)),
        }
    }
    findings
}

/// Whether anything can be written at all.
pub(super) fn read_only(settings: &Seen, session: &Seen) -> Vec<Finding> {
    let global = ["read_only", "super_read_only", "innodb_read_only"]
        .into_iter()
        .filter_map(|name| Some((name, settings.get(name)?)));
    let own = session.any(&["transaction_read_only", "tx_read_only"]);
    let judge = |(name, value): (&str, &str)| {
        if !is_on(value) {
            return Finding::ok(name, value);
        }
        let advice = match name {
            "read_only" => {
                "only users with a privilege of administrators write here; \
                            is this a replica?"
            }
            "super_read_only" => "nobody writes here; is this a replica?",
            "innodb_read_only" => "the server was started to read alone",
            _ => "the session's transactions take no writes",
        };
        Finding::fault(name, value, advice)
    };
    global.chain(own).map(judge).collect()
}

#[cfg(test)]
mod tests {
    use retryjob_core::op::doctor::{Level, UNKNOWN};

    use super::*;

    #[test]
    fn mariadb_is_told_by_its_version() {
        let maria = Seen::of([("version", "10.11.6-MariaDB-0+deb12u1")]);
        assert!(version(&maria)[0].value.starts_with("MariaDB 10.11.6"));
        let mysql = Seen::of([("version", "9.7.4"), ("version_comment", "Debian")]);
        assert_eq!(version(&mysql)[0].value, "MySQL 9.7.4, Debian");
        assert_eq!(version(&Seen::default())[0].value, UNKNOWN);
    }

    #[test]
    fn skip_locked_is_a_fault_only_where_it_is_needed_and_missing() {
        for (can, is_needed, level) in [
            (Some(true), true, Level::Ok),
            (Some(true), false, Level::Ok),
            (Some(false), true, Level::Fault),
            (Some(false), false, Level::Ok),
            (None, true, Level::Warning),
        ] {
            let finding = skip_locked(can, is_needed, &Seen::default());
            assert_eq!(finding.level, level, "{can:?}");
        }
    }

    #[test]
    fn each_server_is_told_of_the_backend_that_waits_less_there() {
        let mysql = Seen::of([("version", "9.7.4")]);
        let maria = Seen::of([("version", "10.11.6-MariaDB")]);
        for (server, is_needed, advised) in [
            (&mysql, true, ""),
            (&mysql, false, "`mysql8`"),
            (&maria, true, "`mysql57`"),
            (&maria, false, ""),
        ] {
            let advice = skip_locked(Some(true), is_needed, server).advice;
            assert_eq!(advice.is_empty(), advised.is_empty(), "{advice}");
            assert!(advice.contains(advised), "{advice}");
        }
    }

    fn as_wanted() -> Seen {
        Seen::of(WANTED)
    }

    #[test]
    fn a_session_as_the_statements_need_it_is_fine() {
        let findings = session(&as_wanted());
        assert_eq!(findings.len(), WANTED.len());
        assert!(findings.iter().all(|f| f.level == Level::Ok));

        // A set of modes has no order, and one name of the isolation is enough.
        let mut seen = as_wanted();
        let modes: Vec<_> = seen.get("sql_mode").unwrap().rsplit(',').collect();
        let modes = modes.join(",");
        seen.0.insert("sql_mode".into(), modes);
        seen.0.remove("tx_isolation");
        let findings = session(&seen);
        assert_eq!(findings.len(), WANTED.len() - 1);
        assert!(findings.iter().all(|f| f.level == Level::Ok));
    }

    #[test]
    fn each_setting_of_a_session_that_differs_is_a_fault() {
        for (name, value) in [
            ("time_zone", "SYSTEM"),
            ("sql_mode", ""),
            ("transaction_isolation", "REPEATABLE-READ"),
            ("autocommit", "OFF"),
        ] {
            let mut seen = as_wanted();
            seen.0.insert(name.into(), value.into());
            let findings = session(&seen);
            let faults: Vec<_> = findings
                .iter()
                .filter(|f| f.level == Level::Fault)
                .collect();
            assert_eq!(faults.len(), 1, "{name}");
            assert_eq!(faults[0].subject, format!("session {name}"));
            assert!(!faults[0].value.is_empty());
        }
    }

    #[test]
    fn settings_that_are_not_shown_are_unknown() {
        let findings = session(&Seen::default());
        assert!(findings.iter().all(|f| f.value == UNKNOWN));
        assert!(!findings.is_empty());
    }

    #[test]
    fn each_kind_of_read_only_is_a_fault() {
        let writable = Seen::of([("read_only", "OFF"), ("innodb_read_only", "OFF")]);
        let none = Seen::default();
        assert!(
            read_only(&writable, &none)
                .iter()
                .all(|f| f.level == Level::Ok)
        );
        for name in ["read_only", "super_read_only", "innodb_read_only"] {
            let findings = read_only(&Seen::of([(name, "ON")]), &none);
            assert_eq!(findings[0].level, Level::Fault, "{name}");
        }
        let session = Seen::of([("tx_read_only", "ON")]);
        assert_eq!(read_only(&none, &session)[0].level, Level::Fault);
    }
}
