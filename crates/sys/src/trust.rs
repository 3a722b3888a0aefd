//! Access to trusted files: keys, user files, configurations, journals of settings.
//!
//! Such a file is opened without following links, and rejected if any user other than root and the effective one
//! could have written it: its owner, its permissions, its access control list and every directory of its path are
//! checked on open descriptors, so that nothing can be replaced between check and use.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

pub(crate) mod calls;
pub(crate) mod walk;

use calls::{at, others_access};
use landspeed_quote::shell_path;
use walk::{Judge, PathRules as _, WalkEnd, walk};

/// Write permission bits of group and others.
const WRITABLE: u32 = 0o022;
/// Search permission bits of group and others.
const SEARCHABLE: u32 = 0o011;

/// Confidentiality of a file's content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Content {
    /// Public: the file must not be writable by group or others.
    Public,
    /// Secret: the file must not be readable by group or others either, or be in a directory that they cannot search.
    Secret,
}

/// Handling of a file that others could have written or read.
#[derive(Debug, Clone, Copy, Default)]
pub enum Policy {
    /// The file is rejected.
    #[default]
    Refuse,
    /// The file is used (`--insecure-permissions`), and the function reports each fault.
    Report(fn(&Untrusted)),
}

/// Reason why a file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TrustError {
    /// Another user could have written or read the file.
    #[error(transparent)]
    Untrusted(#[from] Untrusted),
    /// A file operation failed.
    #[error("cannot {operation} {what} {path}: {cause}")]
    Io {
        /// Operation that failed: `read`, `open` or `create`.
        operation: &'static str,
        /// Purpose of the file (`key file`).
        what: &'static str,
        /// Path of the file.
        path: PathBuf,
        /// Error of the system call.
        cause: io::Error,
    },
}

impl TrustError {
    /// Returns the system's error, if it is one.
    pub fn io(&self) -> Option<&io::Error> {
        match self {
            Self::Io { cause, .. } => Some(cause),
            Self::Untrusted(_) => None,
        }
    }
}

/// A file that others could have written or read. Its text has two lines: the fault, and the advice.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Untrusted {
    /// Purpose of the file (`key file`).
    pub what: &'static str,
    /// Path as given by the caller.
    pub path: PathBuf,
    /// The fault found.
    pub fault: Fault,
}

/// Fault of a file or of a directory in its path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fault {
    /// It is a symbolic link.
    Link,
    /// It is not a regular file.
    NotRegular,
    /// It, or a directory or link in its path, is owned by another user.
    Owner {
        /// Path of the file, directory or link.
        at: PathBuf,
        /// User id of the owner.
        uid: u32,
        /// Expected user id.
        expected: u32,
    },
    /// It, or a directory in its path, is writable by group or others.
    Writable {
        /// Path of the file or directory.
        at: PathBuf,
        /// Permission bits.
        mode: u32,
    },
    /// It is readable by group or others.
    Readable {
        /// Permission bits.
        mode: u32,
    },
}

impl Untrusted {
    /// Returns the fault, in one line.
    pub fn cause(&self) -> String {
        let place = |at: &Path| if at == self.path { "it".to_owned() } else { at.display().to_string() };
        let fault = match &self.fault {
            Fault::Link => "it is a symbolic link".to_owned(),
            Fault::NotRegular => "it is not a regular file".to_owned(),
            Fault::Owner { at, uid, .. } => format!("{} is owned by another user (uid {uid})", place(at)),
            Fault::Writable { at, mode } => format!("{} is writable by others (mode {mode:04o})", place(at)),
            Fault::Readable { mode } => format!("it is readable by others (mode {mode:04o})"),
        };
        format!("cannot use {} {}: {fault}", self.what, self.path.display())
    }

    /// Returns the command or option that helps.
    pub fn advice(&self) -> String {
        format!("{}, or pass --insecure-permissions.", self.remedy())
    }

