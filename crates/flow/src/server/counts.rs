//! Counters of a server, readable at any time without a lock.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use landspeed_model::{Direction, Parameters, Protocol};
use landspeed_sys::clock;

use crate::end::EndReport;
use crate::error::FlowError;

/// Kind of client that requested a test.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClientKind {
    /// `landspeed run` and the commands that run such tests.
    Landspeed,
    /// An iperf3 client.
    Iperf3,
    /// A landspeed client that has this server test against another one.
    ThirdParty,
}

impl ClientKind {
    /// All kinds, in the order of their discriminants.
    pub const ALL: [Self; 3] = [Self::Landspeed, Self::Iperf3, Self::ThirdParty];

    /// Returns the value of its label in metrics.
    pub fn name(self) -> &'static str {
        match self {
            Self::Landspeed => "landspeed",
            Self::Iperf3 => "iperf3",
            Self::ThirdParty => "third-party",
        }
    }
}

/// Client, protocol and direction, by which tests are counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TestKind {
    /// Kind of the client.
    pub client: ClientKind,
    /// Protocol of its data.
    pub protocol: Protocol,
    /// Direction of its data; `Both` for request/response.
    pub direction: Direction,
}

const PROTOCOLS: [Protocol; 4] = [Protocol::Tcp, Protocol::Udp, Protocol::TcpRr, Protocol::UdpRr];
const DIRECTIONS: [Direction; 3] = [Direction::Upload, Direction::Download, Direction::Both];
/// Number of kinds of tests.
const KINDS: usize = ClientKind::ALL.len() * PROTOCOLS.len() * DIRECTIONS.len();

impl TestKind {
    /// Returns the kind of a test with these parameters.
    pub fn of(client: ClientKind, p: &Parameters) -> Self {
        let direction =
            if matches!(p.protocol, Protocol::TcpRr | Protocol::UdpRr) { Direction::Both } else { p.direction };
        Self { client, protocol: p.protocol, direction }
    }

    /// Returns every kind, in the order of the counters.
    pub fn all() -> impl Iterator<Item = Self> {
        ClientKind::ALL.into_iter().flat_map(|client| {
            let of_protocol = move |protocol| DIRECTIONS.map(move |direction| Self { client, protocol, direction });
            PROTOCOLS.into_iter().flat_map(of_protocol)
        })
    }

    /// Position in [`Self::all`].
    fn index(self) -> usize {
        (self.client as usize * PROTOCOLS.len() + self.protocol as usize) * DIRECTIONS.len() + self.direction as usize
    }
}

/// Reason why a client got no test.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// Its address is not permitted, or its data came from another address.
    Address,
    /// It lacks the server's key or credentials.
    Key,
    /// It has another version of the protocol.
    Version,
    /// No slot, thread, descriptor or rate is free, or too many clients asked at once.
    Busy,
    /// It requested what the server does not permit.
    NotPermitted,
    /// It closed the connection, stopped responding or violated the protocol.
    Incomplete,
}

impl Refusal {
    /// All reasons, in the order of their discriminants.
    pub const ALL: [Self; 6] =
        [Self::Address, Self::Key, Self::Version, Self::Busy, Self::NotPermitted, Self::Incomplete];

    /// Returns the value of its label in metrics.
    pub fn name(self) -> &'static str {
        match self {
            Self::Address => "address",
            Self::Key => "key",
            Self::Version => "version",
            Self::Busy => "busy",
            Self::NotPermitted => "not-permitted",
            Self::Incomplete => "incomplete",
        }
    }

    /// Returns the reason for the error that ended a session before its test.
    pub fn of_error(error: &FlowError) -> Self {
        match error.code() {
            "server-busy" => Self::Busy,
            "wrong-key" | "key-required" | "key-unexpected" => Self::Key,
            "version-mismatch" => Self::Version,
            _ if matches!(error, FlowError::Refused { .. }) => Self::NotPermitted,
            _ => Self::Incomplete,
        }
    }
}

/// Latest rate, bytes/s; NaN if unknown.
#[derive(Debug)]
struct LatestRate(AtomicU64);

