//! Two taps whose clocks are set, whose captures contain copies, or between which addresses change. Losses are
//! still located, and drops of the receiver host are distinguished from duplication and reordering in the
//! network.

use std::collections::BTreeSet;

use crate::taps;
use landspeed_model::TraceDocument;
use proptest::prelude::*;

const BEGIN: i64 = 1_700_000_000_000_000_000;
const MS: i64 = 1_000_000;
const MSS: u32 = 1_000;
const FIRST: u32 = 4_000_000_000;

/// A transfer, with its losses, duplicates and delays.
#[derive(Debug, Clone)]
struct Transfer {
    segments: u32,
    /// Time from one segment to the next, nanoseconds.
    interval_ns: i64,
    one_way_ns: i64,
    /// Segments lost between the taps, and (`receiver`) dropped after the second.
    network: BTreeSet<u32>,
    receiver: BTreeSet<u32>,
    /// Segments duplicated in the network, and the delay of the duplicate.
    twice: BTreeSet<u32>,
    twice_after_ns: i64,
    /// Delayed segments, and their additional delay.
    late: BTreeSet<u32>,
    late_ns: i64,
    sack: bool,
    dsack: bool,
    identified: bool,
    /// Address of the sender at the second tap.
    sender_at_second_tap: [u8; 4],
}

impl Default for Transfer {
    fn default() -> Self {
        Self {
            segments: 1_000,
            interval_ns: 100_000,
            one_way_ns: 10 * MS,
            network: BTreeSet::new(),
            receiver: BTreeSet::new(),
            twice: BTreeSet::new(),
            twice_after_ns: 20_000,
            late: BTreeSet::new(),
            late_ns: 0,
            sack: true,
            dsack: true,
            identified: true,
            sender_at_second_tap: [10, 0, 0, 1],
        }
    }
}

/// A packet at one tap: time, bytes without the payload, and length of the payload.
type At = (i64, Vec<u8>, u32);

fn packet(sender: [u8; 4], forward: bool, numbers: [u32; 2], payload: u32, id: u16, sack: &[(u32, u32)]) -> Vec<u8> {
    let ends = [(sender, 40_000_u16), ([10, 0, 0, 2], 5_001)];
    let (from, to) = if forward { (ends[0], ends[1]) } else { (ends[1], ends[0]) };
    let mut options = Vec::new();
    if !sack.is_empty() {
        options.extend([1, 1, 5, 2 + 8 * sack.len() as u8]);
        for (low, high) in sack {
            options.extend([low.to_be_bytes(), high.to_be_bytes()].concat());
        }
    }
    let mut bytes = vec![0x45, 0];
    bytes.extend((40 + options.len() as u16 + payload as u16).to_be_bytes());
    bytes.extend(id.to_be_bytes());
    bytes.extend([0x40, 0, 64, 6, 0, 0]);
    bytes.extend([from.0, to.0].concat());
    bytes.extend([from.1.to_be_bytes(), to.1.to_be_bytes()].concat());
    bytes.extend([numbers[0].to_be_bytes(), numbers[1].to_be_bytes()].concat());
    bytes.extend([((20 + options.len()) as u8 / 4) << 4, 0x10, 0x80, 0, 0, 0, 0, 0]);
    bytes.extend(options);
    bytes
}

impl Transfer {
    /// Returns the packets at both taps, in the order of each. Lost and dropped segments are retransmitted 30 ms
    /// later, and so are those delayed by more than 10 ms.
    fn taps(&self) -> [Vec<At>; 2] {
        let number = |segment: u32| FIRST.wrapping_add(segment * MSS);
        let mut sent: Vec<(i64, u32, bool)> = (0..self.segments)
            .map(|segment| (BEGIN + i64::from(segment) * self.interval_ns, segment, false))
            .collect();
        let is_retransmitted = |segment: &u32| {
            let lost = self.network.contains(segment) || self.receiver.contains(segment);
            lost || self.late.contains(segment) && self.late_ns > 10 * MS
        };
        sent.extend((0..self.segments).filter(is_retransmitted).map(|segment| {
            (BEGIN + i64::from(segment) * self.interval_ns + 2 * self.one_way_ns + 10 * MS, segment, true)
        }));
        sent.sort_unstable();
        let (mut near, mut far, mut arrived) = (Vec::new(), Vec::new(), Vec::new());
        for (order, &(time_ns, segment, retransmit)) in sent.iter().enumerate() {
            let id = if self.identified { order as u16 % 60_000 + 1 } else { 0 };
            let bytes = |sender| packet(sender, true, [number(segment), 1], MSS, id, &[]);
            near.push((time_ns, bytes([10, 0, 0, 1]), MSS));
            let late_ns = if !retransmit && self.late.contains(&segment) { self.late_ns } else { 0 };
            let there_ns = time_ns + self.one_way_ns + late_ns;
            let mut arrive = |time_ns: i64, dropped: bool| {
                far.push((time_ns, bytes(self.sender_at_second_tap), MSS));
                if !dropped {
                    arrived.push((time_ns, segment));
                }
            };
            if retransmit || !self.network.contains(&segment) {
                arrive(there_ns, !retransmit && self.receiver.contains(&segment));
                if !retransmit && self.twice.contains(&segment) {
                    arrive(there_ns + self.twice_after_ns, false);
                }
            }
        }
        arrived.sort_unstable();
        let mut has = BTreeSet::new();
        let mut next = 0;
        for (order, (time_ns, segment)) in arrived.into_iter().enumerate() {
            let known = segment < next || !has.insert(segment);
            while has.remove(&next) {
                next += 1;
            }
            let mut sack = Vec::new();
            if known && self.sack && self.dsack {
                sack.push((number(segment), number(segment + 1)));
            }
            if self.sack && segment >= next {
                let (mut low, mut high) = (segment, segment + 1);
                while low > next && has.contains(&(low - 1)) {
                    low -= 1;
                }
                while has.contains(&high) {
                    high += 1;
                }
                sack.push((number(low), number(high)));
            }
            let id = if self.identified { order as u16 % 60_000 + 1 } else { 0 };
            let bytes = |sender| packet(sender, false, [1, number(next)], 0, id, &sack);
            far.push((time_ns + 2_000, bytes(self.sender_at_second_tap), 0));
            near.push((time_ns + 2_000 + self.one_way_ns, bytes([10, 0, 0, 1]), 0));
        }
        near.sort_by_key(|at| at.0);
        far.sort_by_key(|at| at.0);
        [near, far]
    }
}

