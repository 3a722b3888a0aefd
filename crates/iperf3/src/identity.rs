//! iperf3's numbering of streams.

/// Number of the stream with this index, streams sent by the client first: 1, 3, 4, 5 …
pub fn number(index: usize) -> u64 {
    if index == 0 { 1 } else { index as u64 + 2 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stream_numbers_skip_two() {
        assert_eq!((0..4).map(number).collect::<Vec<_>>(), [1, 3, 4, 5]);
    }
}
