//! Fairness: `fq`.

use super::super::super::Request;
use super::{DisciplineError, TCA_OPTIONS};

// linux/pkt_sched.h
const TCA_FQ_PLIMIT: u16 = 1;
const TCA_FQ_FLOW_PLIMIT: u16 = 2;
const TCA_FQ_QUANTUM: u16 = 3;
const TCA_FQ_INITIAL_QUANTUM: u16 = 4;
const TCA_FQ_RATE_ENABLE: u16 = 5;
const TCA_FQ_FLOW_MAX_RATE: u16 = 7;
const TCA_FQ_FLOW_REFILL_DELAY: u16 = 9;
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
    /// How long a flow must be idle to get a new turn's credit, µs; 40,000.
    pub refill_delay_us: Option<u32>,
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
            r.maybe_u32(TCA_FQ_FLOW_REFILL_DELAY, self.refill_delay_us);
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
