//! JSON output of iperf3 3.1 to 3.22, and the lines of `--json-stream`.
//!
//! A document is written by one end. What that end cannot know is null: a server never learns the client's
//! results, and a client does not learn the server's if the test is interrupted. iperf3 writes 0 in both cases.

use landspeed_model::Metric;
use landspeed_stats::{median, quantile};
use serde_json::{Map, Value};

use super::{ForeignDocument, record, rfc3339, set_loss, variation};
use crate::figures::balance;
use crate::record::{Record, RecordStatus};
use crate::{json, parts};

/// Intervals shorter than this share of the median are the rest of a test with `--bytes`, `--time` or `--omit`.
const MIN_INTERVAL_SHARE: f64 = 0.9;

/// Whether this is iperf3 output, which has its version in `start`.
pub fn is(value: &Value) -> bool {
    let version = value.pointer("/start/version").and_then(Value::as_str);
    version.is_some_and(|version| version.starts_with("iperf "))
}

/// Assembles a document from the events of `--json-stream`. `None` for other text.
pub fn from_events(text: &str) -> Option<Value> {
    let mut document = Map::new();
    let mut intervals = Vec::new();
    for range in parts::values(text) {
        let (start, end) = range.ok()?;
        let Value::Object(mut event) = json::parse(&text[start..end]).ok()? else { return None };
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
    let count = |path: &str| document.pointer(path).and_then(Value::as_u64);
    // The version string has the form `iperf 3.12`.
    let version = text("/start/version").unwrap_or_default();
    let run = Run::of(document);
    let mut record = record(version.replacen("iperf ", "iperf3 ", 1));
    record.started = count("/start/timestamp/timesecs").and_then(rfc3339).unwrap_or_default();
    record.title = text("/title").or_else(|| text("/start/title"));
    record.target = text("/start/connecting_to/host");
    if let Some(system) = text("/start/system_info") {
        // Fields of `uname`: system, host, release and others.
        let mut words = system.split_whitespace().skip(1);
        if let (Some(host), Some(release)) = (words.next(), words.next()) {
            let end = if run.server { "server" } else { "client" };
            record.hosts.insert(format!("{end}.hostname"), host.to_owned());
            record.hosts.insert(format!("{end}.kernel_release"), release.to_owned());
            record.kernel = Some(release.to_owned()).filter(|_| run.sends(Way::Forward));
        }
    }
    settings(&run, &mut record);
    let received = run.received(Way::Forward);
    record.status = match &received {
        _ if !run.ended => RecordStatus::Failed,
        Ok(_) if !run.interrupted => RecordStatus::Complete,
        _ => RecordStatus::Partial,
    };
    if let Err(why) = &received {
        record.notes.push(format!("goodput unknown: {why}"));
    }
    let received = received.unwrap_or_default();
    let figures = &mut record.figures;
    figures.set(Metric::Goodput, received.bps);
    figures.set(Metric::Jitter, received.jitter_ms.map(|ms| ms * 1e6));
    set_loss(&mut record, received.loss);
    let figures = &mut record.figures;
    if run.bidir {
        match run.received(Way::Reverse) {
            Ok(reverse) => figures.set(Metric::ReverseGoodput, reverse.bps),
            Err(why) => record.notes.push(format!("reverse goodput unknown: {why}")),
        }
    }
    let bytes = received.bytes.filter(|bytes| *bytes > 0.0);
    let retransmits = run.retransmits();
    figures.set(Metric::Retransmits, retransmits.zip(bytes).map(|(count, bytes)| count * 1e9 / bytes));
    // A UDP sender's intervals have its pace, not what arrived.
    if !run.udp || run.receives(Way::Forward) {
        figures.set(Metric::GoodputCv, variation(&run.full_intervals_bps()));
    }
    let rtts_us = run.rtts_us();
    figures.set(Metric::RttP50, quantile(&rtts_us, 0.5).map(|us| us * 1e3));
    figures.set(Metric::RttP99, quantile(&rtts_us, 0.99).map(|us| us * 1e3));
    if received.bps.is_some() {
        record.streams_bps = run.streams_bps();
    }
    record.figures.set(Metric::StreamBalance, balance(&record.streams_bps));
    ForeignDocument { kind: "iperf3", records: vec![record] }
}

/// Direction of a sum: the test's own, or the second of `--bidir`.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    Forward,
    Reverse,
}

/// What a receiver counted.
#[derive(Default)]
struct Received {
    bps: Option<f64>,
    bytes: Option<f64>,
    /// Lost datagrams as a share of those sent, as the document has it.
    loss: Option<f64>,
    jitter_ms: Option<f64>,
}

