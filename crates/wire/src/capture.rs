//! Readers of capture files: pcap in its variants, and pcapng. They perform no I/O: the caller provides bytes
//! and is told how many more are needed, so files, pipes and decompressors work alike.

use crate::LinkType;

mod pcap;
mod pcapng;
mod sort;
pub mod write;

pub use sort::{SORTED_WITHIN_NS, Sorter, SortingSink};

/// A frame of a capture.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Frame<'a> {
    /// Number of its interface in the capture, from 0.
    pub interface: u32,
    /// Link-layer header type.
    pub link: LinkType,
    /// Timestamp, nanoseconds since the Unix epoch; 0 if the capture has none (simple packet blocks).
    pub time_ns: u64,
    /// Original length, bytes.
    pub original: u32,
    /// Captured bytes.
    pub data: &'a [u8],
}

/// Statistics of an interface, as recorded in a pcapng capture.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct InterfaceStatistics {
    /// Number of the interface, from 0.
    pub interface: u32,
    /// Frames received.
    pub received: Option<u64>,
    /// Frames dropped by the interface or by the capture.
    pub dropped: Option<u64>,
}

/// Receiver of the contents of a capture.
pub trait Sink {
    /// Handles a frame; called in the order of the capture.
    fn frame(&mut self, frame: &Frame<'_>);

    /// Handles a frame that a filter excludes: it only counts in the numbers of later frames.
    fn skipped(&mut self) {}

    /// Handles the statistics of an interface.
    fn statistics(&mut self, statistics: InterfaceStatistics);
}

/// Result of parsing the next part of a capture.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CaptureItem<'a> {
    /// A packet with its timestamp.
    Frame(Frame<'a>),
    /// Statistics of an interface.
    Statistics(InterfaceStatistics),
    /// A header or block without traffic.
    Skipped,
    /// More bytes are needed; this is the total number.
    More(usize),
}

/// Reason why a capture cannot be read further.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum CaptureError {
    /// The first bytes are not those of a capture.
    #[error("not a capture: it begins with {0:#010x}, which is neither pcap nor pcapng")]
    NotACapture(u32),
    /// The format version is not supported.
    #[error("{format} version {major}.{minor} is not known")]
    Version {
        /// Name of the format.
        format: &'static str,
        /// Major version number.
        major: u16,
        /// Minor version number.
        minor: u16,
    },
    /// The length of a record is impossible.
    #[error("a record of {0} bytes: the file is damaged here")]
    Length(u32),
    /// A block is inconsistent.
    #[error("{0}: the file is damaged here")]
    Damaged(&'static str),
}

/// Maximum timestamp, nanoseconds since the Unix epoch (year 2116). Corrupt files can contain any value; this
/// one can be added and subtracted without overflow.
pub const MAX_TIMESTAMP_NS: u64 = i64::MAX as u64 / 2;

/// Maximum plausible record length, bytes. Larger than any frame of the kernel (BIG TCP: 512 KiB).
pub const MAX_RECORD_BYTES: u32 = 16 << 20;

/// Reader for captures of any supported format, detected by the first bytes.
#[derive(Debug, Clone, Default)]
pub struct Reader {
    format: Option<Format>,
}

#[derive(Debug, Clone)]
enum Format {
    Pcap(pcap::Pcap),
    Pcapng(pcapng::Pcapng),
}

impl Reader {
    /// Creates a reader for the start of a capture.
    pub fn new() -> Self {
        Self::default()
    }

    /// Parses the next item at the start of `bytes`; returns the number of bytes consumed, 0 with [`CaptureItem::More`].
    pub fn next<'a>(&mut self, bytes: &'a [u8]) -> Result<(usize, CaptureItem<'a>), CaptureError> {
        match &mut self.format {
            Some(Format::Pcap(pcap)) => pcap.next(bytes),
            Some(Format::Pcapng(pcapng)) => pcapng.next(bytes),
            None => self.begin(bytes),
        }
    }

    /// Passes all complete items at the start of `bytes` to `sink`. Returns the number of bytes consumed, and how
    /// many bytes are needed to continue.
    pub fn drain(&mut self, bytes: &[u8], sink: &mut impl Sink) -> (usize, Result<usize, CaptureError>) {
        let mut at = 0;
        loop {
            if let Some(Format::Pcap(pcap)) = &self.format
                && pcap.is_little_endian()
            {
                let (used, needed) = pcap.drain(&bytes[at..], sink);
                return (at + used, needed);
            }
            match self.next(&bytes[at..]) {
                Ok((_, CaptureItem::More(needed))) => return (at, Ok(needed)),
                Ok((used, next)) => {
                    at += used;
                    match next {
                        CaptureItem::Frame(frame) => sink.frame(&frame),
                        CaptureItem::Statistics(statistics) => sink.statistics(statistics),
                        CaptureItem::Skipped | CaptureItem::More(_) => {}
                    }
                }
                Err(why) => return (at, Err(why)),
            }
        }
    }

    fn begin<'a>(&mut self, bytes: &'a [u8]) -> Result<(usize, CaptureItem<'a>), CaptureError> {
        let Some(magic) = bytes.first_chunk() else { return Ok((0, CaptureItem::More(4))) };
        let magic = u32::from_le_bytes(*magic);
        if magic == pcapng::SECTION {
            let mut pcapng = pcapng::Pcapng::default();
            let next = pcapng.next(bytes)?;
            if next.0 > 0 {
                self.format = Some(Format::Pcapng(pcapng));
            }
            return Ok(next);
        }
        let Some(variant) = pcap::variant(magic) else { return Err(CaptureError::NotACapture(magic.swap_bytes())) };
        let Some(header) = bytes.first_chunk() else { return Ok((0, CaptureItem::More(pcap::HEADER))) };
        self.format = Some(Format::Pcap(pcap::Pcap::new(variant, header)?));
        Ok((pcap::HEADER, CaptureItem::Skipped))
    }

    /// Name of the format; `None` before it is detected.
    pub fn format(&self) -> Option<&'static str> {
        Some(match self.format.as_ref()? {
            Format::Pcap(pcap) => pcap.name(),
            Format::Pcapng(_) => "pcapng",
        })
    }

    /// Name of an interface, if the capture has it.
    pub fn interface_name(&self, interface: u32) -> Option<&str> {
        match self.format.as_ref()? {
            Format::Pcap(_) => None,
            Format::Pcapng(pcapng) => pcapng.interface_name(interface),
        }
    }
}

/// Byte order of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Order {
    Little,
    Big,
}

impl Order {
    pub(crate) fn u16(self, bytes: [u8; 2]) -> u16 {
        match self {
            Self::Little => u16::from_le_bytes(bytes),
            Self::Big => u16::from_be_bytes(bytes),
        }
    }

    pub(crate) fn u32(self, bytes: [u8; 4]) -> u32 {
        match self {
            Self::Little => u32::from_le_bytes(bytes),
            Self::Big => u32::from_be_bytes(bytes),
        }
    }

    /// Two bytes at an offset; 0 past the end.
    pub(crate) fn u16_at(self, bytes: &[u8], at: usize) -> u16 {
        bytes.get(at..).and_then(<[u8]>::first_chunk).map_or(0, |value| self.u16(*value))
    }

    /// Four bytes at an offset; 0 past the end.
    pub(crate) fn u32_at(self, bytes: &[u8], at: usize) -> u32 {
        bytes.get(at..).and_then(<[u8]>::first_chunk).map_or(0, |value| self.u32(*value))
    }
}
