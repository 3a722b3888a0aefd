//! Parses message sizes from the command line: `64`, `64,1k,16k`, `1..1M`, `64/1024`.

use landspeed_model::RrSize;
use landspeed_units::{Bytes, ParseError};

use super::plan::Transport;

/// Maximum number of sizes in a list.
const MAX_SIZES: usize = 256;

/// Parses a list of sizes for TCP; see [`parse_for`].
pub fn parse(text: &str) -> Result<Vec<RrSize>, SizesError> {
    parse_for(text, Transport::Tcp)
}

/// Parses a list of sizes; each is one measurement.
///
/// Items are separated by commas. A number is the size of both messages; `A..B` is a range from A over each
/// power of two to B; `R/S` is a request of R bytes and a response of S bytes, and one of the two may be a
/// range. Bare `K` and `M` are powers of 1024. Repeated sizes are measured once.
pub fn parse_for(text: &str, transport: Transport) -> Result<Vec<RrSize>, SizesError> {
    let mut sizes = Vec::new();
    for item in text.split(',') {
        for size in parse_item(item.trim(), transport)? {
            if !sizes.contains(&size) {
                sizes.push(size);
            }
        }
        if sizes.len() > MAX_SIZES {
            return Err(SizesError::TooMany);
        }
    }
    Ok(sizes)
}

fn parse_item(item: &str, transport: Transport) -> Result<Vec<RrSize>, SizesError> {
    let pair = |request_bytes, response_bytes| RrSize { request_bytes, response_bytes };
    let Some((requests, responses)) = item.split_once('/') else {
        return Ok(ladder(item, transport)?.into_iter().map(|bytes| pair(bytes, bytes)).collect());
    };
    match (&ladder(requests, transport)?[..], &ladder(responses, transport)?[..]) {
        (&[request], responses) => Ok(responses.iter().map(|&response| pair(request, response)).collect()),
        (requests, &[response]) => Ok(requests.iter().map(|&request| pair(request, response)).collect()),
        _ => Err(SizesError::TwoLadders { item: shown(item) }),
    }
}

/// Parses one size, or a range over the powers of two.
fn ladder(text: &str, transport: Transport) -> Result<Vec<u32>, SizesError> {
    let Some((low, high)) = text.split_once("..") else {
        return Ok(vec![size(text, transport)?]);
    };
    let (low, high) = (size(low, transport)?, size(high, transport)?);
    if low > high {
        return Err(SizesError::DescendingRange { item: shown(text), turned: format!("{high}..{low}") });
    }
    let mut steps = vec![low];
    let mut power = (low + 1).next_power_of_two();
    while power < high {
        steps.push(power);
        power *= 2;
    }
    if high > low {
        steps.push(high);
    }
    Ok(steps)
}

fn size(text: &str, transport: Transport) -> Result<u32, SizesError> {
    let bytes = text.trim().parse::<Bytes>()?.get();
    let max = transport.max_message_bytes();
    match u32::try_from(bytes) {
        Ok(bytes) if (1..=max).contains(&bytes) => Ok(bytes),
        _ => Err(SizesError::OutOfRange { bytes, transport }),
    }
}

/// Shortens and escapes an item for an error message.
fn shown(item: &str) -> String {
    item.chars().take(40).flat_map(char::escape_debug).collect()
}

