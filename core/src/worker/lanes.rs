//! How a batch is shared between new and retried jobs.

use crate::schema::Lanes;

/// How many of the next `limit` turns belong to new jobs, when turns go round
/// in cycles of the two weights and `turn` have been taken before.
///
/// Counting turns, rather than cutting each batch, gives the smaller lane its
/// share even when every batch has a single place.
pub(super) fn fresh_share(lanes: Lanes, turn: u64, limit: usize) -> usize {
    let fresh = u64::from(lanes.fresh);
    let cycle = fresh + u64::from(lanes.retry);
    let limit = limit as u64;
    let up_to = |turns: u64| turns / cycle * fresh + (turns % cycle).min(fresh);
    usize::try_from(up_to(turn + limit) - up_to(turn)).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_lanes_get_their_share_whatever_the_batch_size() {
        let lanes = Lanes { fresh: 3, retry: 1 };
        for limit in [1, 2, 3, 7, 100] {
            let mut fresh = 0;
            let mut turn = 0;
            // Whole cycles of four turns, whatever the size.
            for _ in 0..400 {
                fresh += fresh_share(lanes, turn, limit);
                turn += limit as u64;
            }
            assert_eq!(fresh as u64 * 4, turn * 3, "batches of {limit}");
        }
    }

    #[test]
    fn a_share_never_exceeds_the_batch() {
        let lanes = Lanes {
            fresh: 1000,
            retry: 1,
        };
        assert_eq!(fresh_share(lanes, 0, 5), 5);
        assert_eq!(fresh_share(lanes, 1000, 1), 0);
    }
}
