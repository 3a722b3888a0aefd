//! Input and output files. Every command reads and writes its files with these functions: regular files within a limit,
//! and outputs that no other user could have placed.
//!
//! A path is walked directory by directory on open descriptors. A link, a file or a hard link that another user could
//! have placed there is refused, so that a program run by root, or by anyone in /tmp, writes where its user said and
//! nowhere else. Links of root and of the user are followed, and devices, pipes and the links in /proc behind
//! /dev/stdout are written to directly.

use std::ffi::{OsStr, OsString};
use std::fs::{File, Metadata, Permissions};
use std::io::{self, Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use crate::process::effective_uid;
use crate::trust::calls::{at, is_proc};
use crate::trust::walk::{PathRules, WalkEnd, is_planted_link, is_shared, walk};

mod input;

pub use input::{MAX_DOCUMENT_BYTES, MAX_TEXT_BYTES, open, read, read_from, read_text, read_text_from};

/// Mode of files that everyone may read if the umask allows it.
const PUBLIC: u32 = 0o666;
/// Mode of files for their owner only.
const PRIVATE: u32 = 0o600;

/// Writes a file completely or not at all: to a temporary file in the same directory, which is then renamed. The mode
/// is that of the umask, or of the file of this user that it replaces. Devices and pipes are written directly.
pub fn write_atomically(path: &Path, content: &[u8]) -> io::Result<()> {
    let place = Place::find(path)?;
    if place.existing()?.is_some_and(|facts| !facts.is_file()) {
        return place.open(libc::O_WRONLY | libc::O_APPEND, 0)?.write_all(content);
    }
    let mut file = AtomicFile::at(place, PUBLIC)?;
    file.write_all(content)?;
    file.commit()
}

/// Checks that [`write_atomically`] can write to a path.
pub fn check_writable(path: &Path) -> io::Result<()> {
    let place = Place::find(path)?;
    match place.existing()? {
        // Opening a pipe and closing it again would end its reader.
        Some(facts) if facts.file_type().is_fifo() => Ok(()),
        Some(facts) if !facts.is_file() => place.open(libc::O_WRONLY | libc::O_NONBLOCK, 0).map(drop),
        _ => AtomicFile::at(place, PUBLIC).map(drop),
    }
}

/// Opens a file that is written piece by piece, empty.
pub fn create(path: &Path) -> io::Result<File> {
    open_output(path, libc::O_WRONLY, PUBLIC)
}

/// Opens a file that is written at its end.
pub fn append(path: &Path) -> io::Result<File> {
    open_output(path, libc::O_WRONLY | libc::O_APPEND, PUBLIC)
}

/// Opens a lock file, for reading and writing; its content stays. Its mode is 0600, because another user who may read a
/// file may hold its lock.
pub fn open_lock(path: &Path) -> io::Result<File> {
    let file = open_output(path, libc::O_RDWR, PRIVATE)?;
    let facts = file.metadata()?;
    if facts.is_file() && facts.mode() & 0o077 != 0 && facts.uid() == effective_uid() {
        file.set_permissions(Permissions::from_mode(PRIVATE))?;
    }
    Ok(file)
}

/// Creates a file that must not exist, for its owner only (mode 0600).
pub fn create_new_private(path: &Path) -> io::Result<File> {
    Place::find(path)?.open(libc::O_RDWR | libc::O_CREAT | libc::O_EXCL, PRIVATE)
}

/// Creates a directory and missing parent directories, with the mode of the umask.
pub fn create_directory(path: &Path) -> io::Result<()> {
    walk(&OutputRules, path, "create", WalkEnd::Directory { create: Some(0o777) }).map(drop)
}

/// Creates a directory that must not exist.
pub fn create_new_directory(path: &Path) -> io::Result<()> {
    let place = Place::find(path)?;
    match place.existing()? {
        Some(_) => Err(io::ErrorKind::AlreadyExists.into()),
        None => at(&place.directory, &place.name).make_directory(0o777),
    }
}

/// Copies the content of a file to an output.
pub fn copy(from: &Path, to: &Path) -> io::Result<()> {
    let mut source = File::open(from)?;
    io::copy(&mut source, &mut create(to)?).map(drop)
}

/// Removes an output.
pub fn remove(path: &Path) -> io::Result<()> {
    let (directory, name) = walk(&OutputRules, path, "remove", WalkEnd::Parent)?;
    at(&directory, &name).remove()
}

fn open_output(path: &Path, flags: libc::c_int, mode: u32) -> io::Result<File> {
    let place = Place::find(path)?;
    let file = place.open(flags | libc::O_CREAT, mode)?;
    if flags == libc::O_WRONLY && file.metadata()?.is_file() {
        if place.is_proc {
            // As the shell's redirection, with which it shares the file: what is there stays.
            (&file).seek(SeekFrom::End(0))?;
        } else {
            file.set_len(0)?;
        }
    }
    Ok(file)
}

/// A file that gets its name when it is complete. Dropped before, it is removed.
#[derive(Debug)]
pub struct AtomicFile {
    file: File,
    place: Place,
    temporary: OsString,
    is_committed: bool,
}

impl AtomicFile {
    /// Begins a file. The mode is that of the umask, or of the file of this user that it replaces.
    pub fn create(path: &Path) -> io::Result<Self> {
        Self::at(Place::find(path)?, PUBLIC)
    }

    /// Begins a file for its owner only (mode 0600). Missing directories are created with mode 0700.
    pub fn create_private(path: &Path) -> io::Result<Self> {
        let place = match Place::find(path) {
            Err(why) if why.kind() == io::ErrorKind::NotFound => {
                let parent = path.parent().unwrap_or(Path::new("."));
                walk(&OutputRules, parent, "create", WalkEnd::Directory { create: Some(0o700) })?;
                Place::find(path)?
            }
            found => found?,
        };
        Self::at(place, PRIVATE)
    }

    fn at(place: Place, mode: u32) -> io::Result<Self> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let mut temporary = place.name.clone();
        temporary.push(format!(".{}.{}.part", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed)));
        let flags = libc::O_WRONLY | libc::O_CREAT | libc::O_EXCL | libc::O_NOFOLLOW;
        let file = at(&place.directory, &temporary).open(flags, mode)?;
        let file = Self { file, place, temporary, is_committed: false };
        let replaced = file.place.existing()?.filter(|facts| facts.is_file() && facts.uid() == effective_uid());
        if let Some(replaced) = replaced.filter(|_| mode == PUBLIC) {
            file.set_mode(replaced.mode() & 0o777)?;
        }
        Ok(file)
    }

    /// Sets the permission bits.
    pub fn set_mode(&self, mode: u32) -> io::Result<()> {
        self.file.set_permissions(Permissions::from_mode(mode))
    }

    /// Returns another handle of the file, for a writer that takes one.
    pub fn handle(&self) -> io::Result<File> {
        self.file.try_clone()
    }

    /// Gives the file its name. It survives a power failure.
    pub fn commit(self) -> io::Result<()> {
        self.file.sync_all()?;
        let directory = at(&self.place.directory, OsStr::new(".")).open(libc::O_RDONLY | libc::O_DIRECTORY, 0);
        self.commit_unsynced()?;
        // A directory that this user cannot read, and some file systems, do not sync directories.
        if let Ok(directory) = directory {
            let _ = directory.sync_all();
        }
        Ok(())
    }

    /// Gives the file its name. It survives the end of the process.
    pub fn commit_unsynced(mut self) -> io::Result<()> {
        at(&self.place.directory, &self.temporary).rename(&self.place.name)?;
        self.is_committed = true;
        Ok(())
    }
}

