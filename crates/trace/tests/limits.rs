//! Limits of a sender, probes, windows, RTOs and resets.

use crate::play::{Conversation, Extra, MS, MSS};
use landspeed_model::{PacketDirection, TraceEventKind};
use landspeed_trace::{Analysis, Limits};

fn window(window: u16) -> Extra<'static> {
    Extra { window: Some(window), ..Extra::default() }
}

#[test]
fn waiting_for_a_zero_window_is_receiver_limited() {
    let mut play = Conversation::new();
    for round in 0..5_u32 {
        let ms = 100 + u64::from(round) * 200;
        play.data(ms, round);
        play.segment((ms + 10) * MS, false, 1, play.number(round + 1), 0, window(0));
        play.segment((ms + 199) * MS, false, 1, play.number(round + 1), 0, window(500));
    }
    play.data(1_100, 5);
    play.ack(1_110, 6);
    let flow = play.flow();
    let limits = flow.forward.limits.expect("limits");
    assert!(limits.receiver_window_ns >= 5 * 189 * MS, "{limits:?}");
    assert!(limits.idle_ns < 20 * MS, "{limits:?}");
    assert_eq!((flow.reverse.zero_windows, flow.reverse.zero_window_ns), (5, 5 * 189 * MS));
    let first = flow.reverse.zero_window_periods[0];
    assert_eq!((first.start_ns, first.duration_ns, first.frame), (110 * MS, 189 * MS, 5));
}

#[test]
fn a_window_below_a_segment_is_receiver_limited() {
    let mut play = Conversation::new();
    play.data(20, 0);
    play.ack(30, 1);
    play.data(30, 1);
    play.segment(40 * MS, false, 1, play.number(2), 0, window(4));
    play.segment(440 * MS, false, 1, play.number(2), 0, window(1000));
    play.data(441, 2);
    play.ack(451, 3);
    let limits = play.flow().forward.limits.expect("limits");
    assert!(limits.receiver_window_ns >= 400 * MS && limits.idle_ns < 5 * MS, "{limits:?}");
}

#[test]
fn an_idle_application_is_sender_limited() {
    let mut play = Conversation::new();
    play.data(20, 0);
    play.segment(30 * MS, false, 1, play.number(1), 0, window(0));
    play.segment(40 * MS, false, 1, play.number(1), 0, window(1000));
    // A small write, with PSH.
    play.segment(2_000 * MS, true, play.number(1), 1, 100, Extra { push: true, ..Extra::default() });
    play.segment(2_010 * MS, false, 1, play.number(1) + 100, 0, Extra::default());
    play.segment(4_000 * MS, true, play.number(1) + 100, 1, 100, Extra { push: true, ..Extra::default() });
    let limits = play.flow().forward.limits.expect("limits");
    assert!(limits.idle_ns >= 3_900 * MS && limits.pacing_ns == 0, "{limits:?}");
}

#[test]
fn gaps_between_full_segments_are_pacing() {
    let mut play = Conversation::new();
    for segment in 0..100_u32 {
        let ms = 100 + u64::from(segment) * 50;
        play.data(ms, segment);
        play.ack(ms + 10, segment + 1);
    }
    let limits = play.flow().forward.limits.expect("limits");
    assert!(limits.pacing_ns >= 98 * 40 * MS && limits.idle_ns == 0, "{limits:?}");
}

