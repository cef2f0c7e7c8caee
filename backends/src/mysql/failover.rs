//! Connections that lead to a server which takes no writes any more, or gives
//! no answers.
//!
//! A server that was switched over from, or cut off, keeps its connections and
//! refuses what they write. The one that met the refusal may be a caller's, in
//! a transaction that only the caller can end, so none is closed there: those
//! that are as old are closed when next taken from the pool.

use std::{
    collections::HashMap,
    sync::{LazyLock, Mutex, PoisonError},
    time::{Duration, Instant},
};

/// When each server, by its place, last refused a write or gave no answer.
static REFUSED_AT: LazyLock<Mutex<HashMap<String, Instant>>> = LazyLock::new(Mutex::default);

/// Takes note that the server there refused a write, or is silent.
pub(super) fn note_refused(place: &str) {
    let mut refused_at = REFUSED_AT.lock().unwrap_or_else(PoisonError::into_inner);
    refused_at.insert(place.to_owned(), Instant::now());
}

/// Whether a connection of this age was there when a write was refused.
pub(super) fn is_outdated(place: &str, age: Duration) -> bool {
    let refused_at = REFUSED_AT.lock().unwrap_or_else(PoisonError::into_inner);
    refused_at.get(place).is_some_and(|at| age >= at.elapsed())
}
