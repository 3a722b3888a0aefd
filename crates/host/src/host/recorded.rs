//! A recorded host: a directory with the trees `proc`, `sys`, `etc` … of the files that were read, and
//! `kernel.json` with all other queries and answers.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use landspeed_model::Fact;
use landspeed_sys::file;
use serde::{Deserialize, Serialize};

use super::answers::{InterfaceAnswers, KernelAnswers};
use super::{Host, is_absent};
use crate::files::Files;

/// Name of the file with the kernel's answers.
pub(super) const KERNEL_FILE: &str = "kernel.json";
/// `schema` of that file.
pub(super) const KERNEL_SCHEMA: &str = "landspeed.kernel/1";
/// Maximum size of that file; larger ones are an error or malicious.
const LIMIT_BYTES: u64 = 64 * 1024 * 1024;

/// The answers of a recorded host that are not files.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Answers {
    /// Schema identifier, [`KERNEL_SCHEMA`].
    pub schema: String,
    /// Answers about the host as a whole.
    pub kernel: KernelAnswers,
    /// Answers of drivers, by interface.
    pub interfaces: BTreeMap<String, InterfaceAnswers>,
    /// PCI configuration space by address, as hexadecimal digits.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub pci_config: BTreeMap<String, Fact<String>>,
    /// Targets of symbolic links, by path.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub links: BTreeMap<String, String>,
    /// Directories with more names than those of files that were read.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub directories: BTreeMap<String, Vec<String>>,
    /// Files and links that exist but could not be read, by path.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub errors: BTreeMap<String, Refusal>,
}

/// The reason why an existing file or link could not be read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Refusal {
    /// `errno`, if the operating system gave one.
    pub errno: Option<i32>,
    pub why: String,
}

impl Refusal {
    pub(super) fn of(error: &io::Error) -> Self {
        Self { errno: error.raw_os_error(), why: error.to_string() }
    }

    fn error(&self) -> io::Error {
        self.errno.map_or_else(|| io::Error::other(self.why.clone()), io::Error::from_raw_os_error)
    }
}

/// Errors of opening a recorded host.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// Its `kernel.json` could not be read.
    #[error("{} is not a recorded host: cannot read {KERNEL_FILE}: {cause}; `landspeed check --record DIR` makes one", directory.display())]
    Unreadable {
        /// Directory that was opened.
        directory: PathBuf,
        /// Error of the operating system.
        #[source]
        cause: io::Error,
    },
    /// Its `kernel.json` exceeds the size limit.
    #[error("{} is not a recorded host: its {KERNEL_FILE} is longer than {LIMIT_BYTES} bytes", directory.display())]
    TooLong {
        /// Directory that was opened.
        directory: PathBuf,
    },
    /// Its `kernel.json` is not valid.
    #[error("the recorded host {} is damaged: {KERNEL_FILE}: {cause}", directory.display())]
    Malformed {
        /// Directory that was opened.
        directory: PathBuf,
        /// Position and kind of the error.
        #[source]
        cause: serde_json::Error,
    },
    /// Its schema is of another version of the program.
    #[error(
        "the recorded host {} has the schema `{schema}`, which this version does not know: it reads {KERNEL_SCHEMA}",
        directory.display()
    )]
    Schema {
        /// Directory that was opened.
        directory: PathBuf,
        /// Schema in the file.
        schema: String,
    },
}

/// A host read from a recording.
#[derive(Debug, Clone)]
pub struct RecordedHost {
    files: Files,
    answers: Answers,
}

impl RecordedHost {
    /// Opens a directory that [`record`](super::record) wrote. Only `kernel.json` is read now; a missing or
    /// damaged file affects only its facts.
    pub fn open(directory: &Path) -> Result<Self, OpenError> {
        let unreadable = |cause| OpenError::Unreadable { directory: directory.into(), cause };
        let path = directory.join(KERNEL_FILE);
        let text = file::read(&path, LIMIT_BYTES).map_err(|cause| match cause.kind() {
            io::ErrorKind::FileTooLarge => OpenError::TooLong { directory: directory.into() },
            _ => unreadable(cause),
        })?;
        Self::with_answers(directory, &text)
    }

    /// The same with the given text of `kernel.json`, which then need not exist.
    pub fn with_answers(directory: &Path, text: &[u8]) -> Result<Self, OpenError> {
        let answers: Answers = serde_json::from_slice(text)
            .map_err(|cause| OpenError::Malformed { directory: directory.into(), cause })?;
        if answers.schema != KERNEL_SCHEMA {
            let schema = answers.schema.chars().filter(|c| !c.is_control()).take(60).collect();
            return Err(OpenError::Schema { directory: directory.into(), schema });
        }
        Ok(Self { files: Files::recorded(directory), answers })
    }

    fn refused(&self, path: &str) -> io::Result<()> {
        self.answers.errors.get(path).map_or(Ok(()), |refusal| Err(refusal.error()))
    }
}

impl Host for RecordedHost {
    fn read(&self, path: &str) -> io::Result<String> {
        self.refused(path)?;
        Host::read(&self.files, path)
    }

    fn link(&self, path: &str) -> io::Result<String> {
        self.answers.links.get(path).cloned().ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    fn names(&self, directory: &str, prefix: &str) -> io::Result<Vec<String>> {
        self.refused(directory)?;
        let written = Host::names(&self.files, directory, prefix);
        let Some(names) = self.answers.directories.get(directory) else { return written };
        let mut names: Vec<_> = names.iter().filter(|name| name.starts_with(prefix)).cloned().collect();
        match written {
            Ok(written) => names.extend(written),
            Err(why) if is_absent(&why) => {}
            Err(why) => return Err(why),
        }
        names.sort_unstable();
        names.dedup();
        Ok(names)
    }

    fn kernel(&self) -> KernelAnswers {
        self.answers.kernel.clone()
    }

    fn interface(&self, name: &str) -> InterfaceAnswers {
        self.answers.interfaces.get(name).cloned().unwrap_or_default()
    }

    fn is_recorded(&self) -> bool {
        true
    }

    fn pci_config(&self, address: &str) -> Fact<Vec<u8>> {
        match self.answers.pci_config.get(address) {
            Some(Fact::Known(digits)) => from_hex(digits)
                .map_or_else(|| Fact::Unknown("the recorded configuration space is damaged".into()), Fact::Known),
            Some(Fact::Absent(why)) => Fact::Absent(why.clone()),
            Some(Fact::Unknown(why)) => Fact::Unknown(why.clone()),
            None => Fact::Unknown("not recorded".into()),
        }
    }
}

/// Formats bytes as hexadecimal digits.
pub(super) fn to_hex(bytes: &[u8]) -> String {
    let digit = |value: u8| char::from_digit(value.into(), 16).unwrap_or_default();
    bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect()
}

/// Parses hexadecimal digits; white space between bytes is allowed.
fn from_hex(digits: &str) -> Option<Vec<u8>> {
    let digits: Vec<u8> = digits.bytes().filter(|byte| !byte.is_ascii_whitespace()).collect();
    let value = |byte: u8| (byte as char).to_digit(16).map(|digit| digit as u8);
    let byte = |pair: &[u8]| match pair {
        [high, low] => Some(value(*high)? << 4 | value(*low)?),
        _ => None,
    };
    digits.chunks(2).map(byte).collect()
}
