//! The lab's kernel as a virtual machine for tests. It has queueing disciplines and classifiers that many hosts
//! lack, its init network namespace can be used, and it can be powered off at any time.
//!
//! A test that this host's kernel cannot run calls [`in_lab_kernel!`](crate::in_lab_kernel!) with the reason: the
//! test runs there instead, or is reported as SKIPPED.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, PoisonError, mpsc};
use std::time::Duration;

use landspeed_sys::{clock, process};
use serde_json::Value;
use tempfile::TempDir;

use crate::skip;

/// Time limit of a guest, nanoseconds: below that of a test (`.config/nextest.toml`).
const GUEST_TIMEOUT_NS: u64 = 500_000_000_000;
/// Environment variable set for everything that runs in a guest.
const IN_LAB_KERNEL_VARIABLE: &str = "LANDSPEED_IN_LAB_KERNEL";

/// The guest sees this host's files read-only, its own /run, and its disk: one writable directory.
const INIT_SCRIPT: &str = "
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin NO_COLOR=1 HOME=/run TMPDIR=/run/tmp
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t cgroup2 cgroup2 /sys/fs/cgroup 2>/dev/null
mount -t tracefs tracefs /sys/kernel/tracing 2>/dev/null
mount -t devtmpfs dev /dev
mount -t tmpfs tmpfs /run
mkdir /run/disk /run/tmp /dev/shm
mount -t tmpfs tmpfs /dev/shm
mount -t hostfs none /run/disk -o $LS_DISK
ip link set lo up
";

/// Runs the calling test again in the lab's kernel, for this reason, and returns from it; or skips it.
///
/// ```no_run
/// # fn add_fq() -> Result<(), String> { Ok(()) }
/// #[test]
/// fn fq_paces() {
///     if let Err(why) = add_fq() {
///         landspeed_testkit::in_lab_kernel!("{why}");
///     }
/// }
/// ```
#[macro_export]
macro_rules! in_lab_kernel {
    ($($why:tt)*) => {{
        $crate::lab_kernel::run_in_lab_kernel(&::std::format!($($why)*));
        return;
    }};
}

/// Returns the value of a result of `landspeed_sys::netns::run_in_new_namespace`. If this host's kernel refused a part of it,
/// runs the test in the lab's kernel ([`in_lab_kernel!`](crate::in_lab_kernel!)) with the reason.
#[macro_export]
macro_rules! or_lab_kernel {
    ($outcome:expr) => {
        match $outcome {
            Ok(Ok(made)) => made,
            Ok(Err(why)) => $crate::in_lab_kernel!("{why}"),
            Err(why) => $crate::skip!("no privilege for a network namespace: {why}"),
        }
    };
}

/// Skips the calling test if no lab kernel is built.
#[macro_export]
macro_rules! needs_lab_kernel {
    () => {
        if $crate::lab_kernel::newest().is_none() {
            $crate::skip!("{}", $crate::lab_kernel::NOT_BUILT);
        }
    };
}

/// Whether this process runs in the lab's kernel because of [`in_lab_kernel!`](crate::in_lab_kernel!).
pub fn runs_in_lab_kernel() -> bool {
    std::env::var_os(IN_LAB_KERNEL_VARIABLE).is_some()
}

/// Reason for skipping tests of the lab.
pub const NOT_BUILT: &str = "no kernel is built for the lab (`landspeed lab kernel build`)";

/// Runs the calling test in the lab's kernel, once per process. If that is not possible, or it already runs
/// there, the test is recorded as skipped because of `why`.
///
/// # Panics
/// If the test fails there; the message contains its output.
pub fn run_in_lab_kernel(why: &str) {
    /// Names of tests that passed.
    static PASSED: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());
    if runs_in_lab_kernel() {
        return skip::record(why);
    }
    let (kernel, directory) = match machine() {
        Ok(machine) => machine,
        Err(lacks) => return skip::record(&format!("{why}; not in the lab's kernel either: {lacks}")),
    };
    let test = std::thread::current().name().expect("the harness names threads after tests").to_owned();
    let passed = || PASSED.lock().unwrap_or_else(PoisonError::into_inner);
    if passed().contains(&test) {
        return;
    }
    println!("{why}; running in {}", kernel.display());
    let binary = std::env::current_exe().expect("a program");
    let script = format!(
        "export {IN_LAB_KERNEL_VARIABLE}=1\ncd '{}'\n'{}' --exact '{test}' --nocapture; echo LS EXIT $?",
        std::env::current_dir().expect("a directory").display(),
        binary.display(),
    );
    let (words, said) = Guest::boot(&kernel, directory.path(), &script).finish();
    // A binary without this test runs nothing and exits with 0.
    assert!(words == ["EXIT 0"] && said.contains("test result: ok. 1 passed"), "{test} in the lab's kernel:\n{said}");
    // Strip the name of the test if the harness has already printed it.
    for (_, line) in said.lines().filter_map(|line| line.split_once("SKIPPED: ")) {
        let reason = line.strip_prefix(&test).and_then(|line| line.strip_prefix(": ")).unwrap_or(line);
        skip::record(&format!("in the lab's kernel: {reason}"));
    }
    passed().insert(test);
}

