//! Three servers that replicate as a group, and the router in front of them.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU16, Ordering},
    },
    time::Duration,
};

use sqlx::{AssertSqlSafe, Row as _};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::watch,
    task::{JoinHandle, JoinSet},
    time::{sleep, timeout},
};

use super::instance::{Instance, free_port};
use crate::inspect::ServerUnderTest;

/// How often the router asks who the primary is.
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// What a stopped member has to answer.
const ANSWER_MAX: Duration = Duration::from_millis(500);
/// A group that has not done what it should fails the test after this.
const HANG: Duration = Duration::from_secs(60);

/// The primary as a member of the majority sees it: who has lost the others
/// still takes itself for the primary.
const PRIMARY: &str = "SELECT MEMBER_PORT FROM performance_schema.replication_group_members \
    WHERE MEMBER_ROLE = 'PRIMARY' AND MEMBER_STATE = 'ONLINE' \
    AND (SELECT COUNT(*) FROM performance_schema.replication_group_members \
    WHERE MEMBER_STATE = 'ONLINE') >= 2";

/// Three members of MySQL 9, one of them the primary.
#[derive(Debug)]
pub struct Group {
    members: Vec<Instance>,
}

impl Group {
    /// Starts the members and waits until all are online.
    pub async fn start() -> Self {
        let ports: [u16; 3] = std::array::from_fn(|_| free_port());
        let seeds = ports.map(|port| format!("127.0.0.1:{port}")).join(",");
        let mut members = Vec::new();
        for (number, port) in (1..).zip(ports) {
            let own = [
                format!("--server-id={number}"),
                format!("--loose-group-replication-local-address=127.0.0.1:{port}"),
                format!("--loose-group-replication-group-seeds={seeds}"),
            ];
            let args: Vec<_> = own.iter().map(String::as_str).chain(MEMBER).collect();
            members.push(Instance::start(ServerUnderTest::Mysql8, &args).await);
        }
        let group = Self { members };
        for (member, sql) in group.members.iter().zip([FOUND, JOIN, JOIN]) {
            run(member, ACCOUNT).await;
            run(member, sql).await;
        }
        group.all_online().await;
        group
    }

    /// The ports of all members.
    #[must_use]
    pub fn ports(&self) -> Vec<u16> {
        self.members.iter().map(Instance::port).collect()
    }

    /// The member on this port.
    pub fn member(&mut self, port: u16) -> &mut Instance {
        let mut members = self.members.iter_mut();
        members.find(|member| member.port() == port).unwrap()
    }

    /// Makes another member the primary, in an orderly way.
    pub async fn switch_over(&self, from: u16) {
        let next = self
            .members
            .iter()
            .find(|member| member.port() != from)
            .unwrap();
        let switch = "SELECT group_replication_set_as_primary(@@server_uuid)";
        run(next, switch).await;
    }

    /// Brings a member back that was killed or expelled.
    pub async fn rejoin(&mut self, port: u16) {
        run(self.member(port), "STOP GROUP_REPLICATION").await;
        run(self.member(port), JOIN).await;
        self.all_online().await;
    }

    async fn all_online(&self) {
        let count = "SELECT COUNT(*) FROM performance_schema.replication_group_members \
            WHERE MEMBER_STATE = 'ONLINE'";
        let online = async {
            for member in &self.members {
                let mut connection = member.connection().await;
                loop {
                    let row = sqlx::raw_sql(count).fetch_one(&mut connection).await;
                    if row.unwrap().get::<i64, _>(0) == 3 {
                        break;
                    }
                    sleep(LOOK_EVERY).await;
                }
            }
        };
        let joined = timeout(HANG, online).await;
        joined.unwrap_or_else(|_| panic!("not all are online: {}", self.members[2].log()));
    }
}

/// `BEFORE_ON_PRIMARY_FAILOVER`: a new primary answers nobody before it has
/// applied what the old one had acknowledged.
const MEMBER: [&str; 15] = [
    "--log-bin=binlog",
    "--gtid-mode=ON",
    "--enforce-gtid-consistency=ON",
    "--performance-schema=ON",
    // A group takes no table without a primary key.
    "--sql-generate-invisible-primary-key=ON",
    "--report-host=127.0.0.1",
    "--plugin-load-add=group_replication.so",
    "--loose-group-replication-group-name=5b4a3c2d-0000-4000-8000-0123456789ab",
    "--loose-group-replication-ip-allowlist=127.0.0.1/8",
    "--loose-group-replication-recovery-get-public-key=ON",
    "--loose-group-replication-start-on-boot=OFF",
    "--loose-group-replication-exit-state-action=READ_ONLY",
    "--loose-group-replication-consistency=BEFORE_ON_PRIMARY_FAILOVER",
    "--loose-group-replication-member-expel-timeout=0",
    "--loose-group-replication-autorejoin-tries=0",
];

