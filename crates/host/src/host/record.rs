//! Records a host: everything that [`collect`] queried, with the answers, in a directory that
//! [`RecordedHost`] opens.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{self, Write as _};
use std::path::{Component, Path, PathBuf};

use landspeed_model::{Fact, Facts};
use landspeed_sys::file;

use super::answers::{InterfaceAnswers, KernelAnswers};
use super::recorded::{Answers, KERNEL_FILE, KERNEL_SCHEMA, Refusal, to_hex};
use super::{Host, LiveHost, OpenError, RecordedHost, redact};
use crate::collect::collect;
use crate::files::Files;

/// Errors of recording a host. Nothing is left behind.
#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    /// The directory exists and is not empty.
    #[error("cannot record into {}: it is not empty; name a directory that is not there", directory.display())]
    NotEmpty {
        /// Destination, as given.
        directory: PathBuf,
    },
    /// A file or directory could not be written.
    #[error("cannot record this host: cannot {operation} {}: {cause}; nothing was kept", path.display())]
    Write {
        /// Failed operation: `write`, `make`, `rename`, `list`, `find`.
        operation: &'static str,
        /// File or directory of the operation.
        path: PathBuf,
        /// Error of the operating system.
        #[source]
        cause: io::Error,
    },
    /// A value that should have been redacted was still present.
    #[error(
        "cannot redact this host: {what} is still in {place} after it was replaced; nothing was kept. Please report this"
    )]
    Redaction {
        /// Kind of value: an address, the host's name.
        what: &'static str,
        /// File that contains it.
        place: String,
    },
    /// The recording could not be read back.
    #[error(transparent)]
    Open(#[from] OpenError),
}

/// Records the running host into a directory, which must not exist or be empty. The directory appears complete
/// or not at all. With `redact`, addresses, the host's name, serial numbers, machine ids and secrets on the
/// kernel's command line are replaced, each by the same placeholder everywhere.
///
/// Returns the facts of the recording, which are those that opening it will give.
pub fn record(directory: &Path, redact: bool) -> Result<Facts, RecordError> {
    record_host(&LiveHost::new(), directory, redact)
}

/// Records any host; see [`record`].
pub(crate) fn record_host(host: &dyn Host, directory: &Path, redact: bool) -> Result<Facts, RecordError> {
    let directory = destination(directory)?;
    let recorder = Recorder { host, seen: RefCell::new(HostAnswers::default()) };
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

/// All queries, with their answers.
#[derive(Debug, Clone, Default)]
pub(super) struct HostAnswers {
    /// File texts by path.
    pub files: BTreeMap<String, String>,
    /// Names by directory, of all the prefixes that were listed.
    pub directories: BTreeMap<String, BTreeSet<String>>,
    /// Other answers; their `directories` are filled in when the recording is written.
    pub answers: Answers,
}

/// Passes queries to a host and keeps the answers.
struct Recorder<'a> {
    host: &'a dyn Host,
    seen: RefCell<HostAnswers>,
}

impl Recorder<'_> {
    /// Keeps an error, unless the file does not exist: it does not exist in the recorded tree either.
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

/// Returns the path of the recording: an empty directory, or a path that does not exist.
fn destination(directory: &Path) -> Result<PathBuf, RecordError> {
    match fs::read_dir(directory) {
        Ok(mut entries) => {
            if entries.next().is_some() {
                return Err(RecordError::NotEmpty { directory: directory.into() });
            }
            // Follows the links that an output may follow.
            file::create_directory(directory).map_err(failed("find", directory))?;
            directory.canonicalize().map_err(failed("find", directory))
        }
        Err(why) if why.kind() == io::ErrorKind::NotFound => Ok(directory.into()),
        Err(why) => Err(failed("list", directory)(why)),
    }
}

/// Returns a temporary name next to the destination, so that a rename completes the recording.
fn partial_name(directory: &Path) -> PathBuf {
    let mut name = directory.file_name().unwrap_or_default().to_owned();
    name.push(format!(".partial-{}", std::process::id()));
    directory.with_file_name(name)
}

fn write_all(seen: &HostAnswers, root: &Path) -> Result<(), RecordError> {
    file::create_new_directory(root).map_err(failed("make", root))?;
    for (path, text) in &seen.files {
        let Some(place) = path_in_tree(root, path) else { continue };
        if let Some(parent) = place.parent() {
            file::create_directory(parent).map_err(failed("make", parent))?;
        }
        write(&place, text.as_ref()).map_err(failed("write", &place))?;
    }
    let mut answers = seen.answers.clone();
    answers.schema = KERNEL_SCHEMA.into();
    let written = Files::recorded(root);
    for (directory, names) in &seen.directories {
        // The tree contains the files that were read; other names and empty directories are recorded
        // separately.
        let there = written.names_with_prefix(directory, "").ok();
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
    write(&place, &text).map_err(failed("write", &place))
}

fn write(path: &Path, content: &[u8]) -> io::Result<()> {
    file::create(path)?.write_all(content)
}

/// Returns where a host's path is stored; `None` for a path that would lead out of the directory.
fn path_in_tree(root: &Path, path: &str) -> Option<PathBuf> {
    let inside = Path::new(path.strip_prefix('/')?);
    inside.components().all(|part| matches!(part, Component::Normal(_))).then(|| root.join(inside))
}

fn failed(operation: &'static str, path: &Path) -> impl FnOnce(io::Error) -> RecordError {
    let path = path.to_owned();
    move |cause| RecordError::Write { operation, path, cause }
}

#[cfg(test)]
mod tests;