impl io::Write for AtomicFile {
    fn write(&mut self, content: &[u8]) -> io::Result<usize> {
        self.file.write(content)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl Drop for AtomicFile {
    fn drop(&mut self) {
        if !self.is_committed {
            let _ = at(&self.place.directory, &self.temporary).remove();
        }
    }
}

/// An open directory and a name in it that is not a link, or a link in /proc.
#[derive(Debug)]
struct Place {
    directory: File,
    name: OsString,
    is_proc: bool,
}

impl Place {
    /// Follows the path and its links.
    fn find(path: &Path) -> io::Result<Self> {
        let (directory, name) = walk(&OutputRules, path, "write", WalkEnd::ParentOfTarget)?;
        let is_proc = is_proc(&directory)?;
        Ok(Self { directory, name, is_proc })
    }

    /// Returns the metadata of the file, if it exists; of a link in /proc, those of the link.
    fn existing(&self) -> io::Result<Option<Metadata>> {
        match at(&self.directory, &self.name).open_path() {
            Err(why) if why.kind() == io::ErrorKind::NotFound => Ok(None),
            found => found?.metadata().map(Some),
        }
    }

    /// Opens the file, and refuses it if another user could have placed it there.
    fn open(&self, flags: libc::c_int, mode: u32) -> io::Result<File> {
        let entry = at(&self.directory, &self.name);
        if self.is_proc {
            return entry.open(flags & !(libc::O_CREAT | libc::O_EXCL), 0);
        }
        let file = entry.open(flags | libc::O_NOFOLLOW, mode)?;
        let (facts, directory) = (file.metadata()?, self.directory.metadata()?);
        if facts.is_file() && is_shared(&directory) {
            let uid = facts.uid();
            if uid != effective_uid() && uid != directory.uid() {
                return Err(Planted::File { uid }.into());
            }
            if facts.nlink() > 1 {
                return Err(Planted::HardLink.into());
            }
        }
        Ok(file)
    }
}

/// Rules for outputs: directories of others are used, links of others are not followed.
struct OutputRules;

impl PathRules for OutputRules {
    type Error = io::Error;

    fn io(&self, _: &'static str, cause: io::Error) -> io::Error {
        cause
    }

    fn directory(&self, _: &Metadata, _: &Path, _: bool) -> io::Result<()> {
        Ok(())
    }

    fn link(&self, facts: &Metadata, directory: &File, at: &Path, last: bool) -> io::Result<()> {
        if is_planted_link(facts, &directory.metadata()?) {
            let at = (!last).then(|| at.to_owned());
            return Err(Planted::Link { at, uid: facts.uid() }.into());
        }
        Ok(())
    }
}

/// Reason why an output is refused, and what to do, in two lines.
#[derive(Debug, thiserror::Error)]
enum Planted {
    #[error(
        "{} is a symbolic link of another user (uid {uid}) in a directory that others can write to\n\
         Name the file that it leads to, or another directory.",
        at.as_ref().map_or_else(|| "it".to_owned(), |at| at.display().to_string())
    )]
    Link { at: Option<PathBuf>, uid: u32 },
    #[error(
        "it is a file of another user (uid {uid}) in a directory that others can write to\n\
         Remove it, or write to a directory of your own."
    )]
    File { uid: u32 },
    #[error(
        "it has a second name (hard link), and others can write to its directory\n\
         Remove it, or write to a directory of your own."
    )]
    HardLink,
}

impl From<Planted> for io::Error {
    fn from(why: Planted) -> Self {
        Self::new(io::ErrorKind::PermissionDenied, why)
    }
}

#[cfg(test)]
mod tests;
