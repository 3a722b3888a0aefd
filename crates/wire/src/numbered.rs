//! Layouts of datagrams with sequence numbers. A single payload does not identify the protocol; this module
//! parses it under the assumption of one, and the caller compares several.

/// Protocols with sequence numbers in their datagrams.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Numbering {
    /// `landspeed run --udp`: tag, version 1, 64-bit number from 0, nanoseconds since the start.
    Landspeed,
    /// iperf3: seconds, microseconds, 32-bit number from 1.
    Iperf3,
    /// iperf3 with `--udp-counters-64bit`: the same with a 64-bit number.
    Iperf3Wide,
    /// RTP (RFC 3550): 16-bit number from a random start.
    Rtp,
}

/// Fields of a numbered datagram.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NumberedDatagram {
    /// Sequence number, [`Numbering::bits`] wide.
    pub number: u64,
    /// Identifier of the stream: landspeed's tag, or RTP's SSRC; 0 for iperf3.
    pub tag: u32,
    /// Send time, nanoseconds of the sender's clock; `None` for RTP.
    pub sent_ns: Option<u64>,
}

impl Numbering {
    /// Every protocol that payloads are tried as.
    pub const ALL: [Self; 4] = [Self::Landspeed, Self::Iperf3, Self::Iperf3Wide, Self::Rtp];

    /// Name of the protocol, as printed in reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Landspeed => "landspeed",
            Self::Iperf3 => "iperf3",
            Self::Iperf3Wide => "iperf3, 64-bit counters",
            Self::Rtp => "RTP",
        }
    }

    /// Width of the sequence number, bits; it wraps after that.
    pub fn bits(self) -> u32 {
        match self {
            Self::Landspeed | Self::Iperf3Wide => 64,
            Self::Iperf3 => 32,
            Self::Rtp => 16,
        }
    }

    /// Number of a stream's first datagram; `None` if it is random.
    pub fn first(self) -> Option<u64> {
        match self {
            Self::Landspeed => Some(0),
            Self::Iperf3 | Self::Iperf3Wide => Some(1),
            Self::Rtp => None,
        }
    }

    /// Parses a payload as this protocol's; `None` if that is impossible.
    pub fn read(self, payload: &[u8]) -> Option<NumberedDatagram> {
        let word = |at: usize| Some(u32::from_be_bytes(*payload.get(at..)?.first_chunk()?));
        let wide = |at: usize| Some(u64::from_be_bytes(*payload.get(at..)?.first_chunk()?));
        match self {
            Self::Landspeed => {
                let version = word(4)? == 0x0100_0000;
                version.then_some(NumberedDatagram { number: wide(8)?, tag: word(0)?, sent_ns: Some(wide(16)?) })
            }
            Self::Iperf3 | Self::Iperf3Wide => {
                let (seconds, micros) = (word(0)?, word(4)?);
                let sent_ns = u64::from(seconds) * 1_000_000_000 + u64::from(micros) * 1_000;
                let number = if self == Self::Iperf3 { u64::from(word(8)?) } else { wide(8)? };
                (micros < 1_000_000).then_some(NumberedDatagram { number, tag: 0, sent_ns: Some(sent_ns) })
            }
            Self::Rtp => {
                let header: &[u8; 12] = payload.first_chunk()?;
                // RTP version 2, and a payload type that RTCP does not use.
                let plausible = header[0] >> 6 == 2 && !(64..=95).contains(&(header[1] & 0x7f));
                let number = u64::from(u16::from_be_bytes([header[2], header[3]]));
                plausible.then_some(NumberedDatagram { number, tag: word(8)?, sent_ns: None })
            }
        }
    }
}
