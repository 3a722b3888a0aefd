//! The certificate of an emulated path (`landspeed.emulate/1`): what was asked for, and what was delivered.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{BuildInfo, Warning};

/// What an emulation did.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct EmulateDocument {
    /// `landspeed.emulate/1`.
    pub schema: String,
    /// The program.
    pub landspeed: BuildInfo,
    /// The command line.
    pub command: Vec<String>,
    /// The path.
    pub path: EmulatedPath,
    /// What carried the frames. Documents without it are of the userspace datapath.
    #[serde(default)]
    pub datapath: EmulateDatapath,
    /// Where it was.
    pub placement: EmulatePlacement,
    /// When it began, nanoseconds since the Unix epoch.
    pub start_unix_ns: u64,
    /// How long frames were carried, nanoseconds.
    pub duration_ns: u64,
    /// Why it ended.
    pub ended: EmulateEnd,
    /// Exit status of the command, if there was one and it ended; 128 + n after signal n.
    pub exit_status: Option<i32>,
    /// What the path file asks for.
    pub asked: EmulateDirections<EmulateAsked>,
    /// What was delivered.
    pub delivered: EmulateDirections<EmulateDelivered>,
    /// How much later than the path says frames left, both directions; with the kernel datapath how much later or earlier.
    pub delay_error_ns: DelayError,
    /// Seconds in which it could not keep up: figures measured in them do not describe the path.
    pub invalid: Vec<InvalidSecond>,
    /// Each second; of long emulations the last two hours.
    #[serde(default)]
    pub seconds: Vec<EmulateSecond>,
    /// Each link with its queue, in the order of its direction.
    pub hops: EmulateDirections<Vec<EmulateHop>>,
    /// Memory for frames. Unknown of the kernel datapath.
    pub store: Option<EmulateStore>,
    /// CPU time of the emulation. Unknown of the kernel datapath.
    pub cpu: Option<EmulateCpu>,
    /// What limits the conclusions.
    pub warnings: Vec<Warning>,
}

/// The path file in short.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct EmulatedPath {
    /// Its name.
    pub name: String,
    /// The seed of every random draw.
    pub seed: u64,
    /// Largest IP packet, bytes.
    pub mtu_bytes: u32,
    /// Number of links.
    pub links: u32,
}

/// What carries the frames of a path.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum EmulateDatapath {
    /// A thread of this program, by the model.
    #[default]
    Userspace,
    /// The kernel's queueing disciplines: tbf with a queue, and netem.
    Kernel,
}

/// Where the path was placed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum EmulatePlacement {
    /// Around a command, in namespaces.
    Command {
        /// Addresses of the command's side.
        local: Vec<String>,
        /// Addresses of the other side.
        remote: Vec<String>,
    },
    /// Between two interfaces.
    Between {
        /// The first; forward goes in here.
        first: String,
        /// The second.
        second: String,
    },
    /// On one interface, for given peers only.
    Peers {
        /// The interface.
        interface: String,
        /// Networks whose packets take the path; forward goes to them.
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

/// Why an emulation ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum EmulateEnd {
    /// The command ended.
    Command,
    /// The time limit passed.
    Time,
    /// It was interrupted.
    Stopped,
    /// An interface disappeared or went down.
    InterfaceGone,
    /// The two interfaces lead to each other.
    Loop,
}

/// A value for each direction.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct EmulateDirections<T> {
    /// From the first end to the second.
    pub forward: T,
    /// From the second end to the first.
    pub reverse: T,
}

/// What the path file asks of one direction.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct EmulateAsked {
    /// Rate of the slowest link with framing, bits/s; the mean where it changes over time.
    pub rate_bps: u64,
    /// Whether a link's rate changes over time.
    pub rate_varies: bool,
    /// Propagation delay of all links, nanoseconds.
    pub delay_ns: u64,
}

/// What one direction delivered. `offered_packets + duplicated_packets = delivered_packets + dropped_packets + inside_packets`,
/// exactly; frames outside the path's accounts are in `unhandled_packets`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct EmulateDelivered {
    /// Frames that entered the path.
    pub offered_packets: u64,
    /// Their bytes, from the Ethernet header on.
    pub offered_bytes: u64,
    /// Frames that left it, copies included.
    pub delivered_packets: u64,
    /// Their bytes, from the Ethernet header on.
    pub delivered_bytes: u64,
    /// Frames dropped or lost on it, for any reason the path file gives.
    pub dropped_packets: u64,
    /// Copies that links added.
    pub duplicated_packets: u64,
    /// Frames that left after one that had entered later. Unknown of the kernel datapath if the path may reorder.
    pub reordered_packets: Option<u64>,
    /// Frames in queues and on links when it ended.
    pub inside_packets: u64,
    /// Frames that never entered the path, or left it and were not sent: the emulation's own failures, each in an invalid second.
    pub unhandled_packets: u64,
    /// Mean rate with framing, bits/s.
    pub rate_bps: u64,
    /// Highest rate of a whole second with framing, bits/s.
    pub peak_rate_bps: u64,
    /// Delay of delivered frames, from arrival to departure, queues included; nanoseconds.
    pub delay_ns: Option<DelaySummary>,
}

/// A summary of delays, nanoseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DelaySummary {
    /// Smallest.
    pub min: u64,
    /// Median.
    pub p50: u64,
    /// 99th percentile.
    pub p99: u64,
    /// Greatest.
    pub max: u64,
}

