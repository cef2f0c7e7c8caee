//! How nodes shared the shards: whether each had a living owner, whether it was
//! served while it had work, and whether nodes kept out of each other's.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    time::Duration,
};

use retryjob_core::{DbTime, Status, op::nodes::NodeName, shard::owner_of};

use super::{
    moves::{Moved, State},
    record::{Call, Event, Record},
};

/// A change of a node's row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeMoved {
    /// The database's clock when the statement began.
    pub at: DbTime,
    pub node: NodeName,
    /// When its membership ends; `None` when the row was removed.
    pub until: Option<DbTime>,
}

/// The longest time that a shard belonged to nodes that were killed, one after
/// the other, by the database's clock and counted from their last heartbeats.
///
/// While there is no member at all, nodes that live work on any shard.
#[must_use]
pub fn longest_unowned(
    moves: &[NodeMoved],
    is_killed: impl Fn(&NodeName) -> bool,
    shards: u16,
) -> Duration {
    let stays = stays(moves);
    let mut edges: BTreeSet<DbTime> = BTreeSet::new();
    for stay in &stays {
        edges.extend([stay.from, stay.last_beat, stay.until]);
    }
    let mut longest = Duration::ZERO;
    let mut unowned_since: BTreeMap<u16, DbTime> = BTreeMap::new();
    let mut members = Vec::new();
    let mut owners = Vec::new();
    for at in edges {
        let present: Vec<&Stay> = stays.iter().filter(|stay| stay.is_member(at)).collect();
        let names: Vec<NodeName> = present.iter().map(|stay| stay.node.clone()).collect();
        if names != members {
            let of = |shard_id| owner_of(shard_id, &names).cloned();
            owners = (0..shards).map(of).collect();
            members = names;
        }
        let gone: BTreeSet<&NodeName> = present
            .iter()
            .filter(|stay| at >= stay.last_beat && is_killed(&stay.node))
            .map(|stay| &stay.node)
            .collect();
        for (shard_id, owner) in (0..).zip(&owners) {
            let is_unowned = owner.as_ref().is_some_and(|owner| gone.contains(owner));
            let since = *unowned_since.entry(shard_id).or_insert(at);
            longest = longest.max(at.since(since));
            if !is_unowned {
                unowned_since.remove(&shard_id);
            }
        }
    }
    longest
}

/// A time through which a node was a member.
#[derive(Debug)]
struct Stay {
    node: NodeName,
    from: DbTime,
    last_beat: DbTime,
    until: DbTime,
}

impl Stay {
    fn is_member(&self, at: DbTime) -> bool {
        self.from <= at && at < self.until
    }
}

fn stays(moves: &[NodeMoved]) -> Vec<Stay> {
    let mut stays: Vec<Stay> = Vec::new();
    for moved in moves {
        let last = stays.iter_mut().rev().find(|stay| stay.node == moved.node);
        match (last, moved.until) {
            (Some(last), None) => last.until = last.until.min(moved.at),
            (Some(last), Some(until)) if moved.at <= last.until => {
                last.last_beat = moved.at;
                last.until = until;
            }
            (_, Some(until)) => stays.push(Stay {
                node: moved.node.clone(),
                from: moved.at,
                last_beat: moved.at,
                until,
            }),
            (None, None) => {}
        }
    }
    stays
}

/// The longest time that a shard had due work and nobody claimed any of it, by
/// the database's clock.
///
/// # Panics
///
/// When a job's shard is not known.
#[must_use]
pub fn longest_unclaimed(moves: &[Moved], shard_of: &BTreeMap<u64, u16>) -> Duration {
    let mut shards: HashMap<u16, Shard> = HashMap::new();
    let mut longest = Duration::ZERO;
    for moved in moves {
        let shard = shards.entry(shard_of[&moved.id]).or_default();
        let was_waiting = moved.before.as_ref().is_some_and(waits);
        let is_claim = moved.after.as_ref().is_some_and(runs) && was_waiting;
        if is_claim {
            longest = longest.max(shard.claimed(moved.at));
        }
        shard.due.retain(|(_, id)| *id != moved.id);
        if let Some(after) = moved.after.as_ref().filter(|after| waits(after)) {
            let due_at = after.next_attempt_at.max(moved.at);
            shard.due.insert((due_at, moved.id));
        }
    }
    longest
}

/// The jobs of a shard that wait, and when one of them was last claimed.
#[derive(Default)]
struct Shard {
    due: BTreeSet<(DbTime, u64)>,
    claimed_at: Option<DbTime>,
}

impl Shard {
    /// How long its work had been due, and nobody had come for it.
    fn claimed(&mut self, at: DbTime) -> Duration {
        let due_at = self.due.first().map(|(due_at, _)| *due_at);
        let since = due_at.max(self.claimed_at);
        self.claimed_at = Some(at);
        since.map_or(Duration::ZERO, |since| at.since(since))
    }
}

fn waits(state: &State) -> bool {
    matches!(state.status, Status::Pending | Status::Retry)
}

fn runs(state: &State) -> bool {
    state.status == Status::Running
}

/// Claims, and those among them that asked for a shard while a claim of
/// another node asked for it as well.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Contention {
    pub claim_count: usize,
    pub contended_count: usize,
}

