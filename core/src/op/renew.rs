//! Renew: leases of jobs that take longer are kept alive.

use std::time::Duration;

use crate::op::claim::Lease;

/// Asks to keep leases for another while.
#[derive(Clone, Debug)]
pub struct Renew {
    /// The leases.
    pub leases: Vec<Lease>,
    /// How long they are valid from now, by the database's clock.
    pub lease: Duration,
}

/// Which leases were renewed, and which are gone.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Renewed {
    /// Ids of the jobs whose lease was lost: lapsed, reaped or finished.
    pub lost: Vec<u64>,
}
