//! How iperf3 numbers its streams.

/// The number of the `index`-th stream of a test, senders of the client first: 1, 3, 4, 5 …
pub fn number(index: usize) -> u64 {
    if index == 0 { 1 } else { index as u64 + 2 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_one_three_four() {
        assert_eq!((0..4).map(number).collect::<Vec<_>>(), [1, 3, 4, 5]);
    }
}
