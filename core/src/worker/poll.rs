//! Poll: which shards are due, claim a batch, sleep until the next due time.

use std::{
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use tokio::{
    sync::{OwnedSemaphorePermit, mpsc, watch},
    time::Instant,
};

use super::{
    Shared,
    alone::{Turn, take_turn},
    assign::{Changes, Claimable},
    lanes::fresh_share,
    pace::Pace,
    run::run_job,
    settings::POLL_MIN,
    shards,
};
use crate::{
    backend::{Backend, ShardUse},
    error::Result,
    job::RetryJob,
    op::{
        claim::{Claim, ClaimedJob},
        due::{Head, Lane, LaneHeads},
        finish::Finish,
    },
    schema::LeaseBy,
};

/// What one look at the table found.
enum Found {
    Claimed,
    /// Nothing to claim; the next job falls due after this time, if any waits.
    Nothing(Option<Duration>),
}

pub(super) async fn poll_loop<J: RetryJob, B: Backend>(
    shared: Arc<Shared<J, B>>,
    finishes: mpsc::Sender<Finish>,
    until_idle: bool,
) -> Result<()> {
    let mut turn = 0;
    let mut pace = Pace::new();
    let mut alone = Turn::new(J::schema().lease);
    let mut wakes = Wakes {
        work: shared.queue.wakes(),
        assigned: shared.assigned.changes(),
    };
    let mut idle_wait = POLL_MIN;
    let mut look = None;
    while let Some(hands) = free_hands(&shared, &mut pace).await {
        wakes.seen();
        let found =
            match claim_some(&shared, &finishes, hands, &mut turn, &mut alone, &mut look).await {
                Ok(found) => found,
                Err(error) if error.is_transient() => {
                    tracing::warn!(%error, "polling failed, trying again");
                    Found::Nothing(None)
                }
                Err(error) => return Err(error),
            };
        match found {
            Found::Claimed => idle_wait = POLL_MIN,
            Found::Nothing(_) if alone.is_asked_for() => {}
            Found::Nothing(next_due) => {
                if until_idle && is_idle(&shared).await? {
                    shared.stop.cancel();
                    break;
                }
                idle_wait = (idle_wait * 2).min(shared.settings.poll_max);
                let wait = next_due.unwrap_or(idle_wait).min(idle_wait.max(POLL_MIN));
                let wait = wait.clamp(POLL_MIN, shared.settings.poll_max);
                sleep(&shared, &mut wakes, wait).await;
            }
        }
        if alone.is_asked_for() {
            match take_turn(&shared, &finishes, &mut alone).await {
                Err(error) if !error.is_transient() => return Err(error),
                Err(error) => tracing::warn!(%error, "polling failed, trying again"),
                Ok(()) => {}
            }
        }
    }
    Ok(())
}

/// Waits until a claim is worthwhile, then takes the hands for it, up to a
/// batch; `None` when the worker stops.
async fn free_hands<J: RetryJob, B: Backend>(
    shared: &Shared<J, B>,
    pace: &mut Pace,
) -> Option<OwnedSemaphorePermit> {
    let settings = &shared.settings;
    let prefetch = settings.prefetch.unwrap_or_else(|| {
        let attempts = shared.tally.attempts.load(Ordering::Relaxed);
        pace.prefetch(attempts, settings.concurrency)
    });
    // When half of what waits for a handler has gone: claims of one job each
    // would follow every finish otherwise. At least one hand has to be free.
    let in_hand_max = settings.concurrency + prefetch / 2;
    let free_min = settings.hands().saturating_sub(in_hand_max).max(1);
    let acquire = Arc::clone(&shared.hands).acquire_many_owned(permits(free_min));
    let mut hands = tokio::select! {
        biased;
        () = shared.stop.cancelled() => return None,
        hands = acquire => hands.ok()?,
    };
    let in_hand = settings.hands() - shared.hands.available_permits() - free_min;
    let room = (settings.concurrency + prefetch)
        .saturating_sub(in_hand)
        .max(1);
    let room = room.min(J::schema().batch.into());
    match room.checked_sub(free_min) {
        Some(more) => {
            if let Ok(more) = Arc::clone(&shared.hands).try_acquire_many_owned(permits(more)) {
                hands.merge(more);
            }
            Some(hands)
        }
        None => hands.split(room),
    }
}

fn permits(hands: usize) -> u32 {
    u32::try_from(hands).unwrap_or(u32::MAX)
}

/// Due shards, as a look at the table found them.
///
/// While claims come back full, the next one goes on where the last one ended
/// rather than look again: a look costs as much as the claim of some hundred
/// jobs.
struct Look {
    at: Instant,
    fresh: Claimable,
    retry: Claimable,
}

/// After this a look is taken anew: jobs that were stored meanwhile may be due
/// before those it knows of.
const LOOK_FOR_MAX: Duration = Duration::from_millis(100);

impl Look {
    async fn take<J: RetryJob, B: Backend>(
        shared: &Shared<J, B>,
        alone: &mut Turn,
    ) -> Result<Self> {
        let LaneHeads { fresh, retry } = shared.queue.backend().due_heads().await?;
        let now = retry.now;
        // New jobs under the leases of shards are claimed by those who hold them.
        let fresh_use = match J::schema().lease_by {
            LeaseBy::Row => B::SHARDS,
            LeaseBy::Shard => ShardUse::Own,
        };
        let look = Self {
            at: Instant::now(),
            fresh: shared.assigned.claimable(fresh_use, fresh),
            retry: shared.assigned.claimable(B::SHARDS, retry),
        };
        alone.see(&look.retry.due, now);
        Ok(look)
    }

    fn lane(&mut self, lane: Lane) -> &mut Claimable {
        match lane {
            Lane::Fresh | Lane::Doubt => &mut self.fresh,
            Lane::Retry | Lane::Alone => &mut self.retry,
        }
    }

    fn is_of_use(&self) -> bool {
        let is_empty = self.fresh.due.is_empty() && self.retry.due.is_empty();
        !is_empty && self.at.elapsed() < LOOK_FOR_MAX
    }

    /// Time until more falls due. What is due and was not to be had is another's,
    /// or waits for a turn alone: it may be free any time.
    fn wait(&self) -> Option<Duration> {
        [self.fresh.wait, self.retry.wait]
            .into_iter()
            .flatten()
            .min()
    }
}

/// Claims up to as many jobs as there are hands, and starts their tasks.
async fn claim_some<J: RetryJob, B: Backend>(
    shared: &Arc<Shared<J, B>>,
    finishes: &mpsc::Sender<Finish>,
    mut hands: OwnedSemaphorePermit,
    turn: &mut u64,
    alone: &mut Turn,
    look: &mut Option<Look>,
) -> Result<Found> {
    let known = look.take().filter(Look::is_of_use);
    let is_known = known.is_some();
    let mut now = match known {
        Some(known) => known,
        None => Look::take(shared, alone).await?,
    };
    let limit = hands.num_permits();
    let fresh_limit = match (now.fresh.due.is_empty(), now.retry.due.is_empty()) {
        (false, false) => fresh_share(J::schema().lanes, *turn, limit),
        (_, true) => limit,
        (true, false) => 0,
    };
    let mut claimed = 0;
    // What one lane leaves unused goes to the other, so the fresh lane is asked
    // again at the end if it filled its share.
    for (lane, lane_limit) in [
        (Lane::Fresh, fresh_limit),
        (Lane::Retry, limit),
        (Lane::Fresh, limit),
    ] {
        let room = lane_limit.min(limit).saturating_sub(claimed);
        let Claimable { due: heads, wait } = now.lane(lane);
        if room == 0 || heads.is_empty() || shared.stop.is_cancelled() {
            continue;
        }
        let mut found = 0;
        let mut last = None;
        let mut take = |job: ClaimedJob, lane, ends| {
            let Some(hand) = hands.split(1) else {
                unreachable!("no more jobs were asked for than there are hands")
            };
            found += 1;
            last = Some(Head {
                shard_id: job.shard_id,
                next_attempt_at: job.next_attempt_at,
            });
            start(shared, finishes, job, lane, hand, ends);
        };
        let is_held = lane == Lane::Fresh && J::schema().lease_by == LeaseBy::Shard;
        if is_held {
            let next = claim_held(shared, heads, room, &mut take).await?;
            *wait = [*wait, next].into_iter().flatten().min();
        } else {
            claim_rows(shared, lane, heads.clone(), room, &mut take).await?;
        }
        match last {
            Some(_) if found == room && is_held => {}
            Some(last) if found == room => go_on(heads, last),
            _ => heads.clear(),
        }
        claimed += found;
    }
    *turn = turn.wrapping_add(claimed as u64);
    if claimed == 0 && !is_known {
        return Ok(Found::Nothing(now.wait()));
    }
    *look = Some(now);
    Ok(Found::Claimed)
}

/// Leaves out the shards before the one that the last job was of, and of that
/// one what was before the job.
fn go_on(heads: &mut Vec<Head>, last: Head) {
    let done = heads.iter().position(|head| head.shard_id == last.shard_id);
    heads.drain(..done.unwrap_or_default());
    if let Some(head) = heads.first_mut() {
        *head = last;
    }
}

/// Takes a job in hand, with the end of its lease.
type Take<'a> = dyn FnMut(ClaimedJob, Lane, Instant) + Send + 'a;

async fn claim_rows<J: RetryJob, B: Backend>(
    shared: &Shared<J, B>,
    lane: Lane,
    heads: Vec<Head>,
    limit: usize,
    take: &mut Take<'_>,
) -> Result<usize> {
    let ends = Instant::now() + J::schema().lease;
    let jobs = claim(shared, lane, heads, limit).await?;
    let count = jobs.len();
    jobs.into_iter().for_each(|job| take(job, lane, ends));
    Ok(count)
}

/// Claims new jobs of the shards that this node holds: those in doubt by their
/// rows, the others under the leases of the shards. Answers the time until
/// another falls due, where that is known.
async fn claim_held<J: RetryJob, B: Backend>(
    shared: &Shared<J, B>,
    heads: &[Head],
    limit: usize,
    take: &mut Take<'_>,
) -> Result<Option<Duration>> {
    let due = shared.shards.due(heads);
    let mut room = limit;
    if !due.in_doubt.is_empty() {
        room -= claim_rows(shared, Lane::Doubt, due.in_doubt, room, take).await?;
    }
    if room > 0 && !due.clear.is_empty() {
        let take = |jobs: Vec<shards::Claimed>| {
            for (job, ends) in jobs {
                take(job, Lane::Fresh, ends);
            }
        };
        return shards::claim(shared, &due.clear, room, take).await;
    }
    Ok(None)
}

#[tracing::instrument(level = "debug", skip_all, fields(?lane, limit))]
pub(super) async fn claim<J: RetryJob, B: Backend>(
    shared: &Shared<J, B>,
    lane: Lane,
    heads: Vec<Head>,
    limit: usize,
) -> Result<Vec<ClaimedJob>> {
    let claim = Claim {
        owner: shared.node.lease_owner(),
        lane,
        heads,
        limit: u16::try_from(limit).unwrap_or(u16::MAX),
        lease: J::schema().lease,
    };
    Ok(shared.queue.backend().claim(claim).await?.jobs)
}

/// Notes the lease of a claimed job and starts its task.
pub(super) fn start<J: RetryJob, B: Backend>(
    shared: &Arc<Shared<J, B>>,
    finishes: &mpsc::Sender<Finish>,
    job: ClaimedJob,
    lane: Lane,
    hand: OwnedSemaphorePermit,
    ends: Instant,
) {
    let events = shared.queue.event_sender();
    events.claimed(job.lease.id, lane.status(), job.attempt_no);
    let revoke = shared.held.hold(job.lease.clone(), ends);
    let shared_task = Arc::clone(shared);
    let finishes = finishes.clone();
    shared.tasks.spawn(async move {
        run_job(&shared_task, finishes, job, revoke).await;
        drop(hand);
    });
}

/// Whether nothing is left to do, here or on other nodes.
async fn is_idle<J: RetryJob, B: Backend>(shared: &Shared<J, B>) -> Result<bool> {
    if !shared.held.is_empty() {
        return Ok(false);
    }
    match shared.queue.backend().has_open().await {
        Ok(has_open) => Ok(!has_open),
        Err(error) if error.is_transient() => Ok(false),
        Err(error) => Err(error),
    }
}

/// What wakes a poller before its time.
struct Wakes {
    work: watch::Receiver<()>,
    assigned: Changes,
}

impl Wakes {
    /// What comes from here on is news: it may be too late for the look at the
    /// table that begins now.
    fn seen(&mut self) {
        self.work.mark_unchanged();
        self.assigned.seen();
    }
}

/// Sleeps, unless work or a shard comes in or the worker stops.
async fn sleep<J: RetryJob, B: Backend>(shared: &Shared<J, B>, wakes: &mut Wakes, wait: Duration) {
    tokio::select! {
        biased;
        () = tokio::time::sleep(wait) => {}
        // The pause keeps a stream of small enqueues from becoming a stream of
        // polls.
        () = async {
            // An error says that the queue is gone, which this worker holds.
            let _ = wakes.work.changed().await;
            tokio::time::sleep(POLL_MIN.min(wait)).await;
        } => {}
        () = wakes.assigned.next() => {}
        () = shared.stop.cancelled() => {}
    }
}
