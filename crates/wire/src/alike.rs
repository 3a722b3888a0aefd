//! Header prediction (Jacobson, 1990) for captured frames: a segment whose headers match those of an earlier
//! one is recognised by a few wide comparisons instead of being dissected.

use crate::bytes::be32;
use crate::link::LinkType;
use crate::tcp::{ALIGNED_LENGTH, ALIGNED_TIMESTAMPS, Flags, SackBlocks};

/// Length of Ethernet, IPv4 and TCP headers without options, bytes.
const PLAIN_HEADER_BYTES: usize = 54;
/// Two NOPs and the kind of a SACK option, as every stack sends it after timestamps.
const ALIGNED_SACK: [u8; 3] = [1, 1, 5];

/// Header fields that are equal in all plain segments of one direction of a flow; excludes the type of service.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct HeaderTemplate {
    /// Frame bytes 0–7 and 6–13, which cover both Ethernet addresses and the EtherType.
    link: [u64; 2],
    /// IPv4 source and destination address.
    addresses: u64,
    ports: u32,
    /// EtherType, IP version and IP header length.
    kind: u32,
    /// Fragment flags and offset, TTL, protocol.
    fragment_ttl_protocol: u32,
}

/// Header fields that differ between segments of a flow.
#[derive(Debug, Clone, Copy)]
pub struct FastHeader<'a> {
    /// IPv4 identification.
    pub identification: u16,
    /// Sequence number of the first byte.
    pub sequence: u32,
    /// Acknowledgement number: the next byte expected.
    pub acknowledgement: u32,
    /// Receive window, unscaled.
    pub window: u16,
    /// Payload on the wire, bytes.
    pub payload: u32,
    /// TSval of the timestamp option, if present.
    pub timestamp: Option<u32>,
    /// TSecr of the timestamp option, if present.
    pub echo: Option<u32>,
    /// DSCP and ECN of the IP header.
    pub traffic_class: u8,
    /// Whether PSH is set.
    pub pushed: bool,
    sack: &'a [u8],
}

fn read_u32(header: &[u8; PLAIN_HEADER_BYTES], at: usize) -> u32 {
    u32::from_be_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]])
}

fn read_u16(header: &[u8; PLAIN_HEADER_BYTES], at: usize) -> u16 {
    u16::from_be_bytes([header[at], header[at + 1]])
}

/// Four bytes in host order, for comparisons only.
fn native_u32(header: &[u8; PLAIN_HEADER_BYTES], at: usize) -> u32 {
    u32::from_ne_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]])
}

/// Eight bytes in host order. Written like this, it compiles to a single load.
fn both(header: &[u8; PLAIN_HEADER_BYTES], at: usize) -> u64 {
    header.get(at..).and_then(<[u8]>::first_chunk).map_or(0, |bytes| u64::from_ne_bytes(*bytes))
}

impl HeaderTemplate {
    /// Header template of a frame that [`plain`](crate::plain) dissects; `None` for any other frame.
    pub fn of(link: LinkType, frame: &[u8]) -> Option<Self> {
        let header: &[u8; PLAIN_HEADER_BYTES] = frame.first_chunk()?;
        let plain = link == LinkType::ETHERNET
            && header[12..15] == [0x08, 0x00, 0x45]
            && header[23] == 6
            && [header[20] & 0x3f, header[21]] == [0, 0];
        plain.then(|| Self::read(header))
    }

    #[inline(always)]
    fn read(header: &[u8; PLAIN_HEADER_BYTES]) -> Self {
        Self {
            link: [both(header, 0), both(header, 6)],
            addresses: both(header, 26),
            ports: native_u32(header, 34),
            kind: native_u32(header, 12) & u32::from_ne_bytes([0xff, 0xff, 0xff, 0]),
            fragment_ttl_protocol: native_u32(header, 20),
        }
    }

    /// A 6-bit hash of the ports, for a table of templates.
    #[inline(always)]
    pub fn place(frame: &[u8]) -> Option<usize> {
        let header: &[u8; PLAIN_HEADER_BYTES] = frame.first_chunk()?;
        Some((native_u32(header, 34).wrapping_mul(0x9e37_79b1) >> 26) as usize)
    }

    /// Returns the variable fields of a frame if it is a plain segment that matches this template: an ACK, with or
    /// without data, without ECN flags, and with no options except timestamps and SACK, all captured.
    #[inline(always)]
    pub fn fast_header<'a>(&self, link: LinkType, frame: &'a [u8]) -> Option<FastHeader<'a>> {
        let header: &[u8; PLAIN_HEADER_BYTES] = frame.first_chunk()?;
        let theirs = Self::read(header);
        let differ = (self.link[0] ^ theirs.link[0])
            | (self.link[1] ^ theirs.link[1])
            | (self.addresses ^ theirs.addresses)
            | u64::from(
                (self.ports ^ theirs.ports)
                    | (self.kind ^ theirs.kind)
                    | (self.fragment_ttl_protocol ^ theirs.fragment_ttl_protocol),
            );
        let other =
            Flags::FIN.0 | Flags::SYN.0 | Flags::RST.0 | Flags::ACK.0 | Flags::ECE.0 | Flags::CWR.0 | Flags::AE.0;
        let flags = u16::from_be_bytes([header[46], header[47]]);
        if differ != 0 || link != LinkType::ETHERNET || flags & other != Flags::ACK.0 {
            return None;
        }
        let length = usize::from(header[46] >> 4) * 4;
        let payload = u32::from(read_u16(header, 16)).checked_sub(20 + length as u32)?;
        let (mut timestamp, mut echo, mut sack) = (None, None, [].as_slice());
        if length != 20 {
            let options = frame.get(PLAIN_HEADER_BYTES..34 + length)?;
            let aligned: &[u8; ALIGNED_LENGTH] = options.first_chunk()?;
            if be32(aligned, 0) != Some(ALIGNED_TIMESTAMPS) {
                return None;
            }
            timestamp = be32(aligned, 4);
            echo = be32(aligned, 8);
            if length != 20 + ALIGNED_LENGTH {
                sack = sack_blocks(&options[ALIGNED_LENGTH..])?;
            }
        }
        Some(FastHeader {
            identification: read_u16(header, 18),
            sequence: read_u32(header, 38),
            acknowledgement: read_u32(header, 42),
            window: read_u16(header, 48),
            payload,
            timestamp,
            echo,
            traffic_class: header[15],
            pushed: flags & Flags::PSH.0 != 0,
            sack,
        })
    }
}

/// Returns the SACK blocks, if the options are two NOPs and SACK.
#[inline(always)]
fn sack_blocks(options: &[u8]) -> Option<&[u8]> {
    let (head, blocks) = options.split_first_chunk::<4>()?;
    let whole = usize::from(head[3]) == blocks.len() + 2 && blocks.len() % 8 == 0;
    (head[..3] == ALIGNED_SACK && whole).then_some(blocks)
}

impl FastHeader<'_> {
    /// Whether the segment has no SACK blocks.
    #[inline]
    pub fn has_no_sack(&self) -> bool {
        self.sack.is_empty()
    }

    /// SACK blocks of the segment.
    #[inline]
    pub fn sack(&self) -> SackBlocks {
        if self.sack.is_empty() {
            return SackBlocks::default();
        }
        self.sack.chunks_exact(8).filter_map(|block| be32(block, 0).zip(be32(block, 4))).collect()
    }
}
