//! What a receiver infers of its sender and of the path from when, how much and in what order data arrives.

use landspeed_model::{Cause, Confidence, Direction, RunDocument, TcpInfo, WatchHost};

use crate::beside::each_reading;
use crate::common::Scenario;
use crate::watched::{at_receiver, judge_watched};

/// Changes reading number k.
type Change = fn(u32, &mut TcpInfo);

/// The cause that each change suggests.
pub const EXAMPLES: &[(Cause, Change)] = &[
    // 1 Gb/s × 20 ms are 2.5 MB.
    (Cause::ReceiverWindow, |_, tcp| tcp.rcv_wnd_bytes = Some(2_600_000)),
    (Cause::Application, |_, tcp| tcp.last_data_recv_ms = 100),
    (Cause::NetworkLoss, |k, tcp| tcp.rcv_ooopack = Some(k * 40)),
    (Cause::NetworkCongestion, |k, tcp| (tcp.rcv_ooopack, tcp.rcv_rtt_us) = (Some(k * 40), 40_000)),
    (Cause::NetworkPath, |_, tcp| tcp.rcv_rtt_us = 40_000),
];

/// A steady arrival over 20 ms that fills a quarter of the window, changed; with both ends' reports.
pub fn received(change: Change) -> RunDocument {
    let steady = Scenario { receiver_thread: 0.3, recv_fill: 0.0, ..Scenario::default() };
    let mut document = steady.document();
    let mut sender = document.streams[0].sender.take();
    document = each_reading(document, |k, tcp| {
        (tcp.rcv_rtt_us, tcp.min_rtt_us, tcp.rcv_wnd_bytes) = (20_500, Some(20_000), Some(10_000_000));
        (tcp.data_segs_in, tcp.rcv_mss_bytes, tcp.rcv_ooopack) = (Some(k * 8600), 1448, Some(0));
        change(k, tcp);
    });
    document.streams[0].sender = sender.take();
    document
}

/// The same, seen by its receiver.
fn arrives(change: Change) -> RunDocument {
    let run = received(change);
    let mut document = at_receiver(&Scenario { receiver_thread: 0.3, recv_fill: 0.0, ..Scenario::default() });
    document.streams[0].receiver.clone_from(&run.streams[0].receiver);
    document
}

#[test]
fn arrivals_suggest_where_the_limit_is() {
    for (cause, change) in EXAMPLES {
        let verdict = judge_watched(&arrives(*change), Direction::Download, &WatchHost::default());
        assert_eq!(verdict.cause, *cause, "{}", verdict.summary);
        let expected = if *cause == Cause::ReceiverWindow { Confidence::Medium } else { Confidence::Low };
        assert_eq!(verdict.confidence, expected, "{}", verdict.summary);
        assert!(!verdict.evidence.is_empty());
    }
}

#[test]
fn pauses_of_the_sender_are_not_a_queue_of_the_path() {
    // A write every 50 ms: the echo of a timestamp waits for it, on average 20 ms, and the last arrival is 0 to 36 ms ago.
    let pauses: Change = |k, tcp| (tcp.rcv_rtt_us, tcp.last_data_recv_ms) = (40_000, k % 10 * 4);
    let verdict = judge_watched(&arrives(pauses), Direction::Download, &WatchHost::default());
    assert_ne!(verdict.cause, Cause::NetworkPath, "{}", verdict.summary);
}

#[test]
fn a_steady_arrival_is_undetermined_between_sender_and_path() {
    let verdict = judge_watched(&arrives(|_, _| {}), Direction::Download, &WatchHost::default());
    assert_eq!(verdict.cause, Cause::Undetermined, "{}", verdict.summary);
    assert!(verdict.next_step.contains("the sender uses 25 % of the receive window"), "{}", verdict.next_step);
    assert!(verdict.next_step.contains("the limit is the sender or the path"), "{}", verdict.next_step);
}

#[test]
fn a_path_faster_than_the_clock_of_rcv_rtt_has_the_rtt_of_the_handshake() {
    // 20 µs, as the receiver's timestamps count it: a millisecond. The window has room for 400 round trips.
    let fast: Change = |_, tcp| (tcp.rcv_rtt_us, tcp.min_rtt_us, tcp.rcv_wnd_bytes) = (1000, Some(20), Some(100_000));
    let verdict = judge_watched(&arrives(fast), Direction::Download, &WatchHost::default());
    assert_eq!(verdict.cause, Cause::Undetermined, "{}", verdict.summary);
}

#[test]
fn one_round_trip_for_each_request_is_named_at_both_ends() {
    let asks: Change = |k, tcp| (tcp.data_segs_out, tcp.data_segs_in) = (Some(k * 4), Some(k * 4));
    let verdict = judge_watched(&arrives(asks), Direction::Download, &WatchHost::default());
    assert_eq!((verdict.cause, verdict.confidence), (Cause::RoundTrip, Confidence::Medium), "{}", verdict.summary);
    let pipelines: Change = |k, tcp| tcp.data_segs_out = Some(k * 40);
    let verdict = judge_watched(&arrives(pipelines), Direction::Download, &WatchHost::default());
    assert_ne!(verdict.cause, Cause::RoundTrip, "{}", verdict.summary);
}

#[test]
fn a_receiver_sees_the_rate_of_its_own_interface() {
    let mut document = arrives(|_, _| {});
    let mut host = Scenario { line_rate_bps: Some(1_060_000_000), ..Scenario::default() }.document().hosts.client;
    document.hosts.client = host.take();
    let verdict = judge_watched(&document, Direction::Download, &WatchHost::default());
    assert_eq!(verdict.cause, Cause::LinkRate, "{}", verdict.summary);
}
