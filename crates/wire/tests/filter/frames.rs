//! Strategies for frames with few addresses, ports and tags, so that random expressions match some of them.

use landspeed_wire::LinkType;
use proptest::prelude::*;
use proptest::sample::select;

use crate::filter::machine::FilterInput;

pub static HOSTS4: [[u8; 4]; 4] = [[10, 0, 0, 1], [10, 0, 0, 2], [10, 1, 2, 3], [192, 0, 2, 1]];
pub static HOSTS6: [&str; 3] = ["2001:db8::1", "2001:db8:0:1::2", "fe80::1"];
pub static PORTS: [u16; 5] = [22, 80, 443, 5201, 5202];
pub static TAGS: [u16; 3] = [5, 6, 0x2005];

fn host6() -> impl Strategy<Value = [u8; 16]> {
    select(&HOSTS6[..]).prop_map(|host| host.parse::<std::net::Ipv6Addr>().expect("an address").octets())
}

/// A transport header that starts with ports.
fn transport() -> impl Strategy<Value = Vec<u8>> {
    (select(&PORTS[..]), select(&PORTS[..])).prop_map(|(source, destination)| {
        let mut header = [source.to_be_bytes(), destination.to_be_bytes()].concat();
        header.resize(20, 0x11);
        header
    })
}

/// An EtherType and the packet after it.
fn packet() -> impl Strategy<Value = (u16, Vec<u8>)> {
    static PROTOCOLS: [u8; 7] = [6, 17, 132, 1, 58, 44, 47];
    let four = (select(&HOSTS4[..]), select(&HOSTS4[..]), select(&PROTOCOLS[..]), 5_u8..=15, 0_u8..6, transport())
        .prop_map(|(source, destination, protocol, words, fragment, transport)| {
            let mut header = vec![0x40 | words, 0, 0, 0, 0, 0, 0, 0, 64, protocol, 0, 0];
            // Mostly unfragmented; or with DF set, a first fragment, or two later ones.
            [header[6], header[7]] = [[0, 0], [0x40, 0], [0x20, 0], [0x20, 1], [0x10, 0], [0, 0]][fragment as usize];
            header.extend(source.iter().chain(&destination));
            header.resize(usize::from(words) * 4, 1);
            header.extend(transport);
            (0x0800, header)
        });
    let six = (host6(), host6(), select(&PROTOCOLS[..]), select(&PROTOCOLS[..]), transport()).prop_map(
        |(source, destination, next, inner, transport)| {
            let mut header = vec![0x60, 0, 0, 0, 0, 0, next, 64];
            header.extend(source.iter().chain(&destination));
            if next == 44 {
                header.extend([inner, 0, 0, 0, 0, 0, 0, 1]);
            }
            header.extend(transport);
            (0x86dd, header)
        },
    );
    let arp = (select(&HOSTS4[..]), select(&HOSTS4[..]), any::<bool>()).prop_map(|(sender, target, reverse)| {
        let mut body = vec![0, 1, 8, 0, 6, 4, 0, 1, 2, 0, 0, 0, 0, 1];
        body.extend(sender);
        body.extend([0; 6]);
        body.extend(target);
        (if reverse { 0x8035 } else { 0x0806 }, body)
    });
    let other = (any::<u16>(), prop::collection::vec(any::<u8>(), 0..60));
    prop_oneof![6 => four, 4 => six, 2 => arp, 1 => other]
}

/// A random frame; one in five is truncated.
pub fn seen(link: LinkType) -> impl Strategy<Value = FilterInput> {
    let tag = || (select(&[0x8100_u16, 0x88a8, 0x9100][..]), select(&TAGS[..]));
    let in_frame = prop_oneof![3 => Just(vec![]), 2 => prop::collection::vec(tag(), 1..3)];
    let taken_out = prop::option::weighted(0.3, select(&TAGS[..]));
    let cut = prop::option::weighted(0.2, 0..90_usize);
    (packet(), in_frame, taken_out, any::<bool>(), cut).prop_map(move |((kind, packet), tags, tag, outgoing, cut)| {
        let mut frame = Vec::new();
        if link == LinkType::ETHERNET {
            frame.extend([2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2]);
            for (kind, tag) in tags {
                frame.extend([kind.to_be_bytes(), tag.to_be_bytes()].concat());
            }
            frame.extend(kind.to_be_bytes());
        }
        frame.extend(packet);
        let tag = tag.filter(|_| link == LinkType::ETHERNET);
        let full = frame.len();
        frame.truncate(cut.unwrap_or(full));
        let whole = frame.len() == full && matches!(kind, 0x0800 | 0x86dd | 0x0806 | 0x8035);
        FilterInput { frame, tag, outgoing, whole }
    })
}