/// A document, and which end wrote it.
struct Run<'a> {
    document: &'a Value,
    /// Whether the server wrote it.
    server: bool,
    bidir: bool,
    /// Whether the server sends.
    reverse: bool,
    udp: bool,
    ended: bool,
    interrupted: bool,
}

impl<'a> Run<'a> {
    fn of(document: &'a Value) -> Self {
        let has = |path: &str| document.pointer(path).is_some();
        let start = |key: &str| document.pointer(&format!("/start/test_start/{key}"));
        let is_set = |key: &str| start(key).and_then(Value::as_u64).is_some_and(|flag| flag != 0);
        let second = ["sum", "sum_sent", "sum_received"];
        Self {
            document,
            server: has("/start/accepted_connection") && !has("/start/connecting_to"),
            // Releases before 3.13 do not write `bidir`.
            bidir: is_set("bidir") || second.iter().any(|sum| has(&format!("/end/{sum}_bidir_reverse"))),
            reverse: is_set("reverse"),
            udp: start("protocol").and_then(Value::as_str).is_some_and(|name| name.eq_ignore_ascii_case("udp")),
            ended: document.get("end").and_then(Value::as_object).is_some_and(|end| !end.is_empty()),
            interrupted: has("/error"),
        }
    }

    /// Whether the end that wrote the document sends in this direction.
    fn sends(&self, way: Way) -> bool {
        let client_sends = if self.bidir { way == Way::Forward } else { !self.reverse };
        client_sends != self.server
    }

    fn receives(&self, way: Way) -> bool {
        !self.sends(way)
    }

    /// A sum of `end`: `sum`, `sum_sent` or `sum_received`.
    fn sum(&self, name: &str, way: Way) -> Option<&'a Value> {
        let suffix = if way == Way::Reverse { "_bidir_reverse" } else { "" };
        self.document.pointer(&format!("/end/{name}{suffix}"))
    }

    /// What the receiver counted.
    ///
    /// # Errors
    /// The reason why the document does not have it.
    fn received(&self, way: Way) -> Result<Received, &'static str> {
        if !self.ended {
            return Err("the test did not run");
        }
        if self.sends(way) && self.server {
            return Err("this is the document of the server, which sent: it does not have the client's count");
        }
        let sum = self.sum("sum", way);
        let own = self.sum("sum_received", way);
        let mut received = match (own, sum) {
            (Some(own), _) => Received { bps: rate(own), bytes: number(own, "bytes"), ..Received::default() },
            (None, Some(sum)) if self.udp => self.received_before_3_11(sum, way),
            _ => return Err("the document has no sum of the receiver"),
        };
        let arrived = own.is_some() && received.bytes.is_some_and(|bytes| bytes > 0.0);
        if self.interrupted && self.sends(way) && !arrived {
            return Err("the test was interrupted before the receiver's results arrived");
        }
        if received.bps.is_none() {
            return Err("the receiver's rate is not a number, or the receiver's packets are not known");
        }
        if self.udp {
            let lost = [own, sum].into_iter().flatten().find_map(|sum| number(sum, "lost_percent"));
            received.loss = lost.map(|percent| percent / 100.0);
            received.jitter_ms = [own, sum].into_iter().flatten().find_map(|sum| number(sum, "jitter_ms"));
        }
        Ok(received)
    }

    /// What a UDP receiver counted, by releases that have only `sum`: its bytes are the sender's.
    fn received_before_3_11(&self, sum: &Value, way: Way) -> Received {
        if self.receives(way) {
            let (bytes, seconds) = self.intervals(way).fold((0.0, 0.0), |(bytes, seconds), interval| {
                let of = |key| number(interval, key).unwrap_or(0.0);
                (bytes + of("bytes"), seconds + of("seconds"))
            });
            let bps = (seconds > 0.0).then(|| bytes * 8.0 / seconds);
            return Received { bps, bytes: bps.map(|_| bytes), ..Received::default() };
        }
        let bytes = delivered(sum);
        let seconds = number(sum, "seconds").filter(|seconds| *seconds > 0.0);
        Received {
            bps: bytes.zip(seconds).map(|(bytes, seconds)| bytes * 8.0 / seconds),
            bytes,
            ..Received::default()
        }
    }

    /// Retransmits of the forward direction; a receiving server does not learn them.
    fn retransmits(&self) -> Option<f64> {
        let sent = self.sum("sum_sent", Way::Forward)?;
        let known = self.sends(Way::Forward) || (!self.server && number(sent, "bytes")? > 0.0);
        number(sent, "retransmits").filter(|count| known && *count >= 0.0)
    }

    /// The sums of the intervals after `--omit`.
    fn intervals(&self, way: Way) -> impl Iterator<Item = &'a Value> + use<'a> {
        let key = if way == Way::Reverse { "sum_bidir_reverse" } else { "sum" };
        let all = self.document.get("intervals").and_then(Value::as_array).into_iter().flatten();
        all.filter_map(move |interval| interval.get(key)).filter(|sum| !omitted(sum))
    }

    /// Rates of the intervals of full length.
    fn full_intervals_bps(&self) -> Vec<f64> {
        let seconds = |sum: &Value| number(sum, "seconds");
        let lengths: Vec<f64> = self.intervals(Way::Forward).filter_map(seconds).collect();
        let least = median(&lengths).unwrap_or(0.0) * MIN_INTERVAL_SHARE;
        let full = self.intervals(Way::Forward).filter(|sum| seconds(sum).is_none_or(|length| length >= least));
        full.filter_map(|sum| number(sum, "bits_per_second")).collect()
    }

    /// Smoothed RTTs of the senders, microseconds.
    fn rtts_us(&self) -> Vec<f64> {
        let all = self.document.get("intervals").and_then(Value::as_array).into_iter().flatten();
        let streams =
            all.flat_map(|interval| interval.get("streams").and_then(Value::as_array).into_iter().flatten());
        let sent = streams.filter(|stream| !omitted(stream) && flag(stream, "sender") != Some(false));
        sent.filter_map(|stream| number(stream, "rtt")).filter(|us| *us > 0.0).collect()
    }

    /// Goodput of each stream of the forward direction, at the receiver; none if that of a stream is unknown.
    fn streams_bps(&self) -> Vec<f64> {
        let streams = self.document.pointer("/end/streams").and_then(Value::as_array).into_iter().flatten();
        let ends = streams.map(|stream| stream.get(if self.udp { "udp" } else { "receiver" }));
        let forward = ends.filter(|end| {
            let reverse = end.is_some_and(|end| flag(end, "sender") == Some(self.server));
            !(self.bidir && reverse)
        });
        let rate = |end: Option<&Value>| {
            let end = end?;
            if !self.udp {
                return rate(end);
            }
            // The bytes of `udp` are the sender's; a server that receives has 0.
            let (sent, arrived, seconds) = (number(end, "bytes")?, delivered(end)?, number(end, "seconds")?);
            (sent > 0.0 && seconds > 0.0).then(|| arrived * 8.0 / seconds)
        };
        forward.map(rate).collect::<Option<Vec<f64>>>().unwrap_or_default()
    }
}

