//! Losses between two taps, located packet by packet for any clock offset.

use std::collections::BTreeSet;

use crate::taps;
use etherparse::{PacketBuilder, TcpOptionElement};
use landspeed_model::{LossPlace, TraceDocument, TraceLoss};
use proptest::prelude::*;

const MSS: u32 = 1000;
const MS: u64 = 1_000_000;
/// Start of both captures by the first tap's clock.
const BEGIN: u64 = 1_000_000 * MS;

/// A packet at one tap.
#[derive(Clone)]
struct At {
    time_ns: u64,
    bytes: Vec<u8>,
    length: u32,
}

impl At {
    /// Returns the time, the captured headers, and the length.
    fn captured(&self) -> (u64, Vec<u8>, u32) {
        (self.time_ns, self.bytes[..self.bytes.len().min(80)].to_vec(), self.length)
    }
}

fn packet(forward: bool, sequence: u32, ack: u32, length: u32, identification: u16, translated: bool) -> Vec<u8> {
    reporting(forward, sequence, ack, length, identification, translated, None)
}

/// Returns a packet, with a DSACK if `twice` is given: the duplicate range, and the SACKed range around it.
fn reporting(
    forward: bool,
    sequence: u32,
    ack: u32,
    length: u32,
    identification: u16,
    translated: bool,
    twice: Option<[(u32, u32); 2]>,
) -> Vec<u8> {
    let (near, far) = if translated { ([192, 0, 2, 9], 33_333) } else { ([10, 0, 0, 1], 40_000) };
    let there = ([10, 0, 0, 2], 5_001);
    let (from, to) = if forward { ((near, far), there) } else { (there, (near, far)) };
    let header = etherparse::Ipv4Header {
        identification,
        source: from.0,
        destination: to.0,
        time_to_live: 64,
        protocol: 6.into(),
        ..Default::default()
    };
    let mut frame = Vec::new();
    let report = |[first, second]: [(u32, u32); 2]| {
        TcpOptionElement::SelectiveAcknowledgement(first, [Some(second), None, None])
    };
    let options: Vec<_> = twice.map(report).into_iter().collect();
    PacketBuilder::ip(etherparse::IpHeaders::Ipv4(header, etherparse::Ipv4Extensions::default()))
        .tcp(from.1, to.1, sequence, 1000)
        .ack(ack)
        .options(&options)
        .expect("they fit")
        .write(&mut frame, &vec![0; length as usize])
        .expect("memory");
    frame
}

/// A transfer of some segments, and its events.
#[derive(Debug, Clone)]
struct TransferScenario {
    segments: u32,
    /// Lost between the taps.
    network: Vec<u32>,
    /// Lost after the second tap.
    receiver: Vec<u32>,
    /// Retransmitted although they had arrived.
    spurious: Vec<u32>,
    /// Overtaken by the next two.
    late: Vec<u32>,
    /// ACKs lost between the taps.
    acks: Vec<u32>,
    offset_ns: i64,
    one_way_ns: u64,
    first: u32,
    identified: bool,
    translated: bool,
}

impl TransferScenario {
    /// Returns the packets at both taps, in the order of each.
    fn taps(&self) -> [Vec<At>; 2] {
        let (mut near, mut far) = (Vec::new(), Vec::new());
        let mut identification = 0_u16;
        let far_clock = |time_ns: u64| time_ns.wrapping_add_signed(self.offset_ns);
        let mut data = |segment: u32, time_ns: u64, lost: bool, late: bool| {
            identification = identification.wrapping_add(1).max(1);
            let id = if self.identified { identification } else { 0 };
            let sequence = self.first.wrapping_add(segment * MSS);
            let at = |time_ns, translated| At {
                time_ns,
                bytes: packet(true, sequence, 1, MSS, id, translated),
                length: MSS + 40,
            };
            near.push(at(time_ns, false));
            if !lost {
                far.push(at(far_clock(time_ns + self.one_way_ns + if late { 25_000 } else { 0 }), self.translated));
            }
        };
        for segment in 0..self.segments {
            let time_ns = BEGIN + u64::from(segment) * 10_000;
            data(segment, time_ns, self.network.contains(&segment), self.late.contains(&segment));
        }
        // Each loss is retransmitted a second later.
        let again = self.network.iter().chain(&self.receiver).chain(&self.spurious);
        for (number, &segment) in again.enumerate() {
            data(segment, BEGIN + 1000 * MS + number as u64 * 10_000, false, false);
        }
        // The receiver reports duplicates at once.
        let number = |segment: u32| self.first.wrapping_add(segment * MSS);
        for (count, &segment) in self.spurious.iter().enumerate() {
            let time_ns = BEGIN + 1900 * MS + count as u64 * 10_000;
            let twice = Some([(number(segment), number(segment + 1)), (number(0), number(self.segments))]);
            let at = |time_ns, translated| At {
                time_ns,
                bytes: reporting(false, 1, self.first, 0, 0, translated, twice),
                length: 60,
            };
            far.push(at(far_clock(time_ns), self.translated));
            near.push(at(time_ns + self.one_way_ns, false));
        }
        for number in 0..self.segments {
            let ack = self.first.wrapping_add((number + 1) * MSS);
            let time_ns = BEGIN + 2000 * MS + u64::from(number) * 10_000;
            let at = |time_ns, translated| At { time_ns, bytes: packet(false, 1, ack, 0, 0, translated), length: 40 };
            far.push(at(far_clock(time_ns), self.translated));
            if !self.acks.contains(&number) {
                near.push(at(time_ns + self.one_way_ns, false));
            }
        }
        near.sort_by_key(|at| at.time_ns);
        far.sort_by_key(|at| at.time_ns);
        [near, far]
    }

