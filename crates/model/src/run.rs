//! `landspeed.run/1`: one test between two hosts.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    Conservation, Cost, Direction, HostSeries, HostSnapshot, Iperf3End, LatencyResult, LatencyUnderLoad, Parameters,
    RunEmulation, Stream, Verdict,
};

/// One test between two hosts: parameters, results, host counters and verdict.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RunDocument {
    /// Always `landspeed.run/1`.
    pub schema: String,
    /// The program that wrote it.
    pub landspeed: BuildInfo,
    /// Identifier of the test, 32 hexadecimal digits.
    pub id: String,
    /// Start, RFC 3339 UTC.
    pub started: String,
    /// Command line, one argument per element.
    pub command: Vec<String>,
    /// Outcome of the test.
    pub status: Status,
    /// Errors; empty if nothing failed.
    pub errors: Vec<ErrorEntry>,
    /// Conditions that reduce trust in the figures.
    pub warnings: Vec<Warning>,
    /// Headline figures of the test.
    pub summary: Summary,
    /// Parameters as requested by the user.
    pub requested: Parameters,
    /// Effective parameters, as accepted by the server; `None` if the server did not accept the test.
    pub effective: Option<Parameters>,
    /// Path between the hosts; `None` if the server did not accept the test.
    pub path: Option<PathInfo>,
    /// Configuration of both hosts at the start.
    pub hosts: Ends<HostSnapshot>,
    /// Phases of the test by direction, as measured by the receiver.
    pub phases: Vec<Phase>,
    /// TCP connections or UDP flows of the test.
    pub streams: Vec<Stream>,
    /// Totals of each host, all its streams.
    pub totals: Ends<EndTotals>,
    /// UDP totals over all streams; `None` for other protocols.
    pub udp: Option<UdpTotals>,
    /// Request/response results, one per size; empty for bulk tests.
    pub latency: Vec<LatencyResult>,
    /// Latency idle and during bulk streams; `None` without latency probes.
    pub latency_under_load: Option<LatencyUnderLoad>,
    /// Accounting of sent and received bytes and packets.
    pub conservation: Conservation,
    /// CPU cost of the transfer at both hosts.
    pub cost: Cost,
    /// CPU use and counters of both hosts during the test.
    pub host_series: Ends<HostSeries>,
    /// Other tests of the same server (`serve`) that sent or received during this one, on each host; `None` on a host without a
    /// server, and if unknown.
    #[serde(default)]
    pub other_tests: Ends<u32>,
    /// Results reported by an iperf3 server; `None` if the server was landspeed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub iperf3: Option<Iperf3End>,
    /// `run --from`: the test ran between two servers at the request of a third host; `None` otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub third_party: Option<ThirdParty>,
    /// Emulated path used by the test, if `landspeed emulate` ran on this host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub emulation: Option<RunEmulation>,
    /// Reasons why figures of this document are null although the test has them, by path: `summary.goodput_bps`,
    /// `phases[2].bytes`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub unknown: BTreeMap<String, String>,
    /// Cause that limited the transfer, with its evidence.
    pub verdict: Verdict,
    /// `--bidir`: verdict on the reverse direction.
    pub reverse_verdict: Option<Verdict>,
}

impl RunDocument {
    /// Returns the reason why the figure at a path is null; `None` if it is known or the test does not have it.
    pub fn why_unknown(&self, path: &str) -> Option<&str> {
        self.unknown.get(path).map(String::as_str)
    }
}

/// A test between two servers that a third host requested (`run --from`).
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ThirdParty {
    /// Address of the server that acts as the client, as given with `--from`.
    pub from: String,
    /// Address of the requesting host, as seen by the client.
    pub asker_addr: String,
    /// Version of landspeed on the client; `None` until known.
    pub client_version: Option<String>,
    /// Whether requester and client proved possession of the same pre-shared key.
    pub authenticated: bool,
}

