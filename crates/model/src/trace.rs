//! `landspeed.trace/2`: analysis of a capture.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Bucket, BuildInfo, PacketDirection, TraceCapture, TraceDirection, TraceGraphs, Warning};

/// Analysis of a capture.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TraceDocument {
    /// `landspeed.trace/2`; `landspeed.trace/1` in older documents, which are still readable.
    pub schema: String,
    /// Program that wrote the document.
    pub landspeed: BuildInfo,
    /// Command line, one argument per element.
    pub command: Vec<String>,
    /// The capture file and its frames.
    pub capture: TraceCapture,
    /// Flows, most payload first, up to the requested number.
    pub flows: Vec<TraceFlow>,
    /// Multipath TCP connections, most data first; their subflows are also in `flows`, up to the number listed there.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub multipath: Vec<TraceMultipath>,
    /// Totals of the flows that are not listed.
    pub unlisted: UnlistedFlows,
    /// Stations: sources of frames at the tap.
    pub stations: Vec<TraceStation>,
    /// Wire rate over time, all stations.
    pub bins: TraceBins,
    /// Comparison of each tap with the next, if several captures were given; the other fields then describe the first
    /// tap.
    pub path: Vec<TracePath>,
    /// Data packets lost between taps or in the receiver after the last tap, one entry each; at most 1000 per
    /// location. The counts in `flows` and `path` include all of them.
    pub losses: Vec<TraceLoss>,
    /// Conditions that limit the conclusions.
    pub warnings: Vec<Warning>,
    /// Data for graphs over time; `None` unless requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub graphs: Option<TraceGraphs>,
}

/// Two taps of one path, compared by matching packets.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TracePath {
    /// File of the first capture.
    pub from: String,
    /// File of the second capture.
    pub to: String,
    /// Packets found in both captures.
    pub matched: u64,
    /// Packets dropped from the comparison because too many were waiting for a match; no other count includes them.
    pub given_up: u64,
    /// Clock of the second tap − clock of the first at the first match, nanoseconds, assuming equal delays in both
    /// directions.
    pub clock_offset_ns: Option<i64>,
    /// Drift of the second tap's clock against the first's, parts per million; positive if the second is faster.
    /// Delays are corrected for it if it exceeds its uncertainty. `None` unless packets of both directions were
    /// matched.
    pub drift_ppm: Option<f64>,
    /// Uncertainty of the drift, parts per million.
    pub drift_uncertainty_ppm: Option<f64>,
    /// Clock steps between the taps; delays are corrected for them.
    pub clock_steps: Vec<ClockStep>,
    /// Minimum RTT between the taps, nanoseconds; independent of the clocks.
    pub round_trip_ns: Option<u64>,
    /// From the first tap to the second.
    pub forward: PathDirection,
    /// From the second tap to the first.
    #[serde(alias = "backward")]
    pub reverse: PathDirection,
}

/// A step of the second tap's clock relative to the first's.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ClockStep {
    /// End of the step, nanoseconds after the start of the first capture.
    pub time_ns: i64,
    /// Size of the step, nanoseconds; positive if the second clock jumped forward.
    pub step_ns: i64,
}

/// A lost packet.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TraceLoss {
    /// Location of the loss.
    pub place: LossPlace,
    /// File of the last capture that contains the packet.
    pub after: String,
    /// Time in that capture, nanoseconds after the start of the first capture, by the first tap's clock.
    pub time_ns: i64,
    /// Source of the packet.
    pub source: TraceEndpoint,
    /// Destination of the packet.
    pub destination: TraceEndpoint,
    /// TCP sequence number; `None` for UDP.
    pub sequence: Option<u32>,
    /// Payload of the packet, bytes.
    pub payload_bytes: u32,
    /// IPv4 identification; 0 carries no information.
    pub identification: u16,
    /// Frame number in the capture named in `after`, from 1.
    #[serde(default)]
    pub frame: u64,
}

