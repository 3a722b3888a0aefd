//! Causes that the lab cannot create, measured on this machine: busy cores, CPU quotas, slow readers.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use landspeed_model::{RunDocument, Status};

use super::judge::run_verdict;
use super::score::{Row, Score, Scores};
use super::truth::{Accept, View};
use crate::bench::child::{Running, run};
use crate::bench::net;

/// Duration of a run, seconds.
const SECONDS: u32 = 5;
/// Time limit of a run.
const LIMIT: Duration = Duration::from_mins(1);
/// Number of busy loops.
const BUSY_LOOPS: usize = 2;
/// CPU time per period under a quota, µs.
const QUOTA_US: u32 = 20_000;
const PERIOD_US: u32 = 100_000;

/// Minimum idle share of a quiet machine. With other load, either side may be the one that waits.
const MIN_IDLE_SHARE: f64 = 0.8;
/// Time over which the idle share is measured.
const IDLE_SAMPLE_TIME: Duration = Duration::from_millis(500);

/// Side of a test.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Side {
    /// The client.
    Sender,
    /// The server.
    Receiver,
}

/// CPU contention on one side.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CpuContention {
    /// No contention.
    None,
    /// Busy loops on its core.
    BusyLoops(Side),
    /// A CPU quota of its control group.
    Quota(Side),
}

/// A test case on this machine.
struct HostCase {
    name: &'static str,
    truth: &'static str,
    /// Also acceptable: both sides share the cores, and the softirqs of the receive path run on the sender's core.
    accept: &'static [&'static str],
    contention: CpuContention,
    arguments: &'static [&'static str],
}

const ALL: &[HostCase] = &[
    case("receiver-busy-core", "receiver-cpu", &["sender-cpu"], CpuContention::BusyLoops(Side::Receiver), &[]),
    case(
        "sender-busy-core",
        "sender-cpu",
        &["receiver-cpu"],
        CpuContention::BusyLoops(Side::Sender),
        &["--receive", "discard"],
    ),
    case("sender-copies", "sender-cpu", &["receiver-cpu"], CpuContention::None, &["--receive", "discard"]),
    case("receiver-quota", "receiver-cpu", &[], CpuContention::Quota(Side::Receiver), &[]),
    case("sender-quota", "sender-cpu", &[], CpuContention::Quota(Side::Sender), &["--receive", "discard"]),
    case("slow-reader", "slow-reader", &[], CpuContention::None, &["--read-rate", "300M"]),
    case("slow-reader-window", "slow-reader", &[], CpuContention::None, &["--read-rate", "300M", "--window", "128K"]),
    case("slow-reader-burden", "slow-reader", &[], CpuContention::BusyLoops(Side::Sender), &["--read-rate", "100M"]),
    case("application", "application", &[], CpuContention::None, &["--rate", "300M"]),
    case("pacing", "pacing", &[], CpuContention::None, &["--pace", "300M"]),
    case("round-trip", "round-trip", &["sender-cpu", "receiver-cpu"], CpuContention::None, &["--rr"]),
];

const fn case(
    name: &'static str,
    truth: &'static str,
    accept: &'static [&'static str],
    contention: CpuContention,
    arguments: &'static [&'static str],
) -> HostCase {
    HostCase { name, truth, accept, contention, arguments }
}

/// Runs the missing cases, `rounds` times per congestion control, and judges them in each view. Prints what is
/// skipped.
pub fn run_rounds(directory: &Path, binary: Option<&Path>, rounds: usize, chosen: &[String]) -> Result<Vec<Scores>> {
    println!(
        "SKIPPED storage: landspeed sends from memory and reads into memory; --read-rate stands for a slow disk"
    );
    fs::create_dir_all(directory).with_context(|| format!("cannot create {}", directory.display()))?;
    let mut scores: Vec<Scores> =
        View::ALL.into_iter().skip(1).map(|view| Scores { view, rows: Vec::new() }).collect();
    let is_chosen =
        |case: &&HostCase| chosen.is_empty() || chosen.iter().any(|start| case.name.starts_with(start.as_str()));
    for case in ALL.iter().filter(is_chosen) {
        for congestion in ["cubic", "bbr", "reno"] {
            for round in 0..rounds {
                let name = format!("{}-{congestion}-{round}", case.name);
                let run = match document(&directory.join(format!("{name}.json")), case, congestion, binary) {
                    Ok(run) => run,
                    Err(error) => {
                        println!("SKIPPED {name}: {error:#}");
                        continue;
                    }
                };
                for scores in &mut scores {
                    scores.rows.push(row(&name, case, &run, scores.view));
                }
            }
        }
    }
    Ok(scores)
}

