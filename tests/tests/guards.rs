//! Every condition of every statement is needed: without it, some test fails.
//!
//! SQLite shows it of every statement; on the servers, those that say the same
//! are left to a run with `RETRYJOB_FAULTS=nightly`. With `RETRYJOB_GUARDS`
//! set, each conjunct is told with the test that misses it.

use retryjob_tests::{
    Mariadb, Mysql8Server, Mysql57Server, SqliteFile,
    guards::{Extent, Guarded, hunt},
};

fn on_server<D: Guarded>(name: &str) {
    let is_nightly = std::env::var("RETRYJOB_FAULTS").is_ok_and(|kind| kind == "nightly");
    let extent = match is_nightly {
        true => Extent::All,
        false => Extent::UnlikeSqlite,
    };
    hunt::<D>(name, extent);
}

#[test]
fn sqlite_needs_every_condition() {
    hunt::<SqliteFile>("sqlite", Extent::All);
}

#[test]
fn mysql_57_needs_every_condition() {
    on_server::<Mysql57Server>("mysql 5.7");
}

#[test]
fn mysql_8_needs_every_condition() {
    on_server::<Mysql8Server>("mysql 8");
}

#[test]
fn mariadb_needs_every_condition() {
    on_server::<Mariadb>("mariadb");
}
