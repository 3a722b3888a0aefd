//! `landspeed.facts/1`: facts about a host, the inputs of the checks. Each fact that is not known has its reason.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::NumaNode;

/// A fact: a value, or why there is none. "This kernel has no such setting" and "reading it was not permitted"
/// are different results and lead to different messages.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Fact<T> {
    /// The value.
    Known(T),
    /// The kernel, device or namespace does not have it; human-readable reason.
    Absent(String),
    /// It could not be read; human-readable reason.
    Unknown(String),
}

impl<T> Default for Fact<T> {
    fn default() -> Self {
        Self::Unknown("not looked at".into())
    }
}

impl<T> Fact<T> {
    /// Returns the value, if known.
    pub fn known(&self) -> Option<&T> {
        match self {
            Self::Known(value) => Some(value),
            Self::Absent(_) | Self::Unknown(_) => None,
        }
    }

    /// Converts the value of a known fact; keeps the reason of the others.
    pub fn map<U>(self, derive: impl FnOnce(T) -> U) -> Fact<U> {
        match self {
            Self::Known(value) => Fact::Known(derive(value)),
            Self::Absent(why) => Fact::Absent(why),
            Self::Unknown(why) => Fact::Unknown(why),
        }
    }

    /// Returns the fact with the value borrowed.
    pub fn as_ref(&self) -> Fact<&T> {
        match self {
            Self::Known(value) => Fact::Known(value),
            Self::Absent(why) => Fact::Absent(why.clone()),
            Self::Unknown(why) => Fact::Unknown(why.clone()),
        }
    }
}

/// Facts about one host at one time (`landspeed.facts/1`), read without privileges where the kernel allows it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Facts {
    /// Always `landspeed.facts/1`.
    pub schema: String,
    /// Time of collection, RFC 3339 UTC; empty for a recorded host without a time.
    pub taken: String,
    /// Duration of the collection, nanoseconds; 0 for a recorded host.
    pub collect_ns: u64,
    /// Whether root collected the facts; without root, facts may be unknown for lack of permission.
    pub root: bool,
    /// Host name.
    pub hostname: Fact<String>,
    /// Operating system (`PRETTY_NAME` of os-release).
    pub os: Fact<String>,
    /// Seconds since boot.
    pub uptime_s: Fact<u64>,
    /// Kernel version, command line and configuration.
    pub kernel: KernelFacts,
    /// Hypervisor and container.
    pub virtualization: VirtualizationFacts,
    /// CPUs, their frequencies and idle states.
    pub cpu: CpuFacts,
    /// Memory, bytes.
    pub memory_bytes: Fact<u64>,
    /// NUMA nodes and their cores.
    pub numa: Fact<Vec<NumaNode>>,
    /// Sysctls by name (`net.ipv4.tcp_rmem`), white space normalized to single spaces.
    pub sysctls: BTreeMap<String, Fact<String>>,
    /// Assignments in the sysctl.d directories and `/etc/sysctl.conf`, in the order `sysctl --system` applies them:
    /// the last assignment of a name wins.
    pub sysctl_files: Fact<Vec<SysctlAssignment>>,
    /// Network interfaces of this network namespace, without loopback.
    pub interfaces: Vec<InterfaceFacts>,
    /// Interface of the default route (IPv4 first).
    pub default_interface: Fact<String>,
    /// Hardware interrupts (`/proc/interrupts`).
    pub interrupts: Fact<Vec<Interrupt>>,
    /// Softnet totals since boot, all cores.
    pub softnet: Fact<SoftnetFacts>,
    /// SNMP, TcpExt and IpExt counters since boot (`TcpExt.TCPRcvQDrop`).
    pub counters: BTreeMap<String, u64>,
    /// Services that manage or change settings, by name: `tuned`, `NetworkManager`, `systemd-networkd`, `irqbalance`,
    /// `bpftune`, `chronyd`, `ntpd`, `systemd-timesyncd`, `ptp4l`, `phc2sys`, `power-profiles-daemon`, `thermald`,
    /// `cpupower` (a one-shot unit that sets the governor at boot: never `running`, its detail is `enabled`).
    pub services: BTreeMap<String, Fact<ServiceFacts>>,
    /// Control group of landspeed's process.
    pub cgroup: CgroupFacts,
    /// Clock source and synchronization.
    pub time: TimeFacts,
    /// Loaded kernel modules relevant to checks, with the version of those that have one (`mlx5_core`, `tcp_bbr`).
    pub modules: Fact<BTreeMap<String, Option<String>>>,
    /// Whether this is the initial network namespace; others lack some sysctls.
    pub first_network_namespace: Fact<bool>,
}