    fn document(&self) -> TraceDocument {
        taps::document(&self.taps(), self.translated, At::captured)
    }
}

/// Returns whether the next two segments overtake a delayed one: they must arrive, and on time.
fn is_overtaken(segment: u32, network: &BTreeSet<u32>, late: &BTreeSet<u32>) -> bool {
    let next = [segment + 1, segment + 2];
    segment < 197
        && !network.contains(&segment)
        && next.iter().all(|next| !network.contains(next) && !late.contains(next))
}

fn story() -> impl Strategy<Value = TransferScenario> {
    let some = || prop::collection::btree_set(0_u32..200, 0..12);
    let sets = (some(), some(), some(), some(), some());
    let rest =
        (-2_000_000_000_000_i64..2_000_000_000_000, 1_000_u64..80 * MS, any::<u32>(), any::<bool>(), any::<bool>());
    (sets, rest).prop_map(
        |((network, receiver, spurious, late, acks), (offset_ns, one_way_ns, first, identified, translated))| {
            TransferScenario {
                segments: 200,
                spurious: spurious
                    .iter()
                    .copied()
                    .filter(|u| !network.contains(u) && !receiver.contains(u))
                    .collect(),
                receiver: receiver.difference(&network).copied().collect(),
                late: late.iter().copied().filter(|&segment| is_overtaken(segment, &network, &late)).collect(),
                network: network.into_iter().collect(),
                acks: acks.into_iter().collect(),
                offset_ns: offset_ns.max(-(BEGIN as i64) / 2),
                one_way_ns,
                first,
                identified,
                translated,
            }
        },
    )
}

proptest! {
    #[test]
    fn each_loss_is_located(story in story()) {
        let document = story.document();
        let path = &document.path[0];
        // Losses before the first packet at the second tap are undetermined: its capture may have begun later.
        let early = (0..200).take_while(|segment| story.network.contains(segment)).count();
        prop_assert_eq!(path.forward.lost_data, (story.network.len() - early) as u64);
        // Lost ACKs that no other ACK follows are undetermined at the first tap.
        let open = (0..200).rev().take_while(|number| story.acks.contains(number)).count();
        prop_assert_eq!(path.reverse.lost_other, (story.acks.len() - open) as u64);
        prop_assert_eq!((path.forward.undetermined, path.reverse.undetermined), (early as u64, open as u64));
        prop_assert_eq!((path.forward.appeared, path.reverse.appeared, path.given_up), (0, 0, 0));
        prop_assert_eq!(path.round_trip_ns, Some(2 * story.one_way_ns));
        prop_assert_eq!(path.clock_offset_ns, Some(story.offset_ns));
        let flow = &document.flows[0];
        prop_assert_eq!(flow.lost_network, Some((story.network.len() - early) as u64));
        prop_assert_eq!(flow.lost_receiver, Some(story.receiver.len() as u64));
        // Compare packet by packet.
        let listed = |place| {
            let of = document.losses.iter().filter(|loss| loss.place == place && loss.payload_bytes > 0);
            let number = |loss: &TraceLoss| loss.sequence.map(|sequence| sequence.wrapping_sub(story.first) / MSS);
            of.filter_map(number).collect::<BTreeSet<u32>>()
        };
        prop_assert_eq!(listed(LossPlace::Network), story.network[early..].iter().copied().collect::<BTreeSet<u32>>());
        prop_assert_eq!(listed(LossPlace::Receiver), story.receiver.iter().copied().collect::<BTreeSet<u32>>());
        if story.late.is_empty() {
            prop_assert_eq!((path.forward.reordered, path.forward.delay_variation_max_ns), (0, Some(0)));
        } else {
            prop_assert!(path.forward.reordered > 0);
            prop_assert_eq!(path.forward.delay_variation_max_ns, Some(25_000));
        }
    }
}

