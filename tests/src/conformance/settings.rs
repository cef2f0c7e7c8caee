//! What the doctor says of servers of the MySQL family.

use retryjob_core::{
    Backend,
    op::doctor::{Finding, Level, Report, UNKNOWN},
};

use super::doctor::{faults, only};
use crate::{
    TestDatabase,
    database::{
        SqlDatabase as _,
        server::{Flavour, Server},
    },
    jobs::JOB,
};

pub async fn doctor_names_another_engine_and_row_format<F: Flavour>(db: Server<F>) {
    let backend = db.installed(&JOB).await;
    let stored = |report: &Report| only(report, "storage of job").clone();
    assert_eq!(stored(&backend.doctor().await.unwrap()).level, Level::Ok);

    db.execute("ALTER TABLE job ROW_FORMAT=COMPACT").await;
    let report = backend.doctor().await.unwrap();
    assert_eq!(stored(&report).level, Level::Warning);
    assert!(stored(&report).value.contains("Compact"));
    assert_eq!(faults(&report), Vec::<&Finding>::new(), "\n{report}");

    db.execute("ALTER TABLE job ENGINE=MyISAM").await;
    let report = backend.doctor().await.unwrap();
    let table = only(&report, "table job");
    assert_eq!(table.level, Level::Fault);
    assert!(table.value.contains("MyISAM"), "{table:?}");
}

pub async fn doctor_tells_settings_as_the_server_has_them<F: Flavour>(db: Server<F>) {
    let report = db.installed(&JOB).await.doctor().await.unwrap();
    for name in [
        "innodb_flush_log_at_trx_commit",
        "sync_binlog",
        "innodb_doublewrite",
        "innodb_rollback_on_timeout",
        "wait_timeout",
        "max_prepared_stmt_count",
        "max_allowed_packet",
        "read_only",
    ] {
        let told = &only(&report, name).value;
        let said = db.global(name).await;
        let told = told.split([' ', ',']).next().unwrap();
        assert_eq!(told, said, "{name}");
    }
    let version = &only(&report, "version").value;
    assert!(version.contains(&db.global("version").await), "{version}");
}

/// A user with no more than a worker needs.
pub async fn doctor_says_unknown_of_what_its_user_may_not_read<F: Flavour>(db: Server<F>) {
    db.installed(&JOB).await.close().await;
    let (user, url) = db.plain_user("SELECT, INSERT, UPDATE, DELETE").await;
    let backend = F::Backend::connect(&url, &JOB).await;
    let report = match &backend {
        Ok(backend) => backend.doctor().await,
        Err(_) => Ok(Report::default()),
    };
    if let Ok(backend) = &backend {
        backend.close().await;
    }
    db.execute(&format!("DROP USER {user}")).await;
    backend.unwrap();
    let report = report.unwrap();

    let reads = only(&report, "reads by index");
    assert_eq!(
        (reads.value.as_str(), reads.level),
        (UNKNOWN, Level::Warning)
    );
    assert!(reads.advice.contains("performance_schema"), "{reads:?}");
    assert_eq!(faults(&report), Vec::<&Finding>::new(), "\n{report}");
    assert_eq!(only(&report, "table job").level, Level::Ok);
}