/// Kernel version, command line and configuration.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct KernelFacts {
    /// `uname -r`; empty if unknown.
    pub release: String,
    /// `uname -v`.
    pub version: String,
    /// `uname -m`.
    pub machine: String,
    /// `/proc/cmdline`.
    pub command_line: Fact<String>,
    /// Kernel configuration options relevant to checks, if the file is readable (`CONFIG_HZ` = `1000`).
    // `n` for `is not set`. Options that the file does not contain are not in the map.
    pub configuration: Fact<BTreeMap<String, String>>,
}

impl KernelFacts {
    /// Returns major and minor version; `None` if the release does not begin with them.
    pub fn number(&self) -> Option<(u32, u32)> {
        let mut parts = self.release.split(|c: char| !c.is_ascii_digit());
        Some((parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
    }

    /// Returns whether the kernel is at least this version; `None` if its version is unknown.
    pub fn at_least(&self, major: u32, minor: u32) -> Option<bool> {
        self.number().map(|number| number >= (major, minor))
    }

    /// Returns the state of a tristate or boolean configuration option.
    pub fn option(&self, name: &str) -> KernelOption {
        match self.configuration.known().and_then(|options| options.get(name)).map(String::as_str) {
            Some("y" | "m") => KernelOption::Built,
            Some("n") => KernelOption::NotSet,
            Some(_) | None => KernelOption::Unknown,
        }
    }

    /// Returns the value of `name=value` on the kernel command line, the last if repeated; `Some("")` for `name`
    /// without a value.
    pub fn parameter(&self, name: &str) -> Option<&str> {
        let words = self.command_line.known()?.split_whitespace();
        words.rev().find_map(|word| {
            let (key, value) = word.split_once('=').unwrap_or((word, ""));
            (key == name).then_some(value)
        })
    }
}

/// State of one kernel configuration option.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KernelOption {
    /// Built in (`y`) or as a module (`m`).
    Built,
    /// The configuration file contains `is not set`.
    NotSet,
    /// Unknown: the file is not readable or does not contain the option.
    Unknown,
}

/// Hypervisor and container of a host.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct VirtualizationFacts {
    /// Hypervisor: `kvm`, `vmware`, `microsoft`, `amazon` …; absent on bare metal.
    pub hypervisor: Fact<String>,
    /// Container runtime: `docker`, `lxc`, `podman` …; absent outside containers.
    pub container: Fact<String>,
    /// Share of CPU time stolen by the hypervisor since boot, 0..=1.
    pub steal_share: Fact<f64>,
}

/// CPUs, their frequencies and idle states.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CpuFacts {
    /// CPU model name.
    pub model: Fact<String>,
    /// Numbers of the logical CPUs online.
    pub online: Vec<u32>,
    /// Number of physical cores online.
    pub cores: Fact<u32>,
    /// Number of CPU packages (sockets).
    pub sockets: Fact<u32>,
    /// `/sys/devices/system/cpu/smt/control`: `on`, `off`, `forceoff`, `notsupported`, `notimplemented`.
    pub smt: Fact<String>,
    /// Frequency policies.
    pub policies: Fact<Vec<CpuPolicy>>,
    /// Whether turbo or boost is allowed.
    pub boost: Fact<bool>,
    /// Idle states of the first CPU.
    pub idle_states: Fact<Vec<IdleState>>,
    /// `cpuidle` driver (`intel_idle`, `acpi_idle`, `haltpoll`, `none`).
    pub idle_driver: Fact<String>,
    /// Minimum of `pm_qos_resume_latency_us` over all CPUs, microseconds: 0 if a CPU has `n/a` (no idle states
    /// allowed); absent if no CPU has a limit (all contain 0).
    pub resume_latency_us: Fact<u32>,
    /// Limit of all CPUs' wake-up latency by processes that keep `/dev/cpu_dma_latency` open, microseconds; absent
    /// without one.
    #[serde(default)]
    pub dma_latency_us: Fact<u32>,
    /// Mitigation status by vulnerability (`/sys/devices/system/cpu/vulnerabilities`).
    pub vulnerabilities: BTreeMap<String, String>,
    /// Isolated CPUs in kernel list format; absent without isolation.
    pub isolated: Fact<String>,
}