#[test]
fn captures_of_different_flows_do_not_match() {
    let story = TransferScenario {
        segments: 50,
        network: Vec::new(),
        receiver: Vec::new(),
        spurious: Vec::new(),
        late: Vec::new(),
        acks: Vec::new(),
        offset_ns: 0,
        one_way_ns: MS,
        first: 1,
        identified: true,
        translated: false,
    };
    let [near, _] = story.taps();
    let [_, far] = TransferScenario { first: 900_000_000, ..story }.taps();
    let document = taps::document(&[near, far], false, At::captured);
    assert_eq!(document.path[0].matched, 0);
    assert!(document.warnings.iter().any(|warning| warning.code == "nothing-in-common"));
}

/// Returns a datagram over IPv6, which has no identification.
fn datagram(number: u32, length: usize) -> Vec<u8> {
    let mut payload = vec![0; length];
    payload[..4].copy_from_slice(&number.to_be_bytes());
    let (from, to) =
        ([0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1], [0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2]);
    let mut frame = Vec::new();
    PacketBuilder::ipv6(from, to, 64).udp(40_000, 5_001).write(&mut frame, &payload).expect("memory");
    frame
}

/// Returns the document of two taps, from their packets with timestamps.
fn document_of(taps: &[Vec<(u64, Vec<u8>)>; 2]) -> TraceDocument {
    taps::document(taps, false, |(time_ns, bytes)| {
        (*time_ns, bytes[..bytes.len().min(80)].to_vec(), bytes.len() as u32)
    })
}

proptest! {
    #[test]
    fn datagrams_without_identification_match_by_payload(
        lost in prop::collection::btree_set(1_u32..290, 0..20), offset_ns in -1_000_000_000_i64..1_000_000_000,
        jitter_ns in 0_u64..40_000, length in 8_usize..1400,
    ) {
        let mut near = Vec::new();
        let mut far = Vec::new();
        for number in 0..300_u32 {
            let time_ns = BEGIN + u64::from(number) * 10_000;
            near.push((time_ns, datagram(number, length)));
            if !lost.contains(&number) {
                let late = u64::from(number).wrapping_mul(0x9e37_79b9_7f4a_7c15) % (jitter_ns + 1);
                far.push(((time_ns + MS + late).wrapping_add_signed(offset_ns), datagram(number, length)));
            }
        }
        far.sort_by_key(|(time_ns, _)| *time_ns);
        let document = document_of(&[near, far]);
        let forward = &document.path[0].forward;
        prop_assert_eq!((forward.matched, forward.lost_data), (300 - lost.len() as u64, lost.len() as u64));
        prop_assert_eq!(document.flows[0].lost_network, Some(lost.len() as u64));
        let of = document.losses.iter().map(|loss| loss.time_ns as u32 / 10_000);
        prop_assert_eq!(of.collect::<BTreeSet<u32>>(), lost);
    }

    #[test]
    fn a_lost_tail_counts_only_if_the_other_tap_continued(
        tail in 1_u32..40, head in 0_u32..40, on_ns in 1_u64..20 * MS, one_way_ns in 1_000_u64..2 * MS, later: bool,
    ) {
        // The second tap begins after the head, and the tail is lost. Another flow continues for a while, or none
        // does.
        let first = datagram(0, 200);
        let mut near = vec![(BEGIN - 5 * MS, first)];
        let mut far = Vec::new();
        for number in 0..300_u32 {
            let time_ns = BEGIN + u64::from(number) * 10_000;
            near.push((time_ns, datagram(1 + number, 200)));
            if number >= head && number < 300 - tail {
                far.push((time_ns + one_way_ns, datagram(1 + number, 200)));
            }
        }
        let last_ns = BEGIN + 299 * 10_000 + one_way_ns;
        if later {
            let mut other = Vec::new();
            let addresses = ([10, 0, 0, 7], [10, 0, 0, 8]);
            PacketBuilder::ipv4(addresses.0, addresses.1, 64).udp(9, 9).write(&mut other, &[1; 40]).expect("memory");
            far.push((last_ns + on_ns, other));
        }
        let document = document_of(&[near, far]);
        let (forward, reverse) = (&document.path[0].forward, &document.path[0].reverse);
        prop_assert_eq!(forward.matched, u64::from(300 - tail - head));
        let (mut lost, mut undetermined) = (0, u64::from(head) + 1);
        *(if later { &mut lost } else { &mut undetermined }) += u64::from(tail);
        // The packet of the other flow came after the first capture ended.
        undetermined += u64::from(later);
        prop_assert_eq!((forward.lost_data, forward.undetermined), (lost, undetermined));
        prop_assert_eq!(document.losses.len() as u64, lost);
        prop_assert_eq!(reverse.lost_data + reverse.lost_other, 0);
    }
}
