//! Looks at servers from outside, for tests of statements rather than jobs.

use std::env;

use sqlx::{AssertSqlSafe, ConnectOptions as _, MySqlConnection, mysql::MySqlConnectOptions};

/// A server that `tests/servers` starts, and how it is meant to be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServerUnderTest {
    Mysql57,
    Mysql8,
    Mariadb,
}

impl ServerUnderTest {
    pub const ALL: [Self; 3] = [Self::Mysql57, Self::Mysql8, Self::Mariadb];

    /// What `tests/servers` calls it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Mysql57 => "mysql57",
            Self::Mysql8 => "mysql8",
            Self::Mariadb => "mariadb",
        }
    }

    /// The environment variable that holds its URL.
    #[must_use]
    pub fn url_variable(self) -> &'static str {
        match self {
            Self::Mysql57 => "RETRYJOB_MYSQL57_URL",
            Self::Mysql8 => "RETRYJOB_MYSQL8_URL",
            Self::Mariadb => "RETRYJOB_MARIADB_URL",
        }
    }

    /// Its URL, without a database.
    #[must_use]
    pub fn url(self) -> String {
        let variable = self.url_variable();
        env::var(variable).unwrap_or_else(|_| {
            panic!(
                "{variable} is not set; start the servers with `tests/servers up`, then \
                 eval \"$(tests/servers env)\""
            )
        })
    }

    /// A plain connection, outside of every backend.
    pub async fn connection(self) -> MySqlConnection {
        let options: MySqlConnectOptions = self.url().parse().unwrap();
        options.connect().await.unwrap()
    }

    /// An empty database of this name; its URL.
    pub async fn database(self, name: &str) -> String {
        let mut connection = self.connection().await;
        for sql in [
            format!("DROP DATABASE IF EXISTS {name}"),
            format!("CREATE DATABASE {name}"),
        ] {
            let sql = AssertSqlSafe(sql);
            sqlx::raw_sql(sql).execute(&mut connection).await.unwrap();
        }
        format!("{}/{name}", self.url())
    }

    pub async fn drop_database(self, name: &str) {
        let sql = AssertSqlSafe(format!("DROP DATABASE {name}"));
        let mut connection = self.connection().await;
        sqlx::raw_sql(sql).execute(&mut connection).await.unwrap();
    }
}
