use std::time::Duration;

use retryjob_core::op::due::Lane;

use crate::{
    act::{claim_as, owner, waiting},
    database::RowLocks,
    jobs::{JOB, random_job},
};

/// Between two looks at what waits. MySQL tells of transactions from a copy,
/// which it makes anew when nobody has asked for a tenth of a second.
const POLL: Duration = Duration::from_millis(200);

/// Between its two steps the job is claimed by another, and given back for
/// later: it has the status that was read, and yet is not due.
pub async fn claim_leaves_a_job_that_was_claimed_and_given_back_since_it_was_picked<D>(db: D)
where
    D: RowLocks,
{
    let backend = db.installed(&JOB).await;
    for lane in [Lane::Fresh, Lane::Retry] {
        let id = waiting(&backend, lane, vec![random_job()]).await[0];
        let before = db.row(&JOB, id).await;
        // A server tells of waits for a moment after they are over.
        while db.is_any_waiting().await {
            tokio::time::sleep(POLL).await;
        }
        let lock = db.lock_row(&JOB, id).await;
        let claiming = {
            let backend = backend.clone();
            tokio::spawn(async move { claim_as(&backend, owner(), lane, 9).await })
        };
        while !db.is_any_waiting().await {
            assert!(!claiming.is_finished(), "the claim waits for the row");
            tokio::time::sleep(POLL).await;
        }
        let table = JOB.table;
        let later = "next_attempt_at = next_attempt_at + INTERVAL 1 HOUR";
        let moved =
            format!("UPDATE {table} SET lease_seq = lease_seq + 1, {later} WHERE id = {id}");
        db.change(lock, &moved).await;

        assert_eq!(claiming.await.unwrap(), [], "{lane:?}");
        let after = db.row(&JOB, id).await;
        assert_eq!(after.status, before.status);
        assert_eq!(after.lease_seq, before.lease_seq + 1);
    }
}
