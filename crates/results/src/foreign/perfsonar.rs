//! perfSONAR: runs of pScheduler, bare results of `throughput`, `latency`, `latencybg` and `rtt`, and records
//! of its archive (Logstash and OpenSearch, perfSONAR 5).

use landspeed_model::Metric;
use serde_json::Value;

use super::{ForeignDocument, ForeignError, record, set_loss, utc};
use crate::figures::{Figures, balance};
use crate::record::{Record, RecordStatus};

/// Parses a run, a list of runs, or the answer to a search in the archive.
pub fn read(document: &Value) -> Result<ForeignDocument, ForeignError> {
    let hits = document.pointer("/hits/hits").unwrap_or(document);
    let runs: Vec<&Value> = match hits {
        Value::Array(list) => list.iter().collect(),
        one => vec![one],
    };
    // A list of anything else contains no run.
    let runs: Vec<&Value> = runs.into_iter().map(|run| run.get("_source").unwrap_or(run)).collect();
    if runs.is_empty() || !runs.iter().any(|run| is_run(run)) {
        return Err(ForeignError::Unknown);
    }
    let records: Vec<Record> = runs.into_iter().filter(|run| is_run(run)).filter_map(of_run).collect();
    if records.is_empty() {
        return Err(ForeignError::Incomplete {
            program: "perfSONAR",
            what: "a throughput, latency or rtt test that succeeded or failed",
        });
    }
    Ok(ForeignDocument { kind: "perfsonar", records })
}

/// Whether a value is a run or a bare result.
fn is_run(value: &Value) -> bool {
    let has = |path: &str| value.pointer(path).is_some();
    (has("/test/type") && (has("/result") || has("/result-merged"))) || (has("/succeeded") && has_figures(value))
}

fn has_figures(result: &Value) -> bool {
    ["summary", "packets-sent", "histogram-latency", "roundtrips"].iter().any(|key| result.get(key).is_some())
}

fn of_run(run: &Value) -> Option<Record> {
    let text = |path: &str| run.pointer(path).and_then(Value::as_str).map(str::to_owned);
    let result = ["/result-merged", "/result"].iter().find_map(|path| run.pointer(path)).unwrap_or(run);
    let result = if result.is_null() { run.get("result")? } else { result };
    let tool = text("/tool/name").or_else(|| text("/tool"));
    let mut record = record(tool.map_or_else(|| "perfSONAR".to_owned(), |tool| format!("perfSONAR {tool}")));
    let times = ["/start-time", "/schedule/start", "/pscheduler/start_time", "/run/start-time", "/@timestamp"];
    record.started = times.iter().find_map(|path| utc(&text(path)?)).unwrap_or_default();
    let ends = |paths: &[&str]| paths.iter().find_map(|path| text(path));
    let client = ends(&["/test/spec/source", "/meta/source/hostname", "/meta/source/ip", "/participants/0"]);
    let server = ends(&["/test/spec/dest", "/meta/destination/hostname", "/meta/destination/ip", "/participants/1"]);
    record.target.clone_from(&server);
    for (name, host) in [("client.hostname", client), ("server.hostname", server)] {
        if let Some(host) = host {
            record.hosts.insert(name.to_owned(), host);
        }
    }
    let kind = text("/test/type").unwrap_or_else(|| infer_test_type(result).to_owned());
    if !["throughput", "latency", "latencybg", "rtt"].contains(&kind.as_str()) {
        return None;
    }
    settings(run, &kind, &mut record);
    if result.get("succeeded").and_then(Value::as_bool) == Some(false) {
        record.status = RecordStatus::Failed;
        return Some(record);
    }
    match kind.as_str() {
        "throughput" => throughput(result, &mut record),
        "rtt" => round_trips(result, &mut record),
        _ => one_way(result, &mut record),
    }
    if record.figures == Figures::default() {
        record.status = RecordStatus::Partial;
        if record.notes.is_empty() {
            record.notes.push("figures unknown: the result has none of this test".to_owned());
        }
    }
    Some(record)
}

