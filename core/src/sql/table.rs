//! The table as it should be, and how a table that is there differs from it.

use sea_query::{ColumnDef, Index, IndexCreateStatement, Table};

use super::{
    dialect::Dialect,
    nodes,
    parts::{CLAIM_INDEX, KEY_INDEX, LEASE_INDEX, Maker},
    shards,
};
use crate::{
    ident::Ident,
    schema::{Finished, LeaseBy},
    shard::SHARD_KEY_CHARS_MAX,
    value::ColumnType,
};

/// A table: what the catalogue wants, or what was found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TableSpec {
    /// Its name.
    pub name: String,
    /// Its columns.
    pub columns: Vec<ColumnSpec>,
    /// The columns of its primary key.
    pub primary: Vec<String>,
    /// Its indexes besides the primary key.
    pub indexes: Vec<IndexSpec>,
}

/// A column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ColumnSpec {
    /// Its name.
    pub name: String,
    /// Its type, as [`Dialect::type_text`] writes it.
    pub type_text: String,
    /// Whether it takes NULL.
    pub is_nullable: bool,
    /// Whether the database refuses rows that leave it out: NOT NULL, no
    /// default, not numbered.
    pub is_required: bool,
}

/// An index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IndexSpec {
    /// Its name.
    pub name: String,
    /// Its columns, in order.
    pub columns: Vec<String>,
    /// Whether it is unique.
    pub is_unique: bool,
}

impl TableSpec {
    /// Every way in which the table that was found can't serve as this one.
    ///
    /// Further columns are fine when they can be left out of an INSERT, and so
    /// are further indexes that are not unique.
    #[must_use]
    pub fn differences(&self, found: &Self) -> Vec<String> {
        let mut differences = Vec::new();
        for want in &self.columns {
            let same = |column: &&ColumnSpec| column.name.eq_ignore_ascii_case(&want.name);
            match found.columns.iter().find(same) {
                None => differences.push(format!(
                    "column `{}` is missing; it would be {}",
                    want.name,
                    want.described()
                )),
                Some(have) if have.described() != want.described() => {
                    differences.push(format!(
                        "column `{}` is {}, expected {}",
                        want.name,
                        have.described(),
                        want.described()
                    ));
                }
                Some(_) => {}
            }
        }
        for have in found.columns.iter().filter(|have| have.is_required) {
            let same = |column: &ColumnSpec| column.name.eq_ignore_ascii_case(&have.name);
            if !self.columns.iter().any(same) {
                differences.push(format!(
                    "column `{}` is not part of the job and has no default; give it one or drop it",
                    have.name
                ));
            }
        }
        if !same_names(&found.primary, &self.primary) {
            differences.push(format!(
                "the primary key is over ({}), expected ({})",
                found.primary.join(", "),
                self.primary.join(", ")
            ));
        }
        for want in &self.indexes {
            let serves = |index: &IndexSpec| {
                index.is_unique == want.is_unique && same_names(&index.columns, &want.columns)
            };
            match found
                .indexes
                .iter()
                .find(|index| index.name.eq_ignore_ascii_case(&want.name))
            {
                Some(have) if serves(have) => {}
                Some(have) => differences.push(format!(
                    "index `{}` is {}, expected {}",
                    want.name,
                    have.described(),
                    want.described()
                )),
                None => differences.push(format!(
                    "index `{}` is missing; it would be {}",
                    want.name,
                    want.described()
                )),
            }
        }
        differences
    }
}

fn same_names(a: &[String], b: &[String]) -> bool {
    a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a.eq_ignore_ascii_case(b))
}

impl ColumnSpec {
    fn described(&self) -> String {
        let null = if self.is_nullable { "NULL" } else { "NOT NULL" };
        format!("{} {null}", self.type_text)
    }
}

impl IndexSpec {
    /// What it is over, in words.
    #[must_use]
    pub fn described(&self) -> String {
        let unique = if self.is_unique {
            "unique over"
        } else {
            "over"
        };
        format!("{unique} ({})", self.columns.join(", "))
    }
}

/// The job table, the history table when the job type has one, and the table
/// of nodes, which all job types of a database share.
pub(super) fn specs(maker: Maker<'_>) -> Vec<TableSpec> {
    let names = maker.names();
    let job = TableSpec {
        name: maker.table().to_owned(),
        columns: columns(maker),
        primary: vec![names.id.as_str().to_owned()],
        indexes: indexes(maker),
    };
    let history = (maker.schema.finished == Finished::History).then(|| TableSpec {
        name: history_table(maker.schema.table),
        // Rows keep their ids, so the history numbers nothing itself.
        columns: job.columns.clone(),
        // Not over the id alone: MySQL 5.7 forgets its counter when it is
        // restarted, and numbers on from the largest id that is left.
        primary: vec![
            names.id.as_str().to_owned(),
            names.created_at.as_str().to_owned(),
        ],
        indexes: Vec::new(),
    });
    let shards = (maker.schema.lease_by == LeaseBy::Shard).then(|| shards::spec(maker));
    std::iter::once(job)
        .chain(history)
        .chain([nodes::spec(maker)])
        .chain(shards)
        .collect()
}

