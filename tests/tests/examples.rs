//! Runs the example as a user would, and compares what it prints.
#![allow(clippy::unwrap_used, reason = "a panic is a failed test")]

use std::{
    path::Path,
    process::{Command, Output},
};

use retryjob_tests::inspect::ServerUnderTest;

/// The counts that come with the data.
const RIGHT: &str = "
               found     right
flights         6104      6104
SUCCESS         5175      5175
DEAD             929       929
other              0         0
attempts        7504      7504
";

fn departures(options: &[&str]) -> Output {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    Command::new(env!("CARGO"))
        .args([
            "run",
            "--quiet",
            "--package",
            "retryjob",
            "--example",
            "departures",
            "--",
        ])
        .args(options)
        .current_dir(root)
        .output()
        .unwrap()
}

/// What it printed, once its exit status and counts are right.
#[track_caller]
fn passed(output: &Output) -> String {
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{text}\n{errors}");
    assert!(text.ends_with(RIGHT), "{text}");
    text
}

#[test]
fn departures_are_counted_right_and_enqueued_once_per_file() {
    let folder = std::env::temp_dir().join(format!("retryjob-example-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let url = format!("sqlite://{}/departures.sqlite", folder.display());
    let first = passed(&departures(&["--url", &url]));
    assert!(
        first.contains("enqueued 6104 new of 6104 flights"),
        "{first}"
    );
    assert!(first.contains("7504 attempts on sqlite"), "{first}");
    let second = passed(&departures(&["--url", &url, "--workers", "1"]));
    assert!(
        second.contains("nothing new: all 6104 flights were already there"),
        "{second}"
    );
    assert!(second.contains("0 attempts on sqlite"), "{second}");
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn departures_with_a_wrong_answer_exit_with_1() {
    let folder = std::env::temp_dir().join(format!("retryjob-wrong-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let url = format!("sqlite://{}/departures.sqlite", folder.display());
    let day = folder.join("day.csv");
    let header = "date,sched_dep,carrier,flight,tailnum,origin,dest,dep_delay_min,distance_mi\n";
    let flight = "2013-02-04,05:00,US,1117,N557UW,EWR,CLT,-7,529\n";
    std::fs::write(&day, format!("{header}{flight}")).unwrap();
    let day = day.to_str().unwrap();
    let right = departures(&["--url", &url, "--file", day]);
    assert!(right.status.success(), "{right:?}");
    // The same table now also holds a flight that another file does not have.
    let other = flight.replace("1117", "1118");
    std::fs::write(day, format!("{header}{other}")).unwrap();
    let wrong = departures(&["--url", &url, "--file", day]);
    let text = String::from_utf8_lossy(&wrong.stdout);
    assert_eq!(wrong.status.code(), Some(1), "{text}");
    assert!(text.contains("differs"), "{text}");
    std::fs::remove_dir_all(&folder).unwrap();
}

#[tokio::test]
async fn departures_are_counted_right_on_every_server_found_by_probing() {
    for (server, backend) in [
        (ServerUnderTest::Mysql57, "mysql57"),
        (ServerUnderTest::Mysql8, "mysql8"),
        (ServerUnderTest::Mariadb, "mysql8"),
    ] {
        let name = format!("retryjob_example_{}", std::process::id());
        let url = server.database(&name).await;
        let text = passed(&departures(&["--url", &url]));
        server.drop_database(&name).await;
        assert!(
            text.contains(&format!("7504 attempts on {backend}")),
            "{text}"
        );
    }
}

#[tokio::test]
async fn departures_run_on_a_backend_that_is_named() {
    let server = ServerUnderTest::Mysql8;
    let name = format!("retryjob_named_{}", std::process::id());
    let url = server.database(&name).await;
    let text = passed(&departures(&[
        "--url",
        &url,
        "--backend",
        "mysql57",
        "--keep",
    ]));
    assert!(text.contains("7504 attempts on mysql57"), "{text}");
    let again = passed(&departures(&["--url", &url]));
    server.drop_database(&name).await;
    assert!(again.contains("nothing new"), "{again}");
}

#[tokio::test]
async fn a_server_without_skip_locked_is_refused_with_a_word_about_mysql57() {
    let server = ServerUnderTest::Mysql57;
    let name = format!("retryjob_refused_{}", std::process::id());
    let url = server.database(&name).await;
    let output = departures(&["--url", &url, "--backend", "mysql8"]);
    server.drop_database(&name).await;
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2));
    assert!(errors.contains("mysql57"), "{errors}");
}

#[test]
fn the_first_example_of_the_readme_runs() {
    let folder = std::env::temp_dir().join(format!("retryjob-charge-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let manifest = concat!(env!("CARGO_MANIFEST_DIR"), "/../Cargo.toml");
    let output = Command::new(env!("CARGO"))
        .args([
            "run",
            "--quiet",
            "--manifest-path",
            manifest,
            "--example",
            "charge",
        ])
        .current_dir(&folder)
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{output:?}");
    assert!(text.starts_with("990 cents, key "), "{text}");
    std::fs::remove_dir_all(&folder).unwrap();
}
