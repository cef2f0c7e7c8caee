//! `#[derive(RetryJob)]`, the attribute end of
//! [`retryjob`](https://docs.rs/retryjob). Users depend on `retryjob`, which
//! has the derive.
//!
//! The steps are files, in calling order: `parse`, `check`, `model`, `emit`,
//! and `fallback` when something was wrong. Each takes what the step before it
//! made.

mod check;
mod diagnostics;
mod duration;
mod emit;
mod fallback;
mod ident;
mod model;
mod names;
mod parse;
mod sql_type;
mod template;

#[cfg(test)]
mod tests;

use proc_macro2::TokenStream;
use syn::{DeriveInput, Result};

use crate::{
    check::check, diagnostics::Errors, emit::emit, fallback::fallback, model::Model, parse::parse,
};

/// Makes a struct with named fields a job: its table, its columns, and how it is
/// stored and read back.
///
/// ```ignore
/// #[derive(RetryJob)]
/// #[retry_job(table = "billing_job", shards = 256, lease = "5m",
///             retry(schedule = ["5m", "30m", "2h", "12h", "1d"], jitter = "30s", max_attempts = 6))]
/// struct BillingJob {
///     #[job(shard_by)] subscription_id: u64,
///     #[job(unique)]   period_start: NaiveDate,
///     #[job(unique)]   charge: ChargeType,
///     #[job(column)]   service_id: u64,
///     memo: String,
/// }
/// ```
///
/// A field is a column of its own, or part of the JSON payload, or skipped. A
/// struct whose fields are all columns has no payload column. The generated code
/// names `::retryjob`, so that crate must be a dependency under its own name.
///
/// Every mistake is reported in one build, with what would be right. An attribute
/// that would change nothing is a mistake too.
///
/// # On the struct: `#[retry_job(...)]`
///
/// | option | meaning | default |
/// | --- | --- | --- |
/// | `table = "billing_job"` | the name of the table: ASCII letters, digits, `_` and `$`, at most 56 bytes | must be given |
/// | `shards = 256` | number of shards, 1 to 4096 | 16 |
/// | `shard_key = "{carrier}_{date:%Y%m%d}"` | what places a job on a shard, as a text made of fields; not beside `shard_by` | the idempotency key |
/// | `shard_key_column = "shard_key"` | keeps that text in a column, at most 128 characters of it | not kept |
/// | `lease = "5m"` | how long a claim is valid unless renewed; at least `100ms` | `1m` |
/// | `lease_by = "shard"` | what a claim leases: `row`, or `shard` for far more jobs a second; see `LeaseBy` for what that costs | `row` |
/// | `timeout = "30s"` | how long one attempt may take | no limit |
/// | `retry(...)` | when to try again, see below | 10 attempts from `10s` on, doubling up to `1h` |
/// | `lanes(fresh = 3, retry = 1)` | shares of new and of retried jobs in a batch while both wait, 1 to 1000 each | 3 and 1 |
/// | `batch = 500` | most jobs in one claim, 1 to 1000 | 500 |
/// | `spread = "1h"` | the window that due times are spread over | not spread |
/// | `finished = "history"` | what becomes of rows that succeeded: `keep`, `history` or `delete`; a key is unique only as long as its row is kept | `keep` |
/// | `columns(next_attempt_at = "trigger_next_time")` | other names for the framework's columns, for tables that already exist | their own |
///
/// The framework's columns are `id`, `shard_id`, `status`, `next_attempt_at`,
/// `due_at`, `attempt_no`, `lease_owner`, `lease_seq`, `lease_until`,
/// `idempotency_key`, `payload`, `last_error`, `created_at` and `updated_at`.
///
/// In a `shard_key`, `{field}` is the field as `Display` writes it, and
/// `{field:%Y%m%d}` is a date or time in chrono's format, with the conversions
/// `%Y %C %y %m %b %B %h %d %e %a %A %j %u %w %U %W %G %g %V %D %F` of a date,
/// `%H %k %I %l %M %S %p %P %T %R` of a time, `%s` of both, and `%%`. A `-`, `_`
/// or `0` after the `%` sets how a number is padded. `{{` and `}}` are braces.
///
/// # In `retry(...)`
///
/// One kind of delay:
///
/// | kind | the delay after each failure |
/// | --- | --- |
/// | `fixed = "10s"` | always the same |
/// | `linear = "10s"` | `10s`, `20s`, `30s`, … |
/// | `exponential = "1s", factor = 2` | `1s`, `2s`, `4s`, …; the factor is 1 to 1000, 2 when left out |
/// | `schedule = ["5m", "30m", "2h"]` | one after the other, 1 to 1000 of them |
/// | `graded(first = "1s", then = "1m", factor = 2)` | `first` for faults that pass at once, then exponential from `then` |
///
/// And what bounds it:
///
/// | option | meaning | default |
/// | --- | --- | --- |
/// | `cap = "1h"` | the longest delay | none |
/// | `jitter = "30s"` | up to this much is added to every delay | none |
/// | `max_attempts = 6` | attempts in all, 1 to 65535; 1 never retries and needs no delay | one more than `schedule` has delays, or else 10 |
/// | `grace = "7d"` | no retry starts later than this after the job fell due | none |
/// | `manual_after = 4` | after so many failures a person decides; below `max_attempts` | never |
///
/// # On a field: `#[job(...)]`
///
/// | option | meaning |
/// | --- | --- |
/// | `shard_by` | hashed to place the job on a shard, together with the other such fields |
/// | `unique` | part of the idempotency key; without such a field every job is another one |
/// | `column` | has a column of its own, under the field's name and with the type of its Rust type |
/// | `column(name = "x", type = "VARCHAR(64)")` | the same with another name or type |
/// | `index` | its column has an index |
/// | `skip` | not stored; `Default::default()` when the job is read back |
///
/// All but `skip` can be combined. The types are `BOOLEAN`, `TINYINT`, `SMALLINT`,
/// `INT`, `BIGINT` (each also `UNSIGNED`), `DOUBLE`, `VARCHAR(n)`, `TEXT`,
/// `BINARY(n)`, `VARBINARY(n)`, `DATE` and `DATETIME(6)`, in any case. A type must
/// be of the same kind as the Rust type.
///
/// `#[serde(...)]` on a payload field counts in the payload, whether or not the
/// struct derives serde's traits itself, and must read back what it writes. On the
/// struct `rename_all`, `deny_unknown_fields` and `expecting` count, and others
/// that would change the payload are mistakes.
///
/// # Units
///
/// Durations are whole numbers with `us`, `ms`, `s`, `m`, `h`, `d` or `w`, which
/// add up: `1h30m`. They end at 100 years.
///
/// # Errors
///
/// The derive works for structs with named fields and without parameters. What
/// only the types can show is checked when the program is compiled as well: that
/// a `type` fits, that an index has at most 3072 bytes and a row 65,535, that a
/// field in a `shard_key` can be written.
#[proc_macro_derive(RetryJob, attributes(retry_job, job, serde))]
pub fn retry_job(input: proc_macro::TokenStream) -> proc_macro::TokenStream {
    let input = syn::parse_macro_input!(input as DeriveInput);
    expand(&input)
        .unwrap_or_else(|mistakes| fallback(&input, &mistakes))
        .into()
}

/// The generated impl, or every mistake.
fn expand(input: &DeriveInput) -> Result<TokenStream> {
    let errors = Errors::new();
    let model = parse(input, &errors)
        .map(|parsed| check(parsed, &errors))
        .and_then(Model::new);
    let model = errors.finish(model)?;
    Ok(emit(&model))
}
