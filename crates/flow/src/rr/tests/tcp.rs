use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::thread;

use landspeed_sys::clock::monotonic_ns;

use super::super::{Load, ProbePlan, RrError, RrPlan, merge, request_connect, request_tcp, respond_tcp};
use super::{MS, assert_conserved, open, pause, plan, slower_than_100ms, tcp_pair, tcp_responder};
use crate::shared::{Counters, Stop};

#[test]
fn a_closed_loop_counts_each_transaction_on_both_sides() {
    let (near, far) = tcp_pair("127.0.0.1");
    let plan = plan(64, 100, Load::ClosedLoop, 100);
    let responder = tcp_responder(far, &plan);
    let counters = Counters::default();
    let outcome = request_tcp(near, &plan, &counters, &Stop::default());
    let tally = outcome.measured.tally;
    assert_eq!(outcome.error, None);
    assert_conserved(&outcome);
    assert!(tally.completed > 10 && tally.completed == tally.scheduled, "{tally:?}");
    assert_eq!((counters.packets(), counters.bytes()), (tally.completed, tally.completed * 164));
    assert!(outcome.syscalls >= 2 * tally.completed, "one send and one recv each");
    let far = responder.join().unwrap();
    assert_eq!((far.answered, far.error), (tally.completed, None));
    let result = merge([&outcome], &plan);
    assert!(result.min_ns > Some(0) && result.min_ns <= result.p50_ns && result.p9999_ns <= result.max_ns);
    assert!((result.achieved_per_s - result.completed as f64 / 0.1).abs() < 1.0, "{}", result.achieved_per_s);
    assert_eq!(result.histogram.iter().map(|b| b.count).sum::<u64>(), result.completed);
}

#[test]
fn the_omitted_part_has_its_own_accounting() {
    let (near, far) = tcp_pair("127.0.0.1");
    let mut plan = plan(1, 1, open(1000.0), 200);
    plan.measure_from_ns += 50 * MS;
    let responder = tcp_responder(far, &plan);
    let outcome = request_tcp(near, &plan, &Counters::default(), &Stop::default());
    assert_conserved(&outcome);
    assert_eq!((outcome.omitted.completed, outcome.measured.tally.completed), (50, 150));
    assert_eq!(responder.join().unwrap().answered, 200);
}

#[test]
fn messages_of_1_mib_complete() {
    for load in [Load::ClosedLoop, open(100.0)] {
        let (near, far) = tcp_pair("127.0.0.1");
        let plan = plan(1 << 20, 1 << 20, load, 150);
        let responder = tcp_responder(far, &plan);
        let outcome = request_tcp(near, &plan, &Counters::default(), &Stop::default());
        assert_eq!(outcome.error, None);
        assert_conserved(&outcome);
        assert!(outcome.measured.tally.completed >= 2);
        assert_eq!(responder.join().unwrap().answered, outcome.measured.tally.completed);
    }
}

#[test]
fn uneven_sizes_and_ipv6_work() {
    let Ok(listener) = TcpListener::bind("[::1]:0") else {
        eprintln!("SKIPPED uneven_sizes_and_ipv6_work: no IPv6 loopback here");
        return;
    };
    for (request, response) in [(1, 70_000), (70_000, 1)] {
        let near = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let plan = plan(request, response, Load::ClosedLoop, 30);
        let responder = tcp_responder(listener.accept().unwrap().0, &plan);
        let outcome = request_tcp(near, &plan, &Counters::default(), &Stop::default());
        assert_eq!(outcome.error, None);
        assert!(outcome.measured.tally.completed > 0);
        assert_eq!(responder.join().unwrap().answered, outcome.measured.tally.completed);
    }
}

#[test]
fn busy_polling_completes_transactions() {
    for load in [Load::ClosedLoop, open(500.0)] {
        let (near, far) = tcp_pair("127.0.0.1");
        let mut plan = plan(64, 64, load, 60);
        let responder = tcp_responder(far, &plan);
        plan.spin = true;
        let outcome = request_tcp(near, &plan, &Counters::default(), &Stop::default());
        assert_eq!(outcome.error, None);
        assert_conserved(&outcome);
        assert!(outcome.measured.tally.completed > 0);
        assert_eq!(responder.join().unwrap().answered, outcome.measured.tally.completed);
    }
}

/// Coordinated omission: a closed loop would show one slow request; here all requests due during the stall must
/// be slow too.
#[test]
fn a_stall_is_measured_in_every_delayed_request() {
    let quiet = (0..5).any(|_| {
        let (slow, stalled_ns) = count_slow_after_stall();
        // One request per millisecond: all during the stall except those of its last 100 ms.
        let expected = stalled_ns / MS - 100;
        assert!(slow + 2 >= expected, "{slow} slow requests, expected {expected}");
        slow <= expected + 50
    });
    assert!(quiet, "a busy machine adds stalls, but hardly to each of five runs");
}

