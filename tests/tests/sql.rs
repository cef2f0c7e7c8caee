//! Every statement of four job types on every backend, as snapshots, and the
//! generated files in `docs/sql`.
#![allow(clippy::unwrap_used, reason = "a panic is a failed test")]

use std::{fs, path::Path, sync::Arc};

use retryjob::{Mysql8, Mysql57, RetryJob as _, Sqlite, sql::Catalogue};
use retryjob_tests::samples::{BillingJob, schemas};

fn catalogues() -> Vec<(&'static str, &'static str, Arc<Catalogue>)> {
    let of = |schema: &'static retryjob::JobSchema| {
        let table = schema.table.as_str();
        [
            (table, "mysql8", Mysql8::statements(schema)),
            (table, "mysql57", Mysql57::statements(schema)),
            (table, "sqlite", Sqlite::statements(schema)),
        ]
    };
    schemas().into_iter().flat_map(of).collect()
}

#[test]
fn every_statement_is_reviewed() {
    for (table, backend, catalogue) in catalogues() {
        insta::with_settings!({ snapshot_suffix => backend, omit_expression => true }, {
            insta::assert_snapshot!(table, catalogue.to_sql());
        });
    }
}

#[test]
fn longer_lists_only_repeat_what_the_shortest_says() {
    for (table, backend, catalogue) in catalogues() {
        let statements = catalogue.statements();
        let find = |name: &str| statements.iter().find(|(known, _)| known == name);
        for (name, statement) in &statements {
            let Some((stem, len)) = name.split_once('[') else {
                continue;
            };
            let len: usize = len.trim_end_matches(']').parse().unwrap();
            let (_, one) = find(&format!("{stem}[1]")).unwrap();
            let entries = |of: &retryjob::sql::Statement, entry: usize| {
                of.binds().iter().filter(|bind| bind.entry == entry).count()
            };
            let shown = format!("{name} of {table} on {backend}");
            // What is bound once stands at entry 0, beside the first entry.
            let once = entries(one, 0) - entries(statement, 1.min(len - 1));
            for entry in 1..len {
                assert_eq!(entries(statement, entry) + once, entries(one, 0), "{shown}");
            }
            assert_eq!(entries(statement, 0), entries(one, 0), "{shown}");
            assert_eq!(
                statement.sql().matches('?').count(),
                statement.binds().len(),
                "{shown}"
            );
        }
    }
}

#[test]
fn the_files_for_database_administrators_are_up_to_date() {
    for (backend, catalogue) in [
        ("mysql8", Mysql8::statements(BillingJob::schema())),
        ("mysql57", Mysql57::statements(BillingJob::schema())),
        ("sqlite", Sqlite::statements(BillingJob::schema())),
    ] {
        let text = format!(
            "-- Every statement that the job table `billing_job` of tests/src/samples.rs sends on {backend}.\n\
             -- Generated from the catalogue; `RETRYJOB_WRITE_DOCS=1 cargo test -p retryjob-tests --test sql`\n\
             -- writes it anew. Lists are shown with one entry; they are padded to a few lengths.\n\n{}",
            catalogue.to_sql()
        );
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../docs/sql/{backend}.sql"));
        if std::env::var_os("RETRYJOB_WRITE_DOCS").is_some() {
            fs::write(&path, &text).unwrap();
        }
        let found = fs::read_to_string(&path).unwrap_or_default();
        assert!(
            found == text,
            "{} is not what the catalogue says",
            path.display()
        );
    }
}