/// Location of a loss.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum LossPlace {
    /// Between two taps.
    Network,
    /// After the last tap, in the receiver host.
    Receiver,
    /// After the last tap: discarded by the receiver's TCP because of an old timestamp (PAWS, RFC 7323).
    Paws,
}

/// Queueing delay (one-way delay above minimum) in time bins. Bins without packets or with a clock step have no
/// delay.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DelayOverTime {
    /// Start of the first bin, nanoseconds after the start of the first capture.
    pub start_ns: i64,
    /// Width of each bin, nanoseconds.
    pub width_ns: u64,
    /// Number of packets in each bin.
    pub packets: Vec<u64>,
    /// Median queueing delay in each bin, nanoseconds, from the direction's up to 16,384 sampled packets.
    pub p50_ns: Vec<Option<u64>>,
    /// Maximum queueing delay in each bin, nanoseconds, from all packets.
    pub max_ns: Vec<Option<u64>>,
}

/// One direction of the path between two taps.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PathDirection {
    /// Packets seen at both taps.
    pub matched: u64,
    /// Data packets lost between the taps.
    pub lost_data: u64,
    /// Packets without payload lost between the taps.
    pub lost_other: u64,
    /// Packets seen only at the second tap of this direction: created in the network, or missed by the first tap.
    pub appeared: u64,
    /// Packets seen at one tap while the other was not capturing; they count neither as lost nor as created in the
    /// network.
    #[serde(default)]
    pub undetermined: u64,
    /// Packets reordered within their flow.
    pub reordered: u64,
    /// Median queueing delay (one-way delay above minimum), nanoseconds, of up to 16,384 evenly sampled packets.
    pub delay_variation_p50_ns: Option<u64>,
    /// 99th percentile of the queueing delay, nanoseconds, of the same packets.
    pub delay_variation_p99_ns: Option<u64>,
    /// Maximum queueing delay, nanoseconds, of all packets.
    pub delay_variation_max_ns: Option<u64>,
    /// Queueing delay over time.
    pub delay: DelayOverTime,
    /// Share of this hop in the sum of all hops' p99 queueing delays, 0..=1, for three or more taps. `None` with two
    /// taps.
    pub delay_share: Option<f64>,
}

/// ICMP errors of one kind about packets of a flow.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TraceIcmp {
    /// Name of the type and code, such as `fragmentation needed`.
    pub what: String,
    /// Host that sent them.
    pub from: String,
    /// MTU of the next hop, bytes; `None` if the message has none.
    pub mtu_bytes: Option<u32>,
    /// Direction of the packets that they are about.
    pub about: PacketDirection,
    /// Number of messages.
    pub count: u64,
    /// Time of the first, nanoseconds after the start of the capture.
    pub time_ns: u64,
    /// Number of its frame, from 1.
    pub frame: u64,
}

/// Source or destination of a flow.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TraceEndpoint {
    /// IP address.
    pub address: String,
    /// TCP or UDP port.
    pub port: u16,
}

/// Transport protocol of a flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum TraceTransport {
    /// TCP.
    Tcp,
    /// UDP.
    Udp,
}

