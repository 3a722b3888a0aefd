//! A period underneath: acknowledgements that a framing (SONET: 125 µs) pushed together come in clusters whose distances are
//! multiples of the frame's.

use std::f64::consts::TAU;

/// Acknowledgements this close are of one cluster, nanoseconds.
const CLUSTER_NS: u64 = 2_000;
/// Distances are counted to this grain, nanoseconds: what a capture's clock and a host's interrupts leave of them.
const GRAIN_NS: u64 = 500;
/// Distances counted.
const GRAINS: usize = 8_192;
/// Periods looked for, nanoseconds.
const LEAST_NS: f64 = 10_000.0;
const MOST_NS: f64 = 1_000_000.0;
/// A distance of more periods than this says nothing of the period.
const MOST_PERIODS: f64 = 8.0;
/// Distances before anything is said.
const ENOUGH: u64 = 100;
/// The least agreement that is a period: that of an error of a seventh of it (a normal one).
const LEAST_AGREEMENT: f64 = 0.7;
/// Share of the distances that must be of two periods and more: what is merely even has one distance.
const LEAST_MULTIPLES: f64 = 0.05;

/// Distances between the beginnings of clusters.
#[derive(Debug, Clone, Default)]
pub struct Framing {
    cluster_ns: Option<u64>,
    latest_ns: u64,
    counts: Vec<u32>,
    total: u64,
}

/// A period.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Period {
    /// Nanoseconds.
    pub period_ns: u64,
    /// How well the distances keep to it, from 0 to 1: the length of their mean direction on a circle of one period.
    pub agreement: f64,
}

impl Framing {
    /// An acknowledgement passes.
    #[inline]
    pub fn acknowledgement(&mut self, time_ns: u64) {
        let near = time_ns.saturating_sub(self.latest_ns) < CLUSTER_NS;
        self.latest_ns = self.latest_ns.max(time_ns);
        let Some(cluster_ns) = self.cluster_ns else {
            self.cluster_ns = Some(time_ns);
            return;
        };
        if near {
            return;
        }
        self.cluster_ns = Some(time_ns);
        let grain = (time_ns.saturating_sub(cluster_ns) / GRAIN_NS) as usize;
        if grain < GRAINS {
            if self.counts.is_empty() {
                self.counts = vec![0; GRAINS];
            }
            self.counts[grain] = self.counts[grain].saturating_add(1);
            self.total += 1;
        }
    }

    /// The longest period the distances keep to, if there is one.
    pub fn period(&self) -> Option<Period> {
        if self.total < ENOUGH {
            return None;
        }
        let filled = self.counts.iter().enumerate().filter(|(_, count)| **count > 0);
        let distances: Vec<(f64, f64)> = filled
            .map(|(grain, &count)| (((grain as u64 * GRAIN_NS) + GRAIN_NS / 2) as f64, f64::from(count)))
            .collect();
        let agreement = |period: f64| agreement(&distances, period, self.total as f64);
        // A step this fine turns the longest distance by a tenth of a circle at most.
        let steps = std::iter::successors(Some(MOST_NS), |period| Some(period / 1.012));
        let tried = steps.take_while(|&period| period >= LEAST_NS).map(|period| (period, agreement(period)));
        let tried: Vec<(f64, f64)> = tried.collect();
        let best = tried.iter().map(|(_, agreement)| *agreement).fold(0.0, f64::max);
        if best < LEAST_AGREEMENT {
            return None;
        }
        // A half and a third of a period fit as well: the longest is it.
        let (coarse, _) = tried.into_iter().find(|(_, agreement)| *agreement >= LEAST_AGREEMENT.max(best - 0.15))?;
        let near = (-40..=40).map(|step| coarse * (1.0 + f64::from(step) * 0.001));
        let (period, agreement) =
            near.map(|period| (period, agreement(period))).max_by(|one, other| one.1.total_cmp(&other.1))?;
        let more = distances.iter().filter(|(distance, _)| *distance > 1.5 * period).map(|(_, count)| count);
        if more.sum::<f64>() < LEAST_MULTIPLES * self.total as f64 {
            return None;
        }
        Some(Period { period_ns: period.round() as u64, agreement })
    }
}

/// How well distances keep to a period. Those of less than half of it count against it.
fn agreement(distances: &[(f64, f64)], period: f64, total: f64) -> f64 {
    let (mut cosine, mut sine, mut used) = (0.0, 0.0, 0.0);
    for &(distance, count) in distances.iter().filter(|(distance, _)| *distance < MOST_PERIODS * period) {
        used += count;
        if distance >= period / 2.0 {
            let (s, c) = (distance / period * TAU).sin_cos();
            cosine += c * count;
            sine += s * count;
        }
    }
    if used < total / 2.0 {
        return 0.0;
    }
    // Distances of a period point to 0, not anywhere: half a period off is no agreement.
    (cosine / used).max(0.0) - (sine / used).abs()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A little noise that repeats.
    fn noise(number: u64) -> u64 {
        number.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(23).wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 33
    }

    fn found(times: impl Iterator<Item = u64>) -> Option<Period> {
        let mut framing = Framing::default();
        let mut times: Vec<u64> = times.collect();
        times.sort_unstable();
        for time in times {
            framing.acknowledgement(1_000_000_000 + time);
        }
        framing.period()
    }

    proptest! {
        #[test]
        fn a_framing_is_found_whatever_its_load(
            period_ns in prop::sample::select(vec![125_000_u64, 250_000, 62_500, 100_000]), share in 20_u64..90, jitter_ns in 1_u64..6_000, seed: u32,
        ) {
            // In each frame some acknowledgements, or none.
            let times = (0..4_000_u64).filter(|frame| noise(frame + u64::from(seed)) % 100 < share).flat_map(|frame| {
                let start = frame * period_ns + noise(frame * 7) % jitter_ns;
                (0..=noise(frame) % 5).map(move |ack| start + ack * 40)
            });
            let period = found(times).expect("a period");
            let off = period.period_ns.abs_diff(period_ns) as f64 / period_ns as f64;
            prop_assert!(off < 0.02, "{period:?} for {period_ns}");
            prop_assert!(period.agreement > 0.7, "{period:?}");
        }

        #[test]
        fn what_comes_at_random_or_evenly_has_no_framing(mean_ns in 20_000_u64..200_000, seed: u32) {
            let gap = |number: u64| {
                let share = (noise(number + u64::from(seed)) % 1_000_000 + 1) as f64 / 1_000_001.0;
                (-share.ln() * mean_ns as f64) as u64
            };
            let random = (0..3_000).scan(0, |time, number| { *time += gap(number); Some(*time) });
            prop_assert_eq!(found(random), None);
            let even = (0..3_000).map(|number| number * mean_ns + noise(number) % 2_000);
            prop_assert_eq!(found(even), None);
        }
    }
}
