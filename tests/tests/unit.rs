//! What users' own unit tests are made of: the memory backend, its clock,
//! `drain` and `assert_enqueued!`, and a worker on paused time.
#![allow(clippy::unwrap_used, reason = "a panic is a failed test")]

use std::time::Duration;

use retryjob::{Due, Leased, Memory, Outcome, Queue, RetryJob, Status, assert_enqueued};
use tokio::time::Instant;

#[derive(Debug, RetryJob)]
#[retry_job(table = "mail", retry(schedule = ["1h", "1d"]))]
struct Mail {
    #[job(unique)]
    to: String,
    is_urgent: bool,
}

fn mail(to: &str, is_urgent: bool) -> Mail {
    Mail {
        to: to.into(),
        is_urgent,
    }
}

fn queue() -> Queue<Mail, Memory> {
    Queue::new(Memory::new(Mail::schema()))
}

#[tokio::test]
async fn assert_enqueued_finds_jobs_by_pattern_and_guard() {
    let queue = queue();
    queue.enqueue(&mail("ada@example.org", true)).await.unwrap();
    assert_enqueued!(
        queue.backend(),
        Mail {
            is_urgent: true,
            ..
        }
    );
    assert_enqueued!(queue.backend(), Mail { to, .. } if to.starts_with("ada"));
}

#[tokio::test]
#[should_panic(expected = "no job matches `Mail { is_urgent: false, .. }`")]
async fn assert_enqueued_says_what_it_looked_for() {
    let queue = queue();
    queue.enqueue(&mail("ada@example.org", true)).await.unwrap();
    assert_enqueued!(
        queue.backend(),
        Mail {
            is_urgent: false,
            ..
        }
    );
}

#[tokio::test]
async fn drain_runs_everything_and_moves_the_clock_to_what_is_due() {
    let queue = queue();
    queue.enqueue(&mail("now", false)).await.unwrap();
    let tomorrow = Due::In(Duration::from_secs(86_400));
    queue
        .enqueue_due(&mail("tomorrow", false), tomorrow)
        .await
        .unwrap();
    let started = queue.backend().clock().now();
    let summary = queue
        .drain(async |mail: Leased<Mail, Memory>| match mail.to.as_str() {
            "now" => Outcome::retry("never works"),
            _ => Outcome::Done,
        })
        .await
        .unwrap();
    assert_eq!((summary.attempt_count, summary.success_count), (4, 1));
    let counts = queue.counts().await.unwrap();
    assert_eq!(
        (counts.of(Status::Success), counts.of(Status::Dead)),
        (1, 1)
    );
    // An hour and a day after the first attempt came the last.
    let passed = queue.backend().clock().now().since(started);
    assert_eq!(passed, Duration::from_secs(90_000));
}

#[tokio::test]
async fn drain_of_a_job_that_snoozes_for_ever_ends_with_an_error() {
    let queue = queue();
    queue.enqueue(&mail("sleepy", false)).await.unwrap();
    let error = queue
        .drain(async |_: Leased<Mail, Memory>| Outcome::snooze(Duration::from_secs(1)))
        .await
        .unwrap_err();
    assert!(error.to_string().contains("100000 attempts"), "{error}");
}

/// Ten hours idle, by tokio's paused clock, then a job: without being woken
/// the worker would look again after an hour.
#[tokio::test(start_paused = true)]
async fn enqueue_wakes_a_worker_that_has_long_been_idle() {
    let queue = queue();
    let (sender, mut ran_at) = tokio::sync::mpsc::unbounded_channel();
    let worker = queue.worker_with(sender, async |_: Leased<Mail, Memory>, sender| {
        let _ = tokio::sync::mpsc::UnboundedSender::send(&sender, Instant::now());
    });
    let worker = worker.poll_max(Duration::from_secs(3600));
    let running = tokio::spawn(worker.run_until(tokio::time::sleep(Duration::from_secs(72_000))));
    tokio::time::sleep(Duration::from_secs(36_000) + Duration::from_secs(17)).await;
    let enqueued_at = Instant::now();
    queue.enqueue(&mail("late", true)).await.unwrap();
    let woken = ran_at.recv().await.unwrap() - enqueued_at;
    assert!(
        woken < Duration::from_secs(1),
        "ran {woken:?} after it was enqueued"
    );
    running.await.unwrap().unwrap();
}

/// Each worker claims from its own shards only, and whose a job will be is not
/// known where it is enqueued.
#[tokio::test(start_paused = true)]
async fn enqueue_wakes_whichever_worker_owns_the_shard() {
    let queue = queue();
    let (sender, mut ran) = tokio::sync::mpsc::unbounded_channel();
    let mut running = tokio::task::JoinSet::new();
    for _ in 0..3 {
        let worker = queue.worker_with(sender.clone(), async |_: Leased<Mail, Memory>, sender| {
            let _ = tokio::sync::mpsc::UnboundedSender::send(&sender, Instant::now());
        });
        let worker = worker.poll_max(Duration::from_secs(3600));
        running.spawn(worker.run_until(tokio::time::sleep(Duration::from_secs(72_000))));
    }
    tokio::time::sleep(Duration::from_secs(36_000) + Duration::from_secs(17)).await;
    for no in 0..20 {
        let enqueued_at = Instant::now();
        let to = format!("{no}@example.org");
        queue.enqueue(&mail(&to, true)).await.unwrap();
        let woken = ran.recv().await.unwrap() - enqueued_at;
        assert!(
            woken < Duration::from_secs(1),
            "ran {woken:?} after it was enqueued"
        );
        tokio::time::sleep(Duration::from_secs(1000)).await;
    }
    for ended in running.join_all().await {
        ended.unwrap();
    }
}
