//! Faults on real databases, each run checked by its history.
//!
//! `RETRYJOB_FAULTS=nightly` makes more of each.
#![allow(clippy::unwrap_used, reason = "a panic is a failed test")]

mod abort;
mod clock;
mod cut;
mod group;
mod kill;
mod server;
mod stop;
mod storm;

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use retryjob::Backend;
use retryjob_core::Queue;
use retryjob_tests::{
    SqlDatabase, TestDatabase,
    database::server::{On8, On57, OnMaria, OnMaria57},
    faults::{
        clock::Clock,
        process::Process,
        task::{Job, Task, Writes, prepare},
        worker::Orders,
    },
    history::{Record, Recorded, Recorder},
};

/// A run that hangs fails after this; nothing is measured by it.
const HANG: Duration = Duration::from_secs(120);

/// A database with the tables of a run, and the file that all processes record
/// to.
struct Site<D: TestDatabase, J = Task> {
    db: D,
    records: PathBuf,
    queue: Queue<J, Recorded<D::Backend>>,
}

impl<D, J> Site<D, J>
where
    D: SqlDatabase,
    D::Backend: Writes,
    J: Job,
{
    async fn create() -> Self {
        let db = D::create().await;
        prepare(&db, J::schema()).await;
        let inner = db.connect(J::schema()).await;
        Self::on(db, inner)
    }

    fn on(db: D, inner: D::Backend) -> Self {
        let name = retryjob::IdempotencyKey::random().to_u64();
        let records = std::env::temp_dir().join(format!("retryjob_records_{name:016x}"));
        let recorder = Recorder::to_file(&records);
        Self {
            db,
            queue: Queue::new(Recorded::new(inner, recorder)),
            records,
        }
    }

    fn start_worker(&self, concurrency: usize) -> Process {
        self.start_worker_at(concurrency, None)
    }

    fn start_worker_at(&self, concurrency: usize, clock: Option<&Clock>) -> Process {
        let orders = Orders {
            program: Path::new(env!("CARGO_BIN_EXE_fault_worker")),
            jobs: J::JOBS,
            backend: D::Backend::NAME,
            url: &self.db.url(),
            records: &self.records,
            concurrency,
            clock,
        };
        orders.start()
    }

    fn records(&self) -> Vec<Record> {
        Recorder::read(&self.records)
    }

    /// Waits until nothing is left to do.
    async fn drained(&self) {
        let drain = async {
            while self.queue.backend().has_open().await.unwrap() {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        let drained = tokio::time::timeout(HANG, drain).await;
        drained.unwrap_or_else(|_| panic!("work is left after {HANG:?}"));
    }
}

impl<D: TestDatabase, J> Drop for Site<D, J> {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.records);
    }
}

/// One test of each kind on each database.
macro_rules! on_each {
    ($($module:ident: $($test:ident),+;)+) => {
        on_each!(@on mysql8, "MySQL 9", retryjob_tests::Mysql8Server, $($module: $($test),+;)+);
        on_each!(@on mysql57, "MySQL 5.7", retryjob_tests::Mysql57Server, $($module: $($test),+;)+);
        on_each!(@on mariadb, "MariaDB", retryjob_tests::Mariadb, $($module: $($test),+;)+);
    };
    (@on $name:ident, $said:literal, $database:ty, $($module:ident: $($test:ident),+;)+) => {
        mod $name {
            #[allow(unused_imports, reason = "shared servers have types of their own")]
            use super::*;

            $($(
                #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                async fn $test() {
                    $crate::$module::$test::<$database>($said).await;
                }
            )+)+
        }
    };
}

/// One test of each kind on a server of its own of each kind.
macro_rules! on_servers {
    ($($module:ident: $test:ident;)+) => {
        on_each!(@on own_mysql8, "MySQL 9", On8, $($module: $test;)+);
        on_each!(@on own_mysql57, "MySQL 5.7", On57, $($module: $test;)+);
    };
}

on_each! {
    abort: jobs_that_abort_the_process_die_and_harm_no_other;
    kill: killed_workers_lose_and_double_nothing;
    stop: stopped_workers_finish_nothing_late_and_are_told;
    cut: commits_without_an_answer_are_resolved;
    clock: workers_with_clocks_set_off_run_nothing_early;
}

on_servers! {
    server: killed_servers_lose_nothing_and_work_resumes;
    storm: workers_reapers_and_operators_at_once_see_no_error;
}

on_each! { @on own_mariadb, "MariaDB", OnMaria,
    server: killed_servers_lose_nothing_and_work_resumes;
}

// The backend for many workers there: docs/decisions/0009.
on_each! { @on own_mariadb57, "MariaDB", OnMaria57,
    storm: workers_reapers_and_operators_at_once_see_no_error;
}

on_each! { @on sqlite, "SQLite", retryjob_tests::SqliteFile,
    abort: jobs_that_abort_the_process_die_and_harm_no_other;
    kill: killed_workers_lose_and_double_nothing;
    stop: stopped_workers_finish_nothing_late_and_are_told;
}
