//! The worker under faults that a seed draws.
//!
//! `RETRYJOB_SEED=17 cargo test -p retryjob-tests --test simulation` replays
//! one run; `RETRYJOB_FAULTS=nightly` makes many more of them.

use retryjob_tests::{
    faults::report::{is_nightly, say, times},
    simulation::{Run, run, seen::Seen},
};

/// Seeds that once found something: what was broken on purpose, finishes
/// without the fence (two), late ones, renewals of lapsed leases, commits that
/// did not look at the lease again; and a process that its handler ends while its
/// worker stops, for which the run itself waited for ever.
const REGRESSIONS: [u64; 6] = [
    1_343_812_295_047_772_944,
    15_681_665_074_771_584_685,
    3_542_253_604_769_444_694,
    4_642_361_336_106_037_542,
    611_569_728_606_024_717,
    689_917_420_261_299_673,
];

/// How many seeds one call takes: 12 s of one core, and five minutes at night.
const SEEDS: usize = 200;
const SEEDS_NIGHTLY: usize = 25 * SEEDS;

fn asked_for() -> Option<u64> {
    std::env::var("RETRYJOB_SEED").ok()?.parse().ok()
}

/// Fails with the first faults of a run and the command that repeats it.
fn hold(run: &Run, no: usize) {
    let faults = run.faults();
    assert!(
        faults.is_empty(),
        "seed {seed}, number {no}: {count} faults\n{first}\n\nagain: RETRYJOB_SEED={seed} cargo test -p \
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
        return hold(&run, 1);
    }
    let base: u64 = rand::random();
    let mut seen = Seen::default();
    let count = times(SEEDS, SEEDS_NIGHTLY);
    let drawn = (0..count as u64).map(|no| base.wrapping_add(no));
    for (no, seed) in REGRESSIONS.into_iter().chain(drawn).enumerate() {
        let run = run(seed);
        seen.add(&run.seen);
        hold(&run, no + 1);
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
