//! What clients and handlers see, as lines of JSON.

use std::{
    fs::{File, OpenOptions},
    io::Write as _,
    path::Path,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering},
    },
};

use retryjob_core::{Leased, backend::Backend};
use serde::{Deserialize, Serialize};

/// One event of one process.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    /// The process.
    pub process: u32,
    /// The call that it belongs to; for what handlers note, a number of its
    /// own.
    pub call: u64,
    /// What happened.
    pub event: Event,
}

/// Something that a client or a handler saw.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Event {
    /// The call begins.
    Invoke(Call),
    /// It was answered.
    Ok(Answer),
    /// It was refused: nothing was changed.
    Fail(String),
    /// Nobody can say whether it took effect.
    Unknown(String),
    /// A handler was called.
    Started(Attempt),
    /// A handler's transaction, with its finish, was committed.
    Committed(Attempt),
    /// A handler was told that its lease was lost.
    Lost(Attempt),
    /// Whoever listens to the worker's events was told that an attempt's lease
    /// was lost.
    LostTold { id: u64, attempt_no: u16 },
}

/// A call that changes jobs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Call {
    Enqueue {
        keys: Vec<String>,
    },
    Claim {
        owner: String,
        /// The shards that were asked for.
        #[serde(default)]
        shards: Vec<u16>,
    },
    Renew {
        leases: Vec<LeaseOf>,
    },
    Finish {
        finishes: Vec<Ended>,
    },
    FinishIn {
        lease: LeaseOf,
    },
    Reap,
    Operate {
        action: String,
        ids: Vec<u64>,
    },
}

/// What a call was told.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Answer {
    /// Id and whether it is new, for each key.
    Enqueued(Vec<(u64, bool)>),
    Claimed(Vec<LeaseOf>),
    /// Ids of leases that were lost.
    Renewed {
        lost: Vec<u64>,
    },
    Finished {
        lost: Vec<u64>,
    },
    /// Written, and committed when the caller commits.
    FinishedIn,
    Reaped(Vec<LeaseOf>),
    /// Ids that were moved.
    Operated {
        done: Vec<u64>,
    },
}

/// A lease without its owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct LeaseOf {
    pub id: u64,
    pub lease_seq: u64,
}

/// A finish that was asked for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ended {
    pub lease: LeaseOf,
    /// The status that it leads to, by its code.
    pub status: u8,
}

/// One run of a handler.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Attempt {
    pub id: u64,
    pub lease_seq: u64,
    pub attempt_no: u16,
}

impl Attempt {
    /// The attempt that a handler is in.
    pub fn of<J, B: Backend>(job: &Leased<J, B>) -> Self {
        Self {
            id: job.id(),
            lease_seq: job.lease().lease_seq,
            attempt_no: job.attempt_no(),
        }
    }
}

/// Takes records down, in memory or in a file that outlives the process.
#[derive(Clone, Debug)]
pub struct Recorder(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    process: u32,
    call: AtomicU64,
    sink: Mutex<Sink>,
}

#[derive(Debug)]
enum Sink {
    Memory(Vec<Record>),
    /// Written line by line, unbuffered: what was written is there after the
    /// process is killed.
    File(File),
}

impl Recorder {
    /// Keeps records in memory.
    #[must_use]
    pub fn in_memory() -> Self {
        Self::new(Sink::Memory(Vec::new()))
    }

    /// Appends records to a file, which processes may share.
    pub fn to_file(path: &Path) -> Self {
        let file = OpenOptions::new().create(true).append(true).open(path);
        Self::new(Sink::File(file.unwrap()))
    }

    fn new(sink: Sink) -> Self {
        Self(Arc::new(Inner {
            process: std::process::id(),
            call: AtomicU64::new(0),
            sink: Mutex::new(sink),
        }))
    }

    /// The records of a file.
    #[must_use]
    pub fn read(path: &Path) -> Vec<Record> {
        let text = std::fs::read_to_string(path).unwrap_or_default();
        // A process that is killed while it writes leaves half a line, and
        // always as the last of its own.
        text.lines()
            .filter_map(|line| serde_json::from_str(line).ok())
            .collect()
    }

    /// The records so far, of a recorder in memory.
    #[must_use]
    pub fn records(&self) -> Vec<Record> {
        match &*self.0.sink.lock().unwrap() {
            Sink::Memory(records) => records.clone(),
            Sink::File(_) => Vec::new(),
        }
    }

    /// Takes down something that is no call.
    pub fn note(&self, event: Event) {
        let call = self.next_call();
        self.write(call, event);
    }

    /// A call begins. It ends as unknown when what this gives is dropped.
    #[must_use]
    pub fn invoke(&self, call: Call) -> Open {
        let number = self.next_call();
        self.write(number, Event::Invoke(call));
        Open {
            recorder: self.clone(),
            call: number,
            has_ended: false,
        }
    }

    fn next_call(&self) -> u64 {
        self.0.call.fetch_add(1, Ordering::Relaxed)
    }

    fn write(&self, call: u64, event: Event) {
        let process = self.0.process;
        let record = Record {
            process,
            call,
            event,
        };
        match &mut *self.0.sink.lock().unwrap() {
            Sink::Memory(records) => records.push(record),
            Sink::File(file) => {
                let line = serde_json::to_string(&record).unwrap() + "\n";
                file.write_all(line.as_bytes()).unwrap();
            }
        }
    }
}

/// A call under way.
#[derive(Debug)]
pub struct Open {
    recorder: Recorder,
    call: u64,
    has_ended: bool,
}

impl Open {
    pub fn end(mut self, event: Event) {
        self.has_ended = true;
        self.recorder.write(self.call, event);
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        if !self.has_ended {
            let dropped = Event::Unknown("the call was dropped".into());
            self.recorder.write(self.call, dropped);
        }
    }
}