/// Version of the program that wrote a document.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct BuildInfo {
    /// Version of landspeed on the client.
    pub version: String,
    /// Version of landspeed on the server; `None` without a server, or if unknown.
    pub server_version: Option<String>,
}

/// Outcome of a test.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    /// Completed without errors; both hosts reported.
    Complete,
    /// Ended early, or one host did not report; the document contains what was measured.
    Partial,
    /// Nothing was measured.
    Failed,
}

/// An error of a test.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ErrorEntry {
    /// Stable error code: `connection-refused`, `server-busy`, `wrong-key`, `version-mismatch`, `peer-lost`,
    /// `interrupted` …
    pub code: String,
    /// Human-readable message: what failed, and on what.
    pub message: String,
    /// Suggested action; `None` without one.
    pub advice: Option<String>,
}

/// A condition that reduces trust in the figures.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Warning {
    /// Stable code: `zerocopy-copied`, `other-load`, `steal`, `loopback`, `still-ramping` …
    pub code: String,
    /// Human-readable message.
    pub message: String,
}

/// One value per host; `None` for a host that did not report.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Ends<T> {
    /// Value at the client.
    pub client: Option<T>,
    /// Value at the server.
    pub server: Option<T>,
}

/// Headline figures of a test.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Summary {
    /// Goodput of the primary direction in the steady phase, all streams, measured by the receiver, bits/s. Receivers
    /// that report totals only (iperf3): the rate of the sender's ACKs (TCP), or the mean until the end of the steady
    /// phase (UDP).
    pub goodput_bps: Option<f64>,
    /// `--bidir`: goodput from server to client, bits/s.
    pub reverse_goodput_bps: Option<f64>,
    /// Payload bytes delivered to receiving applications in the whole test, all directions; `None` if a receiver did
    /// not report, and for request/response.
    pub bytes_delivered: Option<u64>,
    /// TCP segments retransmitted in the whole test, all senders; `None` for UDP or if unknown.
    pub retransmits: Option<u64>,
    /// UDP: share of packets lost, 0..=1.
    pub loss_ratio: Option<f64>,
    /// Length of the steady phase, nanoseconds; `None` if its receiver did not report.
    pub steady_ns: Option<u64>,
    /// Minimum RTT reported by TCP, microseconds.
    pub min_rtt_us: Option<u32>,
    /// Coefficient of variation of the goodput over the intervals of the steady phase. A span without samples counts
    /// as the intervals it covers, at its mean rate.
    pub goodput_cv: Option<f64>,
    /// Reason `goodput_cv` is unknown; `None` if it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub goodput_cv_unknown: Option<String>,
    /// `--bidir`: coefficient of variation of `reverse_goodput_bps`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reverse_goodput_cv: Option<f64>,
    /// Reason `reverse_goodput_cv` is unknown; `None` if it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reverse_goodput_cv_unknown: Option<String>,
    /// Request/response: transactions per second, of the first size if there are several.
    pub transactions_per_s: Option<f64>,
    /// Median latency of requests (first size) or of probes under load, nanoseconds.
    pub latency_p50_ns: Option<u64>,
    /// 99th percentile of the same latency, nanoseconds.
    pub latency_p99_ns: Option<u64>,
}

/// The path between the two hosts.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PathInfo {
    /// Server as given by the user.
    pub target: String,
    /// Client's address and port of the control connection.
    pub client_addr: String,
    /// Server's address and port of the control connection.
    pub server_addr: String,
    /// Whether client and server are the same host (loopback or same address).
    pub loopback: bool,
    /// Minimum RTT of the control connection before the test, nanoseconds.
    pub control_rtt_ns: u64,
    /// Alignment of the server's clock with the client's.
    pub clock: ClockAlignment,
    /// Path MTU probes in both directions; empty unless requested.
    pub mtu: Vec<MtuProbe>,
    /// Whether both hosts proved possession of the same pre-shared key.
    pub authenticated: bool,
}

