//! Boots a kernel with a plan, watches it, and reads its report. The guest is one process group and one
//! directory, both removed afterwards in all cases.

mod cores;
mod initramfs;
mod memory_directory;

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};

use landspeed_sys::{clock, process};

pub use cores::Core;
pub use memory_directory::{MemoryDirectory, MemoryDirectoryError};

use crate::guest::{self, GuestReport, Progress};
use crate::plan::Plan;

/// Polling interval of the guest, nanoseconds.
const POLL_NS: u64 = 20_000_000;
/// Real time without progress of the virtual time after which a guest is considered stuck, nanoseconds. The
/// slowest scenarios take seconds for 20 ms.
const STUCK_NS: u64 = 180_000_000_000;
/// Name of the guest's file system in its directory.
const INITRAMFS: &str = "initramfs";
/// Name of the results directory in its directory.
const RESULTS_DIRECTORY: &str = "out";
/// Maximum number of console lines in an error.
const TAIL_LINES: usize = 15;
/// Wall-clock time at the start of the guest, nanoseconds since the Unix epoch: the same in every run
/// (2026-01-01T00:00:00Z).
const EPOCH_NS: u64 = 1_767_225_600_000_000_000;

/// A guest to boot.
#[derive(Debug, Clone, Copy)]
pub struct Boot<'a> {
    /// The kernel's executable.
    pub kernel: &'a Path,
    /// The program that becomes the guest's `/init`, as bytes.
    pub program: &'a [u8],
    /// Arguments of the program.
    pub arguments: &'a [&'a str],
    /// Network and flows of the run.
    pub plan: &'a Plan,
    /// The guest's memory, bytes.
    pub memory_bytes: u64,
    /// Directory to which captures are copied.
    pub keep: &'a Path,
    /// Real time after the boot until the run is ended, nanoseconds.
    pub real_time_limit_ns: Option<u64>,
}

/// Result of a boot.
#[derive(Debug, Clone, PartialEq)]
pub struct BootOutcome {
    /// The guest's report.
    pub report: GuestReport,
    /// Real time from start to end, nanoseconds.
    pub wall_ns: u64,
    /// Part of `wall_ns` until the first flows began to prepare, nanoseconds.
    pub boot_ns: u64,
    /// Peak memory of the kernel's process, bytes.
    pub memory_peak_bytes: Option<u64>,
}

/// Reason why there is no report.
#[derive(Debug, thiserror::Error)]
pub enum BootError {
    /// No directory for the guest.
    #[error(transparent)]
    MemoryDirectory(#[from] MemoryDirectoryError),
    /// A file or process operation failed.
    #[error("cannot {what}: {source}")]
    Io {
        /// The operation that failed.
        what: String,
        /// Error of the operating system.
        source: io::Error,
    },
    /// The guest reported an error.
    #[error("the guest failed: {0}")]
    Guest(String),
    /// The kernel ended without a report.
    #[error("the lab's kernel ended without a report ({how}); end of its console:\n{console}")]
    Crashed {
        /// Exit status, as text.
        how: String,
        /// Last lines of the console.
        console: String,
    },
    /// Virtual time did not progress.
    #[error(
        "the guest made no progress for {seconds} s at {at_ns} ns of virtual time; end of its console:\n{console}"
    )]
    Stuck {
        /// Real time without progress, seconds.
        seconds: u64,
        /// Virtual time reached, nanoseconds.
        at_ns: i64,
        /// Last lines of the console.
        console: String,
    },
    /// A run with programs took too much real time.
    #[error("ended after {seconds} s of real time, at {at_s} s of virtual time{running}")]
    RealTimeLimit {
        /// The limit, seconds.
        seconds: f64,
        /// Virtual time reached, seconds.
        at_s: f64,
        /// The programs that were running, as a phrase.
        running: String,
    },
    /// Interrupted by the user.
    #[error("interrupted")]
    Interrupted,
}

fn io_error(what: impl Into<String>) -> impl FnOnce(io::Error) -> BootError {
    let what = what.into();
    move |source| BootError::Io { what, source }
}

