//! System calls relative to an open directory.

use std::ffi::{CStr, CString, OsStr, OsString};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd as _, BorrowedFd, FromRawFd as _};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::PathBuf;

use crate::process::effective_uid;

/// Opens the root directory.
pub(crate) fn root() -> io::Result<File> {
    open_directory(c"/")
}

/// Opens the working directory.
pub(crate) fn working_directory() -> io::Result<File> {
    open_directory(c".")
}

fn open_directory(path: &CStr) -> io::Result<File> {
    // SAFETY: the path ends with a zero byte and lives through the call.
    take(unsafe { libc::open(path.as_ptr(), libc::O_PATH | libc::O_DIRECTORY | libc::O_CLOEXEC) })
}

/// Whether an open file is in /proc. Its links are the kernel's and lead to open files.
pub(crate) fn is_proc(file: &File) -> io::Result<bool> {
    // SAFETY: an all-zero statfs is valid; the descriptor is open for the length of the borrow.
    let (result, facts) = unsafe {
        let mut facts: libc::statfs = std::mem::zeroed();
        (libc::fstatfs(file.as_raw_fd(), &raw mut facts), facts)
    };
    check(result)?;
    Ok(facts.f_type == libc::PROC_SUPER_MAGIC as libc::__fsword_t)
}

/// A name in an open directory.
pub(crate) struct Entry<'a> {
    directory: BorrowedFd<'a>,
    name: &'a OsStr,
}

/// Refers to a name in an open directory.
pub(crate) fn at<'a>(directory: &'a impl AsFd, name: &'a OsStr) -> Entry<'a> {
    Entry { directory: directory.as_fd(), name }
}

impl Entry<'_> {
    fn text(&self) -> io::Result<CString> {
        Ok(CString::new(self.name.as_bytes())?)
    }

    /// Opens the entry.
    pub(crate) fn open(&self, flags: libc::c_int, mode: libc::mode_t) -> io::Result<File> {
        let name = self.text()?;
        // SAFETY: the directory is open for the length of the borrow; the name ends with a zero byte and lives through the call.
        take(unsafe { libc::openat(self.directory.as_raw_fd(), name.as_ptr(), flags | libc::O_CLOEXEC, mode) })
    }

    /// Opens whatever has this name now, link or not, with `O_PATH`.
    pub(crate) fn open_path(&self) -> io::Result<File> {
        self.open(libc::O_PATH | libc::O_NOFOLLOW, 0)
    }

    /// Creates a directory, unless it exists.
    pub(crate) fn make_directory(&self, mode: u32) -> io::Result<()> {
        let name = self.text()?;
        // SAFETY: as for `open`.
        match check(unsafe { libc::mkdirat(self.directory.as_raw_fd(), name.as_ptr(), mode) }) {
            // Another process may have created it first.
            Err(why) if why.kind() == io::ErrorKind::AlreadyExists => Ok(()),
            made => made,
        }
    }

    /// Removes the entry.
    pub(crate) fn remove(&self) -> io::Result<()> {
        let name = self.text()?;
        // SAFETY: as for `open`.
        check(unsafe { libc::unlinkat(self.directory.as_raw_fd(), name.as_ptr(), 0) })
    }

    /// Renames the entry within its directory.
    pub(crate) fn rename(&self, to: &OsStr) -> io::Result<()> {
        let (from, to) = (self.text()?, CString::new(to.as_bytes())?);
        let directory = self.directory.as_raw_fd();
        // SAFETY: as for `open`, for both names.
        check(unsafe { libc::renameat(directory, from.as_ptr(), directory, to.as_ptr()) })
    }

    /// Returns the target of a symbolic link; an empty name refers to the link that the descriptor itself is open
    /// on.
    pub(crate) fn target(&self) -> io::Result<PathBuf> {
        let name = self.text()?;
        let mut bytes = vec![0_u8; libc::PATH_MAX as usize];
        // SAFETY: as for `open`; the buffer is valid for as many bytes as are passed.
        let length = unsafe {
            libc::readlinkat(self.directory.as_raw_fd(), name.as_ptr(), bytes.as_mut_ptr().cast(), bytes.len())
        };
        let length = usize::try_from(length).map_err(|_| io::Error::last_os_error())?;
        bytes.truncate(length);
        Ok(PathBuf::from(OsString::from_vec(bytes)))
    }
}

