//! The worker under faults that a seed draws.
//!
//! `RETRYJOB_SEED=17 cargo test -p retryjob-tests --test simulation` replays
//! one run; `RETRYJOB_FAULTS=nightly` makes many more of them.

use retryjob_tests::{
    faults::report::{is_nightly, say, times},
    simulation::{Run, run, seen::Seen},
};

/// Seeds that once found something.
const REGRESSIONS: [u64; 0] = [];

/// How many seeds one call of the tests takes; more of them at night.
const SEEDS: usize = 150;
const SEEDS_NIGHTLY: usize = 20 * SEEDS;

fn asked_for() -> Option<u64> {
    std::env::var("RETRYJOB_SEED").ok()?.parse().ok()
}

fn hold(run: &Run) {
    let faults = run.faults();
    assert!(
        faults.is_empty(),
        "seed {seed}: {count} faults\n{first}\n\nagain: RETRYJOB_SEED={seed} cargo test -p \
         retryjob-tests --test simulation",
        seed = run.seed,
        count = faults.len(),
        first = faults[..faults.len().min(10)].join("\n"),
    );
}

#[test]
fn every_promise_holds_under_every_seed() {
    if let Some(seed) = asked_for() {
        let run = run(seed);
        say(format!(
            "fault: simulation | memory | seed {seed}: {}",
            run.seen
        ));
        return hold(&run);
    }
    let base: u64 = rand::random();
    let mut seen = Seen::default();
    let count = times(SEEDS, SEEDS_NIGHTLY);
    let drawn = (0..count as u64).map(|no| base.wrapping_add(no));
    for seed in REGRESSIONS.into_iter().chain(drawn) {
        let run = run(seed);
        seen.add(&run.seen);
        hold(&run);
    }
    say(format!(
        "fault: simulation | memory | from seed {base} | {seen} | 0 violations"
    ));
    let least = if is_nightly() { 10 } else { 1 };
    let rare = seen.too_rare(least);
    assert!(rare.is_empty(), "too rare, from seed {base}: {rare:?}");
}

#[test]
fn a_seed_gives_the_same_run_every_time() {
    for seed in [1, 2, asked_for().unwrap_or(3)] {
        let [first, second] = [run(seed), run(seed)].map(|run| run.transcript());
        assert!(
            first.lines().count() > 100,
            "seed {seed}: nothing to compare"
        );
        let differs = first.lines().zip(second.lines()).find(|(a, b)| a != b);
        assert_eq!(differs, None, "seed {seed}");
        assert_eq!(first.len(), second.len(), "seed {seed}");
    }
}
