//! What docs/guarantees.md says, held against the sources.
#![allow(clippy::unwrap_used, reason = "a panic is a failed test")]

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .unwrap()
        .into()
}

fn read(path: &str) -> String {
    let path = root().join(path);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn page() -> String {
    read("docs/guarantees.md")
}

/// What stands between backticks.
fn quoted(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').skip(1).step_by(2)
}

/// The tests that a part of the page names, each with its file: list items
/// that begin with a file, over one or more lines.
fn tests_of(part: &str) -> Vec<(String, String)> {
    let items = part.split("\n- `").skip(1);
    let mut tests = Vec::new();
    for item in items.filter_map(|item| item.split_once(".rs`:")) {
        let (file, rest) = item;
        let end = rest.find("\n\n").or_else(|| rest.find("\n#"));
        let names = &rest[..end.unwrap_or(rest.len())];
        tests.extend(quoted(names).map(|name| (format!("{file}.rs"), name.to_owned())));
    }
    tests
}

/// The parts under the headings of one depth, by heading.
fn parts<'p>(text: &'p str, mark: &str) -> BTreeMap<&'p str, &'p str> {
    let parts = text.split(mark).skip(1);
    parts
        .map(|part| part.split_once('\n').unwrap_or((part, "")))
        .collect()
}

/// Whether a test of this name is in the file, and run: by an attribute above
/// it, or from the list of the suite that it is part of.
fn is_run(file: &str, name: &str) -> bool {
    let source = read(file);
    let Some(at) = source.find(&format!("fn {name}")) else {
        return false;
    };
    let after = source[at + 3 + name.len()..].chars().next();
    if !matches!(after, Some('(' | '<')) {
        return false;
    }
    if file.starts_with("tests/tests/faults/") {
        let run = format!(": {name};");
        let sources = ["main", "group"].map(|file| read(&format!("tests/tests/faults/{file}.rs")));
        return sources
            .concat()
            .lines()
            .any(|line| line.ends_with(&run) || line.starts_with(&format!("async fn {name}(")));
    }
    let list = match file {
        _ if file.starts_with("tests/src/conformance/") => "tests/src/list.rs",
        _ if file.starts_with("tests/src/worker/") => "tests/src/worker/mod.rs",
        _ => {
            let above: Vec<&str> = source[..at].lines().rev().take(6).collect();
            return above.iter().any(|line| {
                let line = line.trim();
                line == "#[test]" || line.starts_with("#[tokio::test")
            });
        }
    };
    read(list)
        .lines()
        .any(|line| line.trim() == format!("{name},"))
}

#[test]
fn every_test_that_the_page_names_is_there_and_is_run() {
    let page = page();
    let tests = tests_of(&page);
    assert!(tests.len() > 40, "{} tests", tests.len());
    let gone: Vec<_> = tests
        .iter()
        .filter(|(file, name)| !is_run(file, name))
        .collect();
    assert!(gone.is_empty(), "{gone:#?}");
}

#[test]
fn a_test_that_is_not_run_is_told() {
    let file = "tests/src/conformance/reap.rs";
    assert!(is_run(file, "reap_leaves_live_leases"));
    assert!(!is_run(file, "reap_leaves_live_lease"));
    assert!(!is_run(file, "finished_ids"));
    assert!(!is_run("tests/tests/guarantees.rs", "quoted"));
}

#[test]
fn every_promise_has_a_test() {
    let page = page();
    let (_, promises) = page.split_once("\n## The promises\n").unwrap();
    let (promises, _) = promises.split_once("\n## ").unwrap();
    let promises = parts(promises, "\n### ");
    let mut numbers: Vec<usize> = Vec::new();
    for (heading, part) in promises {
        let (number, _) = heading.split_once(". ").unwrap();
        numbers.push(number.parse().unwrap());
        assert!(!tests_of(part).is_empty(), "no test shows {heading}");
    }
    numbers.sort_unstable();
    assert_eq!(numbers, (1..=11).collect::<Vec<_>>());
}

/// The settings in the first column of the page's first table.
#[test]
fn every_setting_that_the_page_asks_for_is_judged_by_the_doctor() {
    let page = page();
    let (_, table) = page.split_once("| setting | must be |").unwrap();
    let rows: Vec<&str> = table.lines().skip(2).collect();
    let rows: Vec<_> = rows.iter().take_while(|row| row.starts_with('|')).collect();
    assert!(rows.len() > 5);
    let doctor: String = [
        "backends/src/mysql/doctor/durability.rs",
        "backends/src/mysql/connect.rs",
        "backends/src/sqlite/doctor.rs",
    ]
    .map(read)
    .concat();
    for row in rows {
        let setting = quoted(row).next().unwrap();
        let is_judged = doctor.contains(&format!("\"{setting}\""));
        assert!(is_judged, "{setting}");
    }
}

/// "Exactly once" is never said without its condition.
#[test]
fn exactly_once_is_said_with_its_condition_alone() {
    let page = page();
    let said: Vec<&str> = page.split("xactly once").skip(1).collect();
    assert_eq!(said.len(), 1);
    assert!(said[0].contains("finish_in"));
    for file in ["README.md", "src/lib.rs", "core/src/handler.rs"] {
        let text = read(file).to_lowercase();
        assert!(!text.contains("exactly once"), "{file}");
    }
}
