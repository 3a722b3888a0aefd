//! Write-ahead journal of a transaction: one record per line, each with a checksum, and each on disk before
//! the host is changed. A record that was incomplete when the machine stopped is detected and truncated.

use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};

use landspeed_sys::trust::{Access, Directory, Policy, TrustError, Untrusted};
use landspeed_sys::{clock, disk, process};
use sha2::{Digest as _, Sha256};

mod record;

pub use record::{Baseline, Entry, FileChange, JournalStep, Record, RestoreOutcome};

/// Disk space reserved when a journal is created, bytes: a disk that fills up later must not prevent a
/// revert.
const RESERVED_BYTES: u32 = 256 << 10;
/// Length of the checksum in hexadecimal digits: 64 bits suffice to detect a torn line.
const SUM_CHARACTERS: usize = 16;

/// Errors of writing or reading a journal.
#[derive(Debug, thiserror::Error)]
pub enum JournalError {
    /// A file operation failed.
    #[error("cannot {operation} {path}: {cause}{}", advice(.cause))]
    File {
        /// `read`, `write` or another verb for the message.
        operation: &'static str,
        /// File or directory concerned.
        path: PathBuf,
        /// Error of the operating system.
        cause: io::Error,
    },
    /// Another user could have written the file or directory.
    #[error(transparent)]
    Untrusted(#[from] Untrusted),
    /// Another process took the transaction over.
    #[error(
        "the watchdog has taken transaction {id} over, because its time was up: this process writes nothing more"
    )]
    TakenOver {
        /// Number of the transaction.
        id: u32,
    },
    /// A line other than the last does not match its checksum.
    #[error(
        "{path}, line {line}, is damaged; what came after it is not trusted. Look at the host by hand, then remove the file"
    )]
    Damaged {
        /// Path of the journal.
        path: PathBuf,
        /// Line number, from 1.
        line: usize,
    },
}

impl From<TrustError> for JournalError {
    fn from(error: TrustError) -> Self {
        match error {
            TrustError::Untrusted(why) => Self::Untrusted(why),
            TrustError::Io { operation, path, cause, .. } => Self::File { operation, path, cause },
        }
    }
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

/// Injected crash or stop, to test recovery and concurrency.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// Kill the process after its nth record is on disk, from 1.
    AfterRecord(u64),
    /// Kill the process after its nth write to the host, from 1, before the write is recorded.
    AfterWrite(u64),
    /// Stop the process (SIGSTOP) after its nth record, from 1, until SIGCONT.
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

/// Identity of this host and the location of its transaction data.
#[derive(Debug, Clone)]
pub struct Context {
    /// State directory, with the journals.
    pub state: PathBuf,
    /// Boot id of the running kernel.
    pub boot: String,
    /// Network namespace: device and inode of its file.
    pub namespace: String,
    /// Policy for state directories, journals and locks that another user could have written.
    pub policy: Policy,
    /// Registry directory: lists this host's transactions of all state directories.
    pub registry: PathBuf,
    /// Injected fault, for tests.
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
    /// Length of the complete lines in the file, bytes.
    whole: u64,
    written: u64,
}

impl Journal {
    /// Returns the numbers of all journals in the state directory, ascending; empty if it does not exist.
    pub fn list(context: &Context) -> Result<Vec<u32>, JournalError> {
        let Some(directory) = context.directory()? else { return Ok(Vec::new()) };
        let names = directory.names().map_err(|cause| JournalError::File {
            operation: "list",
            path: context.state.clone(),
            cause,
        })?;
        let names = names.into_iter().filter_map(|name| name.into_string().ok());
        let mut numbers: Vec<u32> =
            names.filter_map(|name| name.strip_suffix(".journal").and_then(|number| number.parse().ok())).collect();
        numbers.sort_unstable();
        Ok(numbers)
    }

    /// Creates a journal with its plan. The file gets its name only after the plan is on disk, so a journal
    /// without a plan is damaged.
    pub fn create(context: &Context, planned: Entry) -> Result<Self, JournalError> {
        let id = Self::list(context)?.last().map_or(1, |last| last + 1);
        let path = context.state.join(name_of(id));
        let directory = context.make_directory()?;
        let fail = |operation, cause| JournalError::File { operation, path: path.clone(), cause };
        // A leftover of a crash: the caller holds the lock, so no process writes it.
        let _ = directory.remove(TEMPORARY_NAME);
        let file = directory.file(TEMPORARY_NAME, FILE_KIND, Access::CreateNew)?;
        let mut journal =
            Self { id, path: path.clone(), records: Vec::new(), file: Some(file), whole: 0, written: 0 };
        let made = (|| {
            if let Some(file) = &journal.file {
                disk::reserve(file, RESERVED_BYTES).map_err(|cause| fail("reserve room for", cause))?;
            }
            journal.write(context, planned)?;
            let named = directory.rename(TEMPORARY_NAME, &name_of(id)).and_then(|()| directory.sync());
            named.map_err(|cause| fail("create", cause))
        })();
        if let Err(why) = made {
            let _ = directory.remove(TEMPORARY_NAME);
            return Err(why);
        }
        journal.fault(context);
        Ok(journal)
    }

