//! The catalogue of each job type, made once.

use std::{
    collections::HashMap,
    sync::{Arc, LazyLock, Mutex, PoisonError},
};

use retryjob_core::{
    JobSchema,
    sql::{Catalogue, Dialect},
};

/// By the address of the schema and the name of the dialect: a schema is
/// static, so its address is never used for another.
type Known = HashMap<(usize, &'static str), Arc<Catalogue>>;

static KNOWN: LazyLock<Mutex<Known>> = LazyLock::new(Mutex::default);

/// The catalogue of this job type in this dialect.
pub(crate) fn catalogue(schema: &'static JobSchema, dialect: &dyn Dialect) -> Arc<Catalogue> {
    let address = std::ptr::from_ref(schema).addr();
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    let made = known
        .entry((address, dialect.name()))
        .or_insert_with(|| Arc::new(Catalogue::new(schema, dialect)));
    Arc::clone(made)
}
