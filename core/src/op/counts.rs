//! Counts: how many jobs stand where.

use crate::state::Status;

/// The number of jobs in each status.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts([u64; Status::ALL.len()]);

impl Counts {
    /// The number of jobs in this status.
    #[must_use]
    pub const fn of(&self, status: Status) -> u64 {
        self.0[status.code() as usize]
    }

    /// Sets the number of jobs in this status.
    pub fn set(&mut self, status: Status, count: u64) {
        self.0[usize::from(status.code())] = count;
    }

    /// The number of jobs that a worker still has to do something for:
    /// PENDING, RETRY and RUNNING.
    #[must_use]
    pub const fn open(&self) -> u64 {
        self.of(Status::Pending) + self.of(Status::Retry) + self.of(Status::Running)
    }

    /// The number of all jobs.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.0.iter().sum()
    }
}
