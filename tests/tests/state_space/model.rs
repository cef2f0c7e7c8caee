//! The steps that the workers, the reapers, the operator and bad luck can take.

use retryjob_core::{RetryPolicy, Status, Verdict, op::operate::Action};
use stateright::Property;

use crate::{
    promises::{self, Seen},
    row::{Answer, Held, Row},
};

/// What a model leaves out, to be caught.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Flaw {
    None,
    FinishTakesAnyFence,
    ReapTakesAnyLease,
    ClaimTakesHeld,
}

pub(crate) struct Model {
    policy: RetryPolicy,
    flaw: Flaw,
    events: u8,
}

/// What a worker has in hand. A claim reads first and then takes, as on a
/// server without SKIP LOCKED.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Hand {
    Empty,
    Picked(usize),
    Runs(Held),
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct State {
    pub(crate) jobs: [Row; 2],
    pub(crate) workers: [Hand; 2],
    /// What each node's reaper read and has not yet written.
    reapers: [Option<Held>; 2],
    /// How many crashes, lapses of live leases, snoozes and actions of the
    /// operator may yet happen: a path could go on with them for ever.
    events_left: u8,
    pub(crate) seen: Seen,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// A worker reads which job is due.
    Pick(usize, usize),
    /// It claims what it read.
    Take(usize),
    Finish(usize, Answer),
    /// A worker forgets all it had, and starts again.
    Crash(usize),
    /// The lease of a job lapses.
    Lapse(usize),
    /// A reaper reads a lapsed lease.
    Read(usize, usize),
    /// It takes back what it read.
    Reap(usize),
    Operate(Action, usize),
}

impl Step {
    /// Whether it comes without a person and without bad luck.
    fn is_ordinary(self, state: &State) -> bool {
        match self {
            Self::Crash(_) | Self::Operate(..) => false,
            Self::Lapse(job) => !state.is_run(job),
            _ => true,
        }
    }
}

impl State {
    /// Whether a worker has the job's lease in hand.
    fn is_run(&self, job: usize) -> bool {
        self.workers.iter().any(
            |hand| matches!(hand, Hand::Runs(held) if held.job == job && self.jobs[job].is_leased(*held)),
        )
    }
}

impl Model {
    pub(crate) const fn new(policy: RetryPolicy, flaw: Flaw, events: u8) -> Self {
        Self {
            policy,
            flaw,
            events,
        }
    }

    pub(crate) const fn policy(&self) -> &RetryPolicy {
        &self.policy
    }

    /// Whether a finish under this lease would be written.
    pub(crate) fn can_finish(&self, row: &Row, held: Held) -> bool {
        let is_its_own = match self.flaw {
            Flaw::FinishTakesAnyFence => row.status == Status::Running,
            _ => row.is_leased(held),
        };
        is_its_own && !row.has_lapsed
    }

    /// Whether some job can go on with neither a person nor bad luck.
    pub(crate) fn goes_on(&self, state: &State) -> bool {
        let mut steps = Vec::new();
        stateright::Model::actions(self, state, &mut steps);
        steps.into_iter().any(|step| step.is_ordinary(state))
    }

    fn can_reap(&self, row: &Row, read: Held) -> bool {
        match self.flaw {
            Flaw::ReapTakesAnyLease => row.status == Status::Running,
            _ => row.is_leased(read) && row.has_lapsed,
        }
    }

    fn can_pick(&self, row: &Row) -> bool {
        row.is_waiting() || self.takes_held(row)
    }

    fn take(&self, row: Row) -> Option<Row> {
        match self.takes_held(&row) {
            true => Some(row.leased(Status::Running)),
            false => row.claimed(),
        }
    }

    fn takes_held(&self, row: &Row) -> bool {
        self.flaw == Flaw::ClaimTakesHeld && row.status == Status::Hold
    }

    /// What the step does to hands, reads and rows; what was seen comes later.
    fn apply(&self, state: &mut State, step: Step) -> Option<()> {
        match step {
            Step::Pick(worker, job) => state.workers[worker] = Hand::Picked(job),
            Step::Take(worker) => self.apply_take(state, worker),
            Step::Finish(worker, answer) => self.apply_finish(state, worker, answer)?,
            Step::Crash(worker) => {
                state.events_left -= 1;
                state.workers[worker] = Hand::Empty;
            }
            Step::Lapse(job) => {
                if state.is_run(job) {
                    state.events_left -= 1;
                }
                state.jobs[job].has_lapsed = true;
            }
            Step::Read(reaper, job) => {
                state.reapers[reaper] = Some(Held {
                    job,
                    attempt_no: state.jobs[job].attempt_no,
                    lease_seq: state.jobs[job].lease_seq,
                });
            }
            Step::Reap(reaper) => self.apply_reap(state, reaper)?,
            Step::Operate(action, job) => {
                state.events_left -= 1;
                state.jobs[job] = state.jobs[job].operated(action)?;
            }
        }
        Some(())
    }

