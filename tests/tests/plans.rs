//! How each server runs the statements: by the expected index, without a sort
//! and without a temporary table.
#![allow(clippy::unwrap_used, reason = "a panic is a failed test")]

use retryjob::{Backend, Mysql8, Mysql57, Sqlite, sql::Catalogue};
use retryjob_tests::{
    inspect::ServerUnderTest,
    plans::{Plans as _, ServerPlans, SqlitePlans},
    samples::BILLING_BOTH,
};

async fn check_plans<B: Backend>(server: ServerUnderTest, catalogue: &Catalogue) {
    let mut plans = ServerPlans::filled::<B>(server).await;
    let mut wrong = Vec::new();
    let mut checked = 0;
    for (name, statement) in catalogue.statements() {
        checked += 1;
        wrong.extend(plans.wrong(&name, statement).await);
    }
    plans.close().await;
    assert!(checked > 45, "{checked} statements");
    assert!(wrong.is_empty(), "{server:?}:\n{}", wrong.join("\n"));
}

#[tokio::test]
async fn mysql_8_reads_every_statement_by_its_index() {
    let catalogue = Mysql8::statements(&BILLING_BOTH);
    check_plans::<Mysql8>(ServerUnderTest::Mysql8, &catalogue).await;
}

#[tokio::test]
async fn mysql_57_reads_every_statement_by_its_index() {
    let catalogue = Mysql57::statements(&BILLING_BOTH);
    check_plans::<Mysql57>(ServerUnderTest::Mysql57, &catalogue).await;
}

#[tokio::test]
async fn mariadb_reads_every_statement_by_its_index() {
    let catalogue = Mysql8::statements(&BILLING_BOTH);
    check_plans::<Mysql8>(ServerUnderTest::Mariadb, &catalogue).await;
    let catalogue = Mysql57::statements(&BILLING_BOTH);
    check_plans::<Mysql57>(ServerUnderTest::Mariadb, &catalogue).await;
}

#[tokio::test]
async fn due_heads_are_a_loose_index_scan() {
    for (server, catalogue) in [
        (ServerUnderTest::Mysql57, Mysql57::statements(&BILLING_BOTH)),
        (ServerUnderTest::Mysql8, Mysql8::statements(&BILLING_BOTH)),
    ] {
        let mut plans = ServerPlans::filled::<Mysql57>(server).await;
        let remarks = plans.plan(&catalogue.heads).await.remarks;
        plans.close().await;
        assert!(
            remarks.contains("Using index for group-by"),
            "{server:?}: {remarks}"
        );
    }
}

#[tokio::test]
async fn sqlite_reads_every_statement_by_its_index() {
    let mut plans = SqlitePlans::open().await;
    let mut wrong = Vec::new();
    for (name, statement) in Sqlite::statements(&BILLING_BOTH).statements() {
        wrong.extend(plans.wrong(&name, statement).await);
    }
    plans.close().await;
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
