//! Threads: affinity, memory policy, CPU time.

use std::io;

/// Pins the calling thread to one core.
///
/// # Errors
/// `EINVAL` if the core does not exist or is not in the process's cpuset.
pub fn pin_to_core(core: u32) -> io::Result<()> {
    // SAFETY: an all-zero cpu_set_t is a valid empty set.
    let mut set: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    if core as usize >= libc::CPU_SETSIZE as usize {
        return Err(io::Error::from_raw_os_error(libc::EINVAL));
    }
    // SAFETY: `core` is below CPU_SETSIZE, and `set` is a valid set of the size passed.
    let rc = unsafe {
        libc::CPU_SET(core as usize, &mut set);
        libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &raw const set)
    };
    if rc == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Sets the calling thread to the lowest real-time priority (`SCHED_FIFO`, sched(7)).
///
/// # Errors
/// `EPERM` without `CAP_SYS_NICE`.
pub fn use_fifo_policy() -> io::Result<()> {
    let parameter = libc::sched_param { sched_priority: 1 };
    // Direct system call, because musl's wrapper always fails.
    // SAFETY: the kernel reads one sched_param at the pointer, which is valid for the call.
    let rc = unsafe { libc::syscall(libc::SYS_sched_setscheduler, 0, libc::SCHED_FIFO, &raw const parameter) };
    if rc == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Returns the cores that the calling thread may run on.
pub fn allowed_cores() -> Vec<u32> {
    // SAFETY: an all-zero cpu_set_t is a valid empty set.
    let mut set: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    // SAFETY: `set` is a valid place of the size passed.
    let rc = unsafe { libc::sched_getaffinity(0, size_of::<libc::cpu_set_t>(), &raw mut set) };
    if rc != 0 {
        return Vec::new();
    }
    // SAFETY: every index asked for is below CPU_SETSIZE.
    (0..libc::CPU_SETSIZE as usize).filter(|&c| unsafe { libc::CPU_ISSET(c, &set) }).map(|c| c as u32).collect()
}

/// NUMA memory policy of the calling thread (`set_mempolicy(2)`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MemoryPolicy {
    /// The NUMA node of the core it runs on.
    Local,
    /// Only this NUMA node.
    Bind(u32),
    /// This NUMA node first, then others.
    Preferred(u32),
}

/// Sets the memory policy of the calling thread.
///
/// # Errors
/// `EINVAL` if the node does not exist, `ENOSYS` if the kernel has no NUMA support.
pub fn set_memory_policy(policy: MemoryPolicy) -> io::Result<()> {
    const MPOL_PREFERRED: libc::c_long = 1;
    const MPOL_BIND: libc::c_long = 2;
    const MPOL_LOCAL: libc::c_long = 4;
    let mut mask = [0u64; 16];
    let mode = match policy {
        MemoryPolicy::Local => MPOL_LOCAL,
        MemoryPolicy::Bind(_) => MPOL_BIND,
        MemoryPolicy::Preferred(_) => MPOL_PREFERRED,
    };
    let (pointer, bits) = match policy {
        MemoryPolicy::Local => (std::ptr::null(), 0),
        MemoryPolicy::Bind(node) | MemoryPolicy::Preferred(node) => {
            let word = mask.get_mut(node as usize / 64).ok_or_else(|| io::Error::from_raw_os_error(libc::EINVAL))?;
            *word |= 1 << (node % 64);
            (mask.as_ptr(), mask.len() * 64 + 1)
        }
    };
    // SAFETY: `pointer` is null with zero bits, or points at a mask of at least `bits - 1` bits (the kernel reads one less).
    let rc = unsafe { libc::syscall(libc::SYS_set_mempolicy, mode, pointer, bits) };
    if rc == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// CPU time of the calling thread.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ThreadTime {
    /// User time, nanoseconds (the kernel splits user and system time by ticks).
    pub user_ns: u64,
    /// System time, nanoseconds.
    pub system_ns: u64,
    /// Total, from the scheduler's exact clock, nanoseconds.
    pub total_ns: u64,
}

/// Returns the CPU time used by the calling thread.
pub fn thread_time() -> ThreadTime {
    // SAFETY: an all-zero rusage is a valid value to be overwritten.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: `usage` is a valid place; RUSAGE_THREAD always exists on Linux.
    unsafe { libc::getrusage(libc::RUSAGE_THREAD, &raw mut usage) };
    let ns = |t: libc::timeval| t.tv_sec as u64 * 1_000_000_000 + t.tv_usec as u64 * 1_000;
    ThreadTime { user_ns: ns(usage.ru_utime), system_ns: ns(usage.ru_stime), total_ns: crate::clock::thread_cpu_ns() }
}

/// Returns the kernel's thread id (TID) of the calling thread.
pub fn id() -> u32 {
    // SAFETY: gettid takes nothing and cannot fail.
    unsafe { libc::gettid() as u32 }
}

/// Scheduler statistics of a thread of this process.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SchedulerStats {
    /// Time running on a core, nanoseconds.
    pub run_ns: u64,
    /// Time runnable but waiting for a core, nanoseconds.
    pub wait_ns: u64,
}

/// Reads a thread's `schedstat` repeatedly without reopening it.
#[derive(Debug)]
pub struct ThreadMeter {
    file: std::fs::File,
}

impl ThreadMeter {
    /// Opens the statistics of a thread of this process.
    ///
    /// # Errors
    /// `ENOENT` if the thread has ended, or the kernel has no scheduler statistics.
    pub fn open(thread: u32) -> io::Result<Self> {
        std::fs::File::open(format!("/proc/self/task/{thread}/schedstat")).map(|file| Self { file })
    }

    /// Returns the current statistics; `None` once the thread has ended.
    pub fn read(&self) -> Option<SchedulerStats> {
        use std::os::unix::fs::FileExt as _;
        let mut text = [0; 64];
        let n = self.file.read_at(&mut text, 0).ok()?;
        let mut words = std::str::from_utf8(text.get(..n)?).ok()?.split_ascii_whitespace();
        let (run_ns, wait_ns) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
        Some(SchedulerStats { run_ns, wait_ns })
    }
}

/// Sets the timer slack of the calling thread, nanoseconds. The default of 50 µs would be visible in every
/// schedule.
pub fn set_timer_slack_ns(ns: u64) {
    // SAFETY: PR_SET_TIMERSLACK takes one integer and affects only the calling thread.
    unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, ns, 0, 0, 0) };
}
