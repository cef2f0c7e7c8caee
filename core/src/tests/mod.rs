//! Claims about the pure modules, one file for each, in their reading order.

mod time;

mod state;

mod retry;

mod key;

mod shard;

mod value;

mod schema;

mod job;

mod claim;

mod due;

mod finish;