const ACCOUNT: &str = "SET SQL_LOG_BIN = 0; \
    CREATE USER recovery@'%' IDENTIFIED BY 'recovery'; \
    GRANT REPLICATION SLAVE, CONNECTION_ADMIN, BACKUP_ADMIN, GROUP_REPLICATION_STREAM \
        ON *.* TO recovery@'%'; \
    SET SQL_LOG_BIN = 1; \
    CHANGE REPLICATION SOURCE TO SOURCE_USER = 'recovery', SOURCE_PASSWORD = 'recovery' \
        FOR CHANNEL 'group_replication_recovery'";
const FOUND: &str = "SET GLOBAL group_replication_bootstrap_group = ON; \
    START GROUP_REPLICATION; \
    SET GLOBAL group_replication_bootstrap_group = OFF";
const JOIN: &str = "START GROUP_REPLICATION";

async fn run(member: &Instance, sql: &str) {
    let mut connection = member.connection().await;
    let sql = AssertSqlSafe(sql.to_owned());
    let ran = sqlx::raw_sql(sql).execute(&mut connection).await;
    ran.unwrap_or_else(|error| panic!("{error}\n{}", member.log()));
}

/// Leads each new connection to the current primary, and leaves those that are
/// open alone.
#[derive(Debug)]
pub struct Router {
    port: u16,
    primary: Arc<AtomicU16>,
    generation: watch::Sender<u32>,
    tasks: Vec<JoinHandle<()>>,
}

impl Router {
    /// Listens in front of a group.
    pub async fn start(group: &Group) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let primary = Arc::new(AtomicU16::new(0));
        let (generation, _) = watch::channel(0);
        let tasks = vec![
            tokio::spawn(look(group.ports(), Arc::clone(&primary))),
            tokio::spawn(accept(listener, Arc::clone(&primary), generation.clone())),
        ];
        let router = Self {
            port,
            primary,
            generation,
            tasks,
        };
        router.primary_other_than(0).await;
        router
    }

    #[must_use]
    pub fn url(&self) -> String {
        format!("mysql://root:retryjob@127.0.0.1:{}", self.port)
    }

    #[must_use]
    pub fn primary(&self) -> u16 {
        self.primary.load(Ordering::Relaxed)
    }

    /// Waits for the election of another primary.
    pub async fn primary_other_than(&self, old: u16) -> u16 {
        let elected = timeout(HANG, async {
            while self.primary() == old {
                sleep(LOOK_EVERY).await;
            }
        });
        elected.await.expect("no primary was elected");
        self.primary()
    }

    /// Closes all connections, so that none leads to a former primary.
    pub fn close_all(&self) {
        self.generation.send_modify(|generation| *generation += 1);
    }
}

impl Drop for Router {
    fn drop(&mut self) {
        for task in &self.tasks {
            task.abort();
        }
    }
}

async fn look(ports: Vec<u16>, primary: Arc<AtomicU16>) {
    loop {
        for port in &ports {
            if let Ok(Some(seen)) = timeout(ANSWER_MAX, seen_from(*port)).await {
                primary.store(seen, Ordering::Relaxed);
            }
        }
        sleep(LOOK_EVERY).await;
    }
}

async fn seen_from(port: u16) -> Option<u16> {
    use sqlx::{ConnectOptions as _, Connection as _, mysql::MySqlConnectOptions};

    let url = format!("mysql://root:retryjob@127.0.0.1:{port}?ssl-mode=disabled");
    let options: MySqlConnectOptions = url.parse().unwrap();
    let mut connection = options.connect().await.ok()?;
    let row = sqlx::raw_sql(PRIMARY).fetch_optional(&mut connection).await;
    let seen = row.ok()??.try_get::<i32, _>(0).ok()?;
    let _ = connection.close().await;
    u16::try_from(seen).ok()
}

async fn accept(listener: TcpListener, primary: Arc<AtomicU16>, generation: watch::Sender<u32>) {
    let mut connections = JoinSet::new();
    while let Ok((mut client, _)) = listener.accept().await {
        let port = primary.load(Ordering::Relaxed);
        let mut closed = generation.subscribe();
        connections.spawn(async move {
            let Ok(mut server) = TcpStream::connect(("127.0.0.1", port)).await else {
                return;
            };
            let _ = (client.set_nodelay(true), server.set_nodelay(true));
            tokio::select! {
                _ = tokio::io::copy_bidirectional(&mut client, &mut server) => {}
                _ = closed.changed() => {}
            }
        });
        while connections.try_join_next().is_some() {}
    }
}
