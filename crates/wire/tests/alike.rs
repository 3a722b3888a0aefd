//! Header prediction gives the same results as dissection.

use landspeed_wire::{HeaderTemplate, LinkType, Network, TcpHeader, plain};
use proptest::prelude::*;

/// Two segments of the same direction of a flow; the first is plain.
fn pair() -> impl Strategy<Value = [Vec<u8>; 2]> {
    let options = prop_oneof![
        Just(Vec::new()),
        any::<[u8; 8]>().prop_map(|values| [&[1, 1, 8, 10][..], &values].concat()),
        (any::<[u8; 8]>(), prop::collection::vec(any::<[u8; 8]>(), 1..4)).prop_map(|(values, blocks)| {
            let length = 2 + 8 * blocks.len() as u8;
            [&[1, 1, 8, 10][..], &values, &[1, 1, 5, length], &blocks.concat()].concat()
        }),
        prop::collection::vec(any::<u8>(), 0..10).prop_map(|words| words.repeat(4)),
    ];
    let own = (any::<[u8; 14]>(), options, 0_u16..1_500, 0_usize..20);
    let frame = |ends: &[u8], (fields, options, payload, cut): ([u8; 14], Vec<u8>, u16, usize)| {
        let total = 40 + options.len() as u16 + payload;
        let mut frame = [&ends[..12], &[8, 0, 0x45, fields[0]], &total.to_be_bytes()].concat();
        frame.extend([fields[1], fields[2], 0x40, 0, 64, 6, 0, 0]);
        frame.extend(&ends[12..]);
        frame.extend(&fields[3..11]);
        frame.extend([((20 + options.len()) as u8 / 4) << 4, if fields[11] < 200 { 0x10 } else { fields[11] }]);
        frame.extend(&fields[12..]);
        frame.extend([0; 4]);
        frame.extend(options);
        frame.truncate(frame.len().saturating_sub(cut.saturating_sub(10)));
        frame
    };
    (any::<[u8; 24]>(), own.clone(), own).prop_map(move |(ends, one, two)| [frame(&ends, one), frame(&ends, two)])
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn header_prediction_agrees_with_dissection(frames in pair(), damage: Option<(prop::sample::Index, u8)>) {
        let [one, mut two] = frames;
        if let Some((at, byte)) = damage {
            let at = at.index(two.len());
            two[at] = byte;
        }
        let Some(alike) = HeaderTemplate::of(LinkType::ETHERNET, &one) else { return Ok(()) };
        prop_assert!(alike.fast_header(LinkType::RAW, &two).is_none());
        let Some(fast_header) = alike.fast_header(LinkType::ETHERNET, &two) else { return Ok(()) };
        let (mut networks, mut segment) = ([Network::default(); 2], TcpHeader::default());
        prop_assert!(plain(LinkType::ETHERNET, &two, &mut networks[1], &mut segment));
        let mut first = TcpHeader::default();
        if plain(LinkType::ETHERNET, &one, &mut networks[0], &mut first) {
            prop_assert_eq!((networks[0].source, networks[0].destination), (networks[1].source, networks[1].destination));
            prop_assert_eq!((first.source, first.destination), (segment.source, segment.destination));
        }
        prop_assert_eq!(fast_header.identification, networks[1].identification);
        prop_assert_eq!((fast_header.sequence, fast_header.acknowledgement), (segment.sequence, segment.acknowledgement));
        prop_assert_eq!((fast_header.window, fast_header.payload), (segment.window, segment.payload));
        prop_assert_eq!(segment.flags.0 & 0x17, 0x10);
        let options = segment.options;
        prop_assert_eq!(fast_header.timestamp, options.timestamps.map(|(value, _)| value));
        prop_assert_eq!(fast_header.sack(), options.sack);
        prop_assert_eq!((options.mss, options.window_scale, options.sack_permitted, options.incomplete), (None, None, false, false));
    }
}

#[test]
fn header_prediction_compares_every_flow_byte() {
    let mut frame = [7; 54];
    frame[12..24].copy_from_slice(&[0x08, 0x00, 0x45, 3, 0, 40, 0, 1, 0x40, 0, 64, 6]);
    frame[46..48].copy_from_slice(&[0x50, 0x10]);
    let alike = HeaderTemplate::of(LinkType::ETHERNET, &frame).expect("it is plain");
    let recognised = |at: usize| {
        let mut other = frame;
        other[at] ^= 1;
        alike.fast_header(LinkType::ETHERNET, &other).is_some()
    };
    let ends: Vec<usize> = (0..54).filter(|&at| !recognised(at)).collect();
    // Addresses and ports, IP version, header lengths, protocol, fragment fields, TTL, TCP flags.
    let expected: Vec<usize> = (0..15).chain(20..24).chain(26..38).chain(46..48).collect();
    assert_eq!(ends, expected);
}
