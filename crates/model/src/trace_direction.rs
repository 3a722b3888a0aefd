//! One direction of a flow in a capture; a part of `landspeed.trace/2`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Bucket, TraceNumbered};

/// One direction of a flow: the packets one side sent, as recorded at the tap.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TraceDirection {
    /// Packets sent.
    pub packets: u64,
    /// Bytes of the frames on the wire.
    pub wire_bytes: u64,
    /// Payload bytes, retransmits and duplicates included.
    pub payload_bytes: u64,
    /// Payload bytes, each byte counted once.
    pub unique_bytes: u64,
    /// Pure ACKs: acknowledgements without payload.
    pub pure_acks: u64,
    /// MSS option of the SYN, bytes; `None` without the handshake or the option.
    pub mss: Option<u16>,
    /// Window scale option of the SYN (shift count); `None` without the handshake or the option.
    pub window_scale: Option<u8>,
    /// Whether the SYN had the SACK-permitted option.
    pub sack_permitted: bool,
    /// Whether packets had TCP timestamps.
    pub timestamps: bool,
    /// Whether this side sent a FIN or RST.
    pub closed: bool,
    /// RSTs sent.
    #[serde(default)]
    pub resets: u64,
    /// Goodput: payload counted once / time from its first byte to the last byte or its ACK, bits/s.
    #[serde(default)]
    pub goodput_bps: Option<f64>,
    /// Data packets lost between two taps; `None` with one tap, or if the flow was not found at the other tap.
    #[serde(default)]
    pub lost_network: Option<u64>,
    /// Data packets that the receiver host dropped after its tap; `None` as in `lost_network`, and for the direction
    /// towards the first tap if there are more than two.
    #[serde(default)]
    pub lost_receiver: Option<u64>,
    /// Data packets that passed the last tap twice before an ACK, without evidence whether the receiver dropped the
    /// first copy: neither a DSACK for the second copy nor an ACK that lacked the first. `None` as in
    /// `lost_receiver`.
    #[serde(default)]
    pub undetermined_receiver: Option<u64>,
    /// Data packets that the receiver discarded after its tap because their TCP timestamp was older than one it had
    /// accepted (PAWS, RFC 7323; `TcpExtPAWSEstab` on Linux); not in `lost_receiver`. `None` as in `lost_receiver`.
    #[serde(default)]
    pub lost_paws: Option<u64>,
    /// ECN marks and flags; `None` if this direction did not use ECN.
    #[serde(default)]
    pub ecn: Option<TraceEcn>,
    /// Retransmits by kind.
    pub retransmits: Retransmits,
    /// Reordered packets: they filled a hole and were not retransmits, judging by IP identification, timestamp or
    /// time.
    pub out_of_order: u64,
    /// Packets duplicated in the network (the same packet twice).
    pub duplicates: u64,
    /// Payload bytes that the other side acknowledged but the tap did not record: missing from the capture.
    pub missing_bytes: u64,
    /// Keep-alives and zero-window probes, with and without a byte of data.
    pub probes: u64,
    /// Duplicate ACKs sent.
    pub duplicate_acks: u64,
    /// Ranges reported as received twice (DSACK, RFC 2883).
    pub dsacks: u64,
    /// Times this side closed its receive window.
    pub zero_windows: u64,
    /// Total time this side's receive window was closed, nanoseconds.
    #[serde(default)]
    pub zero_window_ns: u64,
    /// Periods of a closed receive window; the first 100.
    #[serde(default)]
    pub zero_window_periods: Vec<ZeroWindow>,
    /// Minimum receive window announced after the handshake, bytes; `None` if the window scale is unknown.
    pub window_min_bytes: Option<u64>,
    /// Maximum receive window announced, bytes; `None` if the window scale is unknown.
    pub window_max_bytes: Option<u64>,
    /// Effective window scale: negotiated by both sides (0 if one did not offer it), or given with `--window-scale`.
    /// `None` if the capture does not contain the handshake.
    #[serde(default)]
    pub window_scale_in_force: Option<u8>,
    /// Lower bound of an unknown window scale: with less, the sender would have exceeded the window. `None` if the
    /// scale is known or there is no bound.
    #[serde(default)]
    pub window_scale_at_least: Option<u8>,
    /// Reneging: times this side dropped data it had acknowledged with SACK (RFC 2018).
    #[serde(default)]
    pub reneged: u64,
    /// Observed RTO: silences before retransmission timeouts. `None` without a timeout.
    #[serde(default)]
    pub rto: Option<TraceRto>,
    /// Maximum data in flight as seen at the tap, bytes.
    pub in_flight_max_bytes: u64,
    /// Maximum data in flight less what the receiver has acknowledged with SACK, bytes.
    #[serde(default)]
    pub in_flight_unsacked_max_bytes: Option<u64>,
    /// Segments that filled the receive window to its end; `None` if the window scale is unknown.
    #[serde(default)]
    pub window_full: Option<u64>,
    /// Data packets per ACK that acknowledged new data; `None` without such an ACK.
    pub packets_per_ack: Option<f64>,
    /// Stretch ACKs: ACKs of this direction's data that cover more than two full segments.
    pub stretch_acks: u64,
    /// RTT between the tap and the receiver of this direction; `None` without a sample.
    pub rtt: Option<TraceRtt>,
    /// RTT between the tap and the receiver, from data to the SACK block that ends with it; `None` without a sample.
    #[serde(default)]
    pub rtt_sack: Option<TraceRtt>,
    /// RTT between the tap and the receiver by TCP timestamps (RFC 7323): from the first data segment with a TSval to the
    /// first ACK that echoes it. Includes delayed ACKs, and samples of retransmits. `None` without a sample.
    #[serde(default)]
    pub rtt_timestamps: Option<TraceRtt>,
    /// Time by limiting factor of the sender; `None` if no data was acknowledged, or if the tap is closer to the
    /// receiver, where the data in flight at the sender is not visible.
    pub limits: Option<TraceLimits>,
    /// UDP: statistics of numbered datagrams; `None` if the protocol is not known.
    pub numbered: Option<TraceNumbered>,
}

