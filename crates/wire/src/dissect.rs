//! Dissection of frames: IP addresses and transport header.

use crate::bytes::{MAPPED, be16, be32, be128, octet};
use crate::icmp::{self, IcmpError};
use crate::link::{self, Contents, LinkPayload, LinkType};
use crate::tcp::{self, TcpHeader};

/// Encapsulations in which an IP packet was found; several can apply.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Encapsulations(u8);

impl Encapsulations {
    /// IEEE 802.1Q or 802.1ad tags.
    pub const VLAN: Self = Self(1);
    /// MPLS labels.
    pub const MPLS: Self = Self(2);
    /// GRE.
    pub const GRE: Self = Self(4);
    /// VXLAN (RFC 7348).
    pub const VXLAN: Self = Self(8);
    /// IP in IP (IPv4 or IPv6).
    pub const IP: Self = Self(16);
    /// PPPoE sessions.
    pub const PPPOE: Self = Self(32);
    /// Geneve (RFC 8926).
    pub const GENEVE: Self = Self(64);
    /// GTP-U (3GPP TS 29.281).
    pub const GTP: Self = Self(128);

    /// Whether all encapsulations of `other` are present.
    pub fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    fn add(&mut self, other: Self) {
        self.0 |= other.0;
    }
}

/// Fields of the innermost IP header.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Network {
    /// IP version: 4 or 6.
    pub version: u8,
    /// Source address; IPv4 as an IPv4-mapped IPv6 address.
    pub source: u128,
    /// Destination address, in the same form.
    pub destination: u128,
    /// Traffic class or type of service: DSCP and ECN.
    pub traffic_class: u8,
    /// Hop limit or time to live.
    pub hop_limit: u8,
    /// IPv4 identification; 0 for IPv6.
    pub identification: u16,
    /// Number of the transport protocol.
    pub protocol: u8,
    /// Length of the IP payload without extension headers, bytes.
    pub payload: u32,
}

/// The transport header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Transport {
    /// A TCP segment.
    Tcp(TcpHeader),
    /// A UDP datagram.
    Udp {
        /// Source port.
        source: u16,
        /// Destination port.
        destination: u16,
        /// Payload on the wire, bytes.
        payload: u32,
        /// Offset of the payload in the frame; may be beyond the captured bytes.
        at: usize,
    },
    /// An ICMP error about a packet of TCP or UDP.
    Icmp(IcmpError),
    /// A fragment other than the first, which has no transport header.
    Fragment,
    /// Another protocol.
    Other,
}

/// Result of dissecting a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Packet {
    /// Fields of the innermost IP header.
    pub network: Network,
    /// Fields of the transport header.
    pub transport: Transport,
    /// Encapsulations around the innermost IP header.
    pub encapsulations: Encapsulations,
    /// The fragment that the frame has, of the innermost fragmented packet; the lengths above are then those of the
    /// fragment.
    pub fragment: Option<Fragment>,
}

/// A fragment of an IP packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fragment {
    /// Fields that all fragments of a packet have in common.
    pub packet: FragmentedPacket,
    /// Offset in the packet's payload, bytes.
    pub offset: u32,
    /// Length, bytes.
    pub length: u32,
    /// Whether more fragments follow.
    pub more: bool,
    /// Whether it begins a packet with an encapsulated one, which has separate lengths.
    pub encapsulates: bool,
}

/// The fields that identify a fragmented packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct FragmentedPacket {
    /// Source address.
    pub source: u128,
    /// Destination address.
    pub destination: u128,
    /// Identification; 32 bits in IPv6.
    pub identification: u32,
    /// Protocol.
    pub protocol: u8,
}

/// Reason why a frame could not be dissected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DissectError {
    /// Not IP (ARP, LLDP, …), or an unsupported link type.
    NotIp(Contents),
    /// The captured bytes end before the transport header's ports and sequence numbers.
    Truncated,
    /// Inconsistent lengths.
    Malformed,
}

/// Maximum number of nested layers.
const MAX_LAYERS: usize = 16;
const VXLAN_PORT: u16 = 4789;
/// VXLAN's port in Linux before the standard.
const LINUX_VXLAN_PORT: u16 = 8472;
const GENEVE_PORT: u16 = 6081;
const GTP_PORT: u16 = 2152;

