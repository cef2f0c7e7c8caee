//! What runs went through: faults, rare paths, and conditions that always hold.

use std::{collections::BTreeMap, fmt};

/// Paths that only some runs take. Each has to be taken by some: a suite of
/// faults that never meet tests nothing.
pub const SOMETIMES: [&str; 29] = [
    "a call took effect after its caller was gone",
    "a claim found nothing left to take",
    "a claim was faster than an operator",
    "a claim was made and its answer lost",
    "a commit was made and its answer lost",
    "a commit was refused for its lease",
    "a crash took jobs in hand along",
    "a finish that came twice was no error",
    "a finish was lost on its way and came again",
    "a finish was made, its answer lost, and came again",
    "a finish was refused for its lease",
    "a handler ended without the commit that it spoke of",
    "a handler outlived its first lease",
    "a handler panicked",
    "a handler ran over its timeout",
    "a held job was released",
    "a job died of crashes alone",
    "a job died when its last lease lapsed",
    "a last attempt ran alone",
    "a pause outlived the lease of a job in hand",
    "a reaper found that another was first",
    "a renewal was refused",
    "a shard had jobs of two nodes in hand",
    "a snoozed job went back",
    "a stopping worker gave a job back",
    "a worker told that a lease was lost",
    "an attempt began beside an older one of its job",
    "an enqueue that came twice made one job",
    "an operator came while the job ran",
];

/// Counts over one run, or over many.
#[derive(Clone, Debug, Default)]
pub struct Seen {
    /// Runs that these are the counts of.
    pub run_count: u64,
    /// Operations that reached the database.
    pub operation_count: u64,
    /// Conditions that were looked at.
    pub always_count: u64,
    /// Faults that were injected, by kind.
    pub faults: BTreeMap<&'static str, u64>,
    /// Rare paths that were taken.
    pub sometimes: BTreeMap<&'static str, u64>,
    /// Conditions that did not hold.
    pub broken: Vec<String>,
}

impl Seen {
    pub fn add(&mut self, other: &Self) {
        self.run_count += 1;
        self.operation_count += other.operation_count;
        self.always_count += other.always_count;
        for (mine, theirs) in [
            (&mut self.faults, &other.faults),
            (&mut self.sometimes, &other.sometimes),
        ] {
            for (name, count) in theirs {
                *mine.entry(name).or_default() += count;
            }
        }
    }

    /// Rare paths that were taken fewer than `least` times.
    #[must_use]
    pub fn too_rare(&self, least: u64) -> Vec<&'static str> {
        let count = |name: &&str| self.sometimes.get(name).copied().unwrap_or_default();
        let names = SOMETIMES.into_iter();
        names.filter(|name| count(name) < least).collect()
    }
}

impl fmt::Display for Seen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} seeds, {} operations, {} conditions; faults: {:?}; sometimes: {:?}",
            self.run_count, self.operation_count, self.always_count, self.faults, self.sometimes
        )
    }
}

/// A condition that holds at every step of every run.
#[macro_export]
macro_rules! always {
    ($world:expr, $holds:expr, $($what:tt)+) => {
        $world.always($holds, || format!($($what)+))
    };
}

/// A rare path, one of [`SOMETIMES`], is taken here if the condition holds.
#[macro_export]
macro_rules! sometimes {
    ($world:expr, $name:literal $(,)?) => {
        $world.sometimes($name)
    };
    ($world:expr, $holds:expr, $name:literal $(,)?) => {
        if $holds {
            $world.sometimes($name);
        }
    };
}
