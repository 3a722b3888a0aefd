//! Errors of the archive.

use std::io;
use std::path::{Path, PathBuf};

use landspeed_sys::trust::{Fault, Untrusted};
use thiserror::Error;

/// Error of an archive operation. The message says what failed, on what and why; [`ArchiveError::advice`] says
/// what to do.
#[derive(Debug, Error)]
pub enum ArchiveError {
    /// There is no archive at this path.
    #[error("there is no archive in {}", path.display())]
    NoArchive {
        /// Expected path of the archive.
        path: PathBuf,
    },
    /// The path of the archive is not a directory.
    #[error("cannot keep results in {}: it is not a directory", path.display())]
    NotADirectory {
        /// Path that is not a directory.
        path: PathBuf,
    },
    /// Another user could have written to the archive.
    #[error("{}", .0.cause())]
    Untrusted(Untrusted),
    /// The archive can be read, but not changed.
    #[error("cannot change the archive in {}: it is not writable", path.display())]
    ReadOnly {
        /// Directory of the archive.
        path: PathBuf,
    },
    /// A file could not be read or written.
    #[error("cannot {action} {}: {source}", path.display())]
    File {
        /// Failed operation: `read`, `write` …
        action: &'static str,
        /// Path of the file.
        path: PathBuf,
        /// Error of the operating system.
        source: io::Error,
    },
    /// The index is damaged.
    #[error("cannot read the index {}: {why}", path.display())]
    DamagedIndex {
        /// Path of the index.
        path: PathBuf,
        /// Description of the damage.
        why: String,
    },
    /// The index was written by a later version.
    #[error("cannot use the index {}: it has version {found}, and this landspeed knows up to {known}", path.display())]
    NewerIndex {
        /// Path of the index.
        path: PathBuf,
        /// Schema version of the index.
        found: i64,
        /// Newest schema version that this program supports.
        known: i64,
    },
    /// An operation on the index failed.
    #[error("cannot use the index {}: {source}", path.display())]
    Index {
        /// Path of the index.
        path: PathBuf,
        /// Error of SQLite.
        source: rusqlite::Error,
    },
    /// No document has this id.
    #[error("no document of the archive has an id that begins with `{prefix}`")]
    Unknown {
        /// Id or prefix as given.
        prefix: String,
    },
    /// Several documents have ids with this prefix.
    #[error("{count} documents have an id that begins with `{prefix}`")]
    Ambiguous {
        /// Prefix as given.
        prefix: String,
        /// Number of matching documents.
        count: u64,
    },
    /// The bytes of a document do not match its id.
    #[error("document {id} is damaged: {why}")]
    Damaged {
        /// Id of the document.
        id: String,
        /// Description of the damage.
        why: String,
    },
    /// The bytes are not a result.
    #[error("{0}")]
    NoResult(String),
    /// A Parquet file could not be written.
    #[error("cannot write columns: {0}")]
    Columns(String),
}

const FULL: &str = "Free some space: `landspeed archive prune --older-than 365d` shows what could go";
const NOT_WRITABLE: &str = "Set LANDSPEED_ARCHIVE to a directory that you may write, or to `off`";

impl ArchiveError {
    /// Whether the file system has no space.
    pub(crate) fn is_full(&self) -> bool {
        match self {
            Self::File { source, .. } => {
                matches!(source.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
            }
            Self::Index { source, .. } => source.sqlite_error_code() == Some(rusqlite::ErrorCode::DiskFull),
            _ => false,
        }
    }

    /// Advice: one line that begins with a verb, without a final full stop.
    pub fn advice(&self) -> Option<String> {
        Some(match self {
            Self::NoArchive { .. } => {
                "Run a measurement, or `landspeed archive import FILE`; LANDSPEED_ARCHIVE names another directory"
                    .to_owned()
            }
            Self::NotADirectory { .. } => "Set LANDSPEED_ARCHIVE to a directory, or to `off`".to_owned(),
            Self::Untrusted(Untrusted { fault: Fault::Owner { .. }, .. }) => {
                "Run landspeed as that user, or set LANDSPEED_ARCHIVE to a directory of your own".to_owned()
            }
            Self::Untrusted(why) => format!("{}, or set LANDSPEED_ARCHIVE to another directory", why.remedy()),
            Self::ReadOnly { .. } => NOT_WRITABLE.to_owned(),
            Self::File { source, .. } => match source.kind() {
                io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => FULL.to_owned(),
                io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => NOT_WRITABLE.to_owned(),
                _ => return None,
            },
            Self::DamagedIndex { .. } => {
                "Rebuild it from the documents: `landspeed archive verify --rebuild`".to_owned()
            }
            Self::NewerIndex { .. } => {
                "Use the newer landspeed, or rebuild the index for this one: `landspeed archive verify --rebuild`"
                    .to_owned()
            }
            Self::Index { source, .. } => match source.sqlite_error_code() {
                Some(rusqlite::ErrorCode::DatabaseBusy | rusqlite::ErrorCode::DatabaseLocked) => {
                    "Repeat the command: another process is writing to the archive".to_owned()
                }
                Some(rusqlite::ErrorCode::DiskFull) => FULL.to_owned(),
                _ => return None,
            },
            Self::Unknown { .. } => "See `landspeed archive list` for ids".to_owned(),
            Self::Ambiguous { .. } => "Give more digits of the id".to_owned(),
            Self::Damaged { .. } => "Move damaged documents aside: `landspeed archive verify`".to_owned(),
            Self::NoResult(_) | Self::Columns(_) => return None,
        })
    }

    pub(crate) fn file<'a>(action: &'static str, path: &'a Path) -> impl FnOnce(io::Error) -> Self + use<'a> {
        move |source| Self::File { action, path: path.to_owned(), source }
    }
}
