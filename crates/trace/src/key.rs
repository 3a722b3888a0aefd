//! Which flow a packet belongs to.

use std::net::{IpAddr, Ipv6Addr};

use landspeed_model::TraceEndpoint;
use landspeed_wire::{Network, Packet, Transport};

/// An address and a port.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Endpoint {
    /// Address; IPv4 as an IPv4-mapped IPv6 address.
    pub address: u128,
    /// Port.
    pub port: u16,
}

/// Both ends of a flow in a fixed order, and its protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Key {
    /// The lesser end.
    pub low: Endpoint,
    /// The greater one.
    pub high: Endpoint,
    /// IP protocol.
    pub protocol: u8,
}

impl Key {
    /// Of a packet with ports, and whether it went from the lesser to the greater end. `None` without ports.
    pub fn of(packet: &Packet) -> Option<(Self, bool)> {
        let (source, destination) = match packet.transport {
            Transport::Tcp(tcp) => (tcp.source, tcp.destination),
            Transport::Udp { source, destination, .. } => (source, destination),
            Transport::Fragment | Transport::Other => return None,
        };
        let Network { source: from, destination: to, protocol, .. } = packet.network;
        let from = Endpoint { address: from, port: source };
        let to = Endpoint { address: to, port: destination };
        let upward = from <= to;
        let (low, high) = if upward { (from, to) } else { (to, from) };
        Some((Self { low, high, protocol }, upward))
    }
}

/// As the document says it.
pub fn told(endpoint: Endpoint) -> TraceEndpoint {
    let address = Ipv6Addr::from_bits(endpoint.address);
    let address = address.to_ipv4_mapped().map_or(IpAddr::V6(address), IpAddr::V4);
    TraceEndpoint { address: address.to_string(), port: endpoint.port }
}
