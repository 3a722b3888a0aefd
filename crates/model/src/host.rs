//! What a host is, and what it did meanwhile.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A host at the start of a test.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct HostSnapshot {
    /// Host name.
    pub hostname: String,
    /// Kernel release (`uname -r`).
    pub kernel_release: String,
    /// Kernel version (`uname -v`).
    pub kernel_version: String,
    /// Machine (`uname -m`).
    pub machine: String,
    /// Operating system (`PRETTY_NAME` of os-release).
    pub os: Option<String>,
    /// CPU model.
    pub cpu_model: Option<String>,
    /// Cores online.
    pub cores_online: u32,
    /// NUMA nodes and their cores.
    pub numa: Vec<NumaNode>,
    /// Frequency governor, when the kernel exposes one.
    pub governor: Option<Governor>,
    /// Simultaneous multithreading: `on`, `off`, `notsupported`.
    pub smt: Option<String>,
    /// Hypervisor or container, when detectable (`kvm`, `microsoft`, `docker` …).
    pub virtualization: Option<String>,
    /// Memory, bytes.
    pub memory_bytes: u64,
    /// Kernel timer frequency (`CONFIG_HZ`), when it is known.
    pub clock_ticks_per_s: Option<u32>,
    /// Interface the test's traffic uses.
    pub nic: Option<NicSnapshot>,
    /// Sysctls that matter to a transfer, as text; absent ones are not listed.
    pub sysctls: BTreeMap<String, String>,
    /// Congestion controls available to unprivileged processes.
    pub congestion_available: Vec<String>,
    /// What could not be read, and why.
    pub unavailable: BTreeMap<String, String>,
}

/// One NUMA node.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct NumaNode {
    /// Node number.
    pub id: u32,
    /// Its cores in kernel list format (`0-7,16-23`).
    pub cpus: String,
}

/// Frequency scaling.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Governor {
    /// Scaling driver.
    pub driver: String,
    /// Governor of core 0.
    pub governor: String,
    /// Lowest frequency, kHz.
    pub min_khz: Option<u64>,
    /// Highest frequency, kHz.
    pub max_khz: Option<u64>,
}

/// One network interface.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct NicSnapshot {
    /// Name.
    pub name: String,
    /// Index.
    pub ifindex: u32,
    /// Kernel driver.
    pub driver: Option<String>,
    /// Driver version.
    pub driver_version: Option<String>,
    /// Firmware version.
    pub firmware: Option<String>,
    /// Bus address.
    pub bus: Option<String>,
    /// NUMA node of the device.
    pub numa_node: Option<i32>,
    /// Link speed, bits/s.
    pub speed_bps: Option<u64>,
    /// MTU, bytes.
    pub mtu_bytes: u32,
    /// Root queueing discipline and, for multi-queue roots, the leaves' (`mq`, `fq` …).
    pub qdiscs: Vec<String>,
    /// `txqueuelen`.
    pub tx_queue_len: Option<u32>,
    /// Offloads by the kernel's name, on or off (`tx-tcp-segmentation`, `tx-udp-segmentation`, `rx-gro`, `rx-lro`,
    /// `rx-checksum`, `tx-nocache-copy` …); those the device never has are not listed.
    pub offloads: BTreeMap<String, bool>,
    /// Receive ring, entries now and at most.
    pub rx_ring: Option<(u32, u32)>,
    /// Transmit ring, entries now and at most.
    pub tx_ring: Option<(u32, u32)>,
    /// Combined channels now and at most.
    pub channels: Option<(u32, u32)>,
    /// `gso_max_size`, bytes.
    pub gso_max_size_bytes: Option<u32>,
    /// `gro_max_size`, bytes.
    pub gro_max_size_bytes: Option<u32>,
}

impl NicSnapshot {
    /// Rate of the link, bits/s; `None` where the driver only makes one up.
    pub fn line_rate_bps(&self) -> Option<u64> {
        const INVENTED: &[&str] = &["veth", "virtio_net", "tun", "dummy", "bridge", "loopback", "netdevsim", "ifb"];
        if self.name == "lo" || INVENTED.contains(&self.driver.as_deref().unwrap_or_default()) {
            return None;
        }
        self.speed_bps.filter(|&speed| speed > 0)
    }
}

/// What a host did during a test.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct HostSeries {
    /// Readings; each covers the span from the previous one.
    pub samples: Vec<HostSample>,
    /// SNMP and TcpExt counters that moved over the whole test (`Tcp.RetransSegs`, `TcpExt.TCPTimeouts`, `Udp.RcvbufErrors` …).
    pub snmp: Vec<CounterDelta>,
    /// NIC counters (`ethtool -S` and standard statistics) that moved.
    pub nic: Vec<CounterDelta>,
    /// Queueing disciplines of the interface over the whole test.
    pub qdiscs: Vec<QdiscDelta>,
    /// Softnet totals over the whole test.
    pub softnet: SoftnetDelta,
    /// Softnet, interrupts and idle states of each core over the whole test; only cores where a counter moved.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub core_totals: Vec<CoreTotals>,
    /// Interrupts of the interface's queues over the whole test; only lines that moved.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub nic_interrupts: Vec<InterruptDelta>,
    /// Page allocations of each NUMA node over the whole test; only nodes where a counter moved.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub numa: Vec<NumaDelta>,
    /// Memory and scheduling pressure (PSI stall time), where the kernel has it.
    pub pressure: Option<PressureDeltas>,
    /// Pages of TCP memory in use at the end over `tcp_mem`'s pressure threshold.
    pub tcp_mem_used_ratio: Option<f64>,
    /// Time the sampler itself used, nanoseconds.
    pub sampler_cpu_ns: u64,
    /// Spans in which the local sampler did not run although it was due: its process was stopped, had no core, or the
    /// host was paused. Nothing was read there; the readings around a span give its sum.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sampler_gaps: Vec<TimeSpan>,
    /// What could not be read, and why.
    pub unavailable: BTreeMap<String, String>,
}

