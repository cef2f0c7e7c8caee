//! Servers of a test's own, which it may kill and set up as it likes.

use std::{
    fs,
    net::TcpListener,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::atomic::{AtomicU16, Ordering},
    time::{Duration, Instant},
};

use sqlx::{
    AssertSqlSafe, ConnectOptions as _, Connection as _, MySqlConnection,
    mysql::MySqlConnectOptions,
};
use tempfile::TempDir;

use super::process::Process;
use crate::{database::random_name, inspect::ServerUnderTest};

/// Seconds in which a server has to answer: recovery after a kill is in them,
/// and other tests beside it.
const START_SECONDS_MAX: u64 = 60;
/// Ports of the servers. Below those that the kernel gives to outgoing
/// connections, so that a killed server finds its port free when it restarts.
const PORTS: std::ops::Range<u16> = 24_000..32_000;

/// Quick to start, and durable all the same.
const SETTINGS: [&str; 8] = [
    "--bind-address=127.0.0.1",
    "--skip-name-resolve",
    "--socket=mysqld.sock",
    "--pid-file=mysqld.pid",
    "--max-connections=600",
    "--innodb-buffer-pool-size=64M",
    "--innodb-flush-log-at-trx-commit=1",
    "--performance-schema=OFF",
];

/// A server with data of its own: killed when dropped, its data removed.
#[derive(Debug)]
pub struct Instance {
    // The process ends before its folder is removed: fields are dropped in order.
    process: Option<Process>,
    kind: ServerUnderTest,
    args: Vec<String>,
    port: u16,
    folder: TempDir,
}

impl Instance {
    /// Starts a server on a fresh copy of the data that a server begins with,
    /// and waits until it answers.
    ///
    /// # Panics
    ///
    /// With the end of its log, when it does not start.
    pub async fn start(kind: ServerUnderTest, args: &[&str]) -> Self {
        let folder = tempfile::Builder::new()
            .prefix("retryjob-server-")
            .tempdir();
        let mut instance = Self {
            process: None,
            kind,
            args: args.iter().map(|&arg| arg.to_owned()).collect(),
            port: free_port(),
            folder: folder.unwrap(),
        };
        instance.restart().await;
        instance
    }

    #[must_use]
    pub fn kind(&self) -> ServerUnderTest {
        self.kind
    }

    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Its URL, without a database.
    #[must_use]
    pub fn url(&self) -> String {
        format!("mysql://root:retryjob@127.0.0.1:{}", self.port)
    }

    /// A plain connection, outside of every backend.
    pub async fn connection(&self) -> MySqlConnection {
        self.try_connection().await.unwrap()
    }

    /// Makes an empty database; its URL.
    pub async fn database(&self) -> String {
        let name = random_name();
        let create = AssertSqlSafe(format!("CREATE DATABASE {name}"));
        let mut connection = self.connection().await;
        sqlx::raw_sql(create)
            .execute(&mut connection)
            .await
            .unwrap();
        connection.close().await.unwrap();
        format!("{}/{name}", self.url())
    }

    /// SIGKILL, and waits for the end. Nothing happens when it has ended.
    pub fn kill(&mut self) {
        if let Some(process) = self.process.take() {
            process.kill();
        }
    }

    /// Starts it again on the same data and port, and waits until it answers.
    pub async fn restart(&mut self) {
        self.kill();
        self.process = Some(self.spawn());
        let end = Instant::now() + Duration::from_secs(START_SECONDS_MAX);
        while let Err(error) = self.try_answer().await {
            let has_ended = self.process.as_ref().is_none_or(Process::has_ended);
            assert!(
                !has_ended && Instant::now() < end,
                "{:?} with {:?} does not start: {error}\n{}",
                self.kind,
                self.args,
                self.log()
            );
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// SIGSTOP.
    pub fn stop_process(&self) {
        self.process.as_ref().unwrap().stop();
    }

    /// SIGCONT.
    pub fn continue_process(&self) {
        self.process.as_ref().unwrap().go_on();
    }

    /// The end of what the server logged.
    #[must_use]
    pub fn log(&self) -> String {
        let log = fs::read_to_string(self.log_path()).unwrap_or_default();
        let lines: Vec<_> = log.lines().collect();
        lines[lines.len().saturating_sub(30)..].join("\n")
    }

    fn log_path(&self) -> PathBuf {
        self.folder.path().join("server.log")
    }

    fn spawn(&self) -> Process {
        let data = self.folder.path().join("data");
        // What a killed server left keeps the next one out if its process id
        // is in use again.
        let _ = fs::remove_file(data.join("mysqld.sock.lock"));
        // 5.7 reserves memory for every file that it may open, which takes
        // gigabytes where there is no limit.
        let limited = r#"ulimit -n 32768 2>/dev/null; exec "$@" >>"$0" 2>&1"#;
        let mut command = Command::new("bash");
        command.args(["-c", limited]).arg(self.log_path());
        command.args(command_line(self.kind, &data));
        command.args(SETTINGS).arg(format!("--port={}", self.port));
        command.args(&self.args);
        Process::start(&command)
    }

    async fn try_connection(&self) -> Result<MySqlConnection, sqlx::Error> {
        let options: MySqlConnectOptions = self.url().parse().unwrap();
        options.connect().await
    }

    async fn try_answer(&self) -> Result<(), sqlx::Error> {
        let mut connection = self.try_connection().await?;
        connection.ping().await?;
        connection.close().await
    }
}

/// The server's command line on this folder, which becomes a copy of the data
/// that a server begins with when it is not there.
fn command_line(kind: ServerUnderTest, data: &Path) -> Vec<String> {
    let servers = concat!(env!("CARGO_MANIFEST_DIR"), "/servers");
    let output = Command::new(servers)
        .args(["command", kind.name()])
        .arg(data)
        .stderr(Stdio::inherit())
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "tests/servers command: {}",
        output.status
    );
    let lines = String::from_utf8(output.stdout).unwrap();
    lines.lines().map(str::to_owned).collect()
}

/// A port that nobody listens on. Each call looks further on, and processes
/// begin at different places.
pub(super) fn free_port() -> u16 {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    let span = PORTS.end - PORTS.start;
    let begin = u16::try_from(std::process::id() * 61 % u32::from(span)).unwrap();
    loop {
        let next = NEXT.fetch_add(1, Ordering::Relaxed);
        assert!(next < span, "no port from {PORTS:?} is free");
        let port = PORTS.start + (begin + next) % span;
        if TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return port;
        }
    }
}
