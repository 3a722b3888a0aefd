//! Everything about a host that a check may read: the truth table's inputs, each with why it is unknown where it is.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::NumaNode;

/// What is known of one thing. "This kernel has no such knob" and "I was not allowed to look" are different answers
/// and lead to different sentences.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Fact<T> {
    /// Its value.
    Known(T),
    /// This kernel, device or namespace has no such thing; why, in words.
    Absent(String),
    /// It could not be read; why, in words.
    Unknown(String),
}

impl<T> Default for Fact<T> {
    fn default() -> Self {
        Self::Unknown("not looked at".into())
    }
}

impl<T> Fact<T> {
    /// The value, if known.
    pub fn known(&self) -> Option<&T> {
        match self {
            Self::Known(value) => Some(value),
            Self::Absent(_) | Self::Unknown(_) => None,
        }
    }

    /// The same fact about something derived from the value.
    pub fn map<U>(self, derive: impl FnOnce(T) -> U) -> Fact<U> {
        match self {
            Self::Known(value) => Fact::Known(derive(value)),
            Self::Absent(why) => Fact::Absent(why),
            Self::Unknown(why) => Fact::Unknown(why),
        }
    }

    /// The same fact, borrowed.
    pub fn as_ref(&self) -> Fact<&T> {
        match self {
            Self::Known(value) => Fact::Known(value),
            Self::Absent(why) => Fact::Absent(why.clone()),
            Self::Unknown(why) => Fact::Unknown(why.clone()),
        }
    }
}

/// One host, at one moment (`landspeed.facts/1`). Read without privilege where the kernel allows it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Facts {
    /// `landspeed.facts/1`.
    pub schema: String,
    /// When they were taken, RFC 3339 UTC; empty for a recorded host that does not say.
    pub taken: String,
    /// How long collecting took, nanoseconds; 0 for a recorded host.
    pub collect_ns: u64,
    /// Whether they were taken by root: what is unknown may only be forbidden.
    pub root: bool,
    /// Host name.
    pub hostname: Fact<String>,
    /// Operating system (`PRETTY_NAME` of os-release).
    pub os: Fact<String>,
    /// Seconds since boot.
    pub uptime_s: Fact<u64>,
    /// The kernel.
    pub kernel: KernelFacts,
    /// What it runs in.
    pub virtualization: VirtualizationFacts,
    /// CPUs.
    pub cpu: CpuFacts,
    /// Memory, bytes.
    pub memory_bytes: Fact<u64>,
    /// NUMA nodes and their cores.
    pub numa: Fact<Vec<NumaNode>>,
    /// Sysctls by name (`net.ipv4.tcp_rmem`), white space squeezed to single blanks.
    pub sysctls: BTreeMap<String, Fact<String>>,
    /// Assignments in the sysctl.d directories and `/etc/sysctl.conf`, in the order `sysctl --system` applies them: the
    /// last of a name wins.
    pub sysctl_files: Fact<Vec<SysctlAssignment>>,
    /// Network interfaces of this namespace, loopback left out.
    pub interfaces: Vec<InterfaceFacts>,
    /// The interface of the default route (IPv4 first).
    pub default_interface: Fact<String>,
    /// Hardware interrupts.
    pub interrupts: Fact<Vec<Interrupt>>,
    /// Softnet totals since boot, all cores.
    pub softnet: Fact<SoftnetFacts>,
    /// SNMP, TcpExt and IpExt counters since boot (`TcpExt.TCPRcvQDrop`).
    pub counters: BTreeMap<String, u64>,
    /// What manages or changes settings here, by name: `tuned`, `NetworkManager`, `systemd-networkd`, `irqbalance`,
    /// `bpftune`, `chronyd`, `ntpd`, `systemd-timesyncd`, `ptp4l`, `phc2sys`, `power-profiles-daemon`, `thermald`,
    /// `cpupower` (which sets the governor at boot and is gone: "running" says that it does).
    pub services: BTreeMap<String, Fact<ServiceFacts>>,
    /// The control group this program runs in.
    pub cgroup: CgroupFacts,
    /// Clock.
    pub time: TimeFacts,
    /// Loaded modules that matter, with their versions where they state one (`mlx5_core`, `tcp_bbr`).
    pub modules: Fact<BTreeMap<String, Option<String>>>,
    /// Whether this is the machine's first network namespace: others lack some sysctls.
    pub first_network_namespace: Fact<bool>,
}

