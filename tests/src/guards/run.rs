//! Runs one test of the suite on a changed catalogue.

use std::{
    panic::{self, AssertUnwindSafe},
    sync::{Arc, Once},
    time::Duration,
};

use tokio::{runtime::Builder, time::timeout};

use super::{Case, changed::Change, mutant};

/// Longest that a test may take; unchanged, each is done in a small part.
pub(super) const TEST_MAX: Duration = Duration::from_secs(30);

/// What a test came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    Passed,
    Failed,
    Hung,
}

/// Runs a test on a runtime of its own, every thread of which is told of the
/// change.
pub(super) fn run(case: &Case, change: &Arc<Change>) -> Outcome {
    silence();
    let told = Arc::clone(change);
    let runtime = Builder::new_multi_thread()
        .worker_threads(2)
        .on_thread_start(move || mutant::set(Some(Arc::clone(&told))))
        .enable_all()
        .build()
        .unwrap();
    mutant::set(Some(Arc::clone(change)));
    let test = case.run;
    let ended = panic::catch_unwind(AssertUnwindSafe(|| {
        runtime.block_on(async { timeout(TEST_MAX, test()).await })
    }));
    mutant::set(None);
    runtime.shutdown_background();
    match ended {
        Ok(Ok(())) => Outcome::Passed,
        Ok(Err(_)) => Outcome::Hung,
        Err(_) => Outcome::Failed,
    }
}

/// Says nothing of panics that are looked for; all others are told as ever.
fn silence() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let told = panic::take_hook();
        panic::set_hook(Box::new(move |panic| {
            if !mutant::is_set() {
                told(panic);
            }
        }));
    });
}
