//! What a capture shows (`landspeed.trace/2`).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Bucket, BuildInfo, PacketDirection, TraceDirection, TraceGraphs, Warning};

/// A capture, analysed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TraceDocument {
    /// `landspeed.trace/2`; in older documents `landspeed.trace/1`, which is read alike.
    pub schema: String,
    /// The program.
    pub landspeed: BuildInfo,
    /// The command line.
    pub command: Vec<String>,
    /// What was read.
    pub capture: TraceCapture,
    /// Flows, the one with the most payload first; not more than asked for.
    pub flows: Vec<TraceFlow>,
    /// Flows that are not listed, in sums.
    pub unlisted: UnlistedFlows,
    /// What each station put on the wire.
    pub stations: Vec<TraceStation>,
    /// Rate over time, all stations.
    pub bins: TraceBins,
    /// Between each tap and the next, where several captures were given; `flows` and the rest are then the first tap's.
    pub path: Vec<TracePath>,
    /// Packets with data that were lost between the taps or in the receiver after the last one, each; the first thousand of
    /// a place. The counts of `flows` and `path` are of all of them.
    pub losses: Vec<TraceLoss>,
    /// What limits the conclusions.
    pub warnings: Vec<Warning>,
    /// What graphs over time are drawn from; only where it was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub graphs: Option<TraceGraphs>,
}

/// Two taps of one path: the same packets, matched.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TracePath {
    /// The first capture.
    pub from: String,
    /// The second one.
    pub to: String,
    /// Packets that both have.
    pub matched: u64,
    /// Packets given up because too many waited for their match: they are in no count.
    pub given_up: u64,
    /// The second tap's clock minus the first's at the first match, nanoseconds, if the way there takes as long as the way
    /// back.
    pub clock_offset_ns: Option<i64>,
    /// How much faster the second tap's clock runs than the first's, parts per million; it was taken out of the delays if it
    /// is greater than its uncertainty. `None` unless packets of both directions were matched.
    pub drift_ppm: Option<f64>,
    /// How far the drift may be wrong, parts per million.
    pub drift_uncertainty_ppm: Option<f64>,
    /// Steps of one clock against the other, taken out of the delays.
    pub clock_steps: Vec<ClockStep>,
    /// Minimum RTT between the taps, nanoseconds. It does not depend on the clocks.
    pub round_trip_ns: Option<u64>,
    /// From the first to the second tap.
    pub forward: PathDirection,
    /// From the second to the first.
    #[serde(alias = "backward")]
    pub reverse: PathDirection,
}

/// A step of the second tap's clock against the first's.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ClockStep {
    /// When it was over, nanoseconds from the start of the first capture.
    pub time_ns: i64,
    /// By how much the second clock got ahead, nanoseconds.
    pub step_ns: i64,
}

/// A packet that did not arrive.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TraceLoss {
    /// Where.
    pub place: LossPlace,
    /// The capture it passed last.
    pub after: String,
    /// When it passed there, by the first tap's clock, nanoseconds from the start of the first capture.
    pub time_ns: i64,
    /// Who sent it.
    pub source: TraceEndpoint,
    /// To whom.
    pub destination: TraceEndpoint,
    /// TCP sequence number; `None` for UDP.
    pub sequence: Option<u32>,
    /// Payload, bytes.
    pub payload_bytes: u32,
    /// IPv4's identification; 0 says nothing.
    pub identification: u16,
    /// Number of the frame in the capture it passed last, from 1.
    #[serde(default)]
    pub frame: u64,
}

/// Where a packet was lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum LossPlace {
    /// Between two taps.
    Network,
    /// Behind the last tap, in the host that should have received it.
    Receiver,
}

/// Delay over the least, in bins of time. A bin without packets has no delay, and neither has one in which a clock stepped.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DelayOverTime {
    /// Start of the first bin, nanoseconds from the start of the first capture.
    pub start_ns: i64,
    /// Width of a bin, nanoseconds.
    pub width_ns: u64,
    /// Packets in each.
    pub packets: Vec<u64>,
    /// Median, nanoseconds, of those that are among the direction's 16,384 sampled packets.
    pub p50_ns: Vec<Option<u64>>,
    /// Greatest, nanoseconds, of all.
    pub max_ns: Vec<Option<u64>>,
}

