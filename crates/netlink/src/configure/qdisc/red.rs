//! Random early detection (Floyd and Jacobson 1993, "Random Early Detection Gateways for Congestion Avoidance").

use super::super::super::Request;
use super::{DisciplineError, Probability, TCA_OPTIONS};

// linux/pkt_sched.h
const TCA_RED_PARMS: u16 = 1;
const TCA_RED_STAB: u16 = 2;
const TCA_RED_MAX_P: u16 = 3;
const TC_RED_ECN: u8 = 1;
/// `RED_STAB_SIZE` (include/net/red.h).
const STAB_SIZE: usize = 256;
/// The kernel stores averages in 32 bits and accepts no shift of 32 or more.
const SHIFT_MAX: u32 = 31;

/// Random early detection. All sizes are bytes of the average queue, including link-layer headers.
///
/// Weight and probability are computed as `tc` does. The decay of an idle queue is not: it follows the paper,
/// in the microseconds that the kernel counts; `tc` uses scheduler ticks and natural logarithms, and its
/// average decays about twenty times slower (`Scell_log` is 3 or so larger).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Red {
    /// Queue limit, bytes.
    pub limit_bytes: u32,
    /// Minimum threshold, bytes of average queue: above it packets are marked or dropped.
    pub min_bytes: u32,
    /// Maximum threshold, bytes of average queue: here the probability is `probability`, and above it every packet
    /// is marked or dropped.
    pub max_bytes: u32,
    /// Mark or drop probability at `max_bytes`.
    pub probability: Probability,
    /// Typical packet size, bytes.
    pub average_packet_bytes: u32,
    /// Size of a burst into an empty queue that leaves the average below `min_bytes`, packets: sets the weight of
    /// the average.
    pub burst_packets: u32,
    /// Link rate, bytes/s: sets how fast the average decays while the queue is empty.
    pub bandwidth_bytes_per_s: u64,
    /// Whether ECN-capable packets are marked instead of dropped.
    pub ecn: bool,
}

impl Red {
    /// Exponent n of the average's weight 2⁻ⁿ: the smallest with which a burst into an empty queue keeps the
    /// average below `min_bytes` (Floyd and Jacobson 1993, section 5: L + 1 + ((1 − w)^(L+1) − 1)/w < min).
    fn weight_log(&self) -> Option<u8> {
        let burst = f64::from(self.burst_packets);
        let min_packets = f64::from(self.min_bytes) / f64::from(self.average_packet_bytes.max(1));
        (1..=SHIFT_MAX as u8).find(|&log| {
            let weight = (-f64::from(log)).exp2();
            burst + 1.0 + ((1.0 - weight).powf(burst + 1.0) - 1.0) / weight < min_packets
        })
    }

    /// Decay table for an idle queue, and the exponent of its cell in microseconds: an average idle for `i` cells
    /// is shifted right by entry `i`. While idle it decays as if `m` typical packets had found the queue empty, (1
    /// − w)^m, so the shift is m·log₂(1/(1 − w)). The cell is the smallest for which the table reaches a shift of
    /// 31.
    fn idle_table(&self, weight_log: u8) -> ([u8; STAB_SIZE], u8) {
        let packet_us = f64::from(self.average_packet_bytes) * 1e6 / (self.bandwidth_bytes_per_s.max(1) as f64);
        let weight = (-f64::from(weight_log)).exp2();
        let shift_per_us = -(1.0 - weight).log2() / packet_us.max(1e-9);
        let longest_us = f64::from(SHIFT_MAX) / shift_per_us;
        let cell_log = (0..SHIFT_MAX as u8).find(|&log| longest_us < STAB_SIZE as f64 * f64::from(log).exp2());
        let cell_log = cell_log.unwrap_or(SHIFT_MAX as u8);
        let cell_us = f64::from(cell_log).exp2();
        let mut table = [0; STAB_SIZE];
        for (i, entry) in table.iter_mut().enumerate() {
            *entry = (i as f64 * cell_us * shift_per_us).min(f64::from(SHIFT_MAX)) as u8;
        }
        // Longer idle times use the last entry.
        table[STAB_SIZE - 1] = SHIFT_MAX as u8;
        (table, cell_log)
    }

