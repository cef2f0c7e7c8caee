//! Whether each condition of each statement is needed: every conjunct of every
//! WHERE is dropped in turn, and some test has to fail.
//!
//! ```text
//! conjuncts ── what can be dropped ─▶ Mutation ─▶ Changed (a dialect)
//!                                                   │ Catalogue
//! tests of the suite ◀── Mutant<D> (a database) ◀───┘
//! ```
//!
//! The product knows nothing of this: a backend takes a catalogue, and the
//! catalogue is written by a dialect that leaves something out.

mod changed;
mod conjuncts;
mod hunt;
mod mutant;
mod run;

use std::{fmt, pin::Pin};

pub use self::{
    conjuncts::{Conjunct, conjuncts, without},
    hunt::{Extent, hunt},
    mutant::{Guarded, Mutant},
};

/// A test of the suite, to be run on purpose.
#[derive(Clone, Copy, Debug)]
pub struct Case {
    pub module: &'static str,
    pub name: &'static str,
    pub run: fn() -> Pin<Box<dyn Future<Output = ()>>>,
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}::{}", self.module, self.name)
    }
}