/// Returns how many of 600 requests, one per millisecond, took over 100 ms because of a stall, and the length
/// of the stall in nanoseconds.
fn count_slow_after_stall() -> (u64, u64) {
    let (near, mut far) = tcp_pair("127.0.0.1");
    let plan = plan(16, 16, open(1000.0), 600);
    let stall_at_ns = plan.t0_ns + 200 * MS;
    let responder = thread::spawn(move || {
        let (mut message, mut stalled_ns) = ([0; 16], 0);
        while far.read_exact(&mut message).is_ok() {
            if stalled_ns == 0 && monotonic_ns() >= stall_at_ns {
                let begun_ns = monotonic_ns();
                pause(200);
                stalled_ns = monotonic_ns() - begun_ns;
            }
            if far.write_all(&message).is_err() {
                break;
            }
        }
        stalled_ns
    });
    let outcome = request_tcp(near, &plan, &Counters::default(), &Stop::default());
    let stalled_ns = responder.join().unwrap();
    assert_eq!(outcome.error, None);
    assert_conserved(&outcome);
    assert_eq!((outcome.measured.tally.scheduled, outcome.measured.tally.completed), (600, 600));
    assert!(outcome.measured.histogram.max_ns().unwrap() >= stalled_ns - MS);
    (slower_than_100ms(&outcome), stalled_ns)
}

#[test]
fn a_responder_that_never_reads_leaves_requests_unsent_and_unanswered() {
    let (near, far) = tcp_pair("127.0.0.1");
    let mut plan = plan(1 << 20, 1, open(1000.0), 100);
    plan.grace_ns = 50 * MS;
    let outcome = request_tcp(near, &plan, &Counters::default(), &Stop::default());
    drop(far);
    let tally = outcome.measured.tally;
    assert_conserved(&outcome);
    assert_eq!((tally.scheduled, tally.completed), (100, 0));
    assert!(tally.unsent() > 0);
    assert_eq!(outcome.error, Some(RrError::PeerSilent { unanswered: tally.unanswered }));
}

#[test]
fn an_unresponsive_peer_gives_partial_results_after_the_grace_period() {
    let (near, mut far) = tcp_pair("127.0.0.1");
    let mut plan = plan(8, 8, Load::ClosedLoop, 100);
    plan.grace_ns = 100 * MS;
    let responder = thread::spawn(move || {
        let mut message = [0; 8];
        for _ in 0..5 {
            far.read_exact(&mut message).unwrap();
            far.write_all(&message).unwrap();
        }
        far
    });
    let outcome = request_tcp(near, &plan, &Counters::default(), &Stop::default());
    let late_ns = monotonic_ns() - plan.end_ns;
    assert!((100 * MS..1000 * MS).contains(&late_ns), "{late_ns}");
    assert_eq!((outcome.measured.tally.completed, outcome.measured.tally.unanswered), (5, 1));
    assert_eq!(outcome.error, Some(RrError::PeerSilent { unanswered: 1 }));
    responder.join().unwrap();
}

#[test]
fn a_peer_that_closes_is_an_error_with_partial_results() {
    for load in [Load::ClosedLoop, open(2000.0)] {
        let (near, far) = tcp_pair("127.0.0.1");
        let plan = plan(8, 8, load, 2000);
        let responder = tcp_responder(far, &RrPlan { max_transactions: Some(10), ..plan.clone() });
        let outcome = request_tcp(near, &plan, &Counters::default(), &Stop::default());
        assert_eq!(outcome.error, Some(RrError::PeerClosed));
        assert_eq!(outcome.measured.tally.completed, 10);
        assert_conserved(&outcome);
        assert!(monotonic_ns() < plan.end_ns, "it does not wait for the end");
        assert_eq!(responder.join().unwrap().answered, 10);
    }
}

#[test]
fn surplus_response_bytes_are_an_error() {
    for load in [Load::ClosedLoop, open(1000.0)] {
        let (near, far) = tcp_pair("127.0.0.1");
        let near_plan = plan(8, 8, load, 2000);
        let responder = tcp_responder(far, &plan(8, 9, Load::ClosedLoop, 2000));
        let outcome = request_tcp(near, &near_plan, &Counters::default(), &Stop::default());
        assert_eq!(outcome.error, Some(RrError::ExcessBytes));
        assert_conserved(&outcome);
        responder.join().unwrap();
    }
}

