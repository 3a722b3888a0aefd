//! The journal of a mesh: a line for each start and each end of a test. It makes budgets and due times survive a restart.

use std::collections::HashSet;
use std::fs::File;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use landspeed_model::MeshResult;
use landspeed_sys::{clock, file};
use serde::{Deserialize, Serialize};

/// Age from which entries are dropped when the journal is opened, nanoseconds: results of two weeks are compared.
const KEEP_NS: u64 = 15 * 86_400 * 1_000_000_000;
/// Largest journal that is read, bytes.
const MAX_BYTES: u64 = 1 << 30;

/// Bytes that the file grows, at least, before it is written without old entries.
const COMPACT_BYTES: u64 = 16 << 20;

/// A time on the clocks of this host.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Stamp {
    /// Wall clock, nanoseconds since the Unix epoch.
    pub unix_ns: u64,
    /// `CLOCK_MONOTONIC`, nanoseconds.
    pub monotonic_ns: u64,
    /// Id of the boot for which `monotonic_ns` is valid.
    pub boot: String,
}

impl Stamp {
    /// Returns the current time.
    pub fn now() -> Self {
        let boot = file::read_text("/proc/sys/kernel/random/boot_id".as_ref(), 4096).unwrap_or_default();
        let (unix_ns, monotonic_ns) = (clock::realtime_ns(), clock::monotonic_ns());
        Self { unix_ns, monotonic_ns, boot: boot.trim().to_owned() }
    }

    /// Returns the time since an earlier stamp, nanoseconds. Within a boot, steps of the wall clock do not matter.
    pub fn since_ns(&self, earlier: &Self) -> u64 {
        if self.boot == earlier.boot && !self.boot.is_empty() {
            self.monotonic_ns.saturating_sub(earlier.monotonic_ns)
        } else {
            self.unix_ns.saturating_sub(earlier.unix_ns)
        }
    }
}

/// A line of the journal.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "entry", rename_all = "lowercase")]
pub enum Entry {
    /// Reservation of a test, written before it starts.
    Start(Key),
    /// Result of a test, which replaces its reservation.
    End(Box<EndEntry>),
}

/// Identifies a test of a pair and its start.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Key {
    /// Name of the test.
    pub test: String,
    /// Name of the client.
    pub from: String,
    /// Name of the server.
    pub to: String,
    /// Time of the start on the clocks of this host.
    pub start: Stamp,
    /// Payload bytes that the test reserved.
    #[serde(default)]
    pub reserved_bytes: u64,
    /// Time that the test reserved, nanoseconds.
    #[serde(default)]
    pub reserved_ns: u64,
}

/// End of a test.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct EndEntry {
    /// Identifies the test that ended.
    #[serde(flatten)]
    pub key: Key,
    /// Duration, nanoseconds.
    pub duration_ns: u64,
    /// Payload bytes sent by both hosts; `None` if unknown.
    pub bytes: Option<u64>,
    /// Whether it measured, failed, or was interrupted.
    pub outcome: EndOutcome,
    /// Versions of landspeed on the client and on the server; `None` if unknown.
    pub versions: (Option<String>, Option<String>),
    /// Figures of the test.
    pub result: MeshResult,
}

/// How a test ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum EndOutcome {
    /// The test delivered a result.
    Measured,
    /// It failed, and its hosts answer.
    Failed,
    /// The client did not answer the mesh.
    ClientUnreachable,
    /// The server did not answer the mesh or its client.
    ServerUnreachable,
    /// The mesh was stopped.
    Interrupted,
}

impl EndOutcome {
    /// All outcomes, in the order of their values.
    pub const ALL: [Self; 5] =
        [Self::Measured, Self::Failed, Self::ClientUnreachable, Self::ServerUnreachable, Self::Interrupted];

    /// Returns the name in metrics.
    pub fn name(self) -> &'static str {
        match self {
            Self::Measured => "measured",
            Self::Failed => "failed",
            Self::ClientUnreachable => "client-unreachable",
            Self::ServerUnreachable => "server-unreachable",
            Self::Interrupted => "interrupted",
        }
    }
}

