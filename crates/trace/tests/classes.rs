//! Every class of retransmit and event, played segment by segment.

use landspeed_model::{BuildInfo, PacketDirection};
use landspeed_trace::{Analysis, Limits};
use landspeed_wire::LinkType;
use landspeed_wire::capture::Frame;
use proptest::prelude::*;

use crate::play::{Conversation, Extra, MS, MSS};

#[test]
fn a_clean_transfer_has_an_rtt_and_no_events() {
    let mut play = Conversation::new();
    for round in 0..50 {
        play.data(20 + round * 20, round as u32 * 2);
        play.data(20 + round * 20, round as u32 * 2 + 1);
        play.ack(40 + round * 20, round as u32 * 2 + 2);
    }
    let flow = play.flow();
    assert_eq!((flow.retransmits, flow.forward.out_of_order, flow.forward.missing_bytes), (0, 0, 0));
    assert_eq!(flow.forward.unique_bytes, 100 * u64::from(MSS));
    let rtt = flow.forward.rtt.expect("round trips");
    assert_eq!((rtt.min_ns, rtt.max_ns), (20 * MS, 20 * MS));
    assert_eq!(flow.handshake.expect("a handshake").server_rtt_ns, Some(10 * MS));
    assert_eq!(flow.forward.packets_per_ack, Some(2.0));
    // 100 segments from 20 ms to 1020 ms.
    assert!((flow.goodput_bps.expect("a rate") - 800_000.0).abs() < 1.0, "{:?}", flow.goodput_bps);
    let limits = flow.forward.limits.expect("limits");
    assert_eq!(limits.total_ns, limits.idle_ns + limits.receiver_window_ns + limits.recovery_ns + limits.sending_ns);
}

#[test]
fn sacks_or_duplicate_acks_mean_a_fast_retransmit() {
    for sack in [true, false] {
        let mut play = Conversation::new();
        play.sack = sack;
        (0..6).for_each(|segment| play.data(20, segment));
        play.ack(30, 1);
        (0..4).for_each(|more| play.sack(31, 1, &[(2, 3 + more)]));
        play.data(32, 1);
        play.ack(42, 6);
        let flow = play.flow();
        assert_eq!((flow.retransmits, flow.forward.retransmits.fast), (1, 1), "SACK {sack}");
        assert_eq!(flow.reverse.duplicate_acks, 4);
        assert_eq!(flow.forward.retransmits.bytes, u64::from(MSS));
        assert_eq!(flow.forward.unique_bytes, 6 * u64::from(MSS));
    }
}

#[test]
fn a_long_idle_time_means_rto_until_recovery_ends() {
    let mut play = Conversation::new();
    (0..4).for_each(|segment| play.data(20, segment));
    play.data(240, 0);
    play.ack(250, 1);
    play.data(250, 1);
    play.data(250, 2);
    play.ack(260, 4);
    play.data(260, 4);
    play.ack(270, 5);
    let flow = play.flow();
    assert_eq!((flow.retransmits, flow.forward.retransmits.timeout), (3, 3), "{:?}", flow.forward.retransmits);
}

#[test]
fn a_tail_retransmit_after_short_idle_time_is_a_tlp() {
    let mut play = Conversation::new();
    (0..4).for_each(|segment| play.data(20, segment));
    play.ack(30, 3);
    play.data(45, 3);
    play.sack(55, 4, &[(3, 4)]);
    let flow = play.flow();
    assert_eq!((flow.retransmits, flow.forward.retransmits.tail), (1, 1), "{:?}", flow.forward.retransmits);
    assert_eq!((flow.reverse.dsacks, flow.forward.retransmits.spurious), (1, 1));
}

#[test]
fn a_sacked_hole_is_a_loss_before_the_tap() {
    let mut play = Conversation::new();
    for segment in [0, 1, 3, 4, 5] {
        play.data(20, segment);
    }
    play.ack(20, 2);
    (0..3).for_each(|more| play.sack(20, 2, &[(3, 4 + more)]));
    play.data(40, 2);
    play.ack(40, 6);
    let flow = play.flow();
    assert_eq!(
        (flow.retransmits, flow.forward.retransmits.lost_before_tap),
        (1, 1),
        "{:?}",
        flow.forward.retransmits
    );
    assert_eq!((flow.forward.out_of_order, flow.forward.missing_bytes), (0, 0));
    assert_eq!(flow.forward.unique_bytes, 6 * u64::from(MSS));
}

