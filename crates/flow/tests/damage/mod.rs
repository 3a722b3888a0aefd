//! Corrupts valid bytes slightly.

use proptest::prelude::*;

/// Strategy for corruptions: each step flips bits, truncates, repeats or inserts.
pub fn damage() -> impl Strategy<Value = Vec<(u8, usize, u8)>> {
    prop::collection::vec((0..4u8, any::<usize>(), any::<u8>()), 0..4)
}

/// Returns the bytes after all steps of the corruption.
pub fn damaged(mut bytes: Vec<u8>, damage: &[(u8, usize, u8)]) -> Vec<u8> {
    for &(kind, place, value) in damage {
        let at = place % (bytes.len() + 1);
        match kind {
            0 if at < bytes.len() => bytes[at] ^= value,
            1 => bytes.truncate(at),
            2 => bytes.extend_from_within(at..),
            _ => bytes.insert(at, value),
        }
    }
    bytes
}