/// Boots a guest, waits for its end, and reads its report. The guest's processes and files are removed in all
/// cases.
pub fn run(
    boot: &Boot<'_>,
    interrupted: &AtomicBool,
    observe: &mut dyn FnMut(&Progress, u64),
) -> Result<BootOutcome, BootError> {
    let place = MemoryDirectory::make(boot.memory_bytes)?;
    let begun_ns = clock::monotonic_ns();
    let initramfs = place.path().join(INITRAMFS);
    initramfs::write(boot.program, &initramfs).map_err(io_error("write the guest's file system"))?;
    let results = place.path().join(RESULTS_DIRECTORY);
    std::fs::create_dir(&results).map_err(io_error("make a results directory"))?;
    let plan = serde_json::to_vec(boot.plan).map_err(|e| io_error("encode the plan")(e.into()))?;
    std::fs::write(results.join(guest::PLAN), plan).map_err(io_error("write the plan"))?;
    let console = place.path().join("console");
    let mut guest = Guest::start(boot, &place, &console)?;
    let watched = guest.watch(&results, interrupted, (begun_ns, boot.real_time_limit_ns), observe);
    let memory_peak_bytes = guest.memory_peak_bytes;
    let (boot_ns, status) = match watched {
        Ok(found) => found,
        Err(EarlyEnd::Interrupted) => return Err(BootError::Interrupted),
        Err(EarlyEnd::Stuck(at_ns)) => {
            guest.end();
            let console = tail(&console);
            return Err(BootError::Stuck { seconds: STUCK_NS / 1_000_000_000, at_ns, console });
        }
        Err(EarlyEnd::RealTimeLimit(limit_ns, at_ns)) => {
            guest.end();
            return Err(BootError::RealTimeLimit {
                seconds: limit_ns as f64 / 1e9,
                at_s: at_ns as f64 / 1e9,
                running: running(&results),
            });
        }
        Err(EarlyEnd::Failed(source)) => return Err(io_error("wait for the lab's kernel")(source)),
    };
    let wall_ns = clock::monotonic_ns() - begun_ns;
    let Ok(text) = std::fs::read(results.join(guest::REPORT)) else {
        return Err(match std::fs::read_to_string(results.join(guest::FAILURE)) {
            Ok(why) => BootError::Guest(why),
            Err(_) => BootError::Crashed { how: status, console: tail(&console) },
        });
    };
    let report = serde_json::from_slice(&text).map_err(|e| io_error("read the guest's report")(e.into()))?;
    for point in &boot.plan.captures {
        let (from, to) = (results.join(&point.file), boot.keep.join(&point.file));
        landspeed_sys::file::copy(&from, &to).map_err(io_error(format!("keep the capture {}", to.display())))?;
    }
    Ok(BootOutcome { report, wall_ns, boot_ns, memory_peak_bytes })
}

/// Reason for which the watch ended early.
enum EarlyEnd {
    Interrupted,
    Stuck(i64),
    RealTimeLimit(u64, i64),
    Failed(io::Error),
}

/// The kernel's process group, which ends when the value is dropped.
struct Guest {
    child: Child,
    ended: bool,
    memory_peak_bytes: Option<u64>,
}

impl Guest {
    fn start(boot: &Boot<'_>, place: &MemoryDirectory, console: &Path) -> Result<Self, BootError> {
        let output = File::create(console).map_err(io_error("write the console"))?;
        let errors = output.try_clone().map_err(io_error("write the console"))?;
        let mut command = Command::new(boot.kernel);
        command
            .arg(format!("mem={}M", boot.memory_bytes.next_multiple_of(1 << 20) >> 20))
            .args(["seccomp=on", "time-travel=inf-cpu"])
            .arg(format!("time-travel-start={EPOCH_NS}"))
            .arg(format!("landspeed-seed={}", boot.plan.seed))
            // The kernel mixes its command line into its random state: paths are relative to the guest's directory,
            // whose name differs each time.
            .args([&format!("initrd={INITRAMFS}"), "uml_dir=./", "umid=lab"])
            .args(["con=null", "con0=null,fd:1", "quiet", "panic=-1", "root=/dev/ram0"])
            .arg(format!("{}=/proc/self/cwd/{RESULTS_DIRECTORY}", guest::DIRECTORY_VARIABLE))
            // Options the kernel does not know are passed to init. After `--`, init would also get what UML appends.
            .args(boot.arguments)
            // The guest inherits no environment; its memory is a file in TMPDIR.
            .env_clear()
            .env("TMPDIR", place.path())
            .env("HOME", place.path())
            .current_dir(place.path())
            .stdin(Stdio::null())
            .stdout(output)
            .stderr(errors);
        let child = process::start_in_new_group(&mut command)
            .spawn()
            .map_err(io_error(format!("start the lab's kernel {}", boot.kernel.display())))?;
        Ok(Self { child, ended: false, memory_peak_bytes: None })
    }

