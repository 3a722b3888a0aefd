//! `landspeed.qualify/1`: a section of a path, tested against a target for the whole path (RFC 8337).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{BuildInfo, Direction, ErrorEntry, Status};

/// Tests of a section against a target for the long path that contains it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct QualifyDocument {
    /// Always `landspeed.qualify/1`.
    pub schema: String,
    /// Programs at both ends of the section.
    pub landspeed: BuildInfo,
    /// Start of the first test, RFC 3339; empty if no test started.
    pub started: String,
    /// Command line, one argument per element.
    pub command: Vec<String>,
    /// Whether all tests ran.
    pub status: Status,
    /// Reasons if the tests did not run or did not end.
    pub errors: Vec<ErrorEntry>,
    /// Server at the other end of the section, as on the command line.
    pub target: String,
    /// Direction of the test streams.
    pub direction: Direction,
    /// Target for the whole path (RFC 8337: Target Transport Performance).
    pub target_performance: QualifyTarget,
    /// Parameters derived from the target.
    pub derived: QualifyDerived,
    /// Section between the two hosts; `None` if it was not reached.
    pub section: Option<QualifySection>,
    /// Result for the whole path.
    pub verdict: QualifyResult,
    /// Reason for the verdict.
    pub reason: String,
    /// Tests in the order in which they ran.
    pub tests: Vec<QualifyTest>,
    /// Size of the smallest buffer of the section, bytes of IP packets: estimate from the longest burst without loss. `None` if
    /// no burst was lost because of it, or its rate could not be measured.
    pub bottleneck_buffer_bytes: Option<u64>,
    /// Interval of `bottleneck_buffer_bytes`, from the longest burst without loss and the shortest with loss; `None` with it.
    pub bottleneck_buffer_interval_bytes: Option<(u64, u64)>,
    /// Number of bursts that agree at the lower and at the upper end of `bottleneck_buffer_interval_bytes`; `None` with it. The
    /// unit of replication is a burst over this section within one test: the interval says nothing about other times.
    #[serde(default)]
    pub bottleneck_buffer_bursts: Option<(u32, u32)>,
    /// Bursts at interface rate that searched the smallest buffer, in the order in which they were sent: packets, and lost packets.
    /// Bursts that a host disturbed are not in it.
    #[serde(default)]
    pub bursts: Vec<(u64, u64)>,
    /// Mean rate of a long flow over the smallest buffer of the section and its rate, in target rates, with the congestion control of
    /// the target; a buffer that was not found, or a token bucket, counts as none. `None` if the rate was not measured.
    #[serde(default)]
    pub steady_share: Option<f64>,
    /// Token bucket that limits the section instead of a queue, such as a policer; `None` if a queue does, or if it is unknown.
    #[serde(default)]
    pub token_bucket: Option<QualifyTokenBucket>,
    /// Onset of congestion (RFC 8337 section 8.2); `None` if it was not tested.
    #[serde(default)]
    pub onset: Option<QualifyOnset>,
    /// Packets sent by all tests.
    pub sent_packets: u64,
    /// Bytes sent by all tests, IP headers included.
    pub sent_bytes: u64,
}

/// Target for the whole path (RFC 8337 section 5.1).
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct QualifyTarget {
    /// Target data rate: TCP payload, bits/s.
    pub rate_bps: u64,
    /// Target RTT: of the whole path without queues, nanoseconds.
    pub rtt_ns: u64,
    /// Target MTU, bytes.
    pub mtu_bytes: u32,
    /// Congestion control of the senders on the whole path.
    pub congestion: QualifyCongestion,
}

/// Congestion control whose model gives the target run length.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum QualifyCongestion {
    /// Reno, as in RFC 8337 section 5.2.
    Reno,
    /// CUBIC (RFC 9438).
    Cubic,
    /// BBRv3 (draft-ietf-ccwg-bbr).
    Bbr,
}

/// Parameters derived from a target (RFC 8337 section 5.2).
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct QualifyDerived {
    /// IP and TCP headers of a segment, bytes.
    pub header_bytes: u32,
    /// Target window: packets in flight at the target rate.
    pub window_packets: u64,
    /// Target run length: packets between losses that the target needs at least.
    pub run_length_packets: u64,
    /// Packets per second at the target rate.
    pub packets_per_s: f64,
    /// Packets without loss after which the sequential test accepts.
    pub accept_packets: u64,
    /// Probability that one test fails a section that has the target run length (type I error).
    pub alpha: f64,
    /// Probability that one test passes a section that has a quarter of the target run length (type II error).
    pub beta: f64,
}

