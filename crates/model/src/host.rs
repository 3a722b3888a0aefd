//! Host snapshots, and host counters and CPU use during a test.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Configuration of a host at the start of a test.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct HostSnapshot {
    /// Host name.
    pub hostname: String,
    /// Kernel release (`uname -r`).
    pub kernel_release: String,
    /// Kernel version (`uname -v`).
    pub kernel_version: String,
    /// Machine architecture (`uname -m`).
    pub machine: String,
    /// Operating system (`PRETTY_NAME` of os-release).
    pub os: Option<String>,
    /// CPU model.
    pub cpu_model: Option<String>,
    /// Number of cores online.
    pub cores_online: u32,
    /// NUMA nodes and their cores.
    pub numa: Vec<NumaNode>,
    /// Frequency scaling; `None` if the kernel has no cpufreq policy.
    pub governor: Option<Governor>,
    /// Simultaneous multithreading: `on`, `off`, `notsupported`.
    pub smt: Option<String>,
    /// Hypervisor or container if detected (`kvm`, `microsoft`, `docker` …).
    pub virtualization: Option<String>,
    /// Memory, bytes.
    pub memory_bytes: u64,
    /// Kernel timer frequency (`CONFIG_HZ`), Hz; `None` if unknown.
    pub clock_ticks_per_s: Option<u32>,
    /// Interface the test's traffic uses.
    pub nic: Option<NicSnapshot>,
    /// Sysctls relevant to a transfer, by name; those the kernel does not have are not listed.
    pub sysctls: BTreeMap<String, String>,
    /// Congestion controls available to unprivileged processes (`tcp_allowed_congestion_control`).
    pub congestion_available: Vec<String>,
    /// Values that could not be read, by name, with the reason.
    pub unavailable: BTreeMap<String, String>,
}

/// One NUMA node.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct NumaNode {
    /// Node number.
    pub id: u32,
    /// CPUs of the node in kernel list format (`0-7,16-23`).
    pub cpus: String,
}

/// Frequency scaling of core 0.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Governor {
    /// Scaling driver (`intel_pstate`).
    pub driver: String,
    /// Governor of core 0.
    pub governor: String,
    /// Minimum frequency (`scaling_min_freq`), kHz.
    pub min_khz: Option<u64>,
    /// Maximum frequency (`scaling_max_freq`), kHz.
    pub max_khz: Option<u64>,
}

/// One network interface.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct NicSnapshot {
    /// Interface name (`eth0`).
    pub name: String,
    /// Interface index.
    pub ifindex: u32,
    /// Kernel driver.
    pub driver: Option<String>,
    /// Driver version.
    pub driver_version: Option<String>,
    /// Firmware version.
    pub firmware: Option<String>,
    /// Bus address (`0000:3b:00.0`).
    pub bus: Option<String>,
    /// NUMA node of the device.
    pub numa_node: Option<i32>,
    /// Link speed, bits/s.
    pub speed_bps: Option<u64>,
    /// MTU, bytes.
    pub mtu_bytes: u32,
    /// Root queueing discipline and, for multi-queue roots, its leaves (`mq`, `fq` …).
    pub qdiscs: Vec<String>,
    /// `txqueuelen`, packets.
    pub tx_queue_len: Option<u32>,
    /// Offloads by kernel name, on or off (`tx-tcp-segmentation`, `tx-udp-segmentation`, `rx-gro`, `rx-lro`,
    /// `rx-checksum`, `tx-nocache-copy` …), without those the device cannot have.
    pub offloads: BTreeMap<String, bool>,
    /// Receive ring: current and maximum size, entries.
    pub rx_ring: Option<(u32, u32)>,
    /// Transmit ring: current and maximum size, entries.
    pub tx_ring: Option<(u32, u32)>,
    /// Combined channels: current and maximum number.
    pub channels: Option<(u32, u32)>,
    /// `gso_max_size`, bytes.
    pub gso_max_size_bytes: Option<u32>,
    /// `gro_max_size`, bytes.
    pub gro_max_size_bytes: Option<u32>,
}

impl NicSnapshot {
    /// Returns the link rate, bits/s; `None` for virtual interfaces, whose drivers report an arbitrary speed.
    pub fn line_rate_bps(&self) -> Option<u64> {
        const VIRTUAL_DRIVERS: &[&str] =
            &["veth", "virtio_net", "tun", "dummy", "bridge", "loopback", "netdevsim", "ifb"];
        if self.name == "lo" || VIRTUAL_DRIVERS.contains(&self.driver.as_deref().unwrap_or_default()) {
            return None;
        }
        self.speed_bps.filter(|&speed| speed > 0)
    }
}

