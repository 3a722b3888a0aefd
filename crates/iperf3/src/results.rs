//! Results that client and server exchange at the end, in iperf3's JSON.

use std::collections::HashMap;

use landspeed_flow::end::EndReport;
use landspeed_flow::layout::StreamSpec;
use serde_json::{Map, Value, json};

use crate::identity;
use crate::request::whole;

/// Maximum plausible value: 4 PiB.
const MAX_COUNT: u64 = 1 << 52;

/// Results of a stream at one host.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct StreamResult {
    /// iperf3's number of the stream.
    pub number: u64,
    /// Payload bytes after the omitted part: sent by a sender, received by a receiver.
    pub bytes: u64,
    /// Retransmitted segments, if the sender reports them.
    pub retransmits: Option<u64>,
    /// RFC 1889 jitter of a UDP receiver, seconds; `None` if unknown.
    pub jitter_s: Option<f64>,
    /// UDP receiver: missing datagrams, including the omitted part; can be negative with reordering. `None` if unknown.
    pub errors: Option<i64>,
    /// UDP receiver: missing datagrams in the omitted part; `None` from releases before 3.14.
    pub omitted_errors: Option<i64>,
    /// UDP: datagrams sent, or the highest number received; including the omitted part.
    pub packets: u64,
    /// UDP: the same for the omitted part only; `None` from releases before 3.14.
    pub omitted_packets: Option<u64>,
    /// Duration after the omitted part, seconds.
    pub seconds: f64,
}

/// Results of one host.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Results {
    /// CPU utilization, percent of wall time: total, user, system.
    pub cpu_percent: [f64; 3],
    /// Whether its senders know their retransmits; `None` without a sender.
    pub retransmits_known: Option<bool>,
    /// Congestion control algorithm of the senders, or of the first stream that has one.
    pub congestion: Option<String>,
    /// Results of each stream.
    pub streams: Vec<StreamResult>,
}

/// Values that are not in a host's own report.
#[derive(Debug, Clone, Default)]
pub struct SessionValues {
    /// Counts of the omitted part, by stream id.
    pub omitted: HashMap<u32, Omitted>,
    /// Duration of the omitted part, nanoseconds.
    pub omit_ns: u64,
    /// End of the test, nanoseconds after its start, if the peer announced it.
    pub end_ns: Option<u64>,
    /// Datagrams that the peer reports as sent, by stream id.
    pub sent: HashMap<u32, u64>,
    /// Results of the peer.
    pub peer: Option<Results>,
}

/// Counts of a stream's omitted part.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Omitted {
    /// Payload bytes.
    pub bytes: u64,
    /// UDP: datagrams sent, or delivered.
    pub packets: u64,
    /// UDP receiver: highest sequence number received, plus one.
    pub highest: u64,
}

impl Results {
    /// Converts a host's report to iperf3's results.
    pub fn from_report(report: &EndReport, specs: &[StreamSpec], known: &SessionValues) -> Self {
        let end_ns = known.end_ns.or(report.cuts.steady_end_ns).or(report.cuts.end_ns).unwrap_or(0);
        let percent = |of: fn(&landspeed_model::StreamEnd) -> Option<u64>| {
            let all: u64 = report.streams.iter().filter_map(|s| of(&s.end)).sum();
            if end_ns > 0 { all as f64 * 100.0 / end_ns as f64 } else { 0.0 }
        };
        let mut streams = Vec::new();
        for (index, spec) in specs.iter().enumerate() {
            let Some(stream) = report.streams.iter().find(|s| s.id == spec.id) else { continue };
            let omitted = known.omitted.get(&spec.id).copied().unwrap_or_default();
            let end = &stream.end;
            let udp = end.udp.clone().unwrap_or_default();
            let highest = known.sent.get(&spec.id).copied().unwrap_or(0).max(udp.highest_seq);
            streams.push(StreamResult {
                number: identity::number(index),
                bytes: end.bytes.saturating_sub(omitted.bytes),
                retransmits: end.retransmits.filter(|_| stream.sends),
                jitter_s: udp.jitter_ns.map(|ns| ns as f64 / 1e9),
                errors: Some(if stream.sends { 0 } else { highest.saturating_sub(udp.delivered_packets) as i64 }),
                omitted_errors: Some(if stream.sends {
                    0
                } else {
                    omitted.highest.saturating_sub(omitted.packets) as i64
                }),
                packets: if stream.sends { udp.sent_packets } else { highest },
                omitted_packets: Some(if stream.sends { omitted.packets } else { omitted.highest }),
                seconds: end_ns.saturating_sub(known.omit_ns) as f64 / 1e9,
            });
        }
        let senders = || report.streams.iter().filter(|s| s.sends);
        Self {
            cpu_percent: [
                percent(|e| e.thread_cpu_ns),
                percent(|e| e.thread_user_ns),
                percent(|e| e.thread_system_ns),
            ],
            retransmits_known: senders().next().map(|_| senders().any(|s| s.end.retransmits.is_some())),
            congestion: senders().chain(&report.streams).find_map(|s| s.end.congestion.clone()),
            streams,
        }
    }

