//! What is left at the end: every job, where its last change left it.

use std::collections::{BTreeMap, BTreeSet};

use retryjob_core::Status;

use super::{Checker, Promise, State};

impl Checker<'_> {
    pub(super) fn nothing_lost(&mut self) {
        let rows = self.history.rows.iter();
        let kept: BTreeMap<u64, String> = rows
            .map(|row| (row.id, row.idempotency_key.to_string()))
            .collect();
        let purged: BTreeSet<u64> = self
            .history
            .moves
            .iter()
            .filter(|moved| moved.after.is_none())
            .map(|moved| moved.id)
            .collect();
        for (id, key) in self.acknowledged.clone() {
            let is_there = match kept.get(&id) {
                Some(kept) => kept == key,
                None => purged.contains(&id),
            };
            self.hold(Promise::NothingLost, is_there, || {
                format!("job {id} (key {key}) was acknowledged and is gone")
            });
        }
        let mut ids = BTreeMap::new();
        for (id, key) in kept {
            let other = ids.insert(key, id);
            self.hold(Promise::NothingLost, other.is_none(), || {
                format!("jobs {other:?} and {id} have the same key")
            });
        }
    }

    /// A change that nobody noted is seen here.
    pub(super) fn rows_as_moved(&mut self) {
        for row in &self.history.rows {
            // One that moved to the history table was last seen leaving.
            let Some(Some(last)) = self.last.get(&row.id).copied() else {
                continue;
            };
            let state = State::of(row);
            self.hold(Promise::LegalMoves, state == *last, || {
                format!("job {} was left {last:?} and is {state:?}", row.id)
            });
        }
    }

    pub(super) fn drained(&mut self) {
        if !self.rules.is_drained {
            return;
        }
        for row in &self.history.rows {
            let is_open = matches!(
                row.status,
                Status::Pending | Status::Running | Status::Retry
            );
            self.hold(Promise::Drained, !is_open, || {
                format!("job {} is left {}", row.id, row.status)
            });
        }
    }
}
