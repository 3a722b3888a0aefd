//! `netem`: delay, loss, duplication, reordering and a rate.

use super::super::super::Request;
use super::{DisciplineError, Probability, TCA_OPTIONS, TICK_NS};

// linux/pkt_sched.h
const TCA_NETEM_DELAY_DIST: u16 = 2;
const TCA_NETEM_REORDER: u16 = 3;
const TCA_NETEM_LOSS: u16 = 5;
const TCA_NETEM_RATE: u16 = 6;
const TCA_NETEM_RATE64: u16 = 8;
const TCA_NETEM_LATENCY64: u16 = 10;
const TCA_NETEM_JITTER64: u16 = 11;
const TCA_NETEM_SLOT: u16 = 12;
const TCA_NETEM_PRNG_SEED: u16 = 14;
const NETEM_LOSS_GE: u16 = 2;
/// Value of a table entry for one standard deviation.
const NETEM_DIST_SCALE: f64 = 8192.0;
/// Number of entries of the tables computed here.
const TABLE_LEN: usize = 4096;

/// Network emulator. Random draws are per packet that enters the discipline: a super-packet counts as one.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Netem {
    /// Queue limit, packets: those being delayed and those waiting for the rate; the default is 1000, as in `tc`.
    pub limit_packets: u32,
    /// Delay, ns; passed to the kernel without rounding.
    pub delay_ns: u64,
    /// Jitter, ns, up to 2³¹ − 1: half the width of a uniform distribution, or the standard deviation of a normal
    /// one. Packets are reordered when it exceeds the gap between them.
    pub jitter_ns: u64,
    /// Whether the jitter is normally distributed, truncated at four standard deviations, instead of uniformly.
    pub normal_jitter: bool,
    /// Pattern in which packets are lost.
    pub loss: Loss,
    /// Probability that a packet is sent twice.
    pub duplicate: Probability,
    /// Reordering probability: the share of packets that skip the delay.
    pub reorder: Probability,
    /// Rate limit, applied before the delay.
    pub rate: Option<NetemRate>,
    /// Slot length, ns: packets that arrive within it leave together. 0 disables slots.
    pub slot_ns: u64,
    /// Seed of the random number generator, for repeatable runs (Linux 6.6 and later).
    pub seed: Option<u64>,
}

impl Default for Netem {
    fn default() -> Self {
        Self {
            limit_packets: 1000,
            delay_ns: 0,
            jitter_ns: 0,
            normal_jitter: false,
            loss: Loss::None,
            duplicate: Probability::ZERO,
            reorder: Probability::ZERO,
            rate: None,
            slot_ns: 0,
            seed: None,
        }
    }
}

/// Pattern of the losses of a [`Netem`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Loss {
    /// No loss.
    #[default]
    None,
    /// Independent loss of each packet.
    Random(Probability),
    /// Gilbert-Elliott model: a good and a bad state, each with its loss probability. The mean loss is the average
    /// of the two, weighted by `recovery` (good) and `failure` (bad).
    GilbertElliott {
        /// Transition probability from good to bad (`p`).
        failure: Probability,
        /// Transition probability from bad to good (`r`).
        recovery: Probability,
        /// Loss probability in the bad state (1 − h): 1 in the plain Gilbert model.
        loss_in_bad: Probability,
        /// Loss probability in the good state (1 − k): 0 in the plain Gilbert model.
        loss_in_good: Probability,
    },
}

/// Rate limit of a [`Netem`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct NetemRate {
    /// Packets count with `packet_overhead_bytes`.
    pub bytes_per_s: u64,
    /// Overhead added to each packet, bytes; may be negative.
    pub packet_overhead_bytes: i32,
}

/// The kernel's delay table for a normal distribution: 8192 per standard deviation; the entries are the
/// midpoints of [`TABLE_LEN`] equally likely intervals.
fn normal_table() -> Vec<i16> {
    let entry = |i: usize| normal_quantile((i as f64 + 0.5) / TABLE_LEN as f64) * NETEM_DIST_SCALE;
    (0..TABLE_LEN).map(|i| entry(i).round() as i16).collect()
}