/// The test type of a bare result.
fn infer_test_type(result: &Value) -> &'static str {
    if result.get("summary").is_some() {
        "throughput"
    } else if result.get("roundtrips").is_some() {
        "rtt"
    } else {
        "latency"
    }
}

fn settings(run: &Value, kind: &str, record: &mut Record) {
    let spec = |key: &str| run.pointer(&format!("/test/spec/{key}"));
    let mut put = |name: &str, value: Option<String>| {
        if let Some(value) = value {
            record.settings.insert(name.to_owned(), value);
        }
    };
    put("test", Some(kind.to_owned()));
    if kind == "throughput" {
        let udp = spec("udp").and_then(Value::as_bool) == Some(true);
        put("protocol", Some(if udp { "udp" } else { "tcp" }.to_owned()));
        let reverse = spec("reverse").and_then(Value::as_bool) == Some(true);
        put("direction", Some(if reverse { "download" } else { "upload" }.to_owned()));
    }
    put("streams", spec("parallel").and_then(Value::as_u64).map(|n| n.to_string()));
    put("rate_bps", spec("bandwidth").and_then(Value::as_u64).map(|n| n.to_string()));
    put("window_bytes", spec("window-size").and_then(Value::as_u64).map(|n| n.to_string()));
    put("congestion", spec("congestion").and_then(Value::as_str).map(str::to_owned));
    let duration = spec("duration").and_then(Value::as_str).and_then(seconds);
    put("time_ns", duration.map(|s| format!("{:.0}", s * 1e9)));
}

fn throughput(result: &Value, record: &mut Record) {
    // Records of the archive have the sum itself instead of pScheduler's `summary.summary`.
    let summary = result.pointer("/summary/summary").unwrap_or(result);
    let number = |keys: &[&str]| keys.iter().find_map(|key| summary.get(*key)?.as_f64());
    // pScheduler 5 adds the receiver's count. With iperf3 and UDP the other one is the sender's.
    let received = number(&["receiver-throughput-bits"]);
    let udp = record.settings.get("protocol").is_some_and(|protocol| protocol == "udp");
    let sender_only = received.is_none() && udp && record.tool.ends_with("iperf3");
    let bps = received.or_else(|| number(&["throughput-bits", "throughput"]).filter(|_| !sender_only));
    let bytes = number(&["receiver-throughput-bytes", "throughput-bytes"]).filter(|bytes| *bytes > 0.0);
    if sender_only {
        record.notes.push("goodput unknown: pScheduler has the rate at which iperf3 sent UDP".to_owned());
    }
    let figures = &mut record.figures;
    figures.set(Metric::Goodput, bps);
    figures.set(Metric::Retransmits, number(&["retransmits"]).zip(bytes).map(|(count, bytes)| count * 1e9 / bytes));
    let (sent, lost) = (number(&["sent"]).filter(|sent| *sent > 0.0), number(&["lost"]));
    figures.set(Metric::Jitter, number(&["jitter"]).map(|ms| ms * 1e6));
    let streams = result.pointer("/summary/streams").and_then(Value::as_array).into_iter().flatten();
    let of =
        |stream: &Value| stream.get("receiver-throughput-bits").or_else(|| stream.get("throughput-bits"))?.as_f64();
    // A stream whose rate is unknown leaves the balance unknown.
    let rates: Option<Vec<f64>> = streams.map(of).collect();
    record.streams_bps = rates.filter(|_| !sender_only).unwrap_or_default();
    figures.set(Metric::StreamBalance, balance(&record.streams_bps));
    set_loss(record, lost.zip(sent).map(|(lost, sent)| lost / sent));
}

