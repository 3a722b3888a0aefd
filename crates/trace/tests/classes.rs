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
