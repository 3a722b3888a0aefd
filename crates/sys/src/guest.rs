//! Tasks of an init process in a virtual machine: mounts, host name, limits, power-off. Needs root in the virtual
//! machine.

use std::convert::Infallible;
use std::ffi::CString;
use std::io;
use std::os::fd::AsRawFd as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::Command;

/// Mounts `source` (a name such as `proc` if there is no device) with the file-system type `kind` (`proc`,
/// `sysfs`, `tmpfs`, `devtmpfs`, `hostfs` …) on the directory `target` (`mount(2)`). `data` are options of the
/// file system: `size=64m` for `tmpfs`, the host's directory for `hostfs`.
///
/// # Errors
/// `EPERM`; `ENODEV` if the kernel lacks this type; `ENOENT` without the directory; `EBUSY` if it is already
/// mounted there.
pub fn mount(source: &str, target: &Path, kind: &str, data: &str) -> io::Result<()> {
    mount_with(source.as_bytes(), target, kind, data, 0)
}

/// Like [`mount`], but nothing on it can be written.
///
/// # Errors
/// As for [`mount`].
pub fn mount_read_only(source: &str, target: &Path, kind: &str, data: &str) -> io::Result<()> {
    mount_with(source.as_bytes(), target, kind, data, libc::MS_RDONLY)
}

/// Makes the file or directory `source` visible at `target`, which must be of the same kind (`MS_BIND`).
///
/// # Errors
/// `EPERM`; `ENOENT` or `ENOTDIR` if they do not fit.
pub fn bind(source: &Path, target: &Path) -> io::Result<()> {
    mount_with(source.as_os_str().as_bytes(), target, "", "", libc::MS_BIND)
}

/// Makes the file or directory `target` read-only, by a bind mount on itself.
///
/// # Errors
/// `EPERM`; `ENOENT` without it.
pub fn protect(target: &Path) -> io::Result<()> {
    bind(target, target)?;
    mount_with(b"none", target, "", "", libc::MS_BIND | libc::MS_REMOUNT | libc::MS_RDONLY)
}

/// Detaches the mount at `target` (`MNT_DETACH`).
///
/// # Errors
/// `EPERM`; `EINVAL` if nothing is mounted there.
pub fn detach(target: &Path) -> io::Result<()> {
    let target = CString::new(target.as_os_str().as_bytes())?;
    // SAFETY: the string is terminated and outlives the call, which only reads it.
    succeeded(unsafe { libc::umount2(target.as_ptr(), libc::MNT_DETACH) })
}

/// Gives the calling thread its own mounts, root and working directory. Threads that it starts afterwards share them.
///
/// # Errors
/// `EPERM` without `CAP_SYS_ADMIN`.
pub fn unshare_mounts() -> io::Result<()> {
    // SAFETY: both flags change what the calling thread sees of the file system, no memory and no descriptors.
    succeeded(unsafe { libc::unshare(libc::CLONE_NEWNS | libc::CLONE_FS) })
}

/// Moves the mount at `root` over the root of the calling thread's mounts, and makes it the root (as switch_root(8)). The thread
/// must have called [`unshare_mounts`].
///
/// # Errors
/// `EPERM`; `EINVAL` if nothing is mounted there.
pub fn switch_root(root: &Path) -> io::Result<()> {
    std::env::set_current_dir(root)?;
    mount_with(b".", Path::new("/"), "", "", libc::MS_MOVE)?;
    // SAFETY: the string is terminated; chroot only reads it.
    succeeded(unsafe { libc::chroot(c".".as_ptr()) })?;
    std::env::set_current_dir("/")
}

fn mount_with(source: &[u8], target: &Path, kind: &str, data: &str, flags: libc::c_ulong) -> io::Result<()> {
    let (source, kind, data) = (CString::new(source)?, CString::new(kind)?, CString::new(data)?);
    let target = CString::new(target.as_os_str().as_bytes())?;
    // SAFETY: the four strings are terminated and outlive the call, which only reads them.
    succeeded(unsafe { libc::mount(source.as_ptr(), target.as_ptr(), kind.as_ptr(), flags, data.as_ptr().cast()) })
}

fn succeeded(rc: libc::c_int) -> io::Result<()> {
    if rc == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Capabilities that programs of a guest may have: what servers need to listen on low ports, change their user and serve
/// files. None that could mount, create devices, change the network or schedule in real time (capabilities(7)).
const PROGRAM_CAPABILITIES: [libc::c_ulong; 12] = [
    0,  // CAP_CHOWN
    1,  // CAP_DAC_OVERRIDE
    3,  // CAP_FOWNER
    4,  // CAP_FSETID
    5,  // CAP_KILL
    6,  // CAP_SETGID
    7,  // CAP_SETUID
    8,  // CAP_SETPCAP
    10, // CAP_NET_BIND_SERVICE
    13, // CAP_NET_RAW
    18, // CAP_SYS_CHROOT
    29, // CAP_AUDIT_WRITE
];
/// Upper bound of capability numbers (the kernel's masks have 64 bits).
const MAX_CAPABILITIES: libc::c_ulong = 64;

/// Limits the capabilities that programs started by the calling thread, and by threads it starts afterwards, can have. The thread
/// keeps its own.
///
/// # Errors
/// `EPERM` without `CAP_SETPCAP`.
pub fn limit_program_capabilities() -> io::Result<()> {
    for capability in (0..MAX_CAPABILITIES).filter(|c| !PROGRAM_CAPABILITIES.contains(c)) {
        // SAFETY: prctl takes integers here.
        let rc = unsafe { libc::prctl(libc::PR_CAPBSET_DROP, capability, 0, 0, 0) };
        if rc != 0 {
            let error = io::Error::last_os_error();
            // The kernel has fewer capabilities than that.
            return if error.raw_os_error() == Some(libc::EINVAL) { Ok(()) } else { Err(error) };
        }
    }
    Ok(())
}

/// Starts `command` in its own session and in a control group, given by its open `cgroup.procs`, so that it can be ended with all its
/// descendants.
///
/// # Errors
/// If it cannot be started.
pub fn start_in_group(command: &mut Command, group: &std::fs::File) -> io::Result<std::process::Child> {
    let group = group.as_raw_fd();
    let join = move || {
        // SAFETY: the descriptor is open until the command has started; one byte of a literal is written. setsid takes nothing. Both
        // are async-signal-safe.
        unsafe {
            if libc::write(group, c"0".as_ptr().cast(), 1) != 1 || libc::setsid() < 0 {
                return Err(io::Error::last_os_error());
            }
        }
        Ok(())
    };
    // SAFETY: between fork and exec `join` only makes async-signal-safe calls and allocates nothing.
    unsafe { command.pre_exec(join) }.spawn()
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
    succeeded(unsafe { libc::sethostname(name.as_ptr().cast(), name.len()) })
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
    succeeded(unsafe { libc::setrlimit(which, &raw const limit) })
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
        for refused in [bind, |_: &Path, there: &Path| protect(there), |_: &Path, there: &Path| switch_root(there)] {
            assert!(refused(Path::new("/"), Path::new("/nonexistent/directory")).is_err());
        }
    }
}