/// One direction between two taps.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PathDirection {
    /// Packets that passed both.
    pub matched: u64,
    /// Packets with payload that passed the one and never the other.
    pub lost_data: u64,
    /// Packets without payload, likewise.
    pub lost_other: u64,
    /// Packets that passed the later tap and not the earlier: made on the way, or missed by the earlier tap.
    pub appeared: u64,
    /// Packets only one tap showed, at a time when the other had not begun yet or had ended: neither lost nor made on the way,
    /// for all that can be known.
    #[serde(default)]
    pub undetermined: u64,
    /// Packets that changed places with another of their flow.
    pub reordered: u64,
    /// Delay over the least, median, nanoseconds, of up to 16,384 packets drawn evenly.
    pub delay_variation_p50_ns: Option<u64>,
    /// Delay over the least, 99th percentile, nanoseconds, of the same.
    pub delay_variation_p99_ns: Option<u64>,
    /// Greatest delay over the least, nanoseconds, of all packets.
    pub delay_variation_max_ns: Option<u64>,
    /// Delay over time: where it is great, a queue was full.
    pub delay: DelayOverTime,
    /// In a chain of taps, this hop's share of the 99th percentiles of all hops: which of them adds the delay. `None` with
    /// two taps.
    pub delay_share: Option<f64>,
}

/// What was read.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TraceCapture {
    /// The file, as named.
    pub file: String,
    /// Its format.
    pub format: String,
    /// Frames read.
    pub frames: u64,
    /// Their bytes on the wire.
    pub wire_bytes: u64,
    /// Their bytes in the capture.
    pub captured_bytes: u64,
    /// Time of the first frame, nanoseconds since the Unix epoch.
    pub start_ns: u64,
    /// From the earliest to the latest frame, nanoseconds.
    pub duration_ns: u64,
    /// Frames that are not IP.
    pub not_ip: u64,
    /// Frames cut before their transport header's end.
    pub cut: u64,
    /// Frames whose lengths contradict each other.
    pub malformed: u64,
    /// Fragments without a transport header.
    pub fragments: u64,
    /// IP packets of other transports than TCP and UDP.
    pub other_transport: u64,
    /// Frames in a wrapping (VLAN, MPLS, GRE, VXLAN, Geneve, IP in IP, PPPoE).
    pub wrapped: u64,
    /// Frames longer than any wire carries: super-packets of TSO, GRO or BIG TCP.
    pub super_packets: u64,
    /// Frames earlier than the one before them.
    pub backward_steps: u64,
    /// Frames that the file has out of order by 100 µs at most, and that were sorted by their timestamps.
    #[serde(default)]
    pub sorted: u64,
    /// Copies of frames that the capture holds twice (SPAN port, two interfaces of one router), ignored.
    #[serde(default)]
    pub copies: u64,
    /// TCP segments whose options the snap length cut: their SACK blocks, timestamps or window scale may be missing.
    #[serde(default)]
    pub options_cut: u64,
    /// Payload of all flows and both directions, each byte once, bytes.
    #[serde(default)]
    pub unique_bytes: u64,
    /// The same over the duration of the capture, bits/s. `None` for a single frame.
    #[serde(default)]
    pub goodput_bps: Option<f64>,
    /// Frames dropped by the capture itself, where it says.
    pub dropped: Option<u64>,
    /// Flows taken out of memory because there were more at once than allowed.
    pub evicted_flows: u64,
    /// Why reading ended before the end of the file.
    pub ended_early: Option<String>,
}

/// One end of a flow.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TraceEndpoint {
    /// Address.
    pub address: String,
    /// Port.
    pub port: u16,
}

/// Transport of a flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum TraceTransport {
    /// TCP.
    Tcp,
    /// UDP.
    Udp,
}