/// Observed RTO: silences before retransmission timeouts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TraceRto {
    /// Number of timeouts; only the first retransmit of each is counted.
    pub count: u64,
    /// Shortest silence, nanoseconds.
    pub min_ns: u64,
    /// Longest silence, nanoseconds.
    pub max_ns: u64,
}

/// A period in which the receive window was closed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ZeroWindow {
    /// Time the window closed at the tap, nanoseconds after the start of the capture.
    pub start_ns: u64,
    /// Time until the window opened at the tap, or until the connection's last packet, nanoseconds.
    pub duration_ns: u64,
    /// Number of the frame that closed the window, from 1.
    pub frame: u64,
}

/// Explicit congestion notification in one direction (RFC 3168, RFC 9768).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TraceEcn {
    /// Packets marked ECT(0).
    pub ect0: u64,
    /// Packets marked ECT(1).
    pub ect1: u64,
    /// Packets marked CE at the tap: a queue before the tap signalled congestion.
    pub ce: u64,
    /// Packets with the ECE flag after the handshake: congestion echo of classic ECN. With AccECN, the flags are a
    /// counter.
    pub ece: u64,
    /// Packets with the CWR flag after the handshake.
    pub cwr: u64,
    /// Whether the SYN or SYN-ACK requested or accepted AccECN.
    pub accurate: bool,
    /// CE marks this side reported to the other through the AccECN counter; `None` unless both sides use AccECN.
    pub reported_ce: Option<u64>,
}

/// Retransmits by kind.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Retransmits {
    /// Fast retransmits: after three duplicate ACKs or SACK of later data at the tap.
    pub fast: u64,
    /// After a retransmission timeout (RTO), later retransmits of the same recovery included.
    pub timeout: u64,
    /// Tail loss probes (TLP, RFC 8985).
    pub tail: u64,
    /// Retransmits whose original was lost before the tap.
    pub lost_before_tap: u64,
    /// Retransmits of unknown kind.
    pub unclassified: u64,
    /// Payload bytes of all retransmits.
    pub bytes: u64,
    /// Spurious retransmits among all of them, as reported by the receiver (DSACK).
    pub spurious: u64,
}

impl Retransmits {
    /// Returns the number of retransmits of all kinds.
    pub fn total(&self) -> u64 {
        self.fast + self.timeout + self.tail + self.lost_before_tap + self.unclassified
    }
}

/// RTT samples of one direction.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TraceRtt {
    /// Number of samples.
    pub samples: u64,
    /// Minimum RTT, nanoseconds.
    pub min_ns: u64,
    /// Mean RTT, nanoseconds.
    pub mean_ns: u64,
    /// Median RTT, nanoseconds, accurate to 5 %; `None` with few samples.
    pub p50_ns: Option<u64>,
    /// 90th percentile of the RTT, nanoseconds, accurate to 5 %; `None` with few samples.
    pub p90_ns: Option<u64>,
    /// 99th percentile of the RTT, nanoseconds, accurate to 5 %; `None` with few samples.
    pub p99_ns: Option<u64>,
    /// Maximum RTT, nanoseconds.
    pub max_ns: u64,
    /// Histogram of the samples; empty with few samples.
    pub histogram: Vec<Bucket>,
}

/// Time by limiting factor of a sender, as seen at the tap; the parts add up to `total_ns`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TraceLimits {
    /// Total time, nanoseconds.
    pub total_ns: u64,
    /// Sender-limited: nothing in flight and no data to send, nanoseconds.
    pub idle_ns: u64,
    /// Receiver-limited (rwnd): less than two segments of the window left, or the window closed or smaller than a
    /// segment while the sender had data, nanoseconds.
    pub receiver_window_ns: u64,
    /// Nothing in flight although the sender had data: pacing, or shaping before the tap, nanoseconds.
    #[serde(default)]
    pub pacing_ns: u64,
    /// Recovery: between a loss and its repair, nanoseconds.
    pub recovery_ns: u64,
    /// Data in flight and none of the above: limited by cwnd, pacing or the path, nanoseconds.
    pub sending_ns: u64,
}
