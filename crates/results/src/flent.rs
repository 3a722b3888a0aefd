//! Runs as data files of flent, version 4 of the format: what `flent -i` reads.
//!
//! Rates are those of the receivers, or of the senders' ACKs where a receiver reported only totals. Round trips are those of the latency probes. flent's own name of a test decides which plots
//! it has for a file, so a run is named after the test that has the same flows.

use std::fmt::Write as _;
use std::time::UNIX_EPOCH;

use landspeed_model::{
    Direction, Interval, LatencyPoint, Parameters, PhaseName, Protocol, RunDocument, Status, Stream,
};
use serde_json::{Map, Value, json};

/// Version of the format.
const FORMAT: u32 = 4;
/// DSCP of the flows of flent's test rrul, and their names.
const RRUL: [(u8, &str); 4] = [(0, "BE"), (8, "BK"), (40, "CS5"), (46, "EF")];
/// Shortest step between two points, nanoseconds.
const MIN_STEP_NS: u64 = 100_000_000;
/// Largest number of points of a series: a longer run has longer steps.
const MAX_POINTS: u64 = 100_000;

/// Returns the data file of a run.
///
/// # Errors
/// Why flent has no test like this run, or what the run lacks.
pub fn data_file(run: &RunDocument) -> Result<Value, String> {
    let parameters = run.effective.as_ref().unwrap_or(&run.requested);
    let test = Test::of(parameters)?;
    let started = humantime::parse_rfc3339(&run.started).map_err(|_| "its start is unknown".to_owned())?;
    let started_s = started.duration_since(UNIX_EPOCH).map_err(|_| "its start is unknown".to_owned())?.as_secs_f64();
    let pings = run.latency_under_load.as_ref().map_or(&[] as &[LatencyPoint], |load| load.timeline.as_slice());
    // Probes of the idle path are before the start of the load.
    let origin_ns = pings.first().map_or(0, |point| point.start_ns).min(0);
    let end_ns = run.streams.iter().flat_map(traffic).map(|interval| interval.end_ns).max();
    let end_ns = end_ns.ok_or("no receiver reported what arrived over time")?;
    let span_ns = end_ns.saturating_add(origin_ns.unsigned_abs());
    let step_ns = parameters.interval_ns.max(MIN_STEP_NS).max(span_ns.div_ceil(MAX_POINTS));
    let grid = Grid { origin_ns, step_ns, points: span_ns.div_ceil(step_ns) as usize };
    let t0_s = started_s + origin_ns as f64 / 1e9;
    let mut file = File::default();
    for direction in parameters.direction.parts() {
        let name = if *direction == Direction::Download { "download" } else { "upload" };
        let (mut flows, mut means) = (Vec::new(), Vec::new());
        let streams = run.streams.iter().filter(|stream| stream.direction == *direction);
        for (index, stream) in streams.enumerate() {
            let mean = mean_rate(stream);
            let mean = mean.ok_or_else(|| format!("what arrived over time on stream {} is unknown", stream.id))?;
            let series = grid.rates(stream);
            let label = test.flow(name, index);
            let runner = "NetperfDemoRunner";
            file.add(&label, &series, Some(mean), "Mbits/s", runner, raw_rates(stream, started_s));
            flow_meta(file.meta_of(&label), stream, parameters, index);
            flows.push(series);
            means.push(mean);
        }
        if flows.is_empty() {
            return Err(format!("no stream of the {name} reported"));
        }
        for (word, runner, divisor) in [("sum", "SumRunner", 1.0), ("avg", "AverageRunner", flows.len() as f64)] {
            let series = combine(&flows, |values| values.iter().sum::<f64>() / divisor);
            let mean = means.iter().sum::<f64>() / divisor;
            file.add(&format!("TCP {name} {word}"), &series, Some(mean), "Mbits/s", runner, Vec::new());
        }
    }
    if !pings.is_empty() {
        let kind = if parameters.probe_udp || parameters.protocol == Protocol::Udp { "UDP" } else { "TCP" };
        let series = grid.pings(pings);
        let raw = pings.iter().map(|point| {
            let dur_s = (point.end_ns - point.start_ns) as f64 / 1e9;
            json!({ "t": started_s + point.end_ns as f64 / 1e9, "val": point.mean_ns / 1e6, "dur": dur_s })
        });
        let answered: u64 = pings.iter().map(|point| point.completed).sum();
        let sum_ms: f64 = pings.iter().map(|point| point.mean_ns / 1e6 * point.completed as f64).sum();
        let mean = (answered > 0).then(|| sum_ms / answered as f64);
        file.add(&format!("Ping (ms) {kind} BE"), &series, mean, "ms", "UdpRttRunner", raw.collect());
        file.add("Ping (ms) avg", &series, mean, "ms", "AverageRunner", Vec::new());
    }
    let target = run.path.as_ref().map_or("", |path| path.target.as_str());
    let host = host_of(target);
    let ip_version = run.path.as_ref().map(|path| if path.server_addr.starts_with('[') { 6 } else { 4 });
    let client = run.hosts.client.as_ref();
    let t0 = humantime::format_rfc3339_micros(UNIX_EPOCH + std::time::Duration::from_secs_f64(t0_s.max(0.0)));
    let metadata = json!({
        "NAME": test.name,
        "TITLE": parameters.title,
        "NOTE": note(run),
        "HOST": host,
        "HOSTS": [host],
        "LOCAL_HOST": client.map(|host| host.hostname.clone()),
        "KERNEL_RELEASE": client.map(|host| host.kernel_release.clone()),
        "TIME": t0.to_string(),
        "T0": t0.to_string(),
        // flent computes with it: a run of so many bytes has the time that they took.
        "LENGTH": parameters.time_ns.unwrap_or(end_ns).div_ceil(1_000_000_000),
        "TOTAL_LENGTH": span_ns as f64 / 1e9,
        "STEP_SIZE": step_ns as f64 / 1e9,
        "TEST_PARAMETERS": test.parameters,
        "IP_VERSION": ip_version,
        "FLENT_VERSION": format!("landspeed {}", run.landspeed.version),
        "DATA_FILENAME": format!("{}-{}.flent.gz", test.name, run.id.replace(|c: char| !c.is_ascii_alphanumeric(), "")),
        "BATCH_NAME": null,
        "BATCH_TIME": null,
        "BATCH_TITLE": null,
        "BATCH_UUID": null,
        "SERIES_META": file.meta,
    });
    Ok(json!({
        "version": FORMAT,
        "metadata": metadata,
        "x_values": grid.x_values(),
        "results": file.results,
        "raw_values": file.raw,
    }))
}

