//! What a worker does with jobs, on every backend.

pub mod batched;
pub mod ending;
pub mod lease;
pub mod nodes;
pub mod running;
pub mod samples;
pub mod shards;
pub mod shutdown;

use std::{
    any::Any,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use retryjob::{Backend, Memory, RetryJob};
use retryjob_core::Queue;
use tokio::task::JoinHandle;

use crate::TestDatabase;

/// A test that hangs fails after this; nothing is measured by it.
pub const HANG: Duration = Duration::from_secs(60);

/// The job of most tests.
#[derive(Debug, PartialEq, RetryJob)]
#[retry_job(
    table = "work",
    shards = 4,
    lease = "1m",
    retry(fixed = "2ms", max_attempts = 3)
)]
pub struct Work {
    #[job(unique)]
    pub no: u32,
    pub what: String,
}

impl Work {
    pub fn new(no: u32, what: &str) -> Self {
        Self {
            no,
            what: what.into(),
        }
    }

    pub fn numbered(count: u32) -> Vec<Self> {
        (0..count).map(|no| Self::new(no, "")).collect()
    }
}

/// An installed queue for this test.
pub async fn queue<J: RetryJob, D: TestDatabase>(db: &D) -> (Queue<J, D::Backend>, Flow) {
    let backend = db.installed(J::schema()).await;
    let flow = Flow::of(&backend);
    (Queue::new(backend), flow)
}

/// Moves the clock of a [`Memory`] with real time, as a database's moves by
/// itself, until dropped.
#[derive(Debug)]
pub struct Flow(Option<JoinHandle<()>>);

impl Flow {
    fn of<B: Backend>(backend: &B) -> Self {
        let memory = (backend as &dyn Any).downcast_ref::<Memory>();
        Self(memory.map(|memory| {
            let clock = memory.clock();
            tokio::spawn(async move {
                let step = Duration::from_millis(1);
                loop {
                    tokio::time::sleep(step).await;
                    clock.advance(step);
                }
            })
        }))
    }
}

impl Drop for Flow {
    fn drop(&mut self) {
        if let Some(flow) = &self.0 {
            flow.abort();
        }
    }
}

/// What handlers leave behind: which attempts ran, and how many at once.
#[derive(Clone, Debug, Default)]
pub struct Log {
    attempts: Arc<Mutex<Vec<(u64, u64)>>>,
    running: Arc<AtomicUsize>,
    running_max: Arc<AtomicUsize>,
}

impl Log {
    /// Notes an attempt by `(id, lease_seq)`.
    pub fn attempt<J, B: Backend>(&self, job: &retryjob::Leased<J, B>) {
        let mut attempts = self.attempts.lock().unwrap();
        attempts.push((job.id(), job.lease().lease_seq));
    }

    pub fn attempts(&self) -> Vec<(u64, u64)> {
        let mut attempts = self.attempts.lock().unwrap().clone();
        attempts.sort_unstable();
        attempts
    }

    pub fn enter(&self) {
        let running = self.running.fetch_add(1, Ordering::SeqCst) + 1;
        self.running_max.fetch_max(running, Ordering::SeqCst);
    }

    pub fn leave(&self) {
        self.running.fetch_sub(1, Ordering::SeqCst);
    }

    pub fn running(&self) -> usize {
        self.running.load(Ordering::SeqCst)
    }

    pub fn running_max(&self) -> usize {
        self.running_max.load(Ordering::SeqCst)
    }
}

/// The worker's tests that every database passes.
#[macro_export]
macro_rules! worker_conformance {
    ($database:ty) => {
        mod worker {
            $crate::worker_tests! { $database;
                running {
                    every_job_runs_once_and_the_worker_stops_when_idle,
                    workers_share_the_jobs_and_run_none_twice,
                    no_more_handlers_run_at_once_than_asked_for,
                    retried_jobs_do_not_keep_fresh_ones_waiting,
                    events_tell_each_transition_in_order,
                    an_error_that_no_retry_cures_ends_the_worker,
                }
                batched {
                    tasks_that_enqueue_together_are_each_told_of_their_own,
                    a_job_that_is_refused_costs_no_other_of_its_batch,
                    what_stops_a_batch_is_told_to_each_of_its_callers,
                }
                ending {
                    failing_jobs_run_as_often_as_the_policy_says_and_die,
                    panics_count_as_failed_attempts_and_say_why,
                    attempts_over_their_timeout_count_as_failed,
                    verdicts_lead_where_they_say,
                    snoozing_costs_no_attempt,
                    payload_that_no_longer_decodes_is_held_as_it_is,
                    finish_in_a_handlers_transaction_is_the_only_finish,
                    finish_in_without_a_commit_finishes_nothing,
                }
                lease {
                    handler_that_outlives_its_lease_keeps_it,
                    handler_whose_lease_is_lost_is_stopped_and_told,
                    jobs_of_a_dead_worker_are_reaped_and_run_again,
                    last_attempt_after_crashes_runs_with_nothing_else_in_hand,
                }
                nodes {
                    a_worker_leaves_the_shards_of_others_alone_or_for_last,
                    workers_never_claim_from_the_same_shard_while_membership_is_stable,
                    shards_of_a_crashed_worker_are_taken_over,
                }
                shards {
                    jobs_of_held_shards_run_once_each,
                    workers_hold_different_shards_and_run_no_job_twice,
                    jobs_of_held_shards_that_fail_run_as_often_as_the_policy_says,
                    jobs_in_hand_of_a_crashed_holder_run_again_by_their_rows,
                    handler_whose_shard_is_lost_is_stopped_and_told,
                    a_worker_that_stops_gives_its_jobs_and_shards_back,
                    an_operators_hold_of_a_running_job_is_honoured,
                    jobs_with_an_earlier_time_are_found_while_others_are_in_hand,
                }
                samples {
                    a_job_with_payload_column_and_hashed_shard_comes_back_whole,
                    a_job_of_columns_alone_moves_to_its_history,
                    a_job_that_is_deleted_when_done_leaves_nothing,
                }
                shutdown {
                    shutdown_lets_handlers_finish_and_gives_back_the_rest,
                    shutdown_drops_handlers_that_take_too_long,
                    a_dropped_worker_leaves_no_job_behind,
                }
            }
        }
    };
}

/// The worker's tests that send SQL of their own.
#[macro_export]
macro_rules! worker_conformance_sql {
    ($database:ty) => {
        mod worker_sql {
            $crate::worker_tests! { $database;
                nodes {
                    a_worker_whose_heartbeats_fail_works_on_any_shard,
                }
            }
        }
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! worker_tests {
    ($database:ty; $($module:ident { $($test:ident),+ $(,)? })+) => {$(
        mod $module {$(
            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $test() {
                let test = $crate::run::<$database, _>($crate::worker::$module::$test);
                let hangs = "the test hangs";
                tokio::time::timeout($crate::worker::HANG, test).await.expect(hangs);
            }
        )+}
    )+};
}