fn analyse(taps: &[Vec<At>; 2], translated: bool) -> TraceDocument {
    taps::document(taps, translated, |(time_ns, bytes, payload)| {
        (*time_ns as u64, bytes.clone(), bytes.len() as u32 + payload)
    })
}

fn some(most: usize) -> impl Strategy<Value = BTreeSet<u32>> {
    prop::collection::btree_set(10_u32..900, 0..most)
}

/// Returns the sets without common or neighbouring segments.
fn make_disjoint(sets: [BTreeSet<u32>; 3]) -> [BTreeSet<u32>; 3] {
    let mut taken: BTreeSet<u32> = BTreeSet::new();
    sets.map(|set| {
        let free = |segment: &u32| (segment.saturating_sub(3)..segment + 4).all(|near| !taken.contains(&near));
        let set: BTreeSet<u32> = set.into_iter().filter(free).collect();
        taken.extend(&set);
        set
    })
}

proptest! {
    #![proptest_config(crate::cases(30))]

    #[test]
    fn a_clock_step_neither_hides_nor_creates_losses(
        network in some(8), receiver in some(8), at in 0.3_f64..0.7, first: bool,
        by_ns in prop_oneof![-4_000 * MS..-2 * MS, -300 * MS..-2 * MS, 2 * MS..300 * MS, 2 * MS..4_000 * MS, Just(3_600_000 * MS), Just(-3_600_000 * MS)],
    ) {
        let [network, receiver, _] = make_disjoint([network, receiver, BTreeSet::new()]);
        // Both sides of the step need enough packets to distinguish it from a queue.
        let transfer = Transfer { segments: 2_000, network, receiver, ..Transfer::default() };
        let mut taps = transfer.taps();
        let when = BEGIN + (at * 200.0) as i64 * MS;
        for packet in taps[usize::from(!first)].iter_mut().filter(|packet| packet.0 > when) {
            packet.0 += by_ns;
        }
        let document = analyse(&taps, false);
        let (flow, path) = (&document.flows[0], &document.path[0]);
        prop_assert_eq!(flow.lost_network, Some(transfer.network.len() as u64));
        prop_assert_eq!(flow.lost_receiver, Some(transfer.receiver.len() as u64));
        prop_assert_eq!((path.forward.undetermined, path.reverse.undetermined), (0, 0));
        prop_assert_eq!(path.clock_steps.len(), 1, "{:?}", path.clock_steps);
        let step_ns = if first { -by_ns } else { by_ns };
        prop_assert!((path.clock_steps[0].step_ns - step_ns).abs() < MS / 100, "{:?}", path.clock_steps);
        prop_assert_eq!((path.round_trip_ns, path.forward.delay_variation_max_ns), (Some(20_000_000), Some(0)));
    }

    #[test]
    fn receiver_host_drops_are_counted_with_proof(
        network in some(20), receiver in some(20), twice in some(40), sack: bool, dsack: bool, identified: bool,
    ) {
        let [network, receiver, twice] = make_disjoint([network, receiver, twice]);
        let transfer = Transfer { network, receiver, twice, sack, dsack, identified, ..Transfer::default() };
        let document = analyse(&transfer.taps(), false);
        let flow = &document.flows[0];
        prop_assert_eq!(flow.lost_network, Some(transfer.network.len() as u64));
        let (lost, open) = (flow.lost_receiver.expect("two taps"), flow.forward.undetermined_receiver.expect("two taps"));
        let truth = transfer.receiver.len() as u64;
        prop_assert!(lost <= truth && truth <= lost + open, "{truth} dropped, {lost} said, {open} open");
    }

    #[test]
    fn late_packets_are_not_counted_as_dropped(
        late in some(60), late_ns in MS..60 * MS, sack: bool, dsack: bool,
    ) {
        let transfer = Transfer { late, late_ns, sack, dsack, ..Transfer::default() };
        let document = analyse(&transfer.taps(), false);
        let flow = &document.flows[0];
        prop_assert_eq!((flow.lost_network, flow.lost_receiver), (Some(0), Some(0)));
    }

    #[test]
    fn copies_of_a_mirror_port_change_nothing(
        network in some(8), receiver in some(8), after_ns in 0_i64..3 * MS, mirrored in 1_usize..4, hop: bool, identified: bool,
    ) {
        // Without an IP identification, a copy must come before a retransmit could.
        let after_ns = if identified { after_ns } else { after_ns % MS };
        let [network, receiver, _] = make_disjoint([network, receiver, BTreeSet::new()]);
        let transfer = Transfer { network, receiver, identified, ..Transfer::default() };
        let taps = transfer.taps();
        let mut copied = taps.clone();
        for (tap, packets) in copied.iter_mut().enumerate().filter(|(tap, _)| mirrored >> tap & 1 == 1) {
            let copy = |(time_ns, bytes, payload): &At| {
                let mut bytes = bytes.clone();
                bytes[8] -= u8::from(hop);
                (time_ns + after_ns, bytes, *payload)
            };
            packets.extend(taps[tap].iter().map(copy));
            packets.sort_by_key(|packet| packet.0);
        }
        let (plain, mirrored_by) = (analyse(&taps, false), analyse(&copied, false));
        let figures = |document: &TraceDocument| {
            let (flow, path) = (&document.flows[0], &document.path[0]);
            let (forward, reverse) = (&flow.forward, &flow.reverse);
            (
                (flow.lost_network, flow.lost_receiver, flow.retransmits, forward.retransmits),
                (reverse.duplicate_acks, forward.duplicates, forward.packets, reverse.packets),
                (path.matched, path.forward.appeared, path.reverse.appeared, path.reverse.lost_other),
            )
        };
        prop_assert_eq!(figures(&plain), figures(&mirrored_by));
        let copies = if mirrored & 1 == 1 { taps[0].len() as u64 } else { 0 };
        prop_assert_eq!((plain.capture.copies, mirrored_by.capture.copies), (0, copies));
    }
}

