//! Measures retryjob beside hand-written SQL and its peers. See README.md.

#![allow(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    clippy::cast_sign_loss,
    reason = "figures are rounded for people"
)]

mod options;

mod entry;

mod contestant;

mod database;

mod ran;

mod cpu;

mod counters;

mod measure;

mod plan;

mod results;

mod machine;

mod targets;

mod table;

use std::process::ExitCode;

use anyhow::{Context as _, Result};
use clap::Parser as _;

use crate::{
    entry::{Entry, Place},
    machine::Machine,
    options::{Options, Size},
};

#[tokio::main]
async fn main() -> ExitCode {
    let options = Options::parse();
    let ended = match &options.child {
        Some(order) => measure::two::obey(order).await.map(|()| true),
        None => run(options).await,
    };
    match ended {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("bench: {error:#}");
            ExitCode::from(2)
        }
    }
}

/// Measures and reports; whether nothing was void but for figures of peers.
async fn run(options: Options) -> Result<bool> {
    let mut sizes = options.size.sizes();
    if let Some(rounds) = options.rounds {
        (sizes.rounds, sizes.long_rounds) = (rounds, rounds);
    }
    let mut entries = Entry::all();
    entries.retain(|entry| options.on.is_empty() || options.on.contains(&entry.place));
    entries.retain(|entry| options.who.is_empty() || options.who.contains(&entry.who));

    for place in Place::ALL {
        if entries.iter().any(|entry| entry.place == place) {
            database::drop_leftovers(place).await?;
        }
    }

    let size = format!("{:?}", options.size).to_lowercase();
    let mut machine = Machine::look(&entries, size).await?;
    let (results, rounds) = plan::run(&entries, &options.measure, &sizes).await;
    machine.ended(rounds);
    let targets = match options.size {
        // A handful of jobs says nothing about speed.
        Size::Smoke => Vec::new(),
        Size::Quick | Size::Full => targets::judge(&results, &entries, &sizes),
    };

    let markdown = table::markdown(&machine, &results, &targets);
    let json = table::json(&machine, &results, &targets);
    std::fs::create_dir_all(&options.out).context("the folder for the table")?;
    std::fs::write(options.out.join("table.md"), &markdown)?;
    std::fs::write(
        options.out.join("table.json"),
        serde_json::to_vec_pretty(&json)?,
    )?;
    print!("{markdown}");
    Ok(!results.is_own_void())
}
