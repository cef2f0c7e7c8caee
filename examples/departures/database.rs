//! What the example asks of a database by itself: the table is plain SQL, and
//! the backend's connections are there for anybody.

use std::future::Future;

use retryjob::{Backend, Mysql8, Mysql57, Sqlite};

use crate::Result;

/// A backend with the example's own questions.
pub(crate) trait Database: Backend {
    /// Attempts made so far, by all runs on this table.
    fn attempts_made(&self) -> impl Future<Output = Result<u64>> + Send;

    /// Removes the table from a server. The table of nodes stays: other job
    /// types use it as well.
    fn clean_up(&self) -> impl Future<Output = Result<()>> + Send;
}

/// SUM is a DECIMAL on MySQL, and NULL over no rows.
const ATTEMPTS_MYSQL: &str = "SELECT CAST(COALESCE(SUM(attempt_no), 0) AS SIGNED) FROM departure";
const ATTEMPTS_SQLITE: &str = "SELECT COALESCE(SUM(attempt_no), 0) FROM departure";

macro_rules! on_mysql {
    ($($backend:ty),+) => {$(
        impl Database for $backend {
            async fn attempts_made(&self) -> Result<u64> {
                let count: i64 = sqlx::query_scalar(ATTEMPTS_MYSQL).fetch_one(self.connections()).await?;
                Ok(count.try_into()?)
            }

            async fn clean_up(&self) -> Result<()> {
                sqlx::query("DROP TABLE departure").execute(self.connections()).await?;
                Ok(())
            }
        }
    )+};
}

on_mysql!(Mysql8, Mysql57);

impl Database for Sqlite {
    async fn attempts_made(&self) -> Result<u64> {
        let count: i64 = sqlx::query_scalar(ATTEMPTS_SQLITE)
            .fetch_one(self.connections())
            .await?;
        Ok(count.try_into()?)
    }

    /// The file stays: it is the user's to delete.
    async fn clean_up(&self) -> Result<()> {
        Ok(())
    }
}
