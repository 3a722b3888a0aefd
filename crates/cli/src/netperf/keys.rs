//! netperf's output keys (`-k`), and their values from a run document.

use landspeed_model::{LatencyResult, Parameters, RunDocument, Stream, StreamEnd};

use super::kind::Test;
use super::units::Unit;

/// An output key: its name, and its value, `None` if it is unknown or the test does not have it.
pub struct Key {
    /// Name in netperf's output.
    pub name: &'static str,
    value: fn(&Report<'_>) -> Option<String>,
}

impl std::fmt::Debug for Key {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}

const fn key(name: &'static str, value: fn(&Report<'_>) -> Option<String>) -> Key {
    Key { name, value }
}

/// The keys, in the order of netperf's list.
pub const KEYS: &[Key] = &[
    key("COMMAND_LINE", |r| Some(format!("\"{}\"", r.run.command.join(" ")))),
    key("UUID", |r| Some(r.run.id.clone())),
    key("SOCKET_TYPE", |r| Some(if r.test.is_udp() { "Datagram" } else { "Stream" }.to_owned())),
    key("DIRECTION", |r| Some(r.direction().to_owned())),
    key("PROTOCOL", |r| Some(if r.test.is_udp() { "UDP" } else { "TCP" }.to_owned())),
    key("ELAPSED_TIME", |r| Some(format!("{:.2}", r.elapsed_ns()? as f64 / 1e9))),
    key("THROUGHPUT", |r| Some(format!("{:.2}", r.throughput()?))),
    key("LOCAL_SEND_THROUGHPUT", |r| r.rate_of(Side::Local, Way::Sent)),
    key("LOCAL_RECV_THROUGHPUT", |r| r.rate_of(Side::Local, Way::Received)),
    key("REMOTE_SEND_THROUGHPUT", |r| r.rate_of(Side::Remote, Way::Sent)),
    key("REMOTE_RECV_THROUGHPUT", |r| r.rate_of(Side::Remote, Way::Received)),
    key("THROUGHPUT_UNITS", |r| Some(format!("{}/s", r.unit.name()))),
    key("RT_LATENCY", |r| micros(r.latency()?.mean_ns)),
    key("TRANSACTION_RATE", |r| Some(format!("{:.3}", r.latency()?.achieved_per_s))),
    key("TRANSPORT_MSS", |r| text(r.sender().or(r.local())?.mss_bytes)),
    key("LOCAL_TRANSPORT_RETRANS", |r| text(r.local()?.retransmits)),
    key("REMOTE_TRANSPORT_RETRANS", |r| text(r.remote()?.retransmits)),
    key("REQUEST_SIZE", |r| text(r.latency().map(|rr| rr.request_bytes))),
    key("RESPONSE_SIZE", |r| text(r.latency().map(|rr| rr.response_bytes))),
    key("LSS_SIZE_END", |r| text(r.local()?.sndbuf_bytes)),
    key("LSR_SIZE_END", |r| text(r.local()?.rcvbuf_bytes)),
    key("RSS_SIZE_END", |r| text(r.remote()?.sndbuf_bytes)),
    key("RSR_SIZE_END", |r| text(r.remote()?.rcvbuf_bytes)),
    key("LOCAL_SEND_SIZE", |r| r.size(Side::Local, Way::Sent)),
    key("LOCAL_RECV_SIZE", |r| r.size(Side::Local, Way::Received)),
    key("REMOTE_SEND_SIZE", |r| r.size(Side::Remote, Way::Sent)),
    key("REMOTE_RECV_SIZE", |r| r.size(Side::Remote, Way::Received)),
    key("LOCAL_BYTES_SENT", |r| text(r.bytes(Side::Local, Way::Sent))),
    key("LOCAL_BYTES_RECVD", |r| text(r.bytes(Side::Local, Way::Received))),
    key("REMOTE_BYTES_SENT", |r| text(r.bytes(Side::Remote, Way::Sent))),
    key("REMOTE_BYTES_RECVD", |r| text(r.bytes(Side::Remote, Way::Received))),
    key("LOCAL_NODELAY", |r| Some(r.nodelay())),
    key("REMOTE_NODELAY", |r| Some(r.nodelay())),
    key("MIN_LATENCY", |r| micros(r.latency()?.min_ns.map(|ns| ns as f64))),
    key("MAX_LATENCY", |r| micros(r.latency()?.max_ns.map(|ns| ns as f64))),
    key("P50_LATENCY", |r| micros(r.latency()?.p50_ns.map(|ns| ns as f64))),
    key("P90_LATENCY", |r| micros(r.latency()?.p90_ns.map(|ns| ns as f64))),
    key("P99_LATENCY", |r| micros(r.latency()?.p99_ns.map(|ns| ns as f64))),
    key("MEAN_LATENCY", |r| micros(r.latency()?.mean_ns)),
    key("LOCAL_SOCKET_TOS", |r| Some(r.tos())),
    key("REMOTE_SOCKET_TOS", |r| Some(r.tos())),
    key("LOCAL_CONG_CONTROL", |r| r.local()?.congestion.clone()),
    key("REMOTE_CONG_CONTROL", |r| r.remote()?.congestion.clone()),
];

