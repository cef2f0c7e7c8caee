//! Faults on real databases: processes that are killed or stopped, connections
//! that are cut, and the work that goes on meanwhile.
//!
//! Every run ends with its history held against the promises, and says in one
//! line what it did.

pub mod clock;
pub mod group;
pub mod instance;
pub mod process;
pub mod proxy;
pub mod report;
pub mod task;
pub mod worker;

pub use instance::Instance;
