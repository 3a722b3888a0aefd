//! Active queue management that needs no tuning: `codel`, `fq_codel` and `pie`.

use super::super::super::Request;

// linux/pkt_sched.h
const TCA_CODEL_TARGET: u16 = 1;
const TCA_CODEL_LIMIT: u16 = 2;
const TCA_CODEL_INTERVAL: u16 = 3;
const TCA_CODEL_ECN: u16 = 4;
const TCA_CODEL_CE_THRESHOLD: u16 = 5;
// The first four attributes of fq_codel have the numbers of codel's.
const TCA_FQ_CODEL_FLOWS: u16 = 5;
const TCA_FQ_CODEL_QUANTUM: u16 = 6;
const TCA_FQ_CODEL_CE_THRESHOLD: u16 = 7;
const TCA_PIE_TARGET: u16 = 1;
const TCA_PIE_LIMIT: u16 = 2;
const TCA_PIE_ECN: u16 = 6;

/// CoDel, controlled delay (RFC 8289). The kernel stores its times in units of 1.024 µs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Codel {
    /// Queue limit, packets; default 1000.
    pub limit_packets: Option<u32>,
    /// Target of the standing queueing delay, µs; default 5000.
    pub target_us: Option<u32>,
    /// Time for which the target may be exceeded, µs, about one RTT; default 100,000.
    pub interval_us: Option<u32>,
    /// Whether ECN-capable packets are marked instead of dropped; default off.
    pub ecn: Option<bool>,
    /// Threshold above which every ECN-capable packet is marked CE, µs of queueing delay (DCTCP and L4S); default
    /// off.
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

/// FQ-CoDel: fair queueing with one CoDel queue per flow (RFC 8290).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct FqCodel {
    /// Options shared with [`Codel`]; here the default limit is 10,240 packets and ECN is on.
    pub codel: Codel,
    /// Number of flow queues, 1 to 65,536; default 1024. Cannot be changed later.
    pub flows: Option<u32>,
    /// Bytes that a flow may send per round, 256 to 2²⁰; default is the MTU with headers.
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

/// PIE, proportional integral controller enhanced (RFC 8033).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Pie {
    /// Queue limit, packets; default 1000.
    pub limit_packets: Option<u32>,
    /// Target queueing delay, µs; default 15,000. The kernel stores it in ticks of 64 ns.
    pub target_us: Option<u32>,
    /// Whether ECN-capable packets are marked instead of dropped while the drop probability is at most 10 %;
    /// default off.
    pub ecn: Option<bool>,
}

impl Pie {
    pub(super) fn encode(&self, r: &mut Request) {
        r.maybe_u32(TCA_PIE_TARGET, self.target_us);
        r.maybe_u32(TCA_PIE_LIMIT, self.limit_packets);
        r.maybe_bool(TCA_PIE_ECN, self.ecn);
    }
}