    /// Encodes the results as JSON.
    pub fn encode(&self) -> Map<String, Value> {
        let [all, user, system] = self.cpu_percent;
        let streams: Vec<Value> = self.streams.iter().map(StreamResult::encode).collect();
        let mut text = Map::new();
        text.insert("cpu_util_total".to_owned(), json!(all));
        text.insert("cpu_util_user".to_owned(), json!(user));
        text.insert("cpu_util_system".to_owned(), json!(system));
        let known = self.retransmits_known.map_or(-1, i64::from);
        text.insert("sender_has_retransmits".to_owned(), json!(known));
        if let Some(name) = &self.congestion {
            text.insert("congestion_used".to_owned(), json!(name));
        }
        text.insert("streams".to_owned(), Value::Array(streams));
        text
    }

    /// Decodes the peer's results.
    ///
    /// # Errors
    /// A message that names the missing or implausible value.
    pub fn decode(text: &Value) -> Result<Self, String> {
        let share = |key: &str| text.get(key).and_then(Value::as_f64).unwrap_or(0.0);
        let streams = text.get("streams").and_then(Value::as_array).ok_or("its results have no streams")?;
        if streams.len() > 2048 {
            return Err("its results have more than 2048 streams".to_owned());
        }
        Ok(Self {
            cpu_percent: [share("cpu_util_total"), share("cpu_util_user"), share("cpu_util_system")],
            retransmits_known: match text.get("sender_has_retransmits").and_then(Value::as_i64) {
                Some(0) => Some(false),
                Some(1..) => Some(true),
                _ => None,
            },
            congestion: text
                .get("congestion_used")
                .and_then(Value::as_str)
                .map(|s| landspeed_flow::control::printable(s, 16)),
            streams: streams.iter().map(StreamResult::decode).collect::<Result<_, _>>()?,
        })
    }

    /// Returns the results of the stream with iperf3's number.
    pub fn stream(&self, number: u64) -> Option<&StreamResult> {
        self.streams.iter().find(|s| s.number == number)
    }
}

impl StreamResult {
    fn encode(&self) -> Value {
        let mut text = json!({
            "id": self.number,
            "bytes": self.bytes,
            "retransmits": self.retransmits.map_or(-1, |n| n as i64),
            "jitter": self.jitter_s.unwrap_or(0.0),
            "errors": self.errors.unwrap_or(0),
            "packets": self.packets,
            "start_time": 0,
            "end_time": self.seconds,
        });
        // Releases before 3.14 have neither; iperf3 refuses one without the other.
        if let Some((errors, packets)) = self.omitted_errors.zip(self.omitted_packets) {
            text["omitted_errors"] = json!(errors);
            text["omitted_packets"] = json!(packets);
        }
        text
    }

    fn decode(text: &Value) -> Result<Self, String> {
        let needed = |key: &str| {
            let value = text.get(key).ok_or_else(|| format!("a stream of its results has no `{key}`"))?;
            whole(value).filter(|&n| n <= MAX_COUNT).ok_or_else(|| format!("`{key}` of its results cannot be"))
        };
        // Minus one means unknown; 3.12 writes some of these as 2^64 - 1.
        let optional = |key: &str| text.get(key).and_then(whole).filter(|&n| n <= MAX_COUNT);
        let float = |key: &str| text.get(key).and_then(Value::as_f64).filter(|s| s.is_finite());
        let seconds = |key: &str| float(key).unwrap_or(0.0);
        let errors =
            |key: &str| float(key).filter(|errors| errors.abs() <= MAX_COUNT as f64).map(|errors| errors as i64);
        Ok(Self {
            number: needed("id")?,
            bytes: needed("bytes")?,
            retransmits: optional("retransmits"),
            jitter_s: float("jitter").map(|seconds| seconds.clamp(0.0, 1e6)),
            errors: errors("errors"),
            omitted_errors: errors("omitted_errors"),
            packets: needed("packets")?,
            omitted_packets: optional("omitted_packets"),
            seconds: seconds("end_time") - seconds("start_time"),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_round_trip() {
        let stream = StreamResult {
            number: 3,
            bytes: 1 << 40,
            retransmits: Some(7),
            jitter_s: Some(0.25),
            errors: Some(2),
            omitted_errors: Some(1),
            packets: 99,
            omitted_packets: Some(9),
            seconds: 1.5,
        };
        let all = Results {
            cpu_percent: [3.0, 1.0, 2.0],
            retransmits_known: Some(true),
            congestion: Some("bbr".to_owned()),
            streams: vec![
                stream,
                StreamResult {
                    number: 1,
                    jitter_s: Some(0.0),
                    errors: Some(0),
                    omitted_errors: Some(0),
                    omitted_packets: Some(0),
                    ..StreamResult::default()
                },
            ],
        };
        assert_eq!(Results::decode(&Value::Object(all.encode())), Ok(all));
    }

    #[test]
    fn minus_one_means_unknown_signed_or_unsigned() {
        let mut text =
            Value::Object(Results { streams: vec![StreamResult::default()], ..Results::default() }.encode());
        text["streams"][0]["retransmits"] = json!(18_446_744_073_709_551_615_u64);
        assert_eq!(Results::decode(&text).unwrap().streams[0].retransmits, None);
        text["streams"][0]["bytes"] = json!(18_446_744_073_709_551_615_u64);
        assert!(Results::decode(&text).unwrap_err().contains("bytes"));
    }

    #[test]
    fn invalid_results_are_rejected() {
        for text in [json!(null), json!([]), json!({"streams": 1}), json!({"streams": [1]}), json!({"streams": [{}]})]
        {
            assert!(Results::decode(&text).is_err(), "{text}");
        }
    }
}
