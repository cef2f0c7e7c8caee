//! What the README says, held against what is there.
#![allow(clippy::unwrap_used, reason = "a panic is a failed test")]

use std::{collections::BTreeMap, fs, path::Path};

use retryjob_tests::inspect::ServerUnderTest;
use sqlx::Connection as _;

fn readme() -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    fs::read_to_string(root.join("README.md")).unwrap()
}

/// The rows of the support table: database, version, and the test that proves
/// it.
fn support() -> BTreeMap<String, (String, String)> {
    let text = readme();
    let (_, table) = text
        .split_once("| --- | --- | --- | --- | --- |\n")
        .unwrap();
    let rows = table.lines().take_while(|line| line.starts_with('|'));
    rows.map(|row| {
        let cells: Vec<_> = row.trim_matches('|').split('|').map(str::trim).collect();
        let test = cells[4].trim_matches('`').rsplit(' ').next().unwrap();
        (cells[0].to_owned(), (cells[1].to_owned(), test.to_owned()))
    })
    .collect()
}

#[test]
fn every_row_of_the_support_table_has_its_test() {
    let support = support();
    assert_eq!(support.len(), 5);
    for (database, (_, test)) in support {
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/{test}.rs"));
        assert!(file.exists(), "{database}: there is no test {test}");
    }
}

#[tokio::test]
async fn versions_in_the_support_table_are_those_tested_with() {
    let support = support();
    for (server, database) in [
        (ServerUnderTest::Mysql57, "MySQL 5.7"),
        (ServerUnderTest::Mysql8, "MySQL 8 and 9"),
        (ServerUnderTest::Mariadb, "MariaDB"),
        (ServerUnderTest::Mariadb, "MariaDB, few workers"),
    ] {
        let mut connection = server.connection().await;
        let version: String = sqlx::query_scalar("SELECT CAST(VERSION() AS CHAR)")
            .fetch_one(&mut connection)
            .await
            .unwrap();
        connection.close().await.unwrap();
        let said = &support[database].0;
        // A server of the user's own may be another one; what comes with
        // `tests/servers` must be what the table says, up to its major number.
        let major = said.split('.').next().unwrap();
        assert!(
            version.starts_with(major),
            "{database}: {said} in the table, found {version}"
        );
    }
}

#[test]
fn the_first_job_runs_within_one_screen() {
    let text = readme();
    let end = text.lines().position(|line| line == "```").unwrap();
    assert!(end < 40, "the first example ends in line {end}");
}

/// The README's first example is this doctest.
#[test]
fn the_first_example_is_one_that_compiles() {
    let text = readme();
    let code = text
        .split("```rust\n")
        .nth(1)
        .unwrap()
        .split("```")
        .next()
        .unwrap();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let example = fs::read_to_string(root.join("examples/charge.rs")).unwrap();
    assert!(
        example.ends_with(code),
        "examples/charge.rs is not what the README shows"
    );
}
