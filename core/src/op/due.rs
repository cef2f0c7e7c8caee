//! Due heads: which shards have work, and since when.

use std::time::Duration;

use crate::{state::Status, time::DbTime};

/// Fresh or retried jobs; each has its own share of every batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Lane {
    /// PENDING jobs.
    Fresh,
    /// RETRY jobs, but for those that may only run alone.
    Retry,
    /// All RETRY jobs. The ones that [`Retry`](Self::Retry) leaves out crashed
    /// at their last attempt, and have one left: were it to end in a crash
    /// again, the job would die of it. So that no job dies of another's crash,
    /// a worker takes these one at a time, with nothing else in hand.
    Alone,
    /// PENDING jobs that the lapse of a shard's lease has left in doubt, of job
    /// types with [`LeaseBy::Shard`](crate::LeaseBy).
    Doubt,
}

impl Lane {
    /// The lanes of a worker's batches.
    pub const ALL: [Self; 2] = [Self::Fresh, Self::Retry];

    /// The status that jobs of this lane wait in.
    #[must_use]
    pub const fn status(self) -> Status {
        match self {
            Self::Fresh | Self::Doubt => Status::Pending,
            Self::Retry | Self::Alone => Status::Retry,
        }
    }
}

/// The earliest waiting job of one shard and lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head {
    /// The shard.
    pub shard_id: u16,
    /// When its earliest job is to start.
    pub next_attempt_at: DbTime,
}

/// The heads of both lanes, from one look.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LaneHeads {
    /// Of new jobs.
    pub fresh: DueHeads,
    /// Of retried jobs, those that may only run alone included.
    pub retry: DueHeads,
}

impl LaneHeads {
    /// With these heads, in any order.
    #[must_use]
    pub fn new(now: DbTime, heads: impl IntoIterator<Item = (Status, Head)>) -> Self {
        let (mut fresh, mut retry) = (Vec::new(), Vec::new());
        for (status, head) in heads {
            match status == Lane::Fresh.status() {
                true => fresh.push(head),
                false => retry.push(head),
            }
        }
        let lane = |mut heads: Vec<Head>| {
            heads.sort_unstable_by_key(|head| (head.next_attempt_at, head.shard_id));
            DueHeads { now, heads }
        };
        Self {
            fresh: lane(fresh),
            retry: lane(retry),
        }
    }

    /// Those of this lane.
    #[must_use]
    pub fn of(self, lane: Lane) -> DueHeads {
        match lane {
            Lane::Fresh | Lane::Doubt => self.fresh,
            Lane::Retry | Lane::Alone => self.retry,
        }
    }
}

/// The heads of one lane, by the database's clock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DueHeads {
    /// The database's clock when it answered.
    pub now: DbTime,
    /// Every shard with waiting jobs, due or not; earliest first.
    pub heads: Vec<Head>,
}

impl DueHeads {
    /// The shards with a job that is due, earliest first.
    pub fn due(&self) -> impl Iterator<Item = Head> {
        let now = self.now;
        self.heads
            .iter()
            .copied()
            .take_while(move |head| head.next_attempt_at <= now)
    }

    /// Time until the next job falls due; zero when one is, `None` when no job
    /// waits.
    #[must_use]
    pub fn wait(&self) -> Option<Duration> {
        let head = self.heads.first()?;
        Some(head.next_attempt_at.since(self.now))
    }
}
