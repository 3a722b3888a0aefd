//! What can go wrong with an archive.

use std::io;
use std::path::{Path, PathBuf};

use thiserror::Error;

/// Why the archive could not do what was asked. The text says what failed, on what and why; [`ArchiveError::advice`] what to do.
#[derive(Debug, Error)]
pub enum ArchiveError {
    /// There is no archive yet.
    #[error("there is no archive in {}", path.display())]
    Absent {
        /// Where it would be.
        path: PathBuf,
    },
    /// Something else is where the archive should be.
    #[error("cannot keep results in {}: it is not a directory", path.display())]
    NotADirectory {
        /// What is there.
        path: PathBuf,
    },
    /// A file could not be read or written.
    #[error("cannot {action} {}: {source}", path.display())]
    File {
        /// `read`, `write` and so on.
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The index is damaged.
    #[error("cannot read the index {}: {why}", path.display())]
    DamagedIndex {
        /// The index.
        path: PathBuf,
        /// Why.
        why: String,
    },
    /// A later version wrote the index.
    #[error("cannot use the index {}: it has version {found}, and this landspeed knows up to {known}", path.display())]
    NewerIndex {
        /// The index.
        path: PathBuf,
        /// Its version.
        found: i64,
        /// The newest that is known.
        known: i64,
    },
    /// The index could not be used.
    #[error("cannot use the index {}: {source}", path.display())]
    Index {
        /// The index.
        path: PathBuf,
        /// Why.
        source: rusqlite::Error,
    },
    /// No document has this id.
    #[error("no document of the archive has an id that begins with `{prefix}`")]
    Unknown {
        /// What was asked for.
        prefix: String,
    },
    /// Several documents have such an id.
    #[error("{count} documents have an id that begins with `{prefix}`")]
    Ambiguous {
        /// What was asked for.
        prefix: String,
        /// How many there are.
        count: u64,
    },
    /// A document's bytes are not those that were kept.
    #[error("document {id} is damaged: {why}")]
    Damaged {
        /// Its id.
        id: String,
        /// What is wrong.
        why: String,
    },
    /// Bytes that are no result.
    #[error("{0}")]
    NoResult(String),
    /// A Parquet file could not be written.
    #[error("cannot write columns: {0}")]
    Columns(String),
}

impl ArchiveError {
    /// What to do about it: one line that begins with a verb, without a final stop.
    pub fn advice(&self) -> Option<String> {
        Some(match self {
            Self::Absent { .. } => {
                "Run a measurement, or `landspeed archive import FILE`; LANDSPEED_ARCHIVE names another directory"
                    .to_owned()
            }
            Self::NotADirectory { .. } => "Set LANDSPEED_ARCHIVE to a directory, or to `off`".to_owned(),
            Self::File { source, .. } => match source.kind() {
                io::ErrorKind::StorageFull => {
                    "Free some space: `landspeed archive prune --older-than 365d` shows what could go".to_owned()
                }
                io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
                    "Set LANDSPEED_ARCHIVE to a directory that you may write, or to `off`".to_owned()
                }
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
                Some(rusqlite::ErrorCode::DiskFull) => {
                    "Free some space: `landspeed archive prune --older-than 365d` shows what could go".to_owned()
                }
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
