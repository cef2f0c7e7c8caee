//! The public type of each backend: the same methods around its own store.

/// Makes the public type of a backend, with `Backend` and the constructors.
macro_rules! backend {
    ($(#[$doc:meta])* $name:ident, $kind:ty, $db:ty, $connection:ty) => {
        $(#[$doc])*
        #[derive(Clone)]
        pub struct $name($crate::store::Store<$kind>);

        impl ::std::fmt::Debug for $name {
            fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                f.debug_struct(stringify!($name))
                    .field("table", &self.0.schema.table)
                    .finish_non_exhaustive()
            }
        }

        impl $name {
            /// A pool of connections that are set up as the statements need
            /// them, for [`from_pool`](Self::from_pool) and for the caller's
            /// own work beside it.
            ///
            /// # Errors
            ///
            /// The same as `connect`.
            pub async fn pool(url: &str) -> ::retryjob_core::Result<::sqlx::Pool<$db>> {
                <$kind as $crate::kind::Kind>::open(url).await
            }

            /// A job type on a pool that [`pool`](Self::pool) made.
            ///
            /// # Errors
            ///
            /// `Config` when the pool's connections are set up in another way,
            /// naming what differs.
            pub async fn from_pool(
                pool: ::sqlx::Pool<$db>,
                schema: &'static ::retryjob_core::JobSchema,
            ) -> ::retryjob_core::Result<Self> {
                $crate::store::Store::from_pool(pool, schema).await.map(Self)
            }

            /// The connections, for the caller's own work.
            #[must_use]
            pub fn connections(&self) -> &::sqlx::Pool<$db> {
                &self.0.pool
            }

            /// Every statement that this job type sends, besides those that
            /// [`session_statements`](Self::session_statements) and
            /// transactions send.
            #[must_use]
            pub fn catalogue(&self) -> &::retryjob_core::sql::Catalogue {
                self.0.catalogue()
            }

            /// What every new connection sends before the first statement.
            #[must_use]
            pub fn session_statements() -> Vec<&'static str> {
                <$kind as $crate::kind::Kind>::session_statements()
            }

            /// Every statement of a job type, without a connection.
            #[must_use]
            pub fn statements(
                schema: &'static ::retryjob_core::JobSchema,
            ) -> ::std::sync::Arc<::retryjob_core::sql::Catalogue> {
                let dialect = <$kind as $crate::kind::Kind>::dialect();
                $crate::catalogues::catalogue(schema, dialect)
            }

            /// How the catalogue is written, for tests that write it otherwise.
            #[doc(hidden)]
            #[must_use]
            pub fn dialect() -> &'static dyn ::retryjob_core::sql::Dialect {
                <$kind as $crate::kind::Kind>::dialect()
            }

            /// The same job type with another catalogue, for tests that show
            /// what each condition of a statement is needed for.
            #[doc(hidden)]
            #[must_use]
            pub fn with_catalogue(
                &self,
                catalogue: ::std::sync::Arc<::retryjob_core::sql::Catalogue>,
            ) -> Self {
                Self(self.0.with_catalogue(catalogue))
            }

            /// The first half of `reap`: attempts whose lease has lapsed,
            /// longest first. Changes and locks nothing.
            ///
            /// # Errors
            ///
            /// `Transient` when the database stays busy or away.
            pub async fn look_lapsed(
                &self,
                limit: u16,
            ) -> ::retryjob_core::Result<Vec<::retryjob_core::op::reap::Lapsed>> {
                self.0.look_lapsed(limit).await
            }

            /// The second half of `reap`: ends those of these attempts whose
            /// lease is still the lapsed one, and answers them.
            ///
            /// # Errors
            ///
            /// `Transient` when the database stays busy or away.
            pub async fn take_back(
                &self,
                lapsed: Vec<::retryjob_core::op::reap::Lapsed>,
            ) -> ::retryjob_core::Result<Vec<::retryjob_core::op::finish::Finish>> {
                self.0.take_back(lapsed).await
            }
        }

        $crate::surface::implement!($name, $kind, $db, $connection);
    };
}