/// A test of flent with the same flows as a run.
struct Test {
    name: &'static str,
    parameters: Value,
}

impl Test {
    fn of(parameters: &Parameters) -> Result<Self, String> {
        if parameters.protocol != Protocol::Tcp {
            return Err("flent has no test of UDP goodput, or of request/response with its sizes".to_owned());
        }
        let n = parameters.streams.to_string();
        let rrul = RRUL.map(|(dscp, _)| dscp);
        let marked = parameters.dscp.is_some_and(|dscp| dscp > 0) || !parameters.stream_dscp.is_empty();
        Ok(match parameters.direction {
            Direction::Upload => Self { name: "tcp_nup", parameters: json!({ "upload_streams": n }) },
            Direction::Download => Self { name: "tcp_ndown", parameters: json!({ "download_streams": n }) },
            Direction::Both if parameters.stream_dscp == rrul && parameters.streams == 4 => {
                Self { name: "rrul", parameters: json!({}) }
            }
            Direction::Both if marked => {
                return Err("flent has no test of both directions with these DSCPs".to_owned());
            }
            Direction::Both => {
                Self { name: "rrul_be_nflows", parameters: json!({ "upload_streams": n, "download_streams": n }) }
            }
        })
    }

    /// Name of a flow's series.
    fn flow(&self, direction: &str, index: usize) -> String {
        match self.name {
            "rrul" => format!("TCP {direction} {}", RRUL[index % RRUL.len()].1),
            "rrul_be_nflows" => format!("TCP {direction} BE::{}", index + 1),
            _ => format!("TCP {direction}::{}", index + 1),
        }
    }
}

/// The series of a file.
#[derive(Default)]
struct File {
    results: Map<String, Value>,
    raw: Map<String, Value>,
    meta: Map<String, Value>,
}