fn number(value: &Value, key: &str) -> Option<f64> {
    value.get(key).and_then(Value::as_f64)
}

fn flag(value: &Value, key: &str) -> Option<bool> {
    value.get(key).and_then(Value::as_bool)
}

fn omitted(sum: &Value) -> bool {
    flag(sum, "omitted") == Some(true)
}

/// Rate of a sum, bits/s; from bytes and time if iperf3 divided by zero.
fn rate(sum: &Value) -> Option<f64> {
    let divided = || {
        let seconds = number(sum, "seconds").filter(|seconds| *seconds > 0.0)?;
        Some(number(sum, "bytes")? * 8.0 / seconds)
    };
    number(sum, "bits_per_second").or_else(divided)
}

/// Bytes that arrived of the bytes sent, by lost datagrams. `None` if nothing was sent or the counts contradict
/// each other.
fn delivered(sum: &Value) -> Option<f64> {
    let (packets, lost) = (number(sum, "packets")?, number(sum, "lost_packets")?);
    let share = (packets > 0.0 && (0.0..=packets).contains(&lost)).then(|| (packets - lost) / packets)?;
    Some(number(sum, "bytes")? * share)
}

/// Settings, with the names of landspeed's parameters.
fn settings(run: &Run<'_>, record: &mut Record) {
    let start = |key: &str| run.document.pointer(&format!("/start/test_start/{key}"));
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
    // With `--bytes` and `--blockcount`, the duration is 0: the time is not a setting.
    put(
        "time_ns",
        start("duration")
            .and_then(Value::as_u64)
            .filter(|s| *s > 0)
            .map(|s| s.saturating_mul(1_000_000_000).to_string()),
    );
    let direction = match (run.bidir, run.reverse) {
        (true, _) => "both",
        (_, true) => "download",
        _ => "upload",
    };
    put("direction", start("protocol").map(|_| direction.to_owned()));
    put("congestion", run.document.pointer("/end/sender_tcp_congestion").and_then(Value::as_str).map(str::to_owned));
}

#[cfg(test)]
mod tests;
