//! JSON output of iperf3 3.1 to 3.22, and the lines of `--json-stream`.

use landspeed_model::Metric;
use landspeed_stats::quantile;
use serde_json::{Map, Value};

use super::{ForeignDocument, record, rfc3339, variation};
use crate::figures::balance;
use crate::record::{Record, RecordStatus};

/// Whether this is iperf3 output, which has its version in `start`.
pub fn is(value: &Value) -> bool {
    let version = value.pointer("/start/version").and_then(Value::as_str);
    version.is_some_and(|version| version.starts_with("iperf "))
}

/// Assembles a document from the lines of `--json-stream`. `None` for other text.
pub fn from_events(text: &str) -> Option<Value> {
    let mut document = Map::new();
    let mut intervals = Vec::new();
    for line in text.lines().filter(|line| !line.trim().is_empty()) {
        let Value::Object(mut event) = serde_json::from_str(line).ok()? else { return None };
        let name = event.get("event")?.as_str()?.to_owned();
        let data = event.remove("data")?;
        match name.as_str() {
            "interval" => intervals.push(data),
            _ => {
                document.insert(name, data);
            }
        }
    }
    document.insert("intervals".to_owned(), Value::Array(intervals));
    let document = Value::Object(document);
    is(&document).then_some(document)
}

/// Parses a document.
pub fn read(document: &Value) -> ForeignDocument {
    let text = |path: &str| document.pointer(path).and_then(Value::as_str).map(str::to_owned);
    let number = |path: &str| document.pointer(path).and_then(Value::as_f64);
    let count = |path: &str| document.pointer(path).and_then(Value::as_u64);
    // The version string has the form `iperf 3.12`.
    let version = text("/start/version").unwrap_or_default();
    let mut record = record(version.replacen("iperf ", "iperf3 ", 1));
    record.started = count("/start/timestamp/timesecs").and_then(rfc3339).unwrap_or_default();
    record.title = text("/title").or_else(|| text("/start/title"));
    record.target = text("/start/connecting_to/host").or_else(|| text("/start/accepted_connection/host"));
    if let Some(system) = text("/start/system_info") {
        // Fields of `uname`: system, host, release and others.
        let mut words = system.split_whitespace().skip(1);
        if let (Some(host), Some(release)) = (words.next(), words.next()) {
            record.hosts.insert("client.hostname".to_owned(), host.to_owned());
            record.hosts.insert("client.kernel_release".to_owned(), release.to_owned());
            record.kernel = Some(release.to_owned());
        }
    }
    settings(document, &mut record);
    let error = text("/error");
    let ended = document.get("end").and_then(Value::as_object).is_some_and(|end| !end.is_empty());
    record.status = match (&error, ended) {
        (None, true) => RecordStatus::Complete,
        (Some(_), true) => RecordStatus::Partial,
        (_, false) => RecordStatus::Failed,
    };
    let udp = record.settings.get("protocol").is_some_and(|protocol| protocol == "udp");
    let figures = &mut record.figures;
    // In releases without `sum_received`, `sum` of UDP has the receiver's packets and the sender's time.
    let received = ["/end/sum_received", "/end/sum"].into_iter().find(|path| document.pointer(path).is_some());
    if let Some(path) = received.filter(|_| ended) {
        figures.set(Metric::Goodput, number(&format!("{path}/bits_per_second")));
        let bytes = number(&format!("{path}/bytes")).filter(|bytes| *bytes > 0.0);
        let retransmits = number("/end/sum_sent/retransmits");
        figures.set(Metric::Retransmits, retransmits.zip(bytes).map(|(count, bytes)| count * 1e9 / bytes));
        figures.set(Metric::ReverseGoodput, number("/end/sum_received_bidir_reverse/bits_per_second"));
        if udp {
            figures.set(Metric::Loss, number("/end/sum/lost_percent").map(|percent| percent / 100.0));
            figures.set(Metric::Jitter, number("/end/sum/jitter_ms").map(|ms| ms * 1e6));
        }
    }
    let intervals = Intervals::of(document);
    figures.set(Metric::GoodputCv, variation(&intervals.sums_bps));
    figures.set(Metric::RttP50, quantile(&intervals.rtts_us, 0.5).map(|us| us * 1e3));
    figures.set(Metric::RttP99, quantile(&intervals.rtts_us, 0.99).map(|us| us * 1e3));
    record.streams_bps = streams_bps(document, udp);
    record.figures.set(Metric::StreamBalance, balance(&record.streams_bps));
    ForeignDocument { kind: "iperf3", records: vec![record] }
}

/// Settings, with the names of landspeed's parameters.
fn settings(document: &Value, record: &mut Record) {
    let start = |key: &str| document.pointer(&format!("/start/test_start/{key}"));
    let mut put = |name: &str, value: Option<String>| {
        if let Some(value) = value {
            record.settings.insert(name.to_owned(), value);
        }
    };
    let set = |key: &str| start(key).and_then(Value::as_u64).filter(|number| *number > 0).map(|n| n.to_string());
    put("protocol", start("protocol").and_then(Value::as_str).map(str::to_ascii_lowercase));
    put("streams", set("num_streams"));
    put("write_bytes", set("blksize"));
    put("rate_bps", set("target_bitrate"));
    put("tos", set("tos"));
    put("time_ns", start("duration").and_then(Value::as_u64).map(|s| s.saturating_mul(1_000_000_000).to_string()));
    let is_set = |key: &str| start(key).and_then(Value::as_u64).is_some_and(|flag| flag != 0);
    let direction = if is_set("bidir") {
        "both"
    } else if is_set("reverse") {
        "download"
    } else {
        "upload"
    };
    put("direction", start("protocol").map(|_| direction.to_owned()));
    put("congestion", document.pointer("/end/sender_tcp_congestion").and_then(Value::as_str).map(str::to_owned));
}

