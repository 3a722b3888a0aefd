//! flent data files (`.flent`, and decompressed `.flent.gz`), versions 1 to 4 of the format.
//!
//! `SERIES_META` has the unit of each series that a test defines, and from version 3 the class that made it. Rates
//! have the unit Mbits/s. Sums, averages and fairness are computed of others and not counted again; statistics of a
//! series' socket (`TCP upload::tcp_cwnd`), of queues and CPUs have no unit. Without metadata, names decide.

use landspeed_model::Metric;
use landspeed_stats::quantile;
use serde_json::{Map, Value};

use super::{ForeignDocument, ForeignError, mean, record, utc};
use crate::figures::balance;
use crate::record::RecordStatus;

/// Whether this is a flent data file.
pub fn is(value: &Value) -> bool {
    value.get("results").is_some_and(Value::is_object)
        && value.get("x_values").is_some_and(Value::is_array)
        && value.get("metadata").is_some_and(Value::is_object)
}

/// Parses a data file.
pub fn read(document: &Value) -> Result<ForeignDocument, ForeignError> {
    let missing = |what| ForeignError::Incomplete { program: "flent", what };
    let metadata = document.get("metadata").and_then(Value::as_object).ok_or(missing("metadata"))?;
    let results = document.get("results").and_then(Value::as_object).ok_or(missing("results"))?;
    let text =
        |key: &str| metadata.get(key).and_then(Value::as_str).filter(|text| !text.is_empty()).map(str::to_owned);
    let mut record =
        record(text("FLENT_VERSION").map_or_else(|| "flent".to_owned(), |version| format!("flent {version}")));
    record.started = text("TIME").and_then(|time| utc(&time)).unwrap_or_default();
    record.title = text("TITLE").or_else(|| text("NAME"));
    record.target = text("HOST").or_else(|| {
        let hosts = metadata.get("HOSTS")?.as_array()?;
        hosts.first()?.as_str().map(str::to_owned)
    });
    record.kernel = text("KERNEL_RELEASE");
    for (name, value) in [("hostname", text("LOCAL_HOST")), ("kernel_release", text("KERNEL_RELEASE"))] {
        if let Some(value) = value {
            record.hosts.insert(format!("client.{name}"), value);
        }
    }
    if let Some(name) = text("NAME") {
        record.settings.insert("test".to_owned(), name);
    }
    if let Some(length_s) = metadata.get("LENGTH").and_then(Value::as_u64) {
        record.settings.insert("time_ns".to_owned(), length_s.saturating_mul(1_000_000_000).to_string());
    }
    let meta = SeriesMeta::of(metadata);
    let series: Vec<Series> = results.iter().filter_map(|(name, values)| Series::of(name, values, &meta)).collect();
    for name in results.keys().filter(|name| !is_statistic(name)) {
        if let Some(runner) = unknown_runner(name, &meta) {
            record.notes.push(format!("series {name:?} not read: the runner {runner} is unknown"));
        }
    }
    let (upload, download) = (Transfer::of(&series, Way::Upload), Transfer::of(&series, Way::Download));
    let (primary, reverse, direction) = match (upload, download) {
        (Some(upload), Some(download)) => (Some(upload), Some(download), "both"),
        (None, Some(download)) => (Some(download), None, "download"),
        (upload, None) => (upload, None, "upload"),
    };
    if let Some(primary) = &primary {
        let named = |protocol: &&&str| results.keys().any(|name| name.starts_with(**protocol));
        // sctp_vs_tcp has both.
        if let [protocol] = ["TCP", "SCTP"].iter().filter(named).collect::<Vec<_>>().as_slice() {
            record.settings.insert("protocol".to_owned(), protocol.to_ascii_lowercase());
        }
        record.settings.insert("direction".to_owned(), direction.to_owned());
        if primary.flows > 0 {
            record.settings.insert("streams".to_owned(), primary.flows.to_string());
        }
    }
    for (what, transfer) in [("goodput", &primary), ("reverse goodput", &reverse)] {
        let Some(transfer) = transfer.as_ref().filter(|transfer| transfer.without_values > 0) else { continue };
        let (without, flows) = (transfer.without_values, transfer.flows);
        record.notes.push(format!("{what} unknown: {without} of {flows} flows have no values"));
        record.status = RecordStatus::Partial;
    }
    let pings_ms: Vec<f64> =
        series.iter().filter(|series| series.kind == Kind::Ping).flat_map(|series| series.values.clone()).collect();
    if series.iter().any(|series| series.kind == Kind::UdpSent) {
        if primary.is_none() {
            record.settings.insert("protocol".to_owned(), "udp".to_owned());
        }
        record.notes.push("goodput of UDP unknown: flent has the rate at which it was sent".to_owned());
    }
    let figures = &mut record.figures;
    let primary = primary.unwrap_or_default();
    let streams_bps = if primary.flows > 0 { primary.rates_bps.clone() } else { Vec::new() };
    figures.set(Metric::Goodput, primary.total_bps());
    figures.set(Metric::ReverseGoodput, reverse.and_then(|reverse| reverse.total_bps()));
    figures.set(Metric::StreamBalance, balance(&streams_bps));
    figures.set(Metric::LatencyP50, quantile(&pings_ms, 0.5).map(|ms| ms * 1e6));
    figures.set(Metric::LatencyP99, quantile(&pings_ms, 0.99).map(|ms| ms * 1e6));
    record.streams_bps = streams_bps;
    if record.figures == crate::Figures::default() && record.notes.is_empty() {
        return Err(missing("a rate (a series in Mbits/s) or a latency (`Ping`)"));
    }
    Ok(ForeignDocument { kind: "flent", records: vec![record] })
}

