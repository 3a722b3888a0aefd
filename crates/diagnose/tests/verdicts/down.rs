//! Paths that go down during the test.

use landspeed_diagnose::diagnose;
use landspeed_model::{Cause, Confidence, Direction, Protocol, RrMode, RunDocument, StreamEnd, Verdict};

use crate::beside::each_reading;
use crate::common::Scenario;
use crate::doubt::{probe_of_1300_bytes, rr};
use crate::starved::full_path;

fn judge(document: &RunDocument) -> Verdict {
    diagnose(document, Direction::Upload)
}

/// Time after which the path of the tests below is down, nanoseconds.
const DOWN_FROM_NS: u64 = 2_600_000_000;

/// Stops what the server received, or the client got answered, at that time.
fn stop_at(end: Option<&mut StreamEnd>, at_ns: u64) {
    let samples = &mut end.expect("a report").samples;
    let bytes = samples.iter().find(|sample| sample.t_ns >= at_ns).expect("a sample").bytes;
    samples.iter_mut().for_each(|sample| sample.bytes = sample.bytes.min(bytes));
}

#[test]
fn datagrams_that_stop_arriving_are_named_with_the_time() {
    let judged = |stops_ns: u64, change: &dyn Fn(&mut RunDocument)| {
        let mut document = Scenario::default().udp(Some(1_000_000_000), 100_000, 26_000, 0);
        stop_at(document.streams[0].receiver.as_mut(), stops_ns);
        for interval in document.streams[0].intervals.iter_mut().filter(|interval| interval.end_ns > stops_ns) {
            interval.bytes = 0;
        }
        change(&mut document);
        judge(&document)
    };
    let verdict = judged(DOWN_FROM_NS, &|_| {});
    assert_eq!((verdict.cause, verdict.confidence), (Cause::PathDown, Confidence::High), "{}", verdict.summary);
    assert!(verdict.summary.contains("after 2.60 s (from client to server)"), "{}", verdict.summary);
    // Before the steady phase.
    let omitted = judged(DOWN_FROM_NS, &|document| {
        document.phases[0].start_ns = 4_000_000_000;
        document.phases[0].bytes = Some(0);
        document.streams[0].intervals.retain(|interval| interval.start_ns >= 4_000_000_000);
    });
    assert_eq!((omitted.cause, omitted.confidence), (Cause::PathDown, Confidence::High), "{}", omitted.summary);
    assert!(omitted.summary.contains("after 2.60 s"), "{}", omitted.summary);
    for (what, other) in [
        ("a stall of half a second", judged(9_500_000_000, &|_| {})),
        (
            "the sender stops as well",
            judged(DOWN_FROM_NS, &|document| stop_at(document.streams[0].sender.as_mut(), DOWN_FROM_NS)),
        ),
        (
            "the receiver fails",
            judged(DOWN_FROM_NS, &|document| {
                document.streams[0].receiver.as_mut().expect("a report").error = Some("it ended".to_owned());
            }),
        ),
        (
            "its socket drops",
            judged(DOWN_FROM_NS, &|document| {
                let end = document.streams[0].receiver.as_mut().expect("a report");
                end.udp.as_mut().expect("UDP").socket_drops = Some(74_000);
            }),
        ),
    ] {
        assert_ne!(other.cause, Cause::PathDown, "{what}: {}", other.summary);
    }
}

#[test]
fn requests_that_stay_unanswered_are_named_with_the_time() {
    let over_udp = |unanswered: u64| {
        let mut document = rr(RrMode::ClosedLoop, None, 48.0, 20.5e6);
        for parameters in document.effective.iter_mut().chain([&mut document.requested]) {
            parameters.protocol = Protocol::UdpRr;
        }
        document.latency[0].unanswered = unanswered;
        stop_at(document.streams[0].sender.as_mut(), DOWN_FROM_NS);
        judge(&document)
    };
    let over_tcp = each_reading(rr(RrMode::ClosedLoop, None, 48.0, 20.5e6), |k, tcp| {
        if k > 26 {
            (tcp.unacked, tcp.backoff, tcp.last_ack_recv_ms) = (1, 3, (k - 26) * 100);
        }
    });
    for verdict in [over_udp(7), judge(&over_tcp)] {
        assert_eq!((verdict.cause, verdict.confidence), (Cause::PathDown, Confidence::High), "{}", verdict.summary);
        assert!(verdict.summary.contains("no request was answered after 2.60 s"), "{}", verdict.summary);
    }
    assert_ne!(over_udp(0).cause, Cause::PathDown);
}

#[test]
fn a_path_that_went_down_before_the_phase_is_not_a_small_mtu() {
    // `-t 5 --omit 2`, and all packets are dropped after one second.
    let judged = |acked: u64, probed: bool| {
        let mut document = each_reading(full_path(), move |k, tcp| {
            tcp.bytes_acked = Some(acked);
            if k > 10 {
                (tcp.unacked, tcp.backoff, tcp.last_ack_recv_ms) = (500, 3, (k - 10) * 100);
            }
        });
        document.phases[0].start_ns = 2_000_000_000;
        document.phases[0].bytes = Some(0);
        document.streams[0].intervals.iter_mut().for_each(|interval| interval.bytes = 0);
        if probed {
            document.path.as_mut().expect("a path").mtu.push(probe_of_1300_bytes());
            document.streams[0].sender.as_mut().expect("a report").samples.iter_mut().for_each(|sample| {
                sample.tcp.as_mut().expect("a reading").pmtu_bytes = 1500;
            });
        }
        judge(&document)
    };
    let verdict = judged(1_000_000, false);
    assert_eq!((verdict.cause, verdict.confidence), (Cause::PathDown, Confidence::High), "{}", verdict.summary);
    assert!(verdict.summary.contains("nothing was delivered after 1.00 s"), "{}", verdict.summary);
    assert_eq!(judged(1, false).cause, Cause::PathMtu, "only what opens the stream passed");
    assert_eq!(judged(1_000_000, true).cause, Cause::PathMtu, "a probe found it");
}