#[test]
fn without_a_match_losses_are_unknown_and_nat_is_suggested() {
    let transfer = Transfer {
        network: [50, 700].into(),
        receiver: [900].into(),
        sender_at_second_tap: [203, 0, 113, 5],
        ..Transfer::default()
    };
    let taps = transfer.taps();
    let document = analyse(&taps, false);
    let (flow, path) = (&document.flows[0], &document.path[0]);
    assert_eq!((flow.lost_network, flow.lost_receiver, document.losses.len()), (None, None, 0));
    assert_eq!((path.forward.lost_data, path.forward.lost_other, path.forward.appeared), (0, 0, 0));
    let warning = document.warnings.iter().find(|warning| warning.code == "nothing-in-common").expect("a warning");
    assert!(warning.message.contains("--nat"), "{}", warning.message);
    let document = analyse(&taps, true);
    assert_eq!((document.flows[0].lost_network, document.flows[0].lost_receiver), (Some(2), Some(1)));
}

#[test]
fn swapped_captures_are_noticed_and_keep_their_losses() {
    let transfer = Transfer { network: [50, 700].into(), receiver: [900].into(), ..Transfer::default() };
    let [near, far] = transfer.taps();
    let document = analyse(&[far, near], false);
    assert_eq!(document.flows[0].lost_network, Some(2));
    assert!(document.warnings.iter().any(|warning| warning.code == "taps-swapped"), "{:?}", document.warnings);
    let document = analyse(&transfer.taps(), false);
    assert!(document.warnings.iter().all(|warning| warning.code != "taps-swapped"), "{:?}", document.warnings);
}

#[test]
fn losses_are_counted_in_both_directions() {
    let transfer = Transfer { network: [50, 700].into(), receiver: [900].into(), ..Transfer::default() };
    let document = analyse(&transfer.taps(), false);
    let flow = &document.flows[0];
    assert_eq!((flow.forward.lost_network, flow.forward.lost_receiver), (Some(2), Some(1)));
    assert_eq!((flow.reverse.lost_network, flow.reverse.lost_receiver), (Some(0), None));
    assert!(flow.forward.goodput_bps.is_some());
    // Each loss has the number of the packet's frame at the last tap that saw it.
    let frames: Vec<u64> = document.losses.iter().map(|loss| loss.frame).collect();
    assert!(frames.iter().all(|&frame| frame > 0), "{frames:?}");
}
