//! The one stream that everything random is drawn from.

use std::{
    sync::{Mutex, PoisonError},
    time::Duration,
};

use rand::{RngExt as _, SeedableRng as _, rngs::StdRng};

/// Draws from the seed. Tasks take turns in an order that the seed gives too.
#[derive(Debug)]
pub struct Chance(Mutex<StdRng>);

impl Chance {
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self(Mutex::new(StdRng::seed_from_u64(seed)))
    }

    fn with<T>(&self, draw: impl FnOnce(&mut StdRng) -> T) -> T {
        draw(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Once in a hundred times this many.
    pub fn percent(&self, percent: u32) -> bool {
        self.below(100) < u64::from(percent)
    }

    /// A number from 0 to one less than this.
    pub fn below(&self, end: u64) -> u64 {
        self.with(|rng| rng.random_range(0..end))
    }

    /// A span of whole milliseconds: tokio's timers have no finer ones.
    pub fn ms(&self, from: u64, to: u64) -> Duration {
        Duration::from_millis(self.with(|rng| rng.random_range(from..=to)))
    }

    /// An index, each as often as its weight says.
    pub fn weighted(&self, weights: &[u64]) -> usize {
        let mut rest = self.below(weights.iter().sum());
        for (index, weight) in weights.iter().enumerate() {
            match rest.checked_sub(*weight) {
                Some(left) => rest = left,
                None => return index,
            }
        }
        0
    }

    /// One of these.
    pub fn pick<T: Copy>(&self, from: &[T]) -> Option<T> {
        let index = usize::try_from(self.below(from.len().max(1) as u64)).ok()?;
        from.get(index).copied()
    }
}