/// EtherType of Transparent Ethernet Bridging (GRE, Geneve).
const ETHERNET_INSIDE: u16 = 0x6558;

/// Offset in a frame and the layer found there.
enum Layer {
    Link(LinkType, usize),
    EtherType(u16, usize),
    Ip(usize),
    /// Fields of both headers, and the offset of the transport header.
    Done(Network, Transport, usize),
}

/// Dissects a frame with an original length of `original` bytes.
pub fn dissect(link: LinkType, frame: &[u8], original: u32) -> Result<Packet, DissectError> {
    let (mut network, mut tcp) = (Network::default(), TcpHeader::default());
    if plain(link, frame, &mut network, &mut tcp) {
        let encapsulations = Encapsulations::default();
        return Ok(Packet { network, transport: Transport::Tcp(tcp), encapsulations, fragment: None });
    }
    layers(link, frame, original).map(|(packet, _)| packet)
}

/// Dissects a frame; also returns the number of captured header bytes, up to the end of the transport header
/// with its options. Without a TCP or UDP header they end after the IP headers.
pub fn dissect_headers(link: LinkType, frame: &[u8], original: u32) -> Result<(Packet, usize), DissectError> {
    let (packet, Offsets { transport: at, .. }) = layers(link, frame, original)?;
    let end = match packet.transport {
        Transport::Tcp(_) => at + usize::from(octet(frame, at + 12).ok_or(DissectError::Truncated)? >> 4) * 4,
        Transport::Udp { at: payload, .. } => payload,
        Transport::Icmp(_) | Transport::Fragment | Transport::Other => at,
    };
    Ok((packet, end.min(frame.len())))
}

/// Fast path for the most common frames: TCP over Ethernet and IPv4, without IP options and not fragmented.
/// Writes the headers in place, without a copy. If it returns `false`, use [`dissect`]; the written values are
/// then meaningless.
#[inline]
pub fn plain(link: LinkType, frame: &[u8], network: &mut Network, tcp: &mut TcpHeader) -> bool {
    if link != LinkType::ETHERNET {
        return false;
    }
    let Some(header) = frame.first_chunk::<54>() else { return false };
    let total = u16::from_be_bytes([header[16], header[17]]);
    let whole = [header[20] & 0x3f, header[21]] == [0, 0];
    if header[12..15] != [0x08, 0x00, 0x45] || header[23] != 6 || total < 40 || !whole {
        return false;
    }
    let payload = u32::from(total) - 20;
    let address = |at: usize| {
        MAPPED | u128::from(u32::from_be_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]]))
    };
    network.version = 4;
    network.source = address(26);
    network.destination = address(30);
    network.traffic_class = header[15];
    network.hop_limit = header[22];
    network.identification = u16::from_be_bytes([header[18], header[19]]);
    network.protocol = 6;
    network.payload = payload;
    tcp::parse(&frame[34..], payload, tcp).is_some()
}

/// Positions of the innermost headers in a frame, bytes from its start.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Offsets {
    pub network: usize,
    pub transport: usize,
}

pub(crate) fn layers(link: LinkType, frame: &[u8], original: u32) -> Result<(Packet, Offsets), DissectError> {
    let mut wrappers = Wrappers::default();
    let (mut layer, mut network_at) = (Layer::Link(link, 0), 0);
    for _ in 0..=MAX_LAYERS {
        layer = match layer {
            Layer::Link(link, at) => match link::parse_link_header(link, frame, at) {
                LinkPayload::EtherType(kind, at) => Layer::EtherType(kind, at),
                LinkPayload::Ip(at) => Layer::Ip(at),
                LinkPayload::Link(link, at) => Layer::Link(link, at),
                LinkPayload::Other(contents) => return Err(DissectError::NotIp(contents)),
                LinkPayload::Truncated => return Err(DissectError::Truncated),
            },
            Layer::EtherType(link::IPV4 | link::IPV6, at) | Layer::Ip(at) => {
                wrappers.encapsulates |= wrappers.fragment.is_some();
                network_at = at;
                parse_ip(frame, at, original, &mut wrappers)?
            }
            Layer::EtherType(kind, at) => skip_tag(frame, kind, at, &mut wrappers.encapsulations)?,
            Layer::Done(network, transport, at) => {
                let Wrappers { encapsulations, fragment, encapsulates } = wrappers;
                let fragment = fragment.map(|fragment| Fragment { encapsulates, ..fragment });
                let offsets = Offsets { network: network_at, transport: at };
                return Ok((Packet { network, transport, encapsulations, fragment }, offsets));
            }
        };
    }
    Err(DissectError::Malformed)
}

