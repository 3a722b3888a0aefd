//! `netem`: delay, loss, duplication, reordering, corruption and a rate.

use super::super::super::Request;
use super::{DisciplineError, Probability, TCA_OPTIONS, TICK_NS};

// linux/pkt_sched.h
const TCA_NETEM_CORR: u16 = 1;
const TCA_NETEM_DELAY_DIST: u16 = 2;
const TCA_NETEM_REORDER: u16 = 3;
const TCA_NETEM_CORRUPT: u16 = 4;
const TCA_NETEM_LOSS: u16 = 5;
const TCA_NETEM_RATE: u16 = 6;
const TCA_NETEM_ECN: u16 = 7;
const TCA_NETEM_RATE64: u16 = 8;
const TCA_NETEM_LATENCY64: u16 = 10;
const TCA_NETEM_JITTER64: u16 = 11;
const TCA_NETEM_SLOT: u16 = 12;
const TCA_NETEM_PRNG_SEED: u16 = 14;
const NETEM_LOSS_GI: u16 = 1;
const NETEM_LOSS_GE: u16 = 2;
/// A table's entry for one standard deviation.
const NETEM_DIST_SCALE: f64 = 8192.0;
/// Most entries of a table.
const NETEM_DIST_MAX: usize = 16_384;
/// Entries of the tables computed here.
const TABLE_LEN: usize = 4096;

/// Network emulator. Everything is drawn per packet the discipline is given: a super-packet counts as one. A change
/// replaces all options but the distribution's table and the seed, which stay when `None`.
#[derive(Debug, Clone, PartialEq)]
pub struct Netem {
    /// Most packets held, those in flight and those waiting for the rate together; the default is 1000, as `tc`'s.
    pub limit_packets: u32,
    /// Delay, ns. Exact.
    pub delay_ns: u64,
    /// Jitter, ns, up to 2³¹ − 1: half the width of a uniform distribution, or the standard deviation of another. Packets
    /// overtake each other when it exceeds the gap between them.
    pub jitter_ns: u64,
    /// How much a delay is like the one before.
    pub jitter_correlation: Probability,
    /// Shape of the jitter; `None` is uniform.
    pub distribution: Option<Distribution>,
    /// Loss.
    pub loss: Loss,
    /// Marks what can be marked (ECN) instead of dropping it.
    pub ecn: bool,
    /// Duplication.
    pub duplicate: Probability,
    /// How much a draw of duplication is like the one before.
    pub duplicate_correlation: Probability,
    /// Reordering: some packets skip the delay.
    pub reorder: Option<Reorder>,
    /// Corruption: one bit flipped.
    pub corrupt: Probability,
    /// How much a draw of corruption is like the one before.
    pub corrupt_correlation: Probability,
    /// A rate, before the delay.
    pub rate: Option<NetemRate>,
    /// Packets wait for each other: what comes within this of the first that waits leaves together, ns. 0 for not.
    pub slot_ns: u64,
    /// Seed of its random numbers, for the same run again (Linux 6.6 and later).
    pub seed: Option<u64>,
}

impl Default for Netem {
    fn default() -> Self {
        Self {
            limit_packets: 1000,
            delay_ns: 0,
            jitter_ns: 0,
            jitter_correlation: Probability::ZERO,
            distribution: None,
            loss: Loss::None,
            ecn: false,
            duplicate: Probability::ZERO,
            duplicate_correlation: Probability::ZERO,
            reorder: None,
            corrupt: Probability::ZERO,
            corrupt_correlation: Probability::ZERO,
            rate: None,
            slot_ns: 0,
            seed: None,
        }
    }
}

/// How packets are lost.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Loss {
    /// Not.
    #[default]
    None,
    /// Each by itself.
    Random {
        /// Of each packet.
        probability: Probability,
        /// How much a draw is like the one before. It distorts the rate; [`Loss::GilbertElliott`] makes bursts that do
        /// not.
        correlation: Probability,
    },
    /// Two states, good and bad, each with its loss. The mean is a mix of the two by (`recovery`, `failure`) /
    /// (`failure` + `recovery`).
    GilbertElliott {
        /// From good to bad (`p`).
        failure: Probability,
        /// From bad to good (`r`).
        recovery: Probability,
        /// In the bad state (1 − h): one for the plain Gilbert model.
        loss_in_bad: Probability,
        /// In the good state (1 − k): zero for the plain Gilbert model.
        loss_in_good: Probability,
    },
    /// Four states (general and intuitive): 1 received in a gap, 2 received in a burst, 3 lost in a burst, 4 lost in a
    /// gap.
    FourState {
        /// From 1 to 3.
        p13: Probability,
        /// From 3 to 1.
        p31: Probability,
        /// From 3 to 2.
        p32: Probability,
        /// From 2 to 3.
        p23: Probability,
        /// From 1 to 4.
        p14: Probability,
    },
}

