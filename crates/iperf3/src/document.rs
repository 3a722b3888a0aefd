//! iperf3's JSON as written by releases 3.12 to 3.22, with exactly their keys.
//!
//! Keys that iperf3 omits in some tests (a receiver has no retransmits) or in older releases are options.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The complete JSON document.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Document {
    /// `--title`: prefix of each line.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// `--extra-data`: string copied from the command line.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub extra_data: Option<String>,
    /// Parameters and addresses of the test.
    pub start: Start,
    /// Results of each report interval.
    pub intervals: Vec<Interval>,
    /// Totals of the test.
    pub end: End,
    /// Server output with `--get-server-output`, if the server wrote JSON.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server_output_json: Option<Value>,
    /// Server output with `--get-server-output`, if the server wrote text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server_output_text: Option<String>,
    /// Error message of a failed test.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// Parameters and addresses of the test.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Start {
    /// Addresses of each stream.
    pub connected: Vec<Connected>,
    /// `iperf 3.22`.
    pub version: String,
    /// `uname -a`.
    pub system_info: String,
    /// Start of the test.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timestamp: Option<Timestamp>,
    /// Server name and port; in documents of a client.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub connecting_to: Option<HostPort>,
    /// Client address and port; in documents of a server.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub accepted_connection: Option<HostPort>,
    /// Cookie that identifies the test.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cookie: Option<String>,
    /// MSS set with `--set-mss`, bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tcp_mss: Option<u64>,
    /// MSS of the control connection, bytes; if `--set-mss` was not used.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tcp_mss_default: Option<u64>,
    /// `--bitrate`, bits/s.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub target_bitrate: Option<u64>,
    /// `--fq-rate`, bits/s.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fq_rate: Option<u64>,
    /// `--window`, bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sock_bufsize: Option<u64>,
    /// Effective send buffer (`SO_SNDBUF`), bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sndbuf_actual: Option<u64>,
    /// Effective receive buffer (`SO_RCVBUF`), bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rcvbuf_actual: Option<u64>,
    /// Parameters of the test.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub test_start: Option<TestStart>,
}

/// Addresses of a stream.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Connected {
    /// Number of the stream.
    pub socket: u32,
    /// IP address, without the port.
    pub local_host: String,
    /// TCP or UDP port.
    pub local_port: u16,
    /// IP address, without the port.
    pub remote_host: String,
    /// TCP or UDP port.
    pub remote_port: u16,
}

/// A point in time.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Timestamp {
    /// Date and time in HTTP format.
    pub time: String,
    /// Seconds since the Unix epoch.
    pub timesecs: u64,
    /// Milliseconds since the Unix epoch (3.19 and later).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timemillisecs: Option<u64>,
}

/// Host name or address, and port.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HostPort {
    /// Host name or IP address.
    pub host: String,
    /// TCP or UDP port.
    pub port: u16,
}

/// Parameters of the test. Flags are 0 or 1.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TestStart {
    /// `TCP` or `UDP`.
    pub protocol: String,
    /// Number of streams per direction.
    pub num_streams: u32,
    /// Bytes per write (`--length`).
    pub blksize: u64,
    /// Omitted time at the start (`--omit`), seconds.
    pub omit: u64,
    /// Duration, seconds; 0 if the test is limited by bytes or blocks.
    pub duration: u64,
    /// `--bytes`: bytes to send; 0 if unset.
    pub bytes: u64,
    /// `--blockcount`: blocks to send; 0 if unset.
    pub blocks: u64,
    /// 1 if the server sends (`--reverse`).
    pub reverse: u8,
    /// IP type of service (`--tos`).
    pub tos: u8,
    /// `--bitrate`, bits/s; 0 means unlimited.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub target_bitrate: Option<u64>,
    /// 1 if both hosts send (`--bidir`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bidir: Option<u8>,
    /// `--fq-rate`, bits/s.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fqrate: Option<u64>,
    /// Report interval, seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interval: Option<f64>,
    /// 1 if UDP segmentation offload (GSO) is used.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gso: Option<u8>,
    /// 1 if UDP receive offload (GRO) is used.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gro: Option<u8>,
}

/// Results of one report interval.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Interval {
    /// One row for each stream.
    pub streams: Vec<Row>,
    /// Sum of the streams; in a bidirectional test, of those that the local host sends.
    pub sum: Row,
    /// Bidirectional test: sum of the streams that the local host receives.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sum_bidir_reverse: Option<Row>,
}