/// The flows of one direction.
#[derive(Debug, Default)]
struct Transfer {
    /// Mean rate of each flow, bits/s, or of their sum in a file that was reduced to it. Empty if the rate of a flow is
    /// unknown.
    rates_bps: Vec<f64>,
    /// Number of flows; 0 if the file has only their sum.
    flows: usize,
    /// Number of flows without a single value: they failed, or their program reported nothing.
    without_values: usize,
}

impl Transfer {
    /// `None` if the file has no values of this direction.
    fn of(series: &[Series], way: Way) -> Option<Self> {
        let means = |kind: Kind| -> Vec<Option<f64>> {
            let wanted = series.iter().filter(|series| series.kind == kind);
            wanted.map(|series| mean(&series.values).map(|mbps| mbps * 1e6)).collect()
        };
        let flows = means(Kind::Rate(way));
        if flows.iter().all(Option::is_none) {
            let total = means(Kind::Sum(way)).into_iter().flatten().next()?;
            return Some(Self { rates_bps: vec![total], ..Self::default() });
        }
        Some(Self {
            flows: flows.len(),
            without_values: flows.iter().filter(|rate| rate.is_none()).count(),
            rates_bps: flows.into_iter().collect::<Option<Vec<f64>>>().unwrap_or_default(),
        })
    }

    /// Rate of all flows, bits/s.
    fn total_bps(&self) -> Option<f64> {
        (!self.rates_bps.is_empty()).then(|| self.rates_bps.iter().sum())
    }
}

/// Direction of a transfer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    Upload,
    Download,
}

/// What the values of a series are.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// Rate of one flow, Mbit/s.
    Rate(Way),
    /// Sum of the flows of one direction, Mbit/s.
    Sum(Way),
    /// Rate at which UDP was sent: what iperf 2 gives flent.
    UdpSent,
    /// Round-trip times, ms.
    Ping,
}

struct Series {
    kind: Kind,
    values: Vec<f64>,
}

/// Last words of the names of series that flent computes of others. Their units are those of the others.
const COMPUTED_NAMES: [&str; 5] = ["sum", "avg", "total", "totals", "fairness"];
/// The classes that compute them, and the one of series that another runner fills.
const COMPUTING_RUNNERS: [&str; 6] =
    ["SumRunner", "AverageRunner", "SmoothAverageRunner", "FairnessRunner", "DiffMinRunner", "NullRunner"];

/// The classes that measure a rate: of netperf, of iperf, and those whose command a test gives.
const MEASURING_RUNNERS: [&str; 5] =
    ["NetperfDemoRunner", "IperfCsvRunner", "ProcessRunner", "SilentProcessRunner", "RegexpRunner"];

