//! Generated code and error messages, as snapshots.

mod core;
mod generated;
mod mistakes;