/// Activity of a host during a test.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct HostSeries {
    /// Samples of CPU use and softnet counters; each covers the span since the previous one.
    pub samples: Vec<HostSample>,
    /// SNMP and TcpExt counters that changed during the test (`Tcp.RetransSegs`, `TcpExt.TCPTimeouts`,
    /// `Udp.RcvbufErrors` …).
    pub snmp: Vec<CounterDelta>,
    /// NIC counters (`ethtool -S` and standard statistics) that changed during the test.
    pub nic: Vec<CounterDelta>,
    /// Queueing disciplines of the interface, counters of the whole test.
    pub qdiscs: Vec<QdiscDelta>,
    /// Classes with a rate (`htb`) of these disciplines, counters of the whole test, children included.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub classes: Vec<QdiscDelta>,
    /// Softnet counters of all cores, whole test.
    pub softnet: SoftnetDelta,
    /// Softnet, interrupts and idle states of each core, whole test; only cores with a counter that changed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub core_totals: Vec<CoreTotals>,
    /// Interrupts of the interface's queues, whole test; only lines that changed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub nic_interrupts: Vec<InterruptDelta>,
    /// Page allocations of each NUMA node, whole test; only nodes with a counter that changed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub numa: Vec<NumaDelta>,
    /// CPU and memory pressure (PSI stall time); `None` if the kernel does not have PSI.
    pub pressure: Option<PressureDeltas>,
    /// CPU quota of landspeed's control group or of the ancestor that was throttled most, whole test; `None` without
    /// a quota, or if `unavailable` has `quota`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quota: Option<QuotaUse>,
    /// TCP memory in use at the end of the test, as a ratio to the pressure threshold of `tcp_mem`.
    pub tcp_mem_used_ratio: Option<f64>,
    /// CPU time used by the sampler, nanoseconds.
    pub sampler_cpu_ns: u64,
    /// Spans in which the sampler did not run on schedule: its process was stopped, had no core, or the host was
    /// paused. The samples before and after a span cover it as a sum.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sampler_gaps: Vec<TimeSpan>,
    /// Values that could not be read, by name, with the reason.
    pub unavailable: BTreeMap<String, String>,
}

/// CPU quota (CFS bandwidth control) of a control group, and its throttling.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct QuotaUse {
    /// Path of the control group with the quota.
    pub group: String,
    /// Its directory, such as `/sys/fs/cgroup/a.slice`; empty in documents that did not record it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub directory: String,
    /// Quota, cores.
    pub cores: f64,
    /// Enforcement periods in which the group ran (`nr_periods`).
    pub periods: u64,
    /// Periods in which the quota was used up (`nr_throttled`).
    pub throttled_periods: u64,
}

/// A span of a test's timeline.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TimeSpan {
    /// Start, nanoseconds after the agreed start.
    pub start_ns: u64,
    /// End, nanoseconds after the agreed start.
    pub end_ns: u64,
}

/// Activity of a host in one sampling interval.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct HostSample {
    /// Start of the interval, nanoseconds after the agreed start; negative if before it.
    pub start_ns: i64,
    /// End of the interval, nanoseconds after the agreed start.
    pub end_ns: i64,
    /// CPU use of each core, by core number; `None` for an offline core.
    pub cores: Vec<Option<CoreUse>>,
    /// Frequency of each core, MHz; 0 if unknown. Read about once per second: empty in other samples, and if the
    /// kernel does not report frequencies.
    pub mhz: Vec<f32>,
    /// Softnet counters of all cores in the interval.
    pub softnet: SoftnetDelta,
}

/// Shares of one core's time in an interval, 0..=1. The sum is 1 unless kernel ticks did not cover the interval.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CoreUse {
    /// User mode, nice included.
    pub user: f32,
    /// Kernel mode.
    pub system: f32,
    /// Softirqs (network processing).
    pub softirq: f32,
    /// Hardware interrupts.
    pub irq: f32,
    /// Steal time: taken by the hypervisor.
    pub steal: f32,
    /// Idle while waiting for I/O.
    pub iowait: f32,
    /// Idle time.
    pub idle: f32,
}

impl CoreUse {
    /// Returns the busy share: everything except idle and I/O wait, 0..=1.
    pub fn busy(&self) -> f32 {
        self.user + self.system + self.softirq + self.irq + self.steal
    }
}

