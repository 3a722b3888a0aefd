//! What each datagram of a UDP stream starts with.

/// The header of a datagram, 24 bytes, big-endian. The rest of the payload is filler.
///
/// | offset | bytes | field | meaning |
/// |---|---|---|---|
/// | 0 | 4 | `tag` | names the test and stream; whatever carries another one is foreign |
/// | 4 | 1 | version | 1 |
/// | 5 | 3 | reserved | zero when sent; a reader refuses anything else, so that later versions can use them |
/// | 8 | 8 | `seq` | number of the datagram, from 0, never reused, never wrapping |
/// | 16 | 8 | `sent_ns` | when it left by the sender's clock, nanoseconds after the stream's start |
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header {
    /// Names the test and stream.
    pub tag: u32,
    /// Number of the datagram.
    pub seq: u64,
    /// When it left, nanoseconds after the stream's start by the sender's clock: read once per system call, just before it.
    pub sent_ns: u64,
}

/// Length of a header, and so the least payload of a datagram, bytes.
pub const BYTES: usize = 24;
const VERSION: u8 = 1;

/// Reads the header of a datagram; `None` if it is too short or of another version.
#[inline]
pub fn decode(datagram: &[u8]) -> Option<Header> {
    let header = datagram.first_chunk::<BYTES>()?;
    let [t0, t1, t2, t3, VERSION, 0, 0, 0, numbers @ ..] = header else { return None };
    let numbers = u128::from_be_bytes(*numbers);
    Some(Header {
        tag: u32::from_be_bytes([*t0, *t1, *t2, *t3]),
        seq: (numbers >> 64) as u64,
        sent_ns: numbers as u64,
    })
}

/// Writes what is the same in all datagrams of a stream.
///
/// # Panics
/// If `datagram` is shorter than a header; so do the functions below.
pub fn write_constant(datagram: &mut [u8], tag: u32) {
    datagram[..4].copy_from_slice(&tag.to_be_bytes());
    datagram[4..8].copy_from_slice(&[VERSION, 0, 0, 0]);
}

/// Writes what differs from datagram to datagram.
#[inline]
pub fn stamp(datagram: &mut [u8], seq: u64, sent_ns: u64) {
    let header = datagram.first_chunk_mut::<BYTES>().expect("a datagram holds a header");
    let numbers = u128::from(seq) << 64 | u128::from(sent_ns);
    header[8..].copy_from_slice(&numbers.to_be_bytes());
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn encode(header: Header) -> [u8; BYTES] {
        let mut bytes = [0; BYTES];
        write_constant(&mut bytes, header.tag);
        stamp(&mut bytes, header.seq, header.sent_ns);
        bytes
    }

    #[test]
    fn the_layout_is_the_documented_one() {
        let bytes = encode(Header { tag: 0x0102_0304, seq: 0x1112_1314_1516_1718, sent_ns: 0x21 });
        let expected =
            [1, 2, 3, 4, 1, 0, 0, 0, 0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x17, 0x18, 0, 0, 0, 0, 0, 0, 0, 0x21];
        assert_eq!(bytes, expected);
    }

    #[test]
    fn a_short_datagram_has_no_header() {
        let bytes = encode(Header { tag: 1, seq: 2, sent_ns: 3 });
        assert!((0..BYTES).all(|length| decode(&bytes[..length]).is_none()));
    }

    #[test]
    fn another_version_or_a_reserved_bit_is_not_ours() {
        for at in 4..8 {
            let mut bytes = encode(Header { tag: 1, seq: 2, sent_ns: 3 });
            bytes[at] ^= 0x80;
            assert_eq!(decode(&bytes), None);
        }
    }

    proptest! {
        #[test]
        fn a_header_survives_the_wire(tag: u32, seq: u64, sent_ns: u64, filler in prop::collection::vec(any::<u8>(), 0..40)) {
            let header = Header { tag, seq, sent_ns };
            let datagram = [encode(header).as_slice(), &filler].concat();
            prop_assert_eq!(decode(&datagram), Some(header));
        }

        #[test]
        fn no_bytes_panic(bytes in prop::collection::vec(any::<u8>(), 0..100)) {
            let _ = decode(&bytes);
        }
    }
}
