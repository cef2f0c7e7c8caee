//! Databases of the MySQL family, on servers that `tests/servers up` starts.
//!
//! Texts are sent as they are: prepared, they would be the first to fail on a
//! server that has no room for prepared statements.

use std::{marker::PhantomData, thread, time::Duration};

use retryjob_backends::{Mysql8, Mysql57};
use retryjob_core::{
    Backend, DbTime, Finished, IdempotencyKey, JobSchema, LeaseBy, Status,
    memory::JobRow,
    op::{claim::LeaseOwner, finish::Finish, nodes::NodeName, reap::Lapsed},
    sql::Catalogue,
    value::{ColumnType, Value},
};
use sqlx::{
    AssertSqlSafe, ConnectOptions as _, Connection as _, MySql, MySqlConnection, MySqlPool,
    Row as _, Transaction,
    error::DatabaseError,
    mysql::{MySqlConnectOptions, MySqlDatabaseError, MySqlPoolOptions, MySqlRow},
};

use super::{RowLocks, SqlDatabase, TestDatabase};
use crate::{
    history::{Moved, moves},
    inspect::ServerUnderTest,
};

/// A server and the backend that it is tested with.
pub trait Flavour: Send + Sync + 'static {
    type Backend: Backend<Connection = MySqlConnection>;

    const KIND: ServerUnderTest;

    fn catalogue(backend: &Self::Backend) -> &Catalogue;

    fn look_lapsed(backend: &Self::Backend, limit: u16)
    -> impl Future<Output = Vec<Lapsed>> + Send;

    fn take_back(
        backend: &Self::Backend,
        lapsed: Vec<Lapsed>,
    ) -> impl Future<Output = Vec<Finish>> + Send;
}

macro_rules! flavour {
    ($name:ident, $server:ident, $backend:ty, $kind:ident, $doc:literal) => {
        #[doc = $doc]
        #[derive(Debug)]
        pub struct $name;

        #[doc = $doc]
        pub type $server = Server<$name>;

        impl Flavour for $name {
            type Backend = $backend;
            const KIND: ServerUnderTest = ServerUnderTest::$kind;

            fn catalogue(backend: &$backend) -> &Catalogue {
                backend.catalogue()
            }

            async fn look_lapsed(backend: &$backend, limit: u16) -> Vec<Lapsed> {
                backend.look_lapsed(limit).await.unwrap()
            }

            async fn take_back(backend: &$backend, lapsed: Vec<Lapsed>) -> Vec<Finish> {
                backend.take_back(lapsed).await.unwrap()
            }
        }
    };
}

flavour!(
    On8,
    Mysql8Server,
    Mysql8,
    Mysql8,
    "MySQL 9 with the backend `mysql8`."
);
flavour!(
    On57,
    Mysql57Server,
    Mysql57,
    Mysql57,
    "MySQL 5.7 with `mysql57`."
);
flavour!(OnMaria, Mariadb, Mysql8, Mariadb, "MariaDB with `mysql8`.");
flavour!(
    OnMaria57,
    Mariadb57,
    Mysql57,
    Mariadb,
    "MariaDB with `mysql57`."
);

/// A database for one test on a running server.
#[derive(Debug)]
pub struct Server<F> {
    name: String,
    server_url: String,
    pool: MySqlPool,
    flavour: PhantomData<F>,
}

impl<F: Flavour> Server<F> {
    /// A database on a server of the test's own, by its URL without a database.
    pub async fn create_on(server_url: String) -> Self {
        let name = super::random_name();
        let options: MySqlConnectOptions = server_url.parse().unwrap();
        let mut connection = options.connect().await.unwrap();
        let create = format!("CREATE DATABASE {name}");
        let created = sqlx::raw_sql(AssertSqlSafe(create))
            .execute(&mut connection)
            .await;
        created.unwrap();
        connection.close().await.unwrap();

        let options = options.database(&name);
        let pool = MySqlPoolOptions::new()
            .max_connections(3)
            .connect_with(options)
            .await;
        let pool = pool.unwrap();
        let notes = "CREATE TABLE caller_note (id INT AUTO_INCREMENT PRIMARY KEY)";
        sqlx::raw_sql(notes).execute(&pool).await.unwrap();
        Self {
            name,
            server_url,
            pool,
            flavour: PhantomData,
        }
    }