/// Errors in a list of sizes.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SizesError {
    /// An item is not a size.
    #[error("{0}; --sizes takes 64, a list 64,1k,16k, a ladder 1..1M, or request/response 64/1024")]
    InvalidSize(#[from] ParseError),
    /// A size is out of the transport's range.
    #[error("a message of {bytes} bytes is out of range: over {transport} messages have 1 to {} bytes", transport.max_message_bytes())]
    OutOfRange {
        /// Requested size.
        bytes: u64,
        /// Transport whose limit applies.
        transport: Transport,
    },
    /// The larger limit of a range comes first.
    #[error("the ladder `{item}` goes down: write {turned}")]
    DescendingRange {
        /// Item as given.
        item: String,
        /// Item with the limits swapped.
        turned: String,
    },
    /// Both sizes of a pair are ranges.
    #[error("`{item}` has a ladder on both sides: give one size for requests or for responses, as in 64/1..1M")]
    TwoLadders {
        /// Item as given.
        item: String,
    },
    /// The list has more than 256 sizes.
    #[error("more than 256 sizes: give a shorter list")]
    TooMany,
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn both(bytes: u32) -> RrSize {
        RrSize { request_bytes: bytes, response_bytes: bytes }
    }

    #[test]
    fn a_range_has_each_power_of_two_and_both_limits() {
        let powers: Vec<_> = (0..=20).map(|k| both(1 << k)).collect();
        assert_eq!(parse("1..1M").unwrap(), powers);
        assert_eq!(parse("3..20").unwrap(), [3, 4, 8, 16, 20].map(both));
        assert_eq!(parse("64..64").unwrap(), [both(64)]);
    }

    #[test]
    fn lists_ranges_and_pairs_are_parsed() {
        assert_eq!(parse("64, 1k,16K").unwrap(), [64, 1024, 16384].map(both));
        assert_eq!(parse("64/1024").unwrap(), [RrSize { request_bytes: 64, response_bytes: 1024 }]);
        assert_eq!(parse("8/1..4").unwrap().iter().map(|s| s.response_bytes).collect::<Vec<_>>(), [1, 2, 4]);
        assert_eq!(parse("1..4/8").unwrap().iter().map(|s| s.request_bytes).collect::<Vec<_>>(), [1, 2, 4]);
        assert_eq!(parse("64,32..128").unwrap(), [64, 32, 128].map(both), "64 once");
    }

    #[test]
    fn errors_suggest_valid_syntax() {
        let says = |text: &str| parse(text).unwrap_err().to_string();
        assert_eq!(says("0"), "a message of 0 bytes is out of range: over TCP messages have 1 to 1048576 bytes");
        assert_eq!(says("1M..1"), "the ladder `1M..1` goes down: write 1..1048576");
        assert!(says("1..2/1..2").contains("as in 64/1..1M"));
        assert!(says("64,,1k").contains("--sizes takes 64, a list"), "{}", says("64,,1k"));
        assert!(says("-1").contains("positive"), "{}", says("-1"));
        assert!(says("1e30").starts_with("`1e30`"), "{}", says("1e30"));
        assert_eq!(
            says("2M"),
            "a message of 2097152 bytes is out of range: over TCP messages have 1 to 1048576 bytes"
        );
        let many = (1..=300).map(|n| n.to_string()).collect::<Vec<_>>().join(",");
        assert_eq!(parse(&many).unwrap_err(), SizesError::TooMany);
    }

    #[test]
    fn udp_sizes_are_limited_to_a_datagram() {
        assert!(parse_for("65507", Transport::Udp).is_ok());
        let error = parse_for("1..1M", Transport::Udp).unwrap_err().to_string();
        assert!(error.ends_with("over UDP messages have 1 to 65507 bytes"), "{error}");
    }

    proptest! {
        #[test]
        fn any_text_gives_sizes_in_range_or_an_error(text in "[0-9kKmM./, e+-]{0,24}|.{0,12}") {
            if let Ok(sizes) = parse(&text) {
                prop_assert!(!sizes.is_empty());
                for size in sizes {
                    prop_assert!((1..=1 << 20).contains(&size.request_bytes));
                    prop_assert!((1..=1 << 20).contains(&size.response_bytes));
                }
            }
        }

        #[test]
        fn a_range_rises_from_low_to_high(a in 1u32..=1 << 20, b in 1u32..=1 << 20) {
            let (low, high) = (a.min(b), a.max(b));
            let steps = parse(&format!("{low}..{high}")).unwrap();
            prop_assert_eq!((steps[0], *steps.last().unwrap()), (both(low), both(high)));
            for pair in steps.windows(2) {
                prop_assert!(pair[0].request_bytes < pair[1].request_bytes);
                prop_assert!(pair[1].request_bytes <= 2 * pair[0].request_bytes);
            }
        }

        #[test]
        fn a_pair_is_request_and_response_size(request_bytes in 1u32..=1 << 20, response_bytes in 1u32..=1 << 20) {
            let sizes = parse(&format!("{request_bytes}/{response_bytes}")).unwrap();
            prop_assert_eq!(sizes, [RrSize { request_bytes, response_bytes }]);
        }
    }
}
