//! Unwrapping of 32-bit sequence numbers to 64 bits.

/// Start of the unwrapped numbers: far enough from 0 for data sent before the capture began.
const BASE: u64 = 1 << 40;

/// Returns the unwrapped number closest to `near` whose lower 32 bits are `sequence`.
pub fn unwrap(sequence: u32, near: u64) -> u64 {
    let ahead = sequence.wrapping_sub(near as u32) as i32;
    near.wrapping_add_signed(i64::from(ahead))
}

/// Returns the unwrapped value of a direction's first sequence number.
pub fn anchor(sequence: u32) -> u64 {
    BASE | u64::from(sequence)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn later_numbers_within_2_gib_unwrap_correctly(start: u32, steps in prop::collection::vec(0_u32..0x7fff_ffff, 1..200)) {
            let (mut near, mut truth) = (anchor(start), anchor(start));
            for step in steps {
                truth += u64::from(step);
                near = unwrap(truth as u32, near);
                prop_assert_eq!(near, truth);
            }
        }

        #[test]
        fn earlier_numbers_within_2_gib_unwrap_correctly(start: u32, back in 0_u32..0x7fff_ffff) {
            let near = anchor(start);
            prop_assert_eq!(unwrap(start.wrapping_sub(back), near), near - u64::from(back));
        }
    }
}
