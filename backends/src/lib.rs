//! The databases of [`retryjob`](https://docs.rs/retryjob): SQLite, MySQL 8
//! and 9, MariaDB, and MySQL 5.7.
//!
//! Users depend on `retryjob` and choose by its features. Each backend is a
//! cargo feature here, and they add up:
//!
//! | feature | type | servers |
//! | --- | --- | --- |
//! | `sqlite` | `Sqlite` | SQLite in a file |
//! | `mysql8` | `Mysql8` | MySQL from 8.0.1, MariaDB from 10.6 |
//! | `mysql57` | `Mysql57` | MySQL from 5.7, MariaDB |
//!
//! The operations in `op/` are written once; a backend brings its connections,
//! dialect, error codes and its way to claim.
#![cfg_attr(
    not(any(feature = "sqlite", feature = "mysql8", feature = "mysql57")),
    allow(
        dead_code,
        unused_imports,
        unused_macros,
        reason = "no backend uses the parts"
    )
)]

mod surface;

mod store;

mod kind;

mod op;

mod retry;

mod limited;
mod session;

mod fault;

mod catalogues;

mod probe;

#[cfg(feature = "sqlite")]
mod sqlite;

#[cfg(feature = "_mysql")]
mod mysql;

#[cfg(feature = "mysql8")]
mod mysql8;

#[cfg(feature = "mysql57")]
mod mysql57;

#[cfg(feature = "mysql8")]
pub use mysql8::Mysql8;
#[cfg(feature = "mysql57")]
pub use mysql57::Mysql57;
pub use probe::{Probed, probe};
#[cfg(feature = "sqlite")]
pub use sqlite::Sqlite;

/// What to say of a URL that is for another backend.
fn hint(scheme: &str) -> &'static str {
    match scheme {
        "sqlite" => ", or use the backend `sqlite`",
        "mysql" | "mariadb" => ", or use the backend `mysql8` or `mysql57`",
        _ => "",
    }
}