    /// Locks these rows until the transaction ends.
    pub async fn lock(
        &self,
        schema: &'static JobSchema,
        ids: &[u64],
    ) -> Transaction<'static, MySql> {
        let mut tx = self.pool.begin().await.unwrap();
        // One by one: for a list, the plan on a small table reads all of it,
        // and locks what it reads.
        for id in ids {
            let sql = format!("SELECT id FROM {} WHERE id = {id} FOR UPDATE", schema.table);
            let locked = sqlx::raw_sql(AssertSqlSafe(sql)).fetch_all(&mut *tx).await;
            assert_eq!(locked.unwrap().len(), 1);
        }
        tx
    }

    /// A setting of the server, as SHOW tells it.
    pub async fn global(&self, name: &str) -> String {
        let show = format!("SHOW GLOBAL VARIABLES LIKE '{name}'");
        let row = sqlx::query(AssertSqlSafe(show)).fetch_one(&self.pool).await;
        row.unwrap().get(1)
    }

    /// A user with these privileges on this database alone, and its URL.
    pub async fn plain_user(&self, privileges: &str) -> (String, String) {
        let (name, password) = (format!("rj{}", &self.name[14..]), "plain");
        let user = format!("'{name}'@'%'");
        for sql in [
            format!("CREATE USER {user} IDENTIFIED BY '{password}'"),
            format!("GRANT {privileges} ON {}.* TO {user}", self.name),
        ] {
            self.execute(&sql).await;
        }
        let place = self.server_url.rsplit('@').next().unwrap();
        let url = format!("mysql://{name}:{password}@{place}/{}", self.name);
        (user, url)
    }

    async fn rows_of(&self, table: &str, schema: &JobSchema) -> Vec<JobRow> {
        let sql = format!("SELECT * FROM {table} ORDER BY id");
        let rows = sqlx::raw_sql(AssertSqlSafe(sql))
            .fetch_all(&self.pool)
            .await;
        rows.unwrap()
            .iter()
            .map(|row| job_row(row, schema))
            .collect()
    }
}

impl<F: Flavour> TestDatabase for Server<F> {
    type Backend = F::Backend;

    const BAD_URLS: &'static [&'static str] = &["", "nonsense", "sqlite::memory:", "redis://x/y"];

    async fn create() -> Self {
        Self::create_on(F::KIND.url()).await
    }

    async fn connect(&self, schema: &'static JobSchema) -> F::Backend {
        F::Backend::connect(&self.url(), schema).await.unwrap()
    }

    async fn rows(&self, schema: &'static JobSchema) -> Vec<JobRow> {
        self.rows_of(schema.table.as_str(), schema).await
    }

    async fn history(&self, schema: &'static JobSchema) -> Vec<JobRow> {
        self.rows_of(&format!("{}_history", schema.table), schema)
            .await
    }

    async fn memberships(&self, schema: &'static JobSchema) -> Vec<(NodeName, DbTime)> {
        let sql = "SELECT node, member_until FROM retryjob_node WHERE job_table = ? ORDER BY node";
        let rows = sqlx::query(sql).bind(schema.table.as_str());
        let rows = rows.fetch_all(&self.pool).await.unwrap();
        let membership = |row| {
            let node = NodeName::from_row(sqlx::Row::get(row, "node"));
            (node, instant(row, "member_until").unwrap())
        };
        rows.iter().map(membership).collect()
    }

    async fn pass(&self, schema: &'static JobSchema, span: Duration) {
        let us = span.as_micros();
        let earlier = [
            "next_attempt_at",
            "due_at",
            "lease_until",
            "created_at",
            "updated_at",
        ]
        .map(|column| format!("{column} = {column} - INTERVAL {us} MICROSECOND"));
        let history = (schema.finished == Finished::History).then_some("_history");
        for suffix in [Some(""), history].into_iter().flatten() {
            let earlier = earlier.join(", ");
            self.execute(&format!("UPDATE {}{suffix} SET {earlier}", schema.table))
                .await;
        }
        self.execute(&format!(
            "UPDATE retryjob_node SET member_until = member_until - INTERVAL {us} MICROSECOND \
             WHERE job_table = '{}'",
            schema.table
        ))
        .await;
        if schema.lease_by == LeaseBy::Shard {
            self.execute(&format!(
                "UPDATE retryjob_shard SET lease_until = lease_until - INTERVAL {us} MICROSECOND, \
                 doubt_until = doubt_until - INTERVAL {us} MICROSECOND WHERE job_table = '{}'",
                schema.table
            ))
            .await;
        }
    }

    async fn note(&self, connection: &mut MySqlConnection) {
        let insert = "INSERT INTO caller_note VALUES ()";
        sqlx::raw_sql(insert).execute(connection).await.unwrap();
    }

    async fn notes(&self) -> usize {
        let notes = sqlx::raw_sql("SELECT id FROM caller_note")
            .fetch_all(&self.pool)
            .await;
        notes.unwrap().len()
    }

    async fn look_lapsed(backend: &F::Backend, limit: u16) -> Vec<Lapsed> {
        F::look_lapsed(backend, limit).await
    }

    async fn take_back(backend: &F::Backend, lapsed: Vec<Lapsed>) -> Vec<Finish> {
        F::take_back(backend, lapsed).await
    }

    async fn oversize_bytes(&self) -> Option<usize> {
        let select = "SELECT CAST(@@max_allowed_packet AS UNSIGNED)";
        let row = sqlx::raw_sql(select).fetch_one(&self.pool).await;
        usize::try_from(row.unwrap().get::<u64, _>(0)).ok()
    }
}

