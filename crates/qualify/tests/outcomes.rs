//! What a run says about its stream, from documents of real runs.

use landspeed_model::{LossLocation, PlacedLoss, RunDocument};
use landspeed_qualify::{Stream, StreamOutcome};

/// A run whose receiver had a small socket buffer, and the stream that it sent.
fn run() -> (RunDocument, Stream) {
    let document: RunDocument =
        serde_json::from_str(include_str!("../../../fixtures/documents/udp.json")).expect("a run document");
    let udp = document.udp.as_ref().expect("a UDP test");
    let stream = Stream {
        payload_bytes: udp.payload_bytes,
        packets: udp.sent_packets.expect("counted"),
        rate_bps: document.requested.rate_bps.expect("a rate"),
        burst_packets: 1,
        burst_ns: 0,
        pause_ns: 0,
    };
    (document, stream)
}

#[test]
fn drops_of_the_receiving_host_are_no_failure() {
    let (document, stream) = run();
    let outcome = StreamOutcome::of(&document, &stream);
    assert!(document.udp.as_ref().is_some_and(|udp| udp.lost_packets > Some(0)));
    assert_eq!(outcome.lost, 0, "the receiver's socket dropped them");
    assert!(outcome.no_fail.expect("a reason").contains("the hosts dropped"));
}

#[test]
fn losses_in_the_network_count() {
    let (mut document, stream) = run();
    let lost = document.udp.as_ref().and_then(|udp| udp.lost_packets).expect("counted");
    document.conservation.losses = vec![PlacedLoss {
        place: LossLocation::Network,
        packets: lost as u64,
        exact: false,
        source: "the remainder".to_owned(),
    }];
    set_lateness(&mut document, Some(1000));
    let outcome = StreamOutcome::of(&document, &stream);
    assert_eq!((outcome.lost, outcome.no_fail), (lost as u64, None));
}

#[test]
fn loss_periods_are_known_where_no_host_dropped_packets() {
    let (mut document, stream) = run();
    let lost = document.udp.as_ref().and_then(|udp| udp.lost_packets).expect("counted") as u64;
    document.udp.as_mut().expect("a UDP test").tail_lost_packets = Some(3);
    document.streams[0].receiver.as_mut().expect("reported").udp.as_mut().expect("a UDP receiver").loss_periods =
        Some(4);
    place_losses(&mut document, lost);
    assert_eq!(
        StreamOutcome::of(&document, &stream).loss_periods,
        Some(5),
        "those before the last packet, and the tail"
    );
    place_losses(&mut document, lost - 1);
    assert_eq!(StreamOutcome::of(&document, &stream).loss_periods, None, "which packets the host dropped is unknown");
}

/// Sets the lateness of the sender's packets (p99), nanoseconds.
fn set_lateness(document: &mut RunDocument, p99_ns: Option<u64>) {
    let sender = document.streams[0].sender.as_mut().expect("reported");
    let departure_error = &mut sender.udp.as_mut().expect("a UDP sender").departure_error;
    match p99_ns {
        Some(p99_ns) => departure_error.as_mut().expect("measured").p99_ns = p99_ns,
        None => *departure_error = None,
    }
}

/// Sets the median lateness of the sender's packets, nanoseconds.
fn set_median_lateness(document: &mut RunDocument, p50_ns: u64) {
    let sender = document.streams[0].sender.as_mut().expect("reported");
    sender.udp.as_mut().expect("a UDP sender").departure_error.as_mut().expect("measured").p50_ns = p50_ns;
}

/// Places the losses of a run: those of the network, and those of the receiver's socket.
fn place_losses(document: &mut RunDocument, network: u64) {
    let lost = document.udp.as_ref().and_then(|udp| udp.lost_packets).expect("counted") as u64;
    let placed = |place, packets| PlacedLoss { place, packets, exact: true, source: "a counter".to_owned() };
    document.conservation.losses =
        vec![placed(LossLocation::ReceiverSocket, lost - network), placed(LossLocation::Network, network)];
}

#[test]
fn drops_of_a_host_do_not_hide_losses_in_the_network() {
    let (mut document, stream) = run();
    place_losses(&mut document, 7);
    set_lateness(&mut document, Some(1000));
    let slower = Stream { rate_bps: stream.rate_bps / 2, ..stream };
    let outcome = StreamOutcome::of(&document, &slower);
    assert_eq!((outcome.lost, outcome.no_fail), (7, None), "the network's losses count");
    assert_eq!(outcome.host_dropped, 17_728 - 7);
    assert!(
        outcome.no_pass.expect("a reason").contains("the hosts dropped"),
        "but the stream is no evidence for a pass"
    );
}

