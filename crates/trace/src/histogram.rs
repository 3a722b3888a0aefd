//! A small log-linear histogram with 16 buckets per octave. Quantiles are accurate to 5 %.

use landspeed_model::Bucket;

const PER_OCTAVE: usize = 16;
const OCTAVES: usize = 37;
/// Number of buckets, for values up to 2^40 ns (18 min); longer values share the last one.
const BUCKETS: usize = PER_OCTAVE * OCTAVES;

/// Counts of values, usually in nanoseconds.
#[derive(Debug, Clone)]
pub struct Histogram {
    counts: Box<[u32; BUCKETS]>,
}

#[inline]
fn bucket(value: u64) -> usize {
    // Index by the top five bits: the leading one and four more. Values with fewer bits have a bucket each.
    let shift = (value | PER_OCTAVE as u64).ilog2() as usize - 4;
    let index = shift * PER_OCTAVE + (value >> shift) as usize;
    index.min(BUCKETS - 1)
}

/// Returns the smallest value of a bucket.
fn low(bucket: usize) -> u64 {
    if bucket < 2 * PER_OCTAVE {
        return bucket as u64;
    }
    let shift = bucket / PER_OCTAVE - 1;
    ((bucket % PER_OCTAVE + PER_OCTAVE) as u64) << shift
}

impl Histogram {
    /// Creates an empty histogram.
    pub fn new() -> Self {
        Self { counts: Box::new([0; BUCKETS]) }
    }

    /// Counts a value.
    #[inline]
    pub fn record(&mut self, value: u64) {
        let slot = &mut self.counts[bucket(value)];
        *slot = slot.saturating_add(1);
    }

    /// Returns the number of values.
    pub fn total(&self) -> u64 {
        self.counts.iter().map(|&count| u64::from(count)).sum()
    }

    /// Returns the quantile at `share` (0 to 1): the middle of its bucket. `None` if empty.
    pub fn quantile(&self, share: f64) -> Option<u64> {
        let rank = ((self.total() as f64 * share).ceil() as u64).max(1);
        let mut seen = 0;
        for (index, &count) in self.counts.iter().enumerate() {
            seen += u64::from(count);
            if seen >= rank {
                let (from, to) = (low(index), low(index + 1).saturating_sub(1));
                return Some(u64::midpoint(from, to));
            }
        }
        None
    }

    /// Returns the middle of the fullest bucket at or above `value`, and its count.
    pub fn mode_from(&self, value: u64) -> Option<(u64, u64)> {
        let from = bucket(value);
        let (index, &count) = self.counts.iter().enumerate().skip(from).rev().max_by_key(|(_, count)| **count)?;
        (count > 0).then(|| (u64::midpoint(low(index), low(index + 1).saturating_sub(1)), u64::from(count)))
    }

    /// Returns the number of values below `value`, to the resolution of a bucket.
    pub fn below(&self, value: u64) -> u64 {
        self.counts.iter().take(bucket(value)).map(|&count| u64::from(count)).sum()
    }

    /// Returns the buckets that are not empty, ascending.
    pub fn buckets(&self) -> Vec<Bucket> {
        let filled = self.counts.iter().enumerate().filter(|(_, count)| **count > 0);
        let bucket = |(index, &count): (usize, &u32)| Bucket {
            low_ns: low(index),
            high_ns: low(index + 1).saturating_sub(1),
            count: u64::from(count),
        };
        filled.map(bucket).collect()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_value_is_in_its_bucket(value in 0_u64..(1 << 37)) {
            let index = bucket(value);
            prop_assert!(low(index) <= value, "{index}");
            prop_assert!(value < low(index + 1), "{index}");
        }

        #[test]
        fn quantiles_are_accurate_to_a_sixteenth(mut values in prop::collection::vec(1_u64..1_000_000_000, 1..300), share in 0.0_f64..1.0) {
            let mut histogram = Histogram::new();
            for &value in &values {
                histogram.record(value);
            }
            values.sort_unstable();
            let rank = ((values.len() as f64 * share).ceil() as usize).max(1);
            let (truth, estimate) = (values[rank - 1] as f64, histogram.quantile(share).expect("values") as f64);
            prop_assert!((estimate - truth).abs() <= truth / 16.0 + 1.0, "{estimate} for {truth}");
        }
    }

    #[test]
    fn a_value_beyond_the_last_bucket_is_kept() {
        let mut histogram = Histogram::new();
        histogram.record(u64::MAX);
        assert_eq!(histogram.total(), 1);
        assert_eq!(histogram.buckets().len(), 1);
    }
}