impl Default for LatestRate {
    fn default() -> Self {
        Self(AtomicU64::new(f64::NAN.to_bits()))
    }
}

impl LatestRate {
    fn set(&self, value: f64) {
        self.0.store(value.to_bits(), Ordering::Relaxed);
    }

    fn get(&self) -> Option<f64> {
        Some(f64::from_bits(self.0.load(Ordering::Relaxed))).filter(|value| value.is_finite())
    }
}

/// Counters of tests of one kind.
#[derive(Debug, Default)]
struct TestCounts {
    started: AtomicU64,
    completed: AtomicU64,
    failed: AtomicU64,
    received_bytes: AtomicU64,
    sent_bytes: AtomicU64,
    answered: AtomicU64,
    received: LatestRate,
    sent: LatestRate,
}

/// Values of the counters of one kind of test.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct TestTotals {
    /// Number of tests accepted.
    pub started: u64,
    /// Number of tests completed.
    pub completed: u64,
    /// Number of tests that ended without completing.
    pub failed: u64,
    /// Payload bytes received, in tests that ended.
    pub received_bytes: u64,
    /// Payload bytes sent, in tests that ended: acknowledged ones (TCP), or those given to the kernel (UDP).
    pub sent_bytes: u64,
    /// Requests answered, in tests that ended.
    pub answered: u64,
    /// Goodput received in the latest completed test, bytes/s; `None` if unknown.
    pub received_rate: Option<f64>,
    /// Goodput sent in the latest completed test, bytes/s; `None` if unknown.
    pub sent_rate: Option<f64>,
}

/// Counters of a server, for its log, for metrics and for tests.
#[derive(Debug)]
pub struct ServerCounts {
    /// Number of running tests, plus one while a client may change the host.
    pub running: AtomicUsize,
    /// Number of tests completed.
    pub completed: AtomicU64,
    /// Number of tests that ended after they were accepted.
    pub ended: AtomicU64,
    /// Number of connections dropped because of an invalid or late preface.
    pub dropped: AtomicU64,
    kinds: [TestCounts; KINDS],
    refused: [AtomicU64; Refusal::ALL.len()],
    /// Time of the latest completed test, nanoseconds since the Unix epoch; 0 before.
    completed_unix_ns: AtomicU64,
}

impl Default for ServerCounts {
    fn default() -> Self {
        Self {
            running: AtomicUsize::new(0),
            completed: AtomicU64::new(0),
            ended: AtomicU64::new(0),
            dropped: AtomicU64::new(0),
            kinds: std::array::from_fn(|_| TestCounts::default()),
            refused: Default::default(),
            completed_unix_ns: AtomicU64::new(0),
        }
    }
}

/// Payload bytes of a report, received and sent.
fn payload(report: &EndReport) -> (u64, u64) {
    report.streams.iter().fold((0, 0), |(received, sent), stream| {
        let end = &stream.end;
        if stream.sends {
            (received, sent + end.bytes_acked.unwrap_or(end.bytes))
        } else {
            (received + end.bytes, sent)
        }
    })
}

impl ServerCounts {
    /// Returns the totals of tests of one kind. Those that ended are never more than those that started.
    pub fn of(&self, kind: TestKind) -> TestTotals {
        let counts = &self.kinds[kind.index()];
        let load = |counter: &AtomicU64| counter.load(Ordering::Acquire);
        let (completed, failed) = (load(&counts.completed), load(&counts.failed));
        TestTotals {
            started: load(&counts.started),
            completed,
            failed,
            received_bytes: load(&counts.received_bytes),
            sent_bytes: load(&counts.sent_bytes),
            answered: load(&counts.answered),
            received_rate: counts.received.get(),
            sent_rate: counts.sent.get(),
        }
    }

    /// Number of clients refused for a reason.
    pub fn refused(&self, why: Refusal) -> u64 {
        self.refused[why as usize].load(Ordering::Relaxed)
    }

    /// Time of the latest completed test, nanoseconds since the Unix epoch.
    pub fn completed_unix_ns(&self) -> Option<u64> {
        Some(self.completed_unix_ns.load(Ordering::Relaxed)).filter(|&ns| ns > 0)
    }