/// One cpufreq policy: CPUs that share a frequency.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CpuPolicy {
    /// Directory name (`policy0`).
    pub name: String,
    /// CPUs of the policy in kernel list format.
    pub cpus: String,
    /// `scaling_driver`.
    pub driver: String,
    /// `scaling_governor`.
    pub governor: String,
    /// `scaling_available_governors`.
    pub governors: Vec<String>,
    /// `energy_performance_preference`.
    pub energy_preference: Option<String>,
    /// `energy_performance_available_preferences`.
    pub energy_preferences: Vec<String>,
    /// `scaling_min_freq`, kHz.
    pub min_khz: Option<u64>,
    /// `scaling_max_freq`, kHz.
    pub max_khz: Option<u64>,
    /// `cpuinfo_max_freq`, kHz.
    pub hardware_max_khz: Option<u64>,
    /// `scaling_cur_freq`, kHz.
    pub current_khz: Option<u64>,
}

/// An idle state (C-state).
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct IdleState {
    /// Name of the state: `C1E`, `C6` …
    pub name: String,
    /// Exit latency, microseconds.
    pub latency_us: u64,
    /// Whether it is disabled in sysfs.
    pub disabled: bool,
}

/// One assignment in a sysctl file.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SysctlAssignment {
    /// Path of the file.
    pub path: String,
    /// Line number, from 1.
    pub line: u32,
    /// Name of the sysctl, with dots.
    pub name: String,
    /// Value, white space normalized to single spaces.
    pub value: String,
}

/// A network interface.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct InterfaceFacts {
    /// Interface name (`eth0`).
    pub name: String,
    /// Interface index.
    pub ifindex: u32,
    /// Kind of a virtual interface (`vlan`, `bond`, `bridge`, `veth`, `tun`); `None` for a hardware device.
    pub kind: Option<String>,
    /// Lower interfaces (ports of a bond or bridge, parent device of a VLAN).
    pub lower: Vec<String>,
    /// Bond or bridge that the interface is a port of; `None` without one.
    pub master: Option<String>,
    /// MAC address; empty if redacted.
    pub mac: String,
    /// IP addresses with prefix lengths.
    pub addresses: Vec<String>,
    /// `operstate` (`up`, `down`, `unknown` …).
    pub state: String,
    /// MTU, bytes.
    pub mtu_bytes: u32,
    /// Maximum MTU the driver supports, bytes.
    pub max_mtu_bytes: Fact<u32>,
    /// Link speed, bits/s.
    pub speed_bps: Fact<u64>,
    /// Whether the link is full duplex.
    pub full_duplex: Fact<bool>,
    /// Kernel driver and its versions.
    pub driver: Fact<DriverFacts>,
    /// PCI device and its link.
    pub pci: Fact<PciFacts>,
    /// Ring sizes, entries.
    pub rings: Fact<RingFacts>,
    /// Channels (`ethtool -l`).
    pub channels: Fact<ChannelFacts>,
    /// Interrupt coalescing (`ethtool -c`).
    pub coalescing: Fact<CoalescingFacts>,
    /// Pause frames (`ethtool -a`).
    pub pause: Fact<PauseFacts>,
    /// Offloads by kernel name (`tx-tcp-segmentation`), without those the device cannot have.
    pub features: Fact<BTreeMap<String, FeatureFacts>>,
    /// Receive-side scaling (`ethtool -x`).
    pub rss: Fact<RssFacts>,
    /// `gso_max_size`, bytes.
    pub gso_max_size_bytes: Fact<u32>,
    /// `gro_max_size`, bytes.
    pub gro_max_size_bytes: Fact<u32>,
    /// `gso_ipv4_max_size`, bytes (Linux 6.3 and later).
    pub gso_ipv4_max_size_bytes: Fact<u32>,
    /// `gro_ipv4_max_size`, bytes (Linux 6.3 and later).
    pub gro_ipv4_max_size_bytes: Fact<u32>,
    /// `tso_max_size`: limit of the device, bytes (Linux 5.19 and later).
    pub tso_max_size_bytes: Fact<u32>,
    /// `txqueuelen`, packets.
    pub tx_queue_len: Fact<u32>,
    /// Number of transmit queues.
    pub tx_queues: Fact<u32>,
    /// Number of receive queues.
    pub rx_queues: Fact<u32>,
    /// Queueing disciplines, root first.
    pub qdiscs: Fact<Vec<QdiscFacts>>,
    /// Packet steering of each queue (RPS, RFS, XPS).
    pub queues: Fact<Vec<QueueFacts>>,
    /// Interrupt numbers of the device (`device/msi_irqs`).
    pub interrupts: Vec<u32>,
    /// `gro_flush_timeout`, nanoseconds.
    pub gro_flush_timeout_ns: Fact<u64>,
    /// `napi_defer_hard_irqs`: empty polls before interrupts are enabled again.
    pub napi_defer_hard_irqs: Fact<u32>,
    /// Threaded NAPI (`threaded`).
    pub threaded_napi: Fact<bool>,
    /// Whether an XDP program is attached.
    pub xdp: Fact<bool>,
    /// Number of virtual functions: enabled, and maximum.
    pub virtual_functions: Fact<(u32, u32)>,
    /// Interface and `ethtool -S` statistics since the driver was loaded, by name.
    pub statistics: BTreeMap<String, u64>,
}