impl<F: Flavour> SqlDatabase for Server<F> {
    async fn spoil(&self, schema: &'static JobSchema) -> Vec<&'static str> {
        let faults = [
            ("MODIFY service_id BIGINT NOT NULL", "service_id"),
            ("DROP COLUMN memo", "memo"),
            (
                "MODIFY next_attempt_at DATETIME NOT NULL",
                "next_attempt_at",
            ),
            ("MODIFY lease_until DATETIME(3) NULL", "lease_until"),
            ("MODIFY lease_seq INT UNSIGNED NOT NULL", "lease_seq"),
            ("MODIFY payload TEXT NOT NULL", "payload"),
            ("MODIFY last_error VARCHAR(200) NULL", "last_error"),
            (
                "MODIFY idempotency_key VARCHAR(64) NOT NULL",
                "idempotency_key",
            ),
            ("MODIFY attempt_no SMALLINT UNSIGNED NULL", "attempt_no"),
            ("DROP INDEX `claim`", "claim"),
            ("ADD COLUMN surplus INT NOT NULL", "surplus"),
        ];
        for (change, _) in faults {
            self.execute(&format!("ALTER TABLE {} {change}", schema.table))
                .await;
        }
        faults.map(|(_, name)| name).to_vec()
    }

    fn claim_index(&self, _: &'static JobSchema) -> String {
        "claim".into()
    }

    fn drop_index_sql(&self, schema: &'static JobSchema, index: &str) -> String {
        format!("DROP INDEX {index} ON {}", schema.table)
    }

    async fn create_sql(&self, schema: &'static JobSchema) -> String {
        let show = format!("SHOW CREATE TABLE {}", schema.table);
        let row = sqlx::raw_sql(AssertSqlSafe(show))
            .fetch_one(&self.pool)
            .await;
        row.unwrap().get::<String, _>(1)
    }

    fn catalogue(backend: &F::Backend) -> &Catalogue {
        F::catalogue(backend)
    }

    async fn ids(&self, sql: &str) -> Vec<u64> {
        let query = sqlx::query(AssertSqlSafe(sql.to_owned()));
        let rows = query.fetch_all(&self.pool).await.unwrap();
        let mut ids: Vec<u64> = rows.iter().map(|row| row.get(0)).collect();
        ids.sort_unstable();
        ids
    }

    async fn execute(&self, sql: &str) {
        let sql = AssertSqlSafe(sql.to_owned());
        sqlx::raw_sql(sql).execute(&self.pool).await.unwrap();
    }

    fn url(&self) -> String {
        format!("{}/{}", self.server_url, self.name)
    }

    async fn watch(&self, schema: &'static JobSchema) {
        moves::mysql::install(&self.pool, schema).await;
    }

    async fn moves(&self) -> Vec<Moved> {
        moves::mysql::read(&self.pool).await
    }

    async fn open_transactions(&self) -> usize {
        let open = "SELECT trx_mysql_thread_id, 0 FROM information_schema.INNODB_TRX AS trx \
                    JOIN information_schema.PROCESSLIST AS process \
                    ON process.ID = trx.trx_mysql_thread_id \
                    WHERE process.DB = DATABASE() AND process.ID <> CONNECTION_ID()";
        self.pairs(open).await.len()
    }

    async fn pairs(&self, sql: &str) -> Vec<(u64, u64)> {
        let rows = loop {
            let sql = AssertSqlSafe(sql.to_owned());
            match sqlx::raw_sql(sql).fetch_all(&self.pool).await {
                // MySQL 8 can't list connections while one of them runs a
                // statement with bytes that are no text.
                Err(sqlx::Error::Database(error)) if is_number(&*error, 3854) => {
                    tokio::time::sleep(Duration::from_millis(1)).await;
                }
                rows => break rows.unwrap(),
            }
        };
        // Signed or not: the callers' columns are of both kinds.
        let number = |row: &MySqlRow, at: usize| row.try_get_unchecked(at).unwrap();
        rows.iter()
            .map(|row| (number(row, 0), number(row, 1)))
            .collect()
    }
}

fn is_number(error: &dyn DatabaseError, number: u16) -> bool {
    let error = error.try_downcast_ref::<MySqlDatabaseError>();
    error.is_some_and(|error| error.number() == number)
}

impl<F: Flavour> RowLocks for Server<F> {
    type Lock = Transaction<'static, MySql>;

