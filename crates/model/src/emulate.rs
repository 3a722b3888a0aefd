//! `landspeed.emulate/1`, the certificate of an emulated path: requested and delivered properties.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{BuildInfo, Warning};

/// Certificate of one emulation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct EmulateDocument {
    /// Always `landspeed.emulate/1`.
    pub schema: String,
    /// Program that wrote the document.
    pub landspeed: BuildInfo,
    /// Command line, one argument per element.
    pub command: Vec<String>,
    /// The emulated path.
    pub path: EmulatedPath,
    /// Datapath that carried the frames; `userspace` in documents without this field.
    #[serde(default)]
    pub datapath: EmulateDatapath,
    /// Attachment of the path: a command, two interfaces, or one interface.
    pub placement: EmulatePlacement,
    /// Start, nanoseconds since the Unix epoch.
    pub start_unix_ns: u64,
    /// Time during which frames were carried, nanoseconds.
    pub duration_ns: u64,
    /// Reason the emulation ended.
    pub ended: EmulateEnd,
    /// Exit status of the command; 128 + n after signal n. `None` without a command, or if it was still running.
    pub exit_status: Option<i32>,
    /// Properties requested by the path file, per direction.
    pub asked: EmulateDirections<EmulateAsked>,
    /// Delivered rate, delay and packet counts, per direction.
    pub delivered: EmulateDirections<EmulateDelivered>,
    /// Lateness of departures, both directions together. Kernel datapath: absolute deviation from the modelled
    /// departure.
    pub delay_error_ns: DelayError,
    /// Seconds in which the emulation could not keep up; figures measured in them do not describe the path.
    pub invalid: Vec<InvalidSecond>,
    /// One entry per second; of long emulations the last two hours.
    #[serde(default)]
    pub seconds: Vec<EmulateSecond>,
    /// Counters of each link and its queue, in path order of the direction.
    pub hops: EmulateDirections<Vec<EmulateHop>>,
    /// Memory for frames; `None` for the kernel datapath.
    pub store: Option<EmulateStore>,
    /// CPU time of the emulation; `None` for the kernel datapath.
    pub cpu: Option<EmulateCpu>,
    /// Conditions that limit the conclusions.
    pub warnings: Vec<Warning>,
}

/// Summary of the path file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct EmulatedPath {
    /// Name of the path.
    pub name: String,
    /// Seed of all random draws.
    pub seed: u64,
    /// Largest IP packet, bytes.
    pub mtu_bytes: u32,
    /// Number of links on the path.
    pub links: u32,
}

/// Datapath of an emulation.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum EmulateDatapath {
    /// A thread of landspeed that implements the path model.
    #[default]
    Userspace,
    /// Queueing disciplines of the kernel: tbf with a child queue, and netem.
    Kernel,
}

/// Attachment of an emulated path.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum EmulatePlacement {
    /// Around a command, in namespaces.
    Command {
        /// Addresses of the command's side.
        local: Vec<String>,
        /// Addresses of the remote side.
        remote: Vec<String>,
    },
    /// Between two interfaces of this host.
    Between {
        /// First interface; frames received here travel forward.
        first: String,
        /// Second interface; frames received here travel in reverse.
        second: String,
    },
    /// On one interface, for traffic with given peers only.
    Peers {
        /// Interface name (`eth0`).
        interface: String,
        /// Networks whose traffic takes the path; forward is towards them.
        peers: Vec<String>,
    },
}

impl fmt::Display for EmulatePlacement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Command { .. } => f.write_str("around a command"),
            Self::Between { first, second } => write!(f, "between {first} and {second}"),
            Self::Peers { interface, peers } => write!(f, "on {interface} for {}", peers.join(", ")),
        }
    }
}

/// Reason an emulation ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum EmulateEnd {
    /// The command ended.
    Command,
    /// The time limit passed.
    Time,
    /// Interrupted by a signal or the user.
    Stopped,
    /// An interface disappeared or went down.
    InterfaceGone,
    /// The two interfaces are connected to each other (forwarding loop).
    Loop,
}

