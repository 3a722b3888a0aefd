//! Interface between facts and their source: a running host, or a recorded one.

use std::collections::BTreeMap;
use std::io;

use landspeed_model::Fact;

use crate::files::{FileError, Files};

pub(crate) mod answers;
mod live;
mod record;
mod recorded;
mod redact;

pub use answers::{ClockAnswer, DriverAnswer, InterfaceAnswers, KernelAnswers, LinkAnswer, QdiscAnswer};
pub use live::LiveHost;
pub use record::{RecordError, record};
pub use recorded::{OpenError, RecordedHost};

/// A source of facts about a host. Every answer is either a value or the reason why there is none.
///
/// Paths are absolute, as on the host itself.
pub trait Host {
    /// Reads the text of a file; bytes that are not UTF-8 are replaced.
    fn read(&self, path: &str) -> io::Result<String>;

    /// Returns the target of a symbolic link as written.
    fn link(&self, path: &str) -> io::Result<String>;

    /// Returns the names in a directory that begin with `prefix`, sorted.
    fn names(&self, directory: &str, prefix: &str) -> io::Result<Vec<String>>;

    /// Queries the kernel about the host as a whole and its links.
    fn kernel(&self) -> KernelAnswers;

    /// Queries an interface's driver.
    fn interface(&self, name: &str) -> InterfaceAnswers;

    /// Whether the host is a recording: the time that collecting takes is then not the host's.
    fn is_recorded(&self) -> bool {
        false
    }

    /// Returns the first 256 bytes of a PCI device's configuration space; the first 64 where more is not
    /// permitted.
    fn pci_config(&self, address: &str) -> Fact<Vec<u8>>;
}

/// Files only: there is no kernel to query.
impl Host for Files {
    fn read(&self, path: &str) -> io::Result<String> {
        Self::read(self, path).map_err(|error| error.cause)
    }

    fn link(&self, path: &str) -> io::Result<String> {
        self.link_target(path)
    }

    fn names(&self, directory: &str, prefix: &str) -> io::Result<Vec<String>> {
        self.names_with_prefix(directory, prefix)
    }

    fn kernel(&self) -> KernelAnswers {
        KernelAnswers::default()
    }

    fn interface(&self, _name: &str) -> InterfaceAnswers {
        InterfaceAnswers::default()
    }

    fn pci_config(&self, _address: &str) -> Fact<Vec<u8>> {
        Fact::default()
    }
}

/// Helpers that read a host's files as facts.
#[derive(Clone, Copy)]
pub(crate) struct FactReader<'a>(pub &'a dyn Host);

impl FactReader<'_> {
    /// Reads a file's text.
    pub(crate) fn read(self, path: &str) -> Result<String, FileError> {
        self.0.read(path).map_err(|cause| FileError { path: path.into(), cause })
    }

    /// Reads a file's text without surrounding white space.
    pub(crate) fn word(self, path: &str) -> Result<String, FileError> {
        self.read(path).map(|text| text.trim().to_owned())
    }

    /// Reads a file's text without surrounding white space, as a fact.
    pub(crate) fn fact(self, path: &str) -> Fact<String> {
        known(self.word(path))
    }

    /// Reads a file's text as a number; `None` if the file does not exist or has something else.
    pub(crate) fn number<T: std::str::FromStr>(self, path: &str) -> Option<T> {
        self.word(path).ok()?.parse().ok()
    }

    /// Reads a file's text as a number, as a fact.
    pub(crate) fn number_fact<T: std::str::FromStr>(self, path: &str) -> Fact<T> {
        match self.fact(path) {
            Fact::Known(word) => word.parse().map_or_else(|_| unparsable(path, &word), Fact::Known),
            Fact::Absent(why) => Fact::Absent(why),
            Fact::Unknown(why) => Fact::Unknown(why),
        }
    }

    /// Returns whether a file exists.
    pub(crate) fn exists(self, path: &str) -> bool {
        self.0.read(path).is_ok()
    }

    /// Returns the last component of a symbolic link's target.
    pub(crate) fn link_name(self, path: &str) -> Option<String> {
        let target = self.0.link(path).ok()?;
        target.rsplit('/').find(|part| !part.is_empty()).map(str::to_owned)
    }

    /// Returns the names in a directory that begin with `prefix`; none if it cannot be read.
    pub(crate) fn names(self, directory: &str, prefix: &str) -> Vec<String> {
        self.0.names(directory, prefix).unwrap_or_default()
    }

    /// Returns the directory's names of the form `prefixN`, by number.
    pub(crate) fn numbered(self, directory: &str, prefix: &str) -> BTreeMap<u32, String> {
        let names = self.names(directory, prefix).into_iter();
        names.filter_map(|name| Some((name.strip_prefix(prefix)?.parse().ok()?, name))).collect()
    }
}

/// Converts a result to a fact: absent if the file does not exist, unknown if it cannot be read.
pub(crate) fn known<T>(outcome: Result<T, FileError>) -> Fact<T> {
    match outcome {
        Ok(value) => Fact::Known(value),
        Err(error) if is_absent(&error.cause) => Fact::Absent(format!("{} is not there", error.path)),
        Err(error) => Fact::Unknown(error.to_string()),
    }
}

/// Returns an unknown fact for a file with unexpected content, quoted up to the length of a line.
pub(crate) fn unparsable<T>(path: &str, text: &str) -> Fact<T> {
    let shown: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).take(60).collect();
    Fact::Unknown(format!("{path} says `{shown}`, which is not understood"))
}

/// Returns whether an error means that the file does not exist (`ENOENT` and similar), rather than that it
/// could not be read.
pub(crate) fn is_absent(error: &io::Error) -> bool {
    // ENXIO 6, ENODEV 19, EOPNOTSUPP 95: the attribute exists, but the device does not support it.
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
        || matches!(error.raw_os_error(), Some(6 | 19 | 95))
}
