//! File-system space: free bytes and preallocation.

use std::ffi::CString;
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd as _;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

/// Returns the bytes that an unprivileged process may still write on the file system of `path`.
pub fn available_bytes(path: &Path) -> io::Result<u64> {
    let path = CString::new(path.as_os_str().as_bytes())?;
    // SAFETY: an all-zero statvfs is valid; the path ends with a zero byte and both live through the call.
    let (rc, facts) = unsafe {
        let mut facts: libc::statvfs = std::mem::zeroed();
        (libc::statvfs(path.as_ptr(), &raw mut facts), facts)
    };
    if rc == 0 { Ok(facts.f_bavail * facts.f_frsize) } else { Err(io::Error::last_os_error()) }
}

/// Preallocates space for a file to grow, without changing its length, so that a full disk is detected early.
/// Returns whether the file system supports it; lack of support is not an error.
pub fn reserve(file: &File, bytes: u32) -> io::Result<bool> {
    // SAFETY: fallocate takes a descriptor, open for the length of the borrow, and integers.
    let rc = unsafe { libc::fallocate(file.as_raw_fd(), libc::FALLOC_FL_KEEP_SIZE, 0, libc::off_t::from(bytes)) };
    if rc == 0 {
        return Ok(true);
    }
    let error = io::Error::last_os_error();
    match error.raw_os_error() {
        Some(libc::EOPNOTSUPP | libc::ENOSYS) => Ok(false),
        _ => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn free_space_is_readable_and_missing_paths_are_errors() {
        assert!(available_bytes(Path::new("/")).is_ok());
        assert!(available_bytes(Path::new("/nonexistent/x")).is_err());
    }
}
