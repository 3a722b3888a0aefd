//! Marks of writers: a process holds a locked file `writing.PID.N` while files and index may differ. A mark without a
//! holder says that a writer was killed, and that the next opening has to compare both.

use std::fs::{self, File, TryLockError};
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use landspeed_sys::file::{self, create_new_private};

use crate::files::{Files, is_abandoned};

const WRITING: &str = "writing.";
/// Prefix while a process repairs what the writer left: others wait for it.
const ADOPTING: &str = "adopting.";
const PART: &str = ".part";

/// A locked mark. Dropped without [`Mark::end`], it stays behind as abandoned.
#[derive(Debug)]
pub struct Mark {
    path: PathBuf,
    _lock: File,
}

impl Mark {
    /// Creates a mark. It is locked before it is renamed, so that no other process considers it abandoned.
    pub fn begin(files: &Files) -> io::Result<Self> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let path = files.root().join(format!("{WRITING}{}.{number}", std::process::id()));
        let unlocked = files.root().join(format!("{WRITING}{}.{number}{PART}", std::process::id()));
        let lock = create_new_private(&unlocked)?;
        let named = lock.lock().and_then(|()| fs::rename(&unlocked, &path));
        if let Err(why) = named {
            let _ = fs::remove_file(&unlocked);
            return Err(why);
        }
        Ok(Self { path, _lock: lock })
    }

    /// Removes the mark: files and index agree.
    pub fn end(self) {
        let _ = fs::remove_file(&self.path);
    }
}

/// Whether there are marks, held or not.
pub fn exist(files: &Files) -> bool {
    names(files.root()).is_ok_and(|names| !names.is_empty())
}

/// Takes the marks of killed writers. Waits for processes that repair what others left, so that a caller sees every
/// document that was complete when it started.
pub fn take_abandoned(files: &Files) -> io::Result<Vec<Mark>> {
    let mut taken = Vec::new();
    // Sorted: every process waits in the same order, and before it holds a writer's mark.
    for name in names(files.root())? {
        let path = files.root().join(&name);
        if name.ends_with(PART) {
            if is_abandoned(&path, &name) {
                let _ = fs::remove_file(&path);
            }
            continue;
        }
        let Ok(lock) = file::open(&path) else { continue };
        let path = match name.strip_prefix(WRITING) {
            None => {
                lock.lock()?;
                path
            }
            Some(writer) => match lock.try_lock() {
                Ok(()) => {
                    let adopting = files.root().join(format!("{ADOPTING}{writer}"));
                    // If it ended meanwhile, there is nothing to rename.
                    if fs::rename(&path, &adopting).is_err() {
                        continue;
                    }
                    adopting
                }
                Err(TryLockError::WouldBlock) => continue,
                Err(TryLockError::Error(why)) => return Err(why),
            },
        };
        if lock.metadata()?.nlink() > 0 {
            taken.push(Mark { path, _lock: lock });
        }
    }
    Ok(taken)
}

/// Returns the file names of marks, sorted.
fn names(root: &Path) -> io::Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in fs::read_dir(root)? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        if name.starts_with(WRITING) || name.starts_with(ADOPTING) {
            names.push(name);
        }
    }
    names.sort();
    Ok(names)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_marks_without_a_holder_are_abandoned() {
        let directory = tempfile::tempdir().expect("a directory");
        let files = Files::new(directory.path().to_owned());
        let abandoned = || take_abandoned(&files).expect("a directory");
        let held = Mark::begin(&files).expect("a mark");
        drop(Mark::begin(&files).expect("a mark"));
        let taken = abandoned();
        assert_eq!(taken.len(), 1);
        drop(taken);
        // The process that repaired it was killed, too.
        let taken = abandoned();
        assert_eq!(taken.len(), 1);
        taken.into_iter().for_each(Mark::end);
        assert!(abandoned().is_empty());
        held.end();
        assert!(!exist(&files));
    }
}
