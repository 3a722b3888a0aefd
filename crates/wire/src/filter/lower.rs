//! Conversion of an expression to a graph of tests, in the order of tcpdump's program.
//!
//! Offsets depend on preceding VLAN tags. The kernel removes the outermost tag of a received frame and passes
//! it as metadata; on transmission it may be in the frame. So everything after the first `vlan` exists twice,
//! for a removed tag and for one in the frame, and a node has two entry points.

use super::graph::{ACCEPT, Graph, Load, NodeId, REJECT, Test};
use super::parse::{Expression, Primitive, Protocol, Side};
use super::{OUTGOING, PACKET_TYPE, VLAN_TAG, VLAN_TAG_PRESENT, op};
use crate::LinkType;
use crate::link::{IPV4, IPV6};

const ARP: u16 = 0x0806;
const RARP: u16 = 0x8035;
/// EtherTypes of VLAN tags: 802.1Q, 802.1ad, and its pre-standard value.
const TAGS: [u16; 3] = [0x8100, 0x88a8, 0x9100];
/// Length of a tag in a frame, bytes.
const TAG_BYTES: u32 = 4;
/// VLAN identifier in a tag (mask).
const TAG_ID: u32 = 0x0fff;

const ICMP: u8 = 1;
const TCP: u8 = 6;
const UDP: u8 = 17;
/// Next-header value of the IPv6 fragment header.
const FRAGMENT6: u8 = 44;
const ICMP6: u8 = 58;
const SCTP: u8 = 132;

/// Entry points: without an outermost tag in the frame (removed, or no `vlan` yet), and with one.
type Entries = [NodeId; 2];

/// Adds an expression to the graph; returns its first node.
pub fn lower(expression: &Expression, link: LinkType, graph: &mut Graph) -> NodeId {
    let mut lowering = Lowering { graph, ethernet: link == LinkType::ETHERNET };
    lowering.expression(expression, [ACCEPT; 2], [REJECT; 2])[0]
}

struct Lowering<'a> {
    graph: &'a mut Graph,
    ethernet: bool,
}

impl Lowering<'_> {
    fn expression(&mut self, expression: &Expression, yes: Entries, no: Entries) -> Entries {
        match expression {
            Expression::And(left, right) => {
                let right = self.expression(right, yes, no);
                self.expression(left, right, no)
            }
            Expression::Or(left, right) => {
                let right = self.expression(right, yes, no);
                self.expression(left, yes, right)
            }
            Expression::Not(inner) => self.expression(inner, no, yes),
            Expression::Primitive(Primitive::Vlan(id), 0) => [self.first_tag(*id, yes, no); 2],
            Expression::Primitive(primitive, tags) => [0, 1].map(|entry| {
                // The outermost tag counts only if it is in the frame.
                let in_frame = tags.saturating_sub(1) + if *tags > 0 { entry } else { 0 };
                let (yes, no) = (yes[entry as usize], no[entry as usize]);
                Framed { graph: self.graph, ethernet: self.ethernet, tags: in_frame * TAG_BYTES }
                    .primitive(primitive, yes, no)
            }),
        }
    }

    /// Tests the outermost tag, in the metadata or in the frame.
    fn first_tag(&mut self, id: Option<u16>, yes: Entries, no: Entries) -> NodeId {
        let in_frame = Framed { graph: self.graph, ethernet: true, tags: 0 }.tag(id, yes[1], no[1]);
        let taken_out = match id {
            None => yes[0],
            Some(id) => {
                let tag = word(VLAN_TAG, TAG_ID);
                self.graph.node(equal(tag, id.into()), yes[0], no[0])
            }
        };
        self.graph.node(equal(byte(VLAN_TAG_PRESENT), 1), taken_out, in_frame)
    }
}

/// Tests of frames with `tags` bytes of VLAN tags before the EtherType.
struct Framed<'a> {
    graph: &'a mut Graph,
    ethernet: bool,
    tags: u32,
}

