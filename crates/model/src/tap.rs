//! What a tap did (`landspeed.tap/1`): how the packets in its files came there, and what taking them cost.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{BuildInfo, Warning};

/// How a capture was taken. `landspeed.trace/2` describes its content.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TapDocument {
    /// `landspeed.tap/1`.
    pub schema: String,
    /// The program.
    pub landspeed: BuildInfo,
    /// The command line.
    pub command: Vec<String>,
    /// When the first ring began, nanoseconds since the Unix epoch.
    pub start_unix_ns: u64,
    /// How long it took packets, nanoseconds.
    pub duration_ns: u64,
    /// Why it ended.
    pub ended: TapEnd,
    /// What went wrong, where something did.
    pub failure: Option<String>,
    /// What was let through, in the language of pcap-filter(7); everything if absent.
    pub filter: Option<String>,
    /// Bytes kept of each packet at most.
    pub snap_bytes: u32,
    /// Packets that passed the filter, those lost included.
    pub packets: u64,
    /// Their length on the wire together, bytes, without the lost ones'.
    pub wire_bytes: u64,
    /// Packets that found no room in a ring.
    pub dropped: u64,
    /// Packets that were taken and not written: there was no file, it was full, or they came after the last asked for.
    /// `packets` = `written` + `unwritten` + `dropped`.
    pub unwritten: u64,
    /// Packets written, those in files removed since included.
    pub written: u64,
    /// Where they came from.
    pub interfaces: Vec<TapInterface>,
    /// Where they are, the oldest first.
    pub files: Vec<TapFile>,
    /// Files that were removed to make room for newer ones.
    pub files_removed: u64,
    /// The kernel's events that were taken beside the packets, if asked for.
    pub events: Option<TapEvents>,
    /// What the tap cost its host.
    pub perturbation: TapPerturbation,
    /// What limits the conclusions.
    pub warnings: Vec<Warning>,
}

/// Why a tap ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum TapEnd {
    /// It had as many packets as asked for.
    Packets,
    /// It had written as much as asked for.
    Size,
    /// It had run as long as asked for.
    Time,
    /// A signal, or the end of the test it belonged to.
    Stopped,
    /// The last of its interfaces went away.
    InterfaceGone,
    /// It could not write.
    WriteFailed,
}

/// One interface of a tap.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TapInterface {
    /// Name.
    pub name: String,
    /// Index.
    pub index: u32,
    /// What its frames begin with.
    pub link: String,
    /// Source of the timestamps: `software` (the kernel's), `hardware` (the interface's) or `mixed`.
    pub clock: String,
    /// Rings, and bytes of each.
    pub rings: u32,
    /// Bytes of a ring.
    pub ring_bytes: u64,
    /// Offloads in force that join or cut packets (`tx-tcp-segmentation`, `rx-gro` …): what is seen are super-packets.
    pub offloads: Vec<String>,
    /// Packets that passed the filter, those lost included.
    pub packets: u64,
    /// Of those read, how many came in.
    pub packets_in: u64,
    /// And how many went out.
    pub packets_out: u64,
    /// Their length on the wire, bytes.
    pub wire_bytes: u64,
    /// Packets that found no room in the ring.
    pub dropped: u64,
    /// Times all of the ring was full.
    pub freezes: u64,
    /// Largest share of the ring that waited to be read, 0..=1.
    pub fill_max: f64,
    /// Packets by the interface's own counters meanwhile, filtered out or not.
    pub interface_packets: Option<u64>,
    /// Packets the interface dropped by its own counters meanwhile.
    pub interface_dropped: Option<u64>,
    /// Whether it went away meanwhile.
    pub gone: bool,
}

/// One file of a tap.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TapFile {
    /// Path as given.
    pub path: String,
    /// Bytes.
    pub bytes: u64,
    /// Packets.
    pub packets: u64,
    /// Time of its first packet, nanoseconds since the Unix epoch.
    pub first_ns: Option<u64>,
    /// Time of its last packet.
    pub last_ns: Option<u64>,
}

/// The kernel's events beside the packets.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TapEvents {
    /// Tracepoints that were on: `tcp/tcp_probe` …
    pub names: Vec<String>,
    /// Events taken.
    pub taken: u64,
    /// Events the kernel had no room for.
    pub lost: u64,
}

/// What a tap cost its host, as far as it is known.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TapPerturbation {
    /// CPU time of the thread that read and wrote, nanoseconds.
    pub reader_cpu_ns: u64,
    /// For each packet read.
    pub reader_ns_per_packet: Option<f64>,
    /// As a share of one core.
    pub reader_core_share: f64,
    /// The host before the tap began, if a baseline was taken.
    pub before: Option<TapHostUse>,
    /// The host while the tap ran.
    pub during: Option<TapHostUse>,
    /// With and without the tap in turns, if asked for.
    pub slices: Option<TapSlices>,
    /// What is not in these figures.
    pub not_measured: String,
}

/// CPU use of a host. In cores: 1.5 is one and a half.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TapHostUse {
    /// Over how long, nanoseconds.
    pub span_ns: u64,
    /// Cores at work on anything.
    pub busy_cores: f64,
    /// Of it in softirqs, where packets come in.
    pub softirq_cores: f64,
    /// Taken by the hypervisor.
    pub steal_cores: f64,
}

/// The tap on and off in short turns, in pairs of random order: their effect on the traffic and the CPUs.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TapSlices {
    /// Pairs of turns.
    pub pairs: u32,
    /// Length of a turn, nanoseconds.
    pub slice_ns: u64,
    /// Packets a second by the interfaces' own counters, tap on: the median.
    pub on_pps: f64,
    /// The same, tap off.
    pub off_pps: f64,
    /// On over off: the median of the pairs' ratios. Below 1 the tap slowed the traffic.
    pub rate_ratio: Option<f64>,
    /// 95 % confidence interval of the ratio (bootstrap over pairs).
    pub rate_ratio_ci: Option<(f64, f64)>,
    /// Cores at work, tap on minus tap off: the median of the pairs.
    pub busy_cores_more: Option<f64>,
    /// 95 % confidence interval of it.
    pub busy_cores_more_ci: Option<(f64, f64)>,
}
