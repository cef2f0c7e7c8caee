//! The conformance suite that every backend passes, and the databases that it
//! runs on.
//!
//! A test is an async function over a [`TestDatabase`]; its name is the claim
//! that it holds. `conformance!` lists the tests of every database,
//! `conformance_sql!` those that look below the backend with SQL of their own,
//! `conformance_mysql!` those that need MySQL's locks and types. Nothing
//! sleeps: [`TestDatabase::pass`] lets time go by.

#![allow(
    missing_docs,
    clippy::unwrap_used,
    clippy::missing_panics_doc,
    clippy::missing_errors_doc,
    reason = "a test suite: names are claims, and a panic is a failed test"
)]

pub mod act;
pub mod conformance;
pub mod database;
pub mod faults;
pub mod guards;
pub mod history;
pub mod inspect;
pub mod jobs;
pub mod model;
pub mod plans;
pub mod samples;
pub mod settings;
pub mod simulation;
pub mod worker;

mod list;

pub use database::{
    SqlDatabase, TestDatabase,
    memory::InMemory,
    server::{Mariadb, Mariadb57, Mysql8Server, Mysql57Server},
    sqlite::SqliteFile,
};

/// Runs one test on a database of its own.
pub async fn run<D, F>(test: impl FnOnce(D) -> F)
where
    D: TestDatabase,
    F: Future<Output = ()>,
{
    test(D::create().await).await;
}
