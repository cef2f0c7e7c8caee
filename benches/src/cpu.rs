//! CPU time of this process and of a server.

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// The kernel's clock ticks a second, the same on every Linux that counts.
const TICKS: u64 = 100;

/// CPU time of all threads of this process.
pub fn own() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    let seconds = u64::try_from(time.tv_sec).unwrap_or_default();
    Duration::new(seconds, u32::try_from(time.tv_nsec).unwrap_or_default())
}

/// User and system time of another process, in ticks of 10 ms.
pub fn of(pid: u32) -> Option<Duration> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name, in parentheses, may hold spaces.
    let fields: Vec<_> = stat.rsplit_once(')')?.1.split_whitespace().collect();
    let ticks = |index: usize| fields.get(index)?.parse::<u64>().ok();
    Some(Duration::from_millis(
        (ticks(11)? + ticks(12)?) * 1000 / TICKS,
    ))
}
