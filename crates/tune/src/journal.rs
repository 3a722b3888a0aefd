//! What a transaction does, written down before it is done: one record a line, each with a checksum, each on the disk before
//! the host is touched. A record that was being written when the machine stopped is recognised and cut off.

use std::fmt::Write as _;
use std::fs::{File, OpenOptions};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};

use landspeed_model::Target;
use landspeed_sys::{clock, disk, process};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::persist::FileChange;
use crate::transaction::Outcome;
use crate::{Device, Value};

/// Room kept for a journal from its start, bytes: a disk that fills up later must not stop a revert.
const RESERVED_BYTES: u32 = 256 << 10;
/// Characters of the checksum kept: 64 bits are plenty against a torn line.
const SUM_CHARACTERS: usize = 16;

/// Why a journal could not be kept or read.
#[derive(Debug, thiserror::Error)]
pub enum JournalError {
    /// A file operation failed.
    #[error("cannot {operation} {path}: {cause}{}", advice(.cause))]
    File {
        /// Which.
        operation: &'static str,
        /// On what.
        path: PathBuf,
        /// Why.
        cause: io::Error,
    },
    /// A line that is not the last does not match its checksum.
    #[error(
        "{path}, line {line}, is damaged; what came after it is not trusted. Look at the host by hand, then remove the file"
    )]
    Damaged {
        /// The journal.
        path: PathBuf,
        /// Line, from 1.
        line: usize,
    },
}

fn advice(cause: &io::Error) -> &'static str {
    match cause.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::ReadOnlyFilesystem => {
            "; nothing was changed. Name another place with --state"
        }
        io::ErrorKind::PermissionDenied => "; run it as root",
        _ => "",
    }
}

/// A step as the journal keeps it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct JournalStep {
    /// What.
    pub target: Target,
    /// Its device.
    pub device: Option<Device>,
    /// The value when it was planned.
    pub before: Value,
    /// The value it is to have.
    pub desired: String,
    /// Whether it is only watched over.
    pub keep: bool,
}

impl JournalStep {
    /// What, under the name its device has now.
    #[must_use]
    pub fn target_on(&self, name: &str) -> Target {
        crate::sysctl::on_interface(&self.target, name)
    }
}

/// What the host was like before the first write, to judge it by before a confirmation.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Baseline {
    /// Default routes.
    pub routes: Vec<String>,
    /// Devices of the plan and whether they had a carrier.
    pub carriers: Vec<(Device, bool)>,
    /// The management peer: the far address of `SSH_CONNECTION`.
    pub peer: Option<String>,
    /// `SSH_CONNECTION` of who applied.
    pub session: Option<String>,
}

/// What happened.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "op", rename_all = "kebab-case")]
pub enum Entry {
    /// What is going to be done.
    Planned {
        /// In order.
        steps: Vec<JournalStep>,
        /// How long a confirmation is waited for, seconds.
        confirm_s: u64,
        /// The host before.
        baseline: Baseline,
        /// Process that applies, and when it was started, clock ticks since boot.
        applier: (u32, u64),
        /// `CLOCK_MONOTONIC`, nanoseconds.
        monotonic_ns: u64,
    },
    /// The watchdog is awake.
    Armed {
        /// Its process.
        watchdog: u32,
    },
    /// A step is about to be written; this is what is there now.
    Intent {
        /// Its number, from 0.
        step: usize,
        /// The value now.
        before: Value,
    },
    /// A step was written and read back.
    Applied {
        /// Its number.
        step: usize,
        /// What was read back.
        observed: Value,
        /// Whether the driver took another value than asked for.
        rounded: bool,
    },
    /// Everything is written; a confirmation is due by then (`CLOCK_MONOTONIC`, nanoseconds).
    AwaitingConfirm {
        /// When it is too late.
        deadline_ns: u64,
    },
    /// It stays.
    Committed,
    /// It is taken back.
    Reverting {
        /// Why.
        why: String,
    },
    /// A step is about to be put back.
    Restoring {
        /// Its number.
        step: usize,
    },
    /// A step was dealt with.
    Restored {
        /// Its number.
        step: usize,
        /// How.
        outcome: Outcome,
    },
    /// All is as it was.
    Reverted {
        /// How that came.
        why: String,
    },
    /// Something is left to a person.
    NeedsAttention {
        /// What.
        why: String,
    },
    /// Files are about to be written; this is what was there.
    Persisting {
        /// The files.
        files: Vec<FileChange>,
    },
    /// They are written.
    Persisted,
    /// They are being put back.
    Unpersisting,
    /// They are as they were.
    Unpersisted,
}

