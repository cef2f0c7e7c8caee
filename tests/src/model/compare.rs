//! What has to be the same on both sides after every step.

use retryjob_core::{
    Backend, DbTime, Finished,
    memory::JobRow,
    op::due::{DueHeads, Lane},
};

use super::{HALF, Pair};
use crate::TestDatabase;

impl<D: TestDatabase> Pair<'_, D> {
    pub(super) async fn compare(&self, context: &str) {
        let here = self.memory.due_heads().await.unwrap().fresh;
        let there = self.backend.due_heads().await.unwrap().fresh;
        let (now_here, now_there) = (here.now, there.now);

        let expected = self.memory.rows();
        let rows = self.db.rows(self.schema).await;
        self.compare_rows(rows, expected, now_there, now_here, context);
        if self.schema.finished == Finished::History {
            let expected = self.memory.history();
            let rows = self.db.history(self.schema).await;
            self.compare_rows(rows, expected, now_there, now_here, context);
        }

        for lane in Lane::ALL {
            let here = self.memory.due_heads().await.unwrap().of(lane);
            let there = self.backend.due_heads().await.unwrap().of(lane);
            let shards = |heads: &mut dyn Iterator<Item = u16>| {
                let mut shards: Vec<_> = heads.collect();
                shards.sort_unstable();
                shards
            };
            let all = |due: &DueHeads| shards(&mut due.heads.iter().map(|head| head.shard_id));
            let due = |due: &DueHeads| shards(&mut due.due().map(|head| head.shard_id));
            assert_eq!(all(&there), all(&here), "{lane:?} after {context}");
            assert_eq!(due(&there), due(&here), "{lane:?} after {context}");
        }
        let counts = self.backend.counts().await.unwrap();
        let expected = self.memory.counts().await.unwrap();
        assert_eq!(counts, expected, "after {context}");
        let has_open = self.backend.has_open().await.unwrap();
        assert_eq!(has_open, expected.open() > 0, "after {context}");
    }

    fn compare_rows(
        &self,
        rows: Vec<JobRow>,
        expected: Vec<JobRow>,
        now_there: DbTime,
        now_here: DbTime,
        context: &str,
    ) {
        assert_eq!(rows.len(), expected.len(), "rows after {context}");
        for (mut row, expected) in rows.into_iter().zip(expected) {
            row.id = self.here(row.id);
            for (what, there, here) in [
                (
                    "next_attempt_at",
                    row.next_attempt_at,
                    expected.next_attempt_at,
                ),
                ("due_at", row.due_at, expected.due_at),
                ("created_at", row.created_at, expected.created_at),
                (
                    "lease_until",
                    row.lease_until.unwrap_or(now_there),
                    expected.lease_until.unwrap_or(now_here),
                ),
            ] {
                let there = there.us() - now_there.us();
                let here = here.us() - now_here.us();
                let apart = u128::from(there.abs_diff(here));
                assert!(
                    apart < HALF.as_micros() / 2,
                    "{what} of {row:?} is {apart} µs from {expected:?} after {context}"
                );
            }
            assert_eq!(
                row.lease_until.is_some(),
                expected.lease_until.is_some(),
                "after {context}"
            );
            // Compared above, as far as two clocks can be.
            row.next_attempt_at = expected.next_attempt_at;
            row.due_at = expected.due_at;
            row.lease_until = expected.lease_until;
            row.created_at = expected.created_at;
            row.updated_at = expected.updated_at;
            assert_eq!(row, expected, "after {context}");
        }
    }
}