#[test]
fn blocked_requesters_and_responders_stop_promptly() {
    let (near, far) = tcp_pair("127.0.0.1");
    let plan = RrPlan { end_ns: u64::MAX, ..plan(8, 8, Load::ClosedLoop, 0) };
    // No requests are sent at first: both sides run responders, then one runs a requester.
    let stop = Stop::default();
    thread::scope(|scope| {
        for stream in [&near, &far] {
            let stream = stream.try_clone().unwrap();
            scope.spawn(|| assert_eq!(respond_tcp(stream, &plan, &Counters::default(), &stop).error, None));
        }
        pause(30);
        stop.stop_receiving();
    });
    let begun_ns = monotonic_ns();
    let stop = Stop::default();
    thread::scope(|scope| {
        scope.spawn(|| assert_eq!(request_tcp(near, &plan, &Counters::default(), &stop).error, None));
        pause(30);
        stop.stop_receiving();
    });
    assert!(monotonic_ns() - begun_ns < 500 * MS);
}

#[test]
fn stopping_senders_still_waits_for_outstanding_responses() {
    let (near, far) = tcp_pair("127.0.0.1");
    let plan = RrPlan { end_ns: u64::MAX, ..plan(64, 64, open(2000.0), 0) };
    let responder = tcp_responder(far, &plan);
    let stop = Stop::default();
    let outcome = thread::scope(|scope| {
        let requester = scope.spawn(|| request_tcp(near, &plan, &Counters::default(), &stop));
        pause(100);
        stop.stop_sending();
        requester.join().unwrap()
    });
    assert_eq!(outcome.error, None);
    assert_conserved(&outcome);
    let tally = outcome.measured.tally;
    assert!(tally.completed == tally.scheduled && tally.completed >= 100, "{tally:?}");
    assert!(outcome.measured.duration_ns() < 2000 * MS);
    assert_eq!(responder.join().unwrap().answered, tally.completed);
}

#[test]
fn each_connect_transaction_has_its_own_connection() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let plan = RrPlan { max_transactions: Some(50), ..plan(64, 1000, Load::Connect, 2000) };
    let responder = thread::spawn(move || {
        let one = RrPlan { max_transactions: Some(1), ..super::plan(64, 1000, Load::Connect, 2000) };
        let counters = Counters::default();
        for _ in 0..50 {
            let stream = listener.accept().unwrap().0;
            assert_eq!(respond_tcp(stream, &one, &counters, &Stop::default()).answered, 1);
        }
        (counters.packets(), counters.bytes())
    });
    let outcome = request_connect(&mut || TcpStream::connect(address), &plan, &Counters::default(), &Stop::default());
    assert_eq!(outcome.error, None);
    assert_conserved(&outcome);
    assert_eq!(outcome.measured.tally.completed, 50);
    assert_eq!(responder.join().unwrap(), (50, 50 * 1064), "counters go on from connection to connection");
}

#[test]
fn a_server_that_refuses_connections_ends_the_measurement() {
    let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let plan = plan(8, 8, Load::Connect, 2000);
    let outcome = request_connect(&mut || TcpStream::connect(address), &plan, &Counters::default(), &Stop::default());
    assert!(matches!(outcome.error, Some(RrError::Connect { times: 10, .. })), "{:?}", outcome.error);
    assert_eq!((outcome.refused, outcome.measured.tally.unsent()), (10, 10));
    assert_conserved(&outcome);
    assert!(monotonic_ns() < plan.end_ns);
}

#[test]
fn invalid_plans_are_rejected() {
    for (request, load) in [
        (0, Load::ClosedLoop),
        ((1 << 20) + 1, Load::ClosedLoop),
        (8, open(f64::NAN)),
        (8, open(-1.0)),
        (8, Load::Connect),
    ] {
        let (near, _far) = tcp_pair("127.0.0.1");
        let outcome = request_tcp(near, &plan(request, 8, load, 1000), &Counters::default(), &Stop::default());
        assert!(matches!(outcome.error, Some(RrError::Plan(_))), "{:?}", outcome.error);
    }
}

#[test]
fn probes_during_the_ramp_count_as_neither_idle_nor_loaded() {
    let (near, far) = tcp_pair("127.0.0.1");
    let now_ns = monotonic_ns();
    let probe = ProbePlan {
        rate_per_s: 1000.0,
        loaded_from_ns: now_ns + 150 * MS,
        ..ProbePlan::new(now_ns, now_ns + 100 * MS, now_ns + 300 * MS)
    };
    let responder = tcp_responder(far, &probe.to_plan());
    let outcome = probe.run_tcp(near, &Counters::default(), &Stop::default());
    assert_conserved(&outcome);
    assert_eq!((outcome.omitted.completed, responder.join().unwrap().answered), (50, 300));
    let result = probe.under_load(std::slice::from_ref(&outcome));
    let idle = result.idle.unwrap();
    assert_eq!((idle.completed, idle.duration_ns), (100, 100 * MS));
    assert_eq!((result.loaded.completed, result.loaded.offered_per_s), (150, Some(1000.0)));
}