/// One line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    /// Number in its journal, from 0.
    pub sequence: u64,
    /// Boot id of the kernel.
    pub boot: String,
    /// Network namespace.
    pub namespace: String,
    /// When, nanoseconds since the Unix epoch.
    pub realtime_ns: u64,
    /// What.
    pub entry: Entry,
}

/// Where the process is made to end or to stop, to test what a crash leaves and what others do meanwhile.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// It ends right after the nth record of this process is on the disk, from 1.
    AfterRecord(u64),
    /// It ends right after the nth write to the host by this process, from 1, before anything is recorded.
    AfterWrite(u64),
    /// It stops there, until it is told to continue.
    StopAfterRecord(u64),
}

impl Fault {
    /// Parses `after-record:N`, `after-write:N` or `stop-after-record:N`.
    pub fn parse(text: &str) -> Option<Self> {
        let (what, number) = text.split_once(':')?;
        let number = number.parse().ok()?;
        match what {
            "after-record" => Some(Self::AfterRecord(number)),
            "after-write" => Some(Self::AfterWrite(number)),
            "stop-after-record" => Some(Self::StopAfterRecord(number)),
            _ => None,
        }
    }
}

/// Where and who this is.
#[derive(Debug, Clone)]
pub struct Context {
    /// State directory.
    pub state: PathBuf,
    /// Boot id.
    pub boot: String,
    /// Network namespace: device and inode of its file.
    pub namespace: String,
    /// For tests.
    pub fault: Option<Fault>,
}

/// The journal of one transaction.
#[derive(Debug)]
pub struct Journal {
    /// Number of the transaction.
    pub id: u32,
    path: PathBuf,
    records: Vec<Record>,
    file: Option<File>,
    /// Bytes of whole lines in the file.
    whole: u64,
    written: u64,
}

impl Journal {
    /// Numbers of the journals in a directory, ascending; none if it does not exist.
    pub fn list(state: &Path) -> Result<Vec<u32>, JournalError> {
        let entries = match std::fs::read_dir(state) {
            Ok(entries) => entries,
            Err(why) if why.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(cause) => return Err(JournalError::File { operation: "list", path: state.to_owned(), cause }),
        };
        let names = entries.flatten().filter_map(|entry| entry.file_name().into_string().ok());
        let mut numbers: Vec<u32> =
            names.filter_map(|name| name.strip_suffix(".journal").and_then(|number| number.parse().ok())).collect();
        numbers.sort_unstable();
        Ok(numbers)
    }

    /// Starts a new one with room to grow. Nothing is on the disk before the first [`Journal::append`] returns.
    pub fn create(context: &Context) -> Result<Self, JournalError> {
        let id = Self::list(&context.state)?.last().map_or(1, |last| last + 1);
        let path = Self::path(&context.state, id);
        let fail = |operation, path: &Path, cause| JournalError::File { operation, path: path.to_owned(), cause };
        let file = OpenOptions::new().append(true).create_new(true).open(&path);
        let file = file.map_err(|cause| fail("create", &path, cause))?;
        let ready = disk::reserve(&file, RESERVED_BYTES).and_then(|_| sync_directory(&context.state));
        if let Err(cause) = ready {
            let _ = std::fs::remove_file(&path);
            return Err(fail("reserve room for", &path, cause));
        }
        Ok(Self { id, path, records: Vec::new(), file: Some(file), whole: 0, written: 0 })
    }

