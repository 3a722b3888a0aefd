//! Tasks of an init process in a virtual machine: mounts, host name, limits, power-off. Needs root in the virtual
//! machine.

use std::convert::Infallible;
use std::ffi::CString;
use std::io;
use std::path::Path;

/// Mounts `source` (a name such as `proc` if there is no device) with the file-system type `kind` (`proc`,
/// `sysfs`, `tmpfs`, `devtmpfs`, `hostfs` …) on the directory `target` (`mount(2)`). `data` are options of the
/// file system: `size=64m` for `tmpfs`, the host's directory for `hostfs`.
///
/// # Errors
/// `EPERM`; `ENODEV` if the kernel lacks this type; `ENOENT` without the directory; `EBUSY` if it is already
/// mounted there.
pub fn mount(source: &str, target: &Path, kind: &str, data: &str) -> io::Result<()> {
    use std::os::unix::ffi::OsStrExt;
    let (source, kind, data) = (CString::new(source)?, CString::new(kind)?, CString::new(data)?);
    let target = CString::new(target.as_os_str().as_bytes())?;
    // SAFETY: the four strings are terminated and outlive the call, which only reads them.
    let rc = unsafe { libc::mount(source.as_ptr(), target.as_ptr(), kind.as_ptr(), 0, data.as_ptr().cast()) };
    if rc == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Syncs all file systems and powers the machine off (`reboot(2)`). Returns only on failure.
///
/// # Errors
/// `EPERM` without `CAP_SYS_BOOT`.
pub fn power_off() -> io::Result<Infallible> {
    // SAFETY: sync takes and returns nothing; reboot takes an integer. Neither touches memory of ours.
    unsafe {
        libc::sync();
        libc::reboot(libc::RB_POWER_OFF);
    }
    Err(io::Error::last_os_error())
}

/// Sets the host name of the calling process's UTS namespace.
pub fn set_host_name(name: &str) -> io::Result<()> {
    // SAFETY: the pointer and the length are those of `name`, which the call only reads.
    match unsafe { libc::sethostname(name.as_ptr().cast(), name.len()) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Resource limit for [`raise_limit`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Limit {
    /// Number of open files of a process (`RLIMIT_NOFILE`).
    OpenFiles,
    /// Memory that a process may lock, bytes (`RLIMIT_MEMLOCK`).
    LockedBytes,
}

/// Raises the soft and hard limit of the calling process to `at_least`; a higher limit is kept. Exceeding the
/// hard limit needs `CAP_SYS_RESOURCE`.
pub fn raise_limit(which: Limit, at_least: u64) -> io::Result<()> {
    let which = match which {
        Limit::OpenFiles => libc::RLIMIT_NOFILE,
        Limit::LockedBytes => libc::RLIMIT_MEMLOCK,
    };
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: `limit` is a valid place for the kernel to write to.
    if unsafe { libc::getrlimit(which, &raw mut limit) } != 0 {
        return Err(io::Error::last_os_error());
    }
    limit.rlim_cur = limit.rlim_cur.max(at_least);
    limit.rlim_max = limit.rlim_max.max(at_least);
    // SAFETY: `limit` is a whole rlimit, which the call only reads.
    match unsafe { libc::setrlimit(which, &raw const limit) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sufficient_limits_are_accepted() {
        assert!(raise_limit(Limit::OpenFiles, 1).is_ok());
        assert!(raise_limit(Limit::LockedBytes, 1).is_ok());
    }

    #[test]
    fn mounting_on_a_missing_directory_is_an_error() {
        let error = mount("none", Path::new("/nonexistent/directory"), "tmpfs", "");
        let code = error.expect_err("no such directory").raw_os_error();
        assert!(matches!(code, Some(libc::ENOENT | libc::EPERM)), "{code:?}");
        assert!(mount("a\0b", Path::new("/"), "tmpfs", "").is_err());
    }
}
