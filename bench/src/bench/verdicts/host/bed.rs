//! The test bed: client, router and server in network namespaces of this machine, joined by veth links.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use landspeed_sys::clock;
use landspeed_testkit::netns::{Namespace, veth};
use landspeed_testkit::pair::{CpuLoad, Pair};
use landspeed_testkit::process::{Process, signal};

use super::SECONDS;
use super::cases::{Contention, End, Midway, Setup};

/// Time limit of a run, seconds.
const LIMIT_S: u64 = 60;
/// Period of CPU quotas, µs.
const PERIOD_US: u32 = 100_000;

/// Runs `landspeed run` under a setup beside `loops` busy loops and writes its document to `path`.
///
/// # Panics
/// If the kernel rejects a part of the setup.
pub fn measure(path: &Path, setup: &Setup, congestion: &str, loops: usize, binary: &Path) -> Result<()> {
    let namespace = |name| Namespace::new(name).map_err(anyhow::Error::msg);
    let (client, router, server) = (namespace("client")?, namespace("router")?, namespace("server")?);
    let left = veth(&client, &router, "10.3.1.1/24", "10.3.1.2/24");
    let right = veth(&router, &server, "10.3.2.1/24", "10.3.2.2/24");
    client.exec(["ip", "route", "add", "default", "via", "10.3.1.2"]);
    server.exec(["ip", "route", "add", "default", "via", "10.3.2.1"]);
    router.forward();
    for (namespace, commands, interface) in
        [(&client, &setup.client, &left.a), (&router, &setup.router, &right.a), (&server, &setup.server, &right.b)]
    {
        for command in commands {
            namespace.exec(["sh", "-c", &command.replace("OUT", interface)]);
        }
    }
    let cores = landspeed_sys::thread::allowed_cores();
    ensure!(cores.len() >= 2, "two ends need two cores");
    let pair = Pair::across_with(binary, &client, &server, "10.3.2.2", &["--no-iperf3", "--quiet"]);
    let _loads: Vec<CpuLoad> = (0..loops).map(|number| CpuLoad::on(cores[number % cores.len()], 1)).collect();
    let congestion = if congestion.is_empty() { String::new() } else { format!("-C {congestion}") };
    let run = || {
        pair.start_run(&format!("--quiet -t {SECONDS} {congestion} {} --json {}", setup.arguments, path.display()))
    };
    let (run, _held) = contend(setup.contention, &cores, pair.server_id(), run)?;
    if setup.midway != Midway::Nothing {
        // Past the set-up, before the end.
        clock::sleep_until(clock::monotonic_ns() + u64::from(SECONDS) * 700_000_000);
        match setup.midway {
            Midway::ServerKilled => signal(pair.server_id(), "KILL"),
            _ => router.nft("table ip down { chain forward { type filter hook forward priority 0; drop; }; }"),
        }
    }
    let ended = run.end(LIMIT_S);
    ensure!(path.is_file(), "exit status {} without a document: {}", ended.code, ended.stderr.trim());
    Ok(())
}

/// Holds a contention while it exists.
#[expect(dead_code, reason = "kept for what dropping it ends")]
enum Held {
    Nothing,
    Quota(Quota),
    RealTime(RealTime),
}

/// Starts the run under a contention.
fn contend(
    contention: Contention,
    cores: &[u32],
    server: u32,
    run: impl FnOnce() -> Process,
) -> Result<(Process, Held)> {
    match contention {
        Contention::None => Ok((run(), Held::Nothing)),
        Contention::OneCore => {
            pin(server, cores[0])?;
            let run = run();
            pin(run.id(), cores[0])?;
            Ok((run, Held::Nothing))
        }
        Contention::RealTime(end) => {
            // Each end has a core: the priority must preempt one of them.
            pin(server, cores[1])?;
            let held = RealTime::start(if end == End::Sender { cores[0] } else { cores[1] })?;
            let run = run();
            pin(run.id(), cores[0])?;
            Ok((run, Held::RealTime(held)))
        }
        Contention::Quota(end, percent) => {
            let quota = Quota::new(percent)?;
            if end == End::Receiver {
                quota.add(server)?;
            }
            let run = run();
            if end == End::Sender {
                quota.add(run.id())?;
            }
            Ok((run, Held::Quota(quota)))
        }
    }
}

/// Pins all threads of a process to a core.
fn pin(id: u32, core: u32) -> Result<()> {
    let pinned = Command::new("taskset").args(["-a", "-c", "-p", &core.to_string(), &id.to_string()]).output();
    ensure!(pinned.context("cannot run taskset")?.status.success(), "cannot pin process {id} to core {core}");
    Ok(())
}

/// A busy loop of real-time priority; ends when dropped.
struct RealTime(Process);

impl RealTime {
    fn start(core: u32) -> Result<Self> {
        let mut command = Command::new("chrt");
        command.args(["-f", "10", "taskset", "-c", &core.to_string(), "sh", "-c", "while :; do :; done"]);
        let mut process = Process::start(command);
        clock::sleep_until(clock::monotonic_ns() + 100_000_000);
        ensure!(!process.has_ended(), "no real-time priority: {}", process.stderr().trim());
        Ok(Self(process))
    }
}

impl Drop for RealTime {
    fn drop(&mut self) {
        self.0.kill();
    }
}

/// A control group with a CPU quota, removed when dropped.
struct Quota(PathBuf);

impl Quota {
    /// Allows `percent` of one core.
    fn new(percent: u32) -> Result<Self> {
        let own = format!("landspeed-bench-{}", std::process::id());
        // cgroup v2 if it has the cpu controller, else v1.
        let unified = Path::new("/sys/fs/cgroup");
        let controllers = fs::read_to_string(unified.join("cgroup.controllers")).unwrap_or_default();
        let is_unified = controllers.split_whitespace().any(|name| name == "cpu");
        let directory = if is_unified { unified.join(own) } else { unified.join("cpu").join(own) };
        fs::create_dir(&directory).with_context(|| format!("cannot create {}", directory.display()))?;
        let quota = Self(directory);
        let quota_us = PERIOD_US / 100 * percent;
        if is_unified {
            quota.write("cpu.max", &format!("{quota_us} {PERIOD_US}"))?;
        } else {
            quota.write("cpu.cfs_period_us", &PERIOD_US.to_string())?;
            quota.write("cpu.cfs_quota_us", &quota_us.to_string())?;
        }
        Ok(quota)
    }

    fn add(&self, id: u32) -> Result<()> {
        self.write("cgroup.procs", &id.to_string())
    }

    fn write(&self, file: &str, text: &str) -> Result<()> {
        let path = self.0.join(file);
        fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))
    }
}

impl Drop for Quota {
    fn drop(&mut self) {
        // Threads return to the parent group; a reaped process may leave its group a moment later.
        let parent = self.0.parent().map(|parent| parent.join("cgroup.procs"));
        for _ in 0..50 {
            let members = fs::read_to_string(self.0.join("cgroup.procs")).unwrap_or_default();
            for (member, parent) in members.lines().zip(std::iter::repeat(&parent)) {
                let _ = parent.as_ref().map(|parent| fs::write(parent, member));
            }
            if fs::remove_dir(&self.0).is_ok() {
                return;
            }
            std::thread::park_timeout(Duration::from_millis(20));
        }
        println!("cannot remove {}", self.0.display());
    }
}
