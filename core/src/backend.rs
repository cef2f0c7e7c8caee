//! What every database must do: one method per operation.

use std::{future::Future, ops::DerefMut};

use crate::{
    error::Result,
    op::{
        claim::{Claim, Claimed},
        counts::Counts,
        doctor::Report,
        due::LaneHeads,
        enqueue::{Enqueued, NewJob},
        finish::{Finish, Finished},
        nodes::{Heartbeat, Leave, Members},
        operate::{Operate, Operated},
        reap::{Reap, Reaped},
        renew::{Renew, Renewed},
        shards::{ClaimHeld, ClaimedHeld, HoldShards, ReleaseShards, ShardLeases},
    },
    schema::JobSchema,
};

/// A database that holds the table of one job type.
///
/// Every method is one short transaction of its own, unless its name ends in
/// `_in`. A deadlock, lock wait, lost connection or failover is retried from
/// BEGIN inside the method, and surfaces as
/// [`ErrorKind::Transient`](crate::ErrorKind::Transient) when it does not pass.
/// Dropping a future of any method leaves no transaction open.
///
/// The guarantees below are held by the conformance suite in
/// `tests/src/conformance`; the test is named with each.
pub trait Backend: Clone + Send + Sync + 'static {
    /// What the `_in` methods take: the caller's own connection, inside a
    /// transaction.
    type Connection: Send;

    /// A transaction that [`begin`](Self::begin) opened.
    type Tx: DerefMut<Target = Self::Connection> + Send;

    /// Whether leases are kept alive from a thread of their own, so that a
    /// handler which blocks its thread does not lose them.
    const KEEPS_IN_THREAD: bool;

    /// The database's name as users know it, such as `mysql8`.
    const NAME: &'static str;

    /// What a worker makes of the shards that its node owns.
    const SHARDS: ShardUse;

    /// Connects, and checks what the server can do.
    ///
    /// Held by `connect_refuses_a_url_it_cannot_use`.
    fn connect(url: &str, schema: &'static JobSchema) -> impl Future<Output = Result<Self>> + Send;

    /// The same database and connections, for another job type.
    fn for_schema(&self, schema: &'static JobSchema) -> Self;

    /// A second set of connections to the same database, for another runtime.
    fn reconnect(&self) -> impl Future<Output = Result<Self>> + Send;

    /// The job type.
    fn schema(&self) -> &'static JobSchema;

    /// Creates the table and its indexes, or verifies the table that is there
    /// and names every difference; then nothing was changed.
    ///
    /// Held by `install_creates_once_and_verifies_afterwards` and
    /// `install_names_every_difference_and_changes_nothing`.
    fn install(&self) -> impl Future<Output = Result<()>> + Send;

    /// Stores jobs: all of them or, on an error, none; a
    /// [`Transient`](crate::ErrorKind::Transient) one leaves open which. Answers one per job, in
    /// order. A key that is already there, or comes twice in the call, changes
    /// nothing and says so.
    ///
    /// Held by `enqueue_says_which_keys_were_already_there`,
    /// `enqueue_of_many_is_all_or_nothing` and
    /// `oversize_payload_is_refused_before_anything_is_sent`.
    fn enqueue(&self, jobs: Vec<NewJob>) -> impl Future<Output = Result<Vec<Enqueued>>> + Send;

    /// The same inside the caller's transaction. Nothing is retried: after a
    /// deadlock the caller's transaction is gone and only the caller can run
    /// it again.
    ///
    /// Held by `enqueue_in_follows_the_callers_transaction`.
    fn enqueue_in(
        &self,
        connection: &mut Self::Connection,
        jobs: Vec<NewJob>,
    ) -> impl Future<Output = Result<Vec<Enqueued>>> + Send;

    /// Writes SUCCESS inside the caller's transaction, if the lease still
    /// stands. Nothing is retried.
    ///
    /// Held by `finish_in_commits_with_the_callers_writes` and
    /// `finish_in_tells_a_late_finisher`.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::LeaseLost`](crate::ErrorKind::LeaseLost) when it does not;
    /// then the caller rolls back.
    fn finish_in(
        &self,
        connection: &mut Self::Connection,
        finish: Finish,
    ) -> impl Future<Output = Result<()>> + Send;

    /// Opens connections ahead, so that a worker's first statements don't wait
    /// for them. What can't be opened is opened when it is needed.
    fn warm_up(&self, connections: usize) -> impl Future<Output = ()> + Send {
        let _ = connections;
        async {}
    }

    /// The shards with waiting jobs in each lane, earliest first.
    ///
    /// Held by `due_heads_name_the_earliest_job_of_every_shard` and
    /// `due_heads_keep_lanes_apart`.
    fn due_heads(&self) -> impl Future<Output = Result<LaneHeads>> + Send;

    /// Leases due jobs. Each has one attempt more, a larger `lease_seq` and
    /// this owner; no job is leased twice at once; none runs before it is due.
    ///
    /// Held by `claim_takes_due_jobs_oldest_first`,
    /// `claim_passes_over_rows_held_by_another_worker` and
    /// `concurrent_claims_never_share_a_job`.
    fn claim(&self, claim: Claim) -> impl Future<Output = Result<Claimed>> + Send;

    /// Keeps leases that still stand, and names those that don't. A lapsed
    /// lease can't be renewed, reaped or not.
    ///
    /// Held by `renew_keeps_a_lease_and_names_lost_ones`.
    fn renew(&self, renew: Renew) -> impl Future<Output = Result<Renewed>> + Send;

    /// Writes outcomes of attempts whose lease still stands, and names those
    /// whose lease does not; for these nothing is changed. Repeating a finish
    /// that was written is no error while the row is kept as it left it.
    ///
    /// Held by `finish_moves_each_job_where_its_outcome_says`,
    /// `finish_after_the_lease_lapsed_is_refused` and
    /// `finish_by_an_older_lease_is_refused`.
    fn finish(&self, finishes: Vec<Finish>) -> impl Future<Output = Result<Finished>> + Send;

    /// Takes back lapsed leases. A job that finished, was renewed or was
    /// reclaimed after it was read stays as it is.
    ///
    /// Held by `reap_counts_a_lapsed_lease_as_a_failed_attempt` and
    /// `reap_leaves_jobs_that_moved_after_it_looked`.
    fn reap(&self, reap: Reap) -> impl Future<Output = Result<Reaped>> + Send;

    /// Holds, releases, cancels or requeues. Each job is moved by the state
    /// machine or refused with its status.
    ///
    /// Held by `operate_follows_the_state_machine`.
    fn operate(&self, operate: Operate) -> impl Future<Output = Result<Operated>> + Send;

    /// How many jobs stand in each status. Reads the whole of an index: not
    /// for every refresh of a page.
    ///
    /// Held by `counts_add_up`.
    fn counts(&self) -> impl Future<Output = Result<Counts>> + Send;

    /// Whether a job is PENDING, RETRY or RUNNING.
    ///
    /// Held by `has_open_sees_waiting_and_running_jobs` and
    /// `has_open_never_misses_a_job_that_moves`.
    fn has_open(&self) -> impl Future<Output = Result<bool>> + Send;

    /// Makes this node a member of those that work on the job type, from now
    /// for the asked time by the database's clock, and names all members.
    /// Nodes that lapsed long ago are forgotten. No heartbeat waits for
    /// another.
    ///
    /// Held by `members_are_the_nodes_whose_heartbeat_stands`,
    /// `nodes_that_lapsed_long_ago_are_forgotten` and
    /// `many_nodes_beat_at_once_without_an_error`.
    fn heartbeat(&self, heartbeat: Heartbeat) -> impl Future<Output = Result<Members>> + Send;

    /// Ends the membership of a node at once.
    ///
    /// Held by `a_node_that_left_is_no_member`.
    fn leave(&self, leave: Leave) -> impl Future<Output = Result<()>> + Send;

    /// Keeps the leases of shards that a node holds, and takes those of the
    /// asked shards that nobody holds: with a larger fence, and with what a lapse
    /// left in doubt. Answers all that it holds.
    ///
    /// Held by `a_shard_has_one_holder_and_a_fence_that_grows` and
    /// `a_lapse_leaves_jobs_in_doubt_and_a_release_does_not`.
    fn hold_shards(&self, hold: HoldShards) -> impl Future<Output = Result<ShardLeases>> + Send;

    /// Ends leases of shards at once, if they still stand.
    ///
    /// Held by `a_lapse_leaves_jobs_in_doubt_and_a_release_does_not`.
    fn release_shards(&self, release: ReleaseShards) -> impl Future<Output = Result<()>> + Send;

    /// Reads due new jobs of shards that the node holds. Writes nothing: until
    /// they are finished, their rows look as if they waited.
    ///
    /// Held by `claim_under_a_shards_lease_writes_nothing` and
    /// `claim_without_the_shards_lease_gives_nothing`.
    fn claim_held(&self, claim: ClaimHeld) -> impl Future<Output = Result<ClaimedHeld>> + Send;

    /// What the connected server really gives, and how its tables stand:
    /// reads alone, and a server that is not as it should be is reported and
    /// is no error. Its statements are not of the catalogue, as those of
    /// `install` are not.
    ///
    /// Held by `doctor_finds_no_fault_in_a_healthy_installed_database`,
    /// `doctor_names_the_missing_table_and_makes_none` and
    /// `doctor_names_each_difference_of_the_table`.
    fn doctor(&self) -> impl Future<Output = Result<Report>> + Send;

    /// Opens a transaction on one of the backend's own connections.
    fn begin(&self) -> impl Future<Output = Result<Self::Tx>> + Send;

    /// Commits it.
    fn commit(&self, tx: Self::Tx) -> impl Future<Output = Result<()>> + Send;

    /// Undoes it.
    fn rollback(&self, tx: Self::Tx) -> impl Future<Output = Result<()>> + Send;

    /// Closes the connections, after those in use come back.
    fn close(&self) -> impl Future<Output = ()> + Send;
}

/// What a worker makes of the shards that its node owns.
///
/// Owning a shard is a preference that removes contention. Whether a claim
/// gets a job is decided by the row alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ShardUse {
    /// It claims from its own shards only, since nodes that read the same
    /// shard take each other's picks away. A node that does not know whether
    /// its membership stands goes on as with [`OwnFirst`](Self::OwnFirst).
    Own,
    /// It claims from its own shards, then from any with due work.
    OwnFirst,
    /// It claims from any shard with due work.
    Any,
}
