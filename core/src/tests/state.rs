use std::time::Duration;

use proptest::prelude::*;

use crate::{
    op::{
        claim::{Lease, LeaseOwner},
        finish::{Ending, Finish},
        operate::Action,
        reap::Lapsed,
    },
    retry::{Backoff, Decision, Failure, RetryPolicy, Verdict},
    state::{IllegalMove, Move, Status},
};

const NOT: Option<Status> = None;
const PEND: Option<Status> = Some(Status::Pending);
const RUN: Option<Status> = Some(Status::Running);
const SUCC: Option<Status> = Some(Status::Success);
const DEAD: Option<Status> = Some(Status::Dead);
const RTRY: Option<Status> = Some(Status::Retry);
const FAIL: Option<Status> = Some(Status::Failed);
const HOLD: Option<Status> = Some(Status::Hold);

/// Where each move leads from each status, written out a second time: a move
/// that is added or changed has to be added or changed here as well.
#[rustfmt::skip]
const TABLE: [(Move, [Option<Status>; 7]); 12] = [
    //                   from PENDING RUNNING SUCCESS DEAD  RETRY FAILED HOLD
    (Move::Claim,            [RUN,    NOT,    NOT,    NOT,  RUN,  NOT,   NOT]),
    (Move::Succeed,          [NOT,    SUCC,   NOT,    NOT,  NOT,  NOT,   NOT]),
    (Move::Fail,             [NOT,    FAIL,   NOT,    NOT,  NOT,  NOT,   NOT]),
    (Move::GiveBackFresh,    [NOT,    PEND,   NOT,    NOT,  NOT,  NOT,   NOT]),
    (Move::GiveBackRetry,    [NOT,    RTRY,   NOT,    NOT,  NOT,  NOT,   NOT]),
    (Move::HoldRunning,      [NOT,    HOLD,   NOT,    NOT,  NOT,  NOT,   NOT]),
    (Move::Retry,            [NOT,    NOT,    NOT,    NOT,  NOT,  RTRY,  NOT]),
    (Move::Die,              [NOT,    NOT,    NOT,    NOT,  NOT,  DEAD,  NOT]),
    (Move::Hold,             [HOLD,   NOT,    NOT,    NOT,  HOLD, HOLD,  NOT]),
    (Move::Release,          [NOT,    NOT,    NOT,    NOT,  NOT,  NOT,   PEND]),
    (Move::Cancel,           [DEAD,   NOT,    NOT,    NOT,  DEAD, DEAD,  DEAD]),
    (Move::Requeue,          [NOT,    NOT,    PEND,   PEND, NOT,  PEND,  NOT]),
];

#[test]
fn every_move_leads_where_the_table_says() {
    assert_eq!(TABLE.map(|(step, _)| step), Move::ALL);
    for (step, row) in TABLE {
        for (from, to) in Status::ALL.into_iter().zip(row) {
            let want = to.ok_or(IllegalMove { step, from });
            assert_eq!(from.after(step), want, "{step:?} from {from}");
        }
    }
}

#[test]
fn the_sources_of_a_move_are_the_statuses_it_is_legal_from() {
    for (step, row) in TABLE {
        let legal = Status::ALL.into_iter().zip(row);
        let want: Vec<_> = legal.filter_map(|(from, to)| to.map(|_| from)).collect();
        assert_eq!(step.sources().collect::<Vec<_>>(), want, "{step:?}");
    }
}

#[test]
fn a_move_leads_to_one_status_wherever_it_starts() {
    // The statements rely on it: they write one target, whatever the source.
    for (step, row) in TABLE {
        let mut targets: Vec<_> = row.into_iter().flatten().collect();
        targets.dedup();
        assert_eq!(targets.len(), 1, "{step:?}");
    }
}