impl Entry {
    fn key(&self) -> &Key {
        match self {
            Self::Start(key) => key,
            Self::End(end) => &end.key,
        }
    }
}

/// The journal's file. Lines that cannot be written are kept and written later.
#[derive(Debug)]
pub struct Journal {
    path: PathBuf,
    file: File,
    /// Length of the complete lines, bytes.
    length: u64,
    /// Length from which the file is written without old entries, bytes.
    compact_at: u64,
    unwritten: Vec<u8>,
}

impl Journal {
    /// Opens the journal and returns its entries of the last 15 days, and the number of lines that are damaged.
    pub fn open(path: &Path) -> io::Result<(Self, Vec<Entry>, usize)> {
        let text = match file::read(path, MAX_BYTES) {
            Ok(text) => text,
            Err(why) if why.kind() == io::ErrorKind::NotFound => Vec::new(),
            Err(why) => return Err(why),
        };
        let (entries, damaged) = parse(&text, &Stamp::now());
        let kept: Vec<u8> = entries.iter().flat_map(line).collect();
        if kept != text {
            file::write_atomically(path, &kept)?;
        }
        let file = file::append(path)?;
        let length = kept.len() as u64;
        let compact_at = compact_at(length);
        Ok((Self { path: path.to_owned(), file, length, compact_at, unwritten: Vec::new() }, entries, damaged))
    }

    /// Reads the entries of the last 15 days, without changing the file; none if there is no file.
    pub fn read(path: &Path) -> io::Result<Vec<Entry>> {
        match file::read(path, MAX_BYTES) {
            Ok(text) => Ok(parse(&text, &Stamp::now()).0),
            Err(why) if why.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
            Err(why) => Err(why),
        }
    }

    /// Adds an entry.
    ///
    /// # Errors
    /// If it cannot be written now; it is written with the next one.
    pub fn add(&mut self, entry: &Entry) -> io::Result<()> {
        self.unwritten.extend(line(entry));
        self.flush()
    }

    /// Writes what could not be written before.
    pub fn flush(&mut self) -> io::Result<()> {
        if self.unwritten.is_empty() {
            return Ok(());
        }
        if let Err(why) = self.file.write_all(&self.unwritten).and_then(|()| self.file.sync_data()) {
            // A line that is written in part would damage the next one.
            self.file.set_len(self.length)?;
            return Err(why);
        }
        self.length += self.unwritten.len() as u64;
        self.unwritten.clear();
        if self.length >= self.compact_at { self.compact() } else { Ok(()) }
    }

    /// Writes the file without entries that are too old or not needed.
    fn compact(&mut self) -> io::Result<()> {
        // Not at each entry if it fails.
        self.compact_at = compact_at(self.length);
        let entries = Self::read(&self.path)?;
        let kept: Vec<u8> = entries.iter().flat_map(line).collect();
        file::write_atomically(&self.path, &kept)?;
        self.file = file::append(&self.path)?;
        self.length = kept.len() as u64;
        self.compact_at = compact_at(self.length);
        Ok(())
    }

