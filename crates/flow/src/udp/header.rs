//! Header of UDP datagrams, in landspeed's and in iperf3's format. The rest of the payload is padding.
//!
//! landspeed, 24 bytes, big-endian:
//!
//! | offset | bytes | field | meaning |
//! |---|---|---|---|
//! | 0 | 4 | `tag` | identifies test and stream; datagrams with another tag are foreign |
//! | 4 | 1 | version | 1 |
//! | 5 | 3 | reserved | sent as zero; other values are rejected, so that later versions can use them |
//! | 8 | 8 | `seq` | sequence number, from 0, never reused, never wrapping |
//! | 16 | 8 | `sent_ns` | departure on the sender's clock, nanoseconds after the stream's start |
//!
//! iperf3 (`Timeval`), 12 or 16 bytes, big-endian: seconds (4) and microseconds (4) of the sender's monotonic
//! clock, then the sequence number, from 1, in 4 bytes (wrapping) or 8. It has no field that identifies stray
//! datagrams.

/// Header format of a stream's datagrams.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// landspeed's header.
    Landspeed {
        /// Identifies test and stream.
        tag: u32,
    },
    /// iperf3's header: seconds, microseconds and sequence number.
    Timeval {
        /// Whether sequence numbers have 64 bits; 32 otherwise.
        wide: bool,
    },
}

/// Variable fields of a header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stamp {
    /// Sequence number of the datagram, from 0.
    pub seq: u64,
    /// Departure on the sender's clock, nanoseconds: read once per system call, just before it.
    pub sent_ns: u64,
}

/// Length of landspeed's header, which is the minimum payload of a datagram, bytes.
pub const BYTES: usize = 24;
const VERSION: u8 = 1;

impl Format {
    /// Length of a header, which is the minimum payload of a datagram, bytes.
    pub const fn bytes(self) -> usize {
        match self {
            Self::Landspeed { .. } => BYTES,
            Self::Timeval { wide: true } => 16,
            Self::Timeval { wide: false } => 12,
        }
    }

    /// Writes the fields that are equal in all datagrams of a stream.
    ///
    /// # Panics
    /// If `datagram` is shorter than a header; [`Format::stamp`] panics too.
    pub fn write_constant(self, datagram: &mut [u8]) {
        if let Self::Landspeed { tag } = self {
            datagram[..4].copy_from_slice(&tag.to_be_bytes());
            datagram[4..8].copy_from_slice(&[VERSION, 0, 0, 0]);
        }
    }

    /// Writes the fields that differ between datagrams.
    #[inline]
    pub fn stamp(self, datagram: &mut [u8], stamp: Stamp) {
        let Stamp { seq, sent_ns } = stamp;
        match self {
            Self::Landspeed { .. } => {
                let numbers = u128::from(seq) << 64 | u128::from(sent_ns);
                datagram[8..24].copy_from_slice(&numbers.to_be_bytes());
            }
            Self::Timeval { wide } => {
                datagram[..8].copy_from_slice(&timeval(sent_ns).to_be_bytes());
                let number = seq.wrapping_add(1);
                if wide {
                    datagram[8..16].copy_from_slice(&number.to_be_bytes());
                } else {
                    datagram[8..12].copy_from_slice(&(number as u32).to_be_bytes());
                }
            }
        }
    }

    /// Decodes the header of a datagram; `None` if it is too short or not part of this stream. `next` is the
    /// expected sequence number: a 32-bit number is extended to the nearest 64-bit one.
    #[inline]
    pub fn decode(self, datagram: &[u8], next: u64) -> Option<Stamp> {
        match self {
            Self::Landspeed { tag } => {
                let header = datagram.first_chunk::<BYTES>()?;
                let [t0, t1, t2, t3, VERSION, 0, 0, 0, numbers @ ..] = header else { return None };
                let numbers = u128::from_be_bytes(*numbers);
                (u32::from_be_bytes([*t0, *t1, *t2, *t3]) == tag)
                    .then_some(Stamp { seq: (numbers >> 64) as u64, sent_ns: numbers as u64 })
            }
            Self::Timeval { wide } => {
                let (time, rest) = datagram.split_first_chunk::<8>()?;
                let time = u64::from_be_bytes(*time);
                let sent_ns = (time >> 32) * 1_000_000_000 + (time & 0xFFFF_FFFF) * 1_000;
                let seq = if wide {
                    u64::from_be_bytes(*rest.first_chunk()?).checked_sub(1)?
                } else {
                    nearest(u32::from_be_bytes(*rest.first_chunk()?).wrapping_sub(1), next)?
                };
                Some(Stamp { seq, sent_ns })
            }
        }
    }
}

