//! Files of documents and their notes.

use std::collections::BTreeSet;
use std::fs::{self, Permissions};
use std::io::{self, Write as _};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, UNIX_EPOCH};

use flate2::Compression;
use flate2::read::MultiGzDecoder;
use flate2::write::GzEncoder;
use landspeed_sys::clock;
use landspeed_sys::file::{self, AtomicFile};
use landspeed_sys::trust::{TrustError, check_directory};
use serde::{Deserialize, Serialize};

use crate::{ArchiveError, Id};

/// Maximum size of a document, bytes, so that a small compressed file cannot fill the memory.
pub const MAX_DOCUMENT_BYTES: u64 = 1 << 30;
/// Maximum size of the notes of a document, bytes.
const MAX_NOTES_BYTES: u64 = 1 << 20;

/// Data about a document that it does not contain itself: its tags and its source.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Notes {
    /// Tags of the document.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub tags: BTreeSet<String>,
    /// File that it was imported from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
}

/// Paths of an archive's files.
#[derive(Debug, Clone)]
pub struct Files {
    root: PathBuf,
}

/// Whether a write is synced to disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sync {
    /// Synced before the file gets its name, so that it survives a power failure.
    Yes,
    /// Not synced: the file survives the end of the process, and the original exists elsewhere.
    No,
}

impl Files {
    /// The files in the directory `root`.
    pub fn new(root: PathBuf) -> Self {
        Self { root }
    }

    /// Directory of the archive.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Path of the index.
    pub fn index(&self) -> PathBuf {
        self.root.join("index.sqlite")
    }

    /// Path of a document.
    pub fn document(&self, id: &Id) -> PathBuf {
        self.root.join("documents").join(id.directory()).join(format!("{id}.json.gz"))
    }

    /// Path of a document's notes.
    pub fn notes(&self, id: &Id) -> PathBuf {
        self.root.join("documents").join(id.directory()).join(format!("{id}.notes.json"))
    }

    /// Path of a document's series.
    pub fn series(&self, id: &Id) -> PathBuf {
        self.root.join("series").join(id.directory()).join(format!("{id}.parquet"))
    }

    /// Path of the directory of all documents.
    pub fn documents(&self) -> PathBuf {
        self.root.join("documents")
    }

    /// Checks that only this user (or root) can write to the archive, so that its files can be used by their paths;
    /// `create` creates its directory (0700). Files that an earlier version left readable for others are closed to
    /// them.
    pub fn check_owner(&self, create: bool) -> Result<(), ArchiveError> {
        const WHAT: &str = "archive directory";
        check_directory(&self.root, WHAT, create).map_err(|why| self.explain(why))?;
        for below in [self.documents(), self.root.join("series")] {
            match check_directory(&below, WHAT, false) {
                Err(why) if why.io().is_some_and(|why| why.kind() == io::ErrorKind::NotFound) => {}
                checked => {
                    checked.map_err(|why| self.explain(why))?;
                    make_private(&below, 0o700);
                }
            }
        }
        for end in ["", "-wal", "-shm"] {
            make_private(&self.root.join(format!("index.sqlite{end}")), 0o600);
        }
        Ok(())
    }

    pub fn explain(&self, why: TrustError) -> ArchiveError {
        match why {
            TrustError::Untrusted(why) => ArchiveError::Untrusted(why),
            TrustError::Io { cause, .. } if cause.kind() == io::ErrorKind::NotADirectory => {
                ArchiveError::NotADirectory { path: self.root.clone() }
            }
            TrustError::Io { operation, path, cause, .. } => {
                ArchiveError::File { action: operation, path, source: cause }
            }
        }
    }

    /// Writes a document under a temporary name, then renames it.
    pub fn write_document(&self, id: &Id, bytes: &[u8], sync: Sync) -> Result<(), ArchiveError> {
        let path = self.document(id);
        let packed = (|| {
            let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
            encoder.write_all(bytes)?;
            encoder.finish()
        })()
        .map_err(ArchiveError::file("compress", &path))?;
        write_whole(&path, &packed, sync)
    }

