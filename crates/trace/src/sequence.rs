//! Sequence numbers of 32 bits, unwrapped to 64.

/// Where an unwrapped space begins: far enough from 0 that what came before the capture fits below.
const BASE: u64 = 1 << 40;

/// The unwrapped number closest to `near` that ends in `sequence`.
pub fn unwrap(sequence: u32, near: u64) -> u64 {
    let ahead = sequence.wrapping_sub(near as u32) as i32;
    near.wrapping_add_signed(i64::from(ahead))
}

/// The unwrapped number a direction's first sequence number gets.
pub fn anchor(sequence: u32) -> u64 {
    BASE | u64::from(sequence)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_number_less_than_2_gib_away_is_found(start: u32, steps in prop::collection::vec(0_u32..0x7fff_ffff, 1..200)) {
            let (mut near, mut truth) = (anchor(start), anchor(start));
            for step in steps {
                truth += u64::from(step);
                near = unwrap(truth as u32, near);
                prop_assert_eq!(near, truth);
            }
        }

        #[test]
        fn a_number_before_is_found_too(start: u32, back in 0_u32..0x7fff_ffff) {
            let near = anchor(start);
            prop_assert_eq!(unwrap(start.wrapping_sub(back), near), near - u64::from(back));
        }
    }
}