/// A flow; the direction with more payload is `forward`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TraceFlow {
    /// Transport protocol.
    pub transport: TraceTransport,
    /// Side that sent more payload.
    pub source: TraceEndpoint,
    /// Side that received more payload.
    pub destination: TraceEndpoint,
    /// Time of the first packet, nanoseconds after the start of the capture.
    pub start_ns: u64,
    /// Time from the first to the last packet, nanoseconds.
    pub duration_ns: u64,
    /// Goodput: payload counted once / time from its first byte to the last byte or its ACK, bits/s; `None` for a
    /// single packet.
    pub goodput_bps: Option<f64>,
    /// Retransmits of `source`, all kinds.
    pub retransmits: u64,
    /// Data packets of `source` lost between two taps; `None` with one tap, or if no packet of the flow was found at
    /// the other tap.
    pub lost_network: Option<u64>,
    /// Data packets of `source` that the receiver host dropped after its tap, shown by ACKs that lack them. `None`
    /// with one tap, or if no packet of the flow was found at the other tap.
    pub lost_receiver: Option<u64>,
    /// Median RTT between the tap and `destination`, nanoseconds; `None` without samples.
    pub rtt_ns: Option<u64>,
    /// Endpoints of another flow that is the same connection, captured before on the other side of a NAT or of a firewall that
    /// changes sequence numbers; `None` if there is none. The bytes count once in the totals of the capture.
    #[serde(default)]
    pub same_as: Option<[TraceEndpoint; 2]>,
    /// First RST of the connection; `None` without one.
    #[serde(default)]
    pub reset: Option<TraceReset>,
    /// ICMP errors about its packets, by kind and sender; at most 16.
    #[serde(default)]
    pub icmp: Vec<TraceIcmp>,
    /// Events of the flow in capture order; the first 200 of each direction.
    #[serde(default)]
    pub events: Vec<TraceEvent>,
    /// Number of events that are not listed.
    #[serde(default)]
    pub unlisted_events: u64,
    /// TCP handshake; `None` for UDP, or if it was before the capture.
    pub handshake: Option<TraceHandshake>,
    /// From `source` to `destination`.
    pub forward: TraceDirection,
    /// From `destination` to `source`.
    pub reverse: TraceDirection,
}

/// A multipath TCP connection (RFC 8684): subflows that are joined by keys and tokens.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TraceMultipath {
    /// Version of the protocol; `None` if the handshake of the initial subflow is not in the capture.
    pub version: Option<u8>,
    /// Data of the client that the server acknowledged (DATA_ACK), bytes; `None` if its key or the acknowledgements
    /// are not in the capture.
    pub client_bytes: Option<u64>,
    /// Data of the server that the client acknowledged, bytes; `None` as for `client_bytes`.
    pub server_bytes: Option<u64>,
    /// Data of both sides that more than one subflow carried, bytes; `None` unless all data was acknowledged and
    /// both ends of it are in the capture.
    pub reinjected_bytes: Option<u64>,
    /// Acknowledged data of the side that sent more / time from the first to the last packet of all subflows, bits/s.
    pub goodput_bps: Option<f64>,
    /// Subflows in the order in which they began.
    pub subflows: Vec<TraceSubflow>,
}

/// A subflow of a multipath TCP connection.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TraceSubflow {
    /// Address and port of the connection's client.
    pub client: TraceEndpoint,
    /// Address and port of the connection's server.
    pub server: TraceEndpoint,
    /// Whether it is the initial subflow (MP_CAPABLE), not a joined one (MP_JOIN).
    pub initial: bool,
    /// Whether it is a backup, which carries data only when the others do not work.
    pub backup: bool,
    /// Whether both sides completed the handshake with multipath options. A joined subflow without this carries no
    /// data.
    pub established: bool,
    /// Payload of the client, each byte of the subflow once, bytes.
    pub client_payload_bytes: u64,
    /// Payload of the server, each byte of the subflow once, bytes.
    pub server_payload_bytes: u64,
    /// Time of the first packet, nanoseconds after the start of the capture.
    pub start_ns: u64,
    /// Time from the first to the last packet, nanoseconds.
    pub duration_ns: u64,
}

/// The first RST of a connection.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TraceReset {
    /// Side that sent the RST.
    pub by: TraceEndpoint,
    /// Time of the RST, nanoseconds after the start of the capture.
    pub time_ns: u64,
    /// Number of its frame, from 1.
    pub frame: u64,
}

/// An event of a flow.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TraceEvent {
    /// Kind of event.
    pub kind: TraceEventKind,
    /// Direction of the packet.
    #[serde(alias = "way")]
    pub direction: PacketDirection,
    /// Number of the packet's frame, from 1.
    pub frame: u64,
    /// Time of the packet, nanoseconds after the start of the capture.
    pub time_ns: u64,
    /// TCP sequence number of the packet; for zero window, opened window and reneging, its ACK number.
    pub sequence: u32,
    /// RTO retransmit: silence before it (the RTO observed at the tap), nanoseconds; `None` for later retransmits of
    /// the same recovery and other events.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rto_ns: Option<u64>,
}

