use std::time::Duration;

use retryjob_core::{
    Backend, Status,
    op::{claim::Lease, due::Lane, renew::Renew},
    retry::Decision,
};

use crate::{
    TestDatabase,
    act::{claim_shard, enqueue, failed, finish, owner, running, succeeded},
    jobs::{JOB, LEASE, job, jobs},
};

fn renew(leases: &[&Lease], lease: Duration) -> Renew {
    Renew {
        leases: leases.iter().map(|lease| (*lease).clone()).collect(),
        lease,
    }
}

pub async fn renew_keeps_a_lease_and_names_lost_ones<D: TestDatabase>(db: D) {
    let backend = db.installed(&JOB).await;
    enqueue(&backend, jobs(0..6)).await;
    let claimed = claim_shard(&backend, Lane::Fresh, 0, 6).await;
    let mut leases: Vec<_> = claimed.iter().map(|job| job.lease.clone()).collect();
    assert!(finish(&backend, succeeded(&claimed[1])).await);
    let retry = failed(&claimed[2], Decision::Retry(Duration::ZERO));
    assert!(finish(&backend, retry).await);
    leases[3].owner = owner();
    leases[4].lease_seq += 1;
    let missing = Lease {
        id: leases[5].id + 1000,
        ..leases[5].clone()
    };
    let before = db.rows(&JOB).await;

    let mut all: Vec<_> = leases.iter().collect();
    all.push(&missing);
    let mut lost = backend.renew(renew(&all, LEASE * 4)).await.unwrap().lost;
    lost.sort_unstable();
    let mut expected = [1, 2, 3, 4].map(|at: usize| leases[at].id).to_vec();
    expected.push(missing.id);
    expected.sort_unstable();
    assert_eq!(lost, expected);

    for (at, old) in before.iter().enumerate() {
        let row = db.row(&JOB, old.id).await;
        if at == 0 || at == 5 {
            assert!(row.lease_until > old.lease_until);
            assert_eq!((row.status, row.lease_seq), (Status::Running, 1));
        } else {
            assert_eq!(&row, old);
        }
    }
}

pub async fn renew_of_a_lapsed_lease_is_refused<D: TestDatabase>(db: D) {
    let backend = db.installed(&JOB).await;
    let job = running(&backend, job(1)).await;
    db.pass(&JOB, LEASE + Duration::from_secs(1)).await;
    let before = db.rows(&JOB).await;
    let renewed = backend.renew(renew(&[&job.lease], LEASE)).await.unwrap();
    assert_eq!(renewed.lost, [job.lease.id]);
    assert_eq!(db.rows(&JOB).await, before);
}

pub async fn renew_counts_from_now<D: TestDatabase>(db: D) {
    const STEP: Duration = Duration::from_secs(40);
    let backend = db.installed(&JOB).await;
    let job = running(&backend, job(1)).await;
    // Renewed twice, the job outlives its first lease.
    for _ in 0..2 {
        db.pass(&JOB, STEP).await;
        let renewed = backend.renew(renew(&[&job.lease], LEASE)).await.unwrap();
        assert!(renewed.lost.is_empty());
    }
    let row = db.row(&JOB, job.lease.id).await;
    let valid = row.lease_until.unwrap().since(row.updated_at);
    assert!(valid >= STEP * 2 + LEASE, "{valid:?}");
    assert!(
        valid < STEP * 2 + LEASE + Duration::from_secs(30),
        "{valid:?}"
    );
    assert!(finish(&backend, succeeded(&job)).await);
}