    /// Reads one.
    pub fn load(state: &Path, id: u32) -> Result<Self, JournalError> {
        let path = Self::path(state, id);
        let bytes = std::fs::read(&path).map_err(|cause| JournalError::File {
            operation: "read",
            path: path.clone(),
            cause,
        })?;
        let (records, _) = parse(&bytes).map_err(|line| JournalError::Damaged { path: path.clone(), line })?;
        Ok(Self { id, path, records, file: None, whole: 0, written: 0 })
    }

    /// Reads one and keeps it open: it can be read and written to even when its directory is gone.
    pub(crate) fn open(state: &Path, id: u32) -> Result<Self, JournalError> {
        let mut journal = Self::load(state, id)?;
        let file = OpenOptions::new().read(true).append(true).open(&journal.path);
        journal.file = Some(file.map_err(|cause| JournalError::File {
            operation: "open",
            path: journal.path.clone(),
            cause,
        })?);
        Ok(journal)
    }

    /// Reads again what [`Journal::open`] keeps open, for others write to it, too. The caller holds the lock, or only looks.
    pub(crate) fn reload(&mut self) -> Result<(), JournalError> {
        let fail = |cause| JournalError::File { operation: "read", path: self.path.clone(), cause };
        let Some(file) = &mut self.file else { return Ok(()) };
        let mut bytes = Vec::new();
        file.seek(SeekFrom::Start(0)).and_then(|_| file.read_to_end(&mut bytes)).map_err(fail)?;
        let (records, whole) =
            parse(&bytes).map_err(|line| JournalError::Damaged { path: self.path.clone(), line })?;
        self.records = records;
        self.whole = whole as u64;
        Ok(())
    }

    /// Takes away a journal that holds nothing anybody needs.
    pub fn discard(self) {
        let _ = std::fs::remove_file(&self.path);
    }

    /// What is in it.
    pub fn records(&self) -> &[Record] {
        &self.records
    }

    /// The entries alone.
    pub fn entries(&self) -> impl DoubleEndedIterator<Item = &Entry> {
        self.records.iter().map(|record| &record.entry)
    }

    /// Writes a record and returns when it is on the disk. A torn last line is cut off first.
    pub fn append(&mut self, context: &Context, entry: Entry) -> Result<(), JournalError> {
        let record = Record {
            sequence: self.records.len() as u64,
            boot: context.boot.clone(),
            namespace: context.namespace.clone(),
            realtime_ns: clock::realtime_ns(),
            entry,
        };
        let line = line(&record);
        self.put(&line).map_err(|cause| JournalError::File { operation: "write", path: self.path.clone(), cause })?;
        self.records.push(record);
        self.written += 1;
        match context.fault {
            Some(Fault::AfterRecord(number)) if number == self.written => process::kill_self(),
            Some(Fault::StopAfterRecord(number)) if number == self.written => process::stop_self(),
            _ => {}
        }
        Ok(())
    }

    fn put(&mut self, line: &str) -> io::Result<()> {
        if self.file.is_none() {
            let bytes = std::fs::read(&self.path)?;
            self.whole = parse(&bytes).unwrap_or_default().1 as u64;
            self.file = Some(OpenOptions::new().append(true).open(&self.path)?);
        }
        let Some(file) = self.file.as_mut() else { return Err(io::ErrorKind::NotFound.into()) };
        // Half a line must not stand before the next one.
        if file.metadata()?.len() > self.whole {
            file.set_len(self.whole)?;
        }
        let written = file.write_all(line.as_bytes()).and_then(|()| file.sync_all());
        match written {
            Ok(()) => self.whole += line.len() as u64,
            Err(_) => {
                let _ = file.set_len(self.whole);
            }
        }
        written
    }

    fn path(state: &Path, id: u32) -> PathBuf {
        state.join(format!("{id:04}.journal"))
    }
}

/// Makes the names in a directory last.
pub(crate) fn sync_directory(path: &Path) -> io::Result<()> {
    File::open(path)?.sync_all()
}