/// A value for each direction.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct EmulateDirections<T> {
    /// From the first side to the second.
    pub forward: T,
    /// From the second side to the first.
    pub reverse: T,
}

/// Properties the path file requests for one direction.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct EmulateAsked {
    /// Rate of the slowest link, framing included, bits/s; the mean if the rate varies.
    pub rate_bps: u64,
    /// Whether a link's rate changes over time.
    pub rate_varies: bool,
    /// Sum of the propagation delays of all links, nanoseconds.
    pub delay_ns: u64,
}

/// Packet counts, rates and delays of one direction. Frames outside this exact equation are in `unhandled_packets`:
/// `offered_packets + duplicated_packets = delivered_packets + dropped_packets + inside_packets`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct EmulateDelivered {
    /// Frames that entered the path.
    pub offered_packets: u64,
    /// Bytes of the offered frames, Ethernet header included.
    pub offered_bytes: u64,
    /// Frames that left the path, duplicates included.
    pub delivered_packets: u64,
    /// Bytes of the delivered frames, Ethernet header included.
    pub delivered_bytes: u64,
    /// Frames dropped or lost on the path for a reason given in the path file.
    pub dropped_packets: u64,
    /// Duplicates created by links.
    pub duplicated_packets: u64,
    /// Frames that left after a frame that had entered later; `None` for the kernel datapath if the path may reorder.
    pub reordered_packets: Option<u64>,
    /// Frames still in queues and on links when the emulation ended.
    pub inside_packets: u64,
    /// Frames that could not enter the path, or left it and could not be sent: failures of the emulation, each in an
    /// invalid second.
    pub unhandled_packets: u64,
    /// Mean delivered rate, framing included, bits/s.
    pub rate_bps: u64,
    /// Highest delivered rate of a whole second, framing included, bits/s.
    pub peak_rate_bps: u64,
    /// Delay of delivered frames from arrival to departure, queueing included, nanoseconds; `None` if no delay was
    /// measured.
    pub delay_ns: Option<DelaySummary>,
}

/// Quantiles of delays, nanoseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DelaySummary {
    /// Minimum.
    pub min: u64,
    /// Median.
    pub p50: u64,
    /// 99th percentile.
    pub p99: u64,
    /// Maximum.
    pub max: u64,
}

/// Deviation of departures from the modelled departure time, nanoseconds; 0 if no frame departed. `None` if it
/// was not measured: kernel datapath with random draws or active queue management on the path.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DelayError {
    /// Median.
    pub p50: Option<u64>,
    /// 99th percentile.
    pub p99: Option<u64>,
    /// Maximum.
    pub max: Option<u64>,
    /// Frames the error was measured on; `None` in older documents: all delivered frames.
    #[serde(default)]
    pub packets: Option<u64>,
}

/// A second in which the emulation could not keep up.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct InvalidSecond {
    /// Number of the second, from 0.
    pub second: u64,
    /// Reasons, as stable identifiers.
    pub reasons: Vec<InvalidReason>,
    /// Human-readable message with the figures.
    pub message: String,
}

/// Reason a second is invalid.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum InvalidReason {
    /// More than 1 % of the frames departed late (beyond the tolerance).
    Late,
    /// Frames were lost because the receive ring was full.
    RingFull,
    /// Frames were lost because the frame store was full.
    StoreFull,
    /// Super-packets longer than the path's MTU arrived and were refused.
    SuperPackets,
    /// The interface did not accept frames that were due.
    SendFailed,
    /// Queues of the interfaces dropped frames.
    InterfaceDrops,
    /// Queueing disciplines of the kernel dropped frames for a reason not given in the path file.
    UnplannedDrops,
    /// A link sent at less than 99 % of its rate while frames were queued.
    RateLow,
}