    /// Returns the path of the file.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

fn line(entry: &Entry) -> Vec<u8> {
    let mut line = serde_json::to_vec(entry).unwrap_or_default();
    line.push(b'\n');
    line
}

fn parse(text: &[u8], now: &Stamp) -> (Vec<Entry>, usize) {
    let lines = text.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    let parsed: Vec<Option<Entry>> = lines.map(|line| serde_json::from_slice(line).ok()).collect();
    let damaged = parsed.iter().filter(|entry| entry.is_none()).count();
    let mut entries: Vec<Entry> = parsed.into_iter().flatten().collect();
    entries.retain(|entry| now.since_ns(&entry.key().start) < KEEP_NS);
    // A start whose end is known says nothing more.
    let ends = entries.iter().filter(|entry| matches!(entry, Entry::End(_)));
    let ended: HashSet<Key> = ends.map(|entry| entry.key().clone()).collect();
    entries.retain(|entry| matches!(entry, Entry::End(_)) || !ended.contains(entry.key()));
    (entries, damaged)
}

/// Returns the length from which a file whose needed entries have this length is written anew, bytes.
fn compact_at(length: u64) -> u64 {
    length + (length / 2).max(COMPACT_BYTES)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(unix_ns: u64) -> Key {
        let [test, from, to] = ["t", "a", "b"].map(str::to_owned);
        Key { test, from, to, start: Stamp { unix_ns, ..Stamp::now() }, reserved_bytes: 9, reserved_ns: 9 }
    }

    fn start(unix_ns: u64) -> Entry {
        Entry::Start(key(unix_ns))
    }

    fn end(key: Key) -> Entry {
        let result = MeshResult {
            started: String::new(),
            run: None,
            status: landspeed_model::Status::Complete,
            goodput_bps: None,
            loss_ratio: None,
            retransmits: None,
            rtt_ns: None,
            verdict: None,
            confidence: None,
            other_tests: None,
            error: None,
        };
        let (versions, outcome) = ((None, None), EndOutcome::Measured);
        Entry::End(Box::new(EndEntry { key, duration_ns: 1, bytes: Some(1), outcome, versions, result }))
    }

    #[test]
    fn a_long_journal_loses_old_entries() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("journal.jsonl");
        let (mut journal, ..) = Journal::open(&path).expect("a new file");
        // The first is of another boot, 16 days ago.
        let mut old = key(clock::realtime_ns() - KEEP_NS - 86_400_000_000_000);
        old.start.boot = "another".to_owned();
        journal.add(&end(old)).expect("space");
        for number in 0..20 {
            let key = key(number);
            journal.add(&Entry::Start(key.clone())).expect("space");
            journal.add(&end(key)).expect("space");
        }
        journal.compact_at = journal.length;
        journal.add(&start(20)).expect("space");
        let text = std::fs::read_to_string(&path).expect("text");
        assert_eq!(text.lines().count(), 21, "the start of a test that runs is kept: {text}");
        assert!(!text.contains("another"), "too old: {text}");
        assert_eq!(text.len() as u64, journal.length);
        journal.add(&start(21)).expect("space");
        assert_eq!(Journal::read(&path).expect("it exists").len(), 22);
    }

    #[test]
    fn damaged_lines_are_counted_and_removed() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("journal.jsonl");
        let (mut journal, entries, damaged) = Journal::open(&path).expect("a new file");
        assert_eq!((entries.len(), damaged), (0, 0));
        journal.add(&start(1)).expect("space");
        journal.add(&start(2)).expect("space");
        let mut text = std::fs::read(&path).expect("it exists");
        text.truncate(text.len() - 10);
        std::fs::write(&path, &text).expect("space");
        let (mut journal, entries, damaged) = Journal::open(&path).expect("it opens");
        assert_eq!((entries.len(), damaged), (1, 1));
        journal.add(&start(3)).expect("space");
        assert_eq!(Journal::read(&path).expect("it exists").len(), 2);
    }

    #[test]
    fn lines_of_a_full_disk_are_written_later() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("journal.jsonl");
        let (mut journal, ..) = Journal::open(&path).expect("a new file");
        let works = std::mem::replace(&mut journal.file, File::open(&path).expect("read-only"));
        journal.add(&start(1)).expect_err("the file is not writable");
        journal.add(&start(2)).expect_err("the file is not writable");
        assert!(Journal::read(&path).expect("it exists").is_empty());
        journal.file = works;
        journal.flush().expect("space");
        assert_eq!(Journal::read(&path).expect("it exists").len(), 2);
    }

    #[test]
    fn steps_of_the_wall_clock_do_not_change_ages_within_a_boot() {
        let early = Stamp { unix_ns: 1000, monotonic_ns: 10, boot: "a".to_owned() };
        let stepped = Stamp { unix_ns: 10, monotonic_ns: 30, boot: "a".to_owned() };
        assert_eq!(stepped.since_ns(&early), 20);
        let rebooted = Stamp { unix_ns: 1500, monotonic_ns: 1, boot: "b".to_owned() };
        assert_eq!(rebooted.since_ns(&early), 500);
    }
}