/// Counts them.
#[must_use]
pub fn contention(records: &[Record]) -> Contention {
    let mut open: HashMap<(u32, u64), (&str, &[u16])> = HashMap::new();
    let mut contended = BTreeSet::new();
    let mut claim_count = 0;
    for record in records {
        let key = (record.process, record.call);
        match &record.event {
            Event::Invoke(Call::Claim { owner, shards }) => {
                claim_count += 1;
                for (other_key, (other, theirs)) in &open {
                    let is_shared = shards.iter().any(|shard| theirs.contains(shard));
                    if is_shared && node_of(owner) != node_of(other) {
                        contended.extend([key, *other_key]);
                    }
                }
                open.insert(key, (owner, shards));
            }
            Event::Ok(_) | Event::Fail(_) | Event::Unknown(_) => {
                open.remove(&key);
            }
            _ => {}
        }
    }
    Contention {
        claim_count,
        contended_count: contended.len(),
    }
}

fn node_of(owner: &str) -> &str {
    owner.rsplit_once(':').map_or(owner, |(node, _)| node)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::history::record::Answer;

    fn state(status: Status, next_attempt_at: i64) -> State {
        State {
            status,
            attempt_no: 0,
            lease_seq: 0,
            lease_owner: None,
            lease_until: None,
            next_attempt_at: DbTime::from_us(next_attempt_at),
        }
    }

    fn enqueued(id: u64, at: i64, due_at: i64) -> Moved {
        Moved {
            at: DbTime::from_us(at),
            id,
            before: None,
            after: Some(state(Status::Pending, due_at)),
        }
    }

    fn claimed(id: u64, at: i64) -> Moved {
        Moved {
            at: DbTime::from_us(at),
            id,
            before: Some(state(Status::Pending, 0)),
            after: Some(state(Status::Running, 0)),
        }
    }

    #[test]
    fn a_shard_is_unclaimed_from_its_earliest_due_job_or_its_last_claim_on() {
        let shard_of = BTreeMap::from([(1, 7), (2, 7), (3, 8)]);
        let us = Duration::from_micros;
        for (moves, longest) in [
            (vec![enqueued(1, 10, 0), claimed(1, 15)], 5),
            // Not before it is due.
            (vec![enqueued(1, 10, 40), claimed(1, 45)], 5),
            // Another job of the shard was claimed meanwhile.
            (
                vec![
                    enqueued(1, 10, 0),
                    enqueued(2, 10, 0),
                    claimed(1, 30),
                    claimed(2, 45),
                ],
                20,
            ),
            // A job of another shard says nothing.
            (
                vec![
                    enqueued(1, 10, 0),
                    enqueued(3, 10, 0),
                    claimed(3, 20),
                    claimed(1, 60),
                ],
                50,
            ),
        ] {
            assert_eq!(longest_unclaimed(&moves, &shard_of), us(longest));
        }
    }

    fn beat(node: &str, at: i64, until: i64) -> NodeMoved {
        NodeMoved {
            at: DbTime::from_us(at),
            node: NodeName::from_row(node),
            until: Some(DbTime::from_us(until)),
        }
    }

    #[test]
    fn a_shard_is_unowned_while_its_owner_is_killed_and_still_a_member() {
        let us = Duration::from_micros;
        let of_a = |node: &NodeName| node.as_str() == "a";
        let of_both = |node: &NodeName| ["a", "b"].contains(&node.as_str());
        let left = NodeMoved {
            until: None,
            ..beat("a", 90, 0)
        };
        // With this many shards every member has some.
        let alone = [beat("a", 0, 100), beat("a", 80, 180)];
        assert_eq!(longest_unowned(&alone, |_| false, 64), us(0));
        assert_eq!(longest_unowned(&alone, of_a, 64), us(100));
        let beside = [
            beat("a", 0, 100),
            beat("b", 10, 110),
            beat("b", 90, 190),
            beat("b", 180, 280),
        ];
        assert_eq!(longest_unowned(&beside, of_a, 64), us(100));
        // Some shards wait for `b` after they waited for `a`.
        assert_eq!(longest_unowned(&beside[..3], of_both, 64), us(190));
        let leaves = [beat("a", 0, 100), beat("b", 10, 110), left];
        assert_eq!(longest_unowned(&leaves, |_| false, 64), us(0));
    }

    fn record(call: u64, event: Event) -> Record {
        Record {
            process: 1,
            call,
            event,
        }
    }

    fn claim(call: u64, owner: &str, shards: &[u16]) -> Record {
        let (owner, shards) = (owner.to_owned(), shards.to_vec());
        record(call, Event::Invoke(Call::Claim { owner, shards }))
    }

    fn answered(call: u64) -> Record {
        record(call, Event::Ok(Answer::Claimed(Vec::new())))
    }

    #[test]
    fn claims_are_contended_when_two_nodes_ask_for_a_shard_at_once() {
        let contended = |records: &[Record]| contention(records).contended_count;
        let first = claim(1, "a:1", &[1, 2]);
        let at_once = |other| contended(&[first.clone(), other, answered(1), answered(2)]);
        assert_eq!(at_once(claim(2, "b:1", &[2, 3])), 2);
        assert_eq!(at_once(claim(2, "b:1", &[3])), 0);
        assert_eq!(at_once(claim(2, "a:2", &[2])), 0);
        let later = [first, answered(1), claim(2, "b:1", &[2])];
        assert_eq!(contended(&later), 0);
        assert_eq!(contention(&later).claim_count, 2);
    }
}