    /// Waits for the guest's end, or until `limit_ns` after its boot. Returns the time until flows began to prepare, nanoseconds,
    /// and the exit status as text.
    fn watch(
        &mut self,
        results: &Path,
        interrupted: &AtomicBool,
        (begun_ns, limit_ns): (u64, Option<u64>),
        observe: &mut dyn FnMut(&Progress, u64),
    ) -> Result<(u64, String), EarlyEnd> {
        let mut last = Progress { t_ns: i64::MIN, ..Progress::default() };
        let mut moved_ns = clock::monotonic_ns();
        let mut boot_ns = None;
        let mut looks = 0_u64;
        loop {
            match self.child.try_wait() {
                Ok(Some(status)) => {
                    self.ended = true;
                    let wall = clock::monotonic_ns() - begun_ns;
                    return Ok((boot_ns.unwrap_or(wall), status.to_string()));
                }
                Ok(None) => {}
                Err(error) => return Err(EarlyEnd::Failed(error)),
            }
            if interrupted.load(Ordering::Relaxed) {
                return Err(EarlyEnd::Interrupted);
            }
            let now_ns = clock::monotonic_ns();
            if let Some(progress) = read_progress(&results.join(guest::PROGRESS))
                && progress != last
            {
                boot_ns.get_or_insert(now_ns - begun_ns);
                observe(&progress, now_ns - begun_ns);
                (last, moved_ns) = (progress, now_ns);
            }
            if let (Some(limit_ns), Some(boot_ns)) = (limit_ns, boot_ns)
                && now_ns - begun_ns > boot_ns + limit_ns
            {
                return Err(EarlyEnd::RealTimeLimit(limit_ns, last.t_ns.max(0)));
            }
            // A program may compute for longer without progress of the virtual time: it has the other limit.
            if now_ns - moved_ns > STUCK_NS && (limit_ns.is_none() || boot_ns.is_none()) {
                return Err(EarlyEnd::Stuck(last.t_ns));
            }
            if looks.is_multiple_of(5) {
                self.memory_peak_bytes = memory_peak_bytes(self.child.id()).or(self.memory_peak_bytes);
            }
            looks += 1;
            clock::sleep_until(now_ns + POLL_NS);
        }
    }

    fn end(&mut self) {
        if !std::mem::replace(&mut self.ended, true) {
            process::kill_group(self.child.id(), true);
            let _ = self.child.wait();
        }
    }
}

impl Drop for Guest {
    fn drop(&mut self) {
        self.end();
    }
}

fn read_progress(path: &Path) -> Option<Progress> {
    let mut text = [0; guest::PROGRESS_BYTES];
    File::open(path).ok()?.read_exact_at(&mut text, 0).ok()?;
    serde_json::from_slice(text.trim_ascii_end()).ok()
}

/// Returns which programs are running in a guest, as a phrase for an error; empty if it has none.
fn running(results: &Path) -> String {
    let text = std::fs::read_to_string(results.join(guest::programs::RUNNING)).unwrap_or_default();
    let names: Vec<&str> = text.lines().filter(|name| !name.is_empty()).collect();
    if names.is_empty() { String::new() } else { format!("; running programs: {}", names.join(", ")) }
}

/// Returns `VmHWM` of a process: its peak resident memory, bytes.
fn memory_peak_bytes(process: u32) -> Option<u64> {
    let text = std::fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.trim().strip_suffix(" kB")?.parse::<u64>().ok().map(|kib| kib * 1024)
}

/// Returns the last lines of the console without the addresses of a stack trace: the reason precedes them.
fn tail(console: &Path) -> String {
    let mut text = Vec::new();
    if let Ok(mut file) = File::open(console) {
        let _ = file.read_to_end(&mut text);
    }
    let text = String::from_utf8_lossy(&text);
    let worth = |line: &&str| !line.is_empty() && !line.contains("[<");
    let lines: Vec<&str> = text.lines().map(str::trim_end).filter(worth).collect();
    lines[lines.len().saturating_sub(TAIL_LINES)..].join("\n")
}
