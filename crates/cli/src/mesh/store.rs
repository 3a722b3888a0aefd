//! Results on their way into the archive. What the archive cannot take waits in the spool, and then in memory.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};

use landspeed_archive::{Archive, ArchiveError, Location};
use landspeed_sys::{clock, file};

use crate::keep;

/// Most bytes of results that wait in memory. Beyond it no test starts, so that no result is lost.
const MAX_MEMORY_BYTES: usize = 256 << 20;
/// Extension of a spooled result, and of a file that is no result.
const EXTENSION: &str = "json";
const REFUSED_EXTENSION: &str = "refused";

/// Puts run documents into the archive; keeps them in the spool, then in memory, while the archive refuses.
#[derive(Debug)]
pub struct Store {
    location: Location,
    spool: PathBuf,
    /// Results that neither the archive nor the spool could take, oldest first: name of the file and document.
    memory: VecDeque<(String, Vec<u8>)>,
    /// Number of the next result, for its name.
    next: u64,
    memory_bytes: usize,
    max_memory_bytes: usize,
    /// The failure that was printed last: it is printed once.
    printed: Option<String>,
}

impl Store {
    /// Creates the store with a spool below `directory`.
    pub fn new(location: Location, directory: &Path) -> Self {
        Self {
            location,
            spool: directory.join("spool"),
            memory: VecDeque::new(),
            next: 0,
            memory_bytes: 0,
            max_memory_bytes: MAX_MEMORY_BYTES,
            printed: None,
        }
    }

    /// Archives a run document, or keeps it until the archive takes it.
    pub fn keep(&mut self, document: Vec<u8>) {
        if !matches!(self.location, Location::Directory(_)) {
            return;
        }
        // In the order of the tests. Nothing of the document is in the name: a server chose its id.
        let name = format!("{:020}-{}-{}.{EXTENSION}", clock::realtime_ns(), std::process::id(), self.next);
        self.next += 1;
        self.memory_bytes += document.len();
        self.memory.push_back((name, document));
        self.flush();
    }

    /// Tries again to store what waits.
    pub fn flush(&mut self) {
        let Location::Directory(directory) = self.location.clone() else { return };
        let waits = !self.memory.is_empty() || self.spooled().next().is_some();
        if !waits {
            return;
        }
        let failure = match self.archive_all(&directory) {
            Ok(()) => None,
            Err(why) => {
                let advice = why.advice().map(|advice| format!("\n{advice}.")).unwrap_or_default();
                let archive =
                    format!("cannot store results in the archive: {why}; they wait in {}", self.spool.display());
                match self.spool_all() {
                    Ok(()) => Some(archive + &advice),
                    Err(spool) => Some(format!(
                        "cannot store results in the archive: {why}\ncannot write them to {}: {spool}; they wait in \
                         memory\nFree some space: `df -h {}` shows how much is left.",
                        self.spool.display(),
                        landspeed_quote::shell_path(&directory)
                    )),
                }
            }
        };
        if failure.is_some() && failure != self.printed {
            errln!("landspeed: {}", failure.as_deref().unwrap_or_default());
        }
        self.printed = failure;
    }

    /// Whether so much waits in memory that no test should start.
    pub fn is_full(&self) -> bool {
        self.memory_bytes >= self.max_memory_bytes
    }

    /// Returns the number of results that are only in memory.
    pub fn in_memory(&self) -> usize {
        self.memory.len()
    }

    /// Returns the latest failure to store results; `None` if all are stored.
    pub fn failure(&self) -> Option<&str> {
        self.printed.as_deref()
    }

    /// Moves everything into the archive: the spool first, which is older.
    fn archive_all(&mut self, directory: &Path) -> Result<(), ArchiveError> {
        let mut archive = Archive::open(directory)?;
        if archive.is_new() {
            keep::print_location(&archive);
        }
        for path in self.spooled().collect::<Vec<_>>() {
            let Ok(document) = file::read(&path, file::MAX_DOCUMENT_BYTES) else { continue };
            match archive.insert(&document) {
                // A file that is no result must not keep the others from the archive.
                Err(ArchiveError::NoResult(why)) => {
                    let refused = path.with_extension(REFUSED_EXTENSION);
                    errln!("landspeed: cannot store {}: {why}; it is kept as {}", path.display(), refused.display());
                    let _ = std::fs::rename(&path, &refused);
                }
                stored => {
                    stored?;
                    let _ = file::remove(&path);
                }
            }
        }
        while let Some((name, document)) = self.memory.front() {
            match archive.insert(document) {
                Err(ArchiveError::NoResult(why)) => errln!("landspeed: cannot store result {name}: {why}"),
                stored => drop(stored?),
            }
            self.pop();
        }
        Ok(())
    }

