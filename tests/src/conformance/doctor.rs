use retryjob_core::{
    Backend, ErrorKind,
    op::doctor::{Finding, Level, Report},
};

use crate::{
    TestDatabase,
    act::enqueue,
    jobs::{ARCHIVED, JOB, jobs},
};

pub(super) fn faults(report: &Report) -> Vec<&Finding> {
    report.at(Level::Fault).collect()
}

/// The only finding about this subject.
pub(super) fn only<'r>(report: &'r Report, subject: &str) -> &'r Finding {
    let findings: Vec<_> = report.of(subject).collect();
    assert_eq!(findings.len(), 1, "{subject}:\n{report}");
    findings[0]
}

pub async fn doctor_finds_no_fault_in_a_healthy_installed_database<D: TestDatabase>(db: D) {
    let backend = db.installed(&ARCHIVED).await;
    enqueue(&backend, jobs(0..3)).await;
    let before = db.rows(&ARCHIVED).await;
    let report = backend.doctor().await.unwrap();
    assert_eq!(faults(&report), Vec::<&Finding>::new(), "\n{report}");
    assert_eq!(only(&report, "table archived").level, Level::Ok);
    assert_eq!(db.rows(&ARCHIVED).await, before);

    // Every finding is in the text that a person reads.
    let text = report.to_string();
    for finding in &report.findings {
        assert!(text.contains(&finding.subject), "{text}");
        assert!(text.contains(&finding.advice), "{text}");
    }
}

pub async fn doctor_names_the_missing_table_and_makes_none<D: TestDatabase>(db: D) {
    let backend = db.connect(&JOB).await;
    for _ in 0..2 {
        let report = backend.doctor().await.unwrap();
        let missing = only(&report, "table job");
        assert_eq!(
            (missing.level, missing.value.as_str()),
            (Level::Fault, "missing")
        );
        assert!(missing.advice.contains("`install`"), "{missing:?}");
        // The table of nodes is missing as well, where it is one.
        let are_missing = |fault: &&Finding| fault.value == "missing";
        assert!(faults(&report).iter().all(are_missing), "\n{report}");
    }
    let refused = backend.enqueue(jobs([1])).await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Schema, "{refused}");
}