    /// Removes a journal. The caller holds the lock.
    pub(crate) fn remove(context: &Context, id: u32) -> Result<(), JournalError> {
        let Some(directory) = context.directory()? else { return Ok(()) };
        directory.remove(&name_of(id)).map_err(|cause| JournalError::File {
            operation: "remove",
            path: context.state.join(name_of(id)),
            cause,
        })
    }

    /// Loads a journal.
    pub fn load(context: &Context, id: u32) -> Result<Self, JournalError> {
        Self::read(context, id, Access::Read).map(|journal| Self { file: None, ..journal })
    }

    /// Loads a journal and keeps it open: it stays readable and writable even if its directory is removed.
    pub(crate) fn open(context: &Context, id: u32) -> Result<Self, JournalError> {
        Self::read(context, id, Access::Append)
    }

    fn read(context: &Context, id: u32, access: Access) -> Result<Self, JournalError> {
        let path = context.state.join(name_of(id));
        let fail = |cause| JournalError::File { operation: "read", path: path.clone(), cause };
        let directory = context.directory()?.ok_or_else(|| fail(io::ErrorKind::NotFound.into()))?;
        let mut file = directory.file(&name_of(id), FILE_KIND, access)?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).map_err(fail)?;
        let (records, whole) = parse(&bytes).map_err(|line| JournalError::Damaged { path: path.clone(), line })?;
        Ok(Self { id, path, records, file: Some(file), whole: whole as u64, written: 0 })
    }

    /// Reads a journal opened by [`Journal::open`] again, because other processes write to it too. The caller
    /// holds the lock or only reads. Known records that are missing in the file are kept.
    pub(crate) fn reload(&mut self) -> Result<(), JournalError> {
        let fail = |cause| JournalError::File { operation: "read", path: self.path.clone(), cause };
        let Some(file) = &mut self.file else { return Ok(()) };
        let mut bytes = Vec::new();
        file.seek(SeekFrom::Start(0)).and_then(|_| file.read_to_end(&mut bytes)).map_err(fail)?;
        let (records, whole) =
            parse(&bytes).map_err(|line| JournalError::Damaged { path: self.path.clone(), line })?;
        if records.len() >= self.records.len() {
            self.records = records;
            self.whole = whole as u64;
        }
        Ok(())
    }

    /// All records, in order.
    pub fn records(&self) -> &[Record] {
        &self.records
    }

    /// Entries of all records, in order.
    pub fn entries(&self) -> impl DoubleEndedIterator<Item = &Entry> {
        self.records.iter().map(|record| &record.entry)
    }

    /// Appends a record and returns when it is on disk.
    pub fn append(&mut self, context: &Context, entry: Entry) -> Result<(), JournalError> {
        self.write(context, entry)?;
        self.fault(context);
        Ok(())
    }

    fn write(&mut self, context: &Context, entry: Entry) -> Result<(), JournalError> {
        let record = Record {
            sequence: self.records.len() as u64,
            boot: context.boot.clone(),
            namespace: context.namespace.clone(),
            realtime_ns: clock::realtime_ns(),
            entry,
        };
        if self.file.is_none() {
            let fail = |cause| JournalError::File { operation: "write", path: self.path.clone(), cause };
            let directory = context.directory()?.ok_or_else(|| fail(io::ErrorKind::NotFound.into()))?;
            self.file = Some(directory.file(&name_of(self.id), FILE_KIND, Access::Append)?);
        }
        self.ensure_not_taken_over()?;
        let fail = |cause| JournalError::File { operation: "write", path: self.path.clone(), cause };
        let line = line(&record);
        let Some(file) = self.file.as_mut() else { return Err(fail(io::ErrorKind::NotFound.into())) };
        let mut text = String::new();
        let length = file.metadata().map_err(fail)?.len();
        if length < self.whole {
            // The file was truncated: write the known records again.
            file.set_len(0).map_err(fail)?;
            self.records.iter().for_each(|known| text.push_str(&self::line(known)));
            self.whole = 0;
        } else if length > self.whole {
            // Remove an incomplete line before appending.
            file.set_len(self.whole).map_err(fail)?;
        }
        text.push_str(&line);
        if let Err(cause) = file.write_all(text.as_bytes()).and_then(|()| file.sync_all()) {
            let _ = file.set_len(self.whole);
            return Err(fail(cause));
        }
        self.whole += text.len() as u64;
        self.records.push(record);
        self.written += 1;
        Ok(())
    }

