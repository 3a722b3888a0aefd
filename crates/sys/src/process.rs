//! Process-wide settings and signals, and child processes.

use std::io;
use std::os::fd::{AsRawFd as _, FromRawFd as _, OwnedFd};
use std::os::unix::process::CommandExt as _;
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Returns the words of the command line. Unlike `std::env::args`, it does not panic at bytes that are not UTF-8, which it
/// replaces.
pub fn command_line() -> Vec<String> {
    std::env::args_os().map(|word| word.to_string_lossy().into_owned()).collect()
}

/// Raises the soft limit of open files to the hard limit, if allowed. Returns the effective limit.
pub fn raise_open_files_limit() -> u64 {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: `limit` is a valid place; both calls take it by pointer for their duration.
    unsafe {
        if libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit) == 0 && limit.rlim_cur < limit.rlim_max {
            let raised = libc::rlimit { rlim_cur: limit.rlim_max, ..limit };
            if libc::setrlimit(libc::RLIMIT_NOFILE, &raw const raised) == 0 {
                limit = raised;
            }
        }
    }
    limit.rlim_cur
}

/// A capability (linux/capability.h).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Capability {
    /// `CAP_NET_ADMIN`.
    NetAdmin = 12,
    /// `CAP_NET_RAW`.
    NetRaw = 13,
    /// `CAP_SYS_ADMIN`.
    SysAdmin = 21,
}

/// Whether a capability is in the effective set (proc_pid_status(5)).
pub fn has_capability(capability: Capability) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let set = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    let set = set.and_then(|text| u64::from_str_radix(text.trim(), 16).ok()).unwrap_or(0);
    set >> capability as u32 & 1 == 1
}

/// Memory available without swapping (`MemAvailable` in /proc/meminfo), bytes.
pub fn available_memory() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok().map(|kib| kib * 1024)
}

/// Resident memory of this process (`VmRSS` in /proc/self/status), bytes.
pub fn resident_memory() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok().map(|kib| kib * 1024)
}

static INTERRUPTED: AtomicBool = AtomicBool::new(false);

/// Time of the first signal on the monotonic clock, nanoseconds; 0 before.
static FIRST_SIGNAL_NS: AtomicU64 = AtomicU64::new(0);

/// Signals this close to the first count as one: timeout(1) signals its child, and then the child's process
/// group.
const SAME_SIGNAL_NS: u64 = 100_000_000;

extern "C" fn on_signal(signal: libc::c_int) {
    // clock_gettime is async-signal-safe.
    let now_ns = crate::clock::monotonic_ns();
    let first = FIRST_SIGNAL_NS.compare_exchange(0, now_ns, Ordering::Relaxed, Ordering::Relaxed);
    INTERRUPTED.store(true, Ordering::Relaxed);
    if first.is_err_and(|first_ns| now_ns.saturating_sub(first_ns) >= SAME_SIGNAL_NS) {
        // Second signal: exit at once. `_exit` is async-signal-safe; 128 + n is the exit status that a shell
        // reports for a signal.
        // SAFETY: _exit takes an integer and does not return.
        unsafe { libc::_exit(128 + signal) };
    }
}

/// Installs handlers: the first SIGINT or SIGTERM only sets the returned flag; a second one ends the process.
pub fn catch_interrupts() -> &'static AtomicBool {
    // SAFETY: an all-zero sigaction is valid; the handler only touches an atomic and _exit.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = on_signal as extern "C" fn(libc::c_int) as libc::sighandler_t;
        action.sa_flags = libc::SA_RESTART;
        libc::sigaction(libc::SIGINT, &raw const action, std::ptr::null_mut());
        libc::sigaction(libc::SIGTERM, &raw const action, std::ptr::null_mut());
    }
    &INTERRUPTED
}

/// Handles SIGHUP like SIGTERM in [`catch_interrupts`], unless it is ignored (nohup).
pub fn catch_hangup() {
    // SAFETY: all-zero sigactions are valid; the handler only touches an atomic and _exit.
    unsafe {
        let mut before: libc::sigaction = std::mem::zeroed();
        libc::sigaction(libc::SIGHUP, std::ptr::null(), &raw mut before);
        if before.sa_sigaction != libc::SIG_IGN {
            let mut action: libc::sigaction = std::mem::zeroed();
            action.sa_sigaction = on_signal as extern "C" fn(libc::c_int) as libc::sighandler_t;
            action.sa_flags = libc::SA_RESTART;
            libc::sigaction(libc::SIGHUP, &raw const action, std::ptr::null_mut());
        }
    }
}

/// Whether the effective user is root (uid 0).
pub fn is_root() -> bool {
    effective_uid() == 0
}

/// Returns the effective user id.
pub fn effective_uid() -> u32 {
    // SAFETY: geteuid takes nothing and cannot fail.
    unsafe { libc::geteuid() }
}

/// Makes `command` the leader of a new process group, so that [`kill_group`] reaches all its processes. It gets
/// SIGTERM when the thread that started it ends, so it does not outlive a killed program.
pub fn start_in_new_group(command: &mut Command) -> &mut Command {
    let parent = std::process::id();
    let tie = move || {
        // SAFETY: prctl and getppid take and return integers; both are async-signal-safe.
        let orphaned = unsafe {
            if libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGTERM) != 0 {
                return Err(io::Error::last_os_error());
            }
            libc::getppid() as u32 != parent
        };
        // The parent may have ended before the parent-death signal was set.
        if orphaned { Err(io::Error::from_raw_os_error(libc::ESRCH)) } else { Ok(()) }
    };
    // SAFETY: between fork and exec `tie` only makes async-signal-safe calls and allocates nothing.
    unsafe { command.process_group(0).pre_exec(tie) }
}

