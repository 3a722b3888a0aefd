//! Opening an archive: for writing, on a full or read-only file system, and after a writer was killed.

use std::collections::HashSet;
use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use landspeed_sys::file::AtomicFile;

use crate::archive::Protection;
use crate::files::Files;
use crate::marks::{self, Mark};
use crate::verify::is_missing;
use crate::{Archive, ArchiveError, Id, index, rows};

impl Archive {
    /// Opens the archive in a directory; creates it if missing ([`Archive::is_new`]). A missing index is rebuilt
    /// from the documents.
    ///
    /// # Errors
    /// If the directory cannot be created, another user can write to it, or the index is damaged or of a later version.
    pub fn open(directory: &Path) -> Result<Self, ArchiveError> {
        let files = Files::new(directory.to_owned());
        files.check_owner(true)?;
        let is_new = !files.index().exists() && !files.documents().is_dir();
        Ok(Self { is_new, ..Self::open_files(files, None)? })
    }

    /// Opens an existing archive for reading. It may be on a full or read-only file system, or belong to another user.
    ///
    /// # Errors
    /// If there is no archive, or its index is damaged or of a later version.
    pub fn open_existing(directory: &Path) -> Result<Self, ArchiveError> {
        if directory.exists() && !directory.is_dir() {
            return Err(ArchiveError::NotADirectory { path: directory.to_owned() });
        }
        let files = Files::new(directory.to_owned());
        let has_index = files.index().try_exists().map_err(ArchiveError::file("read", directory))?;
        if !has_index && !files.documents().is_dir() {
            return Err(ArchiveError::NoArchive { path: directory.to_owned() });
        }
        let protection = match files.check_owner(false) {
            Ok(()) => None,
            Err(ArchiveError::Untrusted(why)) => Some(Protection::Untrusted(why)),
            Err(why) => return Err(why),
        };
        Self::open_files(files, protection)
    }

    /// Opens the archive with another index file, to build a new index.
    pub(crate) fn with_index(directory: &Path, index_path: PathBuf) -> Result<Self, ArchiveError> {
        let index = index::open(&index_path)?;
        Ok(Self::new(Files::new(directory.to_owned()), index, index_path))
    }

    fn new(files: Files, index: rusqlite::Connection, index_path: PathBuf) -> Self {
        Self { files, index, index_path, is_new: false, protection: None, unadopted: None }
    }

    fn open_files(files: Files, protection: Option<Protection>) -> Result<Self, ArchiveError> {
        let path = files.index();
        if protection.is_some() {
            return Self::open_without_writing(files, protection);
        }
        let rebuilt =
            if !path.exists() && files.documents().is_dir() { Self::rebuild(files.root()).map(drop) } else { Ok(()) };
        let why = match rebuilt.and_then(|()| index::open(&path)) {
            Ok(index) => return Ok(Self::new(files, index, path).adopted()),
            Err(why) => why,
        };
        let is_write_failure = index::is_write_failure(&why) || matches!(why, ArchiveError::File { .. });
        let Some(cause) = try_writing(&path).err().filter(|_| is_write_failure) else { return Err(why) };
        let is_full = matches!(cause.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded);
        if is_full
            && path.exists()
            && let Ok(index) = index::open_on_full_disk(&path)
        {
            return Ok(Self::new(files, index, path).adopted());
        }
        let cannot_write = ArchiveError::file("write", &path)(cause);
        match Self::open_without_writing(files, (!is_full).then_some(Protection::ReadOnly)) {
            // There is nothing to read.
            Err(ArchiveError::NoArchive { .. }) => Err(cannot_write),
            opened => opened,
        }
    }

    /// Opens the index for reading only; without a usable one, builds it in memory.
    fn open_without_writing(files: Files, protection: Option<Protection>) -> Result<Self, ArchiveError> {
        let path = files.index();
        let existing = if path.exists() { index::open_read_only(&path)? } else { None };
        if existing.is_none() && !files.documents().is_dir() {
            return Err(ArchiveError::NoArchive { path: files.root().to_owned() });
        }
        let has_index = existing.is_some();
        let index = existing.map_or_else(index::open_in_memory, Ok)?;
        let mut archive = Self { protection, ..Self::new(files, index, path) };
        if !has_index {
            archive.reconcile()?;
        } else if marks::exist(&archive.files) {
            archive.unadopted = Some(ArchiveError::ReadOnly { path: archive.directory().to_owned() });
        }
        Ok(archive)
    }