fn row(name: &str, case: &HostCase, run: &RunDocument, view: View) -> Row {
    let mut accept: Vec<Accept> = case.accept.iter().map(|&cause| Accept { cause, from: View::BothHosts }).collect();
    // At the sender, a receiver without CPU time, a slow reader and a small buffer all appear as a closed window.
    if matches!(case.truth, "receiver-cpu" | "slow-reader") {
        accept.extend(["receiver-window", "slow-reader"].map(|cause| Accept { cause, from: View::SenderOnly }));
    }
    let predicted = run_verdict(run, view);
    let score = Score::new(case.truth, &accept, view, &predicted);
    Row { name: name.to_owned(), truth: case.truth, predicted, score }
}

fn document(path: &Path, case: &HostCase, congestion: &str, binary: Option<&Path>) -> Result<RunDocument> {
    if !path.is_file() {
        let binary = binary.context("it has no document, and --offline runs nothing")?;
        measure(path, case, congestion, binary)?;
    }
    let text = fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
    let run: RunDocument =
        serde_json::from_slice(&text).with_context(|| format!("cannot read {}", path.display()))?;
    ensure!(run.status == Status::Complete, "the run was cut short");
    Ok(run)
}

fn measure(path: &Path, case: &HostCase, congestion: &str, binary: &Path) -> Result<()> {
    let cores = cores()?;
    let known = fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control").unwrap_or_default();
    ensure!(known.split_whitespace().any(|name| name == congestion), "this kernel has no {congestion}");
    if matches!(case.truth, "sender-cpu" | "receiver-cpu") {
        ensure_idle()?;
    }
    let quota = |end| {
        if case.contention == CpuContention::Quota(end) { Quota::new().map(Some) } else { Ok(None) }
    };
    let (sender_quota, receiver_quota) = (quota(Side::Sender)?, quota(Side::Receiver)?);
    let port = net::free_port()?;
    let mut command = on_core(cores.1, binary, receiver_quota.as_ref());
    command.args(["serve", "--listen", &format!("127.0.0.1:{port}"), "--no-iperf3", "--quiet"]);
    let server = Running::start(&mut command)?.until("listening", |_| net::is_listening(port))?;
    let _burden: Vec<Running> = match case.contention {
        CpuContention::BusyLoops(end) => {
            let core = if end == Side::Sender { cores.0 } else { cores.1 };
            (0..BUSY_LOOPS).map(|_| busy_loop(core)).collect::<Result<_>>()?
        }
        _ => Vec::new(),
    };
    let mut command = on_core(cores.0, binary, sender_quota.as_ref());
    command
        .args([
            "run",
            &format!("127.0.0.1:{port}"),
            "--quiet",
            "-t",
            &SECONDS.to_string(),
            "-C",
            congestion,
            "--json",
        ])
        .arg(path)
        .args(case.arguments);
    let finished = run(&mut command, LIMIT)?;
    ensure!(
        matches!(finished.status.code(), Some(0 | 1)) && path.is_file(),
        "{}: {}",
        finished.status,
        finished.last_line()
    );
    server.stop(nix::sys::signal::Signal::SIGTERM)?;
    Ok(())
}

/// Returns an error if other programs keep the cores busy.
fn ensure_idle() -> Result<()> {
    let read = || fs::read_to_string("/proc/stat").context("cannot read /proc/stat");
    let before = read()?;
    std::thread::park_timeout(IDLE_SAMPLE_TIME);
    let idle = idle_share(&before, &read()?);
    ensure!(
        idle >= MIN_IDLE_SHARE,
        "other programs keep the cores busy ({:.0} % idle, threshold ≥ 80 %)",
        idle * 100.0
    );
    Ok(())
}