/// Returns the keys of a list `A,B,C`; all for an empty list and for `?`.
///
/// # Errors
/// The first name that is not a key.
pub fn select(list: &str) -> Result<Vec<&'static Key>, String> {
    if list.is_empty() || list == "?" {
        return Ok(KEYS.iter().collect());
    }
    let find =
        |name: &str| KEYS.iter().find(|key| key.name.eq_ignore_ascii_case(name)).ok_or_else(|| name.to_owned());
    list.split(',').map(str::trim).filter(|name| !name.is_empty()).map(find).collect()
}

/// Host of a figure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Side {
    Local,
    Remote,
}

/// Direction of bytes at a host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    Sent,
    Received,
}

/// A finished run, as netperf reports it.
#[derive(Debug, Clone, Copy)]
pub struct Report<'a> {
    /// Document of the finished run.
    pub run: &'a RunDocument,
    /// Test of netperf that it was.
    pub test: Test,
    /// Unit in which rates are printed (`-f`).
    pub unit: Unit,
}

impl<'a> Report<'a> {
    /// Returns the lines `KEY=VALUE` of the keys whose value is known.
    pub fn lines(&self, keys: &[&'static Key]) -> String {
        let line = |key: &&Key| Some(format!("{}={}\n", key.name, (key.value)(self)?));
        keys.iter().filter_map(line).collect()
    }

    /// Returns the effective parameters; without a server's acceptance, the requested ones.
    pub fn parameters(&self) -> &'a Parameters {
        self.run.effective.as_ref().unwrap_or(&self.run.requested)
    }

    fn stream(&self) -> Option<&'a Stream> {
        self.run.streams.first()
    }

    /// Returns the sender of a bulk test, or the client of request/response.
    pub fn sender(&self) -> Option<&'a StreamEnd> {
        self.stream()?.sender.as_ref()
    }

    /// Returns the receiver of a bulk test.
    pub fn receiver(&self) -> Option<&'a StreamEnd> {
        self.stream()?.receiver.as_ref()
    }

    fn receives_here(&self) -> bool {
        self.test == Test::TcpMaerts
    }

    /// Returns the stream's end at this host.
    pub fn local(&self) -> Option<&'a StreamEnd> {
        if self.receives_here() { self.receiver() } else { self.sender() }
    }

    /// Returns the stream's end at the server.
    pub fn remote(&self) -> Option<&'a StreamEnd> {
        if self.receives_here() { self.sender() } else { self.receiver() }
    }

    /// Returns the latencies of a request/response test.
    pub fn latency(&self) -> Option<&'a LatencyResult> {
        self.run.latency.first()
    }

    /// Returns the time from the start to the arrival of the last byte, or of the transactions, nanoseconds.
    pub fn elapsed_ns(&self) -> Option<u64> {
        if self.test.is_rr() { Some(self.latency()?.duration_ns) } else { self.receiver()?.last_byte_ns }
    }

    /// Returns bytes received, or transactions completed.
    pub fn amount(&self) -> Option<u64> {
        if self.test.is_rr() { Some(self.latency()?.completed) } else { Some(self.receiver()?.bytes) }
    }

    /// Returns the mean rate of the receiver or of transactions.
    pub fn throughput(&self) -> Option<f64> {
        self.unit.rate(self.amount()?, self.elapsed_ns()?)
    }

    fn direction(&self) -> &'static str {
        match self.test {
            Test::TcpStream | Test::UdpStream => "Send",
            Test::TcpMaerts => "Receive",
            Test::TcpRr | Test::UdpRr | Test::TcpCrr => "Send|Receive",
        }
    }

    /// Whether bytes of the test move this way at this host.
    fn moves(&self, side: Side, way: Way) -> bool {
        self.test.is_rr() || (way == Way::Received) == ((side == Side::Local) == self.receives_here())
    }

    fn bytes(&self, side: Side, way: Way) -> Option<u64> {
        if !self.moves(side, way) {
            return Some(0);
        }
        if let Some(rr) = self.latency() {
            let (count, size) = match (side, way) {
                (Side::Local, Way::Sent) => (rr.sent, rr.request_bytes),
                // A response that was lost left the server, too: its count is not reported.
                (Side::Remote, _) if rr.sent != rr.completed => return None,
                (Side::Remote, Way::Received) => (rr.completed, rr.request_bytes),
                (Side::Local, Way::Received) | (Side::Remote, Way::Sent) => (rr.completed, rr.response_bytes),
            };
            return Some(count * u64::from(size));
        }
        Some(if side == Side::Local { self.local()? } else { self.remote()? }.bytes)
    }

    fn rate_of(&self, side: Side, way: Way) -> Option<String> {
        if self.test.is_rr() {
            return None;
        }
        Some(format!("{:.2}", self.unit.rate(self.bytes(side, way)?, self.elapsed_ns()?)?))
    }

    fn size(&self, side: Side, way: Way) -> Option<String> {
        (!self.test.is_rr() && self.moves(side, way)).then(|| self.parameters().write_bytes.to_string())
    }

    fn nodelay(&self) -> String {
        // Request/response always sets it.
        u8::from(self.parameters().nodelay || (self.test.is_rr() && !self.test.is_udp())).to_string()
    }

    fn tos(&self) -> String {
        format!("0x{:02x}", self.parameters().dscp.unwrap_or(0) << 2)
    }
}

