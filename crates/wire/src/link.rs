//! Link-layer headers of captured frames.

use std::fmt;

use crate::bytes::{be16, be32, octet};

/// Link-layer header type, by its number in capture files (LINKTYPE_…).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct LinkType(pub u32);

impl LinkType {
    /// BSD loopback: address family in the byte order of the capturing host.
    pub const NULL: Self = Self(0);
    /// Ethernet.
    pub const ETHERNET: Self = Self(1);
    /// Token Ring.
    pub const TOKEN_RING: Self = Self(6);
    /// PPP, with or without HDLC-like framing.
    pub const PPP: Self = Self(9);
    /// FDDI.
    pub const FDDI: Self = Self(10);
    /// Raw IP, with the number used by some BSDs.
    pub const RAW_BSD: Self = Self(12);
    /// Raw IP, with the number used by OpenBSD.
    pub const RAW_OPENBSD: Self = Self(14);
    /// PPP with HDLC-like framing.
    pub const PPP_HDLC: Self = Self(50);
    /// PPP over Ethernet.
    pub const PPPOE: Self = Self(51);
    /// LLC or IP over ATM (RFC 2684).
    pub const ATM: Self = Self(100);
    /// Raw IPv4 or IPv6.
    pub const RAW: Self = Self(101);
    /// Cisco HDLC.
    pub const C_HDLC: Self = Self(104);
    /// IEEE 802.11.
    pub const WLAN: Self = Self(105);
    /// Frame relay.
    pub const FRAME_RELAY: Self = Self(107);
    /// OpenBSD loopback: address family in network byte order.
    pub const LOOP: Self = Self(108);
    /// Linux cooked capture, as with `-i any`.
    pub const LINUX_SLL: Self = Self(113);
    /// IEEE 802.11 after a Prism header.
    pub const PRISM: Self = Self(119);
    /// IEEE 802.11 after a radiotap header.
    pub const RADIOTAP: Self = Self(127);
    /// IEEE 802.11 after an AVS header.
    pub const AVS: Self = Self(163);
    /// Another link type after a per-packet information header.
    pub const PPI: Self = Self(192);
    /// PPP after a byte with the direction.
    pub const PPP_WITH_DIRECTION: Self = Self(204);
    /// MPLS.
    pub const MPLS: Self = Self(219);
    /// Raw IPv4.
    pub const IPV4: Self = Self(228);
    /// Raw IPv6.
    pub const IPV6: Self = Self(229);
    /// Linux netfilter log.
    pub const NFLOG: Self = Self(239);
    /// IP over InfiniBand: addresses of 20 bytes each, then an EtherType.
    pub const IPOIB: Self = Self(242);
    /// Linux cooked capture version 2, with the interface index.
    pub const LINUX_SLL2: Self = Self(276);
    /// IEEE 802.2 LLC, which has no link type.
    pub(crate) const LLC: Self = Self(u32::MAX);