#[test]
fn an_older_ip_identification_in_a_hole_is_reordering() {
    let mut play = Conversation::new();
    play.data(20, 0);
    let late = play.identification;
    play.identification += 1;
    for segment in [2, 3, 4] {
        play.data(20, segment);
    }
    (0..3).for_each(|more| play.sack(20, 1, &[(2, 3 + more)]));
    let extra = Extra { identification: Some(late), ..Extra::default() };
    play.segment(21 * MS, true, play.number(1), 1, MSS, extra);
    play.ack(21, 5);
    let flow = play.flow();
    assert_eq!((flow.retransmits, flow.forward.out_of_order), (0, 1), "{:?}", flow.forward.retransmits);
}

#[test]
fn an_identical_packet_is_a_network_duplicate() {
    let mut play = Conversation::new();
    play.data(20, 0);
    let same = Extra { identification: Some(play.identification - 1), ..Extra::default() };
    play.segment(20 * MS + 10, true, play.number(0), 1, MSS, same);
    play.ack(30, 1);
    let flow = play.flow();
    assert_eq!((flow.retransmits, flow.forward.duplicates), (0, 1));
}

#[test]
fn copies_without_identification_are_not_tail_loss_probes() {
    let played = |after_ns: u64, tsvals: [Option<u32>; 2]| {
        let mut play = Conversation::new();
        let marked = |tsval: Option<u32>| Extra {
            identification: Some(0),
            timestamps: tsval.map(|tsval| (tsval, 1)),
            ..Extra::default()
        };
        play.segment(20 * MS, true, play.number(0), 1, MSS, marked(tsvals[0]));
        play.segment(20 * MS + after_ns, true, play.number(0), 1, MSS, marked(tsvals[1]));
        play.ack(40, 1);
        let flow = play.flow();
        (flow.retransmits, flow.forward.duplicates)
    };
    let (same, later) = ([Some(700), Some(700)], [Some(700), Some(712)]);
    assert_eq!(played(40_000, same), (0, 1));
    assert_eq!(played(12 * MS, later), (1, 0), "a tail loss probe");
    assert_eq!(played(2 * MS, same), (1, 0), "too late for a copy");
    assert_eq!(played(40_000, [Some(700), Some(701)]), (1, 0), "a retransmit");
    assert_eq!(played(40_000, [None, None]), (1, 0), "neither mark");
}

#[test]
fn a_zero_window_probe_is_not_a_retransmit() {
    let mut play = Conversation::new();
    play.data(20, 0);
    play.segment(30 * MS, false, 1, play.number(1), 0, Extra { window: Some(0), ..Extra::default() });
    play.segment(300 * MS, true, play.number(1).wrapping_sub(1), 1, 1, Extra::default());
    play.segment(310 * MS, false, 1, play.number(1), 0, Extra { window: Some(500), ..Extra::default() });
    play.data(320, 1);
    play.ack(330, 2);
    let flow = play.flow();
    assert_eq!((flow.reverse.zero_windows, flow.forward.probes, flow.retransmits), (1, 1, 0));
    assert_eq!(flow.reverse.window_min_bytes, Some(0));
    assert_eq!(flow.reverse.window_max_bytes, Some(1000 << 7));
}

#[test]
fn acknowledged_but_unseen_data_is_missing() {
    let mut play = Conversation::new();
    play.data(20, 0);
    play.data(20, 3);
    play.ack(30, 4);
    let document = play.document();
    let flow = &document.flows[0];
    assert_eq!((flow.forward.missing_bytes, flow.retransmits), (2 * u64::from(MSS), 0));
    assert!(document.warnings.iter().any(|warning| warning.code == "missing-data"));
}

#[test]
fn the_same_ip_identification_much_later_is_a_retransmit() {
    for (after_ms, duplicates) in [(1, 1), (100, 1), (1_000, 0), (3_000, 0), (300_000, 0)] {
        let mut play = Conversation::new();
        let same = Extra { identification: Some(77), ..Extra::default() };
        play.segment(20 * MS, true, play.number(0), 1, MSS, same);
        play.segment((20 + after_ms) * MS, true, play.number(0), 1, MSS, same);
        play.ack(30 + after_ms, 1);
        let flow = play.flow();
        assert_eq!((flow.retransmits, flow.forward.duplicates), (1 - duplicates, duplicates), "after {after_ms} ms");
    }
}

