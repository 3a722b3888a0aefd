//! The record of a built kernel.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::config::Features;
use super::error::Error;
use super::version::Version;

/// Name of the kernel without patches.
pub const STOCK: &str = "stock";

/// Schema of the record.
pub const SCHEMA: &str = "landspeed.kernel/1";

/// File name of the record, which is next to the executable.
pub(super) const RECORD: &str = "kernel.json";
/// File name of the executable.
pub(super) const EXECUTABLE: &str = "vmlinux";
/// File name of the configuration.
pub(super) const CONFIG: &str = "config";

/// A built kernel in the cache.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Kernel {
    /// Schema of the record: [`SCHEMA`].
    pub schema: String,
    /// Id: 16 hexadecimal digits of the hash over source, configuration, edits and compiler; with patches, `-` and 8 digits
    /// of the hash over them.
    pub id: String,
    /// Name of a kernel with patches, if it has one.
    #[serde(default)]
    pub name: Option<String>,
    /// Kernel release, such as `7.3.4`.
    pub release: String,
    /// Path of the executable. It follows from the path of the record, so that a cache can be moved.
    pub executable: PathBuf,
    /// Origin of the source.
    pub source: Source,
    /// SHA-256 of the configuration fragment.
    pub config_hash: String,
    /// SHA-256 of the edits.
    pub edits_hash: String,
    /// Names of the edits; empty in records older than this field.
    #[serde(default)]
    pub edits: Vec<String>,
    /// Patches of the user, in the order in which they were applied.
    #[serde(default)]
    pub patches: Vec<AppliedPatch>,
    /// Compiler, as it prints its name and version.
    pub compiler: String,
    /// Build time, nanoseconds since the Unix epoch.
    pub built_at_ns: u64,
    /// Wall time from configuring to linking, seconds.
    pub build_seconds: f64,
    /// Size of the executable, bytes.
    pub size_bytes: u64,
    /// SHA-256 of the executable.
    pub executable_hash: String,
    /// Requested features that this version does not have.
    pub missing_features: Vec<String>,
}

/// A patch of the user that a kernel was built with.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AppliedPatch {
    /// Name of the patch file.
    pub file: String,
    /// SHA-256 over the patch.
    pub hash: String,
}

/// Origin of a kernel's source.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Source {
    /// A package of Debian's archive.
    Debian {
        /// Name of the package.
        package: String,
        /// Version of the package.
        version: String,
        /// The package file's SHA-256, from the signed index.
        hash: String,
    },
    /// A tarball given by the user.
    Tarball {
        /// Path of the tarball when it was built.
        path: PathBuf,
        /// SHA-256 of the tarball.
        hash: String,
    },
    /// A directory given by the user.
    Directory {
        /// Path of the directory when it was built.
        path: PathBuf,
        /// SHA-256 over the names and contents of the files that were used.
        hash: String,
    },
}

impl Source {
    /// Returns the hash of the source's content.
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

    /// Writes the record into a directory.
    pub(super) fn save(&self, directory: &Path) -> Result<(), Error> {
        let path = directory.join(RECORD);
        let text = serde_json::to_string_pretty(self).expect("a record is plain data");
        std::fs::write(&path, text).map_err(Error::io("write", &path))
    }

    /// Whether the kernel has no patches of the user.
    pub fn is_stock(&self) -> bool {
        self.patches.is_empty()
    }

    /// Returns the id of the kernel without the patches.
    pub fn stock_id(&self) -> &str {
        self.id.split('-').next().unwrap_or(&self.id)
    }

    /// Returns the first digits of the hash over the patches; `None` without patches.
    pub fn patch_digest(&self) -> Option<&str> {
        Some(self.id.split_once('-')?.1)
    }

    /// Returns the name: that of a patched kernel, or `stock`; the digest of the patches if they have no name.
    pub fn display_name(&self) -> &str {
        self.name.as_deref().or_else(|| self.patch_digest()).unwrap_or(STOCK)
    }

    /// Returns the directory of the kernel.
    pub fn directory(&self) -> &Path {
        self.executable.parent().unwrap_or(Path::new("."))
    }

    /// Returns whether links and ports keep their rates to fractions of a nanosecond per frame (edits `bucket-exact`
    /// and `wire-exact`). Kernels of earlier versions of landspeed round to whole nanoseconds.
    pub fn has_exact_links(&self) -> bool {
        ["bucket-exact", "wire-exact"].iter().all(|wanted| self.edits.iter().any(|edit| edit == wanted))
    }

    /// Returns the release as a version; `None` if it is not one.
    pub fn version(&self) -> Option<Version> {
        self.release.parse().ok()
    }

    /// Returns the features of the kernel, from the configuration next to the executable.
    pub fn features(&self) -> Result<Features, Error> {
        let path = self.directory().join(CONFIG);
        std::fs::read_to_string(&path).map(|text| Features::parse(&text)).map_err(Error::io("read", &path))
    }

    /// Returns whether a symbol, with or without `CONFIG_`, is built in. To query several, keep [`Kernel::features`].
    pub fn supports(&self, symbol: &str) -> Result<bool, Error> {
        Ok(self.features()?.supports(symbol))
    }
}
