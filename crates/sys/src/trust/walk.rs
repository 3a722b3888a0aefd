//! Walks to a file, opening each directory relative to the previous one, so that nothing can be replaced between its
//! judgement and its use.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::fs::{File, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Component, Path, PathBuf};

use super::calls::{at, is_proc, root, working_directory};
use super::{Fault, Policy, TrustError, Untrusted, WRITABLE};
use crate::process::effective_uid;

/// Maximum number of symbolic links in a path, as in the kernel (path_resolution(7)).
const MAX_SYMLINKS: u32 = 40;
/// Sticky bit: only the owner of a file in such a directory can replace it.
const STICKY: u32 = 0o1000;

/// Judgement of the directories and links of a path.
pub(crate) trait PathRules {
    /// Error of a refused path, or of a system call.
    type Error;

    /// Converts the error of a system call.
    fn io(&self, operation: &'static str, cause: io::Error) -> Self::Error;

    /// Judges a directory; `last` if the path ends there.
    fn directory(&self, facts: &Metadata, at: &Path, last: bool) -> Result<(), Self::Error>;

    /// Judges a symbolic link in `directory`; `last` if it is the path itself.
    fn link(&self, facts: &Metadata, directory: &File, at: &Path, last: bool) -> Result<(), Self::Error>;
}

/// Where a walk ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WalkEnd {
    /// At the parent directory; the last name is not looked at.
    Parent,
    /// At the parent directory of the file that the path, if it is a link, leads to.
    ParentOfTarget,
    /// At the directory that the path names; missing directories are created with this mode.
    Directory {
        /// Mode of created directories, before the umask.
        create: Option<u32>,
    },
}

/// Rules for files that are trusted: no other user may be able to write or replace anything in the path.
pub(super) struct Judge<'a> {
    pub(super) path: &'a Path,
    what: &'static str,
    owners: &'a [u32],
    pub(super) policy: Policy,
    user: u32,
    /// Whether only the last directory is judged, and may be reached through a link.
    last_only: bool,
}

impl<'a> Judge<'a> {
    pub(super) fn new(path: &'a Path, what: &'static str, owners: &'a [u32], policy: Policy) -> Self {
        Self { path, what, owners, policy, user: effective_uid(), last_only: false }
    }

    /// Judge of a directory that may be reached through links of the user or root. A user other than root has to
    /// trust the owners of the directories above it; root does not.
    pub(super) fn of_directory(path: &'a Path, what: &'static str) -> Self {
        Self { last_only: true, ..Self::new(path, what, &[], Policy::Refuse) }
    }

    /// Rejects the file, or reports the fault, depending on the policy.
    pub(super) fn fault(&self, fault: Fault) -> Result<(), Untrusted> {
        let untrusted = Untrusted { what: self.what, path: self.path.to_owned(), fault };
        match self.policy {
            Policy::Refuse => Err(untrusted),
            Policy::Report(report) => {
                report(&untrusted);
                Ok(())
            }
        }
    }

    pub(super) fn owner(&self, uid: u32, at: &Path) -> Result<(), Untrusted> {
        if uid == 0 || uid == self.user || self.owners.contains(&uid) {
            return Ok(());
        }
        self.fault(Fault::Owner { at: at.to_owned(), uid, expected: self.user })
    }
}

impl PathRules for Judge<'_> {
    type Error = TrustError;

    fn io(&self, operation: &'static str, cause: io::Error) -> TrustError {
        TrustError::Io { operation, what: self.what, path: self.path.to_owned(), cause }
    }

    fn directory(&self, facts: &Metadata, at: &Path, last: bool) -> Result<(), TrustError> {
        if self.last_only && !last && self.user != 0 {
            return Ok(());
        }
        let shown = if last { self.path } else { at };
        self.owner(facts.uid(), shown)?;
        let mode = facts.mode() & 0o7777;
        if mode & WRITABLE != 0 && (last || mode & STICKY == 0) {
            self.fault(Fault::Writable { at: shown.to_owned(), mode })?;
        }
        Ok(())
    }

    fn link(&self, facts: &Metadata, directory: &File, at: &Path, last: bool) -> Result<(), TrustError> {
        if self.last_only
            && self.user != 0
            && !is_planted_link(facts, &directory.metadata().map_err(|why| self.io("open", why))?)
        {
            return Ok(());
        }
        if last && !self.last_only {
            self.fault(Fault::Link)?;
        }
        Ok(self.owner(facts.uid(), at)?)
    }
}