#[test]
fn a_retransmitted_syn_with_the_same_identification_counts() {
    let mut play =
        Conversation { analysis: Analysis::new(Limits::default()), first: 1_001, identification: 1, sack: true };
    for ms in [0, 1_000, 3_000] {
        let extra = Extra { syn: true, identification: Some(77), ..Extra::default() };
        play.segment(ms * MS, true, 1_000, 0, 0, extra);
    }
    let flow = play.flow();
    assert_eq!((flow.retransmits, flow.forward.duplicates), (2, 0));
    let handshake = flow.handshake.expect("a SYN");
    assert_eq!((handshake.syn_retransmits, handshake.syn_span_ns), (2, 3_000 * MS));
    assert_eq!((handshake.answered, handshake.connect_ns), (Some(false), None));
}

#[test]
fn one_doubled_packet_is_duplicated_in_the_network() {
    let mut play =
        Conversation { analysis: Analysis::new(Limits::default()), first: 1_001, identification: 1, sack: true };
    let syn = |id| Extra { syn: true, identification: Some(id), ..Extra::default() };
    play.segment(0, true, 1_000, 0, 0, syn(1));
    play.segment(MS, false, 0, 1_001, 0, syn(5));
    play.segment(MS + 40_000, false, 0, 1_001, 0, syn(5));
    play.segment(MS + 100_000, true, 1_001, 1, 0, Extra::default());
    play.data(2, 0);
    play.ack(3, 1);
    let document = play.document();
    assert_eq!((document.capture.copies, document.flows.len()), (0, 1));
    let flow = &document.flows[0];
    assert_eq!((flow.reverse.duplicates, flow.reverse.packets, flow.retransmits), (1, 3, 0));
    assert_eq!(flow.handshake.as_ref().and_then(|handshake| handshake.client_rtt_ns), Some(100_000));
}

#[test]
fn a_mirror_port_is_recognised_in_a_short_flow() {
    let mut play =
        Conversation { analysis: Analysis::new(Limits::default()), first: 1_001, identification: 1, sack: true };
    let mut twice = |ms: u64, forward: bool, sequence: u32, ack: u32, length: u32, syn: bool| {
        for copy in 0..2 {
            let extra = Extra { syn, identification: Some(100 + ms as u16), ..Extra::default() };
            play.segment(ms * MS + copy * 10_000, forward, sequence, ack, length, extra);
        }
    };
    twice(0, true, 1_000, 0, 0, true);
    twice(1, false, 0, 1_001, 0, true);
    twice(2, true, 1_001, 1, 0, false);
    twice(3, true, 1_001, 1, MSS, false);
    twice(4, false, 1, 1_001 + MSS, 0, false);
    let document = play.document();
    assert_eq!((document.capture.copies, document.flows.len()), (5, 1));
    let flow = &document.flows[0];
    assert_eq!((flow.forward.duplicates, flow.reverse.duplicates, flow.retransmits), (0, 0, 0));
    assert_eq!(flow.handshake.as_ref().map(|handshake| handshake.syn_retransmits), Some(0));
}

#[test]
fn a_window_closed_from_the_first_frame_is_a_period() {
    let mut play =
        Conversation { analysis: Analysis::new(Limits::default()), first: 1_000, identification: 1, sack: true };
    play.data(0, 0);
    let closed = Extra { window: Some(0), ..Extra::default() };
    play.segment(30_000, false, 1, play.number(1), 0, closed);
    for probe in 1..=3_u64 {
        play.segment(probe * 5_000 * MS, true, play.number(1) - 1, 1, 0, Extra::default());
        play.segment(probe * 5_000 * MS + 30_000, false, 1, play.number(1), 0, closed);
    }
    let flow = play.flow();
    assert_eq!((flow.reverse.zero_windows, flow.reverse.zero_window_ns), (1, 15_000 * MS));
    assert_eq!((flow.forward.probes, flow.reverse.zero_window_periods.len()), (3, 1));
    let limits = flow.forward.limits.expect("limits");
    assert_eq!((limits.receiver_window_ns, limits.total_ns), (15_000 * MS, 15_000 * MS));
}

