//! The process as a whole.

use std::sync::atomic::{AtomicBool, Ordering};

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

extern "C" fn on_signal(signal: libc::c_int) {
    if INTERRUPTED.swap(true, Ordering::Relaxed) {
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

/// Whether the calling process may do privileged things (effective user 0).
pub fn is_root() -> bool {
    // SAFETY: geteuid takes nothing and cannot fail.
    unsafe { libc::geteuid() == 0 }
}