/// Alignment of the server's clock with the client's.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ClockAlignment {
    /// Server monotonic clock minus client monotonic clock, nanoseconds.
    pub offset_ns: i64,
    /// Maximum error: half the minimum RTT, nanoseconds.
    pub uncertainty_ns: u64,
}

/// Path MTU in one direction.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct MtuProbe {
    /// Direction of the probes.
    pub direction: Direction,
    /// Largest IP packet that arrived unfragmented, bytes; `None` if no probe arrived.
    pub path_mtu_bytes: Option<u32>,
    /// Smallest IP packet that did not arrive, bytes; `None` if all arrived.
    pub smallest_failed_bytes: Option<u32>,
    /// MTU of the local interface, bytes.
    pub interface_mtu_bytes: Option<u32>,
    /// Probes sent.
    pub probes: u32,
    /// Probes lost without an ICMP message (PMTU black hole).
    pub silent: u32,
    /// Human-readable explanation; `None` if there is nothing to explain.
    pub note: Option<String>,
}

impl MtuProbe {
    /// Whether larger packets vanish without an ICMP message although the sender's interface takes them.
    pub fn is_black_hole(&self) -> bool {
        self.silent > 0 && self.smallest_failed_bytes.is_some() && self.path_mtu_bytes.is_some()
    }
}

/// Phases of a test, in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum PhaseName {
    /// From the agreed start until every stream has transferred its first byte.
    Startup,
    /// `--omit`: measured, but excluded from steady-phase figures.
    Omitted,
    /// The phase the headline figures are computed from.
    Steady,
    /// From the sender's last write until the receiver has all data.
    Drain,
}

/// One phase of one direction, as divided by its receiver; by its sender if the receiver has no samples.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Phase {
    /// Direction of the data.
    pub direction: Direction,
    /// Name of the phase.
    pub name: PhaseName,
    /// Start, nanoseconds after the agreed start.
    pub start_ns: u64,
    /// End, nanoseconds after the agreed start.
    pub end_ns: u64,
    /// Payload bytes delivered in the phase; `None` if a receiver did not report.
    pub bytes: Option<u64>,
}

/// Totals of one host, all its streams; a host that did not report all of them has none.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct EndTotals {
    /// Payload bytes written by the host's streams.
    pub bytes_sent: u64,
    /// TCP: payload bytes acknowledged by the peer; `None` if a stream does not know them.
    pub bytes_acked: Option<u64>,
    /// Payload bytes read by the host's streams.
    pub bytes_received: u64,
    /// TCP segments retransmitted by the host; `None` for UDP or if unknown.
    pub retransmits: Option<u64>,
    /// Payload bytes received, by phase name; empty without samples of every stream.
    pub received_by_phase: BTreeMap<String, u64>,
}

/// UDP totals over all streams; `None` if the host that counts did not report all of its streams. sent = delivered +
/// lost exactly; duplicates are extra copies of delivered packets.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct UdpTotals {
    /// Packets accepted by the senders' kernels.
    pub sent_packets: Option<u64>,
    /// Packets refused by the senders' kernels (`ENOBUFS`); not part of `sent_packets`.
    pub refused_packets: Option<u64>,
    /// Distinct packets that reached the receiving application.
    pub delivered_packets: Option<u64>,
    /// Packets sent − packets delivered.
    pub lost_packets: Option<i64>,
    /// Extra copies of delivered packets.
    pub duplicate_packets: Option<u64>,
    /// Packets whose first copy arrived after a later packet.
    pub reordered_packets: Option<u64>,
    /// Packets whose first copy arrived after the sender had stopped.
    pub late_packets: Option<u64>,
    /// Tail loss: lost packets after the last one that arrived, known only from the sender's count.
    pub tail_lost_packets: Option<u64>,
    /// Lost packets / sent packets, 0..=1.
    pub loss_ratio: Option<f64>,
    /// Interarrival jitter (RFC 3550), mean over the streams, nanoseconds.
    pub jitter_ns: Option<u64>,
    /// Payload of each packet, bytes.
    pub payload_bytes: u32,
}