#[test]
fn keep_alives_and_probes_are_counted() {
    let mut play = Conversation::new();
    play.data(20, 0);
    play.ack(30, 1);
    for number in 0..4 {
        let length = number % 2;
        let at = 1_000 * (u64::from(number) + 1);
        play.segment(at * MS, true, play.number(1) - 1, 1, length, Extra::default());
        play.ack(at + 10, 1);
    }
    // A closed window; a byte is sent into it twice, and accepted the second time.
    play.segment(6_000 * MS, false, 1, play.number(1), 0, window(0));
    play.segment(6_300 * MS, true, play.number(1), 1, 1, Extra::default());
    play.segment(6_310 * MS, false, 1, play.number(1), 0, window(0));
    play.segment(6_900 * MS, true, play.number(1), 1, 1, Extra::default());
    play.segment(6_910 * MS, false, 1, play.number(1) + 1, 0, window(900));
    play.segment(6_911 * MS, true, play.number(1) + 1, 1, MSS, Extra::default());
    play.segment(6_921 * MS, false, 1, play.number(2) + 1, 0, window(900));
    let flow = play.flow();
    assert_eq!((flow.forward.probes, flow.retransmits, flow.reverse.duplicate_acks), (6, 0, 0));
    assert_eq!((flow.forward.unique_bytes, flow.forward.missing_bytes), (u64::from(2 * MSS) + 1, 0));
}

#[test]
fn a_retransmitted_byte_is_not_a_probe() {
    let mut play = Conversation::new();
    play.data(20, 0);
    play.ack(30, 1);
    play.segment(40 * MS, true, play.number(1), 1, 1, Extra::default());
    play.segment(300 * MS, true, play.number(1), 1, 1, Extra::default());
    let flow = play.flow();
    assert_eq!((flow.forward.probes, flow.retransmits, flow.forward.retransmits.timeout), (0, 1, 1));
}

#[test]
fn an_rto_below_200_ms_is_measured() {
    let mut play = Conversation::new();
    for round in 0..10_u32 {
        play.data(20 + u64::from(round) * 20, round);
        play.ack(30 + u64::from(round) * 20, round + 1);
    }
    (10..14).for_each(|segment| play.data(300, segment));
    play.data(350, 10);
    play.ack(360, 14);
    let flow = play.flow();
    assert_eq!((flow.retransmits, flow.forward.retransmits.timeout), (1, 1), "{:?}", flow.forward.retransmits);
    let rto = flow.forward.rto.expect("an RTO");
    assert_eq!((rto.count, rto.min_ns, rto.max_ns), (1, 50 * MS, 50 * MS));
    let event = flow.events.iter().find(|event| event.kind == TraceEventKind::Timeout).expect("listed");
    assert_eq!((event.rto_ns, event.time_ns, event.direction), (Some(50 * MS), 350 * MS, PacketDirection::Forward));
}

#[test]
fn newreno_partial_acks_are_fast_retransmits() {
    let mut play = Conversation::new();
    play.sack = false;
    (0..10).for_each(|segment| play.data(20, segment));
    play.ack(30, 2);
    (0..4).for_each(|_| play.ack(31, 2));
    play.data(32, 2);
    play.ack(42, 5);
    play.data(43, 5);
    play.ack(53, 7);
    play.data(54, 7);
    play.ack(64, 10);
    let flow = play.flow();
    assert_eq!((flow.retransmits, flow.forward.retransmits.fast), (3, 3), "{:?}", flow.forward.retransmits);
}

#[test]
fn data_recorded_after_its_ack_is_not_missing() {
    let mut play = Conversation::new();
    play.data(20, 0);
    play.segment(30 * MS, false, 1, play.number(2), 0, Extra::default());
    play.segment(30 * MS + 20_000, true, play.number(1), 1, MSS, Extra::default());
    play.segment(31 * MS, false, 1, play.number(2) + 1, 0, Extra::default());
    play.segment(31 * MS + 20_000, true, play.number(2), 1, 0, Extra { fin: true, ..Extra::default() });
    let document = play.document();
    let flow = &document.flows[0];
    assert_eq!((flow.forward.missing_bytes, flow.retransmits), (0, 0));
    assert_eq!(flow.forward.unique_bytes, u64::from(2 * MSS));
    assert!(document.warnings.is_empty(), "{:?}", document.warnings);
}

#[test]
fn reneging_is_reported() {
    let mut play = Conversation::new();
    (0..8).for_each(|segment| play.data(20, segment));
    play.ack(30, 2);
    (0..4).for_each(|more| play.sack(31, 2, &[(3, 4 + more)]));
    play.data(300, 2);
    play.ack(310, 3);
    (3..8).for_each(|segment| play.data(311, segment));
    play.ack(321, 8);
    let flow = play.flow();
    assert_eq!(flow.reverse.reneged, 1);
    let event = flow.events.iter().find(|event| event.kind == TraceEventKind::Reneging).expect("listed");
    assert_eq!((event.direction, event.time_ns), (PacketDirection::Reverse, 310 * MS));
}

