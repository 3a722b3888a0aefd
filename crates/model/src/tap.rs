//! `landspeed.tap/1`: statistics of a capture taken by landspeed, and its cost to the host.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{BuildInfo, Warning};

/// Statistics of a capture. `landspeed.trace/2` describes the captured packets.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TapDocument {
    /// Always `landspeed.tap/1`.
    pub schema: String,
    /// Program that wrote the document.
    pub landspeed: BuildInfo,
    /// Command line, one argument per element.
    pub command: Vec<String>,
    /// Start of the first ring, nanoseconds since the Unix epoch.
    pub start_unix_ns: u64,
    /// Duration of the capture, nanoseconds.
    pub duration_ns: u64,
    /// Reason the capture ended.
    pub ended: TapEnd,
    /// Error message if the capture failed; otherwise `None`.
    pub failure: Option<String>,
    /// Capture filter (pcap-filter(7) syntax); `None` captures everything.
    pub filter: Option<String>,
    /// Snap length: maximum bytes stored per packet.
    pub snap_bytes: u32,
    /// Packets accepted by the filter, dropped ones included.
    pub packets: u64,
    /// Bytes of the packets on the wire, without the dropped ones.
    pub wire_bytes: u64,
    /// Packets dropped because a ring was full.
    pub dropped: u64,
    /// Packets captured but not written: no output file, file limit reached, or beyond the requested number.
    /// `packets` = `written` + `unwritten` + `dropped`.
    pub unwritten: u64,
    /// Packets written, including those in files removed later.
    pub written: u64,
    /// Captured interfaces.
    pub interfaces: Vec<TapInterface>,
    /// Capture files, oldest first.
    pub files: Vec<TapFile>,
    /// Files removed to make room for newer ones.
    pub files_removed: u64,
    /// Kernel tracepoint events recorded with the packets; `None` unless requested.
    pub events: Option<TapEvents>,
    /// Cost of the capture to the host.
    pub perturbation: TapPerturbation,
    /// Conditions that limit the conclusions.
    pub warnings: Vec<Warning>,
}

/// Reason a capture ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum TapEnd {
    /// The requested number of packets was captured.
    Packets,
    /// The requested size was written.
    Size,
    /// The requested time had passed.
    Time,
    /// Stopped by a signal, or by the end of its test.
    Stopped,
    /// All interfaces disappeared.
    InterfaceGone,
    /// Writing a file failed.
    WriteFailed,
}

/// Statistics of one captured interface.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TapInterface {
    /// Interface name (`eth0`).
    pub name: String,
    /// Interface index.
    pub index: u32,
    /// Link-layer header type: `Ethernet`, `raw IP` …
    pub link: String,
    /// Source of the timestamps: `software` (the kernel's), `hardware` (the interface's) or `mixed`.
    pub clock: String,
    /// Number of rings.
    pub rings: u32,
    /// Size of each ring, bytes.
    pub ring_bytes: u64,
    /// Enabled offloads that merge or split packets (`tx-tcp-segmentation`, `rx-gro` …): the capture contains
    /// super-packets.
    pub offloads: Vec<String>,
    /// Packets accepted by the filter, dropped ones included.
    pub packets: u64,
    /// Received packets, of those read from the rings.
    pub packets_in: u64,
    /// Sent packets, of those read from the rings.
    pub packets_out: u64,
    /// Bytes of the packets on the wire, without the dropped ones.
    pub wire_bytes: u64,
    /// Packets dropped because the ring was full.
    pub dropped: u64,
    /// Times the whole ring was full (queue freezes).
    pub freezes: u64,
    /// Maximum share of the ring waiting to be read, 0..=1.
    pub fill_max: f64,
    /// Packets of the interface during the capture by its own counters, before the filter.
    pub interface_packets: Option<u64>,
    /// Packets dropped by the interface during the capture, by its own counters.
    pub interface_dropped: Option<u64>,
    /// Whether the interface disappeared during the capture.
    pub gone: bool,
}

/// One capture file.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TapFile {
    /// Path of the file, as given by the user.
    pub path: String,
    /// Size of the file, bytes.
    pub bytes: u64,
    /// Number of packets in the file.
    pub packets: u64,
    /// Time of the first packet, nanoseconds since the Unix epoch.
    pub first_ns: Option<u64>,
    /// Time of the last packet, nanoseconds since the Unix epoch.
    pub last_ns: Option<u64>,
}

/// Kernel tracepoint events recorded with the packets.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TapEvents {
    /// Enabled tracepoints: `tcp/tcp_probe` …
    pub names: Vec<String>,
    /// Number of events recorded.
    pub taken: u64,
    /// Events lost because the kernel's buffer was full.
    pub lost: u64,
}

/// Cost of a capture to the host, as far as it is measured.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TapPerturbation {
    /// CPU time of the thread that reads packets and writes files, nanoseconds.
    pub reader_cpu_ns: u64,
    /// `reader_cpu_ns` per packet read, nanoseconds; `None` without packets.
    pub reader_ns_per_packet: Option<f64>,
    /// CPU use of the reading thread as a share of one core.
    pub reader_core_share: f64,
    /// CPU use of the host before the capture; `None` without a baseline.
    pub before: Option<TapHostUse>,
    /// CPU use of the host during the capture.
    pub during: Option<TapHostUse>,
    /// Effect measured by alternating capture on and off; `None` unless requested.
    pub slices: Option<TapSlices>,
    /// Cost that these figures do not include.
    pub not_measured: String,
}

/// CPU use of a host in cores: 1.5 is one and a half cores.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TapHostUse {
    /// Length of the measurement, nanoseconds.
    pub span_ns: u64,
    /// Busy cores, all programs.
    pub busy_cores: f64,
    /// Part of `busy_cores` in softirqs (packet reception).
    pub softirq_cores: f64,
    /// Steal time: cores taken by the hypervisor.
    pub steal_cores: f64,
}

/// Effect of a capture on traffic and CPUs, from pairs of short slices with capture on and off in random order.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TapSlices {
    /// Number of pairs.
    pub pairs: u32,
    /// Length of a slice, nanoseconds.
    pub slice_ns: u64,
    /// Median packet rate with capture on, packets/s, by the interfaces' own counters.
    pub on_pps: f64,
    /// Median packet rate with capture off, packets/s, by the interfaces' own counters.
    pub off_pps: f64,
    /// Packet rate on / off: median of the pairs. Below 1, the capture slowed the traffic.
    pub rate_ratio: Option<f64>,
    /// 95 % confidence interval of the ratio (bootstrap over pairs).
    pub rate_ratio_ci: Option<(f64, f64)>,
    /// Busy cores with capture on − off: median of the pairs.
    pub busy_cores_more: Option<f64>,
    /// 95 % confidence interval of `busy_cores_more` (bootstrap over pairs).
    pub busy_cores_more_ci: Option<(f64, f64)>,
}
