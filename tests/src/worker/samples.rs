//! Whole lives of the three sample job types: renamed columns, a table named
//! with a reserved word, no payload, history, delete, shard keys.

use chrono::{DateTime, NaiveDate};
use retryjob::{Backend as _, Leased, Outcome, RetryJob as _, Status};

use super::queue;
use crate::{
    TestDatabase,
    samples::{BillingJob, ChargeType, Order, Reminder},
};

fn day(ordinal: u32) -> NaiveDate {
    NaiveDate::from_yo_opt(2026, ordinal).unwrap()
}

pub async fn a_job_with_payload_column_and_hashed_shard_comes_back_whole<D: TestDatabase>(db: D) {
    let (queue, _flow) = queue::<BillingJob, D>(&db).await;
    let job = BillingJob {
        subscription_id: u64::MAX,
        period_start: day(60),
        charge: ChargeType::Upgrade,
        service_id: u64::MAX - 1,
        memo: "naïve 😀 \"quoted\" \\ 'text'".into(),
    };
    queue.enqueue(&job).await.unwrap();
    let expected = job.clone();
    let worker = queue.worker_with(
        expected,
        async |found: Leased<BillingJob, D::Backend>, expected| {
            if *found == expected {
                Outcome::Done
            } else {
                Outcome::dead("changed")
            }
        },
    );
    worker.run_until_idle().await.unwrap();
    assert_eq!(queue.counts().await.unwrap().of(Status::Success), 1);
}

pub async fn a_job_of_columns_alone_moves_to_its_history<D: TestDatabase>(db: D) {
    let (queue, _flow) = queue::<Order, D>(&db).await;
    let order = |number, day| Order {
        r#type: "sélect\n".into(),
        number,
        paid: true,
        day,
        at: DateTime::from_timestamp_micros(1_796_000_000_123_456),
        token: vec![0, 255, b'\''],
        rate: -0.1,
    };
    let orders = [order(i64::MIN, None), order(i64::MAX, Some(day(1)))];
    queue.enqueue_many(&orders).await.unwrap();
    assert!(!queue.enqueue(&orders[0]).await.unwrap().is_new);
    let expected = orders.clone();
    let worker = queue.worker_with(
        expected,
        async |found: Leased<Order, D::Backend>, expected: [Order; 2]| {
            if expected.contains(&found) {
                Outcome::Done
            } else {
                Outcome::dead("changed")
            }
        },
    );
    let summary = worker.run_until_idle().await.unwrap();
    assert_eq!(summary.success_count, 2);
    assert_eq!(queue.counts().await.unwrap().total(), 0);
    // With the row gone, the key is free again.
    assert!(queue.enqueue(&orders[0]).await.unwrap().is_new);
}

pub async fn a_job_that_is_deleted_when_done_leaves_nothing<D: TestDatabase>(db: D) {
    let (queue, _flow) = queue::<Reminder, D>(&db).await;
    let reminder = |user_id| Reminder {
        region: "eu".into(),
        day: day(35),
        user_id,
    };
    let reminders: Vec<_> = (0..20).map(reminder).collect();
    queue.enqueue_many(&reminders).await.unwrap();
    let rows = db.rows(Reminder::schema()).await;
    let shard = rows[0].shard_id;
    for row in &rows {
        // One region and day, one shard; spread over an hour, each by its key.
        assert_eq!(row.shard_key.as_deref(), Some("eu_20260204"));
        assert_eq!(row.shard_id, shard);
        let offset = row.next_attempt_at.since(row.due_at);
        assert!(offset < std::time::Duration::from_secs(3600));
    }
    let first = rows[0].next_attempt_at.since(rows[0].due_at);
    assert!(
        rows.iter()
            .any(|row| row.next_attempt_at.since(row.due_at) != first)
    );
    db.pass(Reminder::schema(), std::time::Duration::from_secs(3600))
        .await;
    let worker = queue.worker(async |_: Leased<Reminder, D::Backend>| {});
    assert_eq!(worker.run_until_idle().await.unwrap().success_count, 20);
    assert_eq!(queue.counts().await.unwrap().total(), 0);
    assert!(!queue.backend().has_open().await.unwrap());
}
