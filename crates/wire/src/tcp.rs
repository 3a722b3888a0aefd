//! TCP header and options (RFC 9293, 7323, 2018, 2883).

use crate::bytes::{be16, be32, be64, octet};

/// TCP flags: bytes 12 and 13 of the header, without the data offset.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Flags(pub u16);

impl Flags {
    /// No more data from the sender.
    pub const FIN: Self = Self(0x01);
    /// Synchronise sequence numbers.
    pub const SYN: Self = Self(0x02);
    /// Reset the connection.
    pub const RST: Self = Self(0x04);
    /// Push: deliver the data to the application.
    pub const PSH: Self = Self(0x08);
    /// The acknowledgement number is valid.
    pub const ACK: Self = Self(0x10);
    /// ECN echo: congestion was signalled (RFC 3168).
    pub const ECE: Self = Self(0x40);
    /// Congestion window reduced.
    pub const CWR: Self = Self(0x80);
    /// Accurate ECN (RFC 9768).
    pub const AE: Self = Self(0x100);

    /// Whether any of the flags in `other` is set.
    pub fn has(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }
}

/// SACK blocks of a segment: half-open ranges of sequence numbers, in the order sent.
#[derive(Debug, Clone, Copy, Default)]
pub struct SackBlocks {
    blocks: [(u32, u32); Self::MAX_BLOCKS],
    count: u8,
}

impl FromIterator<(u32, u32)> for SackBlocks {
    /// Keeps the first [`SackBlocks::MAX_BLOCKS`] blocks.
    fn from_iter<T: IntoIterator<Item = (u32, u32)>>(blocks: T) -> Self {
        let mut sack = Self::default();
        blocks.into_iter().take(Self::MAX_BLOCKS).for_each(|block| sack.push(block));
        sack
    }
}

impl PartialEq for SackBlocks {
    fn eq(&self, other: &Self) -> bool {
        self.as_slice() == other.as_slice()
    }
}

impl Eq for SackBlocks {}

impl SackBlocks {
    /// Maximum number of blocks in 40 bytes of options.
    pub const MAX_BLOCKS: usize = 4;

    /// The blocks as (left edge, right edge).
    pub fn as_slice(&self) -> &[(u32, u32)] {
        self.blocks.get(..usize::from(self.count)).unwrap_or_default()
    }

    fn clear(&mut self) {
        self.count = 0;
    }

    fn push(&mut self, block: (u32, u32)) {
        if let Some(slot) = self.blocks.get_mut(usize::from(self.count)) {
            *slot = block;
            self.count += 1;
        }
    }
}

/// Multipath TCP options of a segment (RFC 8684): those that open subflows and those that acknowledge data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MultipathOption {
    /// `MP_CAPABLE`: the initial subflow of a connection.
    Capable {
        /// Protocol version: 1, or 0 (RFC 6824).
        version: u8,
        /// Key of the sender of the segment; `None` in a SYN of version 1.
        sender_key: Option<u64>,
        /// Key of its receiver, in the ACK that completes the handshake.
        receiver_key: Option<u64>,
    },
    /// `MP_JOIN`: a further subflow.
    Join {
        /// Token of the receiver of a SYN; `None` in later segments of the handshake.
        token: Option<u32>,
        /// Whether the subflow is only used when no other one works.
        backup: bool,
    },
    /// `DSS`: the data sequence signal.
    Signal(DataSignal),
}

/// Acknowledgement and end of the data of a multipath connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct DataSignal {
    /// Data acknowledgement: the next data sequence number expected.
    pub acknowledgement: Option<DataNumber>,
    /// Data sequence number after the end of the sender's data (`DATA_FIN`).
    pub end: Option<DataNumber>,
}

/// A data sequence number, of which an option may contain the lower 32 bits only.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DataNumber {
    /// All 64 bits of the number.
    Whole(u64),
    /// Its lower 32 bits.
    Low(u32),
}

/// TCP options of a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TcpOptions {
    /// TSval and TSecr, if present.
    pub timestamps: Option<(u32, u32)>,
    /// Maximum segment size, bytes.
    pub mss: Option<u16>,
    /// Window scale: a shift count.
    pub window_scale: Option<u8>,
    /// Whether SACK is permitted.
    pub sack_permitted: bool,
    /// SACK blocks.
    pub sack: SackBlocks,
    /// Multipath TCP: the option that opens a subflow, otherwise the data sequence signal.
    pub multipath: Option<MultipathOption>,
    /// Whether the options are truncated by the capture or malformed, so that missing ones may have been present.
    pub incomplete: bool,
}

impl TcpOptions {
    /// Resets all options.
    fn clear(&mut self) {
        self.timestamps = None;
        self.mss = None;
        self.window_scale = None;
        self.sack_permitted = false;
        self.sack.clear();
        self.multipath = None;
        self.incomplete = false;
    }
}

/// Fields of a TCP segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TcpHeader {
    /// Source port.
    pub source: u16,
    /// Destination port.
    pub destination: u16,
    /// Sequence number of the first byte, or of the SYN.
    pub sequence: u32,
    /// Next byte expected, if ACK is set.
    pub acknowledgement: u32,
    /// Flags (SYN, ACK, …).
    pub flags: Flags,
    /// Window, unscaled.
    pub window: u16,
    /// Payload length on the wire, bytes, whether captured or not.
    pub payload: u32,
    /// Parsed options.
    pub options: TcpOptions,
}

