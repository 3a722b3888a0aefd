//! Booting a kernel with a plan, watching it, and taking its report: one process group, one directory, both gone
//! afterwards whatever happens.

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

/// How often the guest is looked at, nanoseconds.
const LOOK_NS: u64 = 20_000_000;
/// A guest whose virtual time stands still for this long of real time is taken to be stuck, nanoseconds. The slowest
/// scenarios take seconds for 20 ms.
const STUCK_NS: u64 = 180_000_000_000;
/// The guest's file system, in its directory.
const INITRAMFS: &str = "initramfs";
/// The results directory, in its directory.
const OUT: &str = "out";
/// Lines of the console that an error shows.
const TAIL_LINES: usize = 15;
/// Wall-clock time the guest believes it starts at, nanoseconds since the Unix epoch: the same in every run
/// (2026-01-01T00:00:00Z).
const EPOCH_NS: u64 = 1_767_225_600_000_000_000;

/// What to boot.
#[derive(Debug, Clone, Copy)]
pub struct Boot<'a> {
    /// The kernel's executable.
    pub kernel: &'a Path,
    /// The program that becomes the guest's `/init`, as bytes.
    pub program: &'a [u8],
    /// Its arguments.
    pub arguments: &'a [&'a str],
    /// What it is to do.
    pub plan: &'a Plan,
    /// The guest's memory, bytes.
    pub memory_bytes: u64,
    /// Where captures go.
    pub keep: &'a Path,
}

/// What a boot came to.
#[derive(Debug, Clone, PartialEq)]
pub struct Booted {
    /// The guest's report.
    pub report: GuestReport,
    /// Real time from start to end, nanoseconds.
    pub wall_ns: u64,
    /// Of that, until the scenario's zero was near enough for flows to get ready, nanoseconds.
    pub boot_ns: u64,
    /// Most memory the kernel's process held, bytes.
    pub memory_peak_bytes: Option<u64>,
}

/// Why there is no report.
#[derive(Debug, thiserror::Error)]
pub enum BootError {
    /// Nowhere to run.
    #[error(transparent)]
    MemoryDirectory(#[from] MemoryDirectoryError),
    /// A file or process operation.
    #[error("cannot {what}: {source}")]
    Io {
        /// What failed.
        what: String,
        /// Why.
        source: io::Error,
    },
    /// The guest said why it gave up.
    #[error("the guest failed: {0}")]
    Guest(String),
    /// The kernel ended without a report.
    #[error("the lab's kernel ended without a report ({how}); end of its console:\n{console}")]
    Crashed {
        /// Exit status in words.
        how: String,
        /// End of the console.
        console: String,
    },
    /// Virtual time stood still.
    #[error(
        "the guest made no progress for {seconds} s at {at_ns} ns of virtual time; end of its console:\n{console}"
    )]
    Stuck {
        /// Real time, seconds.
        seconds: u64,
        /// Virtual time, nanoseconds.
        at_ns: i64,
        /// End of the console.
        console: String,
    },
    /// The user ended it.
    #[error("interrupted")]
    Interrupted,
}

fn io_error(what: impl Into<String>) -> impl FnOnce(io::Error) -> BootError {
    let what = what.into();
    move |source| BootError::Io { what, source }
}

