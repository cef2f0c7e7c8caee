//! Four job types that are unlike each other, for snapshots and plans.

use chrono::{DateTime, NaiveDate, Utc};
use retryjob::{JobSchema, LeaseBy, RetryJob};
use serde::{Deserialize, Serialize};

/// What a charge is for.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub enum ChargeType {
    Renewal,
    Upgrade,
}

/// A payload, one column of its own, hashed shards, a schedule.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, RetryJob)]
#[retry_job(
    table = "billing_job",
    shards = 256,
    lease = "5m",
    retry(schedule = ["5m", "30m", "2h", "12h", "1d"], jitter = "30s", max_attempts = 6)
)]
pub struct BillingJob {
    #[job(shard_by)]
    pub subscription_id: u64,
    #[job(unique)]
    pub period_start: NaiveDate,
    #[job(unique)]
    pub charge: ChargeType,
    #[job(column, index)]
    pub service_id: u64,
    pub memo: String,
}

/// No payload, columns of many types under odd names, rows that move to a
/// history table.
#[derive(Clone, Debug, PartialEq, RetryJob)]
#[retry_job(
    table = "order",
    shards = 8,
    finished = "history",
    columns(next_attempt_at = "trigger_next_time", status = "state")
)]
pub struct Order {
    #[job(unique, column(name = "select", type = "VARCHAR(40)"))]
    pub r#type: String,
    #[job(unique, column, index)]
    pub number: i64,
    #[job(column)]
    pub paid: bool,
    #[job(column)]
    pub day: Option<NaiveDate>,
    #[job(column)]
    pub at: Option<DateTime<Utc>>,
    #[job(column(type = "VARBINARY(300)"))]
    pub token: Vec<u8>,
    #[job(column)]
    pub rate: f64,
}

/// A readable shard key, spread starts, rows that are deleted when done.
#[derive(Clone, Debug, PartialEq, RetryJob)]
#[retry_job(
    table = "reminder",
    shards = 64,
    shard_key = "{region}_{day:%Y%m%d}",
    shard_key_column = "business_day",
    spread = "1h",
    finished = "delete",
    retry(
        graded(first = "1s", then = "1m", factor = 3),
        cap = "1h",
        max_attempts = 9,
        manual_after = 5
    )
)]
pub struct Reminder {
    #[job(unique, column(type = "VARCHAR(16)"))]
    pub region: String,
    #[job(unique, column)]
    pub day: NaiveDate,
    #[job(unique)]
    pub user_id: u64,
}

/// Leases of shards.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, RetryJob)]
#[retry_job(
    table = "settlement",
    shards = 32,
    lease_by = "shard",
    finished = "delete"
)]
pub struct Settlement {
    #[job(unique)]
    pub day: NaiveDate,
    #[job(unique)]
    pub merchant_id: u64,
}

/// [`BillingJob`] under leases of shards: the same table, and the statements of
/// both kinds of lease.
pub const BILLING_BOTH: JobSchema = JobSchema {
    lease_by: LeaseBy::Shard,
    ..BillingJob::SCHEMA
};

/// The schemas of all four.
#[must_use]
pub fn schemas() -> [&'static JobSchema; 4] {
    [
        BillingJob::schema(),
        Order::schema(),
        Reminder::schema(),
        Settlement::schema(),
    ]
}