/// Counters of `/proc/net/softnet_stat` over a span.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SoftnetDelta {
    /// Packets processed.
    pub processed: u64,
    /// Packets dropped because the backlog was full.
    pub dropped: u64,
    /// Polls that ended early because budget or time ran out.
    pub time_squeeze: u64,
    /// Times the core was woken by another to process packets (RPS, RFS).
    pub received_rps: u64,
    /// Packets dropped by the flow limit.
    pub flow_limit: u64,
}

/// Counters of one core over a test.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CoreTotals {
    /// Core number.
    pub core: u32,
    /// The core's row of `/proc/net/softnet_stat`.
    pub softnet: SoftnetDelta,
    /// Hardware interrupts, local timer and inter-processor interrupts included (`/proc/interrupts`). `None`: not
    /// read.
    pub interrupts: Option<u64>,
    /// NET_RX softirqs (`/proc/softirqs`). `None`: not read.
    pub net_rx_softirqs: Option<u64>,
    /// Idle states the core entered (`/sys/devices/system/cpu/cpuN/cpuidle`).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub idle_states: Vec<IdleStateDelta>,
}

/// Residency of one core in one idle state over a test.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct IdleStateDelta {
    /// Name of the state (`POLL`, `C1`, `C6` …).
    pub name: String,
    /// Exit latency as reported by the cpuidle driver, microseconds.
    pub exit_latency_us: Option<u32>,
    /// Time in the state / duration of the test. The kernel adds the time when the core leaves the state, so a
    /// residency that began before the test can make it exceed 1.
    pub share: f64,
    /// Number of entries into the state.
    pub entries: u64,
}

/// Interrupts of one line of `/proc/interrupts` over a test.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct InterruptDelta {
    /// Label of the line in `/proc/interrupts`, a number.
    pub line: String,
    /// Action names (`eth0-TxRx-3`, `virtio0-input.0` …).
    pub name: String,
    /// Cores that handled it: core number and number of interrupts.
    pub cores: Vec<(u32, u64)>,
}

/// Page allocations of one NUMA node over a test, pages (`/sys/devices/system/node/nodeN/numastat`).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct NumaDelta {
    /// Node number.
    pub node: u32,
    /// Allocated on this node as intended.
    pub numa_hit: u64,
    /// Allocated on this node although another node was preferred.
    pub numa_miss: u64,
    /// Intended for this node, allocated on another.
    pub numa_foreign: u64,
    /// Interleaved pages allocated on this node as intended.
    pub interleave_hit: u64,
    /// Allocated on this node by a process running on it.
    pub local_node: u64,
    /// Allocated on this node by a process running on another node.
    pub other_node: u64,
}

/// A counter that changed during a test.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CounterDelta {
    /// Name of the counter in the kernel's spelling.
    pub name: String,
    /// Change over the test; negative for a gauge that fell.
    pub delta: i64,
}

/// Counters of one queueing discipline, or of a class of one, over a test.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct QdiscDelta {
    /// Kind (`fq`, `htb`, `mq` …).
    pub kind: String,
    /// Handle as printed by `tc` (`8001:`).
    pub handle: String,
    /// Parent as printed by `tc` (`root`, `1:1` …).
    pub parent: String,
    /// Bytes sent.
    pub bytes: u64,
    /// Packets sent.
    pub packets: u64,
    /// Packets dropped.
    pub drops: u64,
    /// Over-limit events (`overlimits` of `tc -s qdisc`).
    pub overlimits: u64,
    /// Packets requeued.
    pub requeues: u64,
    /// Backlog at the end, bytes.
    pub backlog_bytes: u64,
    /// Rate of `tbf`, or `ceil` of an `htb` class: all packets together pass no faster, bits/s. Null for other kinds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shaped_bps: Option<u64>,
}

impl QdiscDelta {
    /// Whether `drops` counts packets that the interface was to send, each once: a root counts what its children drop, too,
    /// and `clsact` what its filters drop.
    pub fn counts_egress_drops(&self) -> bool {
        self.parent == "root" || self.kind == "clsact"
    }

    /// Whether `drops` counts received packets, dropped by filters (a policer) before IP.
    pub fn counts_ingress_drops(&self) -> bool {
        self.parent == "ingress"
    }
}

/// Pressure stall time over a test, microseconds (PSI, `/proc/pressure`).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PressureDeltas {
    /// Time in which at least one task waited for a CPU.
    pub cpu_some_us: u64,
    /// Time in which at least one task waited for memory.
    pub memory_some_us: u64,
}
