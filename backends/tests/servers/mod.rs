//! Databases on the real servers. Needs `eval "$(tests/servers env)"`.
#![allow(dead_code, reason = "each test file uses a part")]
#![allow(clippy::unwrap_used, reason = "a test ends where something fails")]

use std::time::Duration;

use sqlx::{AssertSqlSafe, Connection as _, MySqlConnection};

use crate::common::unique;

#[derive(Clone, Copy, Debug)]
pub(crate) enum Server {
    Mysql57,
    Mysql8,
    MariaDb,
}

impl Server {
    pub(crate) const ALL: [Self; 3] = [Self::Mysql57, Self::Mysql8, Self::MariaDb];

    pub(crate) fn url(self) -> String {
        let name = match self {
            Self::Mysql57 => "RETRYJOB_MYSQL57_URL",
            Self::Mysql8 => "RETRYJOB_MYSQL8_URL",
            Self::MariaDb => "RETRYJOB_MARIADB_URL",
        };
        std::env::var(name)
            .unwrap_or_else(|_| panic!("{name} is not set; run eval \"$(tests/servers env)\""))
    }
}

/// A database that is dropped by [`Database::drop_it`].
pub(crate) struct Database {
    server: String,
    name: String,
}

impl Database {
    pub(crate) async fn on(server: Server) -> Self {
        let name = unique("retryjob_backends");
        let server = server.url();
        admin(&server, &format!("CREATE DATABASE {name}")).await;
        Self { server, name }
    }

    pub(crate) fn url(&self) -> String {
        format!("{}/{}", self.server, self.name)
    }

    pub(crate) async fn run(&self, sql: &str) {
        admin(&self.url(), sql).await;
    }

    /// Ends every connection to this database from the server's side.
    pub(crate) async fn kill_connections(&self) {
        let mut connection = MySqlConnection::connect(&self.server).await.unwrap();
        let ids = "SELECT CAST(ID AS SIGNED) FROM information_schema.PROCESSLIST WHERE DB = ?";
        // MySQL can't show the list while a statement with bytes in its text is
        // under way on some connection (error 3854), so it is asked again.
        let mut tries = 0;
        let ids: Vec<i64> = loop {
            tries += 1;
            let asked = sqlx::query_scalar(ids).bind(&self.name);
            match asked.fetch_all(&mut connection).await {
                Ok(ids) => break ids,
                Err(error) => assert!(tries < 500, "{error}"),
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        };
        for id in ids {
            // It may have ended by itself.
            let kill = sqlx::raw_sql(AssertSqlSafe(format!("KILL {id}")));
            let _ = kill.execute(&mut connection).await;
        }
        connection.close().await.unwrap();
    }

    pub(crate) async fn drop_it(self) {
        admin(&self.server, &format!("DROP DATABASE {}", self.name)).await;
    }
}

async fn admin(url: &str, sql: &str) {
    let mut connection = MySqlConnection::connect(url).await.unwrap();
    let text = sqlx::raw_sql(AssertSqlSafe(sql.to_owned()));
    text.execute(&mut connection).await.unwrap();
    connection.close().await.unwrap();
}
