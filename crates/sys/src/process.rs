//! The process as a whole, and the programs it starts.

use std::io;
use std::os::unix::process::CommandExt as _;
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Raises the soft limit of open files to the hard one. Best effort.
pub fn raise_open_files_limit() {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: `limit` is a valid place; both calls take it by pointer for their duration.
    unsafe {
        if libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit) == 0 && limit.rlim_cur < limit.rlim_max {
            limit.rlim_cur = limit.rlim_max;
            libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limit);
        }
    }
}

static INTERRUPTED: AtomicBool = AtomicBool::new(false);

/// When the first one came, on the monotonic clock; 0 before.
static FIRST_NS: AtomicU64 = AtomicU64::new(0);

/// Signals this near to the first are one wish: timeout(1) signals its child, and then the child's group.
const ONE_WISH_NS: u64 = 100_000_000;

extern "C" fn on_signal(signal: libc::c_int) {
    // clock_gettime is async-signal-safe.
    let now_ns = crate::clock::monotonic_ns();
    let first = FIRST_NS.compare_exchange(0, now_ns, Ordering::Relaxed, Ordering::Relaxed);
    INTERRUPTED.store(true, Ordering::Relaxed);
    if first.is_err_and(|first_ns| now_ns.saturating_sub(first_ns) >= ONE_WISH_NS) {
        // Asked twice: leave at once. `_exit` is async-signal-safe; 128 + n is what a shell reports for a signal.
        // SAFETY: _exit takes an integer and does not return.
        unsafe { libc::_exit(128 + signal) };
    }
}

/// From now on the first SIGINT or SIGTERM only sets the flag this returns; a second one ends the process.
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

/// Lets SIGHUP do what [`catch_interrupts`] lets SIGTERM do, unless it is ignored (nohup).
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

/// Whether the calling process may do privileged things (effective user 0).
pub fn is_root() -> bool {
    // SAFETY: geteuid takes nothing and cannot fail.
    unsafe { libc::geteuid() == 0 }
}

/// Makes `command` the leader of a process group of its own, so that [`end_group`] reaches whatever it starts, and lets
/// it get SIGTERM when the thread that started it ends: it does not outlive a killed program.
pub fn lead_own_group(command: &mut Command) -> &mut Command {
    let parent = std::process::id();
    let tie = move || {
        // SAFETY: prctl and getppid take and return integers; both are async-signal-safe.
        let orphaned = unsafe {
            if libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGTERM) != 0 {
                return Err(io::Error::last_os_error());
            }
            libc::getppid() as u32 != parent
        };
        // The parent may have ended before it was asked to tell.
        if orphaned { Err(io::Error::from_raw_os_error(libc::ESRCH)) } else { Ok(()) }
    };
    // SAFETY: between fork and exec `tie` only makes async-signal-safe calls and allocates nothing.
    unsafe { command.process_group(0).pre_exec(tie) }
}

/// Asks every process of a group to end, or ends it. `leader` is the id of a child that was started through
/// [`lead_own_group`] and has not been waited for, so that the number cannot be anybody else's.
pub fn end_group(leader: u32, force: bool) {
    let Ok(group) = libc::pid_t::try_from(leader) else { return };
    let signal = if force { libc::SIGKILL } else { libc::SIGTERM };
    if group > 1 {
        // SAFETY: kill takes integers; a group that is gone is ESRCH, which is what was wanted.
        unsafe { libc::kill(-group, signal) };
    }
}

/// Lets `command` outlive the session it is started from: a session of its own, without a terminal, deaf to the hang-up
/// that ends a login. Its standard streams are the caller's to choose.
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

/// Ends the calling process at once and without any clean-up, as a crash would (SIGKILL). For tests of what a crash leaves.
pub fn kill_self() -> ! {
    // SAFETY: kill and _exit take integers; SIGKILL cannot be caught, so what follows is only there for the type.
    unsafe {
        libc::kill(libc::getpid(), libc::SIGKILL);
        libc::_exit(137)
    }
}

/// Stops the calling process until somebody lets it continue (SIGSTOP). For tests of what others do meanwhile.
pub fn stop_self() {
    // SAFETY: kill takes integers; the calling process stops before it returns.
    unsafe { libc::kill(libc::getpid(), libc::SIGSTOP) };
}

/// Ends a process of this program that no longer answers. `started` is the start time it had, in clock ticks since boot (field
/// 22 of `/proc/PID/stat`): a number that was given to another process meanwhile is left alone.
pub fn kill_stuck(pid: u32, started: u64) {
    let Ok(number) = libc::pid_t::try_from(pid) else { return };
    if number > 1 && start_ticks(pid) == Some(started) {
        // SAFETY: kill takes integers.
        unsafe { libc::kill(number, libc::SIGKILL) };
    }
}

/// When a process was started, in clock ticks since boot; `None` if it is gone.
pub fn start_ticks(pid: u32) -> Option<u64> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name in parentheses may hold anything; field 3 follows the last one.
    text.rsplit_once(')')?.1.split_whitespace().nth(19)?.parse().ok()
}