    /// Returns the command that helps, for a file that no option can override.
    pub fn remedy(&self) -> String {
        let path = shell_path(&self.path);
        match &self.fault {
            Fault::Link | Fault::NotRegular => "Name the file itself".to_owned(),
            Fault::Owner { at, expected, .. } => format!("Run chown {expected} {}", shell_path(at)),
            Fault::Writable { at, .. } if *at != self.path => format!("Run chmod go-w {}", shell_path(at)),
            Fault::Writable { .. } if !self.what.contains("key") => format!("Run chmod go-w {path}"),
            Fault::Writable { .. } | Fault::Readable { .. } => format!("Run chmod 600 {path}"),
        }
    }
}

impl fmt::Display for Untrusted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}\n{}", self.cause(), self.advice())
    }
}

impl std::error::Error for Untrusted {}

/// Mode for opening a file of a [`Directory`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// For reading.
    Read,
    /// For reading and appending.
    Append,
    /// For reading and appending; it must not exist and is created with mode 0600.
    CreateNew,
    /// For reading and writing; created with mode 0600 if it does not exist.
    Create,
}

impl Access {
    fn operation(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Append => "open",
            Self::CreateNew | Self::Create => "create",
        }
    }
}

/// Opens a file for reading. `owners` are users that may own it in addition to root and the effective user.
pub fn open(
    path: &Path,
    what: &'static str,
    content: Content,
    owners: &[u32],
    policy: Policy,
) -> Result<File, TrustError> {
    let judge = Judge::new(path, what, owners, policy);
    let operation = Access::Read.operation();
    let (parent, name) = walk(&judge, &absolute(&judge, operation)?, operation, WalkEnd::Parent)?;
    open_at(&judge, &parent.into(), &name, content, Access::Read)
}

fn absolute(judge: &Judge<'_>, operation: &'static str) -> Result<PathBuf, TrustError> {
    std::path::absolute(judge.path).map_err(|cause| judge.io(operation, cause))
}

/// Checks that only root and the effective user can write to a directory, so that its files can be used by their
/// paths; root also checks every directory above it. Links of the user and of root may lead there. `create` creates
/// it, and missing parent directories, with mode 0700.
pub fn check_directory(path: &Path, what: &'static str, create: bool) -> Result<(), TrustError> {
    let judge = Judge::of_directory(path, what);
    let operation = if create { "create" } else { "open" };
    let end = WalkEnd::Directory { create: create.then_some(0o700) };
    walk(&judge, &absolute(&judge, operation)?, operation, end).map(drop)
}

/// Maximum size of a key, a list of users or a configuration, bytes.
const MAX_BYTES: u64 = 1 << 20;

/// Reads a file of at most 1 MiB.
pub fn read(path: &Path, what: &'static str, content: Content, policy: Policy) -> Result<Vec<u8>, TrustError> {
    let file = open(path, what, content, &[], policy)?;
    crate::file::read_from(file, MAX_BYTES).map_err(|cause| TrustError::Io {
        operation: "read",
        what,
        path: path.to_owned(),
        cause,
    })
}

/// Reads a UTF-8 text file.
pub fn read_text(path: &Path, what: &'static str, content: Content, policy: Policy) -> Result<String, TrustError> {
    let bytes = read(path, what, content, policy)?;
    String::from_utf8(bytes).map_err(|why| TrustError::Io {
        operation: "read",
        what,
        path: path.to_owned(),
        cause: io::Error::new(io::ErrorKind::InvalidData, why.utf8_error()),
    })
}

/// A directory that only root and the effective user can write to. Its files are opened relative to its
/// descriptor.
#[derive(Debug)]
pub struct Directory {
    fd: OwnedFd,
    path: PathBuf,
    policy: Policy,
}

