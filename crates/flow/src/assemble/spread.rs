//! Spread (±) of a goodput: variation of the rate between the intervals of the steady phase.

use std::collections::BTreeSet;

use landspeed_model::{Direction, Interval, Parameters, PhaseName, Protocol, Stream};

use crate::tcp;

/// Fewest pieces (writes on a schedule, segments, bursts of datagrams) in an interval. With fewer, ± would be that of
/// counting them: a piece more or less is 10 % of the rate.
const MIN_PIECES: u64 = 10;
/// MSS if it is unknown, bytes: Ethernet's with TCP timestamps.
const TYPICAL_MSS: u32 = 1448;

/// Coefficient of variation of a direction's goodput, summed over its streams, between intervals of the steady
/// phase.
///
/// Phase boundaries leave short intervals whose rate is mostly noise: intervals shorter than half of
/// `interval_ns` are ignored. A gap in the samples makes a long interval; it counts as the number of intervals
/// it covers, all at its mean rate, because the rate within it was not sampled. At low rates several intervals
/// count as one that has [`MIN_PIECES`].
///
/// # Errors
/// The reason why there is no spread: fewer than two intervals, or no bytes.
pub fn of(streams: &[&Stream], direction: Direction, parameters: &Parameters) -> Result<f64, String> {
    let spans = common_spans(streams, direction);
    let longest = spans.iter().map(|&(ns, _)| ns).max().ok_or("the steady phase has no interval")?;
    let sampled_ns = parameters.interval_ns.clamp(1, longest.max(1));
    let needed_ns = filling_ns(&spans, piece_bytes(streams, parameters));
    let (spans, nominal) =
        if needed_ns > sampled_ns { (merged(&spans, needed_ns), needed_ns) } else { (spans, sampled_ns) };
    let weighed: Vec<(f64, f64)> = spans
        .iter()
        .filter(|&&(ns, _)| ns > 0 && ns.saturating_mul(2) >= nominal)
        .map(|&(ns, bytes)| ((ns as f64 / nominal as f64).max(1.0), bytes as f64 / ns as f64))
        .collect();
    if weighed.len() < 2 && nominal > sampled_ns {
        return Err("too little arrived to compare intervals: use a longer --time".to_owned());
    }
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

/// Bytes that a stream of these delivers at once.
fn piece_bytes(streams: &[&Stream], p: &Parameters) -> u64 {
    if let Some(udp) = p.udp.as_ref().filter(|_| p.protocol == Protocol::Udp) {
        return u64::from(udp.payload_bytes) * u64::from(udp.burst_packets.max(1));
    }
    let ends = || streams.iter().flat_map(|stream| [&stream.sender, &stream.receiver]).flatten();
    let segment = u64::from(ends().filter_map(|end| end.mss_bytes).max().unwrap_or(TYPICAL_MSS));
    // An iperf3 server, which has no samples, writes whole blocks.
    let in_blocks = streams.iter().any(|stream| stream.sender.as_ref().is_some_and(|end| end.samples.is_empty()));
    let write =
        p.rate_bps.map(|rate| if in_blocks { p.write_bytes } else { tcp::chunk_bytes(rate / 8, p.write_bytes) });
    segment.max(write.unwrap_or(0))
}

/// Time in which [`MIN_PIECES`] arrive at the mean rate, nanoseconds; 0 if nothing arrives.
fn filling_ns(spans: &[(u64, u64)], piece_bytes: u64) -> u64 {
    let (ns, bytes) =
        spans.iter().fold((0_u64, 0_u64), |(ns, bytes), span| (ns + span.0, bytes.saturating_add(span.1)));
    if bytes == 0 {
        return 0;
    }
    u64::try_from(u128::from(MIN_PIECES * piece_bytes) * u128::from(ns) / u128::from(bytes)).unwrap_or(u64::MAX)
}

/// Adds up spans until each has `least_ns`; what remains at the end is a shorter one.
fn merged(spans: &[(u64, u64)], least_ns: u64) -> Vec<(u64, u64)> {
    let mut found: Vec<(u64, u64)> = Vec::new();
    for &(ns, bytes) in spans {
        match found.last_mut().filter(|last| last.0 < least_ns) {
            Some(last) => *last = (last.0 + ns, last.1.saturating_add(bytes)),
            None => found.push((ns, bytes)),
        }
    }
    found
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
    use landspeed_model::UdpParameters;

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

    /// Parameters of a test with intervals of this length, whose pieces are one byte.
    fn every(ms: u64) -> Parameters {
        let udp = UdpParameters { payload_bytes: 1, burst_packets: 1, ..UdpParameters::default() };
        Parameters { protocol: Protocol::Udp, interval_ns: ms * MS, udp: Some(udp), ..Parameters::default() }
    }

    fn spread(lengths: &[(u64, u64)]) -> Result<f64, String> {
        of(&[&stream(Direction::Upload, lengths)], Direction::Upload, &every(100))
    }

    #[test]
    fn a_low_rate_on_schedule_has_no_spread() {
        // One datagram of 1000 bytes every 1.2 s, and one write of 1448 bytes of 10 kb/s, with intervals of 100 ms.
        let udp = UdpParameters { payload_bytes: 1000, ..UdpParameters::default() };
        let udp = Parameters { udp: Some(udp), ..every(100) };
        let tcp = Parameters { rate_bps: Some(10_000), interval_ns: 100 * MS, ..Parameters::default() };
        for (parameters, piece) in [(&udp, 1000), (&tcp, 1448)] {
            let slow = |intervals: usize| {
                let lengths: Vec<_> = (0..intervals).map(|at| (100, if at % 12 == 0 { piece } else { 0 })).collect();
                of(&[&stream(Direction::Upload, &lengths)], Direction::Upload, parameters)
            };
            assert!(slow(1200).unwrap() < 0.06, "{:?}", slow(1200));
            assert!(slow(60).unwrap_err().contains("longer --time"), "{:?}", slow(60));
        }
        // A rate that really varies keeps its spread: 12 s at one rate, 12 s at half of it.
        let halves: Vec<_> =
            (0..240).map(|at| (100, if at % if at < 120 { 1 } else { 2 } == 0 { 1000 } else { 0 })).collect();
        let found = of(&[&stream(Direction::Upload, &halves)], Direction::Upload, &udp).unwrap();
        assert!((0.25..0.5).contains(&found), "{found}");
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
        assert_eq!(spread(&[(100, 70), (100, 70)]), Ok(0.0));
    }

    #[test]
    fn a_missing_spread_has_a_reason() {
        assert!(spread(&[]).unwrap_err().contains("no interval"));
        assert!(spread(&[(100, 50)]).unwrap_err().contains("--interval"));
        assert!(spread(&[(100, 50), (10, 50)]).unwrap_err().contains("only one interval"));
        assert!(spread(&[(100, 0), (100, 0)]).unwrap_err().contains("no bytes"));
        // Two halves of a long interval are two intervals.
        let halves = [(500, 50), (500, 60)];
        assert!(of(&[&stream(Direction::Upload, &halves)], Direction::Upload, &every(1000)).is_ok());
    }

    #[test]
    fn each_direction_has_its_own_spread() {
        let up = stream(Direction::Upload, &[(100, 10), (100, 10)]);
        let down = stream(Direction::Download, &[(100, 0), (100, 20)]);
        let streams = [&up, &down];
        assert_eq!(of(&streams, Direction::Upload, &every(100)), Ok(0.0));
        assert!((of(&streams, Direction::Download, &every(100)).unwrap() - std::f64::consts::SQRT_2).abs() < 1e-12);
    }

    #[test]
    fn streams_with_unequal_readings_are_compared_at_common_boundaries() {
        let whole = stream(Direction::Upload, &[(100, 10), (100, 10), (100, 10), (100, 10)]);
        let sparse = stream(Direction::Upload, &[(200, 40), (200, 0)]);
        let silent = stream(Direction::Upload, &[]);
        // 60 and 20 bytes in 200 ms each: weights of two intervals each.
        let found = of(&[&whole, &sparse, &silent], Direction::Upload, &every(100)).unwrap();
        assert!((found - (4.0 * 0.25 / 3.0_f64).sqrt()).abs() < 1e-12, "{found}");
    }
}