    /// Name of the type; `None` for types that are not supported.
    pub fn name(self) -> Option<&'static str> {
        Some(match self {
            Self::NULL => "BSD loopback",
            Self::ETHERNET => "Ethernet",
            Self::RAW | Self::RAW_BSD | Self::RAW_OPENBSD => "raw IP",
            Self::LOOP => "OpenBSD loopback",
            Self::PPP | Self::PPP_HDLC => "PPP",
            Self::PPPOE => "PPPoE",
            Self::PPP_WITH_DIRECTION => "PPP with direction",
            Self::TOKEN_RING => "Token Ring",
            Self::FDDI => "FDDI",
            Self::ATM => "ATM",
            Self::WLAN => "802.11",
            Self::PRISM => "802.11 with Prism",
            Self::RADIOTAP => "802.11 with radiotap",
            Self::AVS => "802.11 with AVS",
            Self::PPI => "PPI",
            Self::FRAME_RELAY => "frame relay",
            Self::MPLS => "MPLS",
            Self::NFLOG => "NFLOG",
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
    /// Another link type and the offset of its header.
    Link(LinkType, usize),
    /// A protocol that is not supported.
    Other(Contents),
    /// The captured bytes end before the type.
    Truncated,
}

/// EtherType of IPv4.
pub const IPV4: u16 = 0x0800;
/// EtherType of IPv6.
pub const IPV6: u16 = 0x86dd;
const MPLS: u16 = 0x8847;
/// Smaller values are lengths (IEEE 802.3).
pub const FIRST_ETHERTYPE: u16 = 0x0600;
/// `ARPHRD_NETLINK`: netlink messages instead of packets.
const ARPHRD_NETLINK: u16 = 824;

/// EtherType of PPPoE sessions.
const PPPOE_SESSION: u16 = 0x8864;

/// Parses the link-layer header at an offset.
pub fn parse_link_header(link: LinkType, frame: &[u8], at: usize) -> LinkPayload {
    parse(link, frame, at).unwrap_or(LinkPayload::Truncated)
}

fn parse(link: LinkType, frame: &[u8], at: usize) -> Option<LinkPayload> {
    Some(match link {
        LinkType::ETHERNET => ether_type(be16(frame, at + 12)?, at + 14),
        LinkType::RAW | LinkType::RAW_BSD | LinkType::RAW_OPENBSD | LinkType::IPV4 | LinkType::IPV6 => {
            LinkPayload::Ip(at)
        }
        LinkType::NULL | LinkType::LOOP => {
            // AF_INET is 2 on all systems; AF_INET6 is 10, 24, 28 or 30; the byte order is unknown.
            let family = be32(frame, at)?;
            let family = if family > 0xffff { family.swap_bytes() } else { family };
            match family {
                2 | 10 | 24 | 28 | 30 => LinkPayload::Ip(at + 4),
                _ => LinkPayload::Other(Contents::Family(family)),
            }
        }
        LinkType::LINUX_SLL if be16(frame, at + 2) == Some(ARPHRD_NETLINK) => LinkPayload::Other(Contents::Link(253)),
        LinkType::LINUX_SLL => ether_type(be16(frame, at + 14)?, at + 16),
        LinkType::LINUX_SLL2 => ether_type(be16(frame, at)?, at + 20),
        LinkType::PPP | LinkType::PPP_HDLC => ppp(frame, at)?,
        LinkType::PPP_WITH_DIRECTION => ppp(frame, at + 1)?,
        LinkType::PPPOE => LinkPayload::EtherType(PPPOE_SESSION, at),
        LinkType::C_HDLC => ether_type(be16(frame, at + 2)?, at + 4),
        LinkType::IPOIB => ether_type(be16(frame, at + 40)?, at + 44),
        LinkType::MPLS => LinkPayload::EtherType(MPLS, at),
        LinkType::LLC => llc(frame, at)?,
        LinkType::ATM => match octet(frame, at)? {
            // Without LLC.
            0x45..=0x4f | 0x60..=0x6f => LinkPayload::Ip(at),
            _ => llc(frame, at)?,
        },
        LinkType::TOKEN_RING => {
            // The top bit of the source address: a source route follows.
            let routed = octet(frame, at + 8)? & 0x80 != 0;
            let route = if routed { usize::from(octet(frame, at + 14)? & 0x1f) } else { 0 };
            llc(frame, at + 14 + route)?
        }
        LinkType::FDDI => {
            // Some systems align the header with three bytes before it.
            let is_frame = |at: usize| {
                octet(frame, at).is_some_and(|control| control & 0xf0 == 0x50)
                    && frame.get(at + 13..at + 16).is_some_and(|llc| matches!(llc, [0xaa, 0xaa, 3] | [6, 6, 3]))
            };
            llc(frame, if is_frame(at + 3) && !is_frame(at) { at + 16 } else { at + 13 })?
        }
        LinkType::WLAN => wlan(frame, at, false)?,
        LinkType::RADIOTAP => radiotap(frame, at)?,
        LinkType::PRISM if be32(frame, at)? & 0xffff_f000 != AVS_MAGIC => {
            LinkPayload::Link(LinkType::WLAN, at + le32(frame, at + 4)? as usize)
        }
        LinkType::PRISM | LinkType::AVS => LinkPayload::Link(LinkType::WLAN, at + be32(frame, at + 4)? as usize),
        LinkType::PPI => {
            let length = le16(frame, at + 2)?.max(8);
            LinkPayload::Link(LinkType(le32(frame, at + 4)?), at + usize::from(length))
        }
        LinkType::FRAME_RELAY => match (octet(frame, at + 2)?, octet(frame, at + 3)?) {
            (0x03, 0xcc | 0x8e) => LinkPayload::Ip(at + 4),
            // Cisco's encapsulation.
            (0x08 | 0x86, _) => ether_type(be16(frame, at + 2)?, at + 4),
            (_, protocol) => LinkPayload::Other(Contents::Llc(protocol)),
        },
        LinkType::NFLOG => nflog(frame, at)?,
        LinkType(other) => LinkPayload::Other(Contents::Link(other)),
    })
}

fn ether_type(kind: u16, at: usize) -> LinkPayload {
    if kind < FIRST_ETHERTYPE { LinkPayload::Link(LinkType::LLC, at) } else { LinkPayload::EtherType(kind, at) }
}

/// IEEE 802.2 LLC and SNAP.
fn llc(frame: &[u8], at: usize) -> Option<LinkPayload> {
    let [service, source, control] = *frame.get(at..)?.first_chunk()?;
    Some(match (service, source, control) {
        (0xaa, 0xaa, 0x03) => {
            let organisation = be32(frame, at + 2)? & 0x00ff_ffff;
            let kind = be16(frame, at + 6)?;
            match (organisation, kind) {
                // RFC 1042, and bridge tunnels (IEEE 802.1H).
                (0 | 0x00_00f8, _) => LinkPayload::EtherType(kind, at + 8),
                // Cisco's protocols.
                (0x00_000c, _) => LinkPayload::Other(Contents::EtherType(kind)),
                // An Ethernet frame bridged over ATM (RFC 2684), after two bytes of padding.
                (0x00_80c2, 1 | 7) => LinkPayload::Link(LinkType::ETHERNET, at + 10),
                _ => LinkPayload::Other(Contents::Snap(organisation)),
            }
        }
        (0x06, 0x06, 0x03) => LinkPayload::Ip(at + 3),
        _ => LinkPayload::Other(Contents::Llc(service)),
    })
}

/// PPP, with or without HDLC-like framing; some captures of this type have Cisco HDLC.
fn ppp(frame: &[u8], at: usize) -> Option<LinkPayload> {
    match *frame.get(at..)?.first_chunk()? {
        [0x0f | 0x8f, 0x00] => return Some(ether_type(be16(frame, at + 2)?, at + 4)),
        [0xff, 0x03] => return ppp(frame, at + 2),
        _ => {}
    }
    // The first byte of an uncompressed protocol number is even.
    let first = octet(frame, at)?;
    let (protocol, at) = if first & 1 == 1 { (u16::from(first), at + 1) } else { (be16(frame, at)?, at + 2) };
    Some(match protocol {
        0x0021 | 0x0057 => LinkPayload::Ip(at),
        0x0281 => LinkPayload::EtherType(MPLS, at),
        _ => LinkPayload::Other(Contents::Ppp(protocol)),
    })
}

/// Magic number of the AVS header, whose last three digits are its version.
const AVS_MAGIC: u32 = 0x8021_1000;

/// A radiotap header: its length, and whether the 802.11 header is padded to a multiple of four bytes.
fn radiotap(frame: &[u8], at: usize) -> Option<LinkPayload> {
    let length = usize::from(le16(frame, at + 2)?);
    let mut field = at + 8;
    let present = le32(frame, at + 4)?;
    let mut words = present;
    while words & 1 << 31 != 0 {
        words = le32(frame, field)?;
        field += 4;
    }
    if present & 1 != 0 {
        // TSFT, aligned to its size.
        field = at + (field - at).next_multiple_of(8) + 8;
    }
    let flags = if present & 2 != 0 { octet(frame, field)? } else { 0 };
    wlan(frame, at + length, flags & 0x20 != 0)
}

/// A frame of IEEE 802.11.
fn wlan(frame: &[u8], at: usize, padded: bool) -> Option<LinkPayload> {
    let [control, flags] = *frame.get(at..)?.first_chunk()?;
    let other = |what| Some(LinkPayload::Other(Contents::Wlan(what)));
    let subtype = control >> 4;
    match control >> 2 & 3 {
        0 => return other("management"),
        1 => return other("control"),
        2 if subtype & 4 != 0 => return other("without data"),
        2 => {}
        _ => return other("extension"),
    }
    if flags & 0x40 != 0 {
        return other("encrypted data");
    }
    if octet(frame, at + 22)? & 0x0f != 0 {
        return other("fragments");
    }
    let mut length = if flags & 3 == 3 { 30 } else { 24 };
    if subtype & 8 != 0 {
        if octet(frame, at + length)? & 0x80 != 0 {
            return other("A-MSDU");
        }
        // QoS control, and HT control.
        length += if flags & 0x80 == 0 { 2 } else { 6 };
    }
    llc(frame, at + if padded { length.next_multiple_of(4) } else { length })
}

/// A packet of the netfilter log: attributes in the byte order of the capturing host.
fn nflog(frame: &[u8], at: usize) -> Option<LinkPayload> {
    const PAYLOAD: u16 = 9;
    let family = octet(frame, at)?;
    let mut attribute = at + 4;
    loop {
        let bytes = *frame.get(attribute..)?.first_chunk::<4>()?;
        let [little, big] = [
            [u16::from_le_bytes([bytes[0], bytes[1]]), u16::from_le_bytes([bytes[2], bytes[3]])],
            [u16::from_be_bytes([bytes[0], bytes[1]]), u16::from_be_bytes([bytes[2], bytes[3]])],
        ];
        // Types are small; in the other byte order they are not.
        let [length, kind] = if little[1] & 0x7fff < 0x100 { little } else { big };
        if kind & 0x7fff == PAYLOAD {
            let is_ip = version(frame, attribute + 4).is_some_and(|version| matches!(version, 4 | 6));
            return Some(if is_ip {
                LinkPayload::Ip(attribute + 4)
            } else {
                LinkPayload::Other(Contents::Family(family.into()))
            });
        }
        attribute += usize::from(length.max(4)).next_multiple_of(4);
    }
}

fn le16(bytes: &[u8], at: usize) -> Option<u16> {
    be16(bytes, at).map(u16::swap_bytes)
}

fn le32(bytes: &[u8], at: usize) -> Option<u32> {
    be32(bytes, at).map(u32::swap_bytes)
}

/// IP version in the first byte of a packet.
pub fn version(packet: &[u8], at: usize) -> Option<u8> {
    octet(packet, at).map(|first| first >> 4)
}

/// Contents of a frame that are not dissected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Contents {
    /// A link-layer header type that is not supported.
    Link(u32),
    /// An EtherType.
    EtherType(u16),
    /// A protocol behind IEEE 802.2 LLC, by its service access point.
    Llc(u8),
    /// A protocol behind SNAP, by its organisation.
    Snap(u32),
    /// A PPP protocol.
    Ppp(u16),
    /// A frame of IEEE 802.11 without readable data.
    Wlan(&'static str),
    /// An address family of a loopback or firewall log.
    Family(u32),
    /// An IP protocol other than TCP and UDP.
    Ip(u8),
}

impl fmt::Display for Contents {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = match *self {
            Self::Link(link) => return write!(f, "link type {}", LinkType(link)),
            Self::Wlan(what) => return write!(f, "802.11 {what}"),
            Self::Family(family) => return write!(f, "address family {family}"),
            Self::Snap(organisation) => return write!(f, "SNAP of {organisation:06x}"),
            Self::EtherType(kind) => match kind {
                0x0806 => "ARP",
                0x8035 => "RARP",
                0x2000 => "CDP",
                0x8037 | 0x8137 => "IPX",
                0x809b => "AppleTalk",
                0x8809 => "LACP",
                0x8863 => "PPPoE discovery",
                0x888e => "EAPOL",
                0x88a2 => "ATA over Ethernet",
                0x88cc => "LLDP",
                0x88e5 => "MACsec",
                0x88e7 => "PBB",
                0x88f7 => "PTP",
                0x8902 => "CFM",
                0x8906 => "FCoE",
                0x8909 => "Cisco metadata",
                0x8915 => "RoCE",
                0x9000 => "Ethernet loopback test",
                _ => return write!(f, "EtherType 0x{kind:04x}"),
            },
            Self::Llc(service) => match service {
                0x42 => "STP",
                0xe0 | 0xff => "IPX",
                0xf0 => "NetBIOS",
                0xfe => "IS-IS",
                _ => return write!(f, "LLC 0x{service:02x}"),
            },
            Self::Ppp(protocol) => match protocol {
                0x002d | 0x002f => "compressed TCP/IP (PPP)",
                0x003d => "PPP multilink",
                0x00fd => "compressed PPP",
                0x8021 => "IPCP",
                0x8057 => "IPv6CP",
                0xc021 => "LCP",
                0xc023 => "PAP",
                0xc223 => "CHAP",
                _ => return write!(f, "PPP 0x{protocol:04x}"),
            },
            Self::Ip(protocol) => match protocol {
                1 => "ICMP",
                2 => "IGMP",
                33 => "DCCP",
                46 => "RSVP",
                47 => "GRE",
                50 => "ESP",
                51 => "AH",
                58 => "ICMPv6",
                88 => "EIGRP",
                89 => "OSPF",
                103 => "PIM",
                112 => "VRRP",
                115 => "L2TPv3",
                132 => "SCTP",
                136 => "UDP-Lite",
                _ => return write!(f, "IP protocol {protocol}"),
            },
        };
        f.write_str(name)
    }
}

impl fmt::Display for LinkType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.name().or(match self.0 {
            3 => Some("AX.25"),
            7 => Some("ARCNET"),
            8 => Some("SLIP"),
            18 | 117 => Some("PF log"),
            138 => Some("IP over FireWire"),
            143 => Some("DOCSIS"),
            147..=162 => Some("private"),
            187 | 201 => Some("Bluetooth HCI"),
            189 | 220 | 249 => Some("USB"),
            195 | 215 | 230 => Some("802.15.4"),
            197 => Some("ERF"),
            227 => Some("CAN"),
            231 => Some("D-Bus"),
            240 => Some("netANALYZER"),
            251 => Some("Bluetooth LE"),
            253 => Some("netlink"),
            258 => Some("pktap"),
            _ => None,
        });
        match name {
            Some(name) => write!(f, "{} ({name})", self.0),
            None => write!(f, "{}", self.0),
        }
    }
}