/// One-way latency, from a histogram in milliseconds.
fn one_way(result: &Value, record: &mut Record) {
    let number = |key: &str| result.get(key).and_then(Value::as_f64);
    set_loss(record, number("packets-lost").zip(number("packets-sent").filter(|n| *n > 0.0)).map(|(a, b)| a / b));
    let histogram = ["histogram-latency", "latency"].iter().find_map(|key| result.get(*key)?.as_object());
    let mut counts: Vec<(f64, f64)> = histogram
        .into_iter()
        .flatten()
        .filter_map(|(ms, count)| Some((ms.parse::<f64>().ok()?, count.as_f64()?)))
        .filter(|(ms, count)| ms.is_finite() && *count > 0.0 && count.is_finite())
        .collect();
    counts.sort_by(|a, b| a.0.total_cmp(&b.0));
    let figures = &mut record.figures;
    figures.set(Metric::LatencyP50, weighted_quantile(&counts, 0.5).map(|ms| ms * 1e6));
    figures.set(Metric::LatencyP99, weighted_quantile(&counts, 0.99).map(|ms| ms * 1e6));
}

/// The quantile `share` of a sorted histogram of value and count.
fn weighted_quantile(counts: &[(f64, f64)], share: f64) -> Option<f64> {
    let total: f64 = counts.iter().map(|(_, count)| count).sum();
    let mut seen = 0.0;
    counts
        .iter()
        .find(|(_, count)| {
            seen += count;
            seen >= share * total
        })
        .map(|(value, _)| *value)
}

/// Round-trip times. A result without single round trips has only their mean, not the median.
fn round_trips(result: &Value, record: &mut Record) {
    let list = result.get("roundtrips").and_then(Value::as_array).into_iter().flatten();
    // pScheduler writes a duration such as `PT0.0125S`, the archive a number of seconds.
    let rtt_s = |rtt: &Value| rtt.as_str().map_or_else(|| rtt.as_f64(), seconds);
    let rtts_s: Vec<f64> = list.filter_map(|trip| rtt_s(trip.get("rtt")?)).collect();
    let quantile = |p| landspeed_stats::quantile(&rtts_s, p).map(|s| s * 1e9);
    record.figures.set(Metric::LatencyP50, quantile(0.5));
    record.figures.set(Metric::LatencyP99, quantile(0.99));
    set_loss(record, result.get("loss").and_then(Value::as_f64));
}

