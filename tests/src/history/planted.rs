//! The checker finds what it looks for: a sound history passes, and each fault
//! that is planted in it breaks the promise that it should, and no other.

mod story;

mod changes;

mod told;

use retryjob_core::schema::Finished;

use self::story::Story;
use super::{Checked, History, Promise, check};

/// The promises that a story breaks.
fn broken(story: &Story) -> Vec<Promise> {
    let Err(violations) = check(&story.history, &story.rules) else {
        return Vec::new();
    };
    let mut promises: Vec<_> = violations.iter().map(|found| found.promise).collect();
    promises.sort_unstable();
    promises.dedup();
    promises
}

/// A sound story with a fault in it breaks this promise alone.
#[track_caller]
fn breaks(promise: Promise, plant: impl FnOnce(&mut Story)) {
    let mut story = Story::sound();
    assert_eq!(broken(&story), [], "the story without the fault");
    plant(&mut story);
    let found = check(&story.history, &story.rules);
    assert_eq!(broken(&story), [promise], "{found:#?}");
}

#[test]
fn a_sound_history_passes_and_says_what_was_looked_at() {
    let story = Story::sound();
    let checked = check(&story.history, &story.rules).unwrap();
    let expected = Checked {
        job_count: 4,
        move_count: story.history.moves.len(),
        claim_count: 7,
        run_count: 6,
        unknown_count: 1,
    };
    assert_eq!(checked, expected);
}

#[test]
fn a_success_may_leave_the_table_when_the_job_type_says_so() {
    let mut story = Story::sound();
    story.rules.finished = Finished::Delete;
    let id = story.enqueue("e");
    let lease = story.claim(id);
    story.run(lease);
    story.change(id, None);
    story.finish_told(lease, retryjob_core::Status::Success, false);
    story.effect(lease);
    assert_eq!(broken(&story), []);
}

#[test]
fn a_commit_without_an_answer_may_have_written_what_the_next_finish_is_refused() {
    let mut story = Story::sound();
    let id = story.enqueue("e");
    let lease = story.claim(id);
    story.run(lease);
    story.finish_in(lease);
    story.succeed(id);
    story.effect(lease);
    story.finish_told(lease, retryjob_core::Status::Retry, true);
    assert_eq!(broken(&story), []);
}

#[test]
fn an_empty_history_proves_nothing() {
    let rules = Story::sound().rules;
    let found = check(&History::default(), &rules).unwrap_err();
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].promise, Promise::NothingLost);
    assert!(found[0].what.contains("proves nothing"), "{}", found[0]);
}

#[test]
fn every_promise_has_a_fault_that_breaks_it() {
    let sources = [
        include_str!("planted/changes.rs"),
        include_str!("planted/told.rs"),
    ];
    for promise in Promise::ALL {
        let name = format!("Promise::{promise:?}");
        let is_planted = sources.iter().any(|source| source.contains(&name));
        assert!(is_planted, "no fault is planted that breaks {name}");
    }
}
