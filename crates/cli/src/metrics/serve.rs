//! Metrics of `landspeed serve`.

use std::sync::atomic::Ordering;

use landspeed_flow::server::{ClientKind, Refusal, ServerCounts, TestKind};
use landspeed_metrics::{Family, Samples};
use landspeed_model::{Direction, Protocol};

const KIND: &[&str] = &["client", "protocol", "direction"];

static STARTED: Family = Family::counter("landspeed_serve_tests_started", "Tests accepted").labels(KIND);
static ENDED: Family =
    Family::counter("landspeed_serve_tests_ended", "Tests that ended, by outcome: completed, failed").labels(&[
        "client",
        "protocol",
        "direction",
        "outcome",
    ]);
static RUNNING: Family =
    Family::gauge("landspeed_serve_tests_running", "Tests running now").labels(&["client", "protocol"]);
static LIMIT: Family = Family::gauge("landspeed_serve_tests_limit", "Maximum number of tests at once (--max-tests)");
static RECEIVED: Family =
    Family::counter("landspeed_serve_received", "Payload received in TCP and UDP tests that ended")
        .unit("bytes")
        .labels(&["client", "protocol"]);
static SENT: Family = Family::counter(
    "landspeed_serve_sent",
    "Payload sent in TCP and UDP tests that ended: acknowledged (TCP), or given to the kernel (UDP)",
)
.unit("bytes")
.labels(&["client", "protocol"]);
static ANSWERED: Family =
    Family::counter("landspeed_serve_requests_answered", "Requests answered in request/response tests that ended")
        .labels(&["protocol"]);
static LAST_RECEIVED: Family =
    Family::gauge("landspeed_serve_last_test_received", "Goodput received in the latest completed test of this kind")
        .unit("bytes_per_second")
        .labels(KIND);
static LAST_SENT: Family =
    Family::gauge("landspeed_serve_last_test_sent", "Goodput sent in the latest completed test of this kind")
        .unit("bytes_per_second")
        .labels(KIND);
static LAST_COMPLETED: Family = Family::gauge(
    "landspeed_serve_last_test_completed_timestamp",
    "When the latest completed test ended, seconds since the Unix epoch",
)
.unit("seconds");
static REFUSED: Family = Family::counter(
    "landspeed_serve_refused",
    "Clients that got no test, by reason: address, key, version, busy, not-permitted, incomplete",
)
.labels(&["reason"]);
static DROPPED: Family =
    Family::counter("landspeed_serve_connections_dropped", "Connections closed for an invalid or late preface");

/// Metrics of a server, besides those of its process.
#[cfg(test)]
pub const FAMILIES: &[&Family] = &[
    &STARTED,
    &ENDED,
    &RUNNING,
    &LIMIT,
    &RECEIVED,
    &SENT,
    &ANSWERED,
    &LAST_RECEIVED,
    &LAST_SENT,
    &LAST_COMPLETED,
    &REFUSED,
    &DROPPED,
];

/// Adds the samples of a server that runs at most `max_tests` tests at once.
pub fn collect(counts: &ServerCounts, max_tests: usize, samples: &mut Samples) {
    for client in ClientKind::ALL {
        for protocol in [Protocol::Tcp, Protocol::Udp, Protocol::TcpRr, Protocol::UdpRr] {
            add_tests(counts, client, protocol, samples);
        }
    }
    for protocol in [Protocol::TcpRr, Protocol::UdpRr] {
        let kinds = TestKind::all().filter(|kind| kind.protocol == protocol);
        let answered: u64 = kinds.map(|kind| counts.of(kind).answered).sum();
        samples.add_labelled(&ANSWERED, &[name(protocol)], answered);
    }
    samples.add(&LIMIT, Some(max_tests as u64));
    samples.add(&LAST_COMPLETED, counts.completed_unix_ns().map(|ns| ns as f64 / 1e9));
    for reason in Refusal::ALL {
        samples.add_labelled(&REFUSED, &[reason.name()], counts.refused(reason));
    }
    samples.add(&DROPPED, Some(counts.dropped.load(Ordering::Relaxed)));
}

/// Adds the tests of one kind of client with one protocol, by direction.
fn add_tests(counts: &ServerCounts, client: ClientKind, protocol: Protocol, samples: &mut Samples) {
    let transactions = matches!(protocol, Protocol::TcpRr | Protocol::UdpRr);
    if transactions && client == ClientKind::Iperf3 {
        return;
    }
    let (mut running, mut received, mut sent) = (0, 0, 0);
    for direction in [Direction::Upload, Direction::Download, Direction::Both] {
        if transactions && direction != Direction::Both {
            continue;
        }
        let totals = counts.of(TestKind { client, protocol, direction });
        let direction = match direction {
            Direction::Upload => "upload",
            Direction::Download => "download",
            Direction::Both => "both",
        };
        let kind = [client.name(), name(protocol), direction];
        samples.add_labelled(&STARTED, &kind, totals.started);
        for (outcome, count) in [("completed", totals.completed), ("failed", totals.failed)] {
            samples.add_labelled(&ENDED, &[kind[0], kind[1], kind[2], outcome], count);
        }
        for (family, rate) in [(&LAST_RECEIVED, totals.received_rate), (&LAST_SENT, totals.sent_rate)] {
            if let Some(rate) = rate {
                samples.add_labelled(family, &kind, rate);
            }
        }
        running += totals.started.saturating_sub(totals.completed + totals.failed);
        received += totals.received_bytes;
        sent += totals.sent_bytes;
    }
    let labels = [client.name(), name(protocol)];
    samples.add_labelled(&RUNNING, &labels, running);
    if !transactions {
        samples.add_labelled(&RECEIVED, &labels, received);
        samples.add_labelled(&SENT, &labels, sent);
    }
}

fn name(protocol: Protocol) -> &'static str {
    match protocol {
        Protocol::Tcp => "tcp",
        Protocol::Udp => "udp",
        Protocol::TcpRr => "tcp-rr",
        Protocol::UdpRr => "udp-rr",
    }
}

#[cfg(test)]
mod tests {
    use landspeed_metrics::Value;

    use super::*;

    #[test]
    fn a_new_server_exports_zeros_and_no_goodput() {
        let mut samples = Samples::default();
        collect(&ServerCounts::default(), 7, &mut samples);
        assert_eq!(samples.of(&LIMIT), [(vec![], Value::Count(7))]);
        assert_eq!(samples.of(&STARTED).len(), 22);
        assert!(samples.of(&STARTED).iter().all(|(_, value)| *value == Value::Count(0)));
        for family in [&LAST_RECEIVED, &LAST_SENT, &LAST_COMPLETED] {
            assert_eq!(samples.of(family), [], "unknown before the first test");
        }
        assert!(samples.series() < 150, "{}", samples.series());
    }
}
