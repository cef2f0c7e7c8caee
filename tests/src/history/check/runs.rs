//! What handlers did, against the leases that were granted.

use std::collections::BTreeSet;

use super::{Checker, Effect, Event, LeaseOf, Promise, lease_of};

impl Checker<'_> {
    pub(super) fn runs_claimed(&mut self) {
        let mut seen = BTreeSet::new();
        for attempt in self.attempts(|event| match event {
            Event::Started(attempt) => Some(*attempt),
            _ => None,
        }) {
            let granted = self.claims.get(&lease_of(attempt));
            let is_granted = granted.is_some_and(|state| state.attempt_no == attempt.attempt_no);
            self.hold(Promise::RunsClaimed, is_granted, || {
                format!("{attempt:?} ran without a claim")
            });
            self.hold(Promise::RunsClaimed, seen.insert(attempt), || {
                format!("{attempt:?} ran twice")
            });
        }
    }

    pub(super) fn effects_once(&mut self) {
        let mut effects = BTreeSet::new();
        for Effect { id, lease_seq } in self.history.effects.iter().copied() {
            let lease = LeaseOf { id, lease_seq };
            self.hold(Promise::EffectsOnce, effects.insert(lease), || {
                format!("the effect of {lease:?} is there twice")
            });
        }
        for lease in effects.difference(&self.successes.clone()) {
            let what = format!("the effect of {lease:?} is there without its success");
            self.broken(Promise::EffectsOnce, what);
        }
        if !self.rules.has_effects {
            return;
        }
        for lease in self.successes.clone().difference(&effects) {
            let what = format!("{lease:?} is a success without its effect");
            self.broken(Promise::EffectsOnce, what);
        }
    }
}