/// Results of a stream, or of a sum, over a time span. Sums have no number; `omitted` is set for intervals
/// only.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Row {
    /// Number of the stream.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub socket: Option<u32>,
    /// Start of the span, seconds.
    pub start: f64,
    /// End of the span, seconds.
    pub end: f64,
    /// Length of the span, seconds.
    pub seconds: f64,
    /// Payload bytes.
    pub bytes: u64,
    /// Mean rate over the span, bits/s.
    pub bits_per_second: f64,
    /// Retransmitted segments; TCP sender.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retransmits: Option<i64>,
    /// Congestion window, bytes; TCP sender.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub snd_cwnd: Option<u64>,
    /// Send window, i.e. the peer's receive window, bytes; TCP sender.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub snd_wnd: Option<u64>,
    /// Smoothed RTT, µs; TCP sender.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rtt: Option<u64>,
    /// RTT variation, µs; TCP sender.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rttvar: Option<u64>,
    /// Path MTU, bytes; TCP sender.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pmtu: Option<u64>,
    /// Maximum congestion window, bytes; TCP sender, totals only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_snd_cwnd: Option<u64>,
    /// Maximum send window, bytes; TCP sender, totals only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_snd_wnd: Option<u64>,
    /// Maximum RTT, µs; TCP sender, totals only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_rtt: Option<u64>,
    /// Minimum RTT, µs; TCP sender, totals only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_rtt: Option<u64>,
    /// Mean RTT, µs; TCP sender, totals only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mean_rtt: Option<u64>,
    /// Reordering metric of the kernel, packets; TCP sender (3.22).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reorder: Option<u64>,
    /// Jitter, ms; UDP receiver.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub jitter_ms: Option<f64>,
    /// Lost datagrams; UDP receiver.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lost_packets: Option<i64>,
    /// Datagrams; UDP.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub packets: Option<i64>,
    /// Lost datagrams, percent; UDP receiver.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lost_percent: Option<f64>,
    /// Datagrams received out of order; UDP receiver, totals only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub out_of_order: Option<i64>,
    /// Whether the interval is in the part excluded by `--omit`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub omitted: Option<bool>,
    /// Whether the local host sends.
    pub sender: bool,
}

/// Totals of the test.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct End {
    /// Totals of each stream.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub streams: Vec<EndStream>,
    /// UDP: sum of the streams; in a bidirectional test, of those that the local host sends.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sum: Option<Row>,
    /// Sum as counted by the senders.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sum_sent: Option<Row>,
    /// Sum as counted by the receivers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sum_received: Option<Row>,
    /// Bidirectional test: sum of the streams that the local host receives.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sum_bidir_reverse: Option<Row>,
    /// Bidirectional test: the same, as counted by the senders.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sum_sent_bidir_reverse: Option<Row>,
    /// Bidirectional test: the same, as counted by the receivers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sum_received_bidir_reverse: Option<Row>,
    /// CPU utilization of both processes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu_utilization_percent: Option<Cpu>,
    /// Congestion control algorithm of the senders.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sender_tcp_congestion: Option<String>,
    /// Congestion control algorithm of the receivers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub receiver_tcp_congestion: Option<String>,
}

/// Totals of a stream: for TCP a row of the sender and one of the receiver, for UDP a single row.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EndStream {
    /// TCP: totals of the sender.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sender: Option<Row>,
    /// TCP: totals of the receiver.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub receiver: Option<Row>,
    /// UDP: totals of both sides.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub udp: Option<Row>,
}

/// CPU utilization, percent of one core; `host` is the local host. Values that a host did
/// not report are omitted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cpu {
    /// Local, user and system.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host_total: Option<f64>,
    /// Local, user time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host_user: Option<f64>,
    /// Local, system time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host_system: Option<f64>,
    /// Remote, user and system.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remote_total: Option<f64>,
    /// Remote, user time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remote_user: Option<f64>,
    /// Remote, system time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remote_system: Option<f64>,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Recorded documents: `fixtures/iperf3/RELEASE/TEST.json`.
    fn recorded() -> Vec<(String, String)> {
        let place = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/iperf3");
        let mut found = Vec::new();
        for release in std::fs::read_dir(place).expect("fixtures").flatten() {
            for file in std::fs::read_dir(release.path()).expect("a release").flatten() {
                let path = file.path();
                if path.extension().is_some_and(|extension| extension == "json") {
                    found.push((path.display().to_string(), std::fs::read_to_string(&path).expect("readable")));
                }
            }
        }
        found.sort();
        assert!(found.len() > 30, "{}", found.len());
        found
    }

    /// Converts numbers to floats, so that 5 equals 5.0.
    fn as_floats(value: &Value) -> Value {
        match value {
            Value::Number(number) => number.as_f64().into(),
            Value::Array(all) => all.iter().map(as_floats).collect(),
            Value::Object(all) => all.iter().map(|(key, value)| (key.clone(), as_floats(value))).collect(),
            other => other.clone(),
        }
    }

    #[test]
    fn keys_of_every_release_are_kept_exactly() {
        for (name, text) in recorded() {
            let document: Document = serde_json::from_str(&text).unwrap_or_else(|error| panic!("{name}: {error}"));
            let before: Value = serde_json::from_str(&text).expect("just parsed");
            let after = serde_json::to_value(&document).expect("a document is JSON");
            assert_eq!(as_floats(&after), as_floats(&before), "{name}");
        }
    }
}
