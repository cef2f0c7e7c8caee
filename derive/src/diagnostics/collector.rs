//! The collector of mistakes.

use std::{cell::RefCell, thread};

use syn::{Error, Result};

/// Collects every mistake, so that one build reports them all.
pub(crate) struct Errors {
    /// `None` once it is finished.
    found: RefCell<Option<Vec<Error>>>,
}

impl Errors {
    pub(crate) fn new() -> Self {
        Self {
            found: RefCell::new(Some(Vec::new())),
        }
    }

    /// Adds a mistake.
    pub(crate) fn push(&self, error: Error) {
        if let Some(found) = self.found.borrow_mut().as_mut() {
            found.push(error);
        }
    }

    /// The value, or nothing when it is a mistake, which is then added.
    pub(crate) fn take<T>(&self, result: Result<T>) -> Option<T> {
        result.map_err(|error| self.push(error)).ok()
    }

    /// The outcome when there was no mistake, or else all of them.
    ///
    /// # Panics
    ///
    /// When there is neither an outcome nor a mistake.
    pub(crate) fn finish<T>(self, outcome: Option<T>) -> Result<T> {
        let found = self.found.borrow_mut().take().unwrap_or_default();
        let all = found.into_iter().reduce(|mut all, error| {
            all.combine(error);
            all
        });
        match (all, outcome) {
            (Some(all), _) => Err(all),
            (None, Some(outcome)) => Ok(outcome),
            (None, None) => panic!("a step failed without saying why"),
        }
    }
}

impl Drop for Errors {
    fn drop(&mut self) {
        let is_forgotten = self.found.borrow().is_some();
        assert!(
            !is_forgotten || thread::panicking(),
            "the mistakes were never reported: `Errors::finish` was not called"
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[should_panic(expected = "never reported")]
    fn forgetting_to_finish_panics() {
        let errors = Errors::new();
        errors.push(Error::new(proc_macro2::Span::call_site(), "x"));
    }

    #[test]
    fn finishing_returns_every_mistake() {
        let errors = Errors::new();
        for text in ["a", "b"] {
            errors.push(Error::new(proc_macro2::Span::call_site(), text));
        }
        let all = errors.finish(Some(())).unwrap_err();
        let texts: Vec<_> = all.into_iter().map(|error| error.to_string()).collect();
        assert_eq!(texts, ["a", "b"]);
    }

    #[test]
    fn a_step_may_not_fail_in_silence() {
        let silent = std::panic::catch_unwind(|| Errors::new().finish(None::<()>));
        assert!(silent.is_err());
    }
}
