//! Files of documents and their notes.

use std::collections::BTreeSet;
use std::fs::{self, DirBuilder, File};
use std::io::{self, Write as _};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use landspeed_sys::file;
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

    /// Creates the directory if missing, accessible to its owner only.
    pub fn create(&self) -> Result<(), ArchiveError> {
        // A single check first, because another process may create the directory meanwhile.
        if let Ok(there) = fs::metadata(&self.root) {
            let no_directory = ArchiveError::NotADirectory { path: self.root.clone() };
            return if there.is_dir() { Ok(()) } else { Err(no_directory) };
        }
        let made = DirBuilder::new().recursive(true).mode(0o700).create(&self.root);
        made.map_err(|why| match why.kind() {
            io::ErrorKind::NotADirectory => ArchiveError::NotADirectory { path: self.root.clone() },
            _ => ArchiveError::file("create", &self.root)(why),
        })
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
    file::read_from(GzDecoder::new(packed), MAX_DOCUMENT_BYTES)
}

/// Writes a file under a temporary name in the same directory and renames it. Creates directories as needed.
pub fn write_whole(path: &Path, bytes: &[u8], sync: Sync) -> Result<(), ArchiveError> {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let directory = path.parent().unwrap_or(Path::new("."));
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let beside =
        directory.join(format!("{name}.{}.{}.part", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed)));
    let write = || {
        let mut file = match File::create_new(&beside) {
            Err(why) if why.kind() == io::ErrorKind::NotFound => {
                DirBuilder::new().recursive(true).mode(0o700).create(directory)?;
                File::create_new(&beside)?
            }
            other => other?,
        };
        file.write_all(bytes)?;
        if sync == Sync::Yes {
            file.sync_data()?;
        }
        fs::rename(&beside, path)
    };
    write().map_err(|why| {
        let _ = fs::remove_file(&beside);
        ArchiveError::file("write", path)(why)
    })
}

/// Removes a file if it exists.
pub fn remove(path: &Path) -> Result<(), ArchiveError> {
    match fs::remove_file(path) {
        Err(why) if why.kind() != io::ErrorKind::NotFound => Err(ArchiveError::file("remove", path)(why)),
        _ => Ok(()),
    }
}
