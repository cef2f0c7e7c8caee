//! The tests, one file per operation.

pub mod cancel;
pub mod claim;
pub mod compare_and_set;
pub mod counts;
pub mod doctor;
pub mod due;
pub mod enqueue;
pub mod faults;
pub mod finish;
pub mod finished;
pub mod ills;
pub mod install;
pub mod keys;
pub mod locks;
pub mod model;
pub mod nodes;
pub mod operate;
pub mod race;
pub mod reap;
pub mod renew;
pub mod settings;
pub mod shards;
pub mod skip_locked;
pub mod statements;
pub mod transaction;
pub mod values;
