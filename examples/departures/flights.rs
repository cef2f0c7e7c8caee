//! The job, and the file of flights that it is made from.

use std::{
    fs::File,
    io::Read,
    path::{Path, PathBuf},
};

use chrono::{NaiveDate, NaiveDateTime, NaiveTime};
use flate2::read::GzDecoder;
use retryjob::RetryJob;
use serde::{Deserialize, Deserializer};

use crate::Result;

/// A flight that is to leave. Delays are the minutes of `LATE_MIN`, scaled to
/// milliseconds.
#[derive(Debug, Deserialize, RetryJob)]
#[retry_job(
    table = "departure",
    shards = 64,
    shard_key = "{carrier}_{date:%Y%m%d}",
    shard_key_column = "business_day",
    batch = 500,
    lease = "30s",
    retry(schedule = ["15ms", "60ms", "180ms"])
)]
pub(crate) struct Departure {
    #[job(unique, column)]
    pub(crate) date: NaiveDate,
    #[job(unique, column(type = "VARCHAR(8)"))]
    pub(crate) carrier: String,
    #[job(unique, column)]
    pub(crate) flight: u16,
    #[job(unique, column(type = "VARCHAR(8)"))]
    pub(crate) origin: String,
    pub(crate) dest: String,
    pub(crate) tailnum: Option<String>,
    pub(crate) dep_delay_min: Option<i32>,
    pub(crate) distance_mi: u16,
}

/// A row of the file: the job and when it falls due.
#[derive(Debug)]
pub(crate) struct Flight {
    pub(crate) departure: Departure,
    pub(crate) departs_at: NaiveDateTime,
}

#[derive(Deserialize)]
struct Row {
    #[serde(deserialize_with = "hour_and_minute")]
    sched_dep: NaiveTime,
}

fn hour_and_minute<'de, D: Deserializer<'de>>(input: D) -> Result<NaiveTime, D::Error> {
    let text = String::deserialize(input)?;
    NaiveTime::parse_from_str(&text, "%H:%M").map_err(serde::de::Error::custom)
}

/// The file that comes with the project.
pub(crate) fn shipped(is_year: bool) -> PathBuf {
    let name = if is_year {
        "flights-2013.csv.gz"
    } else {
        "flights-2013-02-04-week.csv"
    };
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("examples/data")
        .join(name)
}

/// Reads all flights of a file.
pub(crate) fn read(path: &Path) -> Result<Vec<Flight>> {
    let file = File::open(path).map_err(|error| format!("{}: {error}", path.display()))?;
    let is_compressed = path.extension().is_some_and(|extension| extension == "gz");
    let input: Box<dyn Read> = if is_compressed {
        Box::new(GzDecoder::new(file))
    } else {
        Box::new(file)
    };
    let mut reader = csv::Reader::from_reader(input);
    let headers = reader.headers()?.clone();
    let flights = reader.records().map(|record| {
        let record = record?;
        let departure: Departure = record.deserialize(Some(&headers))?;
        let row: Row = record.deserialize(Some(&headers))?;
        let departs_at = departure.date.and_time(row.sched_dep);
        Ok(Flight {
            departure,
            departs_at,
        })
    });
    let flights: csv::Result<Vec<_>> = flights.collect();
    flights.map_err(|error| format!("{}: {error}", path.display()).into())
}
