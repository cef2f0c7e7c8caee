//! A progress bar on a terminal, plain lines elsewhere.

use std::{
    sync::{
        Mutex,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use indicatif::{ProgressBar, ProgressStyle};

/// Time between two plain lines.
const LINE_EVERY: Duration = Duration::from_secs(1);

pub(crate) struct Progress {
    what: &'static str,
    total: u64,
    done: AtomicU64,
    bar: ProgressBar,
    last_line: Mutex<Instant>,
}

impl Progress {
    pub(crate) fn new(what: &'static str, total: u64) -> Self {
        let bar = ProgressBar::new(total);
        let style = "{msg} {bar:40} {human_pos}/{human_len} {per_sec}, {eta} left";
        if let Ok(style) = ProgressStyle::with_template(style) {
            bar.set_style(style);
        }
        bar.set_message(what);
        Self {
            what,
            total,
            done: AtomicU64::new(0),
            bar,
            last_line: Mutex::new(Instant::now()),
        }
    }

    pub(crate) fn add(&self, count: u64) {
        let done = self.done.fetch_add(count, Ordering::Relaxed) + count;
        self.bar.inc(count);
        // indicatif draws nothing when standard error is no terminal.
        if self.bar.is_hidden()
            && let Ok(mut last_line) = self.last_line.try_lock()
            && last_line.elapsed() >= LINE_EVERY
        {
            *last_line = Instant::now();
            println!("{} {done} of {}", self.what, self.total);
        }
    }

    pub(crate) fn end(&self) {
        self.bar.finish_and_clear();
    }
}