/// Shape of the jitter: mean zero, deviation one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Distribution {
    /// Gauss, cut at four deviations.
    Normal,
    /// Pareto with shape 3: most packets a little early, few very late; cut at four deviations.
    Pareto,
    /// One's own table of equally likely deviations, 8192 being one, at most 16,384 of them.
    Table(Vec<i16>),
}

/// Reordering.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reorder {
    /// Of each packet that may be.
    pub probability: Probability,
    /// How much a draw is like the one before.
    pub correlation: Probability,
    /// Only every `gap`th packet may be; at least 1.
    pub gap: u32,
}

/// The rate of a [`Netem`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct NetemRate {
    /// Rate, bytes/s.
    pub bytes_per_s: u64,
    /// Counted on top of each packet, bytes; may be negative.
    pub packet_overhead_bytes: i32,
    /// Packets are sent in cells of this payload, bytes; 0 for none.
    pub cell_bytes: u32,
    /// Counted on top of each cell, bytes; may be negative.
    pub cell_overhead_bytes: i32,
}

impl Distribution {
    /// The table for the kernel: equally likely deviations, 8192 being one.
    pub fn table(&self) -> Vec<i16> {
        match self {
            Self::Table(table) => table.clone(),
            Self::Normal => quantiles(normal_quantile),
            // Shape 3: quantile (1 − p)^(−1/3), mean 3/2, variance 3/4.
            Self::Pareto => quantiles(|p| ((1.0 - p).powf(-1.0 / 3.0) - 1.5) / 0.75_f64.sqrt()),
        }
    }
}

/// The middles of [`TABLE_LEN`] equal slices of a distribution.
fn quantiles(quantile: impl Fn(f64) -> f64) -> Vec<i16> {
    let entry = |i: usize| (quantile((i as f64 + 0.5) / TABLE_LEN as f64) * NETEM_DIST_SCALE).round() as i16;
    (0..TABLE_LEN).map(entry).collect()
}

/// Where the standard normal distribution reaches `p`, by halving, to far below a table's resolution.
fn normal_quantile(p: f64) -> f64 {
    let (mut low, mut high) = (-8.0, 8.0);
    for _ in 0..48 {
        let middle = f64::midpoint(low, high);
        if normal_below(middle) < p {
            low = middle;
        } else {
            high = middle;
        }
    }
    f64::midpoint(low, high)
}

/// Φ(x) by its series φ(x)·(x + x³/3 + x⁵/15 + …) + ½ (Marsaglia 2004, "Evaluating the normal distribution").
fn normal_below(x: f64) -> f64 {
    let (mut term, mut sum, mut odd) = (x, x, 1.0);
    while term.abs() > 1e-17 {
        odd += 2.0;
        term *= x * x / odd;
        sum += term;
    }
    0.5 + sum * (-x * x / 2.0).exp() / (2.0 * std::f64::consts::PI).sqrt()
}

impl Netem {
    pub(super) fn encode(&self, request: &mut Request) -> Result<(), DisciplineError> {
        let table = self.distribution.as_ref().map(Distribution::table);
        if table.as_ref().is_some_and(|table| table.is_empty() || table.len() > NETEM_DIST_MAX) {
            return Err(DisciplineError("a distribution has 1 to 16,384 entries"));
        }
        if self.jitter_ns > i32::MAX as u64 || self.delay_ns > i64::MAX as u64 || self.slot_ns > i64::MAX as u64 {
            return Err(DisciplineError("jitter is at most 2.1 s"));
        }
        if self.reorder.is_some_and(|reorder| reorder.gap == 0) {
            return Err(DisciplineError("the gap of reordering is at least 1"));
        }
        request.around(TCA_OPTIONS, |r| {
            self.encode_base(r);
            r.u64(TCA_NETEM_LATENCY64, self.delay_ns);
            r.u64(TCA_NETEM_JITTER64, self.jitter_ns);
            self.encode_draws(r);
            self.encode_rate(r);
            if self.slot_ns > 0 {
                // struct tc_netem_slot: least and most time between slots, packets and bytes of one (no limit), and
                // the times of a distribution.
                let mut slot = Vec::with_capacity(40);
                for word in [self.slot_ns, self.slot_ns, 0, 0, 0] {
                    slot.extend_from_slice(&word.to_ne_bytes());
                }
                r.around(TCA_NETEM_SLOT, |r| r.bytes(&slot));
            }
            if let Some(table) = &table {
                r.around(TCA_NETEM_DELAY_DIST, |r| table.iter().for_each(|entry| r.bytes(&entry.to_ne_bytes())));
            }
            if let Some(seed) = self.seed {
                r.u64(TCA_NETEM_PRNG_SEED, seed);
            }
        });
        Ok(())
    }