/// Sends SIGTERM, or SIGKILL with `force`, to every process of a group. `leader` is the id of a child started
/// with [`start_in_new_group`] that has not been waited for, so that its PID cannot have been reused.
pub fn kill_group(leader: u32, force: bool) {
    let Ok(group) = libc::pid_t::try_from(leader) else { return };
    let signal = if force { libc::SIGKILL } else { libc::SIGTERM };
    if group > 1 {
        // SAFETY: kill takes integers; a group that is gone is ESRCH, which is what was wanted.
        unsafe { libc::kill(-group, signal) };
    }
}

/// Detaches `command` from the current session: it gets a new session without a terminal and ignores SIGHUP. The
/// caller chooses its standard streams.
pub fn detach(command: &mut Command) -> &mut Command {
    let leave = || {
        // SAFETY: setsid takes nothing; signal is given a disposition, not a handler. Both are async-signal-safe.
        unsafe {
            if libc::setsid() < 0 {
                return Err(io::Error::last_os_error());
            }
            if libc::signal(libc::SIGHUP, libc::SIG_IGN) == libc::SIG_ERR {
                return Err(io::Error::last_os_error());
            }
        }
        Ok(())
    };
    // SAFETY: between fork and exec `leave` only makes async-signal-safe calls and allocates nothing.
    unsafe { command.pre_exec(leave) }
}

/// Kills the calling process without any clean-up (SIGKILL), for tests of what a crash leaves behind.
pub fn kill_self() -> ! {
    // SAFETY: kill and _exit take integers; SIGKILL cannot be caught, so what follows is only there for the type.
    unsafe {
        libc::kill(libc::getpid(), libc::SIGKILL);
        libc::_exit(137)
    }
}

/// Stops the calling process until SIGCONT (SIGSTOP), for tests of other processes' behaviour.
pub fn stop_self() {
    // SAFETY: kill takes integers; the calling process stops before it returns.
    unsafe { libc::kill(libc::getpid(), libc::SIGSTOP) };
}

/// A process identified by id and start time (field 22 of `/proc/PID/stat`, clock ticks since boot), so that a
/// reused process id is not mistaken for the same process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Identity {
    /// Process id.
    pub pid: u32,
    /// Start time, clock ticks since boot.
    pub started: u64,
}

impl Identity {
    /// Returns the identity of the calling process.
    pub fn own() -> Self {
        let pid = std::process::id();
        Self { pid, started: start_ticks(pid).unwrap_or(0) }
    }

    /// Whether the process exists. Zombies do not count: they hold no resources.
    pub fn is_alive(&self) -> bool {
        let fields = stat_fields(self.pid);
        fields.is_some_and(|fields| {
            start_time_of(&fields) == Some(self.started)
                && !matches!(fields.first().map(String::as_str), Some("Z" | "X"))
        })
    }

    /// Kills it with SIGKILL if it is still the same process. Returns whether the signal was sent.
    pub fn kill(&self) -> bool {
        let Ok(number) = libc::pid_t::try_from(self.pid) else { return false };
        if number <= 1 {
            return false;
        }
        let held = pidfd_open(self.pid).ok();
        // Checked only now: while the descriptor is open, a reuse of the process id cannot go unnoticed.
        if start_ticks(self.pid) != Some(self.started) {
            return false;
        }
        let info = std::ptr::null::<libc::siginfo_t>();
        match &held {
            // SAFETY: the descriptor is open, and a null siginfo is what pidfd_send_signal(2) allows.
            Some(held) => unsafe {
                libc::syscall(libc::SYS_pidfd_send_signal, held.as_raw_fd(), libc::SIGKILL, info, 0) == 0
            },
            // Fallback before Linux 5.3.
            // SAFETY: kill takes integers.
            None => unsafe { libc::kill(number, libc::SIGKILL) == 0 },
        }
    }
}

/// A descriptor of a process, readable once the process has ended (pidfd_open(2), since Linux 5.3).
pub(crate) fn pidfd_open(pid: u32) -> io::Result<OwnedFd> {
    // SAFETY: pidfd_open takes integers; it returns a new descriptor or -1.
    let descriptor = unsafe { libc::syscall(libc::SYS_pidfd_open, pid as libc::pid_t, 0) };
    if descriptor < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the descriptor is new, and nothing else owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(descriptor as libc::c_int) })
}

/// Returns the start time of a process, clock ticks since boot; `None` if it does not exist.
pub fn start_ticks(pid: u32) -> Option<u64> {
    start_time_of(&stat_fields(pid)?)
}

/// Returns the fields of `/proc/PID/stat` from the third (the state) on.
fn stat_fields(pid: u32) -> Option<Vec<String>> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The command name may contain parentheses; field 3 follows the last one.
    Some(text.rsplit_once(')')?.1.split_whitespace().map(ToOwned::to_owned).collect())
}

fn start_time_of(fields: &[String]) -> Option<u64> {
    fields.get(19)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kill_checks_the_process_start_time() {
        let mut child = Command::new("sleep").arg("60").spawn().expect("it starts");
        let pid = child.id();
        let child_of_now = Identity { pid, started: start_ticks(pid).expect("it runs") };
        let another = Identity { started: child_of_now.started + 1, ..child_of_now };
        assert!(child_of_now.is_alive() && !another.is_alive());
        assert!(!another.kill(), "another process had that number");
        assert!(child.try_wait().expect("a child").is_none());
        assert!(child_of_now.kill());
        child.wait().expect("a child");
        assert!(!child_of_now.is_alive() && !child_of_now.kill());
        assert!(Identity::own().is_alive());
    }
}
