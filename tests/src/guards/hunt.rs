//! Drops every conjunct of every statement of a backend, and looks for a test
//! that fails.

use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
};

use tokio::runtime::Runtime;

use super::{
    Case,
    changed::{self, Change, Mutation, stem, verb},
    mutant::{Guarded, Mutant},
    run::{Outcome, run},
};
use crate::{SqliteFile, conformance, conformance_sql, plans::Plans as _, samples::BILLING_BOTH};

/// Tests that run at once: each waits for its database most of the time.
const AT_ONCE: usize = 4;

/// Which statements are looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extent {
    All,
    /// Those that say something else than SQLite's from WHERE on.
    UnlikeSqlite,
}

/// How a dropped conjunct was noticed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    /// A test of what operations do failed.
    Operations,
    /// A test that sends one statement alone failed.
    Statements,
    /// A statement no longer reads by its index.
    Plans,
    /// A test did not end.
    Hang,
}

/// The kind of test that noticed, and which.
type Caught = (Kind, String);

/// Drops each conjunct of each statement, and fails when no test does.
///
/// # Panics
///
/// When no test misses a conjunct, or when tests fail with nothing dropped.
#[expect(clippy::print_stdout, reason = "a run tells its counts")]
pub fn hunt<D: Guarded>(database: &str, extent: Extent) {
    let mut mutations = changed::mutations::<D>();
    if extent == Extent::UnlikeSqlite {
        let known = changed::mutations::<SqliteFile>();
        let is_same = |a: &Mutation, b: &Mutation| {
            (&a.statement, &a.verb, &a.tail) == (&b.statement, &b.verb, &b.tail)
        };
        mutations.retain(|own| !known.iter().any(|known| is_same(own, known)));
    }
    assert!(!mutations.is_empty(), "{database}: nothing is dropped");
    let hunter = Hunter::<D>::new();
    let found = hunter.all(&mutations);
    let is_told = std::env::var_os("RETRYJOB_GUARDS").is_some();
    let faults = hunter.unchanged(&mutations, &found);
    assert!(
        faults.is_empty(),
        "{database}, with nothing dropped: {faults:?}"
    );

    let mut counts: BTreeMap<Kind, usize> = BTreeMap::new();
    let mut wrong = Vec::new();
    for (mutation, caught) in mutations.iter().zip(&found) {
        let Some((kind, by)) = caught else {
            wrong.push(format!("no test misses {mutation}"));
            continue;
        };
        *counts.entry(*kind).or_default() += 1;
        if is_told {
            println!("{database}: {mutation}: {by}");
        }
    }
    let mut statements: Vec<_> = mutations.iter().map(|m| (&m.statement, &m.verb)).collect();
    statements.dedup();
    let caught: usize = counts.values().sum();
    println!(
        "guards on {database}: {} statements, {} conjuncts, {caught} caught: {counts:?}",
        statements.len(),
        mutations.len(),
    );
    assert!(wrong.is_empty(), "{database}:\n{}", wrong.join("\n"));
}

/// The tests of a database, and where its plans are asked for.
struct Hunter<D: Guarded> {
    cases: Vec<Case>,
    runtime: Runtime,
    plans: Mutex<Option<D::Plans>>,
}

impl<D: Guarded> Hunter<D> {
    fn new() -> Self {
        let mut cases: Vec<Case> = conformance!(cases, Mutant<D>);
        let below: Vec<Case> = conformance_sql!(cases, Mutant<D>);
        cases.extend(below);
        cases.extend(D::own_cases());
        Self {
            cases,
            runtime: Runtime::new().unwrap(),
            plans: Mutex::default(),
        }
    }

    /// Which of the tests that caught something fail with nothing dropped as
    /// well, and prove nothing then.
    fn unchanged(&self, mutations: &[Mutation], found: &[Option<Caught>]) -> Vec<String> {
        let change = Arc::new(Change::new(None));
        let caught_by = |name: &str| found.iter().flatten().any(|(_, by)| by == name);
        let mut cases = self.cases.clone();
        cases.retain(|case| caught_by(&case.to_string()));
        let outcomes = at_once(&cases, |case| {
            let outcome = run(case, &change);
            (outcome != Outcome::Passed).then(|| format!("{case}: {outcome:?}"))
        });
        let mut faults: Vec<_> = outcomes.into_iter().flatten().collect();
        for (mutation, caught) in mutations.iter().zip(found) {
            if matches!(caught, Some((Kind::Plans, _))) {
                faults.extend(self.wrong_plan(mutation, &change));
            }
        }
        faults
    }

