//! Flow keys: both endpoints and the protocol.

use std::net::{IpAddr, Ipv6Addr};

use landspeed_model::TraceEndpoint;
use landspeed_wire::Network;

/// An address and a port.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Endpoint {
    /// Address; IPv4 as an IPv4-mapped IPv6 address.
    pub address: u128,
    /// TCP or UDP port.
    pub port: u16,
}

/// Both endpoints of a flow in a fixed order, and its protocol, in as few machine words as possible: it is
/// hashed, compared and passed between cores for every packet.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key {
    low: [u64; 2],
    high: [u64; 2],
    low_port: u16,
    high_port: u16,
    protocol: u8,
    /// 1 on the other side of a firewall that changes sequence numbers but not the endpoints.
    side: u8,
}

impl Key {
    /// Returns the key of a packet with these ports, and whether it goes from the lower to the higher endpoint.
    #[inline]
    pub fn of(network: &Network, source: u16, destination: u16) -> (Self, bool) {
        let words = |address: u128| [(address >> 64) as u64, address as u64];
        let (from, to) = (words(network.source), words(network.destination));
        let protocol = network.protocol;
        if (from, source) <= (to, destination) {
            (Self { low: from, high: to, low_port: source, high_port: destination, protocol, side: 0 }, true)
        } else {
            (Self { low: to, high: from, low_port: destination, high_port: source, protocol, side: 0 }, false)
        }
    }

    /// Returns the key of the same endpoints on the other side of a firewall that changes sequence numbers.
    pub fn other_side(&self) -> Self {
        Self { side: 1, ..*self }
    }

    /// Returns whether it is the key of the other side.
    pub fn is_other_side(&self) -> bool {
        self.side == 1
    }

    /// Returns the lower endpoint.
    pub fn low(&self) -> Endpoint {
        Endpoint { address: to_u128(self.low), port: self.low_port }
    }

    /// Returns the higher endpoint.
    pub fn high(&self) -> Endpoint {
        Endpoint { address: to_u128(self.high), port: self.high_port }
    }

    /// Returns whether it is a TCP connection; otherwise it is a UDP flow.
    pub fn is_tcp(&self) -> bool {
        self.protocol == 6
    }

    /// Returns the share that the flow belongs to, below `shares`. Share 0 gets half as many flows as each other one,
    /// because its core also dissects all frames.
    #[inline]
    pub fn share(&self, shares: usize) -> usize {
        let part = (u128::from(self.mixed()) * Self::parts(shares) as u128) >> 64;
        (part as usize).div_ceil(Self::PARTS)
    }

    /// Returns the number of equal parts in all shares: one in share 0, [`Key::PARTS`] in each other one.
    pub fn parts(shares: usize) -> usize {
        (shares.max(1) - 1) * Self::PARTS + 1
    }

    /// Parts in a share other than share 0.
    pub const PARTS: usize = 2;

    /// Returns a 64-bit hash of the key.
    #[inline]
    pub fn mixed(&self) -> u64 {
        let words = [self.low[0], self.low[1], self.high[0], self.high[1]];
        let ports = u64::from(self.low_port) << 16 | u64::from(self.high_port);
        let mixed = words
            .into_iter()
            .fold(ports, |mixed, word| (mixed ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29));
        mixed.wrapping_mul(0xbf58_476d_1ce4_e5b9)
    }
}

fn to_u128([high, low]: [u64; 2]) -> u128 {
    u128::from(high) << 64 | u128::from(low)
}

/// Returns an endpoint for the document.
pub fn document_endpoint(endpoint: Endpoint) -> TraceEndpoint {
    let address = Ipv6Addr::from_bits(endpoint.address);
    let address = address.to_ipv4_mapped().map_or(IpAddr::V6(address), IpAddr::V4);
    TraceEndpoint { address: address.to_string(), port: endpoint.port }
}