#[test]
fn an_unknown_schedule_or_refusal_is_no_failure() {
    let (mut document, stream) = run();
    place_losses(&mut document, 17_728);
    set_lateness(&mut document, None);
    let outcome = StreamOutcome::of(&document, &stream);
    assert!(outcome.no_fail.expect("a reason").contains("unknown whether the sender kept its schedule"));
    let (mut document, stream) = run();
    place_losses(&mut document, 17_728);
    set_lateness(&mut document, Some(1000));
    document.udp.as_mut().expect("a UDP test").refused_packets = None;
    let outcome = StreamOutcome::of(&document, &stream);
    assert!(outcome.no_fail.expect("a reason").contains("unknown whether the sending host refused"));
}

#[test]
fn a_stalled_sender_of_bursts_proves_nothing() {
    let (mut document, stream) = run();
    place_losses(&mut document, 17_728);
    // It ended late, and sent a part of the stream at 125% of the rate after a stall.
    let bursts = Stream { burst_packets: 10, rate_bps: stream.rate_bps * 2, ..stream };
    set_lateness(&mut document, Some(9_000_000));
    set_median_lateness(&mut document, 4_000_000);
    let outcome = StreamOutcome::of(&document, &bursts);
    assert!(outcome.no_fail.expect("a reason").contains("up to 9.0 ms late"));
    // It was late by the same time throughout: slower than planned, never faster.
    set_median_lateness(&mut document, 9_000_000);
    let outcome = StreamOutcome::of(&document, &bursts);
    assert_eq!((outcome.lost, outcome.no_fail), (17_728, None));
    assert!(outcome.no_pass.is_some());
}

#[test]
fn bursts_may_take_their_time_at_interface_rate() {
    let (mut document, stream) = run();
    place_losses(&mut document, 17_728);
    set_lateness(&mut document, Some(9_000_000));
    let bursts = Stream { burst_packets: 10, burst_ns: 10_000_000, ..stream };
    assert_eq!(StreamOutcome::of(&document, &bursts).no_fail, None);
}

#[test]
fn packets_sent_are_counted_if_losses_are_unknown() {
    let (mut document, stream) = run();
    document.udp.as_mut().expect("a UDP test").lost_packets = None;
    assert_eq!(StreamOutcome::of(&document, &stream).sent, stream.packets);
}

#[test]
fn a_whole_window_in_one_burst_has_no_schedule() {
    let (mut document, stream) = run();
    place_losses(&mut document, 5000);
    // The burst left as fast as the host could: 3 s late by a schedule that it does not have.
    let burst = Stream { burst_packets: u32::try_from(stream.packets).expect("few"), ..stream };
    let outcome = StreamOutcome::of(&document, &burst);
    assert_eq!((outcome.sent, outcome.lost, outcome.no_fail), (stream.packets, 5000, None));
    let end = document.streams[0].sender.as_ref().expect("reported");
    assert_eq!(outcome.send_span_ns, Some(end.last_byte_ns.expect("sent") - end.first_byte_ns.expect("sent")));
    assert!(outcome.receive_span_ns.is_some_and(|span_ns| span_ns > 0));
    document.streams[0].sender.as_mut().expect("reported").last_byte_ns = None;
    assert!(StreamOutcome::of(&document, &burst).no_pass.expect("a reason").contains("unknown"));
}

#[test]
fn losses_without_a_place_decide_nothing() {
    let (mut document, stream) = run();
    document.conservation.losses.clear();
    assert!(StreamOutcome::of(&document, &stream).no_fail.expect("a reason").contains("unknown"));
    document.udp.as_mut().expect("a UDP test").lost_packets = None;
    let outcome = StreamOutcome::of(&document, &stream);
    assert!(outcome.no_pass.is_some() && outcome.no_fail.is_some());
}

#[test]
fn a_sender_that_falls_behind_cannot_pass() {
    let (document, stream) = run();
    let more = Stream { packets: stream.packets + 1, ..stream };
    assert!(StreamOutcome::of(&document, &more).no_pass.expect("a reason").contains("sent"));
    let faster = Stream { rate_bps: stream.rate_bps * 2, ..stream };
    assert!(StreamOutcome::of(&document, &faster).no_pass.expect("a reason").contains("keep the rate"));
}