impl Framed<'_> {
    fn primitive(&mut self, primitive: &Primitive, yes: NodeId, no: NodeId) -> NodeId {
        match *primitive {
            Primitive::Protocol(protocol) => self.protocol(protocol, yes, no),
            Primitive::Network4 { within, side, address, mask } => {
                self.network4(within, side, (address, mask), yes, no)
            }
            Primitive::Network6 { side, address, mask } => self.network6(side, (address, mask), yes, no),
            Primitive::Ports { within, side, first, last } => self.ports(within, side, (first, last), yes, no),
            Primitive::Vlan(id) => self.tag(id, yes, no),
            Primitive::Outbound => self.graph.node(equal(half(PACKET_TYPE), OUTGOING), yes, no),
        }
    }

    /// Tests for a VLAN tag in the frame.
    fn tag(&mut self, id: Option<u16>, yes: NodeId, no: NodeId) -> NodeId {
        let tagged = match id {
            None => yes,
            Some(id) => {
                let load = Load { mask: TAG_ID, ..half(14 + self.tags) };
                self.graph.node(equal(load, id.into()), yes, no)
            }
        };
        TAGS.iter().rev().fold(no, |no, kind| self.ethertype(*kind, tagged, no))
    }

    /// Tests the EtherType; without Ethernet, the IP version.
    fn ethertype(&mut self, kind: u16, yes: NodeId, no: NodeId) -> NodeId {
        let test = match (self.ethernet, kind) {
            (true, _) => equal(half(12 + self.tags), kind.into()),
            (false, IPV4) => equal(Load { mask: 0xf0, ..byte(0) }, 0x40),
            (false, IPV6) => equal(Load { mask: 0xf0, ..byte(0) }, 0x60),
            (false, _) => return no,
        };
        self.graph.node(test, yes, no)
    }

    /// Offset of the network header.
    fn network(&self) -> u32 {
        if self.ethernet { 14 + self.tags } else { 0 }
    }

    fn ip_protocol(&mut self, number: u8, yes: NodeId, no: NodeId) -> NodeId {
        let load = byte(self.network() + 9);
        self.graph.node(equal(load, number.into()), yes, no)
    }

    fn ip6_next_header(&mut self, number: u8, yes: NodeId, no: NodeId) -> NodeId {
        let load = byte(self.network() + 6);
        self.graph.node(equal(load, number.into()), yes, no)
    }

    fn protocol(&mut self, protocol: Protocol, yes: NodeId, no: NodeId) -> NodeId {
        let (over4, over6) = match protocol {
            Protocol::Ip => return self.ethertype(IPV4, yes, no),
            Protocol::Ip6 => return self.ethertype(IPV6, yes, no),
            Protocol::Arp => return self.ethertype(ARP, yes, no),
            Protocol::Rarp => return self.ethertype(RARP, yes, no),
            Protocol::Tcp => (Some(TCP), Some(TCP)),
            Protocol::Udp => (Some(UDP), Some(UDP)),
            Protocol::Sctp => (Some(SCTP), Some(SCTP)),
            Protocol::Icmp => (Some(ICMP), None),
            Protocol::Icmp6 => (None, Some(ICMP6)),
        };
        let mut no = no;
        if let Some(number) = over6 {
            let load = byte(self.network() + 40);
            let behind_fragment = self.graph.node(equal(load, number.into()), yes, no);
            let fragment = self.ip6_next_header(FRAGMENT6, behind_fragment, no);
            let direct = self.ip6_next_header(number, yes, fragment);
            no = self.ethertype(IPV6, direct, no);
        }
        match over4 {
            None => no,
            Some(number) => {
                let found = self.ip_protocol(number, yes, no);
                self.ethertype(IPV4, found, no)
            }
        }
    }

    /// Combines tests of source and destination according to `side`; `test` adds the nodes for one of them.
    fn sides(
        &mut self,
        side: Side,
        (yes, no): (NodeId, NodeId),
        mut test: impl FnMut(&mut Self, bool, NodeId, NodeId) -> NodeId,
    ) -> NodeId {
        match side {
            Side::Source => test(self, true, yes, no),
            Side::Destination => test(self, false, yes, no),
            Side::Either => {
                let destination = test(self, false, yes, no);
                test(self, true, yes, destination)
            }
            Side::Both => {
                let destination = test(self, false, yes, no);
                test(self, true, destination, no)
            }
        }
    }

    fn network4(
        &mut self,
        within: Option<Protocol>,
        side: Side,
        (address, mask): (u32, u32),
        yes: NodeId,
        no: NodeId,
    ) -> NodeId {
        let mut no = no;
        for (protocol, kind, source, destination) in
            [(Protocol::Rarp, RARP, 14, 24), (Protocol::Arp, ARP, 14, 24), (Protocol::Ip, IPV4, 12, 16)]
        {
            if within.is_some_and(|within| within != protocol) {
                continue;
            }
            let begin = self.network();
            let found = self.sides(side, (yes, no), |framed, is_source, yes, no| {
                let offset = begin + if is_source { source } else { destination };
                framed.graph.node(equal(word(offset, mask), address), yes, no)
            });
            no = self.ethertype(kind, found, no);
        }
        no
    }

    fn network6(&mut self, side: Side, (address, mask): (u128, u128), yes: NodeId, no: NodeId) -> NodeId {
        let begin = self.network();
        let found = self.sides(side, (yes, no), |framed, is_source, yes, no| {
            let offset = begin + if is_source { 8 } else { 24 };
            (0..4).rev().fold(yes, |yes, at| {
                let part = |value: u128| (value >> (96 - 32 * at)) as u32;
                let load = word(offset + 4 * at, part(mask));
                framed.graph.node(equal(load, part(address)), yes, no)
            })
        });
        self.ethertype(IPV6, found, no)
    }

    /// Tests ports, IPv6 first as in tcpdump; packets with IPv6 extension headers and later IPv4 fragments have
    /// none.
    fn ports(
        &mut self,
        within: Option<Protocol>,
        side: Side,
        (first, last): (u16, u16),
        yes: NodeId,
        no: NodeId,
    ) -> NodeId {
        let numbers: &[u8] = match within {
            Some(Protocol::Tcp) => &[TCP],
            Some(Protocol::Udp) => &[UDP],
            Some(_) => &[SCTP],
            None => &[UDP, TCP, SCTP],
        };
        let begin = self.network();
        let mut over4 = no;
        for number in numbers {
            let ports = self.sides(side, (yes, over4), |framed, is_source, yes, no| {
                let offset = begin + if is_source { 0 } else { 2 };
                framed.port(Load { behind_ipv4: Some(begin), ..half(offset) }, (first, last), yes, no)
            });
            let later_fragment = Test { load: half(begin + 6), comparison: op::IF_ANY_BIT, k: 0x1fff };
            let whole = self.graph.node(later_fragment, over4, ports);
            over4 = self.ip_protocol(*number, whole, over4);
        }
        let no = self.ethertype(IPV4, over4, no);
        let mut over6 = no;
        for number in numbers {
            let ports = self.sides(side, (yes, over6), |framed, is_source, yes, no| {
                let offset = begin + if is_source { 40 } else { 42 };
                framed.port(half(offset), (first, last), yes, no)
            });
            over6 = self.ip6_next_header(*number, ports, over6);
        }
        self.ethertype(IPV6, over6, no)
    }

    fn port(&mut self, load: Load, (first, last): (u16, u16), yes: NodeId, no: NodeId) -> NodeId {
        if first == last {
            return self.graph.node(equal(load, first.into()), yes, no);
        }
        let above = Test { load, comparison: op::IF_ABOVE, k: last.into() };
        let within = self.graph.node(above, no, yes);
        self.graph.node(Test { load, comparison: op::IF_AT_LEAST, k: first.into() }, within, no)
    }
}

fn equal(load: Load, k: u32) -> Test {
    Test { load, comparison: op::IF_EQUAL, k }
}

fn byte(offset: u32) -> Load {
    Load { width: op::LOAD_BYTE, behind_ipv4: None, offset, mask: u32::MAX }
}

fn half(offset: u32) -> Load {
    Load { width: op::LOAD_HALF, ..byte(offset) }
}

fn word(offset: u32, mask: u32) -> Load {
    Load { width: op::LOAD_WORD, mask, ..byte(offset) }
}