impl File {
    fn add(
        &mut self,
        name: &str,
        series: &[Option<f64>],
        mean: Option<f64>,
        units: &str,
        runner: &str,
        raw: Vec<Value>,
    ) {
        self.results.insert(name.to_owned(), json!(series));
        if !raw.is_empty() {
            self.raw.insert(name.to_owned(), Value::Array(raw));
        }
        self.meta.insert(name.to_owned(), json!({ "UNITS": units, "RUNNER": runner, "MEAN_VALUE": mean }));
    }

    fn meta_of(&mut self, name: &str) -> &mut Value {
        &mut self.meta[name]
    }
}

/// Adds what netperf would tell flent about a flow.
fn flow_meta(meta: &mut Value, stream: &Stream, parameters: &Parameters, index: usize) {
    let classes = &parameters.stream_dscp;
    let dscp = if classes.is_empty() { parameters.dscp.unwrap_or(0) } else { classes[index % classes.len()] };
    let (sender, receiver) = (stream.sender.as_ref(), stream.receiver.as_ref());
    meta["DATA_TOS"] = json!(dscp << 2);
    meta["SEND_SIZE"] = json!(parameters.write_bytes);
    meta["BYTES_SENT"] = json!(sender.map(|end| end.bytes));
    meta["BYTES_RECVD"] = json!(receiver.map(|end| end.bytes));
    meta["TCP_RETRANSMIT"] = json!(sender.and_then(|end| end.retransmits));
    meta["CONG_CONTROL"] = json!(sender.and_then(|end| end.congestion.clone()));
    meta["TCP_MSS"] = json!(sender.and_then(|end| end.mss_bytes));
}

/// Returns the host of a target: `HOST`, `HOST:PORT`, `[IPV6]` or `[IPV6]:PORT`.
fn host_of(target: &str) -> &str {
    if let Some((host, _)) = target.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        return host;
    }
    match target.split_once(':') {
        Some((host, port)) if !port.contains(':') => host,
        _ => target,
    }
}

/// Returns what a reader of the file must know about the run.
fn note(run: &RunDocument) -> String {
    let mut note = format!("landspeed run {}", run.id);
    if run.status != Status::Complete {
        let code = run.errors.first().map(|error| format!(" ({})", error.code)).unwrap_or_default();
        let _ = write!(note, ", not complete{code}");
    }
    let by_acks = run.streams.iter().filter(|stream| stream.intervals_from == "sender").count();
    if by_acks > 0 {
        let _ = write!(note, ", rates of {by_acks} of {} streams from the sender's ACKs", run.streams.len());
    }
    note
}

/// Returns the mean rate of a stream, Mb/s; `None` without an interval.
fn mean_rate(stream: &Stream) -> Option<f64> {
    let sums = |(bytes, ns): (u64, u64), interval: &Interval| {
        (bytes + interval.bytes, ns + interval.end_ns - interval.start_ns)
    };
    let (bytes, ns) = traffic(stream).fold((0, 0), sums);
    (ns > 0).then(|| bytes as f64 * 8e3 / ns as f64)
}

/// The intervals of a stream. A receiver that waits for more after the last byte is no interval.
fn traffic(stream: &Stream) -> impl Iterator<Item = &Interval> {
    let over = |interval: &Interval| interval.phase == PhaseName::Drain && interval.bytes == 0;
    stream.intervals.iter().filter(move |interval| interval.end_ns > interval.start_ns && !over(interval))
}

fn raw_rates(stream: &Stream, started_s: f64) -> Vec<Value> {
    traffic(stream)
        .map(|interval| {
            let span_ns = (interval.end_ns - interval.start_ns) as f64;
            let mbps = interval.bytes as f64 * 8e3 / span_ns;
            json!({ "t": started_s + interval.end_ns as f64 / 1e9, "val": mbps, "dur": span_ns / 1e9 })
        })
        .collect()
}

/// Points in time, equally spaced: each is the end of a step.
struct Grid {
    /// Start of the first step, nanoseconds after the agreed start.
    origin_ns: i64,
    step_ns: u64,
    points: usize,
}

impl Grid {
    /// Seconds after the origin.
    fn x_values(&self) -> Vec<f64> {
        (1..=self.points).map(|n| n as f64 * self.step_ns as f64 / 1e9).collect()
    }