/// The kernel.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct KernelFacts {
    /// `uname -r`; empty if it cannot be read.
    pub release: String,
    /// `uname -v`.
    pub version: String,
    /// `uname -m`.
    pub machine: String,
    /// `/proc/cmdline`.
    pub command_line: Fact<String>,
    /// Options of its configuration that matter, where the file can be read (`CONFIG_HZ` = `1000`).
    // `n` where the file says `is not set`. An option that the file does not name is not in the map: neither yes nor no.
    pub configuration: Fact<BTreeMap<String, String>>,
}

impl KernelFacts {
    /// Major and minor version; `None` if the release does not begin with them.
    pub fn number(&self) -> Option<(u32, u32)> {
        let mut parts = self.release.split(|c: char| !c.is_ascii_digit());
        Some((parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
    }

    /// Whether it is at least this version; `None` if that is unknown.
    pub fn at_least(&self, major: u32, minor: u32) -> Option<bool> {
        self.number().map(|number| number >= (major, minor))
    }

    /// What the configuration says about an option that is built in, a module, or left out.
    pub fn option(&self, name: &str) -> KernelOption {
        match self.configuration.known().and_then(|options| options.get(name)).map(String::as_str) {
            Some("y" | "m") => KernelOption::Built,
            Some("n") => KernelOption::NotSet,
            Some(_) | None => KernelOption::Unknown,
        }
    }

    /// The value of a word `name=value` on the command line, the last if repeated; `Some("")` for the bare word.
    pub fn parameter(&self, name: &str) -> Option<&str> {
        let words = self.command_line.known()?.split_whitespace();
        words.rev().find_map(|word| {
            let (key, value) = word.split_once('=').unwrap_or((word, ""));
            (key == name).then_some(value)
        })
    }
}

/// What a kernel configuration says about one option.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KernelOption {
    /// Built in (`y`) or as a module (`m`).
    Built,
    /// The file says that it `is not set`.
    NotSet,
    /// The file cannot be read or does not name the option: neither yes nor no.
    Unknown,
}

/// What a host runs in.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct VirtualizationFacts {
    /// `kvm`, `vmware`, `microsoft`, `amazon` …; absent on bare metal.
    pub hypervisor: Fact<String>,
    /// `docker`, `lxc`, `podman` …; absent outside containers.
    pub container: Fact<String>,
    /// Share of CPU time stolen by the hypervisor since boot, 0..=1.
    pub steal_share: Fact<f64>,
}

/// CPUs.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CpuFacts {
    /// Model name.
    pub model: Fact<String>,
    /// Logical CPUs online.
    pub online: Vec<u32>,
    /// Physical cores online.
    pub cores: Fact<u32>,
    /// Packages (sockets).
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
    /// The lowest `pm_qos_resume_latency_us` of any CPU: 0 where one says `n/a` (it may enter no idle state); absent
    /// where none is limited (all say 0).
    pub resume_latency_us: Fact<u32>,
    /// The latency that holders of `/dev/cpu_dma_latency` keep all CPUs to, microseconds; absent without one.
    #[serde(default)]
    pub dma_latency_us: Fact<u32>,
    /// `/sys/devices/system/cpu/vulnerabilities`, by name.
    pub vulnerabilities: BTreeMap<String, String>,
    /// Isolated CPUs in kernel list format; absent if none.
    pub isolated: Fact<String>,
}

/// One frequency policy: CPUs that change together.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CpuPolicy {
    /// Directory name (`policy0`).
    pub name: String,
    /// Its CPUs in kernel list format.
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

/// An idle state.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct IdleState {
    /// `C1E`, `C6` …
    pub name: String,
    /// Time to leave it, microseconds.
    pub latency_us: u64,
    /// Whether it is disabled.
    pub disabled: bool,
}

/// One assignment in a sysctl file.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SysctlAssignment {
    /// The file.
    pub path: String,
    /// Its line, from 1.
    pub line: u32,
    /// Sysctl with dots.
    pub name: String,
    /// Value, white space squeezed.
    pub value: String,
}

