//! Verification and repair of an archive.

use std::fs;
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};

use landspeed_sys::file;
use landspeed_sys::trust::check_directory;

use crate::archive::write_series;
use crate::files::{Files, is_abandoned, remove};
use crate::{Archive, ArchiveError, Id, Reading, rows};

/// Result of a verification.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Verification {
    /// Number of documents whose bytes match their id.
    pub intact: u64,
    /// Number of documents that were missing in the index and were added.
    pub adopted: u64,
    /// Number of unfinished files that were removed.
    pub unfinished: u64,
    /// Number of series that were written again.
    pub series_rebuilt: u64,
    /// Damaged or missing documents, which were removed from the index.
    pub damaged: Vec<Damage>,
    /// Files and directories that this user cannot read; their documents stay in the index.
    pub unreadable: Vec<Unreadable>,
}

/// A file or directory that could not be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unreadable {
    /// Its path, relative to the archive.
    pub path: PathBuf,
    /// Error of the operating system.
    pub why: String,
}

/// A damaged or missing document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Damage {
    /// Its id, or the file name if that is not an id.
    pub id: String,
    /// Description of the damage.
    pub why: String,
    /// New path of the file, relative to the archive; `None` if it is missing.
    pub moved_to: Option<PathBuf>,
}

impl Archive {
    /// Checks the bytes of every document against its id, and updates the index to match the files. Moves damaged
    /// documents to `damaged/`.
    ///
    /// # Errors
    /// If the index is damaged ([`Archive::rebuild`]), or the directory cannot be read or written.
    pub fn verify(&mut self) -> Result<Verification, ArchiveError> {
        self.check_writable()?;
        self.check_index()?;
        let mut found = Verification::default();
        let mut seen = 0_u32;
        self.index.execute_batch("BEGIN IMMEDIATE").map_err(self.explain())?;
        for path in self.document_files(&mut found)? {
            self.verify_file(&path, &mut found)?;
            seen += 1;
            // Let other processes write in between.
            if seen.is_multiple_of(200) {
                self.index.execute_batch("COMMIT; BEGIN IMMEDIATE").map_err(self.explain())?;
            }
        }
        self.index.execute_batch("COMMIT").map_err(self.explain())?;
        self.verify_rows(&mut found)?;
        self.remove_unused_sets()?;
        found.damaged.sort_by(|a, b| a.id.cmp(&b.id));
        Ok(found)
    }

    /// Rebuilds the index from the documents, whatever its state, and verifies.
    ///
    /// # Errors
    /// If there is no archive, or the directory cannot be read or written.
    pub fn rebuild(directory: &Path) -> Result<Verification, ArchiveError> {
        if !directory.join("documents").is_dir() && !directory.join("index.sqlite").exists() {
            return Err(ArchiveError::NoArchive { path: directory.to_owned() });
        }
        Files::new(directory.to_owned()).check_owner(false)?;
        let beside = directory.join(format!("index.sqlite.{}.part", std::process::id()));
        let companions = |path: &Path| {
            ["-wal", "-shm"].map(|end| {
                let mut name = path.as_os_str().to_owned();
                name.push(end);
                PathBuf::from(name)
            })
        };
        let filled = (|| {
            let mut archive = Self::with_index(directory, beside.clone())?;
            let found = archive.verify()?;
            // Merge the write-ahead log, so that a rename moves the complete index.
            archive.index.pragma_update(None, "journal_mode", "DELETE").map_err(archive.explain())?;
            Ok(found)
        })();
        let place = directory.join("index.sqlite");
        let result = filled.and_then(|found| {
            companions(&place).iter().try_for_each(|path| remove(path))?;
            fs::rename(&beside, &place).map_err(ArchiveError::file("replace", &place))?;
            Ok(found)
        });
        if result.is_err() {
            let _ = remove(&beside);
        }
        for path in companions(&beside) {
            let _ = remove(&path);
        }
        result
    }

    fn check_index(&self) -> Result<(), ArchiveError> {
        let state: String =
            self.index.pragma_query_value(None, "quick_check", |row| row.get(0)).map_err(self.explain())?;
        if state == "ok" {
            return Ok(());
        }
        Err(ArchiveError::DamagedIndex { path: self.files.index(), why: state })
    }

    /// Returns every file below `documents`, sorted, and the unfinished files below `series`.
    fn document_files(&self, found: &mut Verification) -> Result<Vec<PathBuf>, ArchiveError> {
        let top = self.files.documents();
        if !top.is_dir() {
            return Ok(Vec::new());
        }
        let list = |directory: &Path| -> Result<Vec<PathBuf>, ArchiveError> {
            let read = || fs::read_dir(directory)?.map(|entry| Ok(entry?.path())).collect::<io::Result<Vec<_>>>();
            let mut paths = read().map_err(ArchiveError::file("read", directory))?;
            paths.sort();
            Ok(paths)
        };
        let mut files = Vec::new();
        for directory in list(&top)? {
            if directory.is_dir() {
                match list(&directory) {
                    Err(why) if is_denied(&why) => found.unreadable.push(self.unreadable(&directory, &why)),
                    listed => files.extend(listed?),
                }
            }
        }
        // Finished series are checked with their documents.
        for directory in list(&self.files.root().join("series")).unwrap_or_default() {
            files.extend(list(&directory).unwrap_or_default().into_iter().filter(|path| is_unfinished(path)));
        }
        Ok(files)
    }

