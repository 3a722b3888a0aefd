//! Fairness and priorities: `fq`, `sfq`, `prio`.

use super::super::super::Request;
use super::{DisciplineError, TCA_OPTIONS};

// linux/pkt_sched.h
const TCA_FQ_PLIMIT: u16 = 1;
const TCA_FQ_FLOW_PLIMIT: u16 = 2;
const TCA_FQ_QUANTUM: u16 = 3;
const TCA_FQ_INITIAL_QUANTUM: u16 = 4;
const TCA_FQ_RATE_ENABLE: u16 = 5;
const TCA_FQ_FLOW_MAX_RATE: u16 = 7;
const TCA_FQ_BUCKETS_LOG: u16 = 8;
const TCA_FQ_FLOW_REFILL_DELAY: u16 = 9;
const TCA_FQ_ORPHAN_MASK: u16 = 10;
const TCA_FQ_LOW_RATE_THRESHOLD: u16 = 11;
const TCA_FQ_CE_THRESHOLD: u16 = 12;
const TCA_FQ_TIMER_SLACK: u16 = 13;
const TCA_FQ_HORIZON: u16 = 14;
const TCA_FQ_HORIZON_DROP: u16 = 15;

/// Fair queueing with pacing, the end host's: each socket is a flow, sent at its pacing rate.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Fq {
    /// Most packets held; 10,000.
    pub limit_packets: Option<u32>,
    /// Most packets held of one flow; 100.
    pub flow_limit_packets: Option<u32>,
    /// Bytes a flow sends at a turn, 256 to 2²⁰; twice the MTU with headers.
    pub quantum_bytes: Option<u32>,
    /// Bytes a new flow sends at its first turn; ten times the MTU with headers.
    pub initial_quantum_bytes: Option<u32>,
    /// Obey the sockets' pacing rates; on.
    pub pacing: Option<bool>,
    /// Most a flow may send, bytes/s. The kernel's attribute ends at 2³² − 2 (34 Gb/s); `Some(u64::MAX)` is unlimited,
    /// the default, and removes a limit.
    pub flow_max_rate_bytes_per_s: Option<u64>,
    /// Exponent of the number of hash buckets, 1 to 18; 10.
    pub buckets_log: Option<u32>,
    /// How long a flow must be idle to get a new turn's credit, µs; 40,000.
    pub refill_delay_us: Option<u32>,
    /// Mask of the hash of packets without a socket; 1023.
    pub orphan_mask: Option<u32>,
    /// Below this rate each packet is delayed separately, bytes/s; 68,750 (550 kb/s).
    pub low_rate_threshold_bytes_per_s: Option<u32>,
    /// Mark everything that waited longer, µs; off.
    pub ce_threshold_us: Option<u32>,
    /// How late its timer may be, ns; 10,000.
    pub timer_slack_ns: Option<u32>,
    /// How far ahead a departure time may lie, µs; 10,000,000.
    pub horizon_us: Option<u32>,
    /// What is done with a packet beyond the horizon; dropped.
    pub beyond_horizon: Option<Delivery>,
}

/// What [`Fq`] does with a packet whose departure time lies beyond the horizon.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Delivery {
    /// Drops it.
    Drop,
    /// Sends it at the horizon.
    Cap,
}

impl Fq {
    pub(super) fn encode(&self, request: &mut Request) -> Result<(), DisciplineError> {
        let max_rate = match self.flow_max_rate_bytes_per_s {
            None => None,
            Some(u64::MAX) => Some(u32::MAX),
            Some(rate) if rate < u64::from(u32::MAX) => Some(rate as u32),
            Some(_) => return Err(DisciplineError("fq limits a flow to at most 34.36 Gb/s")),
        };
        request.nest(TCA_OPTIONS, |r| {
            r.maybe_u32(TCA_FQ_PLIMIT, self.limit_packets);
            r.maybe_u32(TCA_FQ_FLOW_PLIMIT, self.flow_limit_packets);
            r.maybe_u32(TCA_FQ_QUANTUM, self.quantum_bytes);
            r.maybe_u32(TCA_FQ_INITIAL_QUANTUM, self.initial_quantum_bytes);
            r.maybe_bool(TCA_FQ_RATE_ENABLE, self.pacing);
            r.maybe_u32(TCA_FQ_FLOW_MAX_RATE, max_rate);
            r.maybe_u32(TCA_FQ_BUCKETS_LOG, self.buckets_log);
            r.maybe_u32(TCA_FQ_FLOW_REFILL_DELAY, self.refill_delay_us);
            r.maybe_u32(TCA_FQ_ORPHAN_MASK, self.orphan_mask);
            r.maybe_u32(TCA_FQ_LOW_RATE_THRESHOLD, self.low_rate_threshold_bytes_per_s);
            r.maybe_u32(TCA_FQ_CE_THRESHOLD, self.ce_threshold_us);
            r.maybe_u32(TCA_FQ_TIMER_SLACK, self.timer_slack_ns);
            r.maybe_u32(TCA_FQ_HORIZON, self.horizon_us);
            if let Some(delivery) = self.beyond_horizon {
                r.u8(TCA_FQ_HORIZON_DROP, u8::from(delivery == Delivery::Drop));
            }
        });
        Ok(())
    }
}

/// Stochastic fairness queueing. 0 is the kernel's default everywhere.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Sfq {
    /// Most packets held, at least 2; 127.
    pub limit_packets: u32,
    /// Bytes a flow sends at a turn; the MTU with headers.
    pub quantum_bytes: u32,
    /// How often the hash is changed, s; never.
    pub perturb_s: u32,
    /// Hash buckets, a power of two up to 65,536; 1024.
    pub divisor: u32,
    /// Most flows at a time; 128.
    pub flows: u32,
    /// Most packets held of one flow, up to 127; 127.
    pub depth_packets: u32,
    /// When full, drop the oldest packet of a flow and not its newest.
    pub head_drop: bool,
}

impl Sfq {
    /// `struct tc_sfq_qopt_v1`: quantum, perturb_period, limit, divisor, flows; depth, headdrop; 3 words, 4 bytes and a
    /// word of RED, all zero for none; 6 words of statistics.
    pub(super) fn encode(&self, r: &mut Request) {
        r.words(&[self.quantum_bytes, self.perturb_s, self.limit_packets, self.divisor, self.flows]);
        r.words(&[self.depth_packets, self.head_drop.into()]);
        r.words(&[0; 5]);
        r.words(&[0; 6]);
    }
}

/// Strict priorities: a band sends only while those before it are empty. Its classes, minor 1 on, are the bands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Prio {
    /// Bands, 2 to 16.
    pub bands: u32,
    /// Band of each of the 16 packet priorities (`SO_PRIORITY`, or by the TOS byte).
    pub map: [u8; 16],
}

impl Default for Prio {
    /// Three bands, as `tc` and `pfifo_fast` have them.
    fn default() -> Self {
        Self { bands: 3, map: [1, 2, 2, 2, 1, 2, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1] }
    }
}

impl Prio {
    /// `struct tc_prio_qopt`: bands, priomap.
    pub(super) fn encode(&self, r: &mut Request) {
        r.words(&[self.bands]);
        r.bytes(&self.map);
    }
}