/// Driver of an interface.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DriverFacts {
    /// Driver name (`mlx5_core`).
    pub name: String,
    /// Driver version; in-tree drivers often report the kernel release.
    pub version: Option<String>,
    /// Firmware version of the device.
    pub firmware: Option<String>,
}

/// A PCI device and its link.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PciFacts {
    /// PCI address (`0000:3b:00.0`).
    pub address: String,
    /// Vendor and device id (`15b3:1017`).
    pub id: String,
    /// NUMA node; absent if the firmware does not report one.
    pub numa_node: Fact<u32>,
    /// CPUs local to the device, kernel list format.
    pub local_cpus: Fact<String>,
    /// Current link speed, GT/s per lane.
    pub speed_gts: Fact<f64>,
    /// Maximum link speed, GT/s per lane.
    pub max_speed_gts: Fact<f64>,
    /// Current link width, lanes.
    pub width: Fact<u32>,
    /// Maximum link width, lanes.
    pub max_width: Fact<u32>,
    /// Maximum read request size, bytes (device control register, bits 14:12).
    pub max_read_request_bytes: Fact<u32>,
    /// Maximum payload size, bytes (device control register, bits 7:5).
    pub max_payload_bytes: Fact<u32>,
    /// Whether relaxed ordering is enabled (device control register, bit 4).
    pub relaxed_ordering: Fact<bool>,
    /// Whether the device is a virtual function (SR-IOV).
    pub virtual_function: bool,
    /// Type of its IOMMU group's default domain (`identity`, `DMA`, `DMA-FQ`); absent without an IOMMU.
    pub iommu: Fact<String>,
}

/// Current and maximum value of a size or number.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Extent {
    /// Current value.
    pub now: u32,
    /// Maximum; 0 if the device has none of this kind.
    pub max: u32,
}

/// Ring sizes, entries (`ethtool -g`).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RingFacts {
    /// Receive ring.
    pub rx: Extent,
    /// Transmit ring.
    pub tx: Extent,
}

/// Number of channels by kind (`ethtool -l`).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ChannelFacts {
    /// Receive-only channels.
    pub rx: Extent,
    /// Transmit-only channels.
    pub tx: Extent,
    /// Channels with a receive and a transmit queue.
    pub combined: Extent,
}

/// Interrupt coalescing (`ethtool -c`); `None` if the driver does not have the parameter.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CoalescingFacts {
    /// Adaptive receive coalescing.
    pub adaptive_rx: Option<bool>,
    /// Adaptive transmit coalescing.
    pub adaptive_tx: Option<bool>,
    /// Receive delay, microseconds (`rx-usecs`).
    pub rx_us: Option<u32>,
    /// Received frames before an interrupt (`rx-frames`).
    pub rx_frames: Option<u32>,
    /// Transmit delay, microseconds (`tx-usecs`).
    pub tx_us: Option<u32>,
    /// Sent frames before an interrupt (`tx-frames`).
    pub tx_frames: Option<u32>,
}

