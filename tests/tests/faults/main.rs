//! Faults on real databases, each run checked by its history.
//!
//! `RETRYJOB_FAULTS=nightly` makes more of each.
#![allow(clippy::unwrap_used, reason = "a panic is a failed test")]

mod cut;
mod kill;
mod stop;

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use retryjob::{Backend, RetryJob as _};
use retryjob_core::Queue;
use retryjob_tests::{
    SqlDatabase, TestDatabase,
    faults::{
        child::{Child, Orders},
        task::{Task, Writes, prepare},
    },
    history::{Record, Recorded, Recorder},
};

/// A run that hangs fails after this; nothing is measured by it.
const HANG: Duration = Duration::from_secs(120);

/// A database with the tables of a run, and the file that all processes record
/// to.
struct Site<D: TestDatabase> {
    db: D,
    records: PathBuf,
    queue: Queue<Task, Recorded<D::Backend>>,
}

impl<D> Site<D>
where
    D: SqlDatabase,
    D::Backend: Writes,
{
    async fn create() -> Self {
        let db = D::create().await;
        prepare(&db, Task::schema()).await;
        let inner = db.connect(Task::schema()).await;
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

    fn start_worker(&self, concurrency: usize) -> Child {
        Child::worker(&Orders {
            program: Path::new(env!("CARGO_BIN_EXE_fault_worker")),
            backend: D::Backend::NAME,
            url: &self.db.url(),
            records: &self.records,
            concurrency,
        })
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

impl<D: TestDatabase> Drop for Site<D> {
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
            $($(
                #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                async fn $test() {
                    super::$module::$test::<$database>($said).await;
                }
            )+)+
        }
    };
}

on_each! {
    kill: killed_workers_lose_and_double_nothing;
    stop: stopped_workers_finish_nothing_late_and_are_told;
    cut: commits_without_an_answer_are_resolved;
}

on_each! { @on sqlite, "SQLite", retryjob_tests::SqliteFile,
    kill: killed_workers_lose_and_double_nothing;
    stop: stopped_workers_finish_nothing_late_and_are_told;
}