    /// Mean rate of each step, Mb/s; `None` where the stream has no interval.
    fn rates(&self, stream: &Stream) -> Vec<Option<f64>> {
        let (mut bytes, mut covered_ns) = (vec![0.0; self.points], vec![0; self.points]);
        for interval in traffic(stream) {
            let offset_ns = self.origin_ns.unsigned_abs();
            let (from_ns, to_ns) = (interval.start_ns + offset_ns, interval.end_ns + offset_ns);
            let whole_ns = (to_ns - from_ns) as f64;
            for at in from_ns / self.step_ns..=(to_ns - 1) / self.step_ns {
                let overlap_ns = to_ns.min((at + 1) * self.step_ns) - from_ns.max(at * self.step_ns);
                if let (Some(bytes), Some(covered_ns)) = (bytes.get_mut(at as usize), covered_ns.get_mut(at as usize))
                {
                    *bytes += interval.bytes as f64 * overlap_ns as f64 / whole_ns;
                    *covered_ns += overlap_ns;
                }
            }
        }
        let rate = |(bytes, covered_ns): (f64, u64)| (covered_ns > 0).then(|| bytes * 8e3 / covered_ns as f64);
        bytes.into_iter().zip(covered_ns).map(rate).collect()
    }

    /// Mean round-trip time of each step, ms; `None` without an answered probe.
    fn pings(&self, points: &[LatencyPoint]) -> Vec<Option<f64>> {
        let mut sums = vec![(0.0, 0); self.points];
        for point in points {
            let middle_ns = (point.start_ns / 2 + point.end_ns / 2) - self.origin_ns;
            if let Some((sum, count)) = sums.get_mut((middle_ns.unsigned_abs() / self.step_ns) as usize) {
                *sum += point.mean_ns / 1e6 * point.completed as f64;
                *count += point.completed;
            }
        }
        sums.into_iter().map(|(sum, count)| (count > 0).then(|| sum / count as f64)).collect()
    }
}

