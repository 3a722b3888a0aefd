//! What one end of a flow sent, as a tap saw it: a part of `landspeed.trace/2`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Bucket, TraceNumbered};

/// What one end sent.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TraceDirection {
    /// Packets.
    pub packets: u64,
    /// Bytes of their frames.
    pub wire_bytes: u64,
    /// Payload, copies included.
    pub payload_bytes: u64,
    /// Payload seen for the first time.
    pub unique_bytes: u64,
    /// Packets without payload that acknowledge.
    pub pure_acks: u64,
    /// Maximum segment size it announced, bytes.
    pub mss: Option<u16>,
    /// Window scale it announced, a shift.
    pub window_scale: Option<u8>,
    /// Whether it permitted SACK.
    pub sack_permitted: bool,
    /// Whether it sent timestamps.
    pub timestamps: bool,
    /// Whether it sent a FIN or a RST.
    pub closed: bool,
    /// RSTs it sent.
    #[serde(default)]
    pub resets: u64,
    /// Its goodput: payload seen for the first time, from its first byte to its last or its acknowledgement, bits/s.
    #[serde(default)]
    pub goodput_bps: Option<f64>,
    /// Its packets with data that were lost between two taps; `None` with one tap, and where the flow was not found at the
    /// other tap.
    #[serde(default)]
    pub lost_network: Option<u64>,
    /// Its packets with data that the receiver host dropped after its tap; `None` as in `lost_network`, and towards the first
    /// tap of a chain of more than two.
    #[serde(default)]
    pub lost_receiver: Option<u64>,
    /// Its packets with data that passed the last tap twice before they were acknowledged, without evidence whether the
    /// receiver had dropped the first copy: neither a report of the second one (DSACK) nor an ACK that lacked the first.
    #[serde(default)]
    pub undetermined_receiver: Option<u64>,
    /// ECN of its packets; `None` where it used none.
    #[serde(default)]
    pub ecn: Option<TraceEcn>,
    /// Its retransmits.
    pub retransmits: Retransmits,
    /// Packets that filled a hole and had been reordered, by their IP identification, timestamp or time.
    pub out_of_order: u64,
    /// Packets duplicated in the network: the same packet twice.
    pub duplicates: u64,
    /// Payload the other end acknowledged but the tap never saw, bytes: what the capture lacks.
    pub missing_bytes: u64,
    /// Keep-alives and zero-window probes, with and without a byte of data.
    pub probes: u64,
    /// Duplicate acknowledgements it sent.
    pub duplicate_acks: u64,
    /// Ranges it reported as received twice (DSACK, RFC 2883).
    pub dsacks: u64,
    /// Times its window closed.
    pub zero_windows: u64,
    /// How long its window was closed, all times together, nanoseconds.
    #[serde(default)]
    pub zero_window_ns: u64,
    /// When its window was closed; the first 100 times.
    #[serde(default)]
    pub zero_window_periods: Vec<ZeroWindow>,
    /// Least window it announced after the handshake, bytes; `None` where the window scale is unknown.
    pub window_min_bytes: Option<u64>,
    /// Greatest window it announced, bytes; `None` where the window scale is unknown.
    pub window_max_bytes: Option<u64>,
    /// Window scale in force: announced by both ends (0 where one did not), or given with `--window-scale`. `None` where the
    /// capture does not have the handshake.
    #[serde(default)]
    pub window_scale_in_force: Option<u8>,
    /// Where the window scale is unknown: it is at least this, or the sender would have sent more than the window allows.
    #[serde(default)]
    pub window_scale_at_least: Option<u8>,
    /// Times it dropped data that it had selectively acknowledged (reneging, RFC 2018).
    #[serde(default)]
    pub reneged: u64,
    /// Silences that ended in a retransmission timeout: the RTO as the tap saw it. `None` without one.
    #[serde(default)]
    pub rto: Option<TraceRto>,
    /// Most of its data in flight as the tap saw it, bytes.
    pub in_flight_max_bytes: u64,
    /// Its payload packets for each acknowledgement that moved on; `None` without one.
    pub packets_per_ack: Option<f64>,
    /// Acknowledgements of its data that covered more than two full segments.
    pub stretch_acks: u64,
    /// Round trips from the tap to the other end and back.
    pub rtt: Option<TraceRtt>,
    /// What its time went into; `None` where no data was acknowledged, or where the tap is nearer to the receiver and
    /// cannot know what the sender has in flight.
    pub limits: Option<TraceLimits>,
    /// UDP: numbered datagrams, where the protocol is known.
    pub numbered: Option<TraceNumbered>,
}