    fn all(&self, mutations: &[Mutation]) -> Vec<Option<Caught>> {
        at_once(mutations, |mutation| self.catch(mutation))
    }

    /// The first test that misses the conjunct.
    fn catch(&self, mutation: &Mutation) -> Option<Caught> {
        let change = Arc::new(Change::new(Some(mutation.clone())));
        let (first, last): (Vec<_>, Vec<_>) = self
            .ordered(&mutation.statement)
            .into_iter()
            .partition(|case| rank(case, &mutation.statement) < LATE);
        self.first_of(&first, &change)
            .or_else(|| {
                let wrong = self.wrong_plan(mutation, &change)?;
                Some((Kind::Plans, wrong))
            })
            .or_else(|| self.first_of(&last, &change))
    }

    fn first_of(&self, cases: &[&Case], change: &Arc<Change>) -> Option<Caught> {
        cases.iter().find_map(|case| {
            let kind = match run(case, change) {
                Outcome::Passed => return None,
                Outcome::Hung => Kind::Hang,
                Outcome::Failed if case.module == STATEMENTS => Kind::Statements,
                Outcome::Failed => Kind::Operations,
            };
            Some((kind, case.to_string()))
        })
    }

    fn ordered(&self, statement: &str) -> Vec<&Case> {
        let mut cases: Vec<_> = self.cases.iter().collect();
        cases.sort_by_key(|case| rank(case, statement));
        cases
    }

    /// What is wrong with the plan of a changed statement, if it is one of the
    /// sample's.
    fn wrong_plan(&self, mutation: &Mutation, change: &Change) -> Option<String> {
        let catalogue = change.catalogue::<D>(&BILLING_BOTH);
        let mut plans = self.plans.lock().unwrap();
        self.runtime.block_on(async {
            if plans.is_none() {
                *plans = Some(D::plans().await);
            }
            let plans = plans.as_mut()?;
            for (name, statement) in catalogue.statements() {
                let is_it = stem(&name) == mutation.statement;
                if is_it && verb(statement.sql()) == mutation.verb {
                    let wrong = plans.wrong(&name, statement).await;
                    if wrong.is_some() {
                        return wrong;
                    }
                }
            }
            None
        })
    }
}

impl<D: Guarded> Drop for Hunter<D> {
    fn drop(&mut self) {
        if let Some(plans) = self.plans.get_mut().unwrap().take() {
            self.runtime.block_on(plans.close());
        }
    }
}

/// The tests that send one statement alone.
const STATEMENTS: &str = "statements";

/// Tests of this rank come after the plans.
const LATE: u8 = 2;

/// The operation's own tests first, those that take long last.
fn rank(case: &Case, statement: &str) -> u8 {
    match case.module {
        "model" | "race" | "cancel" => 4,
        own if modules(statement).contains(&own) => 0,
        STATEMENTS => 1,
        _ => 3,
    }
}

/// The modules whose tests are about a statement.
fn modules(statement: &str) -> &'static [&'static str] {
    match statement {
        "insert" | "find_keys" => &["enqueue", "transaction"],
        "heads" => &["due"],
        "pick_fresh" | "pick_retry" | "pick_alone" | "take_fresh" | "take_retry" | "won" => {
            &["claim", "due", "compare_and_set"]
        }
        "renew" | "live" => &["renew"],
        "succeed" | "settle" | "outcome" => &["finish", "transaction"],
        "archive_copy" | "archive_remove" => &["finished"],
        "lapsed" | "settle_lapsed" => &["reap"],
        "shards" | "shard_keep" | "shard_take" | "shard_release" | "shard_live" | "pick_held"
        | "next_due" | "pick_doubt" | "succeed_held" | "settle_held" => &["shards"],
        "nodes" | "node_stay" | "node_leave" | "node_forget" => &["nodes"],
        "look" | "hold" | "release" | "cancel" | "requeue" => &["operate"],
        _ => &["counts"],
    }
}

/// Does this for each of them, some at once; the answers in their order.
fn at_once<T: Sync, A: Send>(all: &[T], each: impl Fn(&T) -> A + Sync) -> Vec<A> {
    let next = AtomicUsize::new(0);
    let answers = Mutex::new(BTreeMap::new());
    thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                loop {
                    let at = next.fetch_add(1, Ordering::Relaxed);
                    let Some(one) = all.get(at) else {
                        return;
                    };
                    let answer = each(one);
                    answers.lock().unwrap().insert(at, answer);
                }
            });
        }
    });
    answers.into_inner().unwrap().into_values().collect()
}