/// Parses an ISO 8601 duration of hours, minutes and seconds, such as `PT10S` or `PT1M30.5S`; returns seconds.
fn seconds(text: &str) -> Option<f64> {
    let mut rest = text.strip_prefix("PT")?;
    let mut total = 0.0;
    for (unit, factor) in [('H', 3600.0), ('M', 60.0), ('S', 1.0)] {
        if let Some((number, after)) = rest.split_once(unit) {
            total += number.parse::<f64>().ok()? * factor;
            rest = after;
        }
    }
    (rest.is_empty() && f64::is_finite(total)).then_some(total)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fixture(name: &str) -> Vec<Record> {
        let path = format!("{}/../../fixtures/foreign/{name}", env!("CARGO_MANIFEST_DIR"));
        let bytes = std::fs::read(&path).unwrap_or_else(|why| panic!("{path}: {why}"));
        let read = super::super::read(&bytes).unwrap_or_else(|why| panic!("{path}: {why}"));
        assert_eq!(read.kind, "perfsonar");
        read.records
    }

    #[test]
    fn pscheduler_throughput_is_parsed() {
        let records = fixture("pscheduler-throughput.json");
        let [run] = records.as_slice() else { panic!("{records:?}") };
        assert_eq!(run.tool, "perfSONAR iperf3");
        assert_eq!(run.started, "2026-11-20T10:15:30Z");
        assert_eq!(run.hosts["client.hostname"], "ps1.example");
        assert_eq!(run.target.as_deref(), Some("ps2.example"));
        assert_eq!(run.figures.get(Metric::Goodput), Some(9.41e9));
        assert_eq!(run.settings["time_ns"], "20000000000");
        assert_eq!(run.streams_bps.len(), 2);
    }

    #[test]
    fn unknown_figures_of_a_run_have_a_reason() {
        let run = |udp: bool, summary: &str| {
            let text = format!(
                r#"Submitting task...
{{"test": {{"type": "throughput", "spec": {{"dest": "ps2", "udp": {udp}}}}}, "tool": {{"name": "iperf3"}},
"result": {{"succeeded": true, "summary": {{"streams": [], "summary": {summary}}}}}}}"#
            );
            super::super::read(text.as_bytes()).expect("a run").records.remove(0)
        };
        let sent = run(true, r#"{"throughput-bits": 1e8, "sent": 100, "lost": 80}"#);
        assert_eq!((sent.figures.get(Metric::Goodput), sent.figures.get(Metric::Loss)), (None, Some(0.8)));
        assert!(sent.notes[0].starts_with("goodput unknown"), "{sent:?}");
        let received = run(true, r#"{"throughput-bits": 1e8, "receiver-throughput-bits": 2e7}"#);
        assert_eq!(received.figures.get(Metric::Goodput), Some(2e7));
        let impossible = run(true, r#"{"receiver-throughput-bits": 2e7, "sent": 100, "lost": -3}"#);
        assert_eq!(impossible.figures.get(Metric::Loss), None);
        assert_eq!(impossible.notes, ["loss unknown: the document says -3.00 %"]);
        let empty = run(false, "{}");
        assert_eq!(empty.status, RecordStatus::Partial);
        assert!(empty.notes[0].starts_with("figures unknown"), "{empty:?}");
    }

    #[test]
    fn balance_counts_starved_and_not_unknown_streams() {
        let of = |streams: &str| {
            let text = format!(
                r#"{{"test": {{"type": "throughput", "spec": {{"dest": "ps2"}}}}, "tool": {{"name": "iperf3"}},
"result": {{"succeeded": true, "summary": {{"streams": {streams}, "summary": {{"throughput-bits": 1e8}}}}}}}}"#
            );
            super::super::read(text.as_bytes()).expect("a run").records.remove(0).figures.get(Metric::StreamBalance)
        };
        assert_eq!(of(r#"[{"throughput-bits": 1e8}, {"throughput-bits": 0}]"#), Some(0.5));
        assert_eq!(of(r#"[{"throughput-bits": 1e8}, {"throughput-bits": 1e8}, {"throughput-bits": null}]"#), None);
    }

    #[test]
    fn pscheduler_one_way_latency_is_parsed() {
        let records = fixture("pscheduler-latency.json");
        assert_eq!(records[0].figures.get(Metric::LatencyP50), Some(46.1e6));
        assert_eq!(records[0].figures.get(Metric::LatencyP99), Some(46.9e6));
        assert_eq!(records[0].figures.get(Metric::Loss), Some(0.01));
    }

    #[test]
    fn archive_answer_contains_several_runs() {
        let records = fixture("perfsonar-archive.json");
        assert_eq!(records.len(), 2);
        assert_eq!(records[0].figures.get(Metric::Goodput), Some(9.38e9));
        assert_eq!(records[1].figures.get(Metric::LatencyP50), Some(12.5e6));
    }

    #[test]
    fn other_json_is_not_perfsonar() {
        for text in ["{}", "[]", "3", "[1, 2]", "{\"result\": 1}", "{\"test\": {\"type\": \"dns\"}}"] {
            assert_eq!(super::super::read(text.as_bytes()), Err(ForeignError::Unknown), "{text}");
        }
    }

    #[test]
    fn iso_8601_durations_are_converted_to_seconds() {
        assert_eq!(seconds("PT10S"), Some(10.0));
        assert_eq!(seconds("PT1M30.5S"), Some(90.5));
        assert_eq!(seconds("10"), None);
    }
}