const END: u8 = 0;
const NOP: u8 = 1;
const MSS: u8 = 2;
const WINDOW_SCALE: u8 = 3;
const SACK_PERMITTED: u8 = 4;
const SACK: u8 = 5;
const TIMESTAMPS: u8 = 8;
const MULTIPATH: u8 = 30;
/// Two NOPs and the kind and length of a timestamp option, as every stack sends it.
pub(crate) const ALIGNED_TIMESTAMPS: u32 = 0x0101_080a;
/// Length of two NOPs and a timestamp option, bytes.
pub(crate) const ALIGNED_LENGTH: usize = 12;

/// Parses the header at the start of `segment`, which had `length` bytes on the wire, into `header`. `None` if
/// it is truncated or malformed. In place, because copying the result would cost more than parsing.
#[inline]
pub(crate) fn parse(segment: &[u8], length: u32, header: &mut TcpHeader) -> Option<()> {
    let fixed: &[u8; 20] = segment.first_chunk()?;
    let offset = usize::from(fixed[12] >> 4) * 4;
    if offset < 20 {
        return None;
    }
    let word = |at: usize| u32::from_be_bytes([fixed[at], fixed[at + 1], fixed[at + 2], fixed[at + 3]]);
    let half = |at: usize| u16::from_be_bytes([fixed[at], fixed[at + 1]]);
    header.source = half(0);
    header.destination = half(2);
    header.sequence = word(4);
    header.acknowledgement = word(8);
    header.flags = Flags(half(12) & 0x0fff);
    header.window = half(14);
    header.payload = length.checked_sub(offset as u32)?;
    header.options.clear();
    if offset > 20 {
        let captured = segment.get(20..offset.min(segment.len())).unwrap_or_default();
        match captured.first_chunk::<ALIGNED_LENGTH>() {
            // Fast path for two NOPs and timestamps first, as every stack sends them.
            Some(aligned) if be32(aligned, 0) == Some(ALIGNED_TIMESTAMPS) => {
                header.options.timestamps = be32(aligned, 4).zip(be32(aligned, 8));
                if captured.len() > ALIGNED_LENGTH {
                    options(captured, ALIGNED_LENGTH, &mut header.options);
                }
            }
            _ => options(captured, 0, &mut header.options),
        }
        header.options.incomplete |= segment.len() < offset;
    }
    Some(())
}

fn options(bytes: &[u8], mut at: usize, into: &mut TcpOptions) {
    while let Some(kind) = octet(bytes, at) {
        match kind {
            END => return,
            NOP => at += 1,
            _ => {
                let length = octet(bytes, at + 1).map_or(0, usize::from);
                let Some(value) = (length >= 2).then(|| bytes.get(at + 2..at + length)).flatten() else {
                    into.incomplete = true;
                    return;
                };
                option(kind, value, into);
                at += length;
            }
        }
    }
}

fn option(kind: u8, value: &[u8], into: &mut TcpOptions) {
    match (kind, value.len()) {
        (MSS, 2) => into.mss = be16(value, 0),
        (WINDOW_SCALE, 1) => into.window_scale = octet(value, 0),
        (SACK_PERMITTED, 0) => into.sack_permitted = true,
        (TIMESTAMPS, 8) => into.timestamps = be32(value, 0).zip(be32(value, 4)),
        (SACK, length) if length % 8 == 0 => {
            for block in value.chunks_exact(8) {
                if let Some(block) = be32(block, 0).zip(be32(block, 4)) {
                    into.sack.push(block);
                }
            }
        }
        (MULTIPATH, _) => {
            if let Some(option) = multipath(value) {
                let opens = !matches!(option, MultipathOption::Signal(_));
                if opens || into.multipath.is_none() {
                    into.multipath = Some(option);
                }
            }
        }
        _ => {}
    }
}

/// Parses a multipath option without its kind and length (RFC 8684, section 3).
#[cold]
fn multipath(value: &[u8]) -> Option<MultipathOption> {
    let (first, second) = (octet(value, 0)?, octet(value, 1).unwrap_or(0));
    match first >> 4 {
        0 => Some(MultipathOption::Capable {
            version: first & 0x0f,
            sender_key: be64(value, 2),
            receiver_key: be64(value, 10),
        }),
        // Only the option of a SYN has 12 bytes.
        1 => Some(MultipathOption::Join {
            token: if value.len() == 10 { be32(value, 2) } else { None },
            backup: first & 1 != 0,
        }),
        2 => {
            let mut at = 2;
            let mut number = |present: bool, whole: bool| {
                let here = at;
                at += if !present {
                    0
                } else if whole {
                    8
                } else {
                    4
                };
                match (present, whole) {
                    (false, _) => None,
                    (true, true) => be64(value, here).map(DataNumber::Whole),
                    (true, false) => be32(value, here).map(DataNumber::Low),
                }
            };
            let acknowledgement = number(second & 0x01 != 0, second & 0x02 != 0);
            let sequence = number(second & 0x04 != 0, second & 0x08 != 0);
            let length = be16(value, at + 4);
            let end = sequence.zip(length).filter(|_| second & 0x10 != 0).map(|(start, length)| start.plus(length));
            Some(MultipathOption::Signal(DataSignal { acknowledgement, end }))
        }
        _ => None,
    }
}

impl DataNumber {
    fn plus(self, length: u16) -> Self {
        match self {
            Self::Whole(number) => Self::Whole(number.wrapping_add(length.into())),
            Self::Low(number) => Self::Low(number.wrapping_add(length.into())),
        }
    }
}