/// Quantile of the standard normal distribution at `p`, by bisection, far more exact than the table needs.
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
        if self.jitter_ns > i32::MAX as u64 || self.delay_ns > i64::MAX as u64 || self.slot_ns > i64::MAX as u64 {
            return Err(DisciplineError("jitter is at most 2.1 s"));
        }
        request.nest_without_flag(TCA_OPTIONS, |r| {
            self.encode_base(r);
            r.u64(TCA_NETEM_LATENCY64, self.delay_ns);
            r.u64(TCA_NETEM_JITTER64, self.jitter_ns);
            self.encode_draws(r);
            if let Some(rate) = self.rate {
                rate.encode(r);
            }
            if self.slot_ns > 0 {
                // struct tc_netem_slot: minimum and maximum time between slots, packets and bytes per slot (no limit), and the
                // times of a distribution.
                let mut slot = Vec::with_capacity(40);
                for word in [self.slot_ns, self.slot_ns, 0, 0, 0] {
                    slot.extend_from_slice(&word.to_ne_bytes());
                }
                r.nest_without_flag(TCA_NETEM_SLOT, |r| r.bytes(&slot));
            }
            if self.normal_jitter {
                let table: Vec<u8> = normal_table().iter().flat_map(|entry| entry.to_ne_bytes()).collect();
                r.attribute(TCA_NETEM_DELAY_DIST, &table);
            }
            if let Some(seed) = self.seed {
                r.u64(TCA_NETEM_PRNG_SEED, seed);
            }
        });
        Ok(())
    }

    /// `struct tc_netem_qopt`: latency (ticks), limit, loss, gap, duplicate, jitter (ticks). The 64-bit attributes
    /// override the two times.
    fn encode_base(&self, r: &mut Request) {
        let ticks = |ns: u64| u32::try_from(ns / TICK_NS).unwrap_or(u32::MAX);
        let loss = if let Loss::Random(probability) = self.loss { probability } else { Probability::ZERO };
        r.words(&[
            ticks(self.delay_ns),
            self.limit_packets,
            loss.bits(),
            // A gap of 1 makes every packet a candidate for reordering.
            u32::from(self.reorder != Probability::ZERO),
            self.duplicate.bits(),
            ticks(self.jitter_ns),
        ]);
    }

    fn encode_draws(&self, r: &mut Request) {
        if self.reorder != Probability::ZERO {
            // struct tc_netem_reorder: probability, correlation.
            r.nest_without_flag(TCA_NETEM_REORDER, |r| r.words(&[self.reorder.bits(), 0]));
        }
        if let Loss::GilbertElliott { failure, recovery, loss_in_bad, loss_in_good } = self.loss {
            r.nest(TCA_NETEM_LOSS, |r| {
                // struct tc_netem_gemodel: p, r, h, k1. In the bad state the kernel drops a packet when its random number
                // exceeds h.
                let words = [failure, recovery, loss_in_bad.complement(), loss_in_good].map(Probability::bits);
                r.nest_without_flag(NETEM_LOSS_GE, |r| r.words(&words));
            });
        }
    }
}

impl NetemRate {
    /// `struct tc_netem_rate`: rate, packet_overhead (i32), cell_size, cell_overhead (i32).
    fn encode(self, r: &mut Request) {
        let rate = u32::try_from(self.bytes_per_s).unwrap_or(u32::MAX);
        r.nest_without_flag(TCA_NETEM_RATE, |r| r.words(&[rate, self.packet_overhead_bytes as u32, 0, 0]));
        if self.bytes_per_s > u64::from(u32::MAX) {
            r.u64(TCA_NETEM_RATE64, self.bytes_per_s);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn normal_delay_table_has_mean_zero_and_deviation_one() {
        let table = normal_table();
        let n = table.len() as f64;
        let values = || table.iter().map(|&entry| f64::from(entry) / NETEM_DIST_SCALE);
        let mean = values().sum::<f64>() / n;
        let deviation = (values().map(|v| (v - mean).powi(2)).sum::<f64>() / n).sqrt();
        assert!(mean.abs() < 1e-4 && (deviation - 1.0).abs() < 2e-3, "{mean} {deviation}");
        // The standard normal distribution is 0.8413 at one standard deviation.
        let below = table.iter().filter(|&&entry| f64::from(entry) < NETEM_DIST_SCALE).count();
        assert!((below as f64 / n - 0.8413).abs() < 5e-4, "{below}");
    }
}