/// How far from the time that the path says frames left, nanoseconds; 0 without any frame. Unknown where it was not measured: with the
/// kernel datapath, on paths whose departures depend on random draws or on active queue management.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DelayError {
    /// Median.
    pub p50: Option<u64>,
    /// 99th percentile.
    pub p99: Option<u64>,
    /// Greatest.
    pub max: Option<u64>,
    /// Frames that it was measured on. Documents without it: all delivered.
    #[serde(default)]
    pub packets: Option<u64>,
}

/// A second in which the emulation could not keep up.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct InvalidSecond {
    /// Its number, from 0 on.
    pub second: u64,
    /// Why, in stable words.
    pub reasons: Vec<InvalidReason>,
    /// In words.
    pub message: String,
}

/// Why a second is invalid.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum InvalidReason {
    /// More than one frame in a hundred left too late.
    Late,
    /// Frames arrived that the receive ring had no room for.
    RingFull,
    /// Frames arrived that the store had no room for.
    StoreFull,
    /// Super-packets arrived, longer than the path's MTU, and were refused.
    SuperPackets,
    /// The interface did not take frames that were due.
    SendFailed,
    /// The interfaces' own queues dropped frames.
    InterfaceDrops,
    /// The kernel's queueing disciplines dropped frames for a reason that the path file does not give.
    UnplannedDrops,
    /// A link sent less than 99 % of its rate although frames waited.
    RateLow,
}

/// Counts of one link.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct EmulateHop {
    /// Kind of its queue, by its name in `tc`.
    pub queue: String,
    /// Frames that arrived at it.
    pub arrived_packets: u64,
    /// Frames the policer dropped.
    pub policed_packets: u64,
    /// Frames a full queue dropped.
    pub queue_full_packets: u64,
    /// Frames that active queue management dropped.
    pub aqm_packets: u64,
    /// Frames that were marked (CE).
    pub marked_packets: u64,
    /// Frames that were sent into the link.
    pub sent_packets: u64,
    /// Frames the link lost.
    pub lost_packets: u64,
    /// Frames sent while the link was down.
    pub down_packets: u64,
    /// Copies the link added.
    pub duplicated_packets: u64,
    /// Mean occupancy of the queue, bytes.
    pub queue_mean_bytes: u64,
    /// Greatest occupancy of the queue, bytes.
    pub queue_max_bytes: u64,
    /// Greatest occupancy of the queue, frames.
    pub queue_max_packets: u64,
}

/// Memory for frames, both directions.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct EmulateStore {
    /// Reserved before the start, bytes.
    pub reserved_bytes: u64,
    /// Most that was in use, bytes.
    pub used_bytes_max: u64,
}

/// CPU time of the thread that carries the frames.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct EmulateCpu {
    /// Share of the time in which it worked on frames; waiting and spinning are not work.
    pub work_share: f64,
    /// The same in the busiest second.
    pub work_share_max: f64,
    /// What was left in the busiest second: 1 - `work_share_max`.
    pub headroom: f64,
}

/// One second of an emulation.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct EmulateSecond {
    /// Its number, from 0 on.
    pub second: u64,
    /// How long it was, nanoseconds: the last one is shorter, one in which the program did not run is longer.
    pub length_ns: u64,
    /// Each direction.
    #[serde(flatten)]
    pub directions: EmulateDirections<EmulateSecondDirection>,
    /// Frames that left too late, both directions; unknown where it was not measured.
    pub late_packets: Option<u64>,
    /// How late the latest was, nanoseconds.
    pub late_max_ns: Option<u64>,
    /// Share of the second spent on frames.
    pub work_share: Option<f64>,
    /// Whether figures of this second describe the path.
    pub valid: bool,
}

/// One direction in one second.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct EmulateSecondDirection {
    /// Rate delivered, with framing, bits/s.
    pub rate_bps: u64,
    /// Frames dropped or lost on the path, for any reason the path file gives.
    pub dropped_packets: u64,
    /// Frames that were not handled: failures of the emulation.
    pub unhandled_packets: u64,
    /// Mean occupancy of all queues, bytes.
    pub queue_bytes: u64,
}

/// What a running emulation answers those who ask at an interface of its path.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct EmulationStatus {
    /// The path.
    pub path: EmulatedPath,
    /// Where it is.
    pub placement: EmulatePlacement,
    /// When it began, nanoseconds since the Unix epoch.
    pub start_unix_ns: u64,
    /// How long it has run, nanoseconds.
    pub elapsed_ns: u64,
    /// Invalid seconds, including the current one.
    pub invalid: Vec<InvalidSecond>,
}

/// The emulated path that a run went over.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RunEmulation {
    /// The path.
    pub path: EmulatedPath,
    /// How much of the run the emulation accounts for, nanoseconds.
    pub covered_ns: u64,
    /// Spans in which the path was not what its file says.
    pub invalid: Vec<InvalidSpan>,
}

/// A span of a run in which the emulated path was not what its file says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct InvalidSpan {
    /// Start, nanoseconds after the agreed start of the run.
    pub start_ns: u64,
    /// End, nanoseconds.
    pub end_ns: u64,
    /// Why, in stable words.
    pub reasons: Vec<InvalidReason>,
    /// In words.
    pub message: String,
}
