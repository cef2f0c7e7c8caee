//! Makes the types by which callers bring their own transaction.

/// Makes the trait of connections that jobs can be enqueued and finished on,
/// and the transaction that a backend opens.
macro_rules! connection {
    ($(#[$doc:meta])* $connection:ident, $(#[$tx_doc:meta])* $tx:ident, $db:ty, $driver:ty, $dialect:expr) => {
        $(#[$doc])*
        pub trait $connection: Send {
            /// The driver's connection, for the caller's own statements.
            fn driver(&mut self) -> &mut $driver;

            /// This connection as `finish_in` takes it:
            /// `job.finish_in(tx.for_jobs())`.
            fn for_jobs(&mut self) -> &mut (dyn $connection + 'static)
            where
                Self: Sized + 'static,
            {
                self
            }
        }

        impl $connection for $driver {
            fn driver(&mut self) -> &mut $driver {
                self
            }
        }

        impl $connection for ::sqlx::Transaction<'_, $db> {
            fn driver(&mut self) -> &mut $driver {
                self
            }
        }

        impl $connection for ::sqlx::pool::PoolConnection<$db> {
            fn driver(&mut self) -> &mut $driver {
                self
            }
        }

        impl ::retryjob_core::Connection for dyn $connection {
            async fn finish_in(
                &mut self,
                schema: &'static ::retryjob_core::JobSchema,
                finish: ::retryjob_core::op::finish::Finish,
            ) -> ::retryjob_core::Result<()> {
                let catalogue = $crate::catalogues::catalogue(schema, $dialect);
                $crate::store::finish_in(self.driver(), schema, &catalogue, finish).await
            }
        }

        $(#[$tx_doc])*
        pub struct $tx(pub(crate) ::sqlx::Transaction<'static, $db>);

        impl ::std::fmt::Debug for $tx {
            fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                f.debug_struct(stringify!($tx)).finish_non_exhaustive()
            }
        }

        impl $tx {
            /// The driver's transaction.
            #[must_use]
            pub fn into_inner(self) -> ::sqlx::Transaction<'static, $db> {
                self.0
            }
        }

        impl ::std::ops::Deref for $tx {
            type Target = dyn $connection;

            fn deref(&self) -> &Self::Target {
                &self.0
            }
        }

        impl ::std::ops::DerefMut for $tx {
            fn deref_mut(&mut self) -> &mut Self::Target {
                &mut self.0
            }
        }
    };
}

pub(crate) use connection;
