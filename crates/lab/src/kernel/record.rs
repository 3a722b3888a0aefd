//! What is known about a built kernel.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::config::Features;
use super::error::Error;
use super::version::Version;

/// The form of the record.
pub const SCHEMA: &str = "landspeed.kernel/1";

/// The record's name beside the executable.
pub(super) const RECORD: &str = "kernel.json";
/// The executable's name.
pub(super) const EXECUTABLE: &str = "vmlinux";
/// The configuration's name.
pub(super) const CONFIG: &str = "config";

/// A kernel that is built and kept.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Kernel {
    /// [`SCHEMA`].
    pub schema: String,
    /// Its name: 16 hexadecimal digits of the hash over source, configuration, edits and compiler.
    pub id: String,
    /// Its release, as in `7.3.4`.
    pub release: String,
    /// The executable. Taken from where the record is, so that a cache can be moved.
    pub executable: PathBuf,
    /// Where its source came from.
    pub source: Source,
    /// SHA-256 of the configuration fragment.
    pub config_hash: String,
    /// SHA-256 of the edits.
    pub edits_hash: String,
    /// Names of the edits; empty in records older than this field.
    #[serde(default)]
    pub edits: Vec<String>,
    /// The compiler, as it names itself.
    pub compiler: String,
    /// When it was built, nanoseconds since the Unix epoch.
    pub built_at_ns: u64,
    /// Wall time from configuring to linking.
    pub build_seconds: f64,
    /// Size of the executable.
    pub size_bytes: u64,
    /// SHA-256 of the executable.
    pub executable_hash: String,
    /// Features that were wanted and that this version does not have.
    pub missing_features: Vec<String>,
}

/// Where a kernel's source came from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Source {
    /// A package of Debian's archive.
    Debian {
        /// The package.
        package: String,
        /// Its version.
        version: String,
        /// The package file's SHA-256, from the signed index.
        hash: String,
    },
    /// A tarball.
    Tarball {
        /// Where it was.
        path: PathBuf,
        /// Its SHA-256.
        hash: String,
    },
    /// A directory.
    Directory {
        /// Where it was.
        path: PathBuf,
        /// SHA-256 over the names and contents of the files that were used.
        hash: String,
    },
}

impl Source {
    /// The hash of the content.
    pub fn hash(&self) -> &str {
        match self {
            Self::Debian { hash, .. } | Self::Tarball { hash, .. } | Self::Directory { hash, .. } => hash,
        }
    }
}

impl std::fmt::Display for Source {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Debian { package, version, .. } => write!(f, "Debian {package} {version}"),
            Self::Tarball { path, .. } | Self::Directory { path, .. } => path.display().fmt(f),
        }
    }
}

impl Kernel {
    /// Reads the record in a kernel's directory.
    pub(super) fn load(directory: &Path) -> Result<Self, Error> {
        let path = directory.join(RECORD);
        let text = std::fs::read(&path).map_err(Error::io("read", &path))?;
        let mut kernel: Self = serde_json::from_slice(&text).map_err(|e| Error::io("read", &path)(e.into()))?;
        kernel.executable = directory.join(EXECUTABLE);
        Ok(kernel)
    }

    /// Its directory.
    pub fn directory(&self) -> &Path {
        self.executable.parent().unwrap_or(Path::new("."))
    }

    /// Whether its links and ports keep their rates to parts of a nanosecond per frame (edits `bucket-exact` and
    /// `wire-exact`). Kernels of earlier versions of landspeed round to whole nanoseconds.
    pub fn has_exact_links(&self) -> bool {
        ["bucket-exact", "wire-exact"].iter().all(|wanted| self.edits.iter().any(|edit| edit == wanted))
    }

    /// Its release as a version.
    pub fn version(&self) -> Option<Version> {
        self.release.parse().ok()
    }

    /// What it can do, from the configuration stored beside it.
    pub fn features(&self) -> Result<Features, Error> {
        let path = self.directory().join(CONFIG);
        std::fs::read_to_string(&path).map(|text| Features::parse(&text)).map_err(Error::io("read", &path))
    }

    /// Whether a symbol, with or without its `CONFIG_`, is built in. To ask for several, keep [`Kernel::features`].
    pub fn supports(&self, symbol: &str) -> Result<bool, Error> {
        Ok(self.features()?.supports(symbol))
    }
}