#[test]
fn an_unknown_window_scale_is_bounded_by_data_in_flight() {
    let analyse = |scale: Option<u8>| {
        let analysis = Analysis::new(Limits { window_scale: scale, ..Limits::default() });
        let mut play = Conversation { analysis, first: 1000, identification: 1, sack: true };
        for round in 0..3_u32 {
            (0..20).for_each(|segment| play.data(20 + u64::from(round) * 20, round * 20 + segment));
            play.segment((30 + u64::from(round) * 20) * MS, false, 1, play.number(round * 20 + 20), 0, window(300));
        }
        play.document()
    };
    let unknown = analyse(None);
    let reverse = &unknown.flows[0].reverse;
    assert_eq!((reverse.window_scale_in_force, reverse.window_max_bytes), (None, None));
    // 20,000 bytes in flight need 300 << 7.
    assert_eq!(reverse.window_scale_at_least, Some(7));
    assert!(unknown.warnings.iter().any(|warning| warning.code == "window-scale-unknown"));
    let given = analyse(Some(8));
    let reverse = &given.flows[0].reverse;
    assert_eq!((reverse.window_scale_in_force, reverse.window_max_bytes), (Some(8), Some(300 << 8)));
    assert!(given.warnings.iter().all(|warning| warning.code != "window-scale-unknown"));
}

#[test]
fn the_sender_of_a_reset_is_reported() {
    let mut play = Conversation::new();
    play.data(20, 0);
    play.segment(30 * MS, false, 1, play.number(1), 0, Extra { reset: true, ..Extra::default() });
    let flow = play.flow();
    let reset = flow.reset.expect("a reset");
    assert_eq!((&reset.by, reset.time_ns, reset.frame), (&flow.destination, 30 * MS, 5));
    assert_eq!((flow.reverse.resets, flow.forward.resets), (1, 0));
}

#[test]
fn the_goodput_of_the_capture_counts_each_byte_once() {
    let mut play = Conversation::new();
    (0..4).for_each(|segment| play.data(20, segment));
    play.data(500, 0);
    play.ack(1_000, 4);
    let capture = play.document().capture;
    assert_eq!((capture.unique_bytes, capture.goodput_bps), (u64::from(4 * MSS), Some(32_000.0)));
}

#[test]
fn segments_that_fill_the_window_are_counted() {
    let mut play = Conversation::new();
    play.segment(20 * MS, true, play.number(0), 1, MSS, Extra::default());
    // 47 × 128 = 6016 bytes from the next byte expected.
    play.segment(30 * MS, false, 1, play.number(1), 0, window(47));
    for segment in 1..7 {
        play.data(31, segment);
    }
    play.segment(32 * MS, true, play.number(7), 1, 16, Extra { push: true, ..Extra::default() });
    let flow = play.flow();
    // The window of the SYN-ACK, which is not scaled, is the first segment's length.
    assert_eq!((flow.forward.window_full, flow.forward.in_flight_max_bytes), (Some(2), 6016));
    assert_eq!(flow.reverse.window_full, Some(0));
}

#[test]
fn sacked_data_is_in_flight_only_in_one_of_the_figures() {
    let mut play = Conversation::new();
    for segment in 0..10 {
        play.data(20, segment);
    }
    play.sack(30, 1, &[(2, 10)]);
    for segment in 10..14 {
        play.data(31, segment);
    }
    let flow = play.flow();
    // At the end 13 segments are not acknowledged, of which the receiver has 8.
    assert_eq!(flow.forward.in_flight_max_bytes, u64::from(13 * MSS));
    assert_eq!(flow.forward.in_flight_unsacked_max_bytes, Some(u64::from(10 * MSS)), "before the first ACK");
}