/// Values of the intervals, without omitted ones.
#[derive(Default)]
struct Intervals {
    /// Total rate of the primary direction in each interval.
    sums_bps: Vec<f64>,
    /// Smoothed RTT of the senders, microseconds.
    rtts_us: Vec<f64>,
}

impl Intervals {
    fn of(document: &Value) -> Self {
        let mut found = Self::default();
        let all = document.get("intervals").and_then(Value::as_array).into_iter().flatten();
        for interval in all {
            if interval.pointer("/sum/omitted").and_then(Value::as_bool) == Some(true) {
                continue;
            }
            found.sums_bps.extend(interval.pointer("/sum/bits_per_second").and_then(Value::as_f64));
            let streams = interval.get("streams").and_then(Value::as_array).into_iter().flatten();
            let rtts = streams.filter_map(|stream| stream.get("rtt").and_then(Value::as_f64));
            found.rtts_us.extend(rtts.filter(|us| *us > 0.0));
        }
        found
    }
}

/// Goodput of each stream of the primary direction, at the receiver.
fn streams_bps(document: &Value, udp: bool) -> Vec<f64> {
    let streams = document.pointer("/end/streams").and_then(Value::as_array).into_iter().flatten();
    let bidir = document.pointer("/start/test_start/bidir").and_then(Value::as_u64) == Some(1);
    let of = |stream: &Value| {
        let end = stream.get(if udp { "udp" } else { "receiver" })?;
        // With `--bidir`, the client is the sender of the primary direction.
        if bidir && end.get("sender").and_then(Value::as_bool) == Some(false) {
            return None;
        }
        end.get("bits_per_second").and_then(Value::as_f64)
    };
    streams.filter_map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fixture(name: &str) -> Record {
        let path = format!("{}/../../fixtures/iperf3/{name}", env!("CARGO_MANIFEST_DIR"));
        let bytes = std::fs::read(&path).unwrap_or_else(|why| panic!("{path}: {why}"));
        let mut read = super::super::read(&bytes).unwrap_or_else(|why| panic!("{path}: {why}"));
        assert_eq!(read.kind, "iperf3");
        read.records.remove(0)
    }

    #[test]
    fn goodput_is_taken_from_the_iperf3_receiver() {
        let tcp = fixture("3.12/tcp.json");
        assert_eq!(tcp.tool, "iperf3 3.12");
        assert_eq!(tcp.started, "2026-11-22T06:13:24Z");
        assert_eq!(tcp.figures.get(Metric::Goodput), Some(16_979_323_814.506_048));
        let retransmits = tcp.figures.get(Metric::Retransmits).expect("counted");
        assert!((retransmits - 15.0 * 1e9 / 4_255_907_840.0).abs() < 1e-9, "{retransmits}");
        assert_eq!(tcp.figures.get(Metric::RttP50), Some(270_500.0));
        assert_eq!(tcp.settings["protocol"], "tcp");
        assert_eq!(tcp.kernel.as_deref(), Some("6.12.0"));
        let udp = fixture("3.22/udp.json");
        assert_eq!(udp.figures.get(Metric::Loss), Some(0.0));
        assert_eq!(udp.settings["protocol"], "udp");
        let both = fixture("3.22/tcp-bidir.json");
        assert_eq!(both.streams_bps.len(), 1);
        assert!(both.figures.get(Metric::ReverseGoodput).is_some_and(|bps| bps > 1e10));
        assert_eq!(both.settings["direction"], "both");
        assert_eq!(fixture("3.12/tcp-parallel.json").figures.get(Metric::StreamBalance).map(|b| b > 0.5), Some(true));
    }

    #[test]
    fn refused_iperf3_test_has_status_failed() {
        assert_eq!(fixture("3.12/refused.json").status, RecordStatus::Failed);
        assert_eq!(fixture("3.22/refused.json").status, RecordStatus::Failed);
    }

    #[test]
    fn json_stream_gives_the_same_result() {
        let path = format!("{}/../../fixtures/iperf3/3.22/tcp.json", env!("CARGO_MANIFEST_DIR"));
        let whole: Value = serde_json::from_slice(&std::fs::read(path).expect("fixture")).expect("JSON");
        let mut lines = format!("{}\n", serde_json::json!({"event": "start", "data": whole["start"]}));
        for interval in whole["intervals"].as_array().expect("intervals") {
            lines += &format!("{}\n", serde_json::json!({"event": "interval", "data": interval}));
        }
        lines += &format!("{}\n", serde_json::json!({"event": "end", "data": whole["end"]}));
        assert_eq!(super::super::read(lines.as_bytes()), Ok(read(&whole)));
    }
}