/// Returns the class of a rate's series if it is unknown whether it measures the rate or computes it of others.
fn unknown_runner<'a>(name: &str, meta: &SeriesMeta<'a>) -> Option<&'a str> {
    let runner = meta.text(name, "RUNNER").filter(|_| meta.text(name, "UNITS") == Some("Mbits/s"))?;
    (!COMPUTING_RUNNERS.contains(&runner) && !MEASURING_RUNNERS.contains(&runner)).then_some(runner)
}

/// Whether a series is a statistic of another one's socket: `TCP upload::tcp_rtt`. `TCP upload::3` is a flow.
fn is_statistic(name: &str) -> bool {
    name.split("::").skip(1).any(|part| part.contains('_'))
}

impl Series {
    /// `None` for a series that is neither a rate nor a ping.
    fn of(name: &str, values: &Value, meta: &SeriesMeta<'_>) -> Option<Self> {
        let word = name.rsplit([' ', ':']).next().unwrap_or_default();
        let computed = match meta.text(name, "RUNNER") {
            Some(runner) => COMPUTING_RUNNERS.contains(&runner),
            None => COMPUTED_NAMES.contains(&word),
        };
        let units = meta.text(name, "UNITS");
        if is_statistic(name) || unknown_runner(name, meta).is_some() {
            return None;
        }
        let unit_by_name = || {
            if name.starts_with("Ping") { Some("ms") } else { way_by_name(name).map(|_| "Mbits/s") }
        };
        let kind = match units.or_else(|| meta.0.is_none().then(unit_by_name).flatten())? {
            "Mbits/s" if name.starts_with("UDP") => Kind::UdpSent,
            "Mbits/s" => {
                let by_command = || way_by_command(meta.text(name, "COMMAND").unwrap_or_default());
                let way = way_by_name(name).or_else(by_command);
                match computed {
                    // The tests without a direction in their names are uploads.
                    false => Kind::Rate(way.unwrap_or(Way::Upload)),
                    // `TCP totals` adds both directions.
                    true if word == "sum" => Kind::Sum(way?),
                    true => return None,
                }
            }
            "ms" if name.starts_with("Ping") && !computed => Kind::Ping,
            _ => return None,
        };
        Some(Self { kind, values: numbers(values) })
    }
}

/// `SERIES_META` of a file; `None` if it has no units, as in early versions.
struct SeriesMeta<'a>(Option<&'a Map<String, Value>>);

impl<'a> SeriesMeta<'a> {
    fn of(metadata: &'a Map<String, Value>) -> Self {
        let all = metadata.get("SERIES_META").and_then(Value::as_object);
        Self(all.filter(|all| all.values().any(|one| one.get("UNITS").is_some())))
    }

    fn text(&self, series: &str, key: &str) -> Option<&'a str> {
        self.0?.get(series)?.get(key)?.as_str()
    }
}

fn way_by_name(name: &str) -> Option<Way> {
    let words: Vec<String> = name.split([' ', ':']).map(str::to_ascii_lowercase).collect();
    let has = |word: &str| words.iter().any(|have| have.trim_end_matches(|c: char| c.is_ascii_digit()) == word);
    match (has("upload"), has("download")) {
        (true, false) => Some(Way::Upload),
        (false, true) => Some(Way::Download),
        _ => None,
    }
}

/// The direction of netperf's test: `TCP_MAERTS` is received by the client.
fn way_by_command(command: &str) -> Option<Way> {
    if command.contains("_MAERTS") { Some(Way::Download) } else { command.contains("_STREAM").then_some(Way::Upload) }
}

