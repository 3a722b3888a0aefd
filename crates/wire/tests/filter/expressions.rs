//! Strategies for random expressions of the subset.

use landspeed_wire::LinkType;
use proptest::prelude::*;
use proptest::sample::select;

use crate::filter::frames::{HOSTS4, HOSTS6, PORTS};

fn one_of(words: &'static [&'static str]) -> BoxedStrategy<String> {
    select(words).prop_map(str::to_owned).boxed()
}

/// Values of one kind, sometimes negated or in a list.
fn values(value: BoxedStrategy<String>) -> impl Strategy<Value = String> {
    let listed = (value.clone(), select(&["or", "and", "||", "&&"][..]), value.clone());
    prop_oneof![
        6 => value.clone(),
        1 => value.prop_map(|value| format!("not {value}")),
        1 => listed.clone().prop_map(|(one, joint, other)| format!("{one} {joint} {other}")),
        1 => listed.prop_map(|(one, joint, other)| format!("({one} {joint} not {other})")),
    ]
}

fn primitive(link: LinkType, live: bool) -> BoxedStrategy<String> {
    let side = || one_of(&["", "", "src ", "dst ", "src or dst ", "src and dst ", "dst or src "]);
    let host4 = select(&HOSTS4[..]).prop_map(|[a, b, c, d]| format!("{a}.{b}.{c}.{d}")).boxed();
    let host = prop_oneof![host4.clone(), one_of(&HOSTS6)].boxed();
    let net = one_of(&[
        "10",
        "10.0",
        "10.0.0",
        "10.0.0.0/8",
        "10.0/15",
        "10.0.0.0 mask 255.254.0.0",
        "0.0.0.0/0",
        "192.0.2.1/32",
        "2001:db8::/32",
        "2001:db8::/63",
        "2001:db8::2/127",
        "::/0",
        "fe80::1",
    ]);
    let port = select(&PORTS[..]).prop_map(|port| port.to_string()).boxed();
    let range = one_of(&["80-443", "5201-5202", "443-22", "80-80", "0-65535"]);
    let transport = || one_of(&["", "", "tcp ", "udp ", "sctp "]);
    let frames = prop_oneof![
        3 => one_of(&["ip", "ip6", "arp", "rarp", "tcp", "udp", "sctp", "icmp", "icmp6"]),
        3 => (side(), values(host)).prop_map(|(side, host)| format!("{side}host {host}")),
        1 => (one_of(&["ip ", "arp ", "rarp ", ""]), side(), values(host4))
            .prop_map(|(within, side, host)| format!("{within}{side}host {host}")),
        2 => (side(), net).prop_map(|(side, net)| format!("{side}net {net}")),
        4 => (transport(), side(), values(port)).prop_map(|(within, side, port)| format!("{within}{side}port {port}")),
        2 => (transport(), side(), values(range)).prop_map(|(within, side, range)| format!("{within}{side}portrange {range}")),
    ];
    if !live || link != LinkType::ETHERNET {
        return frames.boxed();
    }
    prop_oneof![3 => frames, 2 => one_of(&["vlan", "vlan 5", "vlan 6", "inbound", "outbound"])].boxed()
}

/// Random expressions; `live` adds tags and direction, which only a live capture has.
pub fn expression(link: LinkType, live: bool) -> impl Strategy<Value = String> {
    primitive(link, live).prop_recursive(4, 12, 2, |inner| {
        let joint = select(&[" and ", " or ", " && ", "||"][..]);
        prop_oneof![
            4 => (inner.clone(), joint, inner.clone()).prop_map(|(one, joint, other)| format!("{one}{joint}{other}")),
            1 => inner.clone().prop_map(|inner| format!("not ({inner})")),
            1 => inner.clone().prop_map(|inner| format!("!{inner}")),
            2 => inner.prop_map(|inner| format!("({inner})")),
        ]
    })
}