impl Directory {
    /// Opens a directory; `create` creates it, and missing parent directories, with mode 0700.
    pub fn open(path: &Path, what: &'static str, create: bool, policy: Policy) -> Result<Self, TrustError> {
        let judge = Judge::new(path, what, &[], policy);
        let operation = if create { "create" } else { "open" };
        let end = WalkEnd::Directory { create: create.then_some(0o700) };
        let (fd, _) = walk(&judge, &absolute(&judge, operation)?, operation, end)?;
        Ok(Self { fd: fd.into(), path: path.to_owned(), policy })
    }

    /// Opens a file in the directory.
    pub fn file(&self, name: &str, what: &'static str, access: Access) -> Result<File, TrustError> {
        let path = self.path.join(name);
        open_at(&Judge::new(&path, what, &[], self.policy), &self.fd, OsStr::new(name), Content::Public, access)
    }

    /// Returns the names of the files in the directory.
    pub fn names(&self) -> io::Result<Vec<OsString>> {
        let entries = calls::list(&self.fd)?;
        Ok(entries)
    }

    /// Removes a file.
    pub fn remove(&self, name: &str) -> io::Result<()> {
        at(&self.fd, OsStr::new(name)).remove()
    }

    /// Renames a file; an existing file of that name is replaced.
    pub fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        at(&self.fd, OsStr::new(from)).rename(OsStr::new(to))
    }

    /// Returns device and inode of the file that currently has this name.
    pub fn identity(&self, name: &str) -> io::Result<(u64, u64)> {
        let found = at(&self.fd, OsStr::new(name)).open_path()?.metadata()?;
        Ok((found.dev(), found.ino()))
    }

    /// Syncs the directory to disk.
    pub fn sync(&self) -> io::Result<()> {
        at(&self.fd, OsStr::new(".")).open(libc::O_RDONLY | libc::O_DIRECTORY, 0)?.sync_all()
    }
}

fn open_at(
    judge: &Judge<'_>,
    parent: &OwnedFd,
    name: &OsStr,
    content: Content,
    access: Access,
) -> Result<File, TrustError> {
    let fail = |cause| judge.io(access.operation(), cause);
    let mut flags = match access {
        Access::Read => libc::O_RDONLY,
        Access::Append => libc::O_RDWR | libc::O_APPEND,
        Access::CreateNew => libc::O_RDWR | libc::O_APPEND | libc::O_CREAT | libc::O_EXCL,
        Access::Create => libc::O_RDWR | libc::O_CREAT,
    };
    if matches!(judge.policy, Policy::Refuse) {
        // Opening a FIFO must not block until its other end is opened.
        flags |= libc::O_NONBLOCK;
    }
    let here = at(parent, name);
    let file = match here.open(flags | libc::O_NOFOLLOW, 0o600) {
        Err(why) if why.raw_os_error() == Some(libc::ELOOP) => {
            judge.fault(Fault::Link)?;
            here.open(flags, 0o600).map_err(fail)?
        }
        other => other.map_err(fail)?,
    };
    let facts = file.metadata().map_err(fail)?;
    if facts.is_dir() {
        return Err(fail(io::Error::from_raw_os_error(libc::EISDIR)));
    }
    if !facts.is_file() {
        judge.fault(Fault::NotRegular)?;
    }
    judge.owner(facts.uid(), judge.path)?;
    let mode = facts.mode() & 0o7777;
    let others = others_access(&file, mode);
    if others & 0o2 != 0 {
        judge.fault(Fault::Writable { at: judge.path.to_owned(), mode })?;
    }
    let is_readable = || -> io::Result<bool> {
        // Others cannot read a file of a directory that they cannot search, unless it has a name elsewhere, too.
        let directory = at(parent, OsStr::new(".")).open_path()?.metadata()?;
        Ok(directory.mode() & SEARCHABLE != 0 || facts.nlink() > 1)
    };
    if content == Content::Secret && others & 0o4 != 0 && is_readable().map_err(fail)? {
        judge.fault(Fault::Readable { mode })?;
    }
    Ok(file)
}

#[cfg(test)]
mod tests;
