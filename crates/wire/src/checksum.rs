//! Internet checksums (RFC 1071) of the innermost IP packet.

use crate::LinkType;
use crate::dissect::{Packet, Transport, layers};

/// Result of verifying a checksum.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Checksum {
    /// Correct.
    Right,
    /// Wrong: a receiver drops the packet.
    Wrong,
    /// That of the pseudo-header only: the packet was captured before the interface that completes it.
    Offloaded,
    /// Unknown: absent, or not all bytes of the packet were captured.
    Unknown,
}

/// The checksums of a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Checksums {
    /// Of the IPv4 header; IPv6 has none.
    pub network: Checksum,
    /// Of the TCP segment or UDP datagram.
    pub transport: Checksum,
}

/// Returns the sum of 16-bit words, without carries folded in; an odd last byte is padded with 0.
fn sum(bytes: &[u8]) -> u64 {
    let mut words = bytes.chunks_exact(2);
    let whole: u64 = words.by_ref().map(|word| u64::from(u16::from_be_bytes([word[0], word[1]]))).sum();
    whole + words.remainder().first().map_or(0, |last| u64::from(*last) << 8)
}

fn fold(mut sum: u64) -> u16 {
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}

/// Verifies the checksums of a frame; `None` if it has no TCP or UDP.
pub fn checksums(link: LinkType, frame: &[u8], original: u32) -> Option<Checksums> {
    let (Packet { network, transport, fragment, .. }, at) = layers(link, frame, original).ok()?;
    let (Transport::Tcp(_) | Transport::Udp { .. }) = transport else { return None };
    let header = frame.get(at.network..at.transport).filter(|_| network.version == 4);
    let network_checksum = header.map_or(Checksum::Unknown, |header| match fold(sum(header)) {
        0xffff => Checksum::Right,
        _ => Checksum::Wrong,
    });
    let whole = frame.get(at.transport..at.transport.saturating_add(network.payload as usize));
    let segment = whole.filter(|_| fragment.is_none());
    Some(Checksums {
        network: network_checksum,
        transport: segment.map_or(Checksum::Unknown, |segment| {
            let words = if network.version == 4 {
                [network.source as u32, network.destination as u32].map(|address| sum(&address.to_be_bytes()))
            } else {
                [network.source, network.destination].map(|address| sum(&address.to_be_bytes()))
            };
            let length = u64::from(network.payload);
            let pseudo = words[0] + words[1] + u64::from(network.protocol) + (length >> 16) + (length & 0xffff);
            let field = if network.protocol == 6 { 16 } else { 6 };
            let stored = segment.get(field..field + 2).map_or(0, sum);
            if network.protocol == 17 && stored == 0 {
                return Checksum::Unknown;
            }
            match fold(pseudo + sum(segment)) {
                0xffff => Checksum::Right,
                _ if stored == u64::from(fold(pseudo)) => Checksum::Offloaded,
                _ => Checksum::Wrong,
            }
        }),
    })
}