    /// Reads a document and checks its bytes against the id.
    pub fn read_document(&self, id: &Id) -> Result<Vec<u8>, ArchiveError> {
        let path = self.document(id);
        let file = file::open(&path).map_err(ArchiveError::file("read", &path))?;
        let damaged = |why: String| ArchiveError::Damaged { id: id.to_string(), why };
        let bytes = unpack(file).map_err(|why| damaged(why.to_string()))?;
        if Id::of(&bytes) == *id { Ok(bytes) } else { Err(damaged("its bytes have another SHA-256".to_owned())) }
    }

    /// Reads the notes of a document; empty if there is no file.
    pub fn read_notes(&self, id: &Id) -> Result<Notes, ArchiveError> {
        let path = self.notes(id);
        match file::read(&path, MAX_NOTES_BYTES) {
            Ok(bytes) => serde_json::from_slice(&bytes)
                .map_err(|why| ArchiveError::file("read", &path)(io::Error::new(io::ErrorKind::InvalidData, why))),
            Err(why) if why.kind() == io::ErrorKind::NotFound => Ok(Notes::default()),
            Err(why) => Err(ArchiveError::file("read", &path)(why)),
        }
    }

    /// Writes the notes of a document, or removes the file if they are empty.
    pub fn write_notes(&self, id: &Id, notes: &Notes, sync: Sync) -> Result<(), ArchiveError> {
        let path = self.notes(id);
        if *notes == Notes::default() {
            return remove(&path);
        }
        let text = serde_json::to_vec(notes).map_err(|why| ArchiveError::file("write", &path)(why.into()))?;
        write_whole(&path, &text, sync)
    }

    /// Removes all files of a document.
    pub fn remove(&self, id: &Id) -> Result<(), ArchiveError> {
        remove(&self.document(id))?;
        remove(&self.notes(id))?;
        remove(&self.series(id))
    }
}

/// Decompresses gzip data; fails beyond [`MAX_DOCUMENT_BYTES`].
pub fn unpack(packed: impl io::Read) -> io::Result<Vec<u8>> {
    file::read_from(MultiGzDecoder::new(packed), MAX_DOCUMENT_BYTES)
}

/// Writes a file, for its owner only, under a temporary name and renames it. Creates directories as needed.
pub fn write_whole(path: &Path, bytes: &[u8], sync: Sync) -> Result<(), ArchiveError> {
    let write = || {
        let mut file = AtomicFile::create_private(path)?;
        file.write_all(bytes)?;
        if sync == Sync::Yes { file.commit() } else { file.commit_unsynced() }
    };
    write().map_err(ArchiveError::file("write", path))
}

/// Closes a file or directory of this user to others; a failure leaves it as it is.
fn make_private(path: &Path, mode: u32) {
    let Ok(facts) = fs::metadata(path) else { return };
    if facts.mode() & 0o077 != 0 && facts.uid() == landspeed_sys::process::effective_uid() {
        let _ = fs::set_permissions(path, Permissions::from_mode(mode));
    }
}

/// Removes a file if it exists.
pub fn remove(path: &Path) -> Result<(), ArchiveError> {
    match fs::remove_file(path) {
        Err(why) if why.kind() != io::ErrorKind::NotFound => Err(ArchiveError::file("remove", path)(why)),
        _ => Ok(()),
    }
}

/// Maximum age up to which unfinished files of a running process are kept.
const UNFINISHED_AGE: Duration = Duration::from_hours(24);

/// Whether the process that wrote an unfinished file (`NAME.PID.N.part`) has ended. For a process of another
/// machine only the age is known.
pub fn is_abandoned(path: &Path, name: &str) -> bool {
    let pid = name.rsplit('.').nth(2).and_then(|pid| pid.parse::<u32>().ok());
    let runs = pid.is_some_and(|pid| Path::new("/proc").join(pid.to_string()).exists());
    let age_ns = (clock::realtime_ns() as i64).saturating_sub(modified_ns(path));
    !runs || age_ns > UNFINISHED_AGE.as_nanos() as i64
}

/// Modification time of a file, nanoseconds since the Unix epoch.
pub fn modified_ns(path: &Path) -> i64 {
    let modified = fs::metadata(path).and_then(|facts| facts.modified()).ok();
    let since = modified.and_then(|time| time.duration_since(UNIX_EPOCH).ok());
    since.and_then(|since| i64::try_from(since.as_nanos()).ok()).unwrap_or(0)
}
