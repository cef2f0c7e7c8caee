//! A dialect that writes some statements without one of their conjuncts.

use std::{
    collections::HashMap,
    fmt,
    sync::{Arc, Mutex},
};

use retryjob_core::{
    ColumnType, Ident, JobSchema,
    sql::{Catalogue, Dialect, Query},
};
use sea_query::{
    ColumnDef, Expr, IndexCreateStatement, SelectStatement, TableCreateStatement, Values,
};

use super::{
    conjuncts::{Conjunct, conjuncts, without},
    mutant::Guarded,
};
use crate::jobs::{ARCHIVED, DELETED, HELD, HELD_DELETED, JOB};

/// One statement without one of its conjuncts, in lists of every length.
#[derive(Clone, Debug)]
pub(super) struct Mutation {
    /// The statement's name, without a length.
    pub(super) statement: String,
    /// What it begins with: one name stands for an UPDATE or a DELETE.
    pub(super) verb: String,
    /// What it says from WHERE on, in no database's own words.
    pub(super) tail: String,
    pub(super) conjunct: Conjunct,
}

impl fmt::Display for Mutation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            statement,
            verb,
            conjunct,
            ..
        } = self;
        write!(f, "{statement} ({verb}) without {}", conjunct.text)
    }
}

/// Everything that can be dropped from the statements of this database.
///
/// # Panics
///
/// When lists of several lengths differ in more than the length.
pub(super) fn mutations<D: Guarded>() -> Vec<Mutation> {
    let mut all: Vec<Mutation> = Vec::new();
    for schema in [&JOB, &DELETED, &ARCHIVED, &HELD, &HELD_DELETED] {
        let catalogue = D::statements(schema);
        let clock = catalogue.clock.sql().trim_start_matches("SELECT ");
        for (name, statement) in catalogue.statements() {
            let sql = statement.sql();
            let (statement, verb) = (stem(&name), verb(sql));
            let own = conjuncts(sql);
            let known: Vec<_> = all
                .iter()
                .filter(|known| known.statement == statement && known.verb == verb)
                .collect();
            if known.is_empty() {
                all.extend(own.into_iter().map(|conjunct| Mutation {
                    statement: statement.to_owned(),
                    verb: verb.to_owned(),
                    tail: tail(sql, clock),
                    conjunct,
                }));
                continue;
            }
            let same = own.iter().zip(&known);
            let all_same = same.fold(true, |same, (own, known)| {
                same && own.is_same_place(&known.conjunct)
            });
            assert!(all_same && own.len() == known.len(), "{name}: {own:?}");
        }
    }
    all
}

fn tail(sql: &str, clock: &str) -> String {
    let (_, tail) = sql.split_once(" WHERE ").unwrap_or_default();
    // A lock of what was found decides nothing about what is found.
    let tail = tail.strip_suffix(" FOR UPDATE").unwrap_or(tail);
    let tail = tail.strip_suffix(" LOCK IN SHARE MODE").unwrap_or(tail);
    tail.replace(clock, "now").replace(['"', '`'], "")
}

/// The first word of a statement.
pub(super) fn verb(sql: &str) -> &str {
    sql.split(' ').next().unwrap_or_default()
}

/// A name without a length.
pub(super) fn stem(name: &str) -> &str {
    name.split('[').next().unwrap_or_default()
}

/// The catalogues with one mutation, or with none but written anew in the
/// same way, of each job type that a test asks for.
pub(super) struct Change {
    mutation: Option<Mutation>,
    /// By the schema's content: a constant has many addresses.
    made: Mutex<HashMap<String, Arc<Catalogue>>>,
}

impl Change {
    pub(super) fn new(mutation: Option<Mutation>) -> Self {
        Self {
            mutation,
            made: Mutex::default(),
        }
    }

    pub(super) fn catalogue<D: Guarded>(&self, schema: &'static JobSchema) -> Arc<Catalogue> {
        let mut made = self.made.lock().unwrap();
        let catalogue = made.entry(format!("{schema:?}")).or_insert_with(|| {
            let changed = Changed {
                inner: D::dialect(),
                texts: self.texts(&D::statements(schema)),
            };
            Arc::new(Catalogue::new(schema, &changed))
        });
        Arc::clone(catalogue)
    }

    /// What is written instead of each text, and which binds are left.
    fn texts(&self, catalogue: &Catalogue) -> HashMap<String, (String, Vec<usize>)> {
        let statements = catalogue.statements().into_iter();
        let changed = statements.filter_map(|(name, statement)| {
            let sql = statement.sql();
            let Some(mutation) = &self.mutation else {
                return Some((sql.to_string(), without(sql, None)));
            };
            if stem(&name) != mutation.statement || verb(sql) != mutation.verb {
                return None;
            }
            let own = conjuncts(sql);
            let same = own.iter().find(|own| own.is_same_place(&mutation.conjunct));
            let conjunct = same.expect("the conjuncts of every length are the same");
            Some((sql.to_string(), without(sql, Some(conjunct))))
        });
        changed.collect()
    }
}

struct Changed {
    inner: &'static dyn Dialect,
    texts: HashMap<String, (String, Vec<usize>)>,
}

impl Dialect for Changed {
    fn write(&self, query: &Query) -> (String, Values) {
        let (sql, values) = self.inner.write(query);
        match self.texts.get(&sql) {
            None => (sql, values),
            Some((other, left)) => {
                let values = left.iter().map(|at| values.0[*at].clone());
                (other.clone(), Values(values.collect()))
            }
        }
    }

    fn name(&self) -> &'static str {
        self.inner.name()
    }
    fn now(&self) -> Expr {
        self.inner.now()
    }
    fn plus_us(&self, at: Expr, us: Expr) -> Expr {
        self.inner.plus_us(at, us)
    }
    fn us_between(&self, earlier: Expr, later: Expr) -> Expr {
        self.inner.us_between(earlier, later)
    }
    fn type_text(&self, kind: ColumnType) -> String {
        self.inner.type_text(kind)
    }
    fn numbered(&self, column: &mut ColumnDef) {
        self.inner.numbered(column);
    }
    fn comes_after(&self, key: [Expr; 2], than: [Expr; 2]) -> Expr {
        self.inner.comes_after(key, than)
    }
    fn can_skip_locked(&self) -> bool {
        self.inner.can_skip_locked()
    }
    fn can_lock_rows(&self) -> bool {
        self.inner.can_lock_rows()
    }
    fn force_index(&self, select: &mut SelectStatement, index: &str) {
        self.inner.force_index(select, index);
    }
    fn index_name(&self, table: Ident, name: &str) -> String {
        self.inner.index_name(table, name)
    }
    fn has_inline_indexes(&self) -> bool {
        self.inner.has_inline_indexes()
    }
    fn binds_max(&self) -> usize {
        self.inner.binds_max()
    }
    fn write_table(&self, table: &TableCreateStatement) -> String {
        self.inner.write_table(table)
    }
    fn write_index(&self, index: &IndexCreateStatement) -> String {
        self.inner.write_index(index)
    }
}