/// Combines the known values of several series at each point; `None` where there are none.
fn combine(series: &[Vec<Option<f64>>], of: impl Fn(&[f64]) -> f64) -> Vec<Option<f64>> {
    let points = series.iter().map(Vec::len).max().unwrap_or(0);
    (0..points)
        .map(|at| {
            let known: Vec<f64> = series.iter().filter_map(|values| *values.get(at)?).collect();
            (!known.is_empty()).then(|| of(&known))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use landspeed_model::Metric;

    use super::*;

    fn read(path: &str) -> RunDocument {
        let path = format!("{}/../../{path}", env!("CARGO_MANIFEST_DIR"));
        serde_json::from_slice(&std::fs::read(path).expect("a document")).expect("a run")
    }

    #[test]
    fn the_data_file_has_the_rates_of_the_run() {
        let mut run = read("crates/diagnose/fixtures/real/bidir-loopback-bbr.json");
        if let Some(load) = &mut run.latency_under_load {
            load.timeline.clear();
        }
        let file = data_file(&run).expect("a data file");
        let read = crate::foreign::read(file.to_string().as_bytes()).expect("flent's format");
        let figures = &read.records[0].figures;
        for (metric, expected) in
            [(Metric::Goodput, run.summary.goodput_bps), (Metric::ReverseGoodput, run.summary.reverse_goodput_bps)]
        {
            let (found, expected) = (figures.get(metric).expect("a rate"), expected.expect("a rate"));
            // Of all phases, not only of the steady one.
            assert!((found / expected - 1.0).abs() < 0.1, "{metric:?}: {found} {expected}");
        }
        let samples = file["raw_values"]["TCP upload BE::1"].as_array().expect("samples");
        let bytes =
            |sample: &Value| sample["val"].as_f64().expect("Mb/s") * 1e6 / 8.0 * sample["dur"].as_f64().expect("s");
        let sum: f64 = samples.iter().map(bytes).sum();
        let upload = run.streams.iter().find(|stream| stream.direction == Direction::Upload).expect("a stream");
        let received = upload.receiver.as_ref().expect("a receiver").bytes as f64;
        assert!((sum / received - 1.0).abs() < 1e-6, "{sum} {received}");
    }

    #[test]
    fn probes_before_the_load_begin_the_file() {
        let mut run = read("crates/diagnose/fixtures/real/bidir-loopback-bbr.json");
        let point = |start_ms: i64, ms: f64| LatencyPoint {
            start_ns: start_ms * 1_000_000,
            end_ns: (start_ms + 100) * 1_000_000,
            completed: 10,
            mean_ns: ms * 1e6,
            max_ns: (ms * 1e6) as u64,
        };
        let load = run.latency_under_load.take();
        let Some(mut load) = load.or_else(|| {
            let rr = read("fixtures/documents/rr.json").latency.remove(0);
            Some(landspeed_model::LatencyUnderLoad {
                idle: None,
                loaded: rr,
                responsiveness: None,
                timeline: Vec::new(),
            })
        }) else {
            return;
        };
        load.timeline = vec![point(-1000, 5.0), point(0, 50.0)];
        run.latency_under_load = Some(load);
        let file = data_file(&run).expect("a data file");
        let series = |name: &str| file["results"][name].as_array().expect(name).clone();
        let pings = series("Ping (ms) TCP BE");
        assert_eq!((pings[0].as_f64(), pings[1].as_f64(), pings[10].as_f64()), (Some(5.0), None, Some(50.0)));
        let upload = series("TCP upload BE::1");
        assert!(upload[9].is_null() && upload[10].as_f64().is_some(), "{upload:?}");
        assert_eq!(upload.len(), file["x_values"].as_array().expect("times").len());
    }

    #[test]
    fn a_run_of_so_many_bytes_has_a_length() {
        let mut run = read("crates/diagnose/fixtures/real/bidir-loopback-bbr.json");
        for parameters in [Some(&mut run.requested), run.effective.as_mut()].into_iter().flatten() {
            parameters.time_ns = None;
        }
        let file = data_file(&run).expect("a data file");
        let last_s = file["metadata"]["TOTAL_LENGTH"].as_f64().expect("seconds");
        assert_eq!(file["metadata"]["LENGTH"].as_u64(), Some(last_s.ceil() as u64));
    }

    #[test]
    fn the_mean_is_bytes_over_time() {
        let mut run = read("crates/diagnose/fixtures/real/bidir-loopback-bbr.json");
        let intervals =
            &mut run.streams.iter_mut().find(|s| s.direction == Direction::Upload).expect("one").intervals;
        let first = Interval { start_ns: 0, end_ns: 3_000_000_000, bytes: 3_000_000, ..intervals[0].clone() };
        // The second takes the last, short step of the series.
        let second = Interval { start_ns: 3_000_000_000, end_ns: 3_010_000_000, bytes: 1_000_000, ..first.clone() };
        *intervals = vec![first, second];
        let file = data_file(&run).expect("a data file");
        let mean = file["metadata"]["SERIES_META"]["TCP upload BE::1"]["MEAN_VALUE"].as_f64().expect("Mb/s");
        assert!((mean - 32.0 / 3.01).abs() < 1e-9, "{mean}");
    }

    #[test]
    fn a_stream_without_intervals_is_refused() {
        let mut run = read("crates/diagnose/fixtures/real/bidir-loopback-bbr.json");
        run.streams[0].intervals.clear();
        let why = data_file(&run).expect_err("its sum is unknown");
        assert!(why.contains("stream") && why.contains("unknown"), "{why}");
    }

    #[test]
    fn the_note_says_what_the_file_cannot() {
        let mut run = read("crates/diagnose/fixtures/real/bidir-loopback-bbr.json");
        let of = |run: &RunDocument| data_file(run).expect("a file")["metadata"]["NOTE"].as_str().map(str::to_owned);
        assert_eq!(of(&run), Some(format!("landspeed run {}", run.id)));
        run.status = Status::Partial;
        run.streams[0].intervals_from = "sender".to_owned();
        let note = of(&run).expect("a note");
        assert!(note.contains("not complete") && note.contains("rates of 1 of 4 streams"), "{note}");
    }

    #[test]
    fn the_host_has_neither_brackets_nor_port() {
        let cases = ["dtn", "dtn:5210", "::1", "[::1]", "[::1]:5210", "192.0.2.1:1"];
        assert_eq!(cases.map(host_of), ["dtn", "dtn", "::1", "::1", "::1", "192.0.2.1"]);
    }

    #[test]
    fn a_run_that_flent_has_no_test_for_is_refused() {
        for path in ["fixtures/documents/udp.json", "fixtures/documents/rr.json"] {
            assert!(data_file(&read(path)).is_err(), "{path}");
        }
    }
}