/// The headers around the transport header.
#[derive(Default)]
struct Wrappers {
    encapsulations: Encapsulations,
    fragment: Option<Fragment>,
    /// Whether the fragment has another IP packet inside.
    encapsulates: bool,
}

impl Wrappers {
    fn add(&mut self, encapsulation: Encapsulations) {
        self.encapsulations.add(encapsulation);
    }

    fn add_fragment(&mut self, fragment: Fragment) {
        (self.fragment, self.encapsulates) = (Some(fragment), false);
    }
}

/// Skips a VLAN tag, MPLS label, PPPoE header or inner Ethernet header.
fn skip_tag(frame: &[u8], kind: u16, at: usize, encapsulations: &mut Encapsulations) -> Result<Layer, DissectError> {
    const CUT: DissectError = DissectError::Truncated;
    match kind {
        0x8100 | 0x88a8 | 0x9100 | 0x9200 => {
            encapsulations.add(Encapsulations::VLAN);
            Ok(Layer::EtherType(be16(frame, at + 2).ok_or(CUT)?, at + 4))
        }
        0x8847 | 0x8848 => {
            encapsulations.add(Encapsulations::MPLS);
            let label = be32(frame, at).ok_or(CUT)?;
            if label & 0x100 == 0 {
                return Ok(Layer::EtherType(kind, at + 4));
            }
            // After the last label: IP, or an Ethernet frame after a control word, whose first four bits are zero.
            match link::version(frame, at + 4).ok_or(CUT)? {
                4 | 6 => Ok(Layer::Ip(at + 4)),
                0 => Ok(Layer::EtherType(be16(frame, at + 20).ok_or(CUT)?, at + 22)),
                _ => Err(DissectError::NotIp(Contents::EtherType(kind))),
            }
        }
        // HSR and PRP tags.
        0x892f => Ok(Layer::EtherType(be16(frame, at + 4).ok_or(CUT)?, at + 6)),
        0x8864 => {
            encapsulations.add(Encapsulations::PPPOE);
            Ok(Layer::Link(LinkType::PPP, at + 6))
        }
        ETHERNET_INSIDE => Ok(Layer::Link(LinkType::ETHERNET, at)),
        // A length (IEEE 802.3), as in tagged and cooked frames.
        length if length < link::FIRST_ETHERTYPE => Ok(Layer::Link(LinkType::LLC, at)),
        _ => Err(DissectError::NotIp(Contents::EtherType(kind))),
    }
}

fn parse_ip(frame: &[u8], at: usize, original: u32, wrappers: &mut Wrappers) -> Result<Layer, DissectError> {
    match link::version(frame, at).ok_or(DissectError::Truncated)? {
        4 => parse_ipv4(frame, at, original, wrappers),
        6 => parse_ipv6(frame, at, original, wrappers),
        _ => Err(DissectError::Malformed),
    }
}

/// Bytes from an offset to the end of the original frame, for lengths of 0, which mean that the length exceeds
/// the field (BIG TCP).
fn remaining_bytes(original: u32, at: usize) -> Result<u32, DissectError> {
    original.checked_sub(at as u32).ok_or(DissectError::Malformed)
}

