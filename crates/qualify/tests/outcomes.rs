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
    let sender = document.streams[0].sender.as_mut().expect("reported");
    sender.udp.as_mut().expect("a UDP sender").departure_error = None;
    let outcome = StreamOutcome::of(&document, &stream);
    assert_eq!((outcome.lost, outcome.no_fail), (lost as u64, None));
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
