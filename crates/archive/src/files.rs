//! Documents and their notes as files.

use std::collections::BTreeSet;
use std::fs::{self, DirBuilder, File};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use serde::{Deserialize, Serialize};

use crate::{ArchiveError, Id};

/// A document of more bytes is refused, so that a small compressed file cannot fill the memory.
pub const MOST_BYTES: u64 = 1 << 30;

/// What a document itself does not say: its tags, and the file it was imported from.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Notes {
    /// Tags.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub tags: BTreeSet<String>,
    /// The file it was imported from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
}

/// The files of an archive.
#[derive(Debug, Clone)]
pub struct Files {
    root: PathBuf,
}

/// Whether a write waits for the disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sync {
    /// Before the file takes its name: it survives a power failure.
    Yes,
    /// Not: the file survives the end of the process, and the original is somewhere else.
    No,
}

impl Files {
    /// The files below `root`.
    pub fn new(root: PathBuf) -> Self {
        Self { root }
    }

    /// The directory.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The index.
    pub fn index(&self) -> PathBuf {
        self.root.join("index.sqlite")
    }

    /// A document.
    pub fn document(&self, id: &Id) -> PathBuf {
        self.root.join("documents").join(id.directory()).join(format!("{id}.json.gz"))
    }

    /// Its notes.
    pub fn notes(&self, id: &Id) -> PathBuf {
        self.root.join("documents").join(id.directory()).join(format!("{id}.notes.json"))
    }

    /// Its series.
    pub fn series(&self, id: &Id) -> PathBuf {
        self.root.join("series").join(id.directory()).join(format!("{id}.parquet"))
    }

    /// Makes the directory, for its owner alone, where there is none.
    pub fn create(&self) -> Result<(), ArchiveError> {
        // Looked at once: another process may make it meanwhile.
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

    /// Writes a document. It takes its name when it is whole.
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

    /// Reads a document and compares its bytes with the id.
    pub fn read_document(&self, id: &Id) -> Result<Vec<u8>, ArchiveError> {
        let path = self.document(id);
        let file = File::open(&path).map_err(ArchiveError::file("read", &path))?;
        let damaged = |why: String| ArchiveError::Damaged { id: id.to_string(), why };
        let bytes = unpack(file).map_err(|why| damaged(why.to_string()))?;
        if Id::of(&bytes) == *id { Ok(bytes) } else { Err(damaged("its bytes have another SHA-256".to_owned())) }
    }

    /// Reads the notes of a document; none is no notes.
    pub fn read_notes(&self, id: &Id) -> Result<Notes, ArchiveError> {
        let path = self.notes(id);
        match fs::read(&path) {
            Ok(bytes) => serde_json::from_slice(&bytes)
                .map_err(|why| ArchiveError::file("read", &path)(io::Error::new(io::ErrorKind::InvalidData, why))),
            Err(why) if why.kind() == io::ErrorKind::NotFound => Ok(Notes::default()),
            Err(why) => Err(ArchiveError::file("read", &path)(why)),
        }
    }

    /// Writes the notes of a document, or removes them where there is nothing to note.
    pub fn write_notes(&self, id: &Id, notes: &Notes, sync: Sync) -> Result<(), ArchiveError> {
        let path = self.notes(id);
        if *notes == Notes::default() {
            return remove(&path);
        }
        let text = serde_json::to_vec(notes).map_err(|why| ArchiveError::file("write", &path)(why.into()))?;
        write_whole(&path, &text, sync)
    }

    /// Removes everything of a document.
    pub fn remove(&self, id: &Id) -> Result<(), ArchiveError> {
        remove(&self.document(id))?;
        remove(&self.notes(id))?;
        remove(&self.series(id))
    }
}

/// The content of gzip data, at most [`MOST_BYTES`].
pub fn unpack(packed: impl io::Read) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    GzDecoder::new(packed).take(MOST_BYTES + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > MOST_BYTES {
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, "it has more than 1 GiB"));
    }
    Ok(bytes)
}

/// Writes a file beside its place and renames it. Directories are made as needed.
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

/// Removes a file that may not be there.
pub fn remove(path: &Path) -> Result<(), ArchiveError> {
    match fs::remove_file(path) {
        Err(why) if why.kind() != io::ErrorKind::NotFound => Err(ArchiveError::file("remove", path)(why)),
        _ => Ok(()),
    }
}