    /// `struct tc_netem_qopt`: latency (ticks), limit, loss, gap, duplicate, jitter (ticks). The 64-bit attributes take
    /// the place of the two times.
    fn encode_base(&self, r: &mut Request) {
        let ticks = |ns: u64| u32::try_from(ns / TICK_NS).unwrap_or(u32::MAX);
        let loss = if let Loss::Random { probability, .. } = self.loss { probability } else { Probability::ZERO };
        r.words(&[
            ticks(self.delay_ns),
            self.limit_packets,
            loss.bits(),
            self.reorder.map_or(0, |reorder| reorder.gap),
            self.duplicate.bits(),
            ticks(self.jitter_ns),
        ]);
    }

    /// Always all of them, so that a change leaves nothing behind.
    fn encode_draws(&self, r: &mut Request) {
        let loss_correlation =
            if let Loss::Random { correlation, .. } = self.loss { correlation } else { Probability::ZERO };
        r.around(TCA_NETEM_CORR, |r| {
            r.words(&[self.jitter_correlation, loss_correlation, self.duplicate_correlation].map(Probability::bits));
        });
        let reorder =
            self.reorder.map_or([0; 2], |reorder| [reorder.probability, reorder.correlation].map(Probability::bits));
        r.around(TCA_NETEM_REORDER, |r| r.words(&reorder));
        r.around(TCA_NETEM_CORRUPT, |r| r.words(&[self.corrupt, self.corrupt_correlation].map(Probability::bits)));
        r.u32(TCA_NETEM_ECN, self.ecn.into());
        match self.loss {
            Loss::None | Loss::Random { .. } => {}
            Loss::GilbertElliott { failure, recovery, loss_in_bad, loss_in_good } => r.nest(TCA_NETEM_LOSS, |r| {
                // struct tc_netem_gemodel: p, r, h, k1. The kernel loses in the bad state when it draws above h.
                let words = [failure, recovery, loss_in_bad.complement(), loss_in_good].map(Probability::bits);
                r.around(NETEM_LOSS_GE, |r| r.words(&words));
            }),
            Loss::FourState { p13, p31, p32, p23, p14 } => r.nest(TCA_NETEM_LOSS, |r| {
                // struct tc_netem_gimodel: p13, p31, p32, p14, p23.
                r.around(NETEM_LOSS_GI, |r| r.words(&[p13, p31, p32, p14, p23].map(Probability::bits)));
            }),
        }
    }

    /// `struct tc_netem_rate`: rate, packet_overhead (i32), cell_size, cell_overhead (i32).
    fn encode_rate(&self, r: &mut Request) {
        let rate = self.rate.unwrap_or_default();
        r.around(TCA_NETEM_RATE, |r| {
            r.words(&[
                u32::try_from(rate.bytes_per_s).unwrap_or(u32::MAX),
                rate.packet_overhead_bytes as u32,
                rate.cell_bytes,
                rate.cell_overhead_bytes as u32,
            ]);
        });
        if rate.bytes_per_s > u64::from(u32::MAX) {
            r.u64(TCA_NETEM_RATE64, rate.bytes_per_s);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn moments(table: &[i16]) -> (f64, f64) {
        let n = table.len() as f64;
        let values = || table.iter().map(|&entry| f64::from(entry) / NETEM_DIST_SCALE);
        let mean = values().sum::<f64>() / n;
        (mean, (values().map(|v| (v - mean).powi(2)).sum::<f64>() / n).sqrt())
    }

    #[test]
    fn a_normal_table_has_mean_zero_and_deviation_one() {
        let table = Distribution::Normal.table();
        let (mean, deviation) = moments(&table);
        assert!(mean.abs() < 1e-4 && (deviation - 1.0).abs() < 2e-3, "{mean} {deviation}");
        // Quantiles of the standard normal: 0.8413 at one deviation.
        let below = table.iter().filter(|&&entry| f64::from(entry) < NETEM_DIST_SCALE).count();
        assert!((below as f64 / table.len() as f64 - 0.8413).abs() < 5e-4, "{below}");
    }

    #[test]
    fn a_pareto_table_leans_to_the_late_side() {
        let table = Distribution::Pareto.table();
        let (mean, deviation) = moments(&table);
        assert!(mean.abs() < 0.05 && (0.7..=1.05).contains(&deviation), "{mean} {deviation}");
        assert_eq!(table.iter().min().map(|&least| f64::from(least) / NETEM_DIST_SCALE > -0.58), Some(true));
        assert_eq!(table.last(), Some(&i16::MAX));
    }
}
