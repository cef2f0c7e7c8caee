//! The job as the generator sees it: right by construction, defaults applied
//! where they depend on other options.

use std::time::Duration;

use proc_macro2::TokenStream;
use syn::{Attribute, Ident, Meta, Type};

use crate::{
    check::{Checked, max_attempts},
    ident::SqlName,
    names::{FinishedName, LeaseByName, OwnColumn},
    parse::{JobOptions, ParsedField, ParsedLanes, ParsedRetry, default_column_name},
    sql_type::SqlType,
    template::{Format, Piece},
};

/// A job type.
pub(crate) struct Model {
    pub(crate) ident: Ident,
    pub(crate) table: SqlName,
    /// The framework's columns that have another name.
    pub(crate) renamed: Vec<(OwnColumn, SqlName)>,
    /// In the struct's order.
    pub(crate) fields: Vec<FieldModel>,
    pub(crate) shard: Shard,
    pub(crate) shard_key_column: Option<SqlName>,
    pub(crate) settings: Settings,
    /// What the payload's structs take over from the struct's `#[serde]`.
    pub(crate) serde: Vec<Meta>,
}

/// Options that go to the schema as they are.
pub(crate) struct Settings {
    pub(crate) shards: Option<u16>,
    pub(crate) lease: Option<Duration>,
    pub(crate) timeout: Option<Duration>,
    pub(crate) retry: Option<Retry>,
    pub(crate) lanes: Option<Lanes>,
    pub(crate) batch: Option<u16>,
    pub(crate) spread: Option<Duration>,
    pub(crate) finished: Option<FinishedName>,
    pub(crate) lease_by: Option<LeaseByName>,
}

/// What places a job on a shard.
pub(crate) enum Shard {
    /// Its idempotency key.
    Key,
    /// The fields with `shard_by`.
    Fields,
    /// A text made of fields.
    Template {
        pieces: Vec<ShardPiece>,
        /// The literal, for errors that only rustc can raise.
        tokens: TokenStream,
    },
}

/// A part of that text.
pub(crate) enum ShardPiece {
    Text(String),
    Field {
        ident: Ident,
        format: Option<Format>,
    },
}

/// A field.
pub(crate) struct FieldModel {
    pub(crate) ident: Ident,
    /// The name without `r#`, which keys are made with.
    pub(crate) name: String,
    pub(crate) ty: Type,
    pub(crate) is_unique: bool,
    pub(crate) is_shard_by: bool,
    pub(crate) store: Store,
}

/// Where a field is kept.
pub(crate) enum Store {
    /// In a column of its own.
    Column(ColumnModel),
    /// In the JSON payload, with these `#[serde]` attributes.
    Payload(Vec<Attribute>),
    /// Nowhere.
    Skip,
}

/// A column of the struct's own.
pub(crate) struct ColumnModel {
    pub(crate) name: SqlName,
    /// That of the Rust type when there is none.
    pub(crate) sql_type: Option<SqlType>,
    pub(crate) has_index: bool,
}

/// The retry policy.
pub(crate) struct Retry {
    pub(crate) backoff: Backoff,
    pub(crate) cap: Option<Duration>,
    pub(crate) jitter: Duration,
    pub(crate) max_attempts: u16,
    pub(crate) grace: Option<Duration>,
    pub(crate) manual_after: Option<u16>,
}

/// The kind of delay.
pub(crate) enum Backoff {
    Fixed(Duration),
    Linear(Duration),
    Exponential {
        base: Duration,
        factor: u32,
    },
    Schedule(Vec<Duration>),
    Graded {
        first: Duration,
        base: Duration,
        factor: u32,
    },
}

/// The weights of the lanes; one that is missing keeps its default.
pub(crate) struct Lanes {
    pub(crate) fresh: Option<u16>,
    pub(crate) retry: Option<u16>,
}

/// What a failure multiplies the delay with when nothing else is said.
const FACTOR_DEFAULT: u32 = 2;

impl Model {
    /// The model of attributes that passed every check, without any mistake.
    ///
    /// `None` only when a check is missing.
    pub(crate) fn new(checked: Checked) -> Option<Self> {
        let parsed = checked.into_parsed();
        let mut options = parsed.options;
        let fields: Option<Vec<_>> = parsed.fields.into_iter().map(FieldModel::new).collect();
        let fields = fields?;
        let shard = match options.shard_key.given() {
            Some(template) => Shard::Template {
                pieces: shard_pieces(&template.value, &fields)?,
                tokens: template.tokens.clone(),
            },
            None if fields.iter().any(|field| field.is_shard_by) => Shard::Fields,
            None => Shard::Key,
        };
        Some(Self {
            ident: parsed.ident,
            table: std::mem::take(&mut options.table).into_value()?,
            renamed: std::mem::take(&mut options.columns)
                .into_value()
                .unwrap_or_default()
                .into_iter()
                .map(|renamed| (renamed.column, renamed.to.value))
                .collect(),
            fields,
            shard,
            shard_key_column: std::mem::take(&mut options.shard_key_column).into_value(),
            settings: Settings::new(options)?,
            serde: parsed.serde.copied,
        })
    }

