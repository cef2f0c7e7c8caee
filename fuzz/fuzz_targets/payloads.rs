//! A payload that somebody else wrote is decoded, or refused with the reason.
#![no_main]

use std::collections::BTreeMap;

use libfuzzer_sys::fuzz_target;
use retryjob_core::{
    RetryJob,
    job::{DecodeError, Parts},
};
use serde::{Deserialize, Serialize};

#[derive(Debug, PartialEq, Serialize, Deserialize)]
enum Charge {
    Renewal,
    Upgrade { from: u8, to: Option<String> },
    Other(Vec<i64>),
}

#[derive(Debug, PartialEq, retryjob::RetryJob)]
#[retry_job(table = "job", shards = 4)]
struct Job {
    no: u64,
    charge: Charge,
    memo: Option<String>,
    flags: BTreeMap<String, bool>,
    nested: serde_json::Value,
}

fuzz_target!(|payload: &str| {
    match Job::decode(Parts::new(Vec::new(), Some(payload.into()))) {
        Ok(job) => {
            // What was read is stored and read again as the same job.
            let encoded = job.encode().expect("it came from JSON");
            let again = Job::decode(Parts::new(Vec::new(), encoded.payload));
            assert_eq!(again.expect("its own payload"), job);
        }
        Err(DecodeError::Payload(source)) => assert!(!source.to_string().is_empty()),
        Err(other) => panic!("there is no column: {other}"),
    }
});
