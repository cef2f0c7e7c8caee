//! Builds histories: each step changes the row, notes the change and tells
//! whoever asked.

use std::time::Duration;

use retryjob_core::{
    DbTime, IdempotencyKey, KeyEncoder, RetryPolicy, Status, memory::JobRow, op::claim::LeaseOwner,
};

use crate::history::{
    Answer, Attempt, Call, Effect, Event, History, Moved, Record, Rules, State,
    record::{Ended, LeaseOf},
};

/// How long a lease of the story is.
pub(super) const LEASE: Duration = Duration::from_secs(60);

/// A history in the making.
#[derive(Debug)]
pub(super) struct Story {
    pub(super) history: History,
    pub(super) rules: Rules,
    /// The database's clock; a second passes before every change.
    pub(super) now: DbTime,
    call: u64,
}

impl Story {
    pub(super) fn new() -> Self {
        let policy = RetryPolicy {
            max_attempts: 3,
            ..RetryPolicy::DEFAULT
        };
        Self {
            history: History::default(),
            rules: Rules {
                has_effects: true,
                ..Rules::of(&policy)
            },
            now: DbTime::from_us(1_000_000_000),
            call: 0,
        }
    }

    /// Four jobs: one fails, is renewed and succeeds (1), one is held,
    /// released, cancelled and requeued (2), one loses its worker (3), one
    /// snoozes (4).
    pub(super) fn sound() -> Self {
        let mut story = Self::new();
        let id = story.enqueue("a");
        let lease = story.claim(id);
        story.run(lease);
        story.renew(id);
        story.end(id, Status::Retry);
        story.finish_told(lease, Status::Retry, false);
        story.success(id);

        let id = story.enqueue("b");
        for (action, to) in [
            ("Hold", Status::Hold),
            ("Release", Status::Pending),
            ("Cancel", Status::Dead),
            ("Requeue", Status::Pending),
        ] {
            story.operate(action, id, to);
        }
        story.success(id);

        let id = story.enqueue("c");
        story.claim(id);
        story.unknown_call();
        story.lapse();
        story.reap(id, Status::Retry);
        story.success(id);

        let id = story.enqueue("d");
        let lease = story.claim(id);
        story.run(lease);
        story.give_back(id);
        story.finish_told(lease, Status::Pending, false);
        story.success(id);
        story
    }

    /// A claim, a run and a success with its effect.
    pub(super) fn success(&mut self, id: u64) -> LeaseOf {
        let lease = self.claim(id);
        self.run(lease);
        self.finish_in(lease);
        self.succeed(id);
        self.effect(lease);
        self.note(Event::Committed(attempt(&self.state(id), id)));
        lease
    }

    pub(super) fn enqueue(&mut self, key: &str) -> u64 {
        self.now = self.now.plus(Duration::from_secs(1));
        let id = self.history.rows.len() as u64 + 1;
        let row = new_row(id, key_of(key), self.now);
        self.history.moves.push(Moved {
            at: self.now,
            id,
            before: None,
            after: Some(State::of(&row)),
        });
        let call = Call::Enqueue {
            keys: vec![row.idempotency_key.to_string()],
        };
        self.history.rows.push(row);
        self.call(call, Answer::Enqueued(vec![(id, true)]));
        id
    }

    /// The database grants a lease and the worker is told.
    pub(super) fn claim(&mut self, id: u64) -> LeaseOf {
        self.update(id, |state, now| {
            state.status = Status::Running;
            state.attempt_no += 1;
            state.lease_seq += 1;
            state.lease_owner = Some(format!("node:{}", state.lease_seq));
            state.lease_until = Some(now.plus(LEASE));
        });
        let state = self.state(id);
        let owner = state.lease_owner.clone().unwrap();
        let lease = lease(&state, id);
        self.call(
            Call::Claim {
                owner,
                shards: Vec::new(),
            },
            Answer::Claimed(vec![lease]),
        );
        lease
    }

    pub(super) fn run(&mut self, lease: LeaseOf) {
        let attempt = attempt(&self.state(lease.id), lease.id);
        self.note(Event::Started(attempt));
    }

    pub(super) fn renew(&mut self, id: u64) {
        self.update(id, |state, now| state.lease_until = Some(now.plus(LEASE)));
    }

    /// A worker's finish that costs the attempt.
    pub(super) fn end(&mut self, id: u64, status: Status) {
        self.update(id, |state, _| {
            state.status = status;
            state.lease_until = None;
        });
    }

    pub(super) fn give_back(&mut self, id: u64) {
        self.end_with(id, |state| {
            state.attempt_no -= 1;
            state.status = match state.attempt_no {
                0 => Status::Pending,
                _ => Status::Retry,
            };
        });
    }

    /// A worker's finish, and then a change of its own.
    pub(super) fn end_with(&mut self, id: u64, change: impl FnOnce(&mut State)) {
        self.update(id, |state, _| {
            state.lease_until = None;
            change(state);
        });
    }