/// Kind of event of a flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum TraceEventKind {
    /// Fast retransmit.
    Fast,
    /// Retransmit after an RTO.
    Timeout,
    /// Tail loss probe (TLP).
    Tail,
    /// Retransmit whose original was lost before the tap.
    LostBeforeTap,
    /// Retransmit of unknown kind.
    Unclassified,
    /// Packet reordered in the network.
    OutOfOrder,
    /// Packet duplicated in the network.
    Duplicate,
    /// Keep-alive or zero-window probe.
    Probe,
    /// The receive window closed.
    ZeroWindow,
    /// The receive window reopened.
    WindowOpened,
    /// Reneging: the receiver dropped data it had acknowledged with SACK (RFC 2018).
    Reneging,
    /// SYN or SYN-ACK.
    Syn,
    /// A FIN.
    Fin,
    /// An RST.
    Reset,
}

/// TCP handshake of a connection.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TraceHandshake {
    /// Side that sent the SYN; `None` if the capture does not contain it.
    pub client: Option<TraceEndpoint>,
    /// RTT between the tap and the server, from SYN to SYN-ACK, nanoseconds.
    pub server_rtt_ns: Option<u64>,
    /// RTT between the tap and the client, from SYN-ACK to ACK, nanoseconds.
    pub client_rtt_ns: Option<u64>,
    /// Initial sequence number of the client, which distinguishes connections with the same four-tuple.
    #[serde(default)]
    pub client_sequence: Option<u32>,
    /// Retransmitted SYNs.
    pub syn_retransmits: u32,
    /// Time from the first SYN to the last one, nanoseconds; 0 with a single SYN.
    #[serde(default)]
    pub syn_span_ns: u64,
    /// Whether a SYN-ACK answered the SYN.
    #[serde(default)]
    pub answered: Option<bool>,
    /// Connect time: from the first SYN to the ACK that completes the handshake, nanoseconds; `None` if one of them is not
    /// in the capture.
    #[serde(default)]
    pub connect_ns: Option<u64>,
}

/// Statistics of datagrams that carry sequence numbers of a known protocol.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TraceNumbered {
    /// Name of the protocol, detected from the datagrams.
    pub protocol: String,
    /// Share of the datagrams whose sequence number, tag and timestamp fit the protocol, 0..=1.
    pub confidence: f64,
    /// Sequence numbers received.
    pub received: u64,
    /// Sequence numbers lost between the first and the last.
    pub lost: u64,
    /// Sequence numbers received after a higher one.
    pub reordered: u64,
    /// Sequence numbers received twice.
    pub duplicates: u64,
}

/// Totals of the flows that are not listed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct UnlistedFlows {
    /// Number of flows.
    pub flows: u64,
    /// Packets of these flows.
    pub packets: u64,
    /// Payload bytes of these flows, retransmits and duplicates included.
    pub payload_bytes: u64,
    /// Payload bytes of these flows, each byte counted once.
    #[serde(default)]
    pub unique_bytes: u64,
    /// Retransmits of these flows.
    pub retransmits: u64,
}

/// A station: a source of frames at the tap.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TraceStation {
    /// Capture interface.
    pub interface: String,
    /// Source MAC address; `None` if the link has none.
    pub mac: Option<String>,
    /// Number of frames.
    pub frames: u64,
    /// Bytes of the frames on the wire.
    pub wire_bytes: u64,
    /// Rate in bins of 1 ms.
    pub per_1ms: BinRates,
    /// Rate in bins of 10 ms.
    pub per_10ms: BinRates,
    /// Inter-frame gaps by size of the later frame.
    pub gaps: Vec<GapClass>,
    /// Trains: frames in close succession.
    pub trains: Trains,
    /// Microbursts above the requested threshold; `None` without a threshold.
    pub microbursts: Option<Microbursts>,
    /// Spacing of pure ACKs; `None` without pure ACKs.
    pub ack_spacing: Option<AckSpacing>,
}

