//! A table against what the job type describes.

use retryjob_core::{op::doctor::Finding, sql::TableSpec};

use crate::kind::Found;

/// What `install` would say of the table, and which indexes it has besides.
pub(super) fn judge(want: &TableSpec, found: Option<Found>) -> Vec<Finding> {
    let subject = format!("table {}", want.name);
    let Some(Found { spec, faults }) = found else {
        return vec![Finding::fault(
            subject,
            "missing",
            "run `install`; a table that this user may not read looks the same",
        )];
    };
    let mut findings: Vec<_> = want
        .differences(&spec)
        .into_iter()
        .chain(faults)
        .map(|difference| {
            let advice = "change the table or the job type; `install` refuses it as it is";
            Finding::fault(&subject, difference, advice)
        })
        .collect();
    if findings.is_empty() {
        findings.push(Finding::ok(&subject, "as the job type describes"));
    }
    let is_surplus = |name: &str| {
        let mut wanted = want.indexes.iter();
        !wanted.any(|index| index.name.eq_ignore_ascii_case(name))
    };
    for index in spec.indexes.iter().filter(|have| is_surplus(&have.name)) {
        let advice = match index.is_unique {
            true => "it can refuse jobs whose keys differ; drop it unless that is what it is for",
            false => {
                "not the job type's: each write of its columns pays for it; \
                      drop it unless queries of your own read by it"
            }
        };
        let subject = format!("index {} of {}", index.name, want.name);
        findings.push(Finding::warning(subject, index.described(), advice));
    }
    findings
}

#[cfg(test)]
mod tests {
    use retryjob_core::{op::doctor::Level, sql::IndexSpec};

    use super::*;

    fn table() -> TableSpec {
        TableSpec {
            name: "job".into(),
            columns: Vec::new(),
            primary: vec!["id".into()],
            indexes: vec![index("claim", false)],
        }
    }

    fn index(name: &str, is_unique: bool) -> IndexSpec {
        IndexSpec {
            name: name.into(),
            columns: vec!["shard_id".into()],
            is_unique,
        }
    }

    fn found(spec: TableSpec) -> Option<Found> {
        let faults = Vec::new();
        Some(Found { spec, faults })
    }

    #[test]
    fn a_missing_table_is_a_fault() {
        let findings = judge(&table(), None);
        assert_eq!(findings.len(), 1);
        assert_eq!(findings[0].subject, "table job");
        assert_eq!(
            (findings[0].level, findings[0].value.as_str()),
            (Level::Fault, "missing")
        );
    }

    #[test]
    fn the_table_as_described_is_fine() {
        let findings = judge(&table(), found(table()));
        assert_eq!(
            findings,
            [Finding::ok("table job", "as the job type describes")]
        );
    }

    #[test]
    fn a_missing_index_is_a_fault_and_a_surplus_one_is_worth_a_change() {
        let mut spec = table();
        spec.indexes = vec![index("mine", false), index("only", true)];
        let findings = judge(&table(), found(spec));
        let told: Vec<_> = findings
            .iter()
            .map(|f| (f.level, f.subject.as_str()))
            .collect();
        assert_eq!(
            told,
            [
                (Level::Fault, "table job"),
                (Level::Warning, "index mine of job"),
                (Level::Warning, "index only of job"),
            ]
        );
        assert!(findings[0].value.contains("`claim` is missing"));
        assert!(findings[2].value.contains("unique over (shard_id)"));
    }

    #[test]
    fn what_else_keeps_a_table_from_serving_is_a_fault() {
        let found = Found {
            spec: table(),
            faults: vec!["the engine is MyISAM, expected InnoDB".into()],
        };
        let findings = judge(&table(), Some(found));
        assert_eq!(findings.len(), 1);
        assert_eq!(findings[0].level, Level::Fault);
        assert!(findings[0].value.contains("MyISAM"));
    }
}
