//! The seam between what a host is and how it is looked at: a running one, or one recorded elsewhere.

use std::collections::BTreeMap;
use std::io;

use landspeed_model::{Fact, Facts};

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

/// A host that can be looked at. Every answer is either what the host says or why it does not say.
///
/// Paths are absolute, those of the host itself.
pub trait Host {
    /// The text of a file; bytes that are not UTF-8 are replaced.
    fn read(&self, path: &str) -> io::Result<String>;

    /// What a symbolic link points to, as it is written there.
    fn link(&self, path: &str) -> io::Result<String>;

    /// The names in a directory that begin with `prefix`, sorted.
    fn names(&self, directory: &str, prefix: &str) -> io::Result<Vec<String>>;

    /// What the kernel answers about the host as a whole and its links.
    fn kernel(&self) -> KernelAnswers;

    /// What an interface's driver answers.
    fn interface(&self, name: &str) -> InterfaceAnswers;

    /// Whether it was recorded: then nothing it took is the host's own time.
    fn is_recorded(&self) -> bool {
        false
    }

    /// The first 256 bytes of a PCI device's configuration space; the first 64 where more is not allowed.
    fn pci_config(&self, address: &str) -> Fact<Vec<u8>>;
}

/// Everything about a host that a check may read. Never fails: an unknown fact says why.
pub fn collect(host: &dyn Host) -> Facts {
    crate::collect::collect(host)
}

/// Files only: there is no kernel behind them to ask.
impl Host for Files {
    fn read(&self, path: &str) -> io::Result<String> {
        Self::read(self, path).map_err(|error| error.cause)
    }

    fn link(&self, path: &str) -> io::Result<String> {
        self.link_target(path)
    }

    fn names(&self, directory: &str, prefix: &str) -> io::Result<Vec<String>> {
        self.names_like(directory, prefix)
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

/// A host's files as facts.
#[derive(Clone, Copy)]
pub(crate) struct Look<'a>(pub &'a dyn Host);

impl Look<'_> {
    /// The file's text.
    pub(crate) fn read(self, path: &str) -> Result<String, FileError> {
        self.0.read(path).map_err(|cause| FileError { path: path.into(), cause })
    }

    /// The file's text without white space around it.
    pub(crate) fn word(self, path: &str) -> Result<String, FileError> {
        self.read(path).map(|text| text.trim().to_owned())
    }

    /// The file's text without white space around it, as a fact.
    pub(crate) fn fact(self, path: &str) -> Fact<String> {
        known(self.word(path))
    }

    /// The file's text as a number; `None` if there is no such file or it holds something else.
    pub(crate) fn number<T: std::str::FromStr>(self, path: &str) -> Option<T> {
        self.word(path).ok()?.parse().ok()
    }

    /// The file's text as a number.
    pub(crate) fn number_fact<T: std::str::FromStr>(self, path: &str) -> Fact<T> {
        match self.fact(path) {
            Fact::Known(word) => word.parse().map_or_else(|_| not_understood(path, &word), Fact::Known),
            Fact::Absent(why) => Fact::Absent(why),
            Fact::Unknown(why) => Fact::Unknown(why),
        }
    }

    /// Whether there is such a file.
    pub(crate) fn exists(self, path: &str) -> bool {
        self.0.read(path).is_ok()
    }

    /// The last component of what a symbolic link points to.
    pub(crate) fn link_name(self, path: &str) -> Option<String> {
        let target = self.0.link(path).ok()?;
        target.rsplit('/').find(|part| !part.is_empty()).map(str::to_owned)
    }

    /// The names in a directory that begin with `prefix`; none if it cannot be read.
    pub(crate) fn names(self, directory: &str, prefix: &str) -> Vec<String> {
        self.0.names(directory, prefix).unwrap_or_default()
    }

    /// The directory's names `prefixN` by their number.
    pub(crate) fn numbered(self, directory: &str, prefix: &str) -> BTreeMap<u32, String> {
        let names = self.names(directory, prefix).into_iter();
        names.filter_map(|name| Some((name.strip_prefix(prefix)?.parse().ok()?, name))).collect()
    }
}

/// A file that is not there is absent; one that cannot be read is unknown.
pub(crate) fn known<T>(outcome: Result<T, FileError>) -> Fact<T> {
    match outcome {
        Ok(value) => Fact::Known(value),
        Err(error) if is_absent(&error.cause) => Fact::Absent(format!("{} is not there", error.path)),
        Err(error) => Fact::Unknown(error.to_string()),
    }
}

/// A file that says something else than it should. What it says is shown, but no more of it than a line has room for.
pub(crate) fn not_understood<T>(path: &str, text: &str) -> Fact<T> {
    let shown: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).take(60).collect();
    Fact::Unknown(format!("{path} says `{shown}`, which is not understood"))
}

/// `ENOENT` and its kin: there is no such thing, as opposed to one that could not be read.
pub(crate) fn is_absent(error: &io::Error) -> bool {
    // ENXIO 6, ENODEV 19, EOPNOTSUPP 95: the attribute is there, the device has no such thing.
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
        || matches!(error.raw_os_error(), Some(6 | 19 | 95))
}
