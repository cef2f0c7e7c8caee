//! What is generated for three job types.

use crate::expand;

/// The generated code of one struct, formatted.
fn generated(source: &str) -> String {
    let input = syn::parse_str(source).unwrap();
    let tokens = expand(&input).unwrap();
    prettyplease::unparse(&syn::parse2(tokens).unwrap())
}

#[test]
fn keys_shards_and_a_payload() {
    insta::assert_snapshot!(generated(
        r#"
        #[retry_job(table = "billing_job", shards = 256, lease = "5m",
                    retry(schedule = ["5m", "30m", "2h", "12h", "1d"], jitter = "30s", max_attempts = 6))]
        struct BillingJob {
            #[job(shard_by)] subscription_id: u64,
            #[job(unique)] period_start: NaiveDate,
            #[job(unique)] charge: ChargeType,
            #[job(column)] service_id: u64,
            memo: String,
        }
        "#
    ));
}

#[test]
fn a_shard_key_and_serde_attributes() {
    insta::assert_snapshot!(generated(
        r#"
        #[retry_job(table = "flight_job", shards = 64, batch = 500, finished = "history",
                    shard_key = "{carrier}_{date:%Y%m%d}", shard_key_column = "shard_key",
                    retry(schedule = ["20ms", "40ms", "1500us"]))]
        #[derive(Debug)]
        #[serde(rename_all = "camelCase", crate = "serde")]
        struct Flight {
            #[job(unique, column)] date: chrono::NaiveDate,
            #[job(unique, column)] carrier: String,
            #[job(unique, column)] flight: u16,
            #[job(unique, column)] origin: String,
            /// Minutes since midnight.
            #[serde(default, skip_serializing_if = "Option::is_none")] dep_time: Option<u16>,
            tailnum: String,
            connection: Option<Box<Self>>,
        }
        "#
    ));
}

#[test]
fn only_columns_in_a_table_that_exists() {
    insta::assert_snapshot!(generated(
        r#"
        #[retry_job(table = "select", timeout = "1s500ms", spread = "1h", lanes(retry = 2),
                    columns(id = "job_id", next_attempt_at = "trigger_next_time"),
                    retry(graded(first = "0s", then = "1m"), cap = "1h", grace = "7d", manual_after = 4))]
        pub struct r#fn {
            #[job(unique, column)] r#type: i8,
            #[job(index, column(name = "order", type = "varchar(64)"))] order_no: Option<String>,
            #[job(column(type = "BINARY(16)"))] request: Vec<u8>,
            #[job(column)] created: DateTime<Utc>,
            #[job(skip)] client: Option<Client>,
        }
        "#
    ));
}
