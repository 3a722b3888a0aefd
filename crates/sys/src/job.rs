//! Job control: a full-screen program restores the terminal before it stops (Ctrl-Z) and sets it up again when it
//! is continued (`fg`).

use std::sync::atomic::{AtomicBool, Ordering};

static STOP_REQUESTED: AtomicBool = AtomicBool::new(false);
static CONTINUED: AtomicBool = AtomicBool::new(false);

extern "C" fn on_stop(_: libc::c_int) {
    STOP_REQUESTED.store(true, Ordering::Relaxed);
}

extern "C" fn on_continue(_: libc::c_int) {
    CONTINUED.store(true, Ordering::Relaxed);
}

/// Installs handlers for SIGTSTP and SIGCONT that only set the flags of [`stop_requested`] and [`continued`].
pub fn catch_stops() {
    set_handler(libc::SIGTSTP, on_stop as extern "C" fn(libc::c_int) as libc::sighandler_t);
    set_handler(libc::SIGCONT, on_continue as extern "C" fn(libc::c_int) as libc::sighandler_t);
}

/// Restores the default actions of SIGTSTP and SIGCONT.
pub fn release_stops() {
    set_handler(libc::SIGTSTP, libc::SIG_DFL);
    set_handler(libc::SIGCONT, libc::SIG_DFL);
}

/// Whether SIGTSTP has arrived since the last call.
pub fn stop_requested() -> bool {
    STOP_REQUESTED.swap(false, Ordering::Relaxed)
}

/// Whether SIGCONT has arrived since the last call.
pub fn continued() -> bool {
    CONTINUED.swap(false, Ordering::Relaxed)
}

/// Stops the process group, like Ctrl-Z, until it is continued. Returns immediately if no shell could continue it
/// (the kernel does not stop orphaned process groups by SIGTSTP).
pub fn stop_group() {
    set_handler(libc::SIGTSTP, libc::SIG_DFL);
    // SAFETY: kill takes integers; 0 is the own process group.
    unsafe { libc::kill(0, libc::SIGTSTP) };
    set_handler(libc::SIGTSTP, on_stop as extern "C" fn(libc::c_int) as libc::sighandler_t);
}

fn set_handler(signal: libc::c_int, handler: libc::sighandler_t) {
    // SAFETY: an all-zero sigaction is valid; the handlers only touch an atomic.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = handler;
        action.sa_flags = libc::SA_RESTART;
        libc::sigaction(signal, &raw const action, std::ptr::null_mut());
    }
}