/// Link-level flow control (IEEE 802.3x).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PauseFacts {
    /// Whether pause is autonegotiated.
    pub autonegotiate: bool,
    /// Whether received pause frames are obeyed.
    pub rx: bool,
    /// Whether pause frames are sent.
    pub tx: bool,
}

/// State of an offload (`ethtool -k`).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FeatureFacts {
    /// Whether the offload is on.
    pub active: bool,
    /// Whether the offload can be changed (not `[fixed]`).
    pub changeable: bool,
}

/// Receive-side scaling.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RssFacts {
    /// Number of entries in the indirection table.
    pub entries: u32,
    /// Queues in the indirection table, sorted.
    pub queues: Vec<u32>,
}

/// A queueing discipline.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct QdiscFacts {
    /// Kind: `fq`, `mq`, `fq_codel` …
    pub kind: String,
    /// Handle as printed by `tc` (`8001:`); `0:` for a default qdisc of the kernel.
    pub handle: String,
    /// Parent as printed by `tc` (`:1`, `8001:2`); `None` for the root.
    pub parent: Option<String>,
    /// Maximum rate per flow, bits/s (`fq maxrate`); `None` without one.
    pub max_rate_bps: Option<u64>,
    /// Packets dropped since the qdisc was attached.
    pub drops: u64,
}

/// Packet steering of one queue.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct QueueFacts {
    /// Queue name: `rx-0`, `tx-3`.
    pub name: String,
    /// `rps_cpus`: hexadecimal CPU mask with commas, as in the file.
    pub rps_cpus: Option<String>,
    /// `rps_flow_cnt`: entries of the RFS flow table.
    pub rps_flow_count: Option<u32>,
    /// `xps_cpus`, format as `rps_cpus`; `None` if the driver has no transmit queue map.
    pub xps_cpus: Option<String>,
}

/// A hardware interrupt.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Interrupt {
    /// Interrupt number (IRQ).
    pub number: u32,
    /// Action names (`mlx5_comp3@pci:0000:3b:00.0`).
    pub name: String,
    /// Allowed CPUs (`smp_affinity_list`).
    pub affinity: Fact<String>,
    /// CPUs that handle it (`effective_affinity_list`).
    pub effective: Fact<String>,
    /// Number of interrupts since boot, all CPUs.
    pub count: u64,
}

/// Softnet totals since boot.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SoftnetFacts {
    /// Packets processed.
    pub processed: u64,
    /// Packets dropped because the backlog was full.
    pub dropped: u64,
    /// Polls that ended early because budget or time ran out (`time_squeeze`).
    pub squeezed: u64,
    /// Times a CPU was woken by another CPU to process packets (`received_rps`).
    pub steered: u64,
}

/// State of a service.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ServiceFacts {
    /// Whether it is running.
    pub running: bool,
    /// Its configuration, if known (tuned: the active profile).
    pub detail: Option<String>,
}

/// Control group of landspeed's process.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CgroupFacts {
    /// Cgroup version: `v1`, `v2` or `hybrid`.
    pub version: Fact<String>,
    /// Path of the group relative to the mount point.
    pub path: Fact<String>,
    /// Lowest CPU quota (`cpu.max`) of the group and its ancestors, thousandths of a CPU; absent without a quota.
    pub cpu_millis: Fact<u32>,
    /// CPUs the group may use (`cpuset.cpus.effective`), kernel list format.
    pub cpus: Fact<String>,
    /// Lowest `memory.max` of the group and its ancestors, bytes; absent without a limit.
    pub memory_max_bytes: Fact<u64>,
    /// Periods in which the group was throttled (`nr_throttled`).
    pub throttled_periods: Fact<u64>,
}

/// Clock source and synchronization.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TimeFacts {
    /// Clock source in use (`current_clocksource`).
    pub clocksource: Fact<String>,
    /// Available clock sources (`available_clocksource`).
    pub clocksources: Vec<String>,
    /// Whether the kernel clock is synchronized (`adjtimex` without `STA_UNSYNC`).
    pub synchronised: Fact<bool>,
    /// Estimated clock error by the kernel (`esterror`), microseconds.
    pub estimated_error_us: Fact<u64>,
}