#[test]
fn only_a_requeue_leaves_a_terminal_status() {
    for status in Status::ALL {
        let leaving: Vec<_> = moves_from(status);
        if status.is_terminal() {
            assert_eq!(leaving, [Move::Requeue], "{status}");
        } else {
            assert!(leaving.len() > 1, "{status}");
        }
    }
}

#[test]
fn a_hold_wins_or_is_refused_and_then_only_a_person_ends_it() {
    for status in Status::ALL {
        if let Ok(after) = status.after(Move::Hold) {
            assert_eq!(after, Status::Hold);
        }
    }
    assert!(Status::Running.after(Move::Hold).is_err());
    assert_eq!(moves_from(Status::Hold), [Move::Release, Move::Cancel]);
}

#[test]
fn a_refused_move_says_which_and_from_where() {
    let refused = Status::Success.after(Move::Claim).unwrap_err();
    assert_eq!(refused.to_string(), "Claim can't be taken from SUCCESS");
}

#[test]
fn codes_are_fixed_and_round_trip() {
    let codes = [
        (0, Status::Pending, "PENDING"),
        (1, Status::Running, "RUNNING"),
        (2, Status::Success, "SUCCESS"),
        (3, Status::Dead, "DEAD"),
        (4, Status::Retry, "RETRY"),
        (5, Status::Failed, "FAILED"),
        (6, Status::Hold, "HOLD"),
    ];
    assert_eq!(codes.map(|(_, status, _)| status), Status::ALL);
    for (code, status, name) in codes {
        assert_eq!(status.code(), code);
        assert_eq!(status.to_string(), name);
    }
    for code in 0..=u8::MAX {
        let known = codes.into_iter().find(|(known, ..)| *known == code);
        assert_eq!(Status::from_code(code), known.map(|(_, status, _)| status));
    }
}

#[test]
fn a_finish_moves_from_running_to_the_status_it_settles_in() {
    for ending in endings() {
        for attempt_no in [1, 2, 3, u16::MAX] {
            let finish = finish(attempt_no, ending.clone());
            let end = finish
                .moves()
                .into_iter()
                .try_fold(Status::Running, Status::after);
            assert_eq!(end, Ok(finish.settled().status), "{finish:?}");
        }
    }
}

fn moves_from(status: Status) -> Vec<Move> {
    let legal = |step: &Move| status.after(*step).is_ok();
    Move::ALL.into_iter().filter(legal).collect()
}

fn endings() -> Vec<Ending> {
    let delay = Duration::from_secs(5);
    let failed = |decision| Ending::Failed {
        decision,
        error: "timeout".into(),
    };
    vec![
        Ending::Success,
        failed(Decision::Retry(delay)),
        failed(Decision::Dead),
        failed(Decision::Manual),
        failed(Decision::Hold),
        Ending::GiveBack { delay },
    ]
}

fn finish(attempt_no: u16, ending: Ending) -> Finish {
    Finish {
        lease: lease(1),
        attempt_no,
        ending,
    }
}

fn lease(lease_seq: u64) -> Lease {
    Lease {
        id: 7,
        owner: LeaseOwner::from_row("billing-7-1f0e9a2c:41"),
        lease_seq,
        shard: None,
    }
}

/// What a row keeps of a job's standing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Row {
    status: Status,
    attempt_no: u16,
    lease_seq: u64,
}

/// What can happen to a job.
#[derive(Clone, Debug)]
enum Event {
    Claim,
    Success,
    Failure(Verdict),
    GiveBack,
    Lapse,
    Operate(Action),
}

impl Row {
    const NEW: Self = Self {
        status: Status::Pending,
        attempt_no: 0,
        lease_seq: 0,
    };

