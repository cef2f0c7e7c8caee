//! retryjob
pub use retryjob_core::*;
