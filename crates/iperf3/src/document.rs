//! iperf3's JSON, as its releases 3.12 to 3.22 write it: every key they have, and none beside.
//!
//! What an iperf3 leaves out in some test (a receiver knows no retransmissions) is an option. Releases differ in a few keys;
//! what an older one lacks is an option too.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// All of it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Document {
    /// `--title`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// `--extra-data`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub extra_data: Option<String>,
    /// What was agreed.
    pub start: Start,
    /// What moved when.
    pub intervals: Vec<Interval>,
    /// What moved.
    pub end: End,
    /// `--get-server-output`, where the server printed JSON.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server_output_json: Option<Value>,
    /// `--get-server-output`, where it printed text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server_output_text: Option<String>,
    /// Why there is no more.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// What was agreed.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Start {
    /// Streams.
    pub connected: Vec<Connected>,
    /// `iperf 3.22`.
    pub version: String,
    /// `uname -a`.
    pub system_info: String,
    /// When it began.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timestamp: Option<Timestamp>,
    /// The server, at a client.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub connecting_to: Option<HostPort>,
    /// The client, at a server.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub accepted_connection: Option<HostPort>,
    /// Identifier of the test.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cookie: Option<String>,
    /// MSS asked for, bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tcp_mss: Option<u64>,
    /// MSS of the control connection, bytes.
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
    /// `SO_SNDBUF`, bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sndbuf_actual: Option<u64>,
    /// `SO_RCVBUF`, bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rcvbuf_actual: Option<u64>,
    /// Parameters.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub test_start: Option<TestStart>,
}

/// A stream's addresses.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Connected {
    /// Its number.
    pub socket: u32,
    /// Address here.
    pub local_host: String,
    /// Port here.
    pub local_port: u16,
    /// Address there.
    pub remote_host: String,
    /// Port there.
    pub remote_port: u16,
}

/// A moment.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Timestamp {
    /// As in HTTP.
    pub time: String,
    /// Seconds since 1970.
    pub timesecs: u64,
    /// Milliseconds since 1970 (3.19 and later).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timemillisecs: Option<u64>,
}

/// Host and port.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HostPort {
    /// Name or address.
    pub host: String,
    /// Port.
    pub port: u16,
}

/// Parameters. Flags are 0 or 1.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TestStart {
    /// `TCP` or `UDP`.
    pub protocol: String,
    /// In one direction.
    pub num_streams: u32,
    /// Bytes of a write.
    pub blksize: u64,
    /// Seconds.
    pub omit: u64,
    /// Seconds; 0 where bytes or blocks bound it.
    pub duration: u64,
    /// `--bytes`.
    pub bytes: u64,
    /// `--blockcount`.
    pub blocks: u64,
    /// The server sends.
    pub reverse: u8,
    /// Type of service.
    pub tos: u8,
    /// Bits/s; 0 means unlimited.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub target_bitrate: Option<u64>,
    /// Both send.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bidir: Option<u8>,
    /// Bits/s.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fqrate: Option<u64>,
    /// Seconds between reports.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interval: Option<f64>,
    /// Segmentation offload of UDP.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gso: Option<u8>,
    /// Receive offload of UDP.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gro: Option<u8>,
}

/// What moved between two reports.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Interval {
    /// Stream by stream.
    pub streams: Vec<Row>,
    /// Sum; in a bidirectional test of what the local end sends.
    pub sum: Row,
    /// Bidirectional: sum of what the local end receives.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sum_bidir_reverse: Option<Row>,
}

/// Bytes over a span, and what else is known. Sums have no number, only intervals are `omitted` or not.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Row {
    /// The stream's number.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub socket: Option<u32>,
    /// Seconds.
    pub start: f64,
    /// Seconds.
    pub end: f64,
    /// Length of the span.
    pub seconds: f64,
    /// Payload.
    pub bytes: u64,
    /// Over the span.
    pub bits_per_second: f64,
    /// TCP sender: segments.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retransmits: Option<i64>,
    /// TCP sender: congestion window, bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub snd_cwnd: Option<u64>,
    /// TCP sender: the peer's window, bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub snd_wnd: Option<u64>,
    /// TCP sender: microseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rtt: Option<u64>,
    /// TCP sender: microseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rttvar: Option<u64>,
    /// TCP sender: bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pmtu: Option<u64>,
    /// TCP sender, at the end: bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_snd_cwnd: Option<u64>,
    /// TCP sender, at the end: bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_snd_wnd: Option<u64>,
    /// TCP sender, at the end: microseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_rtt: Option<u64>,
    /// TCP sender, at the end: microseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_rtt: Option<u64>,
    /// TCP sender, at the end: microseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mean_rtt: Option<u64>,
    /// TCP sender: packets reordered (3.22).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reorder: Option<u64>,
    /// UDP receiver.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub jitter_ms: Option<f64>,
    /// UDP receiver.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lost_packets: Option<i64>,
    /// UDP.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub packets: Option<i64>,
    /// UDP receiver.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lost_percent: Option<f64>,
    /// UDP receiver, at the end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub out_of_order: Option<i64>,
    /// In the part that `--omit` leaves out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub omitted: Option<bool>,
    /// Whether the local end sends.
    pub sender: bool,
}

/// What moved.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct End {
    /// Stream by stream.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub streams: Vec<EndStream>,
    /// UDP; in a bidirectional test of what the local end sends.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sum: Option<Row>,
    /// As the senders have it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sum_sent: Option<Row>,
    /// As the receivers have it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sum_received: Option<Row>,
    /// Bidirectional: sum of what the local end receives.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sum_bidir_reverse: Option<Row>,
    /// As the senders have it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sum_sent_bidir_reverse: Option<Row>,
    /// As the receivers have it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sum_received_bidir_reverse: Option<Row>,
    /// Of both ends' processes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu_utilization_percent: Option<Cpu>,
    /// In force at the senders.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sender_tcp_congestion: Option<String>,
    /// In force at the receivers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub receiver_tcp_congestion: Option<String>,
}

/// A stream's totals: TCP has both ends' rows, UDP has one.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EndStream {
    /// TCP, its sender.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sender: Option<Row>,
    /// TCP, its receiver.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub receiver: Option<Row>,
    /// UDP.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub udp: Option<Row>,
}

/// Percent of one core; `host` is the local end.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cpu {
    /// Here.
    pub host_total: f64,
    /// Here, in the program.
    pub host_user: f64,
    /// Here, in the kernel.
    pub host_system: f64,
    /// There.
    pub remote_total: f64,
    /// There, in the program.
    pub remote_user: f64,
    /// There, in the kernel.
    pub remote_system: f64,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Real documents: `fixtures/iperf3/RELEASE/TEST.json`.
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

    /// 5 and 5.0 are one number.
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
