use std::net::UdpSocket;
use std::thread;
use std::time::Duration;

use landspeed_sys::clock::monotonic_ns;

use super::super::{Load, ProbePlan, RrError, RrOutcome, RrPlan, request_udp};
use super::{MS, assert_conserved, open, pause, plan, slower_than_100ms, udp_pair, with_udp_responder};
use crate::shared::{Counters, Stop};

/// Runs a requester against a peer that calls `echo` for each datagram, with the number of earlier datagrams.
fn against(plan: &RrPlan, echo: impl Fn(&UdpSocket, u64, &[u8]) + Send + 'static) -> RrOutcome {
    let (near, far) = udp_pair("127.0.0.1");
    far.set_read_timeout(Some(Duration::from_millis(500))).unwrap();
    let responder = thread::spawn(move || {
        let mut message = vec![0; 65_536];
        let mut count = 0;
        while let Ok(n) = far.recv(&mut message) {
            echo(&far, count, &message[..n]);
            count += 1;
        }
    });
    let outcome = request_udp(near, plan, &Counters::default(), &Stop::default());
    responder.join().unwrap();
    assert_conserved(&outcome);
    outcome
}

#[test]
fn open_and_closed_loops_work_with_any_size() {
    for (request, response) in [(1, 1), (64, 64), (7, 1000), (9000, 5), (65_507, 65_507)] {
        for load in [Load::ClosedLoop, open(500.0)] {
            let (near, far) = udp_pair("127.0.0.1");
            let plan = plan(request, response, load, 50);
            let (outcome, responder) =
                with_udp_responder(far, &plan, || request_udp(near, &plan, &Counters::default(), &Stop::default()));
            assert_eq!(outcome.error, None);
            assert_conserved(&outcome);
            let tally = outcome.measured.tally;
            // Large datagrams may overflow the receive buffer while the reader is not scheduled.
            assert!(tally.completed > 0, "{request}/{response} {load:?}: {tally:?}");
            assert!(request > 1000 || tally.unanswered == 0, "{request}/{response} {load:?}: {tally:?}");
            assert!(responder.answered >= tally.completed && responder.junk == 0, "{responder:?}");
            if load != Load::ClosedLoop {
                assert_eq!(tally.sent, 25);
            }
        }
    }
}

#[test]
fn ipv6_and_spinning_work() {
    if UdpSocket::bind("[::1]:0").is_err() {
        eprintln!("SKIPPED ipv6_and_spinning_work: no IPv6 loopback here");
        return;
    }
    let (near, far) = udp_pair("::1");
    let plan = RrPlan { spin: true, ..plan(64, 64, Load::ClosedLoop, 50) };
    let (outcome, _) =
        with_udp_responder(far, &plan, || request_udp(near, &plan, &Counters::default(), &Stop::default()));
    assert_eq!(outcome.error, None);
    assert!(outcome.measured.tally.completed > 0);
}

#[test]
fn ignored_requests_are_counted_exactly_as_unanswered() {
    // At most 256 requests, so that even one-byte numbers are unique.
    for size in [1, 64] {
        let plan =
            RrPlan { response_timeout_ns: 900 * MS, grace_ns: 2000 * MS, ..plan(size, size, open(400.0), 500) };
        let outcome = against(&plan, |socket, count, message| {
            if count % 10 != 9 {
                socket.send(message).unwrap();
            }
        });
        let tally = outcome.measured.tally;
        assert_eq!(outcome.error, None);
        assert_eq!((tally.scheduled, tally.sent, tally.unanswered), (200, 200, 20), "{size} bytes: {tally:?}");
    }
}

#[test]
fn a_closed_loop_continues_after_a_loss() {
    let plan = RrPlan {
        response_timeout_ns: 100 * MS,
        max_transactions: Some(50),
        ..plan(64, 64, Load::ClosedLoop, 10_000)
    };
    let outcome = against(&plan, |socket, count, message| {
        if count % 10 != 9 {
            socket.send(message).unwrap();
        }
    });
    let tally = outcome.measured.tally;
    assert_eq!((tally.sent, tally.unanswered, outcome.late), (50, 5, 0));
}