    /// The row after the event, or the move that was refused.
    fn after(self, event: &Event, policy: &RetryPolicy) -> Result<Self, IllegalMove> {
        match event {
            Event::Claim => Ok(Self {
                status: self.status.after(Move::Claim)?,
                attempt_no: self.attempt_no + 1,
                lease_seq: self.lease_seq + 1,
            }),
            Event::Success => self.finished(&finish(self.attempt_no, Ending::Success)),
            Event::Failure(verdict) => {
                let decision = policy.decide(Failure {
                    attempt_no: self.attempt_no,
                    age: Duration::ZERO,
                    verdict: *verdict,
                    seed: 7,
                });
                let error = String::new();
                self.finished(&finish(self.attempt_no, Ending::Failed { decision, error }))
            }
            Event::GiveBack => {
                let delay = Duration::ZERO;
                self.finished(&finish(self.attempt_no, Ending::GiveBack { delay }))
            }
            Event::Lapse => {
                let lapsed = Lapsed {
                    lease: lease(self.lease_seq),
                    attempt_no: self.attempt_no,
                    age: Duration::ZERO,
                };
                self.finished(&lapsed.finish(policy))
            }
            Event::Operate(action) => Ok(Self {
                status: self.status.after(action.step())?,
                attempt_no: match action {
                    Action::Release | Action::Requeue => 0,
                    Action::Hold | Action::Cancel => self.attempt_no,
                },
                ..self
            }),
        }
    }

    fn finished(self, finish: &Finish) -> Result<Self, IllegalMove> {
        let status = finish
            .moves()
            .into_iter()
            .try_fold(self.status, Status::after)?;
        let settled = finish.settled();
        assert_eq!(settled.status, status);
        Ok(Self {
            status,
            attempt_no: settled.attempt_no,
            ..self
        })
    }
}

fn events() -> impl Strategy<Value = Event> {
    // Claims are the likeliest, so that jobs get through several attempts.
    prop_oneof![
        6 => Just(Event::Claim),
        1 => Just(Event::Success),
        4 => Just(Event::Failure(Verdict::Retry)),
        1 => Just(Event::Failure(Verdict::RetryAfter(Duration::from_secs(9)))),
        1 => Just(Event::Failure(Verdict::Permanent)),
        1 => Just(Event::Failure(Verdict::Hold)),
        2 => Just(Event::GiveBack),
        2 => Just(Event::Lapse),
        2 => prop::sample::select(Action::ALL.to_vec()).prop_map(Event::Operate),
    ]
}

proptest! {
    #[test]
    fn no_history_of_a_job_leaves_the_state_machine(
        max_attempts in 1u16..5,
        manual_after in prop::option::of(1u16..5),
        history in prop::collection::vec(events(), 0..80),
    ) {
        let policy = RetryPolicy {
            backoff: Backoff::Fixed { delay: Duration::from_secs(1) },
            max_attempts,
            manual_after,
            ..RetryPolicy::DEFAULT
        };
        let mut row = Row::NEW;
        for event in history {
            let before = row;
            match row.after(&event, &policy) {
                Ok(after) => row = after,
                Err(IllegalMove { step, from }) => {
                    prop_assert!(!step.sources().any(|source| source == from));
                    continue;
                }
            }
            let claimed = matches!(event, Event::Claim);
            prop_assert_eq!(row.lease_seq, before.lease_seq + u64::from(claimed));
            prop_assert!(row.attempt_no <= max_attempts, "{:?} after {:?}", row, event);
            match row.status {
                Status::Pending => prop_assert_eq!(row.attempt_no, 0),
                Status::Running => prop_assert!(row.attempt_no >= 1),
                // Otherwise the next claim would exceed the maximum.
                Status::Retry => prop_assert!((1..max_attempts).contains(&row.attempt_no)),
                Status::Success | Status::Dead | Status::Failed | Status::Hold => {}
            }
            if before.status.is_terminal() {
                prop_assert!(matches!(event, Event::Operate(Action::Requeue)));
            }
            if before.status == Status::Hold {
                prop_assert!(matches!(
                    event,
                    Event::Operate(Action::Release | Action::Cancel)
                ));
            }
        }
    }
}