/// Counters of one link and its queue.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct EmulateHop {
    /// Kind of the queue, named as in `tc` (`pfifo`).
    pub queue: String,
    /// Frames that arrived at the link.
    pub arrived_packets: u64,
    /// Frames dropped by the policer.
    pub policed_packets: u64,
    /// Frames dropped because the queue was full.
    pub queue_full_packets: u64,
    /// Frames dropped by active queue management.
    pub aqm_packets: u64,
    /// Frames marked CE.
    pub marked_packets: u64,
    /// Frames sent into the link.
    pub sent_packets: u64,
    /// Frames lost on the link.
    pub lost_packets: u64,
    /// Frames sent while the link was down.
    pub down_packets: u64,
    /// Duplicates created by the link.
    pub duplicated_packets: u64,
    /// Mean occupancy of the queue, bytes.
    pub queue_mean_bytes: u64,
    /// Maximum occupancy of the queue, bytes.
    pub queue_max_bytes: u64,
    /// Maximum occupancy of the queue, frames.
    pub queue_max_packets: u64,
}

/// Memory for frames, both directions.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct EmulateStore {
    /// Reserved before the start, bytes.
    pub reserved_bytes: u64,
    /// Maximum in use, bytes.
    pub used_bytes_max: u64,
}

/// CPU time of the thread that carries the frames, as shares of the elapsed time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct EmulateCpu {
    /// Share of time spent on frames, 0..=1; waiting and spinning excluded.
    pub work_share: f64,
    /// The same share in the busiest second, 0..=1.
    pub work_share_max: f64,
    /// Idle share of the busiest second: 1 - `work_share_max`.
    pub headroom: f64,
}

/// One second of an emulation.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct EmulateSecond {
    /// Number of the second, from 0.
    pub second: u64,
    /// Length, nanoseconds: the last second is shorter; longer if the program did not run meanwhile.
    pub length_ns: u64,
    /// Counts of each direction.
    #[serde(flatten)]
    pub directions: EmulateDirections<EmulateSecondDirection>,
    /// Frames that departed late, both directions; `None` if it was not measured.
    pub late_packets: Option<u64>,
    /// Maximum lateness, nanoseconds; `None` if it was not measured.
    pub late_max_ns: Option<u64>,
    /// Share of the second spent on frames, 0..=1; `None` for the kernel datapath.
    pub work_share: Option<f64>,
    /// Whether figures measured in this second describe the path.
    pub valid: bool,
}

/// One direction in one second.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct EmulateSecondDirection {
    /// Delivered rate, framing included, bits/s.
    pub rate_bps: u64,
    /// Frames dropped or lost on the path for a reason given in the path file.
    pub dropped_packets: u64,
    /// Frames that could not enter or leave the path: failures of the emulation.
    pub unhandled_packets: u64,
    /// Sum of the mean occupancy of all queues, bytes.
    pub queue_bytes: u64,
}

/// Status of a running emulation, as returned to queries on an interface of its path.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct EmulationStatus {
    /// The emulated path.
    pub path: EmulatedPath,
    /// Attachment of the path.
    pub placement: EmulatePlacement,
    /// Start, nanoseconds since the Unix epoch.
    pub start_unix_ns: u64,
    /// Elapsed time, nanoseconds.
    pub elapsed_ns: u64,
    /// Invalid seconds, including the current one.
    pub invalid: Vec<InvalidSecond>,
}

/// Origin of the status of an emulated path.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum EmulationSource {
    /// A process of root or of the own user on this host.
    #[default]
    Local,
    /// A datagram from the path (`--ask-path`), which nothing authenticates.
    Path,
}

/// The emulated path a run used.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RunEmulation {
    /// The emulated path.
    pub path: EmulatedPath,
    /// Origin of these figures; `local` in documents without this field.
    #[serde(default)]
    pub source: EmulationSource,
    /// Time of the run during which the emulation was active, nanoseconds.
    pub covered_ns: u64,
    /// Spans in which the path did not match its file.
    pub invalid: Vec<InvalidSpan>,
}

/// A span of a run in which the emulated path did not match its file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct InvalidSpan {
    /// Start, nanoseconds after the agreed start of the run.
    pub start_ns: u64,
    /// End, nanoseconds after the agreed start of the run.
    pub end_ns: u64,
    /// Reasons, as stable identifiers.
    pub reasons: Vec<InvalidReason>,
    /// Human-readable message with the figures.
    pub message: String,
}