fn text<T: ToString>(value: Option<T>) -> Option<String> {
    value.map(|value| value.to_string())
}

/// Formats nanoseconds as microseconds.
fn micros(ns: Option<f64>) -> Option<String> {
    ns.map(|ns| format!("{:.3}", ns / 1e3))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn read(path: &str) -> RunDocument {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path);
        serde_json::from_slice(&std::fs::read(path).expect("a document")).expect("a run")
    }

    fn value(report: &Report<'_>, name: &str) -> Option<String> {
        let lines = report.lines(&select(name).expect("a key"));
        lines.trim_end().split_once('=').map(|(_, value)| value.to_owned())
    }

    #[test]
    fn the_throughput_is_that_of_the_receiver() {
        let run = read("crates/diagnose/fixtures/real/bulk-loopback-bbr.json");
        let report = Report { run: &run, test: Test::TcpStream, unit: Unit::Bits(2) };
        let receiver = run.streams[0].receiver.as_ref().expect("a receiver");
        assert_eq!(value(&report, "REMOTE_BYTES_RECVD"), Some(receiver.bytes.to_string()));
        assert_eq!(value(&report, "LOCAL_BYTES_RECVD").as_deref(), Some("0"));
        let mbps: f64 = value(&report, "THROUGHPUT").expect("a rate").parse().expect("a number");
        let expected = receiver.bytes as f64 * 8e3 / receiver.last_byte_ns.expect("bytes") as f64;
        assert!((mbps - expected).abs() < 0.01, "{mbps} {expected}");
        assert_eq!(value(&report, "DIRECTION").as_deref(), Some("Send"));
    }

    #[test]
    fn an_unknown_figure_has_no_line() {
        let mut run = read("crates/diagnose/fixtures/real/bulk-loopback-bbr.json");
        run.streams[0].receiver = None;
        let report = Report { run: &run, test: Test::TcpStream, unit: Unit::Bits(2) };
        let lines = report.lines(&KEYS.iter().collect::<Vec<_>>());
        for key in ["\nTHROUGHPUT=", "REMOTE_BYTES_RECVD", "ELAPSED_TIME", "RT_LATENCY"] {
            assert!(!lines.contains(key), "{key}: {lines}");
        }
        assert!(lines.contains("LOCAL_BYTES_SENT=") && lines.contains("PROTOCOL=TCP"), "{lines}");
    }

    #[test]
    fn round_trips_are_transactions_per_second() {
        let run = read("fixtures/documents/rr.json");
        let report = Report { run: &run, test: Test::TcpRr, unit: Unit::Transactions };
        let rate: f64 = value(&report, "THROUGHPUT").expect("a rate").parse().expect("a number");
        assert!((rate - run.latency[0].achieved_per_s).abs() < 1.0 + rate / 100.0, "{rate}");
        assert_eq!(value(&report, "DIRECTION").as_deref(), Some("Send|Receive"));
        assert_eq!(value(&report, "THROUGHPUT_UNITS").as_deref(), Some("Trans/s"));
    }
}