/// Idle time (including iowait) divided by total time between two readings of `/proc/stat`, 0..=1.
fn idle_share(before: &str, after: &str) -> f64 {
    let ticks = |text: &str| -> Vec<u64> {
        let first = text.lines().next().unwrap_or_default();
        first.split_whitespace().skip(1).filter_map(|ticks| ticks.parse().ok()).collect()
    };
    let moved: Vec<u64> =
        ticks(before).iter().zip(ticks(after)).map(|(before, after)| after.saturating_sub(*before)).collect();
    let idle: u64 = moved.iter().skip(3).take(2).sum();
    // Guest time is already included in user time.
    let all: u64 = moved.iter().take(8).sum();
    if all == 0 { 0.0 } else { idle as f64 / all as f64 }
}

/// Returns two cores that this process may use.
fn cores() -> Result<(u32, u32)> {
    let status = fs::read_to_string("/proc/self/status").context("cannot read /proc/self/status")?;
    let list = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:")).unwrap_or_default();
    let cores = listed(list);
    ensure!(cores.len() >= 2, "two ends need two cores");
    Ok((cores[0], cores[1]))
}

/// Parses a kernel list such as `0-2,5`.
fn listed(list: &str) -> Vec<u32> {
    list.trim()
        .split(',')
        .filter_map(|range| {
            let (first, last) = range.split_once('-').unwrap_or((range, range));
            Some(first.parse::<u32>().ok()?..=last.parse::<u32>().ok()?)
        })
        .flatten()
        .collect()
}

/// Runs a program on one core, in a control group if given.
fn on_core(core: u32, program: &Path, quota: Option<&Quota>) -> Command {
    let mut command = Command::new("sh");
    let enter = quota.map(|quota| format!("echo $$ > '{}/cgroup.procs' && ", quota.0.display())).unwrap_or_default();
    command.args(["-c", &format!("{enter}exec taskset -c {core} \"$0\" \"$@\"")]).arg(program);
    command
}

fn busy_loop(core: u32) -> Result<Running> {
    Running::start(Command::new("taskset").args(["-c", &core.to_string(), "sh", "-c", "while :; do :; done"]))
}

/// A control group with a CPU quota, removed when dropped.
struct Quota(PathBuf);

impl Quota {
    fn new() -> Result<Self> {
        let own = format!("landspeed-bench-{}", std::process::id());
        // cgroup v2 if it has the cpu controller, else v1.
        let unified = Path::new("/sys/fs/cgroup");
        let controllers = fs::read_to_string(unified.join("cgroup.controllers")).unwrap_or_default();
        let is_unified = controllers.split_whitespace().any(|name| name == "cpu");
        let directory = if is_unified { unified.join(own) } else { unified.join("cpu").join(own) };
        fs::create_dir(&directory).with_context(|| format!("cannot create {}", directory.display()))?;
        let quota = Self(directory);
        let at = |file: &str, text: String| {
            fs::write(quota.0.join(file), text)
                .with_context(|| format!("cannot write {}", quota.0.join(file).display()))
        };
        if is_unified {
            at("cpu.max", format!("{QUOTA_US} {PERIOD_US}"))?;
        } else {
            at("cpu.cfs_period_us", PERIOD_US.to_string())?;
            at("cpu.cfs_quota_us", QUOTA_US.to_string())?;
        }
        Ok(quota)
    }
}

impl Drop for Quota {
    fn drop(&mut self) {
        // A reaped process may leave its group a moment later.
        for _ in 0..50 {
            if fs::remove_dir(&self.0).is_ok() {
                return;
            }
            std::thread::park_timeout(Duration::from_millis(20));
        }
        println!("cannot remove {}", self.0.display());
    }
}

#[cfg(test)]
mod tests {
    use super::{idle_share, listed};

    #[test]
    fn kernel_cpu_lists_are_parsed() {
        assert_eq!(listed("0-2,5\n"), [0, 1, 2, 5]);
        assert_eq!(listed(" 1"), [1]);
        assert!(listed("").is_empty());
    }

    #[test]
    fn idle_share_includes_iowait_and_excludes_guest_time() {
        let before = "cpu  100 0 100 1000 0 0 0 0 0 0\n";
        let after = "cpu  110 0 110 1070 10 0 0 0 5 0\ncpu0 1 1 1 1\n";
        assert!((idle_share(before, after) - 0.8).abs() < 1e-9);
        assert!(idle_share(before, before).abs() < 1e-9);
    }
}