/// A span of a test's timeline.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TimeSpan {
    /// Start, nanoseconds after the agreed start.
    pub start_ns: u64,
    /// End, nanoseconds.
    pub end_ns: u64,
}

/// One reading of a host.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct HostSample {
    /// Start of the span, nanoseconds after the agreed start (may be negative: before it).
    pub start_ns: i64,
    /// End of the span, nanoseconds.
    pub end_ns: i64,
    /// Use of each core; index is the core's number. A core that was offline is `None`.
    pub cores: Vec<Option<CoreUse>>,
    /// Frequency of each core, MHz, 0 for one without a reading. Read about once a second: empty in the samples
    /// between, and when the kernel does not say.
    pub mhz: Vec<f32>,
    /// Softnet of the span, all cores.
    pub softnet: SoftnetDelta,
}

/// Shares of one core's time in a span, 0..=1. They add up to 1 unless the kernel's ticks did not cover the span.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CoreUse {
    /// User and nice.
    pub user: f32,
    /// System.
    pub system: f32,
    /// Softirqs.
    pub softirq: f32,
    /// Hard interrupts.
    pub irq: f32,
    /// Stolen by the hypervisor.
    pub steal: f32,
    /// Waiting for I/O.
    pub iowait: f32,
    /// Idle.
    pub idle: f32,
}

impl CoreUse {
    /// Everything but idle and I/O wait, 0..=1.
    pub fn busy(&self) -> f32 {
        self.user + self.system + self.softirq + self.irq + self.steal
    }
}

/// `/proc/net/softnet_stat` over a span.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SoftnetDelta {
    /// Packets processed.
    pub processed: u64,
    /// Packets dropped: backlog full.
    pub dropped: u64,
    /// Times the budget ran out.
    pub time_squeeze: u64,
    /// Times another core woke this one to process packets (RPS, RFS).
    pub received_rps: u64,
    /// Packets dropped by the flow limit.
    pub flow_limit: u64,
}

/// What one core did over a test, besides the shares of its time.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CoreTotals {
    /// Core number.
    pub core: u32,
    /// Its row of `/proc/net/softnet_stat`.
    pub softnet: SoftnetDelta,
    /// Hard interrupts, those of the local timer and other cores included (`/proc/interrupts`). `None`: not read.
    pub interrupts: Option<u64>,
    /// NET_RX softirqs (`/proc/softirqs`). `None`: not read.
    pub net_rx_softirqs: Option<u64>,
    /// Idle states it was in (`/sys/devices/system/cpu/cpuN/cpuidle`).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub idle_states: Vec<IdleStateDelta>,
}

/// Residency of one core in one idle state over a test.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct IdleStateDelta {
    /// Its name (`POLL`, `C1`, `C6` …).
    pub name: String,
    /// Time to leave it, microseconds, as the driver says.
    pub exit_latency_us: Option<u32>,
    /// Time in it over the time of the test. The kernel adds the time when the core leaves the state, so a stay that began
    /// before the test can make it exceed 1.
    pub share: f64,
    /// Times it was entered.
    pub entries: u64,
}

/// Interrupts of one line over a test.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct InterruptDelta {
    /// Its label in `/proc/interrupts`, a number.
    pub line: String,
    /// Names of its actions (`eth0-TxRx-3`, `virtio0-input.0` …).
    pub name: String,
    /// Cores that handled it, and how often.
    pub cores: Vec<(u32, u64)>,
}

/// Page allocations of one NUMA node over a test, pages (`/sys/devices/system/node/nodeN/numastat`).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct NumaDelta {
    /// Node number.
    pub node: u32,
    /// Allocated here as intended.
    pub numa_hit: u64,
    /// Allocated here although another node was preferred.
    pub numa_miss: u64,
    /// Preferred here, allocated on another node.
    pub numa_foreign: u64,
    /// Interleaved, and allocated here as intended.
    pub interleave_hit: u64,
    /// Allocated here by a core of this node.
    pub local_node: u64,
    /// Allocated here by a core of another node.
    pub other_node: u64,
}

/// A counter that moved.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CounterDelta {
    /// Its name as the kernel gives it.
    pub name: String,
    /// By how much. Negative for gauges that fell.
    pub delta: i64,
}

/// One queueing discipline over a test.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct QdiscDelta {
    /// Kind (`fq`, `htb`, `mq` …).
    pub kind: String,
    /// Handle (`8001:`).
    pub handle: String,
    /// Parent (`root`, `1:1` …).
    pub parent: String,
    /// Bytes sent.
    pub bytes: u64,
    /// Packets sent.
    pub packets: u64,
    /// Packets dropped.
    pub drops: u64,
    /// Over-limit events.
    pub overlimits: u64,
    /// Requeues.
    pub requeues: u64,
    /// Backlog at the end, bytes.
    pub backlog_bytes: u64,
}

/// Pressure stall time over a test, microseconds (`/proc/pressure`).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PressureDeltas {
    /// Some task waited for a CPU.
    pub cpu_some_us: u64,
    /// Some task waited for memory.
    pub memory_some_us: u64,
}
