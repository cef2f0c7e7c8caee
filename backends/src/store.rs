//! One job type in one database: what every backend's public type wraps.

use std::sync::Arc;

use retryjob_core::{
    Error, ErrorKind, JobSchema, Result,
    op::{
        claim::{Claim, Claimed},
        counts::Counts,
        doctor::Report,
        due::LaneHeads,
        enqueue::{Enqueued, NewJob},
        finish::{Finish, Finished},
        nodes::{Heartbeat, Leave, Members},
        operate::{Operate, Operated},
        reap::{Lapsed, Reap, Reaped},
        renew::{Renew, Renewed},
        shards::{ClaimHeld, ClaimedHeld, HoldShards, ReleaseShards, ShardLeases},
    },
    sql::Catalogue,
};
use sqlx::{Database, Pool, Transaction};

use crate::{
    catalogues::catalogue,
    fault::Fault,
    kind::Kind,
    op::{
        Operation,
        counts::{AnyOpen, CountAll},
        doctor::doctor,
        due::Heads,
        enqueue::{EnqueueAll, EnqueueOne, check_bytes},
        finish::FinishAll,
        install::install,
        nodes::{Beat, LeaveNow},
        operate::OperateAll,
        reap::{LookLapsed, TakeBack},
        renew::RenewAll,
        shards::{Hold, PickHeld, Release},
    },
    retry,
    session::Session,
};

type ConnectionOf<K> = <<K as Kind>::Db as Database>::Connection;

/// A job type on connections to one database.
pub(crate) struct Store<K: Kind> {
    pub(crate) pool: Pool<K::Db>,
    pub(crate) schema: &'static JobSchema,
    catalogue: Arc<Catalogue>,
    bytes_max: usize,
}

impl<K: Kind> Clone for Store<K> {
    fn clone(&self) -> Self {
        Self {
            pool: self.pool.clone(),
            schema: self.schema,
            catalogue: Arc::clone(&self.catalogue),
            bytes_max: self.bytes_max,
        }
    }
}

impl<K: Kind> Store<K> {
    pub(crate) async fn connect(url: &str, schema: &'static JobSchema) -> Result<Self> {
        Self::from_pool(K::open(url).await?, schema).await
    }

    pub(crate) async fn from_pool(pool: Pool<K::Db>, schema: &'static JobSchema) -> Result<Self> {
        Ok(Self {
            bytes_max: K::check(&pool).await?,
            pool,
            schema,
            catalogue: catalogue(schema, K::dialect()),
        })
    }

    pub(crate) fn for_schema(&self, schema: &'static JobSchema) -> Self {
        Self {
            schema,
            catalogue: catalogue(schema, K::dialect()),
            ..self.clone()
        }
    }

    pub(crate) fn reconnect(&self) -> Self {
        Self {
            pool: K::second_pool(&self.pool),
            ..self.clone()
        }
    }

    pub(crate) fn with_catalogue(&self, catalogue: Arc<Catalogue>) -> Self {
        Self {
            catalogue,
            ..self.clone()
        }
    }

    pub(crate) fn catalogue(&self) -> &Catalogue {
        &self.catalogue
    }

    /// Runs an operation, again from BEGIN while what stops it passes.
    pub(crate) async fn run<O: Operation>(&self, op: O) -> Result<O::Answer> {
        retry::run::<K, O>(&self.pool, &self.catalogue, op).await
    }

    pub(crate) async fn install(&self) -> Result<()> {
        let mut tries = retry::Tries::new();
        loop {
            match install::<K>(&self.pool, &self.catalogue, self.schema).await {
                Ok(()) => return Ok(()),
                Err(fault) => tries.pause(fault).await?,
            }
        }
    }

    pub(crate) async fn enqueue(&self, jobs: Vec<NewJob>) -> Result<Vec<Enqueued>> {
        check_bytes(self.schema, &jobs, self.bytes_max)?;
        match jobs.as_slice() {
            [] => Ok(Vec::new()),
            [only] => self.run(EnqueueOne(only)).await,
            several => self.run(EnqueueAll::new(several, self.bytes_max)).await,
        }
    }

    pub(crate) async fn enqueue_in(
        &self,
        connection: &mut ConnectionOf<K>,
        jobs: Vec<NewJob>,
    ) -> Result<Vec<Enqueued>> {
        check_bytes(self.schema, &jobs, self.bytes_max)?;
        let mut op = EnqueueAll::new(&jobs, self.bytes_max);
        let ran = op.run(connection, &self.catalogue, false).await;
        ran.map_err(|fault| self.told(fault))
    }

    /// What a caller is told of a fault in a transaction of the caller's own.
    fn told(&self, fault: Fault) -> Error {
        K::note_fault(&self.pool, &fault);
        fault.into_error()
    }