/// A network interface.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct InterfaceFacts {
    /// Name.
    pub name: String,
    /// Index.
    pub ifindex: u32,
    /// What kind of virtual interface (`vlan`, `bond`, `bridge`, `veth`, `tun`); none for a device's own.
    pub kind: Option<String>,
    /// Interfaces below it (the ports of a bond or bridge, the device of a VLAN).
    pub lower: Vec<String>,
    /// The bond or bridge it is a port of.
    pub master: Option<String>,
    /// Hardware address; empty if redacted.
    pub mac: String,
    /// Addresses with their prefix lengths.
    pub addresses: Vec<String>,
    /// `operstate` (`up`, `down`, `unknown` …).
    pub state: String,
    /// MTU, bytes.
    pub mtu_bytes: u32,
    /// Largest MTU the driver takes, bytes.
    pub max_mtu_bytes: Fact<u32>,
    /// Link speed, bits/s.
    pub speed_bps: Fact<u64>,
    /// Whether the link is full duplex.
    pub full_duplex: Fact<bool>,
    /// Kernel driver.
    pub driver: Fact<DriverFacts>,
    /// PCI device.
    pub pci: Fact<PciFacts>,
    /// Ring sizes, entries.
    pub rings: Fact<RingFacts>,
    /// Channels (queues).
    pub channels: Fact<ChannelFacts>,
    /// Interrupt coalescing.
    pub coalescing: Fact<CoalescingFacts>,
    /// Link-level flow control.
    pub pause: Fact<PauseFacts>,
    /// Offloads by the kernel's name (`tx-tcp-segmentation`); those the device never has are left out.
    pub features: Fact<BTreeMap<String, FeatureFacts>>,
    /// Receive-side scaling.
    pub rss: Fact<RssFacts>,
    /// `gso_max_size`, bytes.
    pub gso_max_size_bytes: Fact<u32>,
    /// `gro_max_size`, bytes.
    pub gro_max_size_bytes: Fact<u32>,
    /// `gso_ipv4_max_size`, bytes (6.3).
    pub gso_ipv4_max_size_bytes: Fact<u32>,
    /// `gro_ipv4_max_size`, bytes (6.3).
    pub gro_ipv4_max_size_bytes: Fact<u32>,
    /// `tso_max_size`: the device's own limit, bytes (5.19).
    pub tso_max_size_bytes: Fact<u32>,
    /// `txqueuelen`, packets.
    pub tx_queue_len: Fact<u32>,
    /// Transmit queues.
    pub tx_queues: Fact<u32>,
    /// Receive queues.
    pub rx_queues: Fact<u32>,
    /// Queueing disciplines, the root first.
    pub qdiscs: Fact<Vec<QdiscFacts>>,
    /// Steering of each queue.
    pub queues: Fact<Vec<QueueFacts>>,
    /// Its interrupts (`device/msi_irqs`).
    pub interrupts: Vec<u32>,
    /// `gro_flush_timeout`, nanoseconds.
    pub gro_flush_timeout_ns: Fact<u64>,
    /// `napi_defer_hard_irqs`.
    pub napi_defer_hard_irqs: Fact<u32>,
    /// `threaded`: NAPI in kernel threads.
    pub threaded_napi: Fact<bool>,
    /// Whether an XDP program is attached.
    pub xdp: Fact<bool>,
    /// Virtual functions in use and at most.
    pub virtual_functions: Fact<(u32, u32)>,
    /// Interface and `ethtool -S` statistics since the driver was loaded.
    pub statistics: BTreeMap<String, u64>,
}

/// A driver.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DriverFacts {
    /// Name (`mlx5_core`).
    pub name: String,
    /// Version, often the kernel's.
    pub version: Option<String>,
    /// Firmware version.
    pub firmware: Option<String>,
}

/// A PCI device and its link.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PciFacts {
    /// Address (`0000:3b:00.0`).
    pub address: String,
    /// Vendor and device (`15b3:1017`).
    pub id: String,
    /// NUMA node; absent where the firmware does not say.
    pub numa_node: Fact<u32>,
    /// CPUs local to it, kernel list format.
    pub local_cpus: Fact<String>,
    /// Link speed now, GT/s.
    pub speed_gts: Fact<f64>,
    /// Link speed at most, GT/s.
    pub max_speed_gts: Fact<f64>,
    /// Lanes now.
    pub width: Fact<u32>,
    /// Lanes at most.
    pub max_width: Fact<u32>,
    /// Maximum read request size, bytes (device control register, bits 14:12).
    pub max_read_request_bytes: Fact<u32>,
    /// Maximum payload size, bytes (device control register, bits 7:5).
    pub max_payload_bytes: Fact<u32>,
    /// Whether relaxed ordering is enabled (device control register, bit 4).
    pub relaxed_ordering: Fact<bool>,
    /// Whether it is a virtual function.
    pub virtual_function: bool,
    /// Type of its IOMMU group's default domain (`identity`, `DMA`, `DMA-FQ`); absent without an IOMMU.
    pub iommu: Fact<String>,
}

/// A size or number now and at most.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Extent {
    /// Now.
    pub now: u32,
    /// At most; 0 if there is none of the kind.
    pub max: u32,
}