/// Silences before retransmissions after a timeout.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TraceRto {
    /// How many timeouts there were; the retransmissions that follow the first one of each are not counted.
    pub count: u64,
    /// Shortest, nanoseconds.
    pub min_ns: u64,
    /// Longest, nanoseconds.
    pub max_ns: u64,
}

/// A receive window that was closed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ZeroWindow {
    /// When the tap saw it close, nanoseconds from the start of the capture.
    pub start_ns: u64,
    /// Until the tap saw it open, or the capture end, nanoseconds.
    pub duration_ns: u64,
    /// Number of the frame that closed it, from 1.
    pub frame: u64,
}

/// Explicit congestion notification of one direction (RFC 3168, RFC 9768).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TraceEcn {
    /// Packets marked ECT(0).
    pub ect0: u64,
    /// Packets marked ECT(1).
    pub ect1: u64,
    /// Packets marked CE when they passed the tap: a queue before it reported congestion.
    pub ce: u64,
    /// Packets with the flag ECE after the handshake: classic ECN's echo of congestion. With AccECN the flags are a counter.
    pub ece: u64,
    /// Packets with the flag CWR after the handshake.
    pub cwr: u64,
    /// Whether its SYN or SYN-ACK asked for or accepted AccECN.
    pub accurate: bool,
    /// CE marks that it reported to the other end through the counter of AccECN. `None` without
    /// AccECN.
    pub reported_ce: Option<u64>,
}

/// Retransmits by reason.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Retransmits {
    /// Three duplicate acknowledgements or selective ones above it had passed the tap.
    pub fast: u64,
    /// After a silence of a retransmission timeout, and what followed it until the loss was repaired.
    pub timeout: u64,
    /// Tail loss probes (TLP, RFC 8985).
    pub tail: u64,
    /// The tap never saw the first copy: it was lost before the tap.
    pub lost_before_tap: u64,
    /// Reason unknown.
    pub unclassified: u64,
    /// Payload in all of them, bytes.
    pub bytes: u64,
    /// Of all of them, those the receiver reported as unneeded (DSACK).
    pub spurious: u64,
}

impl Retransmits {
    /// All kinds.
    pub fn total(&self) -> u64 {
        self.fast + self.timeout + self.tail + self.lost_before_tap + self.unclassified
    }
}

/// Round trips of one direction.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TraceRtt {
    /// Samples.
    pub samples: u64,
    /// Least, nanoseconds.
    pub min_ns: u64,
    /// Mean, nanoseconds.
    pub mean_ns: u64,
    /// Median, nanoseconds, to 5 %; `None` with few samples.
    pub p50_ns: Option<u64>,
    /// 90th percentile, nanoseconds, to 5 %.
    pub p90_ns: Option<u64>,
    /// 99th percentile, nanoseconds, to 5 %.
    pub p99_ns: Option<u64>,
    /// Greatest, nanoseconds.
    pub max_ns: u64,
    /// Their distribution.
    pub histogram: Vec<Bucket>,
}

/// What held a sender back, as the tap saw it, in time; the parts add up to `total_ns`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TraceLimits {
    /// All of the time, nanoseconds.
    pub total_ns: u64,
    /// Nothing was in flight and the application had nothing to send.
    pub idle_ns: u64,
    /// Less than two segments of the receiver's window were left, or the window was closed or too small for a segment while the
    /// sender had data.
    pub receiver_window_ns: u64,
    /// Nothing was in flight although the sender had more to send: pacing, or shaping before the tap.
    #[serde(default)]
    pub pacing_ns: u64,
    /// Between a loss and its repair.
    pub recovery_ns: u64,
    /// Data in flight and none of the above: the congestion window, the pacing or the path decided.
    pub sending_ns: u64,
}