/// Returns the newest kernel without patches built by `landspeed lab kernel build`; `None` if there is none.
pub fn newest() -> Option<PathBuf> {
    let set = |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let cache = set("LANDSPEED_KERNELS")
        .or_else(|| set("XDG_CACHE_HOME").map(|home| home.join("landspeed/kernels")))
        .or_else(|| set("HOME").map(|home| home.join(".cache/landspeed/kernels")))?;
    let kernels = std::fs::read_dir(cache).ok()?.flatten().filter_map(|entry| {
        let kernel = entry.path().join("vmlinux");
        let record = std::fs::read(entry.path().join("kernel.json")).ok()?;
        let record: Value = serde_json::from_slice(&record).ok()?;
        let is_stock = record["patches"].as_array().is_none_or(Vec::is_empty);
        (is_stock && kernel.is_file()).then_some((record["built_at_ns"].as_u64()?, kernel))
    });
    kernels.max().map(|(_, kernel)| kernel)
}

/// Returns the newest kernel, and a directory that the guest sees at the same path.
///
/// # Errors
/// What is missing, as a reason for [`skip!`](crate::skip!).
pub fn machine() -> Result<(PathBuf, TempDir), String> {
    if !process::is_root() {
        return Err("the guest sees the host's programs as its own root, which needs root".to_owned());
    }
    let kernel = newest().ok_or(NOT_BUILT)?;
    // No dot in the name: the kernel takes an argument with a dot as a module parameter and does not pass it to
    // init.
    let directory = tempfile::Builder::new().prefix("landspeed-guest-").tempdir().map_err(|why| why.to_string())?;
    Ok((kernel, directory))
}

/// A running virtual machine; powered off when dropped.
pub struct Guest {
    child: Child,
    lines: mpsc::Receiver<String>,
    deadline_ns: u64,
    said: String,
}

impl Guest {
    /// Boots with a shell script as init. `directory` is one returned by [`machine`]; the guest's disk is
    /// `directory/disk`, mounted at `/run/disk`.
    ///
    /// # Panics
    /// If the kernel cannot be started.
    pub fn boot(kernel: &Path, directory: &Path, script: &str) -> Self {
        let init = directory.join("init");
        std::fs::write(&init, format!("{INIT_SCRIPT}\n{script}\necho LS END\nexec sleep 1000\n")).expect("written");
        let disk = directory.join("disk");
        std::fs::create_dir_all(&disk).expect("a directory");
        let mut command = Command::new(kernel);
        command
            .args(["mem=512M", "root=/dev/root", "rootfstype=hostfs", "rootflags=/", "ro", "init=/bin/sh"])
            .arg(&init)
            .args(["con=null", "con0=null,fd:1", "quiet", "panic=-1", "seccomp=on", "umid=guest"])
            .arg(format!("uml_dir={}/", directory.display()))
            .arg(format!("LS_DISK={}", disk.display()))
            .env_clear()
            .env("TMPDIR", directory)
            .env("HOME", directory)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null());
        let mut child = process::start_in_new_group(&mut command).spawn().expect("the kernel starts");
        let out = child.stdout.take().expect("piped");
        let (say, lines) = mpsc::channel();
        std::thread::spawn(move || {
            for line in BufReader::new(out).split(b'\n').map_while(Result::ok) {
                if say.send(String::from_utf8_lossy(&line).trim().to_owned()).is_err() {
                    break;
                }
            }
        });
        Self { child, lines, deadline_ns: clock::monotonic_ns() + GUEST_TIMEOUT_NS, said: String::new() }
    }

    /// Returns the rest of the next line that begins with `LS `.
    ///
    /// # Panics
    /// If the guest exceeds its time limit.
    #[expect(clippy::should_implement_trait, reason = "it panics where an iterator ends")]
    pub fn next(&mut self) -> String {
        loop {
            let left = Duration::from_nanos(self.deadline_ns.saturating_sub(clock::monotonic_ns()));
            let line = self.lines.recv_timeout(left).unwrap_or_else(|_| panic!("too long after:\n{}", self.said));
            let _ = writeln!(self.said, "{line}");
            if let Some(word) = line.strip_prefix("LS ") {
                return word.to_owned();
            }
        }
    }

    /// Waits for the end of the script; returns the remaining lines as in [`Guest::next`], and the whole output.
    ///
    /// # Panics
    /// If the guest exceeds its time limit.
    pub fn finish(mut self) -> (Vec<String>, String) {
        let mut words = Vec::new();
        loop {
            match self.next() {
                end if end == "END" => return (words, std::mem::take(&mut self.said)),
                word => words.push(word),
            }
        }
    }
}

impl Drop for Guest {
    fn drop(&mut self) {
        process::kill_group(self.child.id(), true);
        let _ = self.child.wait();
    }
}
