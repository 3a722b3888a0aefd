//! Datagrams with sequence numbers: the layout of the known protocols. Only several payloads can show that they are of a
//! protocol; this module reads one under that assumption.

/// A protocol whose datagrams are numbered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Numbering {
    /// `landspeed run --udp`: a tag, version 1, a 64-bit number from 0, nanoseconds since the start.
    Landspeed,
    /// iperf3: seconds, microseconds, a 32-bit number from 1.
    Iperf3,
    /// iperf3 with `--udp-counters-64bit`.
    Iperf3Wide,
    /// RTP (RFC 3550): a 16-bit number from anywhere.
    Rtp,
}

/// What a datagram says of itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Numbered {
    /// Its number.
    pub number: u64,
    /// What all datagrams of a stream share.
    pub tag: u32,
    /// When it was sent, nanoseconds by a clock of the sender.
    pub sent_ns: Option<u64>,
}

impl Numbering {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Landspeed, Self::Iperf3, Self::Iperf3Wide, Self::Rtp];

    /// What people call it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Landspeed => "landspeed",
            Self::Iperf3 => "iperf3",
            Self::Iperf3Wide => "iperf3, 64-bit counters",
            Self::Rtp => "RTP",
        }
    }

    /// Bits of its numbers, after which they wrap.
    pub fn bits(self) -> u32 {
        match self {
            Self::Landspeed | Self::Iperf3Wide => 64,
            Self::Iperf3 => 32,
            Self::Rtp => 16,
        }
    }

    /// The number of a stream's first datagram; `None` for one that begins anywhere.
    pub fn first(self) -> Option<u64> {
        match self {
            Self::Landspeed => Some(0),
            Self::Iperf3 | Self::Iperf3Wide => Some(1),
            Self::Rtp => None,
        }
    }

    /// Reads a payload as this protocol's; `None` if it cannot be one.
    pub fn read(self, payload: &[u8]) -> Option<Numbered> {
        let word = |at: usize| Some(u32::from_be_bytes(*payload.get(at..)?.first_chunk()?));
        let wide = |at: usize| Some(u64::from_be_bytes(*payload.get(at..)?.first_chunk()?));
        match self {
            Self::Landspeed => {
                let version = word(4)? == 0x0100_0000;
                version.then_some(Numbered { number: wide(8)?, tag: word(0)?, sent_ns: Some(wide(16)?) })
            }
            Self::Iperf3 | Self::Iperf3Wide => {
                let (seconds, micros) = (word(0)?, word(4)?);
                let sent_ns = u64::from(seconds) * 1_000_000_000 + u64::from(micros) * 1_000;
                let number = if self == Self::Iperf3 { u64::from(word(8)?) } else { wide(8)? };
                (micros < 1_000_000).then_some(Numbered { number, tag: 0, sent_ns: Some(sent_ns) })
            }
            Self::Rtp => {
                let header: &[u8; 12] = payload.first_chunk()?;
                // Version 2, and a payload type that is not RTCP.
                let plausible = header[0] >> 6 == 2 && !(64..=95).contains(&(header[1] & 0x7f));
                let number = u64::from(u16::from_be_bytes([header[2], header[3]]));
                plausible.then_some(Numbered { number, tag: word(8)?, sent_ns: None })
            }
        }
    }
}