fn parse_ipv4(frame: &[u8], at: usize, original: u32, wrappers: &mut Wrappers) -> Result<Layer, DissectError> {
    let header: &[u8; 20] = frame.get(at..).and_then(<[u8]>::first_chunk).ok_or(DissectError::Truncated)?;
    let length = usize::from(header[0] & 0x0f) * 4;
    let total = match u32::from(u16::from_be_bytes([header[2], header[3]])) {
        0 => remaining_bytes(original, at)?,
        total => total,
    };
    if length < 20 {
        return Err(DissectError::Malformed);
    }
    let payload = total.checked_sub(length as u32).ok_or(DissectError::Malformed)?;
    let address = |from: usize| be32(header, from).map_or(0, |address| MAPPED | u128::from(address));
    let network = Network {
        version: 4,
        source: address(12),
        destination: address(16),
        traffic_class: header[1],
        hop_limit: header[8],
        identification: u16::from_be_bytes([header[4], header[5]]),
        protocol: header[9],
        payload,
    };
    let position = u16::from_be_bytes([header[6], header[7]]);
    let (offset, more) = (u32::from(position & 0x1fff) * 8, position & 0x2000 != 0);
    if offset > 0 || more {
        let Network { source, destination, identification, protocol, .. } = network;
        let packet = FragmentedPacket { source, destination, identification: identification.into(), protocol };
        wrappers.add_fragment(Fragment { packet, offset, length: payload, more, encapsulates: false });
    }
    if offset > 0 {
        return Ok(Layer::Done(network, Transport::Fragment, at + length));
    }
    transport(frame, at + length, network, wrappers)
}

const HOP_BY_HOP: u8 = 0;
const ROUTING: u8 = 43;
const FRAGMENT: u8 = 44;
const AUTHENTICATION: u8 = 51;
const DESTINATION: u8 = 60;
const MOBILITY: u8 = 135;

fn parse_ipv6(frame: &[u8], at: usize, original: u32, wrappers: &mut Wrappers) -> Result<Layer, DissectError> {
    const CUT: DissectError = DissectError::Truncated;
    let first = be32(frame, at).ok_or(CUT)?;
    // 0 for a jumbogram (RFC 2675) or a BIG TCP super-packet: both extend to the end of the frame.
    let mut payload = match u32::from(be16(frame, at + 4).ok_or(CUT)?) {
        0 => remaining_bytes(original, at + 40)?,
        length => length,
    };
    let (mut protocol, hop_limit) = (octet(frame, at + 6).ok_or(CUT)?, octet(frame, at + 7).ok_or(CUT)?);
    let (source, destination) = (be128(frame, at + 8).ok_or(CUT)?, be128(frame, at + 24).ok_or(CUT)?);
    let mut next = at + 40;
    let (mut fragment, mut is_later) = (None, false);
    for _ in 0..MAX_LAYERS {
        let length = match protocol {
            HOP_BY_HOP | ROUTING | DESTINATION | MOBILITY => 8 + 8 * u32::from(octet(frame, next + 1).ok_or(CUT)?),
            AUTHENTICATION => 8 + 4 * u32::from(octet(frame, next + 1).ok_or(CUT)?),
            FRAGMENT => {
                let position = be16(frame, next + 2).ok_or(CUT)?;
                fragment = Some((u32::from(position & 0xfff8), position & 1 != 0, be32(frame, next + 4).ok_or(CUT)?));
                8
            }
            _ => break,
        };
        protocol = octet(frame, next).ok_or(CUT)?;
        payload = payload.checked_sub(length).ok_or(DissectError::Malformed)?;
        next += length as usize;
        if let Some((offset, more, identification)) = fragment.take()
            && (offset > 0 || more)
        {
            let packet = FragmentedPacket { source, destination, identification, protocol };
            wrappers.add_fragment(Fragment { packet, offset, length: payload, more, encapsulates: false });
            is_later = offset > 0;
        }
        if is_later {
            break;
        }
    }
    let traffic_class = (first >> 20) as u8;
    let network =
        Network { version: 6, source, destination, traffic_class, hop_limit, identification: 0, protocol, payload };
    if is_later {
        return Ok(Layer::Done(network, Transport::Fragment, next));
    }
    transport(frame, next, network, wrappers)
}