/// A flow: the direction with more payload is the forward one; the other is `reverse`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TraceFlow {
    /// TCP or UDP.
    pub transport: TraceTransport,
    /// Where most payload came from.
    pub source: TraceEndpoint,
    /// Where it went.
    pub destination: TraceEndpoint,
    /// First packet, nanoseconds from the start of the capture.
    pub start_ns: u64,
    /// From its first to its last packet, nanoseconds.
    pub duration_ns: u64,
    /// Payload that was new, from its first byte to its last or its acknowledgement, bits/s. `None` for a single packet.
    pub goodput_bps: Option<f64>,
    /// Retransmits of `source`, all kinds.
    pub retransmits: u64,
    /// Packets of `source` with data that were lost between two taps; `None` with one tap, and where none of the flow's
    /// packets was found at the other tap.
    pub lost_network: Option<u64>,
    /// Packets of `source` with data that the receiver host dropped after its tap: the receiver demonstrably lacked them.
    /// `None` with one tap, and where none of the flow's packets was found at the other tap.
    pub lost_receiver: Option<u64>,
    /// Median round trip from the tap to `destination` and back, nanoseconds.
    pub rtt_ns: Option<u64>,
    /// Who reset the connection first, and when; `None` without an RST.
    #[serde(default)]
    pub reset: Option<TraceReset>,
    /// What happened to the flow, in the order of the capture: the first 200 of each direction.
    #[serde(default)]
    pub events: Vec<TraceEvent>,
    /// Events that are not listed.
    #[serde(default)]
    pub unlisted_events: u64,
    /// How the connection began; `None` for UDP, or where that was before the capture.
    pub handshake: Option<TraceHandshake>,
    /// From `source` to `destination`.
    pub forward: TraceDirection,
    /// From `destination` to `source`.
    pub reverse: TraceDirection,
}

/// The first RST of a connection.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TraceReset {
    /// Who sent it.
    pub by: TraceEndpoint,
    /// When, nanoseconds from the start of the capture.
    pub time_ns: u64,
    /// Number of its frame, from 1.
    pub frame: u64,
}

/// Something that happened to a flow.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TraceEvent {
    /// What.
    pub kind: TraceEventKind,
    /// Whether the packet was the source's or the destination's.
    #[serde(alias = "way")]
    pub direction: PacketDirection,
    /// Number of the frame, from 1.
    pub frame: u64,
    /// When, nanoseconds from the start of the capture.
    pub time_ns: u64,
    /// TCP sequence number of the packet; of a zero window, an opened window and reneging the acknowledgement number.
    pub sequence: u32,
    /// Of a retransmission after a timeout: how long the connection had been silent, the RTO as the tap saw it, nanoseconds.
    /// `None` for the retransmissions that follow the first one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rto_ns: Option<u64>,
}

/// What happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum TraceEventKind {
    /// A fast retransmit.
    Fast,
    /// A retransmission after an RTO.
    Timeout,
    /// A tail loss probe.
    Tail,
    /// A retransmission whose first copy was lost before the tap.
    LostBeforeTap,
    /// A retransmission whose reason is unknown.
    Unclassified,
    /// A packet that had been overtaken in the network.
    OutOfOrder,
    /// A packet duplicated in the network.
    Duplicate,
    /// A keep-alive or zero-window probe.
    Probe,
    /// The receive window closed.
    ZeroWindow,
    /// The receive window opened again.
    WindowOpened,
    /// The receiver dropped data that it had selectively acknowledged (reneging, RFC 2018).
    Reneging,
    /// A SYN.
    Syn,
    /// A FIN.
    Fin,
    /// An RST.
    Reset,
}

/// A handshake.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TraceHandshake {
    /// Who sent the SYN.
    pub client: Option<TraceEndpoint>,
    /// From SYN to SYN-ACK: from the tap to the server and back, nanoseconds.
    pub server_rtt_ns: Option<u64>,
    /// From SYN-ACK to ACK: from the tap to the client and back, nanoseconds.
    pub client_rtt_ns: Option<u64>,
    /// Initial sequence number of the client: it distinguishes connections with the same four-tuple.
    #[serde(default)]
    pub client_sequence: Option<u32>,
    /// SYNs beyond the first.
    pub syn_retransmits: u32,
}

/// Datagrams with numbers of a protocol that is known.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TraceNumbered {
    /// Which protocol, by the datagrams themselves.
    pub protocol: String,
    /// Share of the datagrams whose number, tag and clock go on from the others', as that protocol's do.
    pub confidence: f64,
    /// Numbers that came.
    pub received: u64,
    /// Numbers missing between the first and the last, that never came.
    pub lost: u64,
    /// Numbers that came after a greater one.
    pub reordered: u64,
    /// Numbers that came twice.
    pub duplicates: u64,
}

/// Flows that are not listed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct UnlistedFlows {
    /// How many.
    pub flows: u64,
    /// Their packets.
    pub packets: u64,
    /// Their payload, bytes.
    pub payload_bytes: u64,
    /// Their payload, each byte once, bytes.
    #[serde(default)]
    pub unique_bytes: u64,
    /// Their retransmits.
    pub retransmits: u64,
}