    async fn lock_row(&self, schema: &'static JobSchema, id: u64) -> Self::Lock {
        self.lock(schema, &[id]).await
    }

    async fn change(&self, mut lock: Self::Lock, sql: &str) {
        let sql = AssertSqlSafe(sql.to_owned());
        sqlx::query(sql).execute(&mut *lock).await.unwrap();
        lock.commit().await.unwrap();
    }

    async fn is_any_waiting(&self) -> bool {
        let waiting = "SELECT COUNT(*) FROM information_schema.innodb_trx waits \
             JOIN information_schema.processlist connection \
             ON connection.id = waits.trx_mysql_thread_id \
             WHERE waits.trx_state = 'LOCK WAIT' AND connection.db = DATABASE()";
        let count: i64 = sqlx::query_scalar(waiting)
            .fetch_one(&self.pool)
            .await
            .unwrap();
        count > 0
    }
}

impl<F> Drop for Server<F> {
    /// On a thread of its own, since the test's runtime may be in a panic.
    fn drop(&mut self) {
        let drop = format!("DROP DATABASE IF EXISTS {}", self.name);
        let options: MySqlConnectOptions = self.server_url.parse().unwrap();
        let dropping = thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build();
            runtime.unwrap().block_on(async {
                let mut connection = options.connect().await?;
                // A transaction that a failed test left open holds its tables.
                sqlx::raw_sql("SET lock_wait_timeout = 3")
                    .execute(&mut connection)
                    .await?;
                sqlx::raw_sql(AssertSqlSafe(drop))
                    .execute(&mut connection)
                    .await?;
                connection.close().await
            })
        });
        let dropped = dropping.join();
        if !thread::panicking() {
            dropped.unwrap().unwrap();
        }
    }
}

fn instant(row: &MySqlRow, column: &str) -> Option<DbTime> {
    let at: Option<chrono::NaiveDateTime> = row.get(column);
    at.map(DbTime::from_utc)
}

fn job_row(row: &MySqlRow, schema: &JobSchema) -> JobRow {
    let key: Vec<u8> = row.get("idempotency_key");
    let owner: Option<String> = row.get("lease_owner");
    let shard_key = schema.shard_key_column.map(|name| row.get(name.as_str()));
    JobRow {
        id: row.get("id"),
        shard_id: row.get("shard_id"),
        status: Status::from_code(row.get("status")).unwrap(),
        next_attempt_at: instant(row, "next_attempt_at").unwrap(),
        due_at: instant(row, "due_at").unwrap(),
        attempt_no: row.get("attempt_no"),
        lease_owner: owner.as_deref().map(LeaseOwner::from_row),
        lease_seq: row.get("lease_seq"),
        lease_until: instant(row, "lease_until"),
        idempotency_key: IdempotencyKey::from_bytes(key.try_into().unwrap()),
        shard_key,
        payload: schema.has_payload.then(|| row.get("payload")),
        last_error: row.get("last_error"),
        created_at: instant(row, "created_at").unwrap(),
        updated_at: instant(row, "updated_at").unwrap(),
        columns: schema
            .columns
            .iter()
            .map(|column| value(row, column.name.as_str(), column.kind).unwrap_or(Value::Null))
            .collect(),
    }
}

fn value(row: &MySqlRow, column: &str, kind: ColumnType) -> Option<Value> {
    Some(match kind {
        ColumnType::Bool => Value::Bool(row.get::<Option<u8>, _>(column)? == 1),
        ColumnType::I8 => Value::I64(row.get::<Option<i8>, _>(column)?.into()),
        ColumnType::I16 => Value::I64(row.get::<Option<i16>, _>(column)?.into()),
        ColumnType::I32 => Value::I64(row.get::<Option<i32>, _>(column)?.into()),
        ColumnType::I64 => Value::I64(row.get::<Option<_>, _>(column)?),
        ColumnType::U8 => Value::U64(row.get::<Option<u8>, _>(column)?.into()),
        ColumnType::U16 => Value::U64(row.get::<Option<u16>, _>(column)?.into()),
        ColumnType::U32 => Value::U64(row.get::<Option<u32>, _>(column)?.into()),
        ColumnType::U64 => Value::U64(row.get::<Option<_>, _>(column)?),
        ColumnType::F64 => Value::F64(row.get::<Option<_>, _>(column)?),
        ColumnType::Varchar { .. } | ColumnType::Text => {
            Value::Text(row.get::<Option<_>, _>(column)?)
        }
        ColumnType::Binary { .. } | ColumnType::Varbinary { .. } => {
            Value::Bytes(row.get::<Option<_>, _>(column)?)
        }
        ColumnType::Date => Value::Date(row.get::<Option<_>, _>(column)?),
        ColumnType::DateTime => Value::DateTime(row.get::<Option<_>, _>(column)?),
    })
}