    pub(super) fn succeed(&mut self, id: u64) {
        self.end(id, Status::Success);
    }

    pub(super) fn lapse(&mut self) {
        self.now = self.now.plus(LEASE * 2);
    }

    pub(super) fn reap(&mut self, id: u64, status: Status) {
        self.end_with(id, |state| {
            state.status = status;
            state.lease_owner = None;
        });
    }

    pub(super) fn operate(&mut self, action: &str, id: u64, to: Status) {
        self.update(id, |state, _| operated(state, to));
        self.operate_told(action, id);
    }

    pub(super) fn operate_told(&mut self, action: &str, id: u64) {
        let call = Call::Operate {
            action: action.into(),
            ids: vec![id],
        };
        self.call(call, Answer::Operated { done: vec![id] });
    }

    pub(super) fn finish_told(&mut self, lease: LeaseOf, to: Status, is_lost: bool) {
        let lost = if is_lost { vec![lease.id] } else { Vec::new() };
        let status = to.code();
        let finishes = vec![Ended { lease, status }];
        self.call(Call::Finish { finishes }, Answer::Finished { lost });
    }

    pub(super) fn finish_in(&mut self, lease: LeaseOf) {
        self.call(Call::FinishIn { lease }, Answer::FinishedIn);
    }

    pub(super) fn effect(&mut self, lease: LeaseOf) {
        self.history.effects.push(Effect {
            id: lease.id,
            lease_seq: lease.lease_seq,
        });
    }

    /// The row as it is.
    pub(super) fn state(&self, id: u64) -> State {
        State::of(self.row(id))
    }

    pub(super) fn row(&self, id: u64) -> &JobRow {
        let row = self.history.rows.iter().find(|row| row.id == id);
        row.unwrap()
    }

    pub(super) fn row_mut(&mut self, id: u64) -> &mut JobRow {
        let mut rows = self.history.rows.iter_mut();
        rows.find(|row| row.id == id).unwrap()
    }

    /// Changes a row and notes the change.
    pub(super) fn update(&mut self, id: u64, change: impl FnOnce(&mut State, DbTime)) {
        let mut after = self.state(id);
        let now = self.now.plus(Duration::from_secs(1));
        change(&mut after, now);
        self.change(id, Some(after));
    }

    pub(super) fn change(&mut self, id: u64, after: Option<State>) {
        self.now = self.now.plus(Duration::from_secs(1));
        let before = Some(self.state(id));
        match &after {
            Some(state) => write(self.row_mut(id), state),
            None => self.history.rows.retain(|row| row.id != id),
        }
        self.history.moves.push(Moved {
            at: self.now,
            id,
            before,
            after,
        });
    }

    /// A call and its answer.
    pub(super) fn call(&mut self, call: Call, answer: Answer) {
        self.call += 1;
        self.record(Event::Invoke(call));
        self.record(Event::Ok(answer));
    }

    fn unknown_call(&mut self) {
        self.call += 1;
        self.record(Event::Invoke(Call::Reap));
        self.record(Event::Unknown("the connection was lost".into()));
    }

    pub(super) fn note(&mut self, event: Event) {
        self.call += 1;
        self.record(event);
    }

    fn record(&mut self, event: Event) {
        self.history.records.push(Record {
            process: 1,
            call: self.call,
            event,
        });
    }
}

/// What an operator's move does to a row.
pub(super) fn operated(state: &mut State, to: Status) {
    state.status = to;
    if to == Status::Pending {
        state.attempt_no = 0;
        state.lease_owner = None;
    }
}

pub(super) fn attempt(state: &State, id: u64) -> Attempt {
    Attempt {
        id,
        lease_seq: state.lease_seq,
        attempt_no: state.attempt_no,
    }
}

pub(super) fn lease(state: &State, id: u64) -> LeaseOf {
    LeaseOf {
        id,
        lease_seq: state.lease_seq,
    }
}

pub(super) fn key_of(text: &str) -> IdempotencyKey {
    let mut encoder = KeyEncoder::new();
    encoder.field("key", text).unwrap();
    encoder.key("story")
}

fn write(row: &mut JobRow, state: &State) {
    row.status = state.status;
    row.attempt_no = state.attempt_no;
    row.lease_seq = state.lease_seq;
    row.lease_owner = state.lease_owner.as_deref().map(LeaseOwner::from_row);
    row.lease_until = state.lease_until;
    row.next_attempt_at = state.next_attempt_at;
}

fn new_row(id: u64, idempotency_key: IdempotencyKey, now: DbTime) -> JobRow {
    JobRow {
        id,
        shard_id: 0,
        status: Status::Pending,
        next_attempt_at: now,
        due_at: now,
        attempt_no: 0,
        lease_owner: None,
        lease_seq: 0,
        lease_until: None,
        idempotency_key,
        shard_key: None,
        payload: None,
        last_error: None,
        created_at: now,
        updated_at: now,
        columns: Vec::new(),
    }
}
