use proptest::test_runner::{Config, RngAlgorithm, TestCaseError, TestRng, TestRunner};
use tokio::{runtime::Handle, task};

use crate::{
    TestDatabase,
    model::{Pair, SCHEMAS, steps},
};

/// Sequences per run. Each is the same in every run, so that a failure comes
/// again; `RETRYJOB_MODEL_CASES` asks for more of them.
const CASES: u32 = 30;

/// Steps of the longest sequence.
const STEPS_MAX: usize = 25;

pub async fn any_sequence_of_operations_matches_the_reference<D: TestDatabase>(_: D) {
    let cases = std::env::var("RETRYJOB_MODEL_CASES");
    let cases = cases.map_or(CASES, |text| text.parse().unwrap());
    let config = Config {
        cases,
        max_shrink_iters: 100,
        failure_persistence: None,
        ..Config::default()
    };
    let rng = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
    let mut runner = TestRunner::new_with_rng(config, rng);
    let sequences = (0..SCHEMAS.len(), steps(STEPS_MAX));
    let outcome = runner.run(&sequences, |(schema, steps)| {
        let sequence = async move {
            // A panic in a task is an error, and can be made smaller.
            task::spawn(async move {
                let db = D::create().await;
                let mut pair = Pair::new(&db, &SCHEMAS[schema]).await;
                pair.run(&steps).await;
            })
            .await
        };
        let ended = task::block_in_place(|| Handle::current().block_on(sequence));
        ended.map_err(|panicked| {
            let panic = panicked.into_panic();
            let why = panic.downcast_ref::<String>().cloned();
            TestCaseError::fail(why.unwrap_or_else(|| "panicked".into()))
        })
    });
    if let Err(failure) = outcome {
        panic!("{failure}");
    }
}
