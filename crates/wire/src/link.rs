//! Link-layer headers of captured frames.

use crate::bytes::{be16, be32, octet};

/// Link-layer header type, by its number in capture files (LINKTYPE_…).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct LinkType(pub u32);

impl LinkType {
    /// BSD loopback: address family in the byte order of the capturing host.
    pub const NULL: Self = Self(0);
    /// Ethernet.
    pub const ETHERNET: Self = Self(1);
    /// PPP, with or without HDLC-like framing.
    pub const PPP: Self = Self(9);
    /// Raw IP, with the number used by some BSDs.
    pub const RAW_BSD: Self = Self(12);
    /// Raw IP, with the number used by OpenBSD.
    pub const RAW_OPENBSD: Self = Self(14);
    /// PPP with HDLC-like framing.
    pub const PPP_HDLC: Self = Self(50);
    /// Raw IPv4 or IPv6.
    pub const RAW: Self = Self(101);
    /// Cisco HDLC.
    pub const C_HDLC: Self = Self(104);
    /// OpenBSD loopback: address family in network byte order.
    pub const LOOP: Self = Self(108);
    /// Linux cooked capture, as with `-i any`.
    pub const LINUX_SLL: Self = Self(113);
    /// Raw IPv4.
    pub const IPV4: Self = Self(228);
    /// Raw IPv6.
    pub const IPV6: Self = Self(229);
    /// IP over InfiniBand: addresses of 20 bytes each, then an EtherType.
    pub const IPOIB: Self = Self(242);
    /// Linux cooked capture version 2, with the interface index.
    pub const LINUX_SLL2: Self = Self(276);

    /// Name of the type; `None` for types that are not supported.
    pub fn name(self) -> Option<&'static str> {
        Some(match self {
            Self::NULL => "BSD loopback",
            Self::ETHERNET => "Ethernet",
            Self::RAW | Self::RAW_BSD | Self::RAW_OPENBSD => "raw IP",
            Self::LOOP => "OpenBSD loopback",
            Self::PPP | Self::PPP_HDLC => "PPP",
            Self::C_HDLC => "Cisco HDLC",
            Self::IPOIB => "IP over InfiniBand",
            Self::LINUX_SLL => "Linux cooked v1",
            Self::LINUX_SLL2 => "Linux cooked v2",
            Self::IPV4 => "raw IPv4",
            Self::IPV6 => "raw IPv6",
            _ => return None,
        })
    }
}

/// Contents after the link-layer header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LinkPayload {
    /// EtherType and offset of a protocol.
    EtherType(u16, usize),
    /// Offset of an IP packet; its first byte contains the version.
    Ip(usize),
    /// A protocol that is not supported.
    Other,
    /// The captured bytes end before the type.
    Truncated,
}

/// EtherType of IPv4.
pub const IPV4: u16 = 0x0800;
/// EtherType of IPv6.
pub const IPV6: u16 = 0x86dd;
const MPLS: u16 = 0x8847;
/// Smaller values are lengths (IEEE 802.3).
const FIRST_ETHERTYPE: u16 = 0x0600;
/// `ARPHRD_NETLINK`: netlink messages instead of packets.
const ARPHRD_NETLINK: u16 = 824;

/// Parses the link-layer header.
pub fn parse_link_header(link: LinkType, frame: &[u8]) -> LinkPayload {
    let cut_or = |found: Option<LinkPayload>| found.unwrap_or(LinkPayload::Truncated);
    match link {
        LinkType::ETHERNET => cut_or(be16(frame, 12).map(|kind| match kind {
            kind if kind < FIRST_ETHERTYPE => LinkPayload::Other,
            kind => LinkPayload::EtherType(kind, 14),
        })),
        LinkType::RAW | LinkType::RAW_BSD | LinkType::RAW_OPENBSD | LinkType::IPV4 | LinkType::IPV6 => {
            LinkPayload::Ip(0)
        }
        LinkType::NULL | LinkType::LOOP => cut_or(be32(frame, 0).map(|family| {
            // AF_INET is 2 on all systems; AF_INET6 is 10, 24, 28 or 30; the byte order is unknown.
            let family = if family > 0xffff { family.swap_bytes() } else { family };
            if matches!(family, 2 | 10 | 24 | 28 | 30) { LinkPayload::Ip(4) } else { LinkPayload::Other }
        })),
        LinkType::LINUX_SLL => {
            if be16(frame, 2) == Some(ARPHRD_NETLINK) {
                return LinkPayload::Other;
            }
            cut_or(be16(frame, 14).map(|kind| LinkPayload::EtherType(kind, 16)))
        }
        LinkType::LINUX_SLL2 => cut_or(be16(frame, 0).map(|kind| LinkPayload::EtherType(kind, 20))),
        LinkType::PPP | LinkType::PPP_HDLC => {
            let framed = frame.starts_with(&[0xff, 0x03]);
            let at = if framed { 2 } else { 0 };
            cut_or(be16(frame, at).map(|protocol| match protocol {
                0x0021 | 0x0057 => LinkPayload::Ip(at + 2),
                0x0281 => LinkPayload::EtherType(MPLS, at + 2),
                _ => LinkPayload::Other,
            }))
        }
        LinkType::C_HDLC => cut_or(be16(frame, 2).map(|kind| LinkPayload::EtherType(kind, 4))),
        LinkType::IPOIB => cut_or(be16(frame, 40).map(|kind| LinkPayload::EtherType(kind, 44))),
        _ => LinkPayload::Other,
    }
}

/// IP version in the first byte of a packet.
pub fn version(packet: &[u8], at: usize) -> Option<u8> {
    octet(packet, at).map(|first| first >> 4)
}
