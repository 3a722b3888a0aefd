//! Bounds-checked reads of fixed size.

/// Prefix of an IPv4-mapped IPv6 address.
pub const MAPPED: u128 = 0xffff_0000_0000;

/// The byte at an offset.
pub fn octet(bytes: &[u8], at: usize) -> Option<u8> {
    bytes.get(at).copied()
}

/// Two bytes in network order.
pub fn be16(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes(*bytes.get(at..)?.first_chunk()?))
}

/// Four bytes in network order.
pub fn be32(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_be_bytes(*bytes.get(at..)?.first_chunk()?))
}

/// Eight bytes in network order.
pub fn be64(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_be_bytes(*bytes.get(at..)?.first_chunk()?))
}

/// Sixteen bytes in network order.
pub fn be128(bytes: &[u8], at: usize) -> Option<u128> {
    Some(u128::from_be_bytes(*bytes.get(at..)?.first_chunk()?))
}
