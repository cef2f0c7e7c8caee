//! A typed event for each transition, for callers who subscribe.

use tokio::sync::broadcast;

use crate::{op::finish::Finish, state::Status};

/// Events that a slow subscriber may lag behind before it misses some.
pub const EVENTS_MAX: usize = 4096;

/// Something that happened to a job through this queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// A job moved. What was only passed through (FAILED, when the policy could
    /// decide) has no event of its own.
    Moved(Transition),
    /// An attempt ended after its lease was lost. Nothing was written for it;
    /// the job belongs to whoever holds the lease now.
    LeaseLost {
        /// The job's id.
        id: u64,
        /// Which attempt it was.
        attempt_no: u16,
    },
}

/// A move from one status to another, after it was committed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transition {
    /// The job's id.
    pub id: u64,
    /// Where it stood; `None` when it was enqueued.
    pub from: Option<Status>,
    /// Where it stands.
    pub to: Status,
    /// Attempts made, where that is known: after a claim or a finish.
    pub attempt_no: Option<u16>,
    /// The error of a failed attempt, or an operator's reason.
    pub reason: Option<String>,
}

/// Sends events to whoever listens; costs next to nothing when nobody does.
#[derive(Clone, Debug)]
pub(crate) struct Events(broadcast::Sender<Event>);

impl Events {
    pub(crate) fn new() -> Self {
        Self(broadcast::Sender::new(EVENTS_MAX))
    }

    pub(crate) fn subscribe(&self) -> broadcast::Receiver<Event> {
        self.0.subscribe()
    }

    /// Sends what `make` gives, if anybody listens.
    pub(crate) fn send(&self, make: impl FnOnce() -> Event) {
        if self.0.receiver_count() > 0 {
            // An error says that the last listener has just left.
            let _ = self.0.send(make());
        }
    }

    pub(crate) fn moved(&self, id: u64, from: Option<Status>, to: Status) {
        self.send(|| {
            Event::Moved(Transition {
                id,
                from,
                to,
                attempt_no: None,
                reason: None,
            })
        });
    }

    pub(crate) fn claimed(&self, id: u64, from: Status, attempt_no: u16) {
        self.send(|| {
            Event::Moved(Transition {
                id,
                from: Some(from),
                to: Status::Running,
                attempt_no: Some(attempt_no),
                reason: None,
            })
        });
    }

    pub(crate) fn finished(&self, finish: &Finish) {
        self.send(|| {
            let settled = finish.settled();
            Event::Moved(Transition {
                id: finish.lease.id,
                from: Some(Status::Running),
                to: settled.status,
                attempt_no: Some(settled.attempt_no),
                reason: settled.error,
            })
        });
    }
}
