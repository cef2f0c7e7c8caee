//! One step of a sequence, and how both sides do it.

use std::time::Duration;

use proptest::{collection::vec, prelude::*};
use retryjob_core::{
    Backend, LeaseBy,
    op::{
        claim::{Claim, ClaimedJob, LeaseOwner},
        due::{Head, Lane},
        enqueue::{Due, NewJob},
        finish::{Ending, Finish},
        operate::{Action, Operate},
        reap::Reap,
        renew::Renew,
    },
    retry::Decision,
    time::DbTime,
};

use super::{HALF, LEASE, Pair, TICK, shards};
use crate::{TestDatabase, jobs::job};

/// What is done. Jobs and claims are chosen among those there are, by number.
#[derive(Clone, Debug)]
pub enum Step {
    Enqueue(Vec<(u64, u16, Duration)>),
    Pass,
    Claim(Lane, Vec<u16>, u16),
    Finish(Vec<(usize, Ending)>),
    Renew(Vec<usize>),
    Reap(u16),
    Operate(Action, Vec<u64>, bool),
    /// For job types with leases of shards; others pass over it.
    Shards(shards::Step),
}

/// Sequences of up to so many steps.
pub fn steps(most: usize) -> impl Strategy<Value = Vec<Step>> {
    vec(step(), 1..=most)
}

fn step() -> impl Strategy<Value = Step> {
    let lane = || prop_oneof![Just(Lane::Fresh), Just(Lane::Retry), Just(Lane::Alone)];
    let shards = Just(vec![0u16, 1, 2]).prop_shuffle();
    let shards = (shards, 1..=3usize).prop_map(|(mut shards, count)| {
        shards.truncate(count);
        shards
    });
    let news = (0..14u64, 0..3u16, delay());
    prop_oneof![
        3 => vec(news, 1..5).prop_map(Step::Enqueue),
        2 => Just(Step::Pass),
        5 => (lane(), shards, 1..6u16)
            .prop_map(|(lane, shards, limit)| Step::Claim(lane, shards, limit)),
        5 => vec((any::<usize>(), ending()), 1..5).prop_map(Step::Finish),
        1 => vec(any::<usize>(), 1..4).prop_map(Step::Renew),
        2 => (1..4u16).prop_map(Step::Reap),
        2 => (action(), vec(0..16u64, 1..5), any::<bool>())
            .prop_map(|(action, ids, has_reason)| Step::Operate(action, ids, has_reason)),
        4 => shards::step().prop_map(Step::Shards),
    ]
}

fn delay() -> impl Strategy<Value = Duration> {
    prop_oneof![
        3 => Just(Duration::ZERO),
        1 => Just(HALF),
        1 => Just(TICK + HALF),
    ]
}

fn ending() -> impl Strategy<Value = Ending> {
    let decision = prop_oneof![
        3 => delay().prop_map(Decision::Retry),
        1 => Just(Decision::Dead),
        1 => Just(Decision::Manual),
        1 => Just(Decision::Hold),
    ];
    prop_oneof![
        2 => Just(Ending::Success),
        3 => (decision, "[a-zé]{0,3}")
            .prop_map(|(decision, error)| Ending::Failed { decision, error }),
        1 => delay().prop_map(|delay| Ending::GiveBack { delay }),
    ]
}

fn action() -> impl Strategy<Value = Action> {
    proptest::sample::select(Action::ALL.to_vec())
}