/// Whether another user could have placed a symbolic link, so that following it would lead where they want. Links
/// of root and of the effective user are followed; root follows links of others nowhere that others can write, and
/// other users follow them as the kernel's `fs.protected_symlinks` allows.
pub(crate) fn is_planted_link(link: &Metadata, directory: &Metadata) -> bool {
    let user = effective_uid();
    link.uid() != 0 && link.uid() != user && is_shared(directory) && (user == 0 || link.uid() != directory.uid())
}

/// Whether others can create files in a directory: anyone but root for root, anyone at all for other users, who
/// may share a directory with their group.
pub(crate) fn is_shared(directory: &Metadata) -> bool {
    match effective_uid() {
        0 => directory.uid() != 0 || directory.mode() & WRITABLE != 0,
        _ => directory.mode() & 0o002 != 0,
    }
}

/// Walks to a path and lets the rules judge every directory and link. Returns the directory in which it ends, and the
/// last name. Links of the kernel in /proc, as /dev/stdout has one, are followed by the kernel.
pub(crate) fn walk<R: PathRules>(
    rules: &R,
    path: &Path,
    operation: &'static str,
    end: WalkEnd,
) -> Result<(File, OsString), R::Error> {
    let fail = |cause| rules.io(operation, cause);
    let whole = matches!(end, WalkEnd::Directory { .. });
    let mut ahead: VecDeque<OsString> = names(path).collect();
    let (mut here, mut place) = if path.is_absolute() {
        (root().map_err(fail)?, PathBuf::from("/"))
    } else {
        (working_directory().map_err(fail)?, PathBuf::new())
    };
    let mut links = 0;
    while let Some(name) = ahead.pop_front() {
        let last = ahead.is_empty();
        if last && end == WalkEnd::Parent {
            return Ok((here, name));
        }
        let entry = at(&here, &name);
        let found = match entry.open_path() {
            Err(why) if why.kind() == io::ErrorKind::NotFound => match end {
                WalkEnd::ParentOfTarget if last => return Ok((here, name)),
                WalkEnd::Directory { create: Some(mode) } => {
                    entry.make_directory(mode).and_then(|()| entry.open_path()).map_err(fail)?
                }
                _ => return Err(fail(why)),
            },
            found => found.map_err(fail)?,
        };
        let facts = found.metadata().map_err(fail)?;
        let beside = place.join(&name);
        if facts.is_symlink() {
            links += 1;
            if links > MAX_SYMLINKS {
                return Err(fail(io::Error::from_raw_os_error(libc::ELOOP)));
            }
            if is_proc(&found).map_err(fail)? {
                if last && !whole {
                    return Ok((here, name));
                }
                here = entry.open(libc::O_PATH | libc::O_DIRECTORY, 0).map_err(fail)?;
                place = beside;
                continue;
            }
            rules.link(&facts, &here, &beside, last)?;
            let target = at(&found, "".as_ref()).target().map_err(fail)?;
            if target.is_absolute() {
                here = root().map_err(fail)?;
                place = PathBuf::from("/");
            }
            for name in names(&target).collect::<Vec<_>>().into_iter().rev() {
                ahead.push_front(name);
            }
            continue;
        }
        if last && !whole {
            return Ok((here, name));
        }
        if !facts.is_dir() {
            return Err(fail(io::Error::from_raw_os_error(libc::ENOTDIR)));
        }
        place = if name == ".." { place.parent().unwrap_or(Path::new("/")).to_owned() } else { beside };
        rules.directory(&facts, &place, last)?;
        here = found;
    }
    Ok((here, OsString::new()))
}

/// Returns the components of a path after its root.
fn names(path: &Path) -> impl Iterator<Item = OsString> + use<'_> {
    path.components().filter_map(|component| match component {
        Component::Normal(name) => Some(name.to_owned()),
        Component::ParentDir => Some("..".into()),
        Component::RootDir | Component::CurDir | Component::Prefix(_) => None,
    })
}
