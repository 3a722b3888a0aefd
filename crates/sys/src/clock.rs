//! Kernel clocks: reading, sleeping, and NTP discipline.

/// Returns `CLOCK_MONOTONIC`, nanoseconds.
#[inline]
pub fn monotonic_ns() -> u64 {
    read(libc::CLOCK_MONOTONIC)
}

/// Returns `CLOCK_REALTIME`, nanoseconds since the Unix epoch.
pub fn realtime_ns() -> u64 {
    read(libc::CLOCK_REALTIME)
}

/// Returns the CPU time of the calling thread, nanoseconds.
pub fn thread_cpu_ns() -> u64 {
    read(libc::CLOCK_THREAD_CPUTIME_ID)
}

/// Returns the CPU time of this process, user and system, nanoseconds.
pub fn process_cpu_ns() -> u64 {
    read(libc::CLOCK_PROCESS_CPUTIME_ID)
}

#[inline]
fn read(clock: libc::clockid_t) -> u64 {
    let mut ts = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `ts` is a valid timespec to write to; the clocks named above always exist.
    unsafe { libc::clock_gettime(clock, &raw mut ts) };
    ts.tv_sec as u64 * 1_000_000_000 + ts.tv_nsec as u64
}

/// Sleeps until `CLOCK_MONOTONIC` reaches `deadline_ns`. Returns at once if it has passed; not interrupted by
/// signals.
pub fn sleep_until(deadline_ns: u64) {
    let ts = libc::timespec {
        tv_sec: (deadline_ns / 1_000_000_000) as libc::time_t,
        tv_nsec: (deadline_ns % 1_000_000_000) as libc::c_long,
    };
    loop {
        // SAFETY: `ts` is a valid timespec; with TIMER_ABSTIME the remainder pointer may be null.
        let rc = unsafe {
            libc::clock_nanosleep(libc::CLOCK_MONOTONIC, libc::TIMER_ABSTIME, &raw const ts, std::ptr::null_mut())
        };
        if rc != libc::EINTR {
            return;
        }
    }
}

/// Synchronisation state of `CLOCK_REALTIME` according to the kernel (adjtimex(2)).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Discipline {
    /// Whether the clock is synchronised (`STA_UNSYNC` is clear).
    pub synchronised: bool,
    /// Estimated error, microseconds.
    pub estimated_error_us: u64,
    /// Maximum error, microseconds.
    pub maximum_error_us: u64,
}

/// Reads the synchronisation state. Changes nothing and needs no privilege.
pub fn discipline() -> std::io::Result<Discipline> {
    // SAFETY: timex is plain old data, all of whose members may be zero; `modes` 0 asks and changes nothing.
    let (state, timex) = unsafe {
        let mut timex: libc::timex = std::mem::zeroed();
        (libc::adjtimex(&raw mut timex), timex)
    };
    if state < 0 {
        return Err(std::io::Error::last_os_error());
    }
    Ok(Discipline {
        synchronised: timex.status & libc::STA_UNSYNC == 0,
        estimated_error_us: u64::try_from(timex.esterror).unwrap_or(0),
        maximum_error_us: u64::try_from(timex.maxerror).unwrap_or(0),
    })
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_clock_state_is_readable_without_privilege() {
        let found = super::discipline().expect("every kernel answers");
        // NTP_PHASE_LIMIT (linux/timex.h): the kernel declares the clock unsynchronised at 16 seconds.
        assert!(found.maximum_error_us <= 16_000_000, "{found:?}");
    }
}
