//! Walks from the root directory to a file, opening each directory relative to the previous one.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Component, Path, PathBuf};

use super::calls::{at, root};
use super::{Fault, Policy, TrustError, Untrusted, WRITABLE};
use crate::process::effective_uid;

/// Maximum number of symbolic links in a path, as in the kernel (path_resolution(7)).
const MAX_SYMLINKS: u32 = 40;
/// Sticky bit: only the owner of a file in such a directory can replace it.
const STICKY: u32 = 0o1000;

/// Applies the policy to one file.
pub(super) struct Judge<'a> {
    pub(super) path: &'a Path,
    what: &'static str,
    owners: &'a [u32],
    pub(super) policy: Policy,
    user: u32,
}

impl<'a> Judge<'a> {
    pub(super) fn new(path: &'a Path, what: &'static str, owners: &'a [u32], policy: Policy) -> Self {
        Self { path, what, owners, policy, user: effective_uid() }
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

    pub(super) fn io(&self, operation: &'static str, cause: io::Error) -> TrustError {
        TrustError::Io { operation, what: self.what, path: self.path.to_owned(), cause }
    }
}

/// Walks from the root to a path and checks every directory and link: no other user may be able to replace any of
/// them. With `whole` it walks to the end, which must be a directory that others cannot write to; otherwise to
/// the parent. Returns the directory and the last name.
pub(super) fn walk(
    judge: &Judge<'_>,
    operation: &'static str,
    whole: bool,
    create: bool,
) -> Result<(OwnedFd, OsString), TrustError> {
    let fail = |cause| judge.io(operation, cause);
    let path = std::path::absolute(judge.path).map_err(fail)?;
    let mut ahead: VecDeque<OsString> = names(&path).collect();
    let mut place = PathBuf::from("/");
    let mut here = root().map_err(fail)?;
    let mut links = 0;
    while let Some(name) = ahead.pop_front() {
        let last = ahead.is_empty();
        if last && !whole {
            return Ok((here.into(), name));
        }
        let entry = at(&here, &name);
        let found = match entry.open_path() {
            Err(why) if create && why.kind() == io::ErrorKind::NotFound => {
                entry.make_directory().and_then(|()| entry.open_path()).map_err(fail)?
            }
            found => found.map_err(fail)?,
        };
        let facts = found.metadata().map_err(fail)?;
        let beside = place.join(&name);
        if facts.is_symlink() {
            if last {
                judge.fault(Fault::Link)?;
            }
            judge.owner(facts.uid(), &beside)?;
            links += 1;
            if links > MAX_SYMLINKS {
                return Err(fail(io::Error::from_raw_os_error(libc::ELOOP)));
            }
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
        if !facts.is_dir() {
            return Err(fail(io::Error::from_raw_os_error(libc::ENOTDIR)));
        }
        place = if name == ".." { place.parent().unwrap_or(Path::new("/")).to_owned() } else { beside };
        let shown = if last { judge.path } else { &place };
        judge.owner(facts.uid(), shown)?;
        let mode = facts.mode() & 0o7777;
        if mode & WRITABLE != 0 && (last || mode & STICKY == 0) {
            judge.fault(Fault::Writable { at: shown.to_owned(), mode })?;
        }
        here = found;
    }
    Ok((here.into(), OsString::new()))
}

/// Returns the components of a path after its root.
fn names(path: &Path) -> impl Iterator<Item = OsString> + use<'_> {
    path.components().filter_map(|component| match component {
        Component::Normal(name) => Some(name.to_owned()),
        Component::ParentDir => Some("..".into()),
        Component::RootDir | Component::CurDir | Component::Prefix(_) => None,
    })
}
