//! The clock of a database in memory.

use std::{fmt, time::Duration};

use super::Shared;
use crate::time::DbTime;

/// 2026-01-01 00:00:00 UTC: where every clock starts.
pub(super) const START: DbTime = DbTime::from_us(1_767_225_600_000_000);

/// A handle on the clock of a [`Memory`](super::Memory).
///
/// # Examples
///
/// ```
/// use std::time::Duration;
/// use retryjob_core::{Ident, JobSchema, memory::Memory};
///
/// const MAIL: JobSchema = JobSchema::new(Ident::new("mail")).checked();
///
/// let clock = Memory::new(&MAIL).clock();
/// let before = clock.now();
/// clock.advance(Duration::from_secs(5));
/// assert_eq!(clock.now().since(before), Duration::from_secs(5));
/// ```
#[derive(Clone)]
pub struct MemoryClock(Shared);

impl MemoryClock {
    pub(super) fn new(shared: Shared) -> Self {
        Self(shared)
    }

    /// The instant that the database takes for now.
    #[must_use]
    pub fn now(&self) -> DbTime {
        self.0.lock().now
    }

    /// Moves it later.
    ///
    /// # Units
    ///
    /// Whole microseconds; what is finer is cut off.
    pub fn advance(&self, span: Duration) {
        let mut state = self.0.lock();
        state.now = state.now.plus(span);
    }
}

impl fmt::Debug for MemoryClock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("MemoryClock").field(&self.now()).finish()
    }
}
