//! Keeping a host: everything that [`collect`](super::collect) asked for, and the answers, in a directory that
//! [`RecordedHost`] opens.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::{Component, Path, PathBuf};

use landspeed_model::{Fact, Facts};

use super::answers::{InterfaceAnswers, KernelAnswers};
use super::recorded::{Answers, KERNEL_FILE, KERNEL_SCHEMA, Refusal, to_hex};
use super::{Host, LiveHost, OpenError, RecordedHost, collect, redact};
use crate::files::Files;

/// A host that could not be recorded. Nothing is left of it.
#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    /// The directory is there and holds something.
    #[error("cannot record into {}: it is not empty; name a directory that is not there", directory.display())]
    NotEmpty {
        /// The directory.
        directory: PathBuf,
    },
    /// Something could not be written.
    #[error("cannot record this host: cannot {operation} {}: {cause}; nothing was kept", path.display())]
    Write {
        /// `write`, `make`, `rename`, `list`.
        operation: &'static str,
        /// What.
        path: PathBuf,
        /// The system's answer.
        #[source]
        cause: io::Error,
    },
    /// Something that should have been redacted was still there.
    #[error(
        "cannot redact this host: {what} is still in {place} after it was replaced; nothing was kept. Please report this"
    )]
    Redaction {
        /// What kind of thing: an address, the host's name.
        what: &'static str,
        /// The file.
        place: String,
    },
    /// What was written could not be read again.
    #[error(transparent)]
    Open(#[from] OpenError),
}

/// Records the running host into a directory, which must not be there or be empty; it appears whole or not at all. With
/// `redact`, addresses, the host's name, serial numbers, machine ids and secrets on the kernel's command line are replaced,
/// each by the same placeholder everywhere.
///
/// Returns the facts of what was recorded, which are those that opening it will give.
pub fn record(directory: &Path, redact: bool) -> Result<Facts, RecordError> {
    record_host(&LiveHost::new(), directory, redact)
}

/// The same of any host.
pub(crate) fn record_host(host: &dyn Host, directory: &Path, redact: bool) -> Result<Facts, RecordError> {
    let directory = destination(directory)?;
    let recorder = Recorder { host, seen: RefCell::new(Seen::default()) };
    collect(&recorder);
    let mut seen = recorder.seen.into_inner();
    if redact {
        seen = redact::redacted(&seen)?;
    }
    let partial = partial_name(&directory);
    let outcome = write_all(&seen, &partial).and_then(|()| {
        fs::rename(&partial, &directory).map_err(|cause| match cause.kind() {
            io::ErrorKind::DirectoryNotEmpty | io::ErrorKind::AlreadyExists => {
                RecordError::NotEmpty { directory: directory.clone() }
            }
            _ => failed("rename", &partial)(cause),
        })
    });
    if outcome.is_err() {
        // The error is already known; leftovers that cannot be removed end in `.partial`.
        let _ = fs::remove_dir_all(&partial);
    }
    outcome?;
    Ok(collect(&RecordedHost::open(&directory)?))
}

/// Everything that was asked, with the answers.
#[derive(Debug, Clone, Default)]
pub(super) struct Seen {
    /// Texts by path.
    pub files: BTreeMap<String, String>,
    /// Names by directory: those of all the prefixes it was listed with.
    pub directories: BTreeMap<String, BTreeSet<String>>,
    /// The rest; its own `directories` are filled in when it is written.
    pub answers: Answers,
}

/// Passes questions on and keeps the answers.
struct Recorder<'a> {
    host: &'a dyn Host,
    seen: RefCell<Seen>,
}

impl Recorder<'_> {
    /// What is not there needs no record: it is not in the recorded tree either.
    fn refused(&self, path: &str, error: &io::Error) {
        if error.kind() != io::ErrorKind::NotFound {
            self.seen.borrow_mut().answers.errors.insert(path.into(), Refusal::of(error));
        }
    }
}