    /// Fails if another process has appended records since this one last read or wrote: it has taken the
    /// transaction over, and only one process may change the host. If the journal cannot be read, no takeover
    /// is assumed.
    pub(crate) fn ensure_not_taken_over(&mut self) -> Result<(), JournalError> {
        let Some(file) = &mut self.file else { return Ok(()) };
        let mut tail = Vec::new();
        let longer = file.metadata().is_ok_and(|facts| facts.len() > self.whole);
        if longer && file.seek(SeekFrom::Start(self.whole)).and_then(|_| file.read_to_end(&mut tail)).is_ok() {
            let next = self.records.len() as u64;
            let first = tail.split_inclusive(|&byte| byte == b'\n').next().and_then(|line| line.strip_suffix(b"\n"));
            if first.and_then(parse_line).is_some_and(|record| record.sequence == next) {
                return Err(JournalError::TakenOver { id: self.id });
            }
        }
        Ok(())
    }

    /// Kills or stops the process at the injected fault, for tests.
    fn fault(&self, context: &Context) {
        match context.fault {
            Some(Fault::AfterRecord(number)) if number == self.written => process::kill_self(),
            Some(Fault::StopAfterRecord(number)) if number == self.written => process::stop_self(),
            _ => {}
        }
    }
}

/// Kind of file, for errors.
const FILE_KIND: &str = "journal";
/// File name of a journal whose plan is not on disk yet.
const TEMPORARY_NAME: &str = "new";

fn name_of(id: u32) -> String {
    format!("{id:04}.journal")
}

impl Context {
    /// Opens the state directory; `None` if it does not exist.
    pub(crate) fn directory(&self) -> Result<Option<Directory>, JournalError> {
        match Directory::open(&self.state, "state directory", false, self.policy) {
            Ok(directory) => Ok(Some(directory)),
            Err(why) if why.io().is_some_and(|why| why.kind() == io::ErrorKind::NotFound) => Ok(None),
            Err(why) => Err(why.into()),
        }
    }

    /// Opens the state directory, and creates it if necessary.
    pub(crate) fn make_directory(&self) -> Result<Directory, JournalError> {
        Ok(Directory::open(&self.state, "state directory", true, self.policy)?)
    }
}

/// Flushes the entries of a directory to disk (fsync).
pub(crate) fn sync_directory(path: &Path) -> io::Result<()> {
    File::open(path)?.sync_all()
}

pub(crate) fn sum(text: &[u8]) -> String {
    let mut sum = String::new();
    for byte in Sha256::digest(text).iter().take(SUM_CHARACTERS / 2) {
        let _ = write!(sum, "{byte:02x}");
    }
    sum
}

const LINE_START: &str = "{\"sum\":\"";
const LINE_MIDDLE: &str = "\",\"record\":";

fn line(record: &Record) -> String {
    let json = serde_json::to_string(record).unwrap_or_else(|why| unreachable!("a record is plain data: {why}"));
    format!("{LINE_START}{}{LINE_MIDDLE}{json}}}\n", sum(json.as_bytes()))
}

fn parse_line(line: &[u8]) -> Option<Record> {
    let rest = line.strip_prefix(LINE_START.as_bytes())?;
    let (written, rest) = rest.split_at_checked(SUM_CHARACTERS)?;
    let json = rest.strip_prefix(LINE_MIDDLE.as_bytes())?.strip_suffix(b"}")?;
    (sum(json).as_bytes() == written).then(|| serde_json::from_slice(json).ok())?
}