impl<D: TestDatabase> Pair<'_, D> {
    pub(super) async fn step(&mut self, step: &Step, context: &str) {
        match step {
            Step::Enqueue(news) => self.enqueue(news, context).await,
            Step::Pass => self.pass(TICK).await,
            Step::Claim(lane, shards, limit) => self.claim(*lane, shards, *limit, context).await,
            Step::Finish(chosen) => self.finish(chosen, context).await,
            Step::Renew(chosen) => self.renew(chosen, context).await,
            Step::Reap(limit) => self.reap(*limit, context).await,
            Step::Operate(action, ids, has_reason) => {
                self.operate(*action, ids, *has_reason, context).await;
            }
            Step::Shards(_) if self.schema.lease_by == LeaseBy::Row => {}
            Step::Shards(step) => self.shard_step(step, context).await,
        }
    }

    async fn enqueue(&mut self, news: &[(u64, u16, Duration)], context: &str) {
        let new = |(n, shard_id, delay): &(u64, u16, Duration)| NewJob {
            shard_id: *shard_id,
            due: match delay {
                delay if delay.is_zero() => Due::Now,
                delay => Due::In(*delay),
            },
            ..job(*n)
        };
        let news: Vec<_> = news.iter().map(new).collect();
        let here = self.memory.enqueue(news.clone()).await.unwrap();
        let there = self.backend.enqueue(news).await.unwrap();
        assert_eq!(here.len(), there.len(), "{context}");
        for (here, there) in here.iter().zip(there) {
            assert_eq!(here.is_new, there.is_new, "{context}");
            let known = *self.ids.entry(here.id).or_insert(there.id);
            assert_eq!(known, there.id, "{context}");
        }
    }

    pub(super) async fn claim(&mut self, lane: Lane, shards: &[u16], limit: u16, context: &str) {
        let heads = shards.iter().map(|shard_id| Head {
            shard_id: *shard_id,
            next_attempt_at: DbTime::from_us(0),
        });
        self.next_owner += 1;
        let claim = Claim {
            owner: LeaseOwner::from_row(&format!("model:{}", self.next_owner)),
            lane,
            heads: heads.collect(),
            limit,
            lease: LEASE,
        };
        let here = self.memory.claim(claim.clone()).await.unwrap().jobs;
        let there = self.backend.claim(claim).await.unwrap().jobs;
        self.claimed(here, there, context);
    }

    /// Compares what was claimed, and takes note of it.
    pub(super) fn claimed(&mut self, here: Vec<ClaimedJob>, there: Vec<ClaimedJob>, context: &str) {
        let known = |mut job: ClaimedJob| {
            job.lease.id = self.here(job.lease.id);
            (job.lease, job.shard_id, job.attempt_no, job.payload)
        };
        let there: Vec<_> = there.into_iter().map(known).collect();
        let plain = |job: &ClaimedJob| {
            let job = job.clone();
            (job.lease, job.shard_id, job.attempt_no, job.payload)
        };
        let expected: Vec<_> = here.iter().map(plain).collect();
        assert_eq!(there, expected, "{context}");
        self.claimed.extend(here);
    }

    /// Claims chosen by number, each job once.
    fn chosen(&self, numbers: impl Iterator<Item = usize>) -> Vec<ClaimedJob> {
        let count = self.claimed.len();
        let mut chosen: Vec<ClaimedJob> = Vec::new();
        for number in numbers.filter(|_| count > 0) {
            // Late claims are likelier to still stand.
            let at = count - 1 - number % count.min(8);
            let job = &self.claimed[at];
            if chosen.iter().all(|known| known.lease.id != job.lease.id) {
                chosen.push(job.clone());
            }
        }
        chosen
    }

    async fn finish(&mut self, chosen: &[(usize, Ending)], context: &str) {
        let jobs = self.chosen(chosen.iter().map(|(number, _)| *number));
        let finish = |(job, (_, ending)): (ClaimedJob, &(usize, Ending))| Finish {
            lease: job.lease,
            attempt_no: job.attempt_no,
            ending: ending.clone(),
        };
        let here: Vec<_> = jobs.into_iter().zip(chosen).map(finish).collect();
        let there = here.iter().map(|finish| Finish {
            lease: self.lease_there(&finish.lease),
            ..finish.clone()
        });
        let there = self.backend.finish(there.collect()).await.unwrap().lost;
        let mut here = self.memory.finish(here).await.unwrap().lost;
        here.sort_unstable();
        assert_eq!(self.all_here(there), here, "{context}");
    }

    async fn renew(&mut self, chosen: &[usize], context: &str) {
        let jobs = self.chosen(chosen.iter().copied());
        let renew = |leases| Renew {
            leases,
            lease: LEASE,
        };
        let here: Vec<_> = jobs.into_iter().map(|job| job.lease).collect();
        let there = here.iter().map(|lease| self.lease_there(lease)).collect();
        let there = self.backend.renew(renew(there)).await.unwrap().lost;
        let mut here = self.memory.renew(renew(here)).await.unwrap().lost;
        here.sort_unstable();
        assert_eq!(self.all_here(there), here, "{context}");
    }

    async fn reap(&mut self, limit: u16, context: &str) {
        let reap = Reap { limit };
        let here = self.memory.reap(reap).await.unwrap();
        let there = self.backend.reap(reap).await.unwrap();
        assert_eq!(there.has_more, here.has_more, "{context}");
        let mut finishes = there.finishes;
        for finish in &mut finishes {
            finish.lease.id = self.here(finish.lease.id);
        }
        let mut expected = here.finishes;
        expected.sort_by_key(|finish| finish.lease.id);
        finishes.sort_by_key(|finish| finish.lease.id);
        assert_eq!(finishes, expected, "{context}");
    }

    async fn operate(&mut self, action: Action, ids: &[u64], has_reason: bool, context: &str) {
        let operate = |ids| Operate {
            action,
            ids,
            reason: has_reason.then(|| "a reason".into()),
        };
        let there = ids.iter().map(|id| self.there(*id)).collect();
        let there = self.backend.operate(operate(there)).await.unwrap().answers;
        let here = self.memory.operate(operate(ids.to_vec())).await.unwrap();
        let there = there
            .into_iter()
            .map(|(id, answer)| (self.here(id), answer));
        assert_eq!(there.collect::<Vec<_>>(), here.answers, "{context}");
    }
}
