//! A TCP proxy in front of a MySQL server that knows when a transaction is
//! about to be committed, and cuts the connection there.
//!
//! ```text
//! client ──▶ command ──▶ [Before] ──▶ server ──▶ [Sent]
//! client ◀── answer  ◀── [Answered] ◀── server
//! ```
//!
//! It reads the protocol only as far as it must: packets of the client that
//! begin a command, and the statement numbers in the answers to PREPARE. The
//! client must connect with `ssl-mode=disabled`.

use std::{collections::HashMap, io, net::SocketAddr, sync::Arc};

use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream, tcp::OwnedReadHalf},
    task::{JoinHandle, JoinSet},
};

/// Where a connection is cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Point {
    /// The server never gets the command.
    Before,
    /// The server gets it; its answer is not waited for.
    Sent,
    /// The server has answered; the client never learns it.
    Answered,
}

impl Point {
    pub const ALL: [Self; 3] = [Self::Before, Self::Sent, Self::Answered];
}

/// What a transaction does, told by the statement that writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Writing {
    Enqueue,
    Claim,
    Renew,
    Finish,
    Reap,
    Other,
}

impl Writing {
    /// What this statement does to a job table; `None` when it only reads.
    fn of(sql: &str) -> Option<Self> {
        let head = sql.trim_start();
        if head.starts_with("INSERT INTO `fault_") {
            return Some(Self::Enqueue);
        }
        if !head.starts_with("UPDATE `fault_") {
            let is_write = ["INSERT", "UPDATE", "DELETE"]
                .iter()
                .any(|verb| head.starts_with(verb));
            return is_write.then_some(Self::Other);
        }
        Some(if head.contains("`lease_seq` = `lease_seq` + 1") {
            Self::Claim
        } else if head.contains("SET `lease_until` = TIMESTAMPADD") {
            Self::Renew
        } else if head.contains("`lease_until` < UTC_TIMESTAMP(6)") {
            Self::Reap
        } else if head.contains("`lease_until` >= UTC_TIMESTAMP(6)") {
            Self::Finish
        } else {
            Self::Other
        })
    }
}

/// Decides at every command that commits whether the connection is cut there;
/// called again with the point at the moment of the cut.
pub trait Plan: Send + Sync + 'static {
    fn cut(&self, writing: Writing) -> Option<Point>;

    /// The cut is made now: the place to kill the server.
    fn at_cut(&self, _writing: Writing, _point: Point) {}
}

/// Lets everything pass.
#[derive(Clone, Copy, Debug)]
pub struct Pass;

impl Plan for Pass {
    fn cut(&self, _writing: Writing) -> Option<Point> {
        None
    }
}

/// A proxy on a port of its own, gone when dropped with all connections.
#[derive(Debug)]
pub struct Proxy {
    at: SocketAddr,
    task: JoinHandle<()>,
}

