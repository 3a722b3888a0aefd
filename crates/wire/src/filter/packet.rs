//! Evaluation of a filter expression on dissected packets: on any link type, and inside encapsulations.

use super::FilterError;
use super::parse::{Expression, Primitive, Protocol, Side, parse};
use crate::{Encapsulations, LinkType, Packet, Transport};

/// A filter for dissected packets, in the same language as [`compile`](super::compile). It tests the innermost IP packet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PacketFilter(Expression);

impl PacketFilter {
    /// Parses an expression.
    ///
    /// # Errors
    /// If it is empty, not in the language, or tests what a dissected packet does not have: the direction, or a VLAN's
    /// number.
    pub fn parse(text: &str) -> Result<Self, FilterError> {
        let invalid = |why: &str| FilterError::Invalid { column: 1, why: why.to_owned() };
        let expression = parse(text, LinkType::ETHERNET)?.ok_or_else(|| invalid("the expression is empty"))?;
        if expression.any(|primitive| primitive == Primitive::Outbound) {
            return Err(invalid("a capture does not show which host sent a packet: name it with `src host`"));
        }
        if expression.any(|primitive| matches!(primitive, Primitive::Vlan(Some(_)))) {
            return Err(invalid("the numbers of VLANs are not tested: use `vlan`"));
        }
        Ok(Self(expression))
    }

    /// Returns whether a packet matches. Fragments after the first have no ports, and match any.
    pub fn matches(&self, packet: &Packet) -> bool {
        self.0.holds(packet)
    }
}

impl Expression {
    fn any(&self, test: impl Fn(Primitive) -> bool + Copy) -> bool {
        match self {
            Self::And(one, two) | Self::Or(one, two) => one.any(test) || two.any(test),
            Self::Not(one) => one.any(test),
            Self::Primitive(primitive, _) => test(*primitive),
        }
    }

    fn holds(&self, packet: &Packet) -> bool {
        match self {
            Self::And(one, two) => one.holds(packet) && two.holds(packet),
            Self::Or(one, two) => one.holds(packet) || two.holds(packet),
            Self::Not(one) => !one.holds(packet),
            Self::Primitive(primitive, _) => primitive.holds(packet),
        }
    }
}

impl Primitive {
    fn holds(self, packet: &Packet) -> bool {
        let network = &packet.network;
        let within = |protocol: Option<Protocol>| protocol.is_none_or(|protocol| protocol.holds(packet));
        match self {
            Self::Protocol(protocol) => protocol.holds(packet),
            Self::Network4 { within: protocol, side, address, mask } => {
                let is = |other: u128| other as u32 & mask == address;
                network.version == 4 && within(protocol) && side.holds(is(network.source), is(network.destination))
            }
            Self::Network6 { side, address, mask } => {
                let is = |other: u128| other & mask == address;
                network.version == 6 && side.holds(is(network.source), is(network.destination))
            }
            Self::Ports { within: protocol, side, first, last } => {
                let is = |port: u16| (first..=last).contains(&port);
                within(protocol)
                    && match packet.transport {
                        Transport::Tcp(tcp) => side.holds(is(tcp.source), is(tcp.destination)),
                        Transport::Udp { source, destination, .. } => side.holds(is(source), is(destination)),
                        Transport::Icmp(error) => side.holds(is(error.ports[1]), is(error.ports[0])),
                        Transport::Fragment => true,
                        Transport::Other => false,
                    }
            }
            Self::Vlan(_) => packet.encapsulations.contains(Encapsulations::VLAN),
            Self::Outbound => false,
        }
    }
}

impl Protocol {
    fn holds(self, packet: &Packet) -> bool {
        let network = &packet.network;
        match self {
            Self::Ip => network.version == 4,
            Self::Ip6 => network.version == 6,
            Self::Arp | Self::Rarp => false,
            Self::Tcp => network.protocol == 6,
            Self::Udp => network.protocol == 17,
            Self::Sctp => network.protocol == 132,
            Self::Icmp => network.version == 4 && network.protocol == 1,
            Self::Icmp6 => network.version == 6 && network.protocol == 58,
        }
    }
}

impl Side {
    fn holds(self, source: bool, destination: bool) -> bool {
        match self {
            Self::Source => source,
            Self::Destination => destination,
            Self::Either => source || destination,
            Self::Both => source && destination,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Network, TcpHeader};

    fn packet(source: [u8; 4], source_port: u16, destination: [u8; 4], destination_port: u16) -> Packet {
        let address = |bytes: [u8; 4]| 0xffff_0000_0000 | u128::from(u32::from_be_bytes(bytes));
        let network = Network {
            version: 4,
            source: address(source),
            destination: address(destination),
            protocol: 6,
            ..Network::default()
        };
        let tcp = TcpHeader { source: source_port, destination: destination_port, ..TcpHeader::default() };
        let encapsulations = Encapsulations::default();
        Packet { network, transport: Transport::Tcp(tcp), encapsulations, fragment: None }
    }

    #[test]
    fn expressions_hold_on_the_packets_they_describe() {
        let seen = packet([10, 0, 0, 1], 40_000, [10, 0, 0, 2], 443);
        for (text, expected) in [
            ("tcp", true),
            ("udp", false),
            ("host 10.0.0.2", true),
            ("src host 10.0.0.2", false),
            ("net 10.0.0.0/24 and not port 80", true),
            ("tcp port 443", true),
            ("udp port 443", false),
            ("dst portrange 400-500 and src port 40000", true),
            ("ip6 or vlan", false),
            ("not (host 10.0.0.1 or host 10.0.0.3)", false),
        ] {
            let filter = PacketFilter::parse(text).expect("an expression");
            assert_eq!(filter.matches(&seen), expected, "{text}");
        }
    }

    #[test]
    fn expressions_without_a_meaning_for_a_capture_are_refused() {
        for text in ["", "outbound", "vlan 7", "tcp or not outbound", "port http"] {
            assert!(PacketFilter::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn later_fragments_match_any_port() {
        let mut seen = packet([10, 0, 0, 1], 1, [10, 0, 0, 2], 2);
        seen.transport = Transport::Fragment;
        assert!(PacketFilter::parse("tcp port 443 and host 10.0.0.1").expect("an expression").matches(&seen));
        assert!(!PacketFilter::parse("port 443 and host 10.0.0.9").expect("an expression").matches(&seen));
    }
}