/// Ring sizes, entries.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RingFacts {
    /// Receive.
    pub rx: Extent,
    /// Transmit.
    pub tx: Extent,
}

/// Channels.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ChannelFacts {
    /// Receive only.
    pub rx: Extent,
    /// Transmit only.
    pub tx: Extent,
    /// Both.
    pub combined: Extent,
}

/// Interrupt coalescing; `None` where the driver does not have the parameter.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CoalescingFacts {
    /// Adaptive, receive.
    pub adaptive_rx: Option<bool>,
    /// Adaptive, transmit.
    pub adaptive_tx: Option<bool>,
    /// Receive delay, microseconds.
    pub rx_us: Option<u32>,
    /// Receive frames.
    pub rx_frames: Option<u32>,
    /// Transmit delay, microseconds.
    pub tx_us: Option<u32>,
    /// Transmit frames.
    pub tx_frames: Option<u32>,
}

/// Link-level flow control (IEEE 802.3x).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PauseFacts {
    /// Negotiated.
    pub autonegotiate: bool,
    /// Pause frames are obeyed.
    pub rx: bool,
    /// Pause frames are sent.
    pub tx: bool,
}

/// An offload.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FeatureFacts {
    /// On.
    pub active: bool,
    /// It can be changed.
    pub changeable: bool,
}

/// Receive-side scaling.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RssFacts {
    /// Entries of the indirection table.
    pub entries: u32,
    /// Queues it names, sorted.
    pub queues: Vec<u32>,
}

/// A queueing discipline.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct QdiscFacts {
    /// `fq`, `mq`, `fq_codel` …
    pub kind: String,
    /// Handle as `tc` prints it (`8001:`); `0:` for one the kernel attached by itself.
    pub handle: String,
    /// Parent as `tc` prints it (`:1`, `8001:2`); none for the root.
    pub parent: Option<String>,
    /// The rate each flow is held to, bits/s, where the discipline has one (`fq maxrate`).
    pub max_rate_bps: Option<u64>,
    /// Drops since it was attached.
    pub drops: u64,
}

/// Steering of one queue.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct QueueFacts {
    /// `rx-0`, `tx-3`.
    pub name: String,
    /// `rps_cpus`: hexadecimal mask with commas, as the file has it.
    pub rps_cpus: Option<String>,
    /// `rps_flow_cnt`.
    pub rps_flow_count: Option<u32>,
    /// `xps_cpus`: as `rps_cpus`; none where the driver has no such queue map.
    pub xps_cpus: Option<String>,
}

/// A hardware interrupt.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Interrupt {
    /// Number.
    pub number: u32,
    /// Action names (`mlx5_comp3@pci:0000:3b:00.0`).
    pub name: String,
    /// `smp_affinity_list`.
    pub affinity: Fact<String>,
    /// `effective_affinity_list`.
    pub effective: Fact<String>,
    /// How often, since boot, all CPUs.
    pub count: u64,
}

/// Softnet totals since boot.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SoftnetFacts {
    /// Packets.
    pub processed: u64,
    /// Dropped: the backlog was full.
    pub dropped: u64,
    /// Rounds that ran out of budget or time.
    pub squeezed: u64,
    /// Packets steered by RPS.
    pub steered: u64,
}

/// A service.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ServiceFacts {
    /// Whether it runs.
    pub running: bool,
    /// What it is set to, where that is known (tuned: the active profile).
    pub detail: Option<String>,
}

/// A control group.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CgroupFacts {
    /// `v1`, `v2` or `hybrid`.
    pub version: Fact<String>,
    /// Its path below the mount.
    pub path: Fact<String>,
    /// The tightest `cpu.max` up the tree: in thousandths of a CPU; absent if unlimited.
    pub cpu_millis: Fact<u32>,
    /// `cpuset.cpus.effective`.
    pub cpus: Fact<String>,
    /// The tightest `memory.max` up the tree, bytes; absent if unlimited.
    pub memory_max_bytes: Fact<u64>,
    /// Periods in which it was throttled (`nr_throttled`).
    pub throttled_periods: Fact<u64>,
}

/// The clock.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TimeFacts {
    /// `current_clocksource`.
    pub clocksource: Fact<String>,
    /// `available_clocksource`.
    pub clocksources: Vec<String>,
    /// Whether the kernel's clock is disciplined (`adjtimex`: not `STA_UNSYNC`).
    pub synchronised: Fact<bool>,
    /// The kernel's estimate of the error, microseconds.
    pub estimated_error_us: Fact<u64>,
}
