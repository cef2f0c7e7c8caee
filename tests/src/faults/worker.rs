//! Worker processes.

use std::{path::Path, process::Command};

use super::{clock::Clock, process::Process};

/// What the program `fault_worker` is told.
#[derive(Clone, Debug)]
pub struct Orders<'a> {
    /// Where it was built.
    pub program: &'a Path,
    /// Which jobs it runs: `task` or `fragile`.
    pub jobs: &'a str,
    /// The backend by its name.
    pub backend: &'a str,
    pub url: &'a str,
    /// The file that its records go to.
    pub records: &'a Path,
    pub concurrency: usize,
    /// How far its clock is off, if it is.
    pub clock: Option<&'a Clock>,
}

impl Orders<'_> {
    /// Starts the process, which works until it is killed.
    #[must_use]
    pub fn start(&self) -> Process {
        let mut command = Command::new(self.program);
        command
            .args(["--jobs", self.jobs, "--backend", self.backend])
            .args(["--url", self.url])
            .arg("--records")
            .arg(self.records)
            .args(["--concurrency", &self.concurrency.to_string()]);
        if let Some(clock) = self.clock {
            clock.set_off(&mut command);
        }
        Process::start(&command)
    }
}
