//! Capture files, cut into frames: pcap in its variants and pcapng. Performs no I/O: the caller provides bytes and learns
//! how many more are needed, so that a file, a pipe and a decompressor are all the same.

use crate::LinkType;

mod pcap;
mod pcapng;
mod sort;
pub mod write;

pub use sort::{SORTED_WITHIN_NS, Sorted, Sorter};

/// A frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Frame<'a> {
    /// Number of its interface in the capture, from 0.
    pub interface: u32,
    /// What it begins with.
    pub link: LinkType,
    /// Nanoseconds since the Unix epoch, as the capture says; 0 where it says nothing (simple packet blocks).
    pub time_ns: u64,
    /// Bytes it had on the wire.
    pub original: u32,
    /// What was captured of it.
    pub data: &'a [u8],
}

/// Statistics of an interface that a capture carries (pcapng).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct InterfaceStatistics {
    /// Which, from 0.
    pub interface: u32,
    /// Frames received.
    pub received: Option<u64>,
    /// Frames the interface or the capture dropped.
    pub dropped: Option<u64>,
}

/// Who takes what a capture brings.
pub trait Sink {
    /// Takes a frame, in the order of the capture.
    fn frame(&mut self, frame: &Frame<'_>);

    /// Takes an interface's own statistics.
    fn statistics(&mut self, statistics: InterfaceStatistics);
}

/// What came out of the bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next<'a> {
    /// A frame.
    Frame(Frame<'a>),
    /// Statistics of an interface.
    Statistics(InterfaceStatistics),
    /// Something that says nothing of the traffic.
    Skipped,
    /// Nothing yet: this many bytes must be there to go on.
    More(usize),
}

/// Why a capture cannot be read on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum CaptureError {
    /// Its first bytes are not those of a capture.
    #[error("not a capture: it begins with {0:#010x}, which is neither pcap nor pcapng")]
    NotACapture(u32),
    /// A version that is not known.
    #[error("{format} version {major}.{minor} is not known")]
    Version {
        /// Of which format.
        format: &'static str,
        /// Major.
        major: u16,
        /// Minor.
        minor: u16,
    },
    /// A length that cannot be.
    #[error("a record of {0} bytes: the file is damaged here")]
    Length(u32),
    /// A block that contradicts itself.
    #[error("{0}: the file is damaged here")]
    Damaged(&'static str),
}

/// The latest representable time, nanoseconds since the Unix epoch: in 2116. A damaged file can say anything, and times
/// are added and subtracted.
pub const LATEST_NS: u64 = i64::MAX as u64 / 2;

/// The longest record believed, bytes. Larger than any frame a kernel makes (BIG TCP: 512 KiB).
pub const LONGEST: u32 = 16 << 20;

/// Reads a capture of any known format, recognised by its first bytes.
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
    /// A reader at the start of a capture.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes what comes next from the front of `bytes`, and says how many bytes it took. [`Next::More`] takes none.
    pub fn next<'a>(&mut self, bytes: &'a [u8]) -> Result<(usize, Next<'a>), CaptureError> {
        match &mut self.format {
            Some(Format::Pcap(pcap)) => pcap.next(bytes),
            Some(Format::Pcapng(pcapng)) => pcapng.next(bytes),
            None => self.begin(bytes),
        }
    }

    /// Gives `sink` all that is whole at the front of `bytes`. Says how many bytes that was, and how many must be there to
    /// go on.
    pub fn drain(&mut self, bytes: &[u8], sink: &mut impl Sink) -> (usize, Result<usize, CaptureError>) {
        let mut at = 0;
        loop {
            if let Some(Format::Pcap(pcap)) = &self.format
                && pcap.is_little()
            {
                let (used, needed) = pcap.drain(&bytes[at..], sink);
                return (at + used, needed);
            }
            match self.next(&bytes[at..]) {
                Ok((_, Next::More(needed))) => return (at, Ok(needed)),
                Ok((used, next)) => {
                    at += used;
                    match next {
                        Next::Frame(frame) => sink.frame(&frame),
                        Next::Statistics(statistics) => sink.statistics(statistics),
                        Next::Skipped | Next::More(_) => {}
                    }
                }
                Err(why) => return (at, Err(why)),
            }
        }
    }

    fn begin<'a>(&mut self, bytes: &'a [u8]) -> Result<(usize, Next<'a>), CaptureError> {
        let Some(magic) = bytes.first_chunk() else { return Ok((0, Next::More(4))) };
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
        let Some(header) = bytes.first_chunk() else { return Ok((0, Next::More(pcap::HEADER))) };
        self.format = Some(Format::Pcap(pcap::Pcap::new(variant, header)?));
        Ok((pcap::HEADER, Next::Skipped))
    }

    /// What the format is called; `None` before it is known.
    pub fn format(&self) -> Option<&'static str> {
        Some(match self.format.as_ref()? {
            Format::Pcap(pcap) => pcap.name(),
            Format::Pcapng(_) => "pcapng",
        })
    }

    /// Name of an interface, where the capture has it.
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
