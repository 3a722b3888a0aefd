//! The capture of a trace document: its file, and totals of its frames.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A capture file and its frames.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TraceCapture {
    /// Path of the file, as given by the user.
    pub file: String,
    /// File format (`pcapng`, `pcap, ns`).
    pub format: String,
    /// The options `--flow` and `--filter`; `None` without them. All other figures are those of the frames that match.
    #[serde(default)]
    pub filter: Option<String>,
    /// Frames that do not match the filter.
    #[serde(default)]
    pub filtered_out: u64,
    /// Number of frames read.
    pub frames: u64,
    /// Verified checksums; `None` without `--checksums`.
    #[serde(default)]
    pub checksums: Option<TraceChecksums>,
    /// Bytes of the frames on the wire.
    pub wire_bytes: u64,
    /// Bytes of the frames in the file.
    pub captured_bytes: u64,
    /// Time of the first frame, nanoseconds since the Unix epoch.
    pub start_ns: u64,
    /// Time from the earliest to the latest frame, nanoseconds.
    pub duration_ns: u64,
    /// Frames without an IP packet.
    pub not_ip: u64,
    /// Protocols and link types that were not analysed, most frames first: those in `not_ip` and `other_transport`.
    #[serde(default)]
    pub not_analysed: Vec<TraceNotAnalysed>,
    /// Frames truncated before the end of the transport header.
    pub cut: u64,
    /// Frames with inconsistent length fields.
    pub malformed: u64,
    /// IP fragments that were not analysed: their packets are not complete in the capture.
    pub fragments: u64,
    /// IP fragments that were reassembled and analysed.
    #[serde(default)]
    pub reassembled: u64,
    /// IP packets with a transport other than TCP and UDP.
    pub other_transport: u64,
    /// Frames with encapsulation (VLAN, MPLS, GRE, VXLAN, Geneve, IP in IP, PPPoE).
    pub wrapped: u64,
    /// Super-packets of TSO, GRO or BIG TCP: frames longer than a link can carry.
    pub super_packets: u64,
    /// Frames with a timestamp before that of the previous frame.
    pub backward_steps: u64,
    /// Frames out of order by at most 100 µs in the file, which were sorted by timestamp.
    #[serde(default)]
    pub sorted: u64,
    /// Second copies of frames captured twice (SPAN port, two interfaces of a router); ignored.
    #[serde(default)]
    pub copies: u64,
    /// TCP segments whose options were truncated by the snap length: SACK blocks, timestamps or window scale may be
    /// missing.
    #[serde(default)]
    pub options_cut: u64,
    /// Payload bytes of all flows in both directions, each byte counted once.
    #[serde(default)]
    pub unique_bytes: u64,
    /// Goodput: `unique_bytes` / duration of the capture, bits/s; `None` for a single frame.
    #[serde(default)]
    pub goodput_bps: Option<f64>,
    /// Frames dropped by the capture, as recorded in the file; `None` if it does not contain a count.
    pub dropped: Option<u64>,
    /// Flows removed from memory because there were more concurrent flows than allowed.
    pub evicted_flows: u64,
    /// Reason reading stopped before the end of the file; `None` if it did not.
    pub ended_early: Option<String>,
}

/// Checksums of the packets with TCP or UDP.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TraceChecksums {
    /// Packets whose checksums are all correct.
    pub right: u64,
    /// Packets with a wrong checksum of the IPv4 header.
    pub wrong_ip: u64,
    /// TCP segments with a wrong checksum.
    pub wrong_tcp: u64,
    /// UDP datagrams with a wrong checksum.
    pub wrong_udp: u64,
    /// Packets captured before the interface that completes their checksum (checksum offload).
    pub offloaded: u64,
    /// Packets without a checksum, not captured whole, or fragmented.
    pub unknown: u64,
    /// Numbers of the first frames with a wrong checksum, at most eight.
    pub first_wrong: Vec<u64>,
}

/// Frames that were not analysed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TraceNotAnalysed {
    /// Protocol (`ARP`, `EtherType 0x88b5`) or link type.
    pub what: String,
    /// Number of frames.
    pub frames: u64,
}