/// Distribution of the rate over bins of one width, empty bins between the first and the last frame included.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BinRates {
    /// Number of bins.
    pub bins: u64,
    /// Mean rate, bits/s.
    pub mean_bps: f64,
    /// Median rate, bits/s, accurate to 5 %.
    pub p50_bps: f64,
    /// 99th percentile of the rate, bits/s, accurate to 5 %.
    pub p99_bps: f64,
    /// Maximum rate, bits/s.
    pub max_bps: f64,
    /// Number of bins above the microburst threshold; `None` without a threshold.
    pub above: Option<u64>,
}

/// Inter-frame gaps before frames of a size class.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct GapClass {
    /// Minimum frame size of the class, bytes.
    pub from_bytes: u32,
    /// Maximum frame size of the class, bytes.
    pub to_bytes: u32,
    /// Median gap, nanoseconds, accurate to 5 %.
    pub p50_ns: u64,
    /// 99th percentile of the gap, nanoseconds, accurate to 5 %.
    pub p99_ns: u64,
    /// Histogram of the gaps.
    pub histogram: Vec<Bucket>,
}

/// Trains: frames of a station with gaps shorter than `gap_ns`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Trains {
    /// Minimum gap between trains, nanoseconds.
    pub gap_ns: u64,
    /// Number of trains with two or more frames.
    pub trains: u64,
    /// Median length of the trains, frames.
    pub p50_frames: u64,
    /// 99th percentile of the length, frames.
    pub p99_frames: u64,
    /// Longest train, frames.
    pub longest_frames: u64,
    /// Median rate within trains of ten or more frames, bits/s: an estimate of the link rate before the tap.
    pub rate_bps: Option<f64>,
}

/// Microbursts: periods with a rate above a threshold.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Microbursts {
    /// Rate threshold, bits/s.
    pub above_bps: u64,
    /// Averaging window of the rate, nanoseconds.
    pub window_ns: u64,
    /// Number of microbursts.
    pub count: u64,
    /// Microbursts with the most bytes, largest first; at most 64.
    pub worst: Vec<Microburst>,
}

/// A period in which every window was above the threshold.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Microburst {
    /// Time of the first frame, nanoseconds after the start of the capture.
    pub start_ns: u64,
    /// Time from the first to the last frame, nanoseconds.
    pub duration_ns: u64,
    /// Bytes on the wire in the period.
    pub bytes: u64,
    /// Maximum rate over one window, bits/s.
    pub peak_bps: f64,
}

/// Spacing of pure ACKs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AckSpacing {
    /// Number of pure ACKs.
    pub acks: u64,
    /// Share of ACKs within 1 µs of the previous one, 0..=1.
    pub bunched: f64,
    /// Most common gap of at least 2 µs, nanoseconds. If its share is large, it is the period of a framing below IP.
    pub usual_gap_ns: Option<u64>,
    /// Share of `usual_gap_ns` in all gaps, 0..=1.
    pub usual_gap_share: Option<f64>,
    /// Period of a framing below IP (SONET: 125 µs), nanoseconds: distances between clusters of ACKs are multiples of
    /// it. `None` if none was detected.
    pub period_ns: Option<u64>,
    /// Fit of the distances to `period_ns`: 1 is exact, 0 is none.
    pub period_confidence: Option<f64>,
    /// Histogram of the gaps between ACKs.
    #[serde(default)]
    pub histogram: Vec<Bucket>,
}

/// Wire rate over time.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TraceBins {
    /// Width of each bin, nanoseconds.
    pub width_ns: u64,
    /// Bytes on the wire in each bin.
    pub bytes: Vec<u64>,
    /// Retransmits in each bin.
    pub retransmits: Vec<u32>,
}
