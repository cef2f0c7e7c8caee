//! Processes whose clock is set off, by libfaketime.

use std::{
    path::PathBuf,
    process::{Command, Stdio},
};

/// A clock that is this far off.
#[derive(Clone, Debug)]
pub struct Clock {
    library: PathBuf,
    offset: &'static str,
}

impl Clock {
    /// An offset as libfaketime reads it, such as `+1h`.
    ///
    /// # Panics
    ///
    /// When libfaketime can't be installed.
    #[must_use]
    pub fn set_off_by(offset: &'static str) -> Self {
        let servers = concat!(env!("CARGO_MANIFEST_DIR"), "/servers");
        let printed = Command::new(servers)
            .arg("faketime")
            .stderr(Stdio::inherit())
            .output()
            .unwrap();
        assert!(printed.status.success(), "tests/servers faketime failed");
        let path = String::from_utf8(printed.stdout).unwrap();
        Self {
            library: path.trim_end().into(),
            offset,
        }
    }

    #[must_use]
    pub const fn offset(&self) -> &'static str {
        self.offset
    }

    /// Sets the clock of a process off that is not yet started. Spans stay
    /// right, as on a machine whose clock is wrong.
    pub fn set_off(&self, command: &mut Command) {
        command
            .env("LD_PRELOAD", &self.library)
            .env("FAKETIME", self.offset)
            .env("FAKETIME_DONT_FAKE_MONOTONIC", "1");
    }

    /// The seconds since 1970 that a process reads from this clock.
    #[must_use]
    pub fn seconds(&self) -> i64 {
        let mut date = Command::new("date");
        self.set_off(date.arg("+%s"));
        let printed = date.output().unwrap().stdout;
        String::from_utf8(printed).unwrap().trim().parse().unwrap()
    }
}