    /// Writes one finish on a caller's connection, once.
    pub(crate) async fn finish_in(
        &self,
        connection: &mut ConnectionOf<K>,
        finish: Finish,
    ) -> Result<()> {
        let id = finish.lease.id;
        let mut op = FinishAll::new(self.schema, vec![finish]);
        let ran = op.run(connection, &self.catalogue, false).await;
        if ran.map_err(|fault| self.told(fault))?.lost.is_empty() {
            return Ok(());
        }
        Err(Error::new(
            ErrorKind::LeaseLost,
            format!(
                "the lease of job {id} in `{}` lapsed or went to another worker; roll back",
                self.schema.table
            ),
        ))
    }

    pub(crate) async fn warm_up(&self, connections: usize) {
        let mut opening = tokio::task::JoinSet::new();
        for _ in 0..connections {
            let pool = self.pool.clone();
            opening.spawn(async move { pool.acquire().await });
        }
        // All are held until the last one is open: else one could be opened and
        // given out again instead of several.
        drop(opening.join_all().await);
    }

    pub(crate) async fn due_heads(&self) -> Result<LaneHeads> {
        self.run(Heads).await
    }

    pub(crate) async fn claim(&self, claim: Claim) -> Result<Claimed> {
        if claim.limit == 0 || claim.heads.is_empty() {
            return Ok(Claimed::default());
        }
        K::claim(self, claim).await
    }

    pub(crate) async fn renew(&self, renew: Renew) -> Result<Renewed> {
        if renew.leases.is_empty() {
            return Ok(Renewed::default());
        }
        self.run(RenewAll::new(renew)).await
    }

    pub(crate) async fn finish(&self, finishes: Vec<Finish>) -> Result<Finished> {
        if finishes.is_empty() {
            return Ok(Finished::default());
        }
        self.run(FinishAll::new(self.schema, finishes)).await
    }

    pub(crate) async fn reap(&self, reap: Reap) -> Result<Reaped> {
        let lapsed = self.look_lapsed(reap.limit).await?;
        let has_more = reap.limit > 0 && lapsed.len() >= usize::from(reap.limit);
        let finishes = self.take_back(lapsed).await?;
        Ok(Reaped { finishes, has_more })
    }

    pub(crate) async fn look_lapsed(&self, limit: u16) -> Result<Vec<Lapsed>> {
        if limit == 0 {
            return Ok(Vec::new());
        }
        self.run(LookLapsed { limit }).await
    }

    pub(crate) async fn take_back(&self, lapsed: Vec<Lapsed>) -> Result<Vec<Finish>> {
        if lapsed.is_empty() {
            return Ok(Vec::new());
        }
        self.run(TakeBack::new(lapsed, &self.schema.retry)).await
    }

    pub(crate) async fn operate(&self, operate: Operate) -> Result<Operated> {
        if operate.ids.is_empty() {
            return Ok(Operated::default());
        }
        self.run(OperateAll::new(operate)?).await
    }

    pub(crate) async fn counts(&self) -> Result<Counts> {
        self.run(CountAll).await
    }

    pub(crate) async fn has_open(&self) -> Result<bool> {
        self.run(AnyOpen).await
    }

    pub(crate) async fn heartbeat(&self, heartbeat: Heartbeat) -> Result<Members> {
        let schema = self.schema;
        self.run(Beat { schema, heartbeat }).await
    }

    pub(crate) async fn leave(&self, leave: Leave) -> Result<()> {
        let schema = self.schema;
        self.run(LeaveNow { schema, leave }).await
    }

    pub(crate) async fn hold_shards(&self, hold: HoldShards) -> Result<ShardLeases> {
        let schema = self.schema;
        self.run(Hold { schema, hold }).await
    }

    pub(crate) async fn release_shards(&self, release: ReleaseShards) -> Result<()> {
        if release.fences.is_empty() {
            return Ok(());
        }
        let schema = self.schema;
        self.run(Release { schema, release }).await
    }

    pub(crate) async fn claim_held(&self, claim: ClaimHeld) -> Result<ClaimedHeld> {
        if claim.limit == 0 || claim.shards.is_empty() {
            return Ok(ClaimedHeld::default());
        }
        let schema = self.schema;
        self.run(PickHeld { schema, claim }).await
    }

    pub(crate) async fn doctor(&self) -> Result<Report> {
        doctor::<K>(&self.pool, &self.catalogue, self.schema).await
    }

    pub(crate) async fn begin(&self) -> Result<Transaction<'static, K::Db>> {
        retry::begin::<K>(&self.pool).await
    }

    pub(crate) async fn commit(&self, tx: Transaction<'static, K::Db>) -> Result<()> {
        let committed = tx.commit().await;
        committed.map_err(|error| self.told(ConnectionOf::<K>::fault(error)))
    }

    pub(crate) async fn rollback(&self, tx: Transaction<'static, K::Db>) -> Result<()> {
        let undone = tx.rollback().await;
        undone.map_err(|error| ConnectionOf::<K>::fault(error).into_error())
    }
}
