//! Worker processes that are killed and stopped.

use std::{
    io,
    path::Path,
    process::{Child as Process, Command, ExitStatus, Stdio},
};

use rustix::process::{Pid, Signal, kill_process};

/// A process of the test's own, gone when this is dropped.
#[derive(Debug)]
pub struct Child(Process);

/// What `fault_worker` is told.
#[derive(Clone, Debug)]
pub struct Orders<'a> {
    /// Where `fault_worker` was built.
    pub program: &'a Path,
    pub backend: &'a str,
    pub url: &'a str,
    /// The file that its records go to.
    pub records: &'a Path,
    pub concurrency: usize,
}

impl Child {
    /// Starts a worker process.
    pub fn worker(orders: &Orders<'_>) -> Self {
        let mut command = Command::new(orders.program);
        command
            .args(["--backend", orders.backend, "--url", orders.url])
            .arg("--records")
            .arg(orders.records)
            .args(["--concurrency", &orders.concurrency.to_string()]);
        Self::start(&mut command)
    }

    /// Starts any process. It ends when its standard input does, which is when
    /// this process is gone, however that came about.
    pub fn start(command: &mut Command) -> Self {
        let started = command
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        Self(started.unwrap())
    }

    fn signal(&self, signal: Signal) {
        let id = i32::try_from(self.0.id()).unwrap();
        kill_process(Pid::from_raw(id).unwrap(), signal).unwrap();
    }

    #[must_use]
    pub fn id(&self) -> u32 {
        self.0.id()
    }

    /// SIGKILL, and waits for the end.
    pub fn kill(&mut self) {
        // An error says that it has ended by itself.
        let _ = self.0.kill();
        self.0.wait().unwrap();
    }

    /// SIGSTOP.
    pub fn stop(&self) {
        self.signal(Signal::STOP);
    }

    /// SIGCONT.
    pub fn go_on(&self) {
        self.signal(Signal::CONT);
    }

    /// How it ended, if it did.
    pub fn ended(&mut self) -> io::Result<Option<ExitStatus>> {
        self.0.try_wait()
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        self.kill();
    }
}