fn transport(frame: &[u8], at: usize, network: Network, wrappers: &mut Wrappers) -> Result<Layer, DissectError> {
    const CUT: DissectError = DissectError::Truncated;
    let segment = frame.get(at..).unwrap_or_default();
    match network.protocol {
        6 => {
            let mut header = TcpHeader::default();
            match tcp::parse(segment, network.payload, &mut header) {
                Some(()) => Ok(Layer::Done(network, Transport::Tcp(header), at)),
                None if segment.len() < 20 => Err(CUT),
                None => Err(DissectError::Malformed),
            }
        }
        17 => {
            let (source, destination) = (be16(segment, 0).ok_or(CUT)?, be16(segment, 2).ok_or(CUT)?);
            let is_vxlan = match destination {
                VXLAN_PORT => segment.get(8).is_some_and(|flags| flags & 0x08 != 0),
                // Other protocols use this port too.
                LINUX_VXLAN_PORT => segment.get(8..12) == Some(&[0x08, 0, 0, 0]),
                _ => false,
            };
            if is_vxlan {
                wrappers.add(Encapsulations::VXLAN);
                return Ok(Layer::Link(LinkType::ETHERNET, at + 16));
            }
            // Geneve version 0 (RFC 8926); the length of its options is in 4-byte words.
            if destination == GENEVE_PORT && segment.get(8).is_some_and(|version| version & 0xc0 == 0) {
                wrappers.add(Encapsulations::GENEVE);
                let inner = at + 16 + 4 * usize::from(segment[8] & 0x3f);
                return Ok(Layer::EtherType(be16(segment, 10).ok_or(CUT)?, inner));
            }
            if destination == GTP_PORT
                && let Some(inner) = gtp_payload(segment)
            {
                wrappers.add(Encapsulations::GTP);
                return Ok(Layer::Ip(at + inner));
            }
            let payload = network.payload.checked_sub(8).ok_or(DissectError::Malformed)?;
            Ok(Layer::Done(network, Transport::Udp { source, destination, payload, at: at + 8 }, at))
        }
        1 | 58 => {
            let error = icmp::parse(frame, at, network.version);
            Ok(Layer::Done(network, error.map_or(Transport::Other, Transport::Icmp), at))
        }
        4 | 41 => {
            wrappers.add(Encapsulations::IP);
            Ok(Layer::Ip(at))
        }
        47 => {
            let flags = be16(segment, 0).ok_or(CUT)?;
            let kind = be16(segment, 2).ok_or(CUT)?;
            let optional = |flags_of: &[u16]| 4 * flags_of.iter().filter(|&flag| flags & flag != 0).count();
            let sequenced = flags & 0x1000 != 0;
            match (flags & 0x0007, kind) {
                // PPTP (RFC 2637): PPP after the key, and the numbers of sequence and acknowledgement.
                (1, 0x880b) => {
                    wrappers.add(Encapsulations::GRE);
                    Ok(Layer::Link(LinkType::PPP, at + 8 + optional(&[0x1000, 0x0080])))
                }
                (0, _) => {
                    wrappers.add(Encapsulations::GRE);
                    let inner = at + 4 + optional(&[0x8000, 0x2000, 0x1000]);
                    Ok(match kind {
                        // ERSPAN type I has no header, type II has 8 bytes.
                        0x88be => Layer::Link(LinkType::ETHERNET, if sequenced { inner + 8 } else { inner }),
                        // Type III has 12 bytes, and 8 more for some platforms.
                        0x22eb => {
                            let platform = octet(frame, inner + 11).ok_or(CUT)? & 1;
                            Layer::Link(LinkType::ETHERNET, inner + 12 + 8 * usize::from(platform))
                        }
                        _ => Layer::EtherType(kind, inner),
                    })
                }
                _ => Ok(Layer::Done(network, Transport::Other, at)),
            }
        }
        _ => Ok(Layer::Done(network, Transport::Other, at)),
    }
}

/// Offset of the IP packet in a GTP-U datagram of user data (G-PDU), from the UDP header.
fn gtp_payload(segment: &[u8]) -> Option<usize> {
    let header: &[u8; 8] = segment.get(8..)?.first_chunk()?;
    // Version 1, protocol type GTP.
    if header[0] & 0xf0 != 0x30 || header[1] != 0xff {
        return None;
    }
    let mut at = 16;
    if header[0] & 0x07 != 0 {
        at += 4;
        // Extension headers: their length in 4-byte words, and the type of the next one at the end.
        for _ in 0..MAX_LAYERS {
            if header[0] & 0x04 == 0 || octet(segment, at - 1)? == 0 {
                break;
            }
            at += 4 * usize::from(octet(segment, at)?.max(1));
        }
    }
    matches!(link::version(segment, at)?, 4 | 6).then_some(at)
}