#[test]
fn a_window_closed_in_the_syn_ack_is_a_period() {
    let mut play =
        Conversation { analysis: Analysis::new(Limits::default()), first: 1_001, identification: 1, sack: true };
    play.segment(0, true, 1_000, 0, 0, Extra { syn: true, ..Extra::default() });
    play.segment(10 * MS, false, 0, 1_001, 0, Extra { syn: true, window: Some(0), ..Extra::default() });
    play.segment(11 * MS, true, 1_001, 1, 0, Extra::default());
    play.segment(50 * MS, false, 1, 1_001, 0, Extra { window: Some(500), ..Extra::default() });
    play.data(51, 0);
    play.ack(61, 1);
    let flow = play.flow();
    assert_eq!((flow.reverse.zero_windows, flow.reverse.zero_window_ns), (1, 40 * MS));
}

#[test]
fn a_fin_added_to_a_retransmit_is_no_payload() {
    let mut play = Conversation::new();
    play.segment(20 * MS, true, play.number(0), 1, 500, Extra::default());
    play.segment(230 * MS, true, play.number(0), 1, 500, Extra { fin: true, ..Extra::default() });
    play.segment(240 * MS, false, 1, play.number(0) + 501, 0, Extra { fin: true, ..Extra::default() });
    let flow = play.flow();
    assert_eq!((flow.forward.unique_bytes, flow.forward.payload_bytes, flow.retransmits), (500, 1_000, 1));
    assert_eq!(flow.forward.missing_bytes, 0);
}

#[test]
fn new_data_and_a_fin_in_a_retransmit_count_once() {
    let mut play = Conversation::new();
    play.segment(20 * MS, true, play.number(0), 1, 500, Extra::default());
    play.segment(230 * MS, true, play.number(0), 1, 800, Extra { fin: true, ..Extra::default() });
    play.segment(240 * MS, false, 1, play.number(0) + 801, 0, Extra::default());
    assert_eq!(play.flow().forward.unique_bytes, 800);
}

/// Plays a loss whose fast retransmit is lost too, seen near the sender. The ACK that shows it arrives at `ack_ms`, and the
/// segment is sent again at `again_ms`.
fn lost_retransmit(rtt_ms: u64, ack_ms: u64, again_ms: u64) -> landspeed_model::Retransmits {
    let mut play =
        Conversation { analysis: Analysis::new(Limits::default()), first: 1_001, identification: 1, sack: true };
    play.segment(0, true, 1_000, 0, 0, Extra { syn: true, ..Extra::default() });
    play.segment(rtt_ms * MS, false, 0, 1_001, 0, Extra { syn: true, ..Extra::default() });
    play.segment(rtt_ms * MS, true, 1_001, 1, 0, Extra::default());
    let start = rtt_ms + 1;
    (0..5).for_each(|segment| play.data(start, segment));
    (0..4).for_each(|more| play.sack(start + rtt_ms, 0, &[(1, 2 + more)]));
    play.data(start + rtt_ms, 0);
    play.data(start + rtt_ms, 5);
    play.sack(start + ack_ms, 0, &[(1, 6)]);
    play.data(start + again_ms, 0);
    play.ack(start + again_ms + rtt_ms, 6);
    let flow = play.flow();
    assert_eq!(flow.retransmits, 2);
    flow.forward.retransmits
}

#[test]
fn a_lost_retransmit_that_rack_repeats_is_not_an_rto() {
    // On a short path, the timer of RACK's reordering window has the granularity of jiffies.
    for (rtt_ms, ack_ms, again_ms) in [(1, 2, 2), (1, 2, 10), (1, 2, 14), (20, 40, 45), (20, 40, 58), (300, 600, 675)]
    {
        let counts = lost_retransmit(rtt_ms, ack_ms, again_ms);
        assert_eq!((counts.fast, counts.timeout), (2, 0), "RTT {rtt_ms} ms, {again_ms} ms: {counts:?}");
    }
}