    pub(super) fn count_refusal(&self, why: Refusal) {
        self.refused[why as usize].fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn count_start(&self, kind: TestKind) {
        self.kinds[kind.index()].started.fetch_add(1, Ordering::Release);
    }

    pub(super) fn count_end(&self, kind: TestKind, completed: bool) {
        let counts = &self.kinds[kind.index()];
        if completed {
            self.completed.fetch_add(1, Ordering::Relaxed);
            self.completed_unix_ns.store(clock::realtime_ns(), Ordering::Relaxed);
            counts.completed.fetch_add(1, Ordering::Release);
        } else {
            counts.failed.fetch_add(1, Ordering::Release);
        }
    }

    /// Adds the payload and requests of a test whose traffic has ended, whether or not the test completes.
    pub fn count_traffic(&self, kind: TestKind, report: &EndReport, answered: u64) {
        let counts = &self.kinds[kind.index()];
        let (received, sent) = payload(report);
        counts.received_bytes.fetch_add(received, Ordering::Relaxed);
        counts.sent_bytes.fetch_add(sent, Ordering::Relaxed);
        counts.answered.fetch_add(answered, Ordering::Relaxed);
    }

    /// Stores the goodput of a test that both ends completed: 0 if nothing arrived, unknown without the senders' end.
    pub fn record_goodput(&self, kind: TestKind, report: &EndReport) {
        let counts = &self.kinds[kind.index()];
        let time_ns = report.cuts.steady_end_ns.filter(|&ns| ns > 0);
        let (received, sent) = payload(report);
        for (sends, bytes, rate) in [(false, received, &counts.received), (true, sent, &counts.sent)] {
            if report.streams.iter().any(|stream| stream.sends == sends) {
                rate.set(time_ns.map_or(f64::NAN, |ns| bytes as f64 * 1e9 / ns as f64));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::end::StreamReport;

    #[test]
    fn every_kind_has_separate_counters() {
        let indices: Vec<usize> = TestKind::all().map(TestKind::index).collect();
        assert_eq!(indices, (0..KINDS).collect::<Vec<_>>());
        for (at, why) in Refusal::ALL.into_iter().enumerate() {
            assert_eq!(why as usize, at);
        }
    }

    #[test]
    fn sent_bytes_are_acknowledged_ones() {
        let stream = |sends, bytes, bytes_acked| StreamReport {
            id: 0,
            direction: Direction::Both,
            sends,
            local_addr: String::new(),
            peer_addr: String::new(),
            end: landspeed_model::StreamEnd { bytes, bytes_acked, ..Default::default() },
        };
        let mut report = EndReport {
            streams: vec![stream(true, 1000, Some(900)), stream(true, 50, None), stream(false, 7, None)],
            ..EndReport::default()
        };
        report.cuts.steady_end_ns = Some(2_000_000_000);
        let counts = ServerCounts::default();
        let kind = TestKind { client: ClientKind::Landspeed, protocol: Protocol::Tcp, direction: Direction::Both };
        assert_eq!(counts.of(kind).sent_rate, None, "unknown before the first test");
        counts.count_start(kind);
        counts.count_traffic(kind, &report, 3);
        counts.count_end(kind, true);
        counts.record_goodput(kind, &report);
        let expected = TestTotals {
            started: 1,
            completed: 1,
            failed: 0,
            received_bytes: 7,
            sent_bytes: 950,
            answered: 3,
            received_rate: Some(3.5),
            sent_rate: Some(475.0),
        };
        assert_eq!(counts.of(kind), expected);
        report.streams = vec![stream(false, 0, None)];
        counts.record_goodput(kind, &report);
        assert_eq!(counts.of(kind).received_rate, Some(0.0), "nothing arrived in the latest test");
        report.cuts.steady_end_ns = None;
        counts.record_goodput(kind, &report);
        assert_eq!(counts.of(kind).received_rate, None, "unknown in the latest test");
        assert_eq!(counts.of(kind).sent_rate, Some(475.0), "of the latest test with a sender here");
    }
}
