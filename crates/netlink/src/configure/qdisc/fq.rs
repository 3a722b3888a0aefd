//! The `fq` queueing discipline.

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

/// Fair queueing with pacing, for end hosts: each socket is a flow, sent at its pacing rate.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Fq {
    /// Queue limit, packets; default 10,000.
    pub limit_packets: Option<u32>,
    /// Queue limit of one flow, packets; default 100.
    pub flow_limit_packets: Option<u32>,
    /// Bytes that a flow may send per round, 256 to 2²⁰; default is twice the MTU with headers.
    pub quantum_bytes: Option<u32>,
    /// Bytes that a new flow may send in its first round; default is ten times the MTU with headers.
    pub initial_quantum_bytes: Option<u32>,
    /// Whether the pacing rates of sockets apply; default on.
    pub pacing: Option<bool>,
    /// Maximum rate of a flow, bytes/s. The kernel's attribute is limited to 2³² − 2 (34 Gb/s); `Some(u64::MAX)`
    /// means unlimited, which is the default, and removes a limit.
    pub flow_max_rate_bytes_per_s: Option<u64>,
    /// Idle time after which a flow gets new credit, µs; default 40,000.
    pub refill_delay_us: Option<u32>,
    /// Threshold above which every ECN-capable packet is marked CE, µs of queueing delay; default off.
    pub ce_threshold_us: Option<u32>,
    /// Timer slack, ns; default 10,000.
    pub timer_slack_ns: Option<u32>,
    /// Maximum time of a departure in the future, µs; default 10,000,000.
    pub horizon_us: Option<u32>,
    /// Treatment of packets beyond the horizon; dropped by default.
    pub beyond_horizon: Option<Delivery>,
}

/// Treatment of packets whose departure time lies beyond the horizon of [`Fq`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Delivery {
    /// The packet is dropped.
    Drop,
    /// The packet is sent at the horizon.
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