#[test]
fn late_duplicate_and_junk_datagrams_are_distinguished() {
    let plan = RrPlan { response_timeout_ns: 40 * MS, ..plan(64, 64, open(100.0), 300) };
    let outcome = against(&plan, |socket, count, message| {
        match count {
            // The response arrives after the timeout.
            3 => pause(90),
            8 | 15 => drop(socket.send(message)),
            _ => {}
        }
        socket.send(message).unwrap();
        if count == 20 {
            socket.send(b"junk").unwrap();
            socket.send(&[0x55; 64]).unwrap();
        }
    });
    assert!((3..=30).contains(&outcome.late), "{}", outcome.late);
    assert_eq!(outcome.measured.tally.unanswered, outcome.late, "late is unanswered");
    assert_eq!((outcome.measured.tally.sent, outcome.junk), (30, 2));
    // A second copy of a late response also counts as a duplicate.
    assert_eq!(outcome.duplicate, 2);
}

#[test]
fn probes_measure_round_trips_of_more_than_a_second() {
    let now_ns = monotonic_ns();
    let plan = ProbePlan::new(now_ns, now_ns, now_ns + 100 * MS).to_plan();
    let outcome = against(&plan, |socket, count, message| {
        if count == 0 {
            pause(1200);
        }
        socket.send(message).unwrap();
    });
    let tally = outcome.measured.tally;
    assert_eq!((tally.completed, tally.unanswered, outcome.late), (10, 0, 0));
    assert!(outcome.measured.histogram.min_ns().is_some_and(|ns| ns > 1000 * MS));
}

#[test]
fn a_udp_stall_is_measured_in_every_delayed_request() {
    let quiet = (0..5).any(|_| {
        let plan = plan(64, 64, open(1000.0), 500);
        let outcome = against(&plan, |socket, count, message| {
            if count == 150 {
                pause(200);
            }
            socket.send(message).unwrap();
        });
        let slow = slower_than_100ms(&outcome);
        assert!(slow >= 98, "{slow} slow requests: one each millisecond but in the stall's last 100 ms");
        assert_eq!(outcome.measured.tally.completed, 500);
        slow <= 150
    });
    assert!(quiet, "a busy machine adds stalls, but hardly to each of five runs");
}

#[test]
fn a_closed_port_ends_the_measurement_early_with_an_error() {
    for load in [Load::ClosedLoop, open(1000.0)] {
        let (near, far) = udp_pair("127.0.0.1");
        drop(far);
        let plan = plan(64, 64, load, 3000);
        let outcome = request_udp(near, &plan, &Counters::default(), &Stop::default());
        assert!(matches!(outcome.error, Some(RrError::Refused { .. })), "{:?}", outcome.error);
        assert_conserved(&outcome);
        assert_eq!(outcome.measured.tally.completed, 0);
        assert!(monotonic_ns() < plan.end_ns);
    }
}

#[test]
fn an_unresponsive_responder_is_an_error() {
    for load in [Load::ClosedLoop, open(1000.0)] {
        let (near, _far) = udp_pair("127.0.0.1");
        let plan = RrPlan { response_timeout_ns: 30 * MS, ..plan(64, 64, load, 100) };
        let outcome = request_udp(near, &plan, &Counters::default(), &Stop::default());
        let tally = outcome.measured.tally;
        assert_eq!(outcome.error, Some(RrError::PeerSilent { unanswered: tally.sent }));
        assert!(tally.sent > 0 && tally.sent == tally.unanswered);
        assert_conserved(&outcome);
        assert!(monotonic_ns() < plan.end_ns + plan.grace_ns + 200 * MS);
    }
}

#[test]
fn a_datagram_of_another_size_gets_no_response() {
    let (near, far) = udp_pair("127.0.0.1");
    let far_plan = plan(100, 100, Load::ClosedLoop, 200);
    let near_plan = RrPlan { response_timeout_ns: 20 * MS, ..plan(64, 100, open(200.0), 100) };
    let (outcome, responder) =
        with_udp_responder(far, &far_plan, || request_udp(near, &near_plan, &Counters::default(), &Stop::default()));
    assert_eq!(outcome.measured.tally.unanswered, 20);
    assert_eq!((responder.answered, responder.junk), (0, 20));
}