impl Proxy {
    /// Listens in front of the server on this port of loopback.
    pub async fn start(server_port: u16, plan: Arc<dyn Plan>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let at = listener.local_addr().unwrap();
        let task = tokio::spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((client, _)) = listener.accept().await {
                let plan = Arc::clone(&plan);
                connections.spawn(async move {
                    // A server that is gone is a connection refused.
                    if let Ok(server) = TcpStream::connect(("127.0.0.1", server_port)).await {
                        let _ = carry(client, server, &*plan).await;
                    }
                });
                while connections.try_join_next().is_some() {}
            }
        });
        Self { at, task }
    }

    /// The URL of a database behind it, made from its own.
    #[must_use]
    pub fn url(&self, url: &str) -> String {
        let (head, path) = url.rsplit_once('/').unwrap();
        let (account, _) = head.rsplit_once('@').unwrap();
        format!("{account}@{}/{path}?ssl-mode=disabled", self.at)
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// What one connection has been up to.
#[derive(Debug, Default)]
struct Session {
    /// Texts by statement number.
    prepared: HashMap<u32, String>,
    /// The text whose number the next answer brings.
    preparing: Option<String>,
    is_in_transaction: bool,
    /// The last write of the transaction.
    writing: Option<Writing>,
}

/// The first byte of an answer that says no more than that all went well.
const OK: u8 = 0x00;

const COM_QUERY: u8 = 0x03;
const COM_STMT_PREPARE: u8 = 0x16;
const COM_STMT_EXECUTE: u8 = 0x17;

impl Session {
    /// Takes note of a command; what it commits, if it does.
    fn command(&mut self, packet: &[u8]) -> Option<Writing> {
        let (&kind, rest) = packet.split_first()?;
        let text = match kind {
            COM_QUERY => String::from_utf8_lossy(rest).into_owned(),
            COM_STMT_PREPARE => {
                self.preparing = Some(String::from_utf8_lossy(rest).into_owned());
                return None;
            }
            COM_STMT_EXECUTE => {
                let number = rest.first_chunk().map(|bytes| u32::from_le_bytes(*bytes))?;
                self.prepared.get(&number)?.clone()
            }
            _ => return None,
        };
        match text.as_str() {
            "BEGIN" | "START TRANSACTION READ WRITE" => {
                self.is_in_transaction = true;
                self.writing = None;
                None
            }
            "ROLLBACK" => {
                self.is_in_transaction = false;
                None
            }
            "COMMIT" => {
                self.is_in_transaction = false;
                self.writing.take()
            }
            sql => {
                let writing = Writing::of(sql)?;
                if !self.is_in_transaction {
                    return Some(writing);
                }
                // A caller's own write beside a job's says nothing new.
                if self.writing.is_none() || writing != Writing::Other {
                    self.writing = Some(writing);
                }
                None
            }
        }
    }

    /// Reads the number that the server gave to a prepared statement.
    fn answer(&mut self, packet: &[u8]) {
        let Some(text) = self.preparing.take() else {
            return;
        };
        if let Some((0, rest)) = packet.split_first()
            && let Some(number) = rest.first_chunk()
        {
            self.prepared.insert(u32::from_le_bytes(*number), text);
        }
    }
}

/// One packet with its header.
struct Packet {
    bytes: Vec<u8>,
}

const HEADER: usize = 4;

impl Packet {
    async fn read(from: &mut OwnedReadHalf) -> io::Result<Self> {
        let mut bytes = vec![0; HEADER];
        from.read_exact(&mut bytes).await?;
        let length =
            usize::from(bytes[0]) | usize::from(bytes[1]) << 8 | usize::from(bytes[2]) << 16;
        bytes.resize(HEADER + length, 0);
        from.read_exact(&mut bytes[HEADER..]).await?;
        Ok(Self { bytes })
    }

    fn sequence(&self) -> u8 {
        self.bytes[3]
    }

    fn body(&self) -> &[u8] {
        &self.bytes[HEADER..]
    }
}

/// Carries packets both ways until one side closes or the plan cuts.
async fn carry(client: TcpStream, server: TcpStream, plan: &dyn Plan) -> io::Result<()> {
    client.set_nodelay(true)?;
    server.set_nodelay(true)?;
    let (from_client, mut to_client) = client.into_split();
    let (from_server, mut to_server) = server.into_split();
    // Reading a packet is not to be given up halfway, so each side has a task
    // of its own that hands over whole packets.
    let (mut commands, mut answers) = (packets(from_client), packets(from_server));
    // The server speaks first, and says when the client is in.
    let mut is_in = false;
    let mut session = Session::default();
    loop {
        tokio::select! {
            command = commands.recv() => {
                let Some(command) = command else { return Ok(()) };
                let is_command = is_in && command.sequence() == 0;
                let commits = match is_command {
                    true => session.command(command.body()),
                    false => None,
                };
                let cut = commits.and_then(|writing| Some((writing, plan.cut(writing)?)));
                let Some((writing, point)) = cut else {
                    to_server.write_all(&command.bytes).await?;
                    continue;
                };
                if point != Point::Before {
                    to_server.write_all(&command.bytes).await?;
                }
                if point == Point::Answered {
                    answers.recv().await;
                }
                plan.at_cut(writing, point);
                return Ok(());
            }
            answer = answers.recv() => {
                let Some(answer) = answer else { return Ok(()) };
                if is_in && answer.sequence() == 1 {
                    session.answer(answer.body());
                }
                is_in |= answer.body().first() == Some(&OK);
                to_client.write_all(&answer.bytes).await?;
            }
        }
    }
}

/// Reads packets in a task of its own, until the end or until nobody listens.
fn packets(mut from: OwnedReadHalf) -> tokio::sync::mpsc::Receiver<Packet> {
    let (sender, receiver) = tokio::sync::mpsc::channel(16);
    tokio::spawn(async move {
        loop {
            tokio::select! {
                packet = Packet::read(&mut from) => {
                    let Ok(packet) = packet else { return };
                    if sender.send(packet).await.is_err() {
                        return;
                    }
                }
                () = sender.closed() => return,
            }
        }
    });
    receiver
}
