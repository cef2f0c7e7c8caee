//! Processes that a test starts, stops and kills.

use std::{
    fs,
    process::{Command, ExitStatus},
    sync::{Mutex, mpsc},
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use rustix::{
    fd::OwnedFd,
    process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal},
};

/// The longest that threads are waited for.
const STOP_MAX: Duration = Duration::from_secs(5);

/// A child process that is killed when this is dropped, and by the kernel when
/// the test's own process ends in whatever way.
#[derive(Debug)]
pub struct Process {
    /// Names this very process, also when its number has become another's.
    handle: OwnedFd,
    id: u32,
    ending: Mutex<Option<JoinHandle<ExitStatus>>>,
}

impl Process {
    /// Starts it.
    ///
    /// # Panics
    ///
    /// When it can't be started. A program that is not there is found out by
    /// `setpriv`, so that its process starts and ends with code 127.
    #[must_use]
    pub fn start(command: &Command) -> Self {
        let mut command = dying_with_its_parent(command);
        let (started, starting) = mpsc::channel();
        // The kernel takes the thread that started a process for its parent,
        // so that thread has to stay as long as the process does.
        let ending = thread::spawn(move || {
            let mut child = command.spawn().unwrap();
            let id = Pid::from_child(&child);
            let handle = pidfd_open(id, PidfdFlags::empty()).unwrap();
            started.send((handle, child.id())).unwrap();
            child.wait().unwrap()
        });
        let (handle, id) = starting.recv().unwrap();
        Self {
            handle,
            id,
            ending: Mutex::new(Some(ending)),
        }
    }

    #[must_use]
    pub fn id(&self) -> u32 {
        self.id
    }

    /// SIGKILL, and waits for the end.
    pub fn kill(&self) {
        self.send(Signal::KILL);
        self.wait();
    }

    /// SIGSTOP, and waits for its threads: from then on it does nothing until
    /// [`go_on`](Self::go_on). The signal is sent at once, but each thread stops
    /// when it comes to run.
    pub fn stop(&self) {
        self.send(Signal::STOP);
        let patience = Instant::now() + STOP_MAX;
        while self.is_any_thread_on() && Instant::now() < patience {
            thread::sleep(Duration::from_millis(1));
        }
    }

    fn is_any_thread_on(&self) -> bool {
        let threads = fs::read_dir(format!("/proc/{}/task", self.id));
        let stats = threads.into_iter().flatten().flatten();
        let mut stats =
            stats.filter_map(|thread| fs::read_to_string(thread.path().join("stat")).ok());
        // The state comes after the name, which is in parentheses.
        stats.any(|stat| {
            let state = stat.rsplit(") ").next().unwrap_or_default();
            !state.starts_with(['T', 't', 'Z', 'X'])
        })
    }

    /// SIGCONT.
    pub fn go_on(&self) {
        self.send(Signal::CONT);
    }

    /// SIGTERM: asks it to end.
    pub fn terminate(&self) {
        self.send(Signal::TERM);
    }

    #[must_use]
    pub fn has_ended(&self) -> bool {
        let ending = self.ending.lock().unwrap();
        ending.as_ref().is_none_or(JoinHandle::is_finished)
    }

    /// Waits for the end; how it ended, for the first who asks.
    pub fn wait(&self) -> Option<ExitStatus> {
        let ending = self.ending.lock().unwrap().take();
        ending.map(|ending| ending.join().unwrap())
    }

    /// Nothing happens when it has ended.
    fn send(&self, signal: Signal) {
        let _ = pidfd_send_signal(&self.handle, signal);
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}

/// The same command, started by `setpriv`. A process id is the same before and
/// after `exec`.
fn dying_with_its_parent(command: &Command) -> Command {
    let mut with = Command::new("setpriv");
    with.args(["--pdeathsig", "KILL", "--"]);
    with.arg(command.get_program()).args(command.get_args());
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => with.env(name, value),
            None => with.env_remove(name),
        };
    }
    if let Some(folder) = command.get_current_dir() {
        with.current_dir(folder);
    }
    with
}