fn sum(text: &[u8]) -> String {
    let mut sum = String::new();
    for byte in Sha256::digest(text).iter().take(SUM_CHARACTERS / 2) {
        let _ = write!(sum, "{byte:02x}");
    }
    sum
}

const HEAD: &str = "{\"sum\":\"";
const MIDDLE: &str = "\",\"record\":";

fn line(record: &Record) -> String {
    let json = serde_json::to_string(record).unwrap_or_else(|why| unreachable!("a record is plain data: {why}"));
    format!("{HEAD}{}{MIDDLE}{json}}}\n", sum(json.as_bytes()))
}

fn parse_line(line: &[u8]) -> Option<Record> {
    let rest = line.strip_prefix(HEAD.as_bytes())?;
    let (told, rest) = rest.split_at_checked(SUM_CHARACTERS)?;
    let json = rest.strip_prefix(MIDDLE.as_bytes())?.strip_suffix(b"}")?;
    (sum(json).as_bytes() == told).then(|| serde_json::from_slice(json).ok())?
}

/// The records and how many bytes of whole lines there are. The error is the number of a damaged line that is not the last.
fn parse(bytes: &[u8]) -> Result<(Vec<Record>, usize), usize> {
    let (mut records, mut whole) = (Vec::new(), 0);
    for (number, line) in bytes.split_inclusive(|&byte| byte == b'\n').enumerate() {
        let record = line.strip_suffix(b"\n").and_then(parse_line).filter(|r| r.sequence == records.len() as u64);
        match record {
            Some(record) => records.push(record),
            None if whole + line.len() == bytes.len() => break,
            None => return Err(number + 1),
        }
        whole += line.len();
    }
    Ok((records, whole))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn context(state: &Path) -> Context {
        Context { state: state.to_owned(), boot: "b".into(), namespace: "n".into(), fault: None }
    }

    fn three(state: &Path) -> Journal {
        let context = context(state);
        let mut journal = Journal::create(&context).expect("a directory to write to");
        for entry in [Entry::Armed { watchdog: 1 }, Entry::Committed, Entry::Reverting { why: "asked".into() }] {
            journal.append(&context, entry).expect("room");
        }
        journal
    }

    #[test]
    fn a_line_cut_anywhere_costs_itself_only() {
        let directory = tempfile::tempdir().expect("a directory");
        let journal = three(directory.path());
        let bytes = std::fs::read(&journal.path).expect("its file");
        let starts: Vec<usize> =
            bytes.iter().enumerate().filter(|(_, b)| **b == b'\n').map(|(at, _)| at + 1).collect();
        for cut in 0..=bytes.len() {
            let (records, whole) = parse(&bytes[..cut]).expect("a torn end is no damage");
            assert_eq!(records.len(), starts.iter().filter(|&&at| at <= cut).count(), "cut at {cut}");
            assert!(whole <= cut);
        }
        std::fs::write(&journal.path, &bytes[..bytes.len() - 3]).expect("torn");
        let mut torn = Journal::load(directory.path(), 1).expect("it loads");
        assert_eq!(torn.records().len(), 2);
        torn.append(&context(directory.path()), Entry::Committed).expect("room");
        let again = Journal::load(directory.path(), 1).expect("whole again");
        assert_eq!(again.entries().last(), Some(&Entry::Committed));
        assert_eq!(again.records().len(), 3);
    }

    #[test]
    fn a_damaged_line_in_the_middle_is_named() {
        let directory = tempfile::tempdir().expect("a directory");
        let journal = three(directory.path());
        let text = std::fs::read_to_string(&journal.path).expect("its file").replace("committed", "committeb");
        std::fs::write(&journal.path, text).expect("damaged");
        let error = Journal::load(directory.path(), 1).expect_err("damaged").to_string();
        assert!(error.contains("line 2"), "{error}");
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic_or_invent_a_record(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
            if let Ok((records, _)) = parse(&bytes) {
                prop_assert!(records.is_empty());
            }
        }
    }
}
