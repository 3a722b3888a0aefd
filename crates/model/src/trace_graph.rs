//! What graphs of a capture are drawn from, and two captures side by side (`landspeed.tracecomparison/1`).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{BuildInfo, TraceDocument};

/// What graphs over time are drawn from.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TraceGraphs {
    /// All frames of the capture.
    pub rate: TraceRate,
    /// Directions of TCP flows that brought data, those with the most payload first.
    pub series: Vec<TraceSeries>,
    /// TCP flows with payload that have no series, because others had more.
    pub left_out: u64,
}

/// Bytes on the wire in bins of time. Bins are a millisecond wide, or that times a power of ten.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TraceRate {
    /// Width of a bin, nanoseconds.
    pub width_ns: u64,
    /// Bytes in each, from the start of the capture.
    pub bytes: Vec<u64>,
    /// Most bytes in a millisecond of each; empty where bins are a millisecond wide.
    pub most_in_1ms: Vec<u64>,
}

/// Whose data.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum PacketDirection {
    /// The flow's source's.
    Forward,
    /// The flow's destination's.
    Reverse,
}

/// The data of one direction and what the other end said of it: a time-sequence graph.
///
/// Sequence numbers count from the direction's first one at the tap; times from the start of the capture.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TraceSeries {
    /// Which flow: its place in `flows`.
    pub flow: usize,
    /// Whose data.
    #[serde(alias = "way")]
    pub direction: PacketDirection,
    /// Payload, bytes, copies included.
    pub payload_bytes: u64,
    /// Segments and acknowledgements there were.
    pub packets: u64,
    /// Of these, those in `detail`.
    pub kept: u64,
    /// Latest packet, nanoseconds.
    pub end_ns: u64,
    /// Its frames over time.
    pub rate: TraceRate,
    /// Width of a bucket, nanoseconds.
    pub bucket_ns: u64,
    /// All packets, in buckets of time; empty where `detail` has every packet.
    pub buckets: TraceBuckets,
    /// Single packets, in spans that do not overlap. Where there are more than can be kept: the start, the end, around
    /// retransmissions and the longest silences, and samples of the rest.
    pub detail: Vec<TraceDetail>,
}

/// Buckets of time that are not empty, by columns of equal length. Where a count is 0, the
/// numbers repeat those before.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TraceBuckets {
    /// Which: its start is this times the width.
    pub at: Vec<u64>,
    /// Segments with new data.
    pub data: Vec<u32>,
    /// Least sequence number of new data.
    pub data_low: Vec<i64>,
    /// One past the greatest.
    pub data_high: Vec<i64>,
    /// Retransmissions of all kinds.
    #[serde(alias = "again")]
    pub retransmits: Vec<u32>,
    /// Lowest sequence number retransmitted.
    #[serde(alias = "again_low")]
    pub retransmits_low: Vec<i64>,
    /// One past the greatest.
    #[serde(alias = "again_high")]
    pub retransmits_high: Vec<i64>,
    /// Segments that came out of order, or were duplicated in the network.
    pub late: Vec<u32>,
    /// Least sequence number of these.
    pub late_low: Vec<i64>,
    /// One past the greatest.
    pub late_high: Vec<i64>,
    /// Acknowledgements.
    pub acks: Vec<u32>,
    /// Of these, duplicates.
    pub duplicate_acks: Vec<u32>,
    /// Least number acknowledged.
    pub ack_low: Vec<i64>,
    /// Greatest.
    pub ack_high: Vec<i64>,
    /// Least upper edge of the receiver's window: what is acknowledged and the window.
    pub edge_low: Vec<i64>,
    /// Greatest.
    pub edge_high: Vec<i64>,
    /// Acknowledgements with selective ones.
    pub sacks: Vec<u32>,
    /// Least number selectively acknowledged.
    pub sack_low: Vec<i64>,
    /// One past the greatest.
    pub sack_high: Vec<i64>,
    /// Most in flight, bytes.
    pub in_flight_max: Vec<u64>,
    /// Round trips.
    pub rtts: Vec<u32>,
    /// Least, nanoseconds.
    pub rtt_min_ns: Vec<u64>,
    /// Greatest, nanoseconds.
    pub rtt_max_ns: Vec<u64>,
}

/// Every packet of a span of time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TraceDetail {
    /// First packet, nanoseconds.
    pub start_ns: u64,
    /// Last packet, nanoseconds.
    pub end_ns: u64,
    /// Its first packet's place among all of the series, from 0.
    pub from: u64,
    /// How many.
    pub packets: u64,
    /// One past the greatest number sent before it.
    pub next: i64,
    /// Greatest number acknowledged before it.
    pub ack: i64,
    /// Window announced before it, bytes.
    pub window: u64,
    /// The packets, in base64: records of a kind, and differences as LEB128. `docs/trace.md` gives the form.
    pub records: String,
}

/// Two captures of different runs, side by side.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TraceComparison {
    /// `landspeed.tracecomparison/1`.
    pub schema: String,
    /// The program.
    pub landspeed: BuildInfo,
    /// The command line.
    pub command: Vec<String>,
    /// The first capture.
    pub a: TraceDocument,
    /// The second one.
    pub b: TraceDocument,
    /// The figures of both.
    pub figures: Vec<TraceFigure>,
}

/// A figure of two captures.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TraceFigure {
    /// What it is.
    pub name: String,
    /// Its unit: `bps`, `ns`, `bytes`, `ratio` or `count`.
    pub unit: String,
    /// In the first capture; `None` where it has none.
    pub a: Option<f64>,
    /// In the second.
    pub b: Option<f64>,
    /// How sure the difference is, by what the figure varies within each capture; `None` where that is unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub difference: Option<TraceDifference>,
}

/// The second capture's figure less the first's, with its interval: blocks of time, resampled.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TraceDifference {
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
    /// Confidence level, 0 to 1.
    pub level: f64,
    /// Length of a block of each, nanoseconds.
    pub block_ns: [u64; 2],
    /// Blocks of each.
    pub blocks: [u64; 2],
    /// Whether the interval is without 0: it is a change and not the captures' own noise.
    pub changed: bool,
}