    fn apply_take(&self, state: &mut State, worker: usize) {
        let Hand::Picked(job) = state.workers[worker] else {
            return;
        };
        state.workers[worker] = Hand::Empty;
        if let Some(row) = self.take(state.jobs[job]) {
            state.jobs[job] = row;
            state.workers[worker] = Hand::Runs(Held {
                job,
                attempt_no: row.attempt_no,
                lease_seq: row.lease_seq,
            });
        }
    }

    fn apply_finish(&self, state: &mut State, worker: usize, answer: Answer) -> Option<()> {
        let Hand::Runs(held) = state.workers[worker] else {
            return None;
        };
        state.workers[worker] = Hand::Empty;
        if answer == Answer::Snooze {
            state.events_left -= 1;
        }
        let row = &mut state.jobs[held.job];
        if self.can_finish(row, held) {
            *row = row.settled(held, answer, &self.policy)?;
        }
        Some(())
    }

    fn apply_reap(&self, state: &mut State, reaper: usize) -> Option<()> {
        let read = state.reapers[reaper].take()?;
        let row = &mut state.jobs[read.job];
        if self.can_reap(row, read) {
            *row = row.settled(read, Answer::Failed(Verdict::Retry), &self.policy)?;
        }
        Some(())
    }
}

impl stateright::Model for Model {
    type State = State;
    type Action = Step;

    fn init_states(&self) -> Vec<State> {
        vec![State {
            jobs: [Row::NEW; 2],
            workers: [Hand::Empty; 2],
            reapers: [None; 2],
            events_left: self.events,
            seen: Seen::default(),
        }]
    }

    fn actions(&self, state: &State, steps: &mut Vec<Step>) {
        let jobs = || state.jobs.iter().enumerate();
        for (worker, hand) in state.workers.iter().enumerate() {
            match hand {
                Hand::Empty => steps.extend(
                    jobs()
                        .filter(|(_, row)| self.can_pick(row))
                        .map(|(job, _)| Step::Pick(worker, job)),
                ),
                Hand::Picked(_) => steps.push(Step::Take(worker)),
                Hand::Runs(_) => {
                    steps.extend(answers(state.events_left).map(|a| Step::Finish(worker, a)))
                }
            }
            if *hand != Hand::Empty && state.events_left > 0 {
                steps.push(Step::Crash(worker));
            }
        }
        for (job, row) in jobs() {
            let can_lapse = state.events_left > 0 || !state.is_run(job);
            if row.status == Status::Running && !row.has_lapsed && can_lapse {
                steps.push(Step::Lapse(job));
            }
            if state.events_left > 0 {
                let can = |action: &Action| row.operated(*action).is_some();
                let actions = Action::ALL.into_iter().filter(can);
                steps.extend(actions.map(|action| Step::Operate(action, job)));
            }
        }
        for (reaper, read) in state.reapers.iter().enumerate() {
            match read {
                Some(_) => steps.push(Step::Reap(reaper)),
                None => steps.extend(
                    jobs()
                        .filter(|(_, row)| row.has_lapsed)
                        .map(|(job, _)| Step::Read(reaper, job)),
                ),
            }
        }
    }

    fn next_state(&self, before: &State, step: Step) -> Option<State> {
        let mut after = before.clone();
        self.apply(&mut after, step)?;
        after.seen.step(before, step, &after.jobs);
        Some(after)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        promises::all()
    }
}

/// What a handler may return.
fn answers(events_left: u8) -> impl Iterator<Item = Answer> {
    [
        Answer::Done,
        Answer::Failed(Verdict::Retry),
        Answer::Failed(Verdict::Permanent),
        Answer::Failed(Verdict::Hold),
        Answer::Snooze,
    ]
    .into_iter()
    .filter(move |answer| *answer != Answer::Snooze || events_left > 0)
}

impl State {
    pub(crate) fn read(&self, reaper: usize) -> Option<Held> {
        self.reapers[reaper]
    }
}