    fn verify_file(&self, path: &Path, found: &mut Verification) -> Result<(), ArchiveError> {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if is_unfinished(path) {
            if is_abandoned(path, &name) {
                remove(path)?;
                found.unfinished += 1;
            }
            return Ok(());
        }
        if name.ends_with(".notes.json") {
            return Ok(());
        }
        let Some(id) = name.strip_suffix(".json.gz").and_then(Id::parse) else {
            found.damaged.push(self.quarantine(path, &name, "its name is no id".to_owned())?);
            return Ok(());
        };
        let damage = match self.files.read_document(&id) {
            Ok(bytes) => match self.verify_document(&id, &bytes, found) {
                Err(ArchiveError::NoResult(why)) => why,
                other => return other,
            },
            Err(ArchiveError::Damaged { why, .. }) => why,
            // The file was removed after it was listed.
            Err(_) if is_missing(path) => return Ok(()),
            Err(why) if is_denied(&why) => {
                found.unreadable.push(self.unreadable(path, &why));
                return Ok(());
            }
            Err(why) => return Err(why),
        };
        found.damaged.push(self.quarantine(path, id.as_str(), damage)?);
        self.remove_from_index(&id)
    }

    fn verify_document(&self, id: &Id, bytes: &[u8], found: &mut Verification) -> Result<(), ArchiveError> {
        match rows::sequence(&self.index, id).map_err(self.explain())? {
            None => {
                self.add_to_index(id, bytes)?;
                found.adopted += 1;
            }
            Some(document) => self.verify_tags(id, document)?,
        }
        found.intact += 1;
        if cfg!(feature = "columns") && !is_parquet(&self.files.series(id)) {
            let reading = Reading::of(bytes)?;
            if write_series(&self.files, id, &reading)? {
                found.series_rebuilt += 1;
            }
        }
        Ok(())
    }

    /// Updates the tags in the index from the notes.
    pub(crate) fn verify_tags(&self, id: &Id, document: i64) -> Result<(), ArchiveError> {
        let notes = self.files.read_notes(id)?;
        let mut select =
            self.index.prepare_cached("SELECT tag FROM tags WHERE document = ?1").map_err(self.explain())?;
        let known: std::collections::BTreeSet<String> =
            select.query_map([document], |row| row.get(0)).and_then(Iterator::collect).map_err(self.explain())?;
        if known != notes.tags {
            self.index.execute("DELETE FROM tags WHERE document = ?1", [document]).map_err(self.explain())?;
            for tag in &notes.tags {
                rows::add_tag(&self.index, document, tag).map_err(self.explain())?;
            }
        }
        Ok(())
    }

    /// Removes rows whose file is missing.
    fn verify_rows(&self, found: &mut Verification) -> Result<(), ArchiveError> {
        for id in self.indexed().map_err(self.explain())? {
            let known = Id::parse(&id);
            if known.as_ref().is_some_and(|id| !is_missing(&self.files.document(id))) {
                continue;
            }
            self.index.execute("DELETE FROM documents WHERE id = ?1", [&id]).map_err(self.explain())?;
            found.damaged.push(Damage { id, why: "its file is missing".to_owned(), moved_to: None });
        }
        Ok(())
    }

    fn remove_from_index(&self, id: &Id) -> Result<(), ArchiveError> {
        self.index.execute("DELETE FROM documents WHERE id = ?1", [id.as_str()]).map_err(self.explain())?;
        remove(&self.files.series(id))
    }

    fn unreadable(&self, path: &Path, why: &ArchiveError) -> Unreadable {
        let why = match why {
            ArchiveError::File { source, .. } => source.to_string(),
            other => other.to_string(),
        };
        Unreadable { path: path.strip_prefix(self.files.root()).unwrap_or(path).to_owned(), why }
    }

    /// Moves a damaged file to `damaged/`.
    fn quarantine(&self, path: &Path, id: &str, why: String) -> Result<Damage, ArchiveError> {
        let moved_to = Path::new("damaged").join(path.file_name().unwrap_or_default());
        let directory = self.files.root().join("damaged");
        check_directory(&directory, "directory of damaged documents", true).map_err(|why| self.files.explain(why))?;
        fs::rename(path, self.files.root().join(&moved_to)).map_err(ArchiveError::file("move", path))?;
        Ok(Damage { id: id.to_owned(), why, moved_to: Some(moved_to) })
    }
}

/// Whether there is no such file. A file that cannot be looked at may exist.
pub(crate) fn is_missing(path: &Path) -> bool {
    fs::symlink_metadata(path).is_err_and(|why| why.kind() == io::ErrorKind::NotFound)
}

fn is_denied(why: &ArchiveError) -> bool {
    matches!(why, ArchiveError::File { source, .. } if source.kind() == io::ErrorKind::PermissionDenied)
}

fn is_unfinished(path: &Path) -> bool {
    path.extension().is_some_and(|end| end == "part")
}

/// Whether a file begins and ends with Parquet's magic number.
fn is_parquet(path: &Path) -> bool {
    let magic = |file: &mut fs::File, from| -> io::Result<[u8; 4]> {
        let mut bytes = [0; 4];
        file.seek(from)?;
        file.read_exact(&mut bytes)?;
        Ok(bytes)
    };
    file::open(path).is_ok_and(|mut file| {
        let ends = [SeekFrom::Start(0), SeekFrom::End(-4)];
        ends.into_iter().all(|end| magic(&mut file, end).is_ok_and(|bytes| bytes == *b"PAR1"))
    })
}
