//! Data for graphs of a capture, and the comparison of two captures (`landspeed.tracecomparison/1`).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{BuildInfo, TraceDocument};

/// Data for graphs over time.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TraceGraphs {
    /// Wire rate of all frames of the capture.
    pub rate: TraceRate,
    /// Directions of TCP flows with data, most payload first.
    pub series: Vec<TraceSeries>,
    /// Number of TCP flows with payload without a series, because others had more.
    pub left_out: u64,
}

/// Bytes on the wire in time bins, which are 1 ms wide or 1 ms times a power of ten.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TraceRate {
    /// Width of each bin, nanoseconds.
    pub width_ns: u64,
    /// Bytes in each bin, from the start of the capture.
    pub bytes: Vec<u64>,
    /// Maximum bytes per millisecond in each bin; empty if bins are 1 ms wide.
    pub most_in_1ms: Vec<u64>,
}

/// Direction of packets in a flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum PacketDirection {
    /// From the flow's source to its destination.
    Forward,
    /// From the flow's destination to its source.
    Reverse,
}

/// Time-sequence graph of one direction: its data, and the ACKs from the other side.
///
/// Sequence numbers are relative to the first one at the tap; times are relative to the start of the capture.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TraceSeries {
    /// Index of the flow in `flows`.
    pub flow: usize,
    /// Direction of the data.
    #[serde(alias = "way")]
    pub direction: PacketDirection,
    /// Payload bytes, retransmits and duplicates included.
    pub payload_bytes: u64,
    /// Number of segments and ACKs.
    pub packets: u64,
    /// Number of those in `detail`.
    pub kept: u64,
    /// Time of the last packet, nanoseconds.
    pub end_ns: u64,
    /// Wire rate of the direction.
    pub rate: TraceRate,
    /// Width of each bucket, nanoseconds.
    pub bucket_ns: u64,
    /// All packets in time buckets; empty if `detail` contains every packet.
    pub buckets: TraceBuckets,
    /// Individual packets, in spans that do not overlap. If there are too many to keep: the start, the end, packets
    /// around retransmits and long silences, and samples of the others.
    pub detail: Vec<TraceDetail>,
}

/// Time buckets that are not empty, as columns of equal length. If a count is 0, its ranges repeat the previous
/// values.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TraceBuckets {
    /// Number of the bucket; its start is this number times the bucket width.
    pub at: Vec<u64>,
    /// Segments with new data in each bucket.
    pub data: Vec<u32>,
    /// Lowest sequence number of new data.
    pub data_low: Vec<i64>,
    /// Highest sequence number of new data + 1.
    pub data_high: Vec<i64>,
    /// Retransmits of all kinds in each bucket.
    #[serde(alias = "again")]
    pub retransmits: Vec<u32>,
    /// Lowest sequence number retransmitted.
    #[serde(alias = "again_low")]
    pub retransmits_low: Vec<i64>,
    /// Highest sequence number retransmitted + 1.
    #[serde(alias = "again_high")]
    pub retransmits_high: Vec<i64>,
    /// Segments that were reordered, or duplicated in the network, in each bucket.
    pub late: Vec<u32>,
    /// Lowest sequence number of those segments.
    pub late_low: Vec<i64>,
    /// Highest sequence number of those segments + 1.
    pub late_high: Vec<i64>,
    /// ACKs in each bucket.
    pub acks: Vec<u32>,
    /// Duplicate ACKs among them.
    pub duplicate_acks: Vec<u32>,
    /// Lowest ACK number.
    pub ack_low: Vec<i64>,
    /// Highest ACK number.
    pub ack_high: Vec<i64>,
    /// Lowest right edge of the receive window (ACK number + window).
    pub edge_low: Vec<i64>,
    /// Highest right edge of the receive window.
    pub edge_high: Vec<i64>,
    /// ACKs with SACK blocks in each bucket.
    pub sacks: Vec<u32>,
    /// Lowest sequence number in SACK blocks.
    pub sack_low: Vec<i64>,
    /// Highest sequence number in SACK blocks + 1.
    pub sack_high: Vec<i64>,
    /// Maximum data in flight, bytes.
    pub in_flight_max: Vec<u64>,
    /// RTT samples in each bucket.
    pub rtts: Vec<u32>,
    /// Minimum RTT, nanoseconds.
    pub rtt_min_ns: Vec<u64>,
    /// Maximum RTT, nanoseconds.
    pub rtt_max_ns: Vec<u64>,
}

/// All packets of a time span.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TraceDetail {
    /// Time of the first packet, nanoseconds.
    pub start_ns: u64,
    /// Time of the last packet, nanoseconds.
    pub end_ns: u64,
    /// Index of the span's first packet among all packets of the series, from 0.
    pub from: u64,
    /// Number of packets in the span.
    pub packets: u64,
    /// Highest sequence number sent before the span + 1.
    pub next: i64,
    /// Highest ACK number before the span.
    pub ack: i64,
    /// Receive window announced before the span, bytes.
    pub window: u64,
    /// The packets as base64: records with a type and LEB128 differences. `docs/trace.md` describes the format.
    pub records: String,
}

/// Two captures of different runs, compared.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TraceComparison {
    /// Always `landspeed.tracecomparison/1`.
    pub schema: String,
    /// Program that wrote the document.
    pub landspeed: BuildInfo,
    /// Command line, one argument per element.
    pub command: Vec<String>,
    /// Analysis of the first capture.
    pub a: TraceDocument,
    /// Analysis of the second capture.
    pub b: TraceDocument,
    /// Figures of both captures.
    pub figures: Vec<TraceFigure>,
}

/// A figure of both captures.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TraceFigure {
    /// Name of the figure (`RTT, min`).
    pub name: String,
    /// Unit: `bps`, `ns`, `bytes`, `ratio` or `count`.
    pub unit: String,
    /// Value in the first capture; `None` if it has none.
    pub a: Option<f64>,
    /// Value in the second capture; `None` if it has none.
    pub b: Option<f64>,
    /// Confidence interval of the difference, from the variation within each capture; `None` if that is unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub difference: Option<TraceDifference>,
}

/// Confidence interval of the second capture's figure − the first's (block bootstrap over time).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TraceDifference {
    /// Lower limit of the difference.
    pub low: f64,
    /// Upper limit of the difference.
    pub high: f64,
    /// Confidence level, 0..=1.
    pub level: f64,
    /// Block length of each capture, nanoseconds.
    pub block_ns: [u64; 2],
    /// Number of blocks of each capture.
    pub blocks: [u64; 2],
    /// Whether the interval excludes 0, so that the difference exceeds the variation within the captures.
    pub changed: bool,
}
