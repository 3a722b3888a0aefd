//! Which flow a packet belongs to.

use std::net::{IpAddr, Ipv6Addr};

use landspeed_model::TraceEndpoint;
use landspeed_wire::{Network, Packet, Transport};

/// An address and a port.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Endpoint {
    /// Address; IPv4 as an IPv4-mapped IPv6 address.
    pub address: u128,
    /// Port.
    pub port: u16,
}

/// Both ends of a flow in a fixed order, and its protocol.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key {
    /// The lesser end.
    pub low: Endpoint,
    /// The greater one.
    pub high: Endpoint,
    /// IP protocol.
    pub protocol: u8,
}

impl Key {
    /// Of a packet with these ports, and whether it went from the lesser to the greater end.
    #[inline]
    pub fn of(network: &Network, source: u16, destination: u16) -> (Self, bool) {
        let from = Endpoint { address: network.source, port: source };
        let to = Endpoint { address: network.destination, port: destination };
        let upward = from <= to;
        let (low, high) = if upward { (from, to) } else { (to, from) };
        (Self { low, high, protocol: network.protocol }, upward)
    }

    /// Of a packet, if it has ports.
    pub fn of_packet(packet: &Packet) -> Option<(Self, bool)> {
        match packet.transport {
            Transport::Tcp(tcp) => Some(Self::of(&packet.network, tcp.source, tcp.destination)),
            Transport::Udp { source, destination, .. } => Some(Self::of(&packet.network, source, destination)),
            Transport::Fragment | Transport::Other => None,
        }
    }
}

/// As the document says it.
pub fn told(endpoint: Endpoint) -> TraceEndpoint {
    let address = Ipv6Addr::from_bits(endpoint.address);
    let address = address.to_ipv4_mapped().map_or(IpAddr::V6(address), IpAddr::V4);
    TraceEndpoint { address: address.to_string(), port: endpoint.port }
}
