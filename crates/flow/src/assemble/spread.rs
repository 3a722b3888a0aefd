//! Spread (±) of a goodput: variation of the rate between the intervals of the steady phase.

use std::collections::BTreeSet;

use landspeed_model::{Direction, Interval, PhaseName, Stream};

/// Coefficient of variation of a direction's goodput, summed over its streams, between intervals of the steady
/// phase.
///
/// Phase boundaries leave short intervals whose rate is mostly noise: intervals shorter than half of
/// `interval_ns` are ignored. A gap in the samples makes a long interval; it counts as the number of intervals
/// it covers, all at its mean rate, because the rate within it was not sampled.
///
/// # Errors
/// The reason why there is no spread: fewer than two intervals, or no bytes.
pub fn of(streams: &[&Stream], direction: Direction, interval_ns: u64) -> Result<f64, String> {
    let spans = common_spans(streams, direction);
    let longest = spans.iter().map(|&(ns, _)| ns).max().ok_or("the steady phase has no interval")?;
    let nominal = interval_ns.clamp(1, longest.max(1));
    let weighed: Vec<(f64, f64)> = spans
        .iter()
        .filter(|&&(ns, _)| ns > 0 && ns.saturating_mul(2) >= nominal)
        .map(|&(ns, bytes)| ((ns as f64 / nominal as f64).max(1.0), bytes as f64 / ns as f64))
        .collect();
    if weighed.len() < 2 {
        return Err("the steady phase has only one interval: use a shorter --interval or a longer --time".to_owned());
    }
    let intervals: f64 = weighed.iter().map(|(weight, _)| weight).sum();
    let mean = weighed.iter().map(|(weight, rate)| weight * rate).sum::<f64>() / intervals;
    if mean <= 0.0 {
        return Err("no bytes were delivered in the steady phase".to_owned());
    }
    let squares: f64 = weighed.iter().map(|(weight, rate)| weight * (rate - mean).powi(2)).sum();
    Ok((squares / (intervals - 1.0)).sqrt() / mean)
}

/// Length in nanoseconds and bytes of each span between consecutive boundaries common to all streams of a
/// direction. Streams of one host are sampled together, so the spans are the intervals unless a stream lacks
/// samples.
fn common_spans(streams: &[&Stream], direction: Direction) -> Vec<(u64, u64)> {
    let steady: Vec<Vec<&Interval>> = streams
        .iter()
        .filter(|stream| stream.direction == direction)
        .map(|stream| stream.intervals.iter().filter(|interval| interval.phase == PhaseName::Steady).collect())
        .filter(|intervals: &Vec<&Interval>| !intervals.is_empty())
        .collect();
    let boundaries = |intervals: &Vec<&Interval>| -> BTreeSet<u64> {
        intervals.iter().flat_map(|interval| [interval.start_ns, interval.end_ns]).collect()
    };
    let common = steady.iter().map(boundaries).reduce(|common, others| &common & &others).unwrap_or_default();
    let common: Vec<u64> = common.into_iter().collect();
    let mut spans: Vec<(u64, u64)> = common.windows(2).map(|pair| (pair[1] - pair[0], 0)).collect();
    for interval in steady.into_iter().flatten() {
        // Find the span that ends at the first common boundary at or after the interval's end.
        let end = common.partition_point(|&boundary| boundary < interval.end_ns);
        let span = end.checked_sub(1).filter(|&span| common[span] <= interval.start_ns);
        if let Some((_, bytes)) = span.and_then(|span| spans.get_mut(span)) {
            *bytes = bytes.saturating_add(interval.bytes);
        }
    }
    spans
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    /// Returns a stream whose steady phase has intervals of these lengths (milliseconds) and bytes.
    fn stream(direction: Direction, lengths: &[(u64, u64)]) -> Stream {
        let mut start_ns = 0;
        let intervals = lengths
            .iter()
            .map(|&(ms, bytes)| {
                let end_ns = start_ns + ms * MS;
                let interval = Interval { start_ns, end_ns, phase: PhaseName::Steady, bytes, packets: None };
                start_ns = end_ns;
                interval
            })
            .collect();
        Stream {
            id: 0,
            direction,
            client_addr: String::new(),
            server_addr: String::new(),
            intervals,
            intervals_from: "receiver".to_owned(),
            sender: None,
            receiver: None,
        }
    }

    fn spread(lengths: &[(u64, u64)]) -> Result<f64, String> {
        of(&[&stream(Direction::Upload, lengths)], Direction::Upload, 100 * MS)
    }

    #[test]
    fn a_sampler_gap_counts_as_the_intervals_it_covers() {
        // Ten intervals of 1000 bytes each, and a gap of 1.1 s with as many bytes as one of them.
        let mut lengths = vec![(100, 1000); 10];
        lengths.insert(6, (1100, 1000));
        let frozen = spread(&lengths).unwrap();
        // The same, with the gap split into eleven equal intervals.
        let mut apart = vec![(100, 1100); 10];
        apart.extend([(100, 100); 11]);
        assert!((frozen - spread(&apart).unwrap()).abs() < 1e-9, "{frozen}");
        assert!(frozen > 0.8, "{frozen}");
    }

    #[test]
    fn spread_of_equal_intervals_is_their_coefficient_of_variation() {
        let found = spread(&[(20, 1), (100, 900), (100, 1000), (100, 1100), (3, 900)]).unwrap();
        assert!((found - 0.1).abs() < 1e-12, "{found}");
        assert_eq!(spread(&[(100, 7), (100, 7)]), Ok(0.0));
    }

    #[test]
    fn a_missing_spread_has_a_reason() {
        assert!(spread(&[]).unwrap_err().contains("no interval"));
        assert!(spread(&[(100, 5)]).unwrap_err().contains("--interval"));
        assert!(spread(&[(100, 5), (10, 5)]).unwrap_err().contains("only one interval"));
        assert!(spread(&[(100, 0), (100, 0)]).unwrap_err().contains("no bytes"));
        // Two halves of a long interval are two intervals.
        let halves = [(500, 5), (500, 6)];
        assert!(of(&[&stream(Direction::Upload, &halves)], Direction::Upload, 1000 * MS).is_ok());
    }

    #[test]
    fn each_direction_has_its_own_spread() {
        let up = stream(Direction::Upload, &[(100, 10), (100, 10)]);
        let down = stream(Direction::Download, &[(100, 0), (100, 20)]);
        let streams = [&up, &down];
        assert_eq!(of(&streams, Direction::Upload, 100 * MS), Ok(0.0));
        assert!((of(&streams, Direction::Download, 100 * MS).unwrap() - std::f64::consts::SQRT_2).abs() < 1e-12);
    }

    #[test]
    fn streams_with_unequal_readings_are_compared_at_common_boundaries() {
        let whole = stream(Direction::Upload, &[(100, 10), (100, 10), (100, 10), (100, 10)]);
        let sparse = stream(Direction::Upload, &[(200, 40), (200, 0)]);
        let silent = stream(Direction::Upload, &[]);
        // 60 and 20 bytes in 200 ms each: weights of two intervals each.
        let found = of(&[&whole, &sparse, &silent], Direction::Upload, 100 * MS).unwrap();
        assert!((found - (4.0 * 0.25 / 3.0_f64).sqrt()).abs() < 1e-12, "{found}");
    }
}