/// Lists the names in an open directory.
pub(crate) fn list(directory: &impl AsFd) -> io::Result<Vec<OsString>> {
    let path = format!("/proc/self/fd/{}", directory.as_fd().as_raw_fd());
    std::fs::read_dir(path)?.map(|entry| entry.map(|entry| entry.file_name())).collect()
}

/// Returns the access of users other than root and the effective one to a file, as permission bits 0 to 7. `mode`
/// applies if the file has no access control list; with one, its group digit is only the list's mask.
pub(crate) fn others_access(file: &File, mode: u32) -> u32 {
    let by_mode = (mode | mode >> 3) & 0o7;
    let mut list = [0_u8; 4096];
    // SAFETY: the descriptor is open for the length of the borrow, the name ends with a zero byte, and the buffer is valid for as
    // many bytes as are passed.
    let length = unsafe {
        libc::fgetxattr(file.as_raw_fd(), c"system.posix_acl_access".as_ptr(), list.as_mut_ptr().cast(), list.len())
    };
    let Ok(length) = usize::try_from(length) else { return by_mode };
    access_of_others(&list[..length], effective_uid()).unwrap_or(by_mode)
}

/// Computes the same from an access control list in the kernel's encoding (`linux/posix_acl_xattr.h`): a version,
/// then entries of tag, permissions and id, little-endian. `None` if it cannot be decoded.
fn access_of_others(list: &[u8], user: u32) -> Option<u32> {
    const VERSION: u32 = 2;
    const USER: u16 = 0x02;
    const GROUP_OWNER: u16 = 0x04;
    const GROUP: u16 = 0x08;
    const MASK: u16 = 0x10;
    const OTHER: u16 = 0x20;
    let (version, entries) = list.split_first_chunk::<4>()?;
    if u32::from_le_bytes(*version) != VERSION {
        return None;
    }
    let (mut masked, mut mask, mut other) = (0, 0o7, 0);
    for entry in entries.chunks_exact(8) {
        let tag = u16::from_le_bytes([entry[0], entry[1]]);
        let permissions = u32::from(u16::from_le_bytes([entry[2], entry[3]]));
        let id = u32::from_le_bytes([entry[4], entry[5], entry[6], entry[7]]);
        match tag {
            USER if id != 0 && id != user => masked |= permissions,
            GROUP_OWNER | GROUP => masked |= permissions,
            MASK => mask = permissions,
            OTHER => other = permissions,
            _ => {}
        }
    }
    Some((masked & mask | other) & 0o7)
}

fn check(result: libc::c_int) -> io::Result<()> {
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

fn take(descriptor: libc::c_int) -> io::Result<File> {
    if descriptor < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the kernel has just given this descriptor to us, and nobody else knows it.
    Ok(unsafe { File::from_raw_fd(descriptor) })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(entries: &[(u16, u16, u32)]) -> Vec<u8> {
        let mut bytes = 2_u32.to_le_bytes().to_vec();
        for (tag, permissions, id) in entries {
            bytes.extend_from_slice(&tag.to_le_bytes());
            bytes.extend_from_slice(&permissions.to_le_bytes());
            bytes.extend_from_slice(&id.to_le_bytes());
        }
        bytes
    }

    #[test]
    fn acl_entry_of_the_effective_user_is_not_foreign_access() {
        let none = u32::MAX;
        // ACL that systemd sets on a service's credential: mode 0440, where the group digit is the mask.
        let credential = [(0x01, 4, none), (0x02, 4, 64001), (0x04, 0, none), (0x10, 4, none), (0x20, 0, none)];
        assert_eq!(access_of_others(&list(&credential), 64001), Some(0));
        assert_eq!(access_of_others(&list(&credential), 1000), Some(4));
        let group = [(0x01, 6, none), (0x04, 6, none), (0x10, 4, none), (0x20, 0, none)];
        assert_eq!(access_of_others(&list(&group), 1000), Some(4), "the mask holds");
        assert_eq!(access_of_others(&[1, 0, 0, 0], 1000), None, "another version");
        assert_eq!(access_of_others(&[2, 0], 1000), None, "torn");
    }
}