fn numbers(series: &Value) -> Vec<f64> {
    series.as_array().into_iter().flatten().filter_map(Value::as_f64).filter(|number| number.is_finite()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Record;

    #[test]
    fn flent_rates_and_pings_are_parsed() {
        let path = format!("{}/../../fixtures/foreign/rrul.flent", env!("CARGO_MANIFEST_DIR"));
        let bytes = std::fs::read(path).expect("fixture");
        let read = super::super::read(&bytes).expect("a data file");
        let [record] = read.records.as_slice() else { panic!("{read:?}") };
        assert_eq!(read.kind, "flent");
        assert_eq!(record.tool, "flent 2.1.1");
        assert_eq!(record.started, "2026-11-20T10:15:30Z");
        assert_eq!(record.target.as_deref(), Some("dtn2.example"));
        assert_eq!(record.figures.get(Metric::Goodput), Some(180e6));
        assert_eq!(record.figures.get(Metric::ReverseGoodput), Some(400e6));
        assert_eq!(record.figures.get(Metric::LatencyP50), Some(24e6));
        assert_eq!(record.settings["streams"], "2");
    }

    /// The record of a file whose series have one value, with metadata of (name, value, unit, runner).
    fn record_of(series: &[(&str, f64, &str, &str)], with_meta: bool) -> Record {
        let (mut results, mut meta) = (Map::new(), Map::new());
        for (name, value, units, runner) in series {
            results.insert((*name).to_owned(), serde_json::json!([null, value, value]));
            let mut one = Map::new();
            for (key, text) in [("UNITS", units), ("RUNNER", runner)] {
                if !text.is_empty() {
                    one.insert(key.to_owned(), (*text).into());
                }
            }
            meta.insert((*name).to_owned(), one.into());
        }
        let mut metadata = serde_json::json!({"NAME": "test"});
        if with_meta {
            metadata["SERIES_META"] = meta.into();
        }
        let file = serde_json::json!({"version": 4, "x_values": [0, 1, 2], "results": results, "metadata": metadata});
        let read = super::super::read(file.to_string().as_bytes()).expect("a data file");
        read.records.into_iter().next().expect("a record")
    }

    const RATE: &str = "Mbits/s";

    #[test]
    fn statistics_of_a_socket_are_no_flow_whatever_their_unit() {
        let series = [
            ("TCP upload", 10.0, RATE, "NetperfDemoRunner"),
            ("TCP upload::tcp_delivery_rate", 500.0, RATE, "SsRunner"),
            ("TCP upload::tcp_pacing_rate", 700.0, RATE, ""),
        ];
        let record = record_of(&series, true);
        assert_eq!(record.figures.get(Metric::Goodput), Some(10e6), "{record:?}");
        assert_eq!((record.settings["streams"].as_str(), record.notes.as_slice()), ("1", &[][..]));
    }

    #[test]
    fn series_of_unknown_runners_are_named_and_not_added() {
        let series = [("TCP upload", 10.0, RATE, "NetperfDemoRunner"), ("Median", 10.0, RATE, "MedianRunner")];
        let record = record_of(&series, true);
        assert_eq!(record.figures.get(Metric::Goodput), Some(10e6), "{record:?}");
        assert_eq!(record.notes, ["series \"Median\" not read: the runner MedianRunner is unknown"]);
    }

    #[test]
    fn only_flows_are_added() {
        // The series of tcp_nup and rrul_be with socket statistics.
        let series = [
            ("TCP upload::1", 3.0, RATE, "NetperfDemoRunner"),
            ("TCP upload::1::tcp_cwnd", 2000.0, "", "NullRunner"),
            ("TCP upload::1::tcp_rtt", 70.0, "", "NullRunner"),
            ("TCP upload::1::tcp_rtt_var", 7.0, "", ""),
            ("TCP upload::1::tcp_delivery_rate", 900.0, "", ""),
            ("TCP upload::2", 1.0, RATE, "NetperfDemoRunner"),
            ("TCP upload avg", 2.0, RATE, "AverageRunner"),
            ("TCP upload sum", 4.0, RATE, "SumRunner"),
            // Its unit is copied from the flows.
            ("TCP upload fairness", 0.8, RATE, "FairnessRunner"),
            ("TCP download BE", 5.0, RATE, "NetperfDemoRunner"),
            ("TCP download BE::tcp_pacing_rate", 900.0, "", ""),
            ("TCP download sum", 5.0, RATE, "SumRunner"),
            ("TCP totals", 9.0, RATE, "SumRunner"),
            ("Ping (ms) ICMP", 20.0, "ms", "PingRunner"),
            ("Ping (ms) UDP BE1::tcp_rtt", 9000.0, "", "NullRunner"),
            ("Ping (ms) avg", 30.0, "ms", "AverageRunner"),
            ("HTTP latency", 1000.0, "ms", "HttpGetterRunner"),
            ("VoIP::delay", 500.0, "ms", "NullRunner"),
            ("cpu_stats_host::load", 0.5, "", "NullRunner"),
        ];
        for with_meta in [true, false] {
            // Version 2 has units but no runners; version 1 has neither.
            for with_runners in [true, false] {
                let series: Vec<_> =
                    series.iter().map(|one| (one.0, one.1, one.2, if with_runners { one.3 } else { "" })).collect();
                let record = record_of(&series, with_meta);
                let figure = |metric| record.figures.get(metric);
                assert_eq!(figure(Metric::Goodput), Some(4e6), "{record:?}");
                assert_eq!(figure(Metric::ReverseGoodput), Some(5e6), "{record:?}");
                assert_eq!(figure(Metric::LatencyP50), Some(20e6), "{record:?}");
                assert_eq!(figure(Metric::StreamBalance), Some(0.8), "{record:?}");
                assert_eq!(record.settings["streams"], "2");
                assert_eq!(record.settings["direction"], "both");
                assert_eq!(record.settings["protocol"], "tcp");
            }
        }
    }

    #[test]
    fn sums_are_used_if_the_flows_are_missing() {
        let record =
            record_of(&[("TCP download sum", 5.0, RATE, "SumRunner"), ("TCP download avg", 1.0, RATE, "")], true);
        assert_eq!(record.figures.get(Metric::Goodput), Some(5e6));
        assert_eq!((record.settings.get("streams"), record.streams_bps.len()), (None, 0));
        assert_eq!(record.settings["direction"], "download");
    }

    #[test]
    fn a_flow_without_values_leaves_the_sum_unknown() {
        let flow = |value| serde_json::json!([null, value, value]);
        let file = |second: Value| {
            let results = serde_json::json!({"TCP upload::1": flow(3.0), "TCP upload::2": second, "Ping (ms) ICMP": flow(20.0)});
            let file = serde_json::json!({"version": 4, "x_values": [0, 1, 2], "results": results, "metadata": {"NAME": "tcp_nup"}});
            super::super::read(file.to_string().as_bytes()).expect("a data file").records.remove(0)
        };
        let failed = file(serde_json::json!([null, null, null]));
        assert_eq!((failed.figures.get(Metric::Goodput), failed.figures.get(Metric::StreamBalance)), (None, None));
        assert_eq!(failed.figures.get(Metric::LatencyP50), Some(20e6));
        assert_eq!((failed.settings["streams"].as_str(), failed.status), ("2", RecordStatus::Partial));
        assert_eq!(failed.notes, ["goodput unknown: 1 of 2 flows have no values"]);
        // Nothing arrived: that is a rate.
        assert_eq!(file(flow(0.0)).figures.get(Metric::Goodput), Some(3e6));
        assert_eq!(file(flow(0.0)).figures.get(Metric::StreamBalance), Some(0.5));
    }

    #[test]
    fn flows_without_a_direction_in_their_names_are_uploads() {
        let record = record_of(&[("TCP cubic", 5.0, RATE, ""), ("TCP reno", 3.0, RATE, "")], true);
        assert_eq!(
            (record.figures.get(Metric::Goodput), record.settings["direction"].as_str()),
            (Some(8e6), "upload")
        );
    }

    #[test]
    fn sent_udp_is_not_goodput() {
        // The series of udp_flood and of cisco_5tcpup_2udpflood.
        let udp =
            record_of(&[("UDP upload", 50.0, RATE, "IperfCsvRunner"), ("Ping (ms) ICMP", 20.0, "ms", "")], true);
        assert_eq!((udp.figures.get(Metric::Goodput), udp.settings["protocol"].as_str()), (None, "udp"));
        assert!(udp.notes[0].contains("unknown"), "{udp:?}");
        let both = record_of(&[("UDP upload", 50.0, RATE, ""), ("TCP upload BE0", 3.0, RATE, "")], true);
        assert_eq!(both.figures.get(Metric::Goodput), Some(3e6));
    }
}