    fn spool_all(&mut self) -> std::io::Result<()> {
        file::create_directory(&self.spool)?;
        while let Some((name, document)) = self.memory.front() {
            file::write_atomically(&self.spool.join(name), document)?;
            self.pop();
        }
        Ok(())
    }

    fn pop(&mut self) {
        if let Some((_, document)) = self.memory.pop_front() {
            self.memory_bytes -= document.len();
        }
    }

    fn spooled(&self) -> impl Iterator<Item = PathBuf> {
        let entries = std::fs::read_dir(&self.spool).into_iter().flatten().flatten();
        let mut paths: Vec<PathBuf> = entries
            .map(|entry| entry.path())
            .filter(|path| path.extension().is_some_and(|extension| extension == EXTENSION))
            .collect();
        paths.sort_unstable();
        paths.into_iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A document that the archive takes.
    fn document(number: u32) -> Vec<u8> {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/documents/udp.json");
        let text = std::fs::read_to_string(path).expect("the fixture");
        let mut document: serde_json::Value = serde_json::from_str(&text).expect("JSON");
        document["id"] = format!("{number:032x}").into();
        serde_json::to_vec(&document).expect("JSON")
    }

    #[test]
    fn results_wait_in_spool_and_memory_until_the_archive_takes_them() {
        let directory = tempfile::tempdir().expect("a directory");
        let archive = directory.path().join("archive");
        std::fs::write(&archive, "a file instead of a directory").expect("space");
        let mut store = Store::new(Location::Directory(archive.clone()), directory.path());
        store.keep(document(1));
        assert_eq!((store.in_memory(), store.spooled().count()), (0, 1));
        assert!(store.failure().is_some_and(|why| why.contains("spool")), "{:?}", store.failure());
        // The spool is full, too.
        std::fs::rename(directory.path().join("spool"), directory.path().join("old")).expect("renamed");
        std::fs::write(directory.path().join("spool"), "").expect("space");
        store.max_memory_bytes = document(2).len();
        store.keep(document(2));
        assert_eq!(store.in_memory(), 1);
        assert!(store.is_full() && store.failure().is_some_and(|why| why.contains("in memory")));
        // Both have space again.
        std::fs::remove_file(&archive).expect("removed");
        std::fs::remove_file(directory.path().join("spool")).expect("removed");
        std::fs::rename(directory.path().join("old"), directory.path().join("spool")).expect("renamed");
        store.flush();
        assert_eq!((store.in_memory(), store.spooled().count(), store.failure()), (0, 0, None));
        assert!(!store.is_full());
        let archive = Archive::open(&archive).expect("an archive");
        assert_eq!(archive.count_documents().expect("an index"), 2, "nothing is lost");
    }

    #[test]
    fn the_id_of_a_result_is_not_a_path() {
        let directory = tempfile::tempdir().expect("a directory");
        let archive = directory.path().join("archive");
        std::fs::write(&archive, "a file instead of a directory").expect("space");
        let mesh = directory.path().join("site.mesh");
        let mut store = Store::new(Location::Directory(archive), &mesh);
        for id in ["../../planted", "../planted", "/nonexistent/planted", "same", "same"] {
            let mut result: serde_json::Value = serde_json::from_slice(&document(1)).expect("JSON");
            result["id"] = id.into();
            store.keep(serde_json::to_vec(&result).expect("JSON"));
        }
        let names = |path: &Path| std::fs::read_dir(path).expect("it exists").count();
        assert_eq!(
            (store.in_memory(), names(&mesh.join("spool")), names(&mesh), names(directory.path())),
            (0, 5, 1, 2)
        );
    }

    #[test]
    fn a_spooled_file_without_a_result_does_not_keep_others_back() {
        let directory = tempfile::tempdir().expect("a directory");
        let spool = directory.path().join("spool");
        std::fs::create_dir(&spool).expect("space");
        std::fs::write(spool.join("0.json"), "nonsense").expect("space");
        std::fs::write(spool.join("1.json"), document(1)).expect("space");
        let archive = directory.path().join("archive");
        let mut store = Store::new(Location::Directory(archive.clone()), directory.path());
        store.flush();
        assert_eq!((store.spooled().count(), store.failure()), (0, None));
        assert_eq!(Archive::open(&archive).expect("an archive").count_documents().expect("an index"), 1);
        assert!(spool.join("0.refused").exists());
    }
}