    /// Exponent of (max − min)/probability: the encoding of the probability in dumps and on kernels without
    /// `TCA_RED_MAX_P`.
    fn probability_log(&self) -> u8 {
        let span = f64::from((self.max_bytes - self.min_bytes).max(1));
        (span / self.probability.fraction().max(1e-10)).log2().clamp(0.0, f64::from(SHIFT_MAX)).ceil() as u8
    }

    pub(super) fn encode(&self, request: &mut Request) -> Result<(), DisciplineError> {
        if self.min_bytes == 0 || self.max_bytes < self.min_bytes || self.limit_bytes < self.max_bytes {
            return Err(DisciplineError("red needs 0 < min <= max <= limit"));
        }
        if self.average_packet_bytes == 0 || self.bandwidth_bytes_per_s == 0 || self.probability == Probability::ZERO
        {
            return Err(DisciplineError("red needs a typical packet, a bandwidth and a probability"));
        }
        let weight_log = self
            .weight_log()
            .ok_or(DisciplineError("a burst that long reaches min with any weight: more min or less burst"))?;
        let (table, cell_log) = self.idle_table(weight_log);
        let bits = |size: u32| u32::BITS - size.leading_zeros();
        if bits(self.max_bytes) + u32::from(weight_log) > SHIFT_MAX {
            return Err(DisciplineError("max and burst together are more than the kernel's average can hold"));
        }
        request.nest(TCA_OPTIONS, |r| {
            // struct tc_red_qopt: limit, qth_min, qth_max, then bytes Wlog, Plog, Scell_log, flags.
            r.nest_without_flag(TCA_RED_PARMS, |r| {
                r.words(&[self.limit_bytes, self.min_bytes, self.max_bytes]);
                let flags = if self.ecn { TC_RED_ECN } else { 0 };
                r.bytes(&[weight_log, self.probability_log(), cell_log, flags]);
            });
            r.attribute(TCA_RED_STAB, &table);
            r.u32(TCA_RED_MAX_P, self.probability.bits());
        });
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn red() -> Red {
        Red {
            limit_bytes: 4_000_000,
            min_bytes: 300_000,
            max_bytes: 900_000,
            probability: Probability::new(0.02),
            average_packet_bytes: 1500,
            burst_packets: 334,
            bandwidth_bytes_per_s: 1_250_000_000,
            ecn: false,
        }
    }

    #[test]
    fn burst_of_configured_length_stays_below_min_threshold() {
        let red = red();
        let log = red.weight_log().expect("possible");
        let follow = |log: u8| {
            let weight = (-f64::from(log)).exp2();
            (1..=red.burst_packets).fold(0.0, |average, queue| average + weight * (f64::from(queue) - average))
        };
        let min_packets = f64::from(red.min_bytes) / 1500.0;
        assert!(follow(log) < min_packets && follow(log - 1) >= min_packets, "2^-{log}");
    }

    #[test]
    fn idle_table_halves_the_average_at_its_half_life() {
        let red = red();
        let log = red.weight_log().expect("possible");
        let (table, cell_log) = red.idle_table(log);
        // (1 − w)^m = 1/2 after m = ln 2 / w packets of 1.2 us each.
        let half_us = std::f64::consts::LN_2 * f64::from(1 << log) * 1.2;
        let cell = (half_us / f64::from(1 << cell_log)).ceil() as usize;
        assert!(table[cell] == 1 && table[cell.saturating_sub(2)] == 0, "{cell} {:?}", &table[..cell + 4]);
        assert!(table.is_sorted() && table[STAB_SIZE - 1] == 31);
    }
}