    /// The fields with a column of their own, in the schema's order.
    pub(crate) fn columns(&self) -> impl Iterator<Item = (&FieldModel, &ColumnModel)> {
        self.fields.iter().filter_map(|field| match &field.store {
            Store::Column(column) => Some((field, column)),
            Store::Payload(_) | Store::Skip => None,
        })
    }

    /// The fields that travel as JSON, with their `#[serde]` attributes.
    pub(crate) fn payload(&self) -> impl Iterator<Item = (&FieldModel, &[Attribute])> {
        self.fields.iter().filter_map(|field| match &field.store {
            Store::Payload(serde) => Some((field, &serde[..])),
            Store::Column(_) | Store::Skip => None,
        })
    }

    pub(crate) fn has_payload(&self) -> bool {
        self.payload().next().is_some()
    }

    pub(crate) fn has_unique(&self) -> bool {
        self.fields.iter().any(|field| field.is_unique)
    }
}

impl FieldModel {
    fn new(field: ParsedField) -> Option<Self> {
        let default_name = || default_column_name(&field).ok();
        let store = match &field.column {
            _ if field.skip.name().is_some() => Store::Skip,
            slot => match slot.given() {
                None => Store::Payload(field.serde.clone()),
                Some(given) => Store::Column(ColumnModel {
                    name: match given.value.name.given() {
                        Some(name) => name.value.clone(),
                        None => default_name()?,
                    },
                    sql_type: given.value.sql_type.given().map(|given| given.value),
                    has_index: field.index.name().is_some(),
                }),
            },
        };
        Some(Self {
            is_unique: field.unique.name().is_some(),
            is_shard_by: field.shard_by.name().is_some(),
            ident: field.ident,
            name: field.name,
            ty: field.ty,
            store,
        })
    }
}

impl Settings {
    fn new(options: JobOptions) -> Option<Self> {
        let retry = match options.retry.into_value() {
            Some(retry) => Some(Retry::new(retry)?),
            None => None,
        };
        Some(Self {
            shards: options.shards.into_value(),
            lease: options.lease.into_value(),
            timeout: options.timeout.into_value(),
            retry,
            lanes: options.lanes.into_value().map(Lanes::new),
            batch: options.batch.into_value(),
            spread: options.spread.into_value(),
            finished: options.finished.into_value(),
            lease_by: options.lease_by.into_value(),
        })
    }
}

impl Retry {
    fn new(retry: ParsedRetry) -> Option<Self> {
        let max_attempts = max_attempts(&retry)?;
        let factor = retry.factor.into_value().unwrap_or(FACTOR_DEFAULT);
        let backoff = if let Some(delay) = retry.fixed.into_value() {
            Backoff::Fixed(delay)
        } else if let Some(step) = retry.linear.into_value() {
            Backoff::Linear(step)
        } else if let Some(base) = retry.exponential.into_value() {
            Backoff::Exponential { base, factor }
        } else if let Some(delays) = retry.schedule.into_value() {
            Backoff::Schedule(delays)
        } else if let Some(graded) = retry.graded.into_value() {
            Backoff::Graded {
                first: graded.first.into_value()?,
                base: graded.then.into_value()?,
                factor: graded.factor.into_value().unwrap_or(FACTOR_DEFAULT),
            }
        } else {
            // Only `max_attempts = 1` needs none, and never looks at it.
            Backoff::Fixed(Duration::ZERO)
        };
        Some(Self {
            backoff,
            cap: retry.cap.into_value(),
            jitter: retry.jitter.into_value().unwrap_or_default(),
            max_attempts,
            grace: retry.grace.into_value(),
            manual_after: retry.manual_after.into_value(),
        })
    }
}

impl Lanes {
    fn new(lanes: ParsedLanes) -> Self {
        Self {
            fresh: lanes.fresh.into_value(),
            retry: lanes.retry.into_value(),
        }
    }
}

fn shard_pieces(pieces: &[Piece], fields: &[FieldModel]) -> Option<Vec<ShardPiece>> {
    let piece = |piece: &Piece| match piece {
        Piece::Text(text) => Some(ShardPiece::Text(text.clone())),
        Piece::Field { name, format } => {
            let field = fields.iter().find(|field| field.name == *name)?;
            Some(ShardPiece::Field {
                ident: field.ident.clone(),
                format: format.clone(),
            })
        }
    };
    pieces.iter().map(piece).collect()
}