impl Host for Recorder<'_> {
    fn read(&self, path: &str) -> io::Result<String> {
        // Counters change between two reads: use the recorded text.
        if let Some(text) = self.seen.borrow().files.get(path) {
            return Ok(text.clone());
        }
        let outcome = self.host.read(path);
        match &outcome {
            Ok(text) => drop(self.seen.borrow_mut().files.insert(path.into(), text.clone())),
            Err(error) => self.refused(path, error),
        }
        outcome
    }

    fn link(&self, path: &str) -> io::Result<String> {
        let outcome = self.host.link(path);
        if let Ok(target) = &outcome {
            self.seen.borrow_mut().answers.links.insert(path.into(), target.clone());
        }
        outcome
    }

    fn names(&self, directory: &str, prefix: &str) -> io::Result<Vec<String>> {
        let outcome = self.host.names(directory, prefix);
        match &outcome {
            Ok(names) => {
                let mut seen = self.seen.borrow_mut();
                seen.directories.entry(directory.into()).or_default().extend(names.iter().cloned());
            }
            Err(error) => self.refused(directory, error),
        }
        outcome
    }

    fn kernel(&self) -> KernelAnswers {
        let answers = self.host.kernel();
        self.seen.borrow_mut().answers.kernel = answers.clone();
        answers
    }

    fn interface(&self, name: &str) -> InterfaceAnswers {
        let answers = self.host.interface(name);
        self.seen.borrow_mut().answers.interfaces.insert(name.into(), answers.clone());
        answers
    }

    fn is_recorded(&self) -> bool {
        self.host.is_recorded()
    }

    fn pci_config(&self, address: &str) -> Fact<Vec<u8>> {
        let bytes = self.host.pci_config(address);
        let digits = bytes.as_ref().map(|bytes| to_hex(bytes));
        self.seen.borrow_mut().answers.pci_config.insert(address.into(), digits);
        bytes
    }
}

/// Where the recording goes: an empty directory's own place, or one that is free.
fn destination(directory: &Path) -> Result<PathBuf, RecordError> {
    match fs::read_dir(directory) {
        Ok(mut entries) => {
            if entries.next().is_some() {
                return Err(RecordError::NotEmpty { directory: directory.into() });
            }
            directory.canonicalize().map_err(failed("find", directory))
        }
        Err(why) if why.kind() == io::ErrorKind::NotFound => Ok(directory.into()),
        Err(why) => Err(failed("list", directory)(why)),
    }
}

/// Beside the destination, so that a rename is enough to put it there.
fn partial_name(directory: &Path) -> PathBuf {
    let mut name = directory.file_name().unwrap_or_default().to_owned();
    name.push(format!(".partial-{}", std::process::id()));
    directory.with_file_name(name)
}

fn write_all(seen: &Seen, root: &Path) -> Result<(), RecordError> {
    fs::create_dir(root).map_err(failed("make", root))?;
    for (path, text) in &seen.files {
        let Some(place) = place_in(root, path) else { continue };
        if let Some(parent) = place.parent() {
            fs::create_dir_all(parent).map_err(failed("make", parent))?;
        }
        fs::write(&place, text).map_err(failed("write", &place))?;
    }
    let mut answers = seen.answers.clone();
    answers.schema = KERNEL_SCHEMA.into();
    let written = Files::recorded(root);
    for (directory, names) in &seen.directories {
        // The tree has the names of what was read; the rest, and empty directories, are recorded beside it.
        let there = written.names_like(directory, "").ok();
        let missing = |name: &&String| there.as_ref().is_none_or(|there| !there.contains(*name));
        let rest: Vec<_> = names.iter().filter(missing).cloned().collect();
        if there.is_none() || !rest.is_empty() {
            answers.directories.insert(directory.clone(), rest);
        }
    }
    let place = root.join(KERNEL_FILE);
    let mut text = serde_json::to_vec_pretty(&answers)
        .map_err(|error| failed("write", &place)(io::Error::new(io::ErrorKind::InvalidData, error)))?;
    text.push(b'\n');
    fs::write(&place, text).map_err(failed("write", &place))
}

/// Where a host's path is kept; none for one that would lead out of the directory.
fn place_in(root: &Path, path: &str) -> Option<PathBuf> {
    let inside = Path::new(path.strip_prefix('/')?);
    inside.components().all(|part| matches!(part, Component::Normal(_))).then(|| root.join(inside))
}

fn failed(operation: &'static str, path: &Path) -> impl FnOnce(io::Error) -> RecordError {
    let path = path.to_owned();
    move |cause| RecordError::Write { operation, path, cause }
}

#[cfg(test)]
mod tests;