/// What one station (the source of frames at the tap) put on the wire.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TraceStation {
    /// Interface of the capture.
    pub interface: String,
    /// Source address of its frames; `None` where the link has none.
    pub mac: Option<String>,
    /// Frames.
    pub frames: u64,
    /// Their bytes.
    pub wire_bytes: u64,
    /// Rate in bins of a millisecond.
    pub per_1ms: BinRates,
    /// Rate in bins of ten milliseconds.
    pub per_10ms: BinRates,
    /// Gaps between its frames, by the size of the later one.
    pub gaps: Vec<GapClass>,
    /// Frames that followed each other closely.
    pub trains: Trains,
    /// When it was faster than the threshold; `None` without a threshold.
    pub microbursts: Option<Microbursts>,
    /// How its acknowledgements are spaced; `None` without any.
    pub ack_spacing: Option<AckSpacing>,
}

/// Rates in bins of one width. Bins between the first and the last frame count, empty ones too.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BinRates {
    /// Bins.
    pub bins: u64,
    /// Mean, bits/s.
    pub mean_bps: f64,
    /// Median, bits/s, to 5 %.
    pub p50_bps: f64,
    /// 99th percentile, bits/s, to 5 %.
    pub p99_bps: f64,
    /// Greatest, bits/s.
    pub max_bps: f64,
    /// Bins above the threshold asked for (microbursts); `None` without a threshold.
    pub above: Option<u64>,
}

/// Gaps before frames of a size class.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct GapClass {
    /// Least frame, bytes.
    pub from_bytes: u32,
    /// Greatest frame, bytes.
    pub to_bytes: u32,
    /// Median gap, nanoseconds, to 5 %.
    pub p50_ns: u64,
    /// 99th percentile, nanoseconds, to 5 %.
    pub p99_ns: u64,
    /// The distribution.
    pub histogram: Vec<Bucket>,
}

/// Frames of a station that followed each other within `gap_ns`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Trains {
    /// The gap that ends a train, nanoseconds.
    pub gap_ns: u64,
    /// Trains of two frames and more.
    pub trains: u64,
    /// Median length, frames.
    pub p50_frames: u64,
    /// 99th percentile, frames.
    pub p99_frames: u64,
    /// Longest, frames.
    pub longest_frames: u64,
    /// Median rate inside trains of ten frames and more, bits/s: an estimate of the line the frames came from.
    pub rate_bps: Option<f64>,
}

/// Stretches of time above a rate.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Microbursts {
    /// The threshold, bits/s.
    pub above_bps: u64,
    /// The window the rate is taken over, nanoseconds.
    pub window_ns: u64,
    /// How many there were.
    pub count: u64,
    /// Those with the most bytes, the greatest first; 64 at most.
    pub worst: Vec<Microburst>,
}

/// A stretch of time in which every window was above the threshold.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Microburst {
    /// Its first frame, nanoseconds from the start of the capture.
    pub start_ns: u64,
    /// To its last frame, nanoseconds.
    pub duration_ns: u64,
    /// Bytes on the wire.
    pub bytes: u64,
    /// Rate of its fullest window, bits/s.
    pub peak_bps: f64,
}

/// How acknowledgements follow each other.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AckSpacing {
    /// Acknowledgements without payload.
    pub acks: u64,
    /// Share that came within a microsecond of the one before.
    pub bunched: f64,
    /// The most common gap of two microseconds and more, nanoseconds, and its share of all gaps: the period of a framing
    /// underneath, if the share is large.
    pub usual_gap_ns: Option<u64>,
    /// That share.
    pub usual_gap_share: Option<f64>,
    /// The period of a framing underneath (SONET: 125 µs): acknowledgements come in clusters whose distances are multiples
    /// of it, nanoseconds. `None` where none is seen.
    pub period_ns: Option<u64>,
    /// How well the distances keep to that period: 1 exactly, 0 not at all.
    pub period_confidence: Option<f64>,
    /// The gaps' distribution.
    #[serde(default)]
    pub histogram: Vec<Bucket>,
}

/// Rate over time.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TraceBins {
    /// Width of a bin, nanoseconds.
    pub width_ns: u64,
    /// Bytes on the wire in each.
    pub bytes: Vec<u64>,
    /// Retransmits in each.
    pub retransmits: Vec<u32>,
}
