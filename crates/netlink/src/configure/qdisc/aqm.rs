//! Active queue management without parameters one must tune: `codel`, `fq_codel` and `pie`.

use super::super::super::Request;

// linux/pkt_sched.h
const TCA_CODEL_TARGET: u16 = 1;
const TCA_CODEL_LIMIT: u16 = 2;
const TCA_CODEL_INTERVAL: u16 = 3;
const TCA_CODEL_ECN: u16 = 4;
const TCA_CODEL_CE_THRESHOLD: u16 = 5;
// The first four of fq_codel are codel's.
const TCA_FQ_CODEL_FLOWS: u16 = 5;
const TCA_FQ_CODEL_QUANTUM: u16 = 6;
const TCA_FQ_CODEL_CE_THRESHOLD: u16 = 7;
const TCA_PIE_TARGET: u16 = 1;
const TCA_PIE_LIMIT: u16 = 2;
const TCA_PIE_ECN: u16 = 6;

/// Controlled delay (RFC 8289). The kernel keeps its times in units of 1.024 µs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Codel {
    /// Most packets held; 1000.
    pub limit_packets: Option<u32>,
    /// Standing delay aimed at, µs; 5000.
    pub target_us: Option<u32>,
    /// How long it may be exceeded, µs: a round trip; 100,000.
    pub interval_us: Option<u32>,
    /// Mark what can be marked instead of dropping it; off.
    pub ecn: Option<bool>,
    /// Mark everything that waited longer, µs (DCTCP and L4S); off.
    pub ce_threshold_us: Option<u32>,
}

impl Codel {
    fn encode_common(&self, r: &mut Request) {
        r.maybe_u32(TCA_CODEL_TARGET, self.target_us);
        r.maybe_u32(TCA_CODEL_LIMIT, self.limit_packets);
        r.maybe_u32(TCA_CODEL_INTERVAL, self.interval_us);
        r.maybe_bool(TCA_CODEL_ECN, self.ecn);
    }

    pub(super) fn encode(&self, r: &mut Request) {
        self.encode_common(r);
        r.maybe_u32(TCA_CODEL_CE_THRESHOLD, self.ce_threshold_us);
    }
}

/// Fair queueing of flows, each with controlled delay (RFC 8290).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct FqCodel {
    /// What it shares with [`Codel`]; the default limit is 10,240 packets and ECN is on.
    pub codel: Codel,
    /// Flow queues, 1 to 65,536; 1024. Not to be changed later.
    pub flows: Option<u32>,
    /// Bytes a flow sends at a turn, 256 to 2²⁰; the MTU with headers.
    pub quantum_bytes: Option<u32>,
}

impl FqCodel {
    pub(super) fn encode(&self, r: &mut Request) {
        self.codel.encode_common(r);
        r.maybe_u32(TCA_FQ_CODEL_FLOWS, self.flows);
        r.maybe_u32(TCA_FQ_CODEL_QUANTUM, self.quantum_bytes);
        r.maybe_u32(TCA_FQ_CODEL_CE_THRESHOLD, self.codel.ce_threshold_us);
    }
}

/// Proportional integral controller enhanced (RFC 8033).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Pie {
    /// Most packets held; 1000.
    pub limit_packets: Option<u32>,
    /// Delay aimed at, µs; 15,000. The kernel keeps it in ticks of 64 ns.
    pub target_us: Option<u32>,
    /// Mark what can be marked instead of dropping it while the probability is low (a tenth); off.
    pub ecn: Option<bool>,
}

impl Pie {
    pub(super) fn encode(&self, r: &mut Request) {
        r.maybe_u32(TCA_PIE_TARGET, self.target_us);
        r.maybe_u32(TCA_PIE_LIMIT, self.limit_packets);
        r.maybe_bool(TCA_PIE_ECN, self.ecn);
    }
}