/// The name of the table that finished rows move to.
pub(super) fn history_table(table: Ident) -> String {
    format!("{table}_history")
}

/// The statements that create the tables and their indexes, in order.
pub(super) fn create(maker: Maker<'_>) -> Vec<String> {
    let id = maker.names().id.as_str();
    let mut statements = Vec::new();
    for spec in specs(maker) {
        let is_job_table = spec.name == maker.table();
        let mut table = Table::create();
        table.table(spec.name.clone());
        for column in &spec.columns {
            let mut def = ColumnDef::new(column.name.clone());
            def.custom(column.type_text.clone());
            if column.is_nullable {
                def.null();
            } else {
                def.not_null();
            }
            if column.name == id && is_job_table {
                def.primary_key();
                maker.dialect.numbered(&mut def);
            }
            table.col(def);
        }
        if !is_job_table {
            let mut primary = Index::create();
            for column in &spec.primary {
                primary.col(column.clone());
            }
            table.primary_key(&mut primary);
        }
        let indexes: Vec<_> = spec
            .indexes
            .iter()
            .map(|index| create_index(&spec.name, index))
            .collect();
        if maker.dialect.has_inline_indexes() {
            for mut index in indexes.clone() {
                table.index(&mut index);
            }
        }
        statements.push(maker.dialect.write_table(&table));
        if !maker.dialect.has_inline_indexes() {
            statements.extend(indexes.iter().map(|index| maker.dialect.write_index(index)));
        }
    }
    statements
}

fn create_index(table: &str, spec: &IndexSpec) -> IndexCreateStatement {
    let mut index = Index::create();
    index.name(spec.name.clone()).table(table.to_owned());
    for column in &spec.columns {
        index.col(column.clone());
    }
    if spec.is_unique {
        index.unique();
    }
    index
}

fn columns(maker: Maker<'_>) -> Vec<ColumnSpec> {
    use ColumnType::{Binary, DateTime, Text, U8, U16, U64, Varchar};
    let names = maker.names();
    let mut columns = vec![
        column(maker.dialect, names.id, U64, false),
        column(maker.dialect, names.shard_id, U16, false),
        column(maker.dialect, names.status, U8, false),
        column(maker.dialect, names.next_attempt_at, DateTime, false),
        column(maker.dialect, names.due_at, DateTime, false),
        column(maker.dialect, names.attempt_no, U16, false),
        column(
            maker.dialect,
            names.lease_owner,
            Varchar { chars: 64 },
            true,
        ),
        column(maker.dialect, names.lease_seq, U64, false),
        column(maker.dialect, names.lease_until, DateTime, true),
        column(
            maker.dialect,
            names.idempotency_key,
            Binary { bytes: 32 },
            false,
        ),
    ];
    if maker.schema.has_payload {
        columns.push(column(maker.dialect, names.payload, Text, false));
    }
    columns.extend([
        column(maker.dialect, names.last_error, Text, true),
        column(maker.dialect, names.created_at, DateTime, false),
        column(maker.dialect, names.updated_at, DateTime, false),
    ]);
    if let Some(name) = maker.schema.shard_key_column {
        let chars = SHARD_KEY_CHARS_MAX;
        columns.push(column(maker.dialect, name, Varchar { chars }, false));
    }
    for own in maker.schema.columns {
        columns.push(column(maker.dialect, own.name, own.kind, own.nullable));
    }
    columns
}

pub(super) fn column(
    dialect: &dyn Dialect,
    name: Ident,
    kind: ColumnType,
    is_nullable: bool,
) -> ColumnSpec {
    ColumnSpec {
        name: name.as_str().to_owned(),
        type_text: dialect.type_text(kind),
        is_nullable,
        is_required: !is_nullable,
    }
}

fn indexes(maker: Maker<'_>) -> Vec<IndexSpec> {
    let names = maker.names();
    let index = |name: &str, columns: &[Ident], is_unique| IndexSpec {
        name: maker.dialect.index_name(maker.schema.table, name),
        columns: columns
            .iter()
            .map(|column| column.as_str().to_owned())
            .collect(),
        is_unique,
    };
    let mut indexes = vec![
        // Equality columns first, then the order: a claim reads its rows off
        // the front and locks nothing else.
        index(
            CLAIM_INDEX,
            &[
                names.shard_id,
                names.status,
                names.next_attempt_at,
                names.id,
            ],
            false,
        ),
        // Lapsed leases of all shards in one range, and counts by status.
        index(
            LEASE_INDEX,
            &[names.status, names.lease_until, names.id],
            false,
        ),
        index(KEY_INDEX, &[names.idempotency_key], true),
    ];
    for own in maker.schema.columns.iter().filter(|own| own.index) {
        indexes.push(index(own.name.as_str(), &[own.name], false));
    }
    indexes
}