#[test]
fn a_lost_retransmit_repeated_after_silence_is_an_rto() {
    for (rtt_ms, ack_ms, again_ms) in [(1, 2, 203), (20, 40, 280), (300, 600, 1_130)] {
        let counts = lost_retransmit(rtt_ms, ack_ms, again_ms);
        assert_eq!((counts.fast, counts.timeout), (1, 1), "RTT {rtt_ms} ms, {again_ms} ms: {counts:?}");
    }
}

#[test]
fn a_segment_earlier_than_a_retransmit_can_be_is_reordered() {
    // A tap near the receiver, without IP identifications: the handshake shows 20 ms to the sender.
    for (late_ms, reordered) in [(8, 1), (19, 1), (25, 0)] {
        let mut play =
            Conversation { analysis: Analysis::new(Limits::default()), first: 1_001, identification: 1, sack: true };
        let without_id = Extra { identification: Some(0), ..Extra::default() };
        play.segment(0, true, 1_000, 0, 0, Extra { syn: true, ..without_id });
        play.segment(5_000, false, 0, 1_001, 0, Extra { syn: true, ..without_id });
        play.segment(20 * MS, true, 1_001, 1, 0, without_id);
        for segment in [0, 2, 3, 4] {
            play.segment(30 * MS, true, play.number(segment), 1, MSS, without_id);
        }
        (0..3).for_each(|more| play.sack(30, 1, &[(2, 3 + more)]));
        play.segment((30 + late_ms) * MS, true, play.number(1), 1, MSS, without_id);
        play.ack(30 + late_ms, 5);
        let flow = play.flow();
        let counts = (flow.forward.out_of_order, flow.forward.retransmits.lost_before_tap);
        assert_eq!(counts, (reordered, 1 - reordered), "{late_ms} ms");
    }
}

proptest! {
    /// tcptrace prints 18446744069417598361 bytes in flight once the numbers wrap.
    #[test]
    fn sequence_wrap_changes_nothing(first: u32, losses in prop::collection::btree_set(1_u32..190, 0..8)) {
        let analyse = |first: u32| {
            let mut play = Conversation::with_first(first);
            for round in 0..20_u32 {
                let ms = 20 + u64::from(round) * 30;
                let segments = round * 10..round * 10 + 10;
                segments.clone().for_each(|segment| play.data(ms, segment));
                let lost: Vec<u32> = segments.clone().filter(|segment| losses.contains(segment)).collect();
                if let Some(&hole) = lost.first() {
                    (0..3).for_each(|_| play.sack(ms + 10, hole, &[(round * 10 + 10, round * 10 + 10)]));
                    for segment in lost {
                        play.data(ms + 11, segment);
                    }
                }
                play.ack(ms + 25, round * 10 + 10);
            }
            let mut flow = play.flow();
            // Events have absolute sequence numbers.
            for event in &mut flow.events {
                event.sequence = if event.direction == PacketDirection::Forward { event.sequence.wrapping_sub(first) } else { 0 };
            }
            flow.handshake.as_mut().expect("a handshake").client_sequence = None;
            flow
        };
        let flow = analyse(first);
        prop_assert_eq!(flow.retransmits, losses.len() as u64);
        prop_assert_eq!(flow.forward.in_flight_max_bytes, 10 * u64::from(MSS));
        prop_assert_eq!(flow.forward.unique_bytes, 200 * u64::from(MSS));
        prop_assert_eq!(flow, analyse(1000));
    }

    #[test]
    fn random_frames_never_panic(frames in prop::collection::vec((prop::collection::vec(any::<u8>(), 0..100), any::<u32>(), any::<u64>()), 0..60)) {
        let mut analysis = Analysis::new(Limits { flows: 3, listed: 2, ..Limits::default() });
        for (mut data, original, time_ns) in frames {
            if let Some(first) = data.first_mut() {
                *first = 0x45;
            }
            if let Some(protocol) = data.get_mut(9) {
                *protocol = if *protocol % 2 == 0 { 6 } else { 17 };
            }
            let original = original.max(data.len() as u32);
            analysis.frame(&Frame { interface: 0, link: LinkType::RAW, time_ns, original, data: &data });
        }
        let document = analysis.finish(BuildInfo::default(), Vec::new(), String::new(), "", None, |_| None);
        prop_assert!(document.flows.len() <= 2);
        prop_assert!(document.bins.bytes.len() <= 8_192);
    }
}