/// Encodes seconds and microseconds, 32 bits each.
fn timeval(ns: u64) -> u64 {
    ((ns / 1_000_000_000) << 32) | (ns % 1_000_000_000 / 1_000)
}

/// Returns the number with these lower 32 bits that is nearest to `next`.
fn nearest(low: u32, next: u64) -> Option<u64> {
    next.checked_add_signed(i64::from(low.wrapping_sub(next as u32) as i32))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const OURS: Format = Format::Landspeed { tag: 0x0102_0304 };
    const WIDE: Format = Format::Timeval { wide: true };
    const NARROW: Format = Format::Timeval { wide: false };

    fn encode(format: Format, stamp: Stamp) -> Vec<u8> {
        let mut bytes = vec![0; format.bytes()];
        format.write_constant(&mut bytes);
        format.stamp(&mut bytes, stamp);
        bytes
    }

    #[test]
    fn header_layouts_match_the_documentation() {
        let stamp = Stamp { seq: 0x1112_1314_1516_1718, sent_ns: 0x21 };
        let expected =
            [1, 2, 3, 4, 1, 0, 0, 0, 0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x17, 0x18, 0, 0, 0, 0, 0, 0, 0, 0x21];
        assert_eq!(encode(OURS, stamp), expected);
        let stamp = Stamp { seq: 0xFF, sent_ns: 3_000_005_999 };
        assert_eq!(encode(WIDE, stamp), [0, 0, 0, 3, 0, 0, 0, 5, 0, 0, 0, 0, 0, 0, 1, 0]);
        assert_eq!(encode(NARROW, stamp), [0, 0, 0, 3, 0, 0, 0, 5, 0, 0, 1, 0]);
    }

    #[test]
    fn a_short_datagram_has_no_header() {
        for format in [OURS, WIDE, NARROW] {
            let bytes = encode(format, Stamp { seq: 2, sent_ns: 3000 });
            assert!((0..format.bytes()).all(|length| format.decode(&bytes[..length], 0).is_none()));
        }
    }

    #[test]
    fn other_tags_versions_and_reserved_bits_are_foreign() {
        for at in 0..8 {
            let mut bytes = encode(OURS, Stamp { seq: 2, sent_ns: 3 });
            bytes[at] ^= 0x80;
            assert_eq!(OURS.decode(&bytes, 0), None);
        }
    }

    #[test]
    fn sequence_number_zero_is_foreign() {
        assert_eq!(WIDE.decode(&[0; 16], 0), None);
        assert_eq!(NARROW.decode(&[0; 12], 0), None, "one before the first");
    }

    proptest! {
        #[test]
        fn headers_round_trip(seq in 0..u64::MAX, us in 0..u64::MAX / 5000, filler in prop::collection::vec(any::<u8>(), 0..40)) {
            let stamp = Stamp { seq, sent_ns: us % 4_000_000_000_000 * 1000 };
            for format in [OURS, WIDE] {
                let datagram = [encode(format, stamp).as_slice(), &filler].concat();
                prop_assert_eq!(format.decode(&datagram, 0), Some(stamp));
            }
        }

        #[test]
        fn wrapped_32_bit_numbers_extend_to_the_nearest(seq in 1u64 << 31..1 << 60, off in -(1i64 << 30)..1 << 30) {
            let datagram = encode(NARROW, Stamp { seq, sent_ns: 0 });
            let next = seq.checked_add_signed(off).unwrap();
            prop_assert_eq!(NARROW.decode(&datagram, next).map(|stamp| stamp.seq), Some(seq));
        }

        #[test]
        fn decoding_any_bytes_does_not_panic(bytes in prop::collection::vec(any::<u8>(), 0..100), next: u64) {
            for format in [OURS, WIDE, NARROW] {
                let _ = format.decode(&bytes, next);
            }
        }
    }
}
