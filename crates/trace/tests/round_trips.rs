//! RTT samples: which segment an ACK answers.

use landspeed_model::TraceRtt;

use crate::play::{Conversation, Extra, MS, MSS};

const US: u64 = 1_000;

fn min_and_max(rtt: Option<&TraceRtt>) -> (u64, u64, u64) {
    let rtt = rtt.expect("samples");
    (rtt.samples, rtt.min_ns, rtt.max_ns)
}

#[test]
fn one_ack_for_many_segments_answers_the_last() {
    for segments in [1, 8, 9, 20, 44, 100, 3_000] {
        let mut play = Conversation::new();
        for round in 0..3_u64 {
            let first = round as u32 * segments;
            let start_ns = 100 * MS + round * 1_000 * MS;
            for segment in 0..segments {
                let time_ns = start_ns + u64::from(segment) * US;
                play.segment(time_ns, true, play.number(first + segment), 1, MSS, Extra::default());
            }
            let last_ns = start_ns + u64::from(segments - 1) * US;
            play.segment(last_ns + 50 * US, false, 1, play.number(first + segments), 0, Extra::default());
        }
        let flow = play.flow();
        assert_eq!(min_and_max(flow.forward.rtt.as_ref()), (3, 50 * US, 50 * US), "{segments} segments");
    }
}

#[test]
fn each_ack_of_a_long_window_answers_its_own_segment() {
    let mut play = Conversation::new();
    // 1,000 segments in flight, 1 µs apart; an ACK for every 44.
    for segment in 0..10_000_u32 {
        let time_ns = 100 * MS + u64::from(segment) * US;
        play.segment(time_ns, true, play.number(segment), 1, MSS, Extra::default());
        if segment >= 1_000 && (segment - 1_000) % 44 == 0 {
            play.segment(time_ns, false, 1, play.number(segment - 1_000 + 1), 0, Extra::default());
        }
    }
    let flow = play.flow();
    assert_eq!(min_and_max(flow.forward.rtt.as_ref()), (205, 1_000 * US, 1_000 * US));
}

#[test]
fn acks_within_a_super_packet_answer_it() {
    let mut play = Conversation::new();
    play.segment(100 * MS, true, play.number(0), 1, 40 * MSS, Extra::default());
    play.segment(105 * MS, true, play.number(40), 1, 40 * MSS, Extra::default());
    play.segment(120 * MS, false, 1, play.number(2), 0, Extra::default());
    play.segment(121 * MS, false, 1, play.number(40), 0, Extra::default());
    play.segment(125 * MS, false, 1, play.number(42), 0, Extra::default());
    let flow = play.flow();
    assert_eq!(min_and_max(flow.forward.rtt.as_ref()), (3, 20 * MS, 21 * MS));
}

#[test]
fn segments_that_wait_for_a_reordered_one_have_no_sample() {
    // A tap near the receiver: the late segment fills the hole after 8 ms, and its ACK follows 2 µs later.
    let mut play = Conversation::new();
    for round in 0..3_u64 {
        let (first, ms) = (round as u32 * 3, 100 + round * 20);
        let id = 100 + first as u16;
        let send = |play: &mut Conversation, time_ns: u64, segment: u32, id: u16| {
            let extra = Extra { identification: Some(id), ..Extra::default() };
            play.segment(time_ns, true, play.number(segment), 1, MSS, extra);
        };
        let ack = |play: &mut Conversation, time_ns: u64, segment: u32| {
            play.segment(time_ns, false, 1, play.number(segment), 0, Extra::default());
        };
        send(&mut play, ms * MS, first, id);
        ack(&mut play, ms * MS + 2 * US, first + 1);
        send(&mut play, ms * MS + 10 * US, first + 2, id + 2);
        let blocks = [(play.number(first + 2), play.number(first + 3))];
        let extra = Extra { sack: &blocks, ..Extra::default() };
        play.segment(ms * MS + 12 * US, false, 1, play.number(first + 1), 0, extra);
        send(&mut play, (ms + 8) * MS, first + 1, id + 1);
        ack(&mut play, (ms + 8) * MS + 2 * US, first + 3);
    }
    let flow = play.flow();
    assert_eq!((flow.retransmits, flow.forward.out_of_order), (0, 3));
    assert_eq!(min_and_max(flow.forward.rtt.as_ref()), (6, 2 * US, 2 * US));
    assert_eq!(min_and_max(flow.forward.rtt_sack.as_ref()), (3, 2 * US, 2 * US));
}

#[test]
fn segments_that_wait_behind_the_tap_have_no_sample() {
    // A tap near the sender: segment 0 takes 30 ms instead of 10 ms, and segments 1 to 3 wait for it.
    for sack in [true, false] {
        let mut play = Conversation::new();
        play.sack = sack;
        (0..4).for_each(|segment| play.data(100 + 5 * u64::from(segment), segment));
        (1..4).for_each(|segment| play.sack(110 + 5 * u64::from(segment), 0, &[(1, segment + 1)]));
        play.ack(130, 4);
        play.data(200, 4);
        play.ack(210, 5);
        let flow = play.flow();
        assert_eq!(min_and_max(flow.forward.rtt.as_ref()), (2, 10 * MS, 30 * MS), "SACK {sack}");
        let by_sack = flow.forward.rtt_sack.as_ref().map(|rtt| (rtt.samples, rtt.min_ns, rtt.max_ns));
        assert_eq!(by_sack, sack.then_some((3, 10 * MS, 10 * MS)));
    }
}

#[test]
fn an_ack_of_data_not_seen_has_no_sample() {
    let mut play = Conversation::new();
    play.data(100, 0);
    play.ack(110, 1);
    play.data(200, 1);
    // Segment 2 is not in the capture, and the ACK answers it.
    play.ack(290, 3);
    play.data(300, 3);
    play.ack(310, 4);
    let flow = play.flow();
    assert_eq!(min_and_max(flow.forward.rtt.as_ref()), (2, 10 * MS, 10 * MS));
}

#[test]
fn timestamps_give_the_rtt_of_retransmits() {
    let mut play = Conversation::new();
    for (ms, segment, stamp) in [(100, 0, 1_000), (150, 1, 1_050), (400, 1, 1_300)] {
        let extra = Extra { timestamps: Some((stamp, 7)), ..Extra::default() };
        play.segment(ms * MS, true, play.number(segment), 1, MSS, extra);
        if (ms, segment) != (150, 1) {
            let extra = Extra { timestamps: Some((7, stamp)), ..Extra::default() };
            play.segment((ms + 20) * MS, false, 1, play.number(segment + 1), 0, extra);
        }
    }
    let flow = play.flow();
    assert_eq!(min_and_max(flow.forward.rtt.as_ref()), (1, 20 * MS, 20 * MS));
    assert_eq!(min_and_max(flow.forward.rtt_timestamps.as_ref()), (2, 20 * MS, 20 * MS));
}
