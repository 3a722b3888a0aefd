//! The machine that the tasks run on: installed programs, and properties that affect a measurement.

use std::path::PathBuf;
use std::process::Command;
use std::time::Instant;

use serde::Serialize;

/// Finds `program` in `RIVALS_BIN`, the directory of built rivals, `PATH`, /usr/sbin and /sbin, in this order.
pub fn find(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let rivals = std::env::var_os("RIVALS_BIN").map(PathBuf::from);
    rivals
        .into_iter()
        .chain([crate::bench::rivals::programs()])
        .chain(std::env::split_paths(&path))
        .chain(["/usr/sbin", "/sbin"].map(PathBuf::from))
        .map(|directory| directory.join(program))
        .find(|candidate| candidate.is_file())
}

/// Current time. The tasks time processes, not packets.
#[expect(clippy::disallowed_methods, reason = "tasks time processes, and have no clock of the product's")]
pub fn now() -> Instant {
    Instant::now()
}

/// Properties of the machine that a reader of benchmark figures needs.
#[derive(Debug, Clone, Serialize)]
pub struct Machine {
    /// `uname -srm`.
    pub kernel: String,
    /// CPU model.
    pub cpu: String,
    /// Cores this process may use.
    pub cores: usize,
    /// Memory, bytes.
    pub memory_bytes: u64,
    /// Hypervisor flag in /proc/cpuinfo.
    pub virtual_machine: bool,
    /// Frequency governor of core 0; `None` without cpufreq.
    pub governor: Option<String>,
    /// One-minute load average at the start of the run.
    pub load_at_start: f64,
    /// `net.core.rmem_max`, bytes.
    pub rmem_max_bytes: u64,
    /// Effective congestion control.
    pub congestion: String,
}

impl Machine {
    /// Reads the properties of this machine.
    pub fn read() -> Self {
        let cpuinfo = read("/proc/cpuinfo");
        let field = |name: &str| {
            let line = cpuinfo.lines().find(|line| line.starts_with(name))?;
            line.split_once(':').map(|(_, value)| value.trim().to_owned())
        };
        let memory_kib = read("/proc/meminfo")
            .lines()
            .find_map(|line| line.strip_prefix("MemTotal:")?.trim().strip_suffix("kB")?.trim().parse::<u64>().ok());
        let uname = Command::new("uname").arg("-srm").output();
        Self {
            kernel: uname.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned()).unwrap_or_default(),
            cpu: field("model name").unwrap_or_else(|| "unknown".to_owned()),
            cores: cores(),
            memory_bytes: memory_kib.unwrap_or(0) * 1024,
            virtual_machine: field("flags").is_some_and(|flags| flags.split(' ').any(|flag| flag == "hypervisor")),
            governor: std::fs::read_to_string("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor")
                .ok()
                .map(|governor| governor.trim().to_owned()),
            load_at_start: load(),
            rmem_max_bytes: read("/proc/sys/net/core/rmem_max").trim().parse().unwrap_or(0),
            congestion: read("/proc/sys/net/ipv4/tcp_congestion_control").trim().to_owned(),
        }
    }

    /// Returns warnings for readers of the figures.
    pub fn warnings(&self) -> Vec<String> {
        let mut warnings = Vec::new();
        if self.load_at_start > 0.2 * self.cores as f64 {
            warnings.push(format!("other programs run here: load {:.2} on {} cores", self.load_at_start, self.cores));
        }
        if self.virtual_machine {
            warnings.push("a virtual machine: its neighbours share its cores".to_owned());
        }
        if self.governor.as_deref().is_some_and(|governor| governor != "performance") {
            warnings.push(format!("frequency governor is {}", self.governor.as_deref().unwrap_or_default()));
        }
        warnings
    }
}

/// Number of cores this process may use.
pub fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// One-minute load average.
fn load() -> f64 {
    read("/proc/loadavg").split(' ').next().and_then(|word| word.parse().ok()).unwrap_or(0.0)
}

fn read(path: &str) -> String {
    std::fs::read_to_string(path).unwrap_or_default()
}
