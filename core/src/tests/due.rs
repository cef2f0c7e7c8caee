use std::time::Duration;

use crate::{
    op::due::{DueHeads, Head, Lane},
    state::{Move, Status},
    time::DbTime,
};

fn heads(now_us: i64, heads: &[(u16, i64)]) -> DueHeads {
    let heads = heads.iter().map(|&(shard_id, us)| Head {
        shard_id,
        next_attempt_at: DbTime::from_us(us),
    });
    DueHeads {
        now: DbTime::from_us(now_us),
        heads: heads.collect(),
    }
}

fn due_shards(heads: &DueHeads) -> Vec<u16> {
    heads.due().map(|head| head.shard_id).collect()
}

#[test]
fn a_shard_is_due_from_the_very_microsecond_of_its_earliest_job() {
    let heads = heads(100, &[(7, 50), (2, 99), (5, 100), (1, 101)]);
    assert_eq!(due_shards(&heads), [7, 2, 5]);
}

#[test]
fn the_wait_ends_when_the_earliest_job_falls_due() {
    let ahead = heads(100, &[(1, 350), (2, 900)]);
    assert_eq!(due_shards(&ahead), [0; 0]);
    assert_eq!(ahead.wait(), Some(Duration::from_micros(250)));
}

#[test]
fn there_is_no_wait_while_a_job_is_due() {
    assert_eq!(heads(100, &[(1, 100)]).wait(), Some(Duration::ZERO));
    assert_eq!(
        heads(100, &[(1, -5), (2, 900)]).wait(),
        Some(Duration::ZERO)
    );
}

#[test]
fn without_waiting_jobs_there_is_nothing_to_wait_for() {
    let none = heads(100, &[]);
    assert_eq!(none.wait(), None);
    assert_eq!(none.due().count(), 0);
}

#[test]
fn the_lanes_are_the_statuses_that_a_claim_starts_from() {
    let waiting = Lane::ALL.map(Lane::status);
    assert_eq!(waiting, [Status::Pending, Status::Retry]);
    assert_eq!(Move::Claim.sources().collect::<Vec<_>>(), waiting);
}