/// Implements `Backend` by the store's methods, each in a span of its own.
macro_rules! implement {
    ($name:ident, $kind:ty, $db:ty, $connection:ty) => {
        const _: () = {
            use ::retryjob_core::{
                Backend, JobSchema, Result, ShardUse,
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
            };
            use ::tracing::Instrument as _;
            use $crate::{kind::Kind, store::Store, surface::operation};

            impl Backend for $name {
                type Connection = $connection;
                type Tx = ::sqlx::Transaction<'static, $db>;
                const KEEPS_IN_THREAD: bool = true;
                const NAME: &'static str = <$kind as Kind>::NAME;
                const SHARDS: ShardUse = <$kind as Kind>::SHARDS;

                async fn connect(url: &str, schema: &'static JobSchema) -> Result<Self> {
                    let connecting = Store::connect(url, schema);
                    connecting
                        .instrument(operation!("connect", schema))
                        .await
                        .map(Self)
                }
                fn for_schema(&self, schema: &'static JobSchema) -> Self {
                    Self(self.0.for_schema(schema))
                }
                async fn reconnect(&self) -> Result<Self> {
                    Ok(Self(self.0.reconnect()))
                }
                fn schema(&self) -> &'static JobSchema {
                    self.0.schema
                }
                async fn install(&self) -> Result<()> {
                    let span = operation!("install", self.0.schema);
                    self.0.install().instrument(span).await
                }
                async fn enqueue(&self, jobs: Vec<NewJob>) -> Result<Vec<Enqueued>> {
                    let span = operation!("enqueue", self.0.schema);
                    self.0.enqueue(jobs).instrument(span).await
                }
                async fn enqueue_in(
                    &self,
                    connection: &mut Self::Connection,
                    jobs: Vec<NewJob>,
                ) -> Result<Vec<Enqueued>> {
                    let span = operation!("enqueue_in", self.0.schema);
                    self.0.enqueue_in(connection, jobs).instrument(span).await
                }
                async fn finish_in(
                    &self,
                    connection: &mut Self::Connection,
                    finish: Finish,
                ) -> Result<()> {
                    let span = operation!("finish_in", self.0.schema);
                    self.0.finish_in(connection, finish).instrument(span).await
                }
                async fn warm_up(&self, connections: usize) {
                    self.0.warm_up(connections).await;
                }
                async fn due_heads(&self) -> Result<LaneHeads> {
                    let span = operation!("due_heads", self.0.schema);
                    self.0.due_heads().instrument(span).await
                }
                async fn claim(&self, claim: Claim) -> Result<Claimed> {
                    let span = operation!("claim", self.0.schema);
                    self.0.claim(claim).instrument(span).await
                }
                async fn renew(&self, renew: Renew) -> Result<Renewed> {
                    let span = operation!("renew", self.0.schema);
                    self.0.renew(renew).instrument(span).await
                }
                async fn finish(&self, finishes: Vec<Finish>) -> Result<Finished> {
                    let span = operation!("finish", self.0.schema);
                    self.0.finish(finishes).instrument(span).await
                }
                async fn reap(&self, reap: Reap) -> Result<Reaped> {
                    let span = operation!("reap", self.0.schema);
                    self.0.reap(reap).instrument(span).await
                }
                async fn operate(&self, operate: Operate) -> Result<Operated> {
                    let span = operation!("operate", self.0.schema);
                    self.0.operate(operate).instrument(span).await
                }
                async fn counts(&self) -> Result<Counts> {
                    let span = operation!("counts", self.0.schema);
                    self.0.counts().instrument(span).await
                }
                async fn has_open(&self) -> Result<bool> {
                    let span = operation!("has_open", self.0.schema);
                    self.0.has_open().instrument(span).await
                }
                async fn heartbeat(&self, heartbeat: Heartbeat) -> Result<Members> {
                    let span = operation!("heartbeat", self.0.schema);
                    self.0.heartbeat(heartbeat).instrument(span).await
                }
                async fn leave(&self, leave: Leave) -> Result<()> {
                    let span = operation!("leave", self.0.schema);
                    self.0.leave(leave).instrument(span).await
                }
                async fn hold_shards(&self, hold: HoldShards) -> Result<ShardLeases> {
                    let span = operation!("hold_shards", self.0.schema);
                    self.0.hold_shards(hold).instrument(span).await
                }
                async fn release_shards(&self, release: ReleaseShards) -> Result<()> {
                    let span = operation!("release_shards", self.0.schema);
                    self.0.release_shards(release).instrument(span).await
                }
                async fn claim_held(&self, claim: ClaimHeld) -> Result<ClaimedHeld> {
                    let span = operation!("claim_held", self.0.schema);
                    self.0.claim_held(claim).instrument(span).await
                }
                async fn doctor(&self) -> Result<Report> {
                    let span = operation!("doctor", self.0.schema);
                    self.0.doctor().instrument(span).await
                }
                async fn begin(&self) -> Result<Self::Tx> {
                    self.0.begin().await
                }
                async fn commit(&self, tx: Self::Tx) -> Result<()> {
                    self.0.commit(tx).await
                }
                async fn rollback(&self, tx: Self::Tx) -> Result<()> {
                    self.0.rollback(tx).await
                }
                async fn close(&self) {
                    self.0.pool.close().await;
                }
            }
        };
    };
}

/// The span of an operation.
macro_rules! operation {
    ($name:literal, $schema:expr) => {
        ::tracing::debug_span!($name, table = $schema.table.as_str(), backend = Self::NAME)
    };
}

pub(crate) use {backend, implement, operation};
