//! Headers like those of a packet before, recognised by a few wide compares instead of being dissected: the kernel's "header
//! prediction" (Jacobson, 1990), for a tap.

use crate::bytes::be32;
use crate::link::LinkType;
use crate::tcp::{ALIGNED_LENGTH, ALIGNED_TIMESTAMPS, Flags, SackBlocks};

/// Bytes of the plain headers: Ethernet, IPv4 and TCP without options.
const PLAIN: usize = 54;
/// Two fillers and the kind of a SACK option: how every stack sends it behind timestamps.
const ALIGNED_SACK: [u8; 3] = [1, 1, 5];

/// What the plain segments of a flow's direction have in common, but for the type of service.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Alike {
    /// Ethernet addresses, overlapping, with the EtherType behind them.
    link: [u64; 2],
    /// IPv4 addresses.
    addresses: u64,
    ports: u32,
    /// EtherType, version and length of the header.
    kind: u32,
    /// Fragment's place, time to live, protocol.
    way: u32,
}

/// What differs from segment to segment.
#[derive(Debug, Clone, Copy)]
pub struct Brief<'a> {
    /// IPv4's identification.
    pub identification: u16,
    /// Sequence number.
    pub sequence: u32,
    /// Acknowledgement number.
    pub acknowledgement: u32,
    /// Window, unscaled.
    pub window: u16,
    /// Payload on the wire, bytes.
    pub payload: u32,
    /// TSval.
    pub timestamp: Option<u32>,
    /// DSCP and ECN.
    pub traffic_class: u8,
    /// Whether it has the flag PSH.
    pub pushed: bool,
    sack: &'a [u8],
}

fn word(header: &[u8; PLAIN], at: usize) -> u32 {
    u32::from_be_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]])
}

fn half(header: &[u8; PLAIN], at: usize) -> u16 {
    u16::from_be_bytes([header[at], header[at + 1]])
}

/// Four bytes as they lie: good for comparing.
fn lying(header: &[u8; PLAIN], at: usize) -> u32 {
    u32::from_ne_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]])
}

/// Eight bytes as they lie, which is one read only if it is written like this.
fn both(header: &[u8; PLAIN], at: usize) -> u64 {
    header.get(at..).and_then(<[u8]>::first_chunk).map_or(0, |bytes| u64::from_ne_bytes(*bytes))
}

impl Alike {
    /// Of a frame that [`plain`](crate::plain) dissects; `None` for any other.
    pub fn of(link: LinkType, frame: &[u8]) -> Option<Self> {
        let header: &[u8; PLAIN] = frame.first_chunk()?;
        let plain = link == LinkType::ETHERNET
            && header[12..15] == [0x08, 0x00, 0x45]
            && header[23] == 6
            && [header[20] & 0x1f, header[21]] == [0, 0];
        plain.then(|| Self::read(header))
    }

    #[inline(always)]
    fn read(header: &[u8; PLAIN]) -> Self {
        Self {
            link: [both(header, 0), both(header, 6)],
            addresses: both(header, 26),
            ports: lying(header, 34),
            kind: lying(header, 12) & u32::from_ne_bytes([0xff, 0xff, 0xff, 0]),
            way: lying(header, 20),
        }
    }

    /// A number of six bits by which a frame's likes may be looked for.
    #[inline(always)]
    pub fn place(frame: &[u8]) -> Option<usize> {
        let header: &[u8; PLAIN] = frame.first_chunk()?;
        Some((lying(header, 34).wrapping_mul(0x9e37_79b1) >> 26) as usize)
    }

    /// What a frame says that these headers do not, if it is a plain segment like them: an acknowledgement, with data or none,
    /// without a flag of ECN, and with no options but timestamps and SACK, all of them captured.
    #[inline(always)]
    pub fn brief<'a>(&self, link: LinkType, frame: &'a [u8]) -> Option<Brief<'a>> {
        let header: &[u8; PLAIN] = frame.first_chunk()?;
        let theirs = Self::read(header);
        let differ = (self.link[0] ^ theirs.link[0])
            | (self.link[1] ^ theirs.link[1])
            | (self.addresses ^ theirs.addresses)
            | u64::from((self.ports ^ theirs.ports) | (self.kind ^ theirs.kind) | (self.way ^ theirs.way));
        let other =
            Flags::FIN.0 | Flags::SYN.0 | Flags::RST.0 | Flags::ACK.0 | Flags::ECE.0 | Flags::CWR.0 | Flags::AE.0;
        let flags = u16::from_be_bytes([header[46], header[47]]);
        if differ != 0 || link != LinkType::ETHERNET || flags & other != Flags::ACK.0 {
            return None;
        }
        let length = usize::from(header[46] >> 4) * 4;
        let payload = u32::from(half(header, 16)).checked_sub(20 + length as u32)?;
        let (mut timestamp, mut sack) = (None, [].as_slice());
        if length != 20 {
            let options = frame.get(PLAIN..34 + length)?;
            let aligned: &[u8; ALIGNED_LENGTH] = options.first_chunk()?;
            if be32(aligned, 0) != Some(ALIGNED_TIMESTAMPS) {
                return None;
            }
            timestamp = be32(aligned, 4);
            if length != 20 + ALIGNED_LENGTH {
                sack = selective(&options[ALIGNED_LENGTH..])?;
            }
        }
        Some(Brief {
            identification: half(header, 18),
            sequence: word(header, 38),
            acknowledgement: word(header, 42),
            window: half(header, 48),
            payload,
            timestamp,
            traffic_class: header[15],
            pushed: flags & Flags::PSH.0 != 0,
            sack,
        })
    }
}

/// The blocks of options that are two fillers and SACK.
#[inline(always)]
fn selective(options: &[u8]) -> Option<&[u8]> {
    let (head, blocks) = options.split_first_chunk::<4>()?;
    let whole = usize::from(head[3]) == blocks.len() + 2 && blocks.len() % 8 == 0;
    (head[..3] == ALIGNED_SACK && whole).then_some(blocks)
}

impl Brief<'_> {
    /// Whether it acknowledges nothing selectively.
    #[inline]
    pub fn has_no_sack(&self) -> bool {
        self.sack.is_empty()
    }

    /// Its SACK blocks.
    #[inline]
    pub fn sack(&self) -> SackBlocks {
        if self.sack.is_empty() {
            return SackBlocks::default();
        }
        self.sack.chunks_exact(8).filter_map(|block| be32(block, 0).zip(be32(block, 4))).collect()
    }
}
