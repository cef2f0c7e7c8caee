//! What the doctor says of databases that something was done to.

use retryjob_core::{
    Backend,
    op::doctor::{Finding, Level},
};

use super::doctor::{faults, only};
use crate::{
    SqlDatabase,
    act::enqueue,
    jobs::{JOB, MAIL, mail},
};

pub async fn doctor_tells_every_part_of_the_server<D: SqlDatabase>(db: D) {
    let report = db.installed(&JOB).await.doctor().await.unwrap();
    for subject in ["version", "SKIP LOCKED", "clock", "session time_zone"] {
        let finding = only(&report, subject);
        assert_eq!(finding.level, Level::Ok, "{finding:?}");
        assert!(!finding.value.is_empty());
    }
    for lane in ["fresh", "retry"] {
        let plan = only(&report, &format!("plan of a {lane} claim"));
        assert!(plan.value.contains("claim"), "{plan:?}");
    }
}

pub async fn doctor_names_each_difference_of_the_table<D: SqlDatabase>(db: D) {
    let backend = db.installed(&MAIL).await;
    let names = db.spoil(&MAIL).await;
    let before = db.create_sql(&MAIL).await;

    let report = backend.doctor().await.unwrap();
    let refused = backend.install().await.unwrap_err().to_string();
    let told: Vec<_> = report.of("table mail").collect();
    for name in names {
        let named = format!("`{name}`");
        let tells = |finding: &&&Finding| finding.value.contains(&named);
        let finding = told.iter().find(tells);
        let finding = finding.unwrap_or_else(|| panic!("{name}:\n{report}"));
        assert_eq!(finding.level, Level::Fault);
        assert!(refused.contains(&finding.value), "{refused}");
    }
    assert_eq!(db.create_sql(&MAIL).await, before);
}

pub async fn doctor_names_a_claim_that_has_lost_its_index<D: SqlDatabase>(db: D) {
    let backend = db.installed(&MAIL).await;
    enqueue(&backend, vec![mail(1), mail(2)]).await;
    let index = &db.claim_index(&MAIL);
    db.execute(&db.drop_index_sql(&MAIL, index)).await;

    let report = backend.doctor().await.unwrap();
    let table = only(&report, "table mail");
    let named = format!("index `{index}` is missing");
    assert!(table.value.contains(&named), "{table:?}");
    assert_eq!(table.level, Level::Fault);
    for lane in ["fresh", "retry"] {
        let plan = only(&report, &format!("plan of a {lane} claim"));
        assert_eq!(plan.level, Level::Fault, "{plan:?}");
    }
}

pub async fn doctor_names_a_surplus_index_as_worth_a_change<D: SqlDatabase>(db: D) {
    let backend = db.installed(&MAIL).await;
    let create = "CREATE INDEX by_status ON mail (status, service_id)";
    db.execute(create).await;
    let report = backend.doctor().await.unwrap();
    assert_eq!(faults(&report), Vec::<&Finding>::new(), "\n{report}");
    let surplus = only(&report, "index by_status of mail");
    assert_eq!(surplus.level, Level::Warning);
    assert_eq!(surplus.value, "over (status, service_id)");
}
