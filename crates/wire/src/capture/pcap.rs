//! The classic pcap format: a file header, then records (draft-ietf-opsawg-pcap).

use super::{CaptureError, CaptureItem, Frame, MAX_RECORD_BYTES, Order, Sink};
use crate::LinkType;

/// Size of the file header, bytes.
pub const HEADER: usize = 24;

/// Variant of the format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Variant {
    order: Order,
    /// Unit of the fractional part of timestamps, nanoseconds.
    fraction_ns: u64,
    /// Size of a record header, bytes: 16, or 24 with the fields of Kuznetzov's patch.
    record: usize,
    name: &'static str,
}

/// Returns the variant for a magic number that was read in little-endian order.
pub fn variant(magic: u32) -> Option<Variant> {
    use Order::{Big, Little};
    let (order, fraction_ns, record, name) = match magic {
        0xa1b2_c3d4 => (Little, 1_000, 16, "pcap, µs"),
        0xd4c3_b2a1 => (Big, 1_000, 16, "pcap, µs, big-endian"),
        0xa1b2_3c4d => (Little, 1, 16, "pcap, ns"),
        0x4d3c_b2a1 => (Big, 1, 16, "pcap, ns, big-endian"),
        0xa1b2_cd34 => (Little, 1_000, 24, "pcap with Kuznetzov's records"),
        0x34cd_b2a1 => (Big, 1_000, 24, "pcap with Kuznetzov's records, big-endian"),
        _ => return None,
    };
    Some(Variant { order, fraction_ns, record, name })
}

/// Reader of the records after the file header.
#[derive(Debug, Clone)]
pub struct Pcap {
    variant: Variant,
    link: LinkType,
    lengths: Lengths,
}

/// Order of the two lengths of a record. Before version 2.3 the original length came first, and some programs wrote 2.3 in
/// either order (libpcap).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Lengths {
    CapturedFirst,
    OriginalFirst,
    LowerIsCaptured,
}

impl Pcap {
    /// Parses a file header.
    pub fn new(variant: Variant, header: &[u8; HEADER]) -> Result<Self, CaptureError> {
        let order = variant.order;
        let (major, minor) = (order.u16_at(header, 4), order.u16_at(header, 6));
        let lengths = match (major, minor) {
            // DG/UX wrote version 543.
            (2, ..3) | (543, 0) => Lengths::OriginalFirst,
            (2, 3) => Lengths::LowerIsCaptured,
            (2, _) => Lengths::CapturedFirst,
            _ => return Err(CaptureError::Version { format: "pcap", major, minor }),
        };
        // The upper bits contain the length of the frame check sequence.
        let link = LinkType(order.u32_at(header, 20) & 0x03ff_ffff);
        Ok(Self { variant, link, lengths })
    }

    /// Name of the variant.
    pub fn name(&self) -> &'static str {
        self.variant.name
    }

    /// Whether the file is little-endian and of a current version, which is the common case.
    pub fn is_little_endian(&self) -> bool {
        self.variant.order == Order::Little && self.lengths == Lengths::CapturedFirst
    }

    /// Fast path for little-endian files: passes all complete records at the start of `bytes` to `sink`. Returns
    /// the number of bytes consumed, and how many bytes are needed to continue.
    #[inline]
    pub fn drain(&self, bytes: &[u8], sink: &mut impl Sink) -> (usize, Result<usize, CaptureError>) {
        let mut at = 0;
        loop {
            match self.record(&bytes[at..], Order::Little, Lengths::CapturedFirst) {
                Ok((used, CaptureItem::Frame(frame))) => {
                    at += used;
                    sink.frame(&frame);
                }
                Ok((_, CaptureItem::More(needed))) => return (at, Ok(needed)),
                Ok((used, _)) => at += used,
                Err(why) => return (at, Err(why)),
            }
        }
    }

    /// Parses the next record.
    #[inline]
    pub fn next<'a>(&self, bytes: &'a [u8]) -> Result<(usize, CaptureItem<'a>), CaptureError> {
        self.record(bytes, self.variant.order, self.lengths)
    }

    #[inline(always)]
    fn record<'a>(
        &self,
        bytes: &'a [u8],
        order: Order,
        lengths: Lengths,
    ) -> Result<(usize, CaptureItem<'a>), CaptureError> {
        let Variant { fraction_ns, record, .. } = self.variant;
        let Some(header) = bytes.first_chunk::<16>() else { return Ok((0, CaptureItem::More(record))) };
        let [first, second] = [order.u32_at(header, 8), order.u32_at(header, 12)];
        let (captured, original) = match lengths {
            Lengths::CapturedFirst => (first, second),
            Lengths::OriginalFirst => (second, first),
            Lengths::LowerIsCaptured => (first.min(second), first.max(second)),
        };
        if captured > MAX_RECORD_BYTES {
            return Err(CaptureError::Length(captured));
        }
        let end = record + captured as usize;
        let Some(data) = bytes.get(record..end) else { return Ok((0, CaptureItem::More(end))) };
        let fraction = u64::from(order.u32_at(header, 4));
        let time_ns = u64::from(order.u32_at(header, 0)) * 1_000_000_000 + fraction * fraction_ns;
        let original = original.max(captured);
        Ok((end, CaptureItem::Frame(Frame { interface: 0, link: self.link, time_ns, original, data })))
    }
}
