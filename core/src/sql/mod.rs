//! Schema and dialect to the catalogue: every statement that is ever sent.

pub mod statement;

pub mod dialect;

pub mod table;

pub mod catalogue;

mod enqueue;

mod claim;

mod finish;

mod reap;

mod shards;

mod operate;

mod nodes;

mod parts;

pub use catalogue::Catalogue;
pub use dialect::{Dialect, Query};
pub use statement::{Bind, Slot, Statement, Stepped};
pub use table::{ColumnSpec, IndexSpec, TableSpec};