/// Section between the two hosts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct QualifySection {
    /// Client's address; `None` if the probe did not report it.
    pub client_addr: Option<String>,
    /// Server's address; `None` if the probe did not report it.
    pub server_addr: Option<String>,
    /// RTT of the section, nanoseconds: lowest of the control connection, in the lab that of the links. `None` if the probe
    /// did not report it.
    pub rtt_ns: Option<u64>,
    /// Path MTU of the section, bytes; `None` if the probe found none.
    pub path_mtu_bytes: Option<u32>,
    /// Link speed of the sender's interface, bits/s; `None` for a virtual interface.
    pub line_rate_bps: Option<u64>,
}

/// Onset of congestion: evenly spaced packets at rising rates, until a step loses 1% (RFC 8337 section 8.2). The result does not
/// count in the verdict.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct QualifyOnset {
    /// Lowest rate from which every step was congested: TCP payload, bits/s; `None` if the highest did not.
    pub onset_bps: Option<u64>,
    /// Longest queueing delay at the end of a step, nanoseconds: what the section's queue holds before it drops or marks.
    pub standing_queue_ns: Option<u64>,
    /// Steps that no host disturbed, in the order in which they were sent.
    pub steps: Vec<QualifyOnsetStep>,
}

/// A step of [`QualifyOnset`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct QualifyOnsetStep {
    /// Rate: TCP payload, bits/s.
    pub rate_bps: u64,
    /// Time by which the stream took longer to arrive than to leave, nanoseconds: the queueing delay at its end.
    pub queueing_ns: u64,
    /// Lost packets / packets.
    pub loss_ratio: f64,
    /// Whether more than 1% of the step queued or was lost.
    pub is_congested: bool,
}

/// A token bucket that drops what does not conform, fitted from two bursts with loss of different lengths.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct QualifyTokenBucket {
    /// Size of the bucket, bytes of IP packets.
    pub bucket_bytes: u64,
    /// Rate at which it is refilled, bits/s of IP packets.
    pub rate_bps: u64,
    /// Time in which an empty bucket is filled: bucket / rate, nanoseconds.
    pub refill_ns: u64,
}

/// Result of a test, and of all tests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum QualifyResult {
    /// The section does not prevent the target.
    Pass,
    /// The section prevents the target.
    Fail,
    /// No decision: too few packets, or a host disturbed the test.
    Inconclusive,
}

/// How the result of a test counts in the verdict.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum QualifyWeight {
    /// The verdict `pass` requires that this test passes.
    Required,
    /// A failure counts; no decision does not.
    FailureOnly,
    /// The result does not count.
    Informative,
}

/// A test of the section, and its result.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct QualifyTest {
    /// Name, such as `delivery-at-target-rate`.
    pub name: String,
    /// Section of RFC 8337 that describes the test.
    pub section: String,
    /// Pass, fail or inconclusive.
    pub result: QualifyResult,
    /// How the result counts in the verdict.
    pub weight: QualifyWeight,
    /// Measured share: of loss events or lost packets, or for slow-start bursts of bursts with loss. `None` if nothing was sent.
    pub measured: Option<f64>,
    /// Highest share that the target tolerates.
    pub limit: f64,
    /// Unit of `measured` and `limit`: `loss events / packets`, `lost packets / packets` (BBR), `bursts with loss / bursts`.
    pub unit: String,
    /// Counts behind the result, or why there is no decision.
    pub reason: String,
    /// Rate of the stream during a burst, or of the whole stream if it has none: TCP payload, bits/s; `None` if bursts leave as
    /// fast as host and interface can.
    pub rate_bps: Option<u64>,
    /// Packets of a burst; 1 if the packets are evenly spaced.
    pub burst_packets: u64,
    /// Packets sent, those of streams that a host disturbed included.
    pub sent_packets: u64,
    /// Packets lost in the network, without the streams that a host disturbed.
    pub lost_packets: u64,
    /// Trials of the sequential test so far and defects among them, after each stream: packets and loss events (BBR:
    /// lost packets), or bursts and bursts with loss.
    pub evidence: Vec<(u64, u64)>,
    /// Decision lines of the sequential test.
    pub lines: QualifyLines,
}

/// Decision lines of Wald's sequential probability ratio test after `n` trials (RFC 8337 section 7.2). Between the two lines,
/// the test continues.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct QualifyLines {
    /// Slope `s` of both lines, defects per trial.
    pub slope: f64,
    /// Passes if at most `slope × n − accept` trials are defects.
    pub accept: f64,
    /// Fails if at least `slope × n + reject` trials are defects.
    pub reject: f64,
}