/// Boots, waits for the end, takes the report. Whatever happens the guest's processes and files are gone afterwards.
pub fn run(
    boot: &Boot<'_>,
    interrupted: &AtomicBool,
    observe: &mut dyn FnMut(&Progress, u64),
) -> Result<Booted, BootError> {
    let place = MemoryDirectory::make(boot.memory_bytes)?;
    let begun_ns = clock::monotonic_ns();
    let initramfs = place.path().join(INITRAMFS);
    initramfs::write(boot.program, &initramfs).map_err(io_error("write the guest's file system"))?;
    let results = place.path().join(OUT);
    std::fs::create_dir(&results).map_err(io_error("make a results directory"))?;
    let plan = serde_json::to_vec(boot.plan).map_err(|e| io_error("encode the plan")(e.into()))?;
    std::fs::write(results.join(guest::PLAN), plan).map_err(io_error("write the plan"))?;
    let console = place.path().join("console");
    let mut guest = Guest::start(boot, &place, &console)?;
    let watched = guest.watch(&results, interrupted, begun_ns, observe);
    let memory_peak_bytes = guest.memory_peak_bytes;
    let (boot_ns, status) = match watched {
        Ok(found) => found,
        Err(Ended::Interrupted) => return Err(BootError::Interrupted),
        Err(Ended::Stuck(at_ns)) => {
            guest.end();
            let console = tail(&console);
            return Err(BootError::Stuck { seconds: STUCK_NS / 1_000_000_000, at_ns, console });
        }
        Err(Ended::Failed(source)) => return Err(io_error("wait for the lab's kernel")(source)),
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
        std::fs::copy(&from, &to).map_err(io_error(format!("keep the capture {}", to.display())))?;
    }
    Ok(Booted { report, wall_ns, boot_ns, memory_peak_bytes })
}

/// Why watching ended early.
enum Ended {
    Interrupted,
    Stuck(i64),
    Failed(io::Error),
}

/// The kernel's process group. Ending the value ends the group.
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
            // The kernel mixes its command line into its randomness: everything is named relative to the directory
            // the guest lives in, which has another name each time.
            .args([&format!("initrd={INITRAMFS}"), "uml_dir=./", "umid=lab"])
            .args(["con=null", "con0=null,fd:1", "quiet", "panic=-1", "root=/dev/ram0"])
            .arg(format!("{}=/proc/self/cwd/{OUT}", guest::DIRECTORY_VARIABLE))
            // Words the kernel does not know are its first program's. After `--` it would get what UML appends, too.
            .args(boot.arguments)
            // Nothing of this environment is the guest's business; its memory is a file in TMPDIR.
            .env_clear()
            .env("TMPDIR", place.path())
            .env("HOME", place.path())
            .current_dir(place.path())
            .stdin(Stdio::null())
            .stdout(output)
            .stderr(errors);
        let child = process::lead_own_group(&mut command)
            .spawn()
            .map_err(io_error(format!("start the lab's kernel {}", boot.kernel.display())))?;
        Ok(Self { child, ended: false, memory_peak_bytes: None })
    }

    /// Until it ends; gives the time until flows got ready, and the exit status in words.
    fn watch(
        &mut self,
        results: &Path,
        interrupted: &AtomicBool,
        begun_ns: u64,
        observe: &mut dyn FnMut(&Progress, u64),
    ) -> Result<(u64, String), Ended> {
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
                Err(error) => return Err(Ended::Failed(error)),
            }
            if interrupted.load(Ordering::Relaxed) {
                return Err(Ended::Interrupted);
            }
            let now_ns = clock::monotonic_ns();
            if let Some(progress) = read_progress(&results.join(guest::PROGRESS))
                && progress != last
            {
                boot_ns.get_or_insert(now_ns - begun_ns);
                observe(&progress, now_ns - begun_ns);
                (last, moved_ns) = (progress, now_ns);
            }
            if now_ns - moved_ns > STUCK_NS {
                return Err(Ended::Stuck(last.t_ns));
            }
            if looks.is_multiple_of(5) {
                self.memory_peak_bytes = memory_peak_bytes(self.child.id()).or(self.memory_peak_bytes);
            }
            looks += 1;
            clock::sleep_until(now_ns + LOOK_NS);
        }
    }

    fn end(&mut self) {
        if !std::mem::replace(&mut self.ended, true) {
            process::end_group(self.child.id(), true);
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

/// `VmHWM` of a process: the most it ever held.
fn memory_peak_bytes(process: u32) -> Option<u64> {
    let text = std::fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.trim().strip_suffix(" kB")?.parse::<u64>().ok().map(|kib| kib * 1024)
}

/// The console's last lines, without the addresses of a stack trace: the reason stands before them.
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
