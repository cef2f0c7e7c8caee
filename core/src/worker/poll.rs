//! Poll: which shards are due, claim a batch, sleep until the next due time.

use std::{sync::Arc, time::Duration};

use tokio::{
    sync::{OwnedSemaphorePermit, mpsc, watch},
    time::Instant,
};

use super::{
    Shared,
    alone::{Turn, take_turn},
    assign::Changes,
    lanes::fresh_share,
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
        due::{Head, Lane},
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
    let mut alone = Turn::new(J::schema().lease);
    let mut wakes = Wakes {
        work: shared.queue.wakes(),
        assigned: shared.assigned.changes(),
    };
    let mut idle_wait = POLL_MIN;
    while let Some(hands) = free_hands(&shared).await {
        wakes.seen();
        let found = match claim_some(&shared, &finishes, hands, &mut turn, &mut alone).await {
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

/// Waits until a claim is worthwhile, then takes all free hands up to a batch;
/// `None` when the worker stops.
async fn free_hands<J: RetryJob, B: Backend>(
    shared: &Shared<J, B>,
) -> Option<OwnedSemaphorePermit> {
    let batch = usize::from(J::schema().batch);
    let first = u32::try_from(shared.settings.claim_min().min(batch)).unwrap_or(u32::MAX);
    let acquire = Arc::clone(&shared.hands).acquire_many_owned(first);
    let mut hands = tokio::select! {
        biased;
        () = shared.stop.cancelled() => return None,
        hands = acquire => hands.ok()?,
    };
    let more = shared
        .hands
        .available_permits()
        .min(batch.saturating_sub(hands.num_permits()));
    let more = u32::try_from(more).unwrap_or(u32::MAX);
    if let Ok(more) = Arc::clone(&shared.hands).try_acquire_many_owned(more) {
        hands.merge(more);
    }
    Some(hands)
}

/// Claims up to as many jobs as there are hands, and starts their tasks.
async fn claim_some<J: RetryJob, B: Backend>(
    shared: &Arc<Shared<J, B>>,
    finishes: &mpsc::Sender<Finish>,
    mut hands: OwnedSemaphorePermit,
    turn: &mut u64,
    alone: &mut Turn,
) -> Result<Found> {
    let backend = shared.queue.backend();
    let fresh = backend.due_heads(Lane::Fresh).await?;
    let retry = backend.due_heads(Lane::Retry).await?;
    let now = retry.now;
    // New jobs under the leases of shards are claimed by those who hold them.
    let fresh_use = match J::schema().lease_by {
        LeaseBy::Row => B::SHARDS,
        LeaseBy::Shard => ShardUse::Own,
    };
    let fresh = shared.assigned.claimable(fresh_use, fresh);
    let retry = shared.assigned.claimable(B::SHARDS, retry);
    alone.see(&retry.due, now);
    let limit = hands.num_permits();
    let fresh_limit = match (fresh.due.is_empty(), retry.due.is_empty()) {
        (false, false) => fresh_share(J::schema().lanes, *turn, limit),
        (_, true) => limit,
        (true, false) => 0,
    };
    let mut claimed = 0;
    let mut fresh_has_more = true;
    // What one lane leaves unused goes to the other, so the fresh lane is asked
    // again at the end if it filled its share.
    for (lane, heads, lane_limit) in [
        (Lane::Fresh, &fresh.due, fresh_limit),
        (Lane::Retry, &retry.due, limit),
        (Lane::Fresh, &fresh.due, limit),
    ] {
        let room = lane_limit.min(limit).saturating_sub(claimed);
        let is_exhausted = lane == Lane::Fresh && !fresh_has_more;
        if room == 0 || heads.is_empty() || is_exhausted || shared.stop.is_cancelled() {
            continue;
        }
        let mut found = 0;
        let mut take = |job, lane, ends| {
            let Some(hand) = hands.split(1) else {
                unreachable!("no more jobs were asked for than there are hands")
            };
            found += 1;
            start(shared, finishes, job, lane, hand, ends);
        };
        if lane == Lane::Fresh && J::schema().lease_by == LeaseBy::Shard {
            claim_held(shared, heads, room, &mut take).await?;
        } else {
            claim_rows(shared, lane, heads.clone(), room, &mut take).await?;
        }
        fresh_has_more &= lane != Lane::Fresh || found == room;
        claimed += found;
    }
    *turn = turn.wrapping_add(claimed as u64);
    if claimed > 0 {
        return Ok(Found::Claimed);
    }
    // What is due and was not to be had is another's, or waits for a turn
    // alone: when there will be something to claim is not known.
    let waits = [fresh.wait, retry.wait].into_iter().flatten();
    Ok(Found::Nothing(waits.filter(|wait| !wait.is_zero()).min()))
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
/// rows, the others under the leases of the shards.
async fn claim_held<J: RetryJob, B: Backend>(
    shared: &Shared<J, B>,
    heads: &[Head],
    limit: usize,
    take: &mut Take<'_>,
) -> Result<()> {
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
        shards::claim(shared, &due.clear, room, take).await?;
    }
    Ok(())
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