    /// Fails if the archive must not be changed.
    pub(crate) fn check_writable(&self) -> Result<(), ArchiveError> {
        match &self.protection {
            None => Ok(()),
            Some(Protection::Untrusted(why)) => Err(ArchiveError::Untrusted(why.clone())),
            Some(Protection::ReadOnly) => Err(ArchiveError::ReadOnly { path: self.directory().to_owned() }),
        }
    }

    /// Reason why documents that a killed process left may be missing in results, if any.
    pub fn unadopted(&self) -> Option<&ArchiveError> {
        self.unadopted.as_ref()
    }

    /// Brings index and documents into agreement if a writer was killed.
    fn adopted(mut self) -> Self {
        self.unadopted = self.adopt().err();
        self
    }

    fn adopt(&mut self) -> Result<(), ArchiveError> {
        let abandoned = marks::take_abandoned(&self.files).map_err(ArchiveError::file("read", self.directory()))?;
        if !abandoned.is_empty() {
            self.reconcile()?;
            abandoned.into_iter().for_each(Mark::end);
        }
        Ok(())
    }

    /// Compares the names of the documents with the index: adds those that are missing in the index, removes rows
    /// of documents that no longer exist, and updates tags from the notes. Damaged documents stay for
    /// [`Archive::verify`].
    fn reconcile(&mut self) -> Result<(), ArchiveError> {
        let present = self.present()?;
        let explain = self.explain();
        let indexed = self.indexed().map_err(&explain)?;
        self.index.execute_batch("BEGIN IMMEDIATE").map_err(&explain)?;
        let changed = (|| {
            for (count, id) in present.iter().filter(|id| !indexed.contains(id.as_str())).enumerate() {
                let added = self.files.read_document(id).and_then(|bytes| self.add_to_index(id, &bytes));
                // Other errors: it is damaged, unreadable, or was removed meanwhile.
                if let Err(why @ (ArchiveError::Index { .. } | ArchiveError::DamagedIndex { .. })) = added {
                    return Err(why);
                }
                // Let other processes write in between.
                if count % 200 == 199 {
                    self.index.execute_batch("COMMIT; BEGIN IMMEDIATE").map_err(&explain)?;
                }
            }
            for id in indexed.iter().filter_map(|id| Id::parse(id)).filter(|id| !present.contains(id)) {
                // A document written after the names were read exists.
                if is_missing(&self.files.document(&id)) {
                    self.index.execute("DELETE FROM documents WHERE id = ?1", [id.as_str()]).map_err(&explain)?;
                }
            }
            for id in present.iter().filter(|id| indexed.contains(id.as_str())) {
                self.reconcile_tags(id)?;
            }
            self.index.execute_batch("COMMIT").map_err(&explain)
        })();
        if changed.is_err() && !self.index.is_autocommit() {
            let _ = self.index.execute_batch("ROLLBACK");
        }
        changed
    }

    /// Updates the tags of an indexed document, unless its notes are damaged or cannot be read.
    fn reconcile_tags(&self, id: &Id) -> Result<(), ArchiveError> {
        let Some(document) = rows::sequence(&self.index, id).map_err(self.explain())? else { return Ok(()) };
        match self.verify_tags(id, document) {
            Err(why @ (ArchiveError::Index { .. } | ArchiveError::DamagedIndex { .. })) => Err(why),
            _ => Ok(()),
        }
    }

    /// Ids of the documents in the index.
    pub(crate) fn indexed(&self) -> rusqlite::Result<HashSet<String>> {
        self.index.prepare("SELECT id FROM documents")?.query_map([], |row| row.get(0))?.collect()
    }

    /// Ids of the documents that exist as files; those in directories that cannot be read are left out.
    fn present(&self) -> Result<HashSet<Id>, ArchiveError> {
        let top = self.files.documents();
        if is_missing(&top) {
            return Ok(HashSet::new());
        }
        let mut ids = HashSet::new();
        for directory in fs::read_dir(&top).map_err(ArchiveError::file("read", &top))?.flatten() {
            let Ok(entries) = fs::read_dir(directory.path()) else { continue };
            let names = entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned());
            ids.extend(names.filter_map(|name| Id::parse(name.strip_suffix(".json.gz")?)));
        }
        Ok(ids)
    }
}

/// Writes a temporary file, which fails on a full or read-only file system.
fn try_writing(path: &Path) -> io::Result<()> {
    AtomicFile::create_private(path)?.write_all(&vec![0; 1 << 16])
}