/// Parses records; also returns the length of the complete lines, bytes. The error is the number of a
/// damaged line that is not the last.
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
        let registry = state.join("registry");
        let (boot, namespace) = ("b".into(), "n".into());
        Context { state: state.to_owned(), boot, namespace, policy: Policy::Refuse, registry, fault: None }
    }

    fn three_step_journal(state: &Path) -> Journal {
        let context = context(state);
        let armed = Entry::Armed { watchdog: 1, deadline_ns: None };
        let mut journal = Journal::create(&context, armed).expect("a directory to write to");
        for entry in [Entry::Committed, Entry::Reverting { why: "asked".into() }] {
            journal.append(&context, entry).expect("room");
        }
        journal
    }

    #[test]
    fn truncated_line_loses_only_itself() {
        let directory = tempfile::tempdir().expect("a directory");
        let journal = three_step_journal(directory.path());
        let bytes = std::fs::read(&journal.path).expect("its file");
        let starts: Vec<usize> =
            bytes.iter().enumerate().filter(|(_, b)| **b == b'\n').map(|(at, _)| at + 1).collect();
        for cut in 0..=bytes.len() {
            let (records, whole) = parse(&bytes[..cut]).expect("a truncated end is not damage");
            assert_eq!(records.len(), starts.iter().filter(|&&at| at <= cut).count(), "cut at {cut}");
            assert!(whole <= cut);
        }
        std::fs::write(&journal.path, &bytes[..bytes.len() - 3]).expect("torn");
        let mut torn = Journal::load(&context(directory.path()), 1).expect("it loads");
        assert_eq!(torn.records().len(), 2);
        torn.append(&context(directory.path()), Entry::Committed).expect("room");
        let again = Journal::load(&context(directory.path()), 1).expect("whole again");
        assert_eq!(again.entries().last(), Some(&Entry::Committed));
        assert_eq!(again.records().len(), 3);
    }

    #[test]
    fn corrupt_line_in_the_middle_is_named() {
        let directory = tempfile::tempdir().expect("a directory");
        let journal = three_step_journal(directory.path());
        let text = std::fs::read_to_string(&journal.path).expect("its file").replace("committed", "committeb");
        std::fs::write(&journal.path, text).expect("damaged");
        let error = Journal::load(&context(directory.path()), 1).expect_err("damaged").to_string();
        assert!(error.contains("line 2"), "{error}");
    }

    #[test]
    fn process_writes_nothing_after_a_takeover() {
        let directory = tempfile::tempdir().expect("a directory");
        let context = context(directory.path());
        let mut applier = three_step_journal(directory.path());
        let mut watchdog = Journal::open(&context, 1).expect("it opens");
        applier.ensure_not_taken_over().expect("no other process wrote");
        watchdog.append(&context, Entry::TakenOver { from: (1, 1) }).expect("room");
        assert!(matches!(applier.ensure_not_taken_over(), Err(JournalError::TakenOver { id: 1 })));
        assert!(matches!(applier.append(&context, Entry::Committed), Err(JournalError::TakenOver { id: 1 })));
        let last = Journal::load(&context, 1).expect("whole").entries().last().cloned();
        assert_eq!(last, Some(Entry::TakenOver { from: (1, 1) }), "nothing was cut off");
        // An incomplete line is not taken for a record of another process.
        let text = std::fs::read_to_string(&watchdog.path).expect("its file") + "{\"sum\":\"12";
        std::fs::write(&watchdog.path, text).expect("torn");
        watchdog.append(&context, Entry::Committed).expect("the torn end is cut off");
    }

    #[test]
    fn truncated_records_are_rewritten() {
        let directory = tempfile::tempdir().expect("a directory");
        let context = context(directory.path());
        three_step_journal(directory.path());
        let mut open = Journal::open(&context, 1).expect("it opens");
        let text = std::fs::read_to_string(&open.path).expect("its file");
        let first = text.split_inclusive('\n').next().expect("a line");
        std::fs::write(&open.path, first).expect("cut");
        open.reload().expect("it reads");
        assert_eq!(open.records().len(), 3);
        open.append(&context, Entry::Committed).expect("room");
        assert_eq!(Journal::load(&context, 1).expect("whole again").records().len(), 4);
    }

    #[test]
    fn journal_is_named_only_after_its_plan_is_written() {
        let directory = tempfile::tempdir().expect("a directory");
        let context = context(directory.path());
        std::fs::write(directory.path().join(TEMPORARY_NAME), "half").expect("what a crash left");
        assert_eq!(three_step_journal(directory.path()).id, 1);
        assert!(!directory.path().join(TEMPORARY_NAME).exists());
        assert_eq!(Journal::list(&context).expect("listed"), [1]);
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_yield_no_records(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
            if let Ok((records, _)) = parse(&bytes) {
                prop_assert!(records.is_empty());
            }
        }
    }
}
