//! Shapers: `tbf` and `htb`.

use super::super::super::Request;
use super::{DisciplineError, TCA_OPTIONS, TICK_NS};

// linux/pkt_sched.h
const TCA_TBF_PARMS: u16 = 1;
const TCA_TBF_RATE64: u16 = 4;
const TCA_TBF_PRATE64: u16 = 5;
const TCA_TBF_BURST: u16 = 6;
const TCA_TBF_PBURST: u16 = 7;
const TCA_HTB_PARMS: u16 = 1;
const TCA_HTB_INIT: u16 = 2;
const TCA_HTB_DIRECT_QLEN: u16 = 5;
const TCA_HTB_RATE64: u16 = 6;
const TCA_HTB_CEIL64: u16 = 7;
/// The only version the kernel takes (`HTB_VER >> 16`).
const TC_HTB_PROTOVER: u32 = 3;
/// No table of transmission times follows.
const TC_LINKLAYER_ETHERNET: u8 = 1;

/// Token bucket filter: sends at `rate`, up to `burst_bytes` at line rate after a pause.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Tbf {
    /// Rate, bytes/s.
    pub rate_bytes_per_s: u64,
    /// Bucket, bytes: at least the largest packet with its headers. Larger super-packets are cut up.
    pub burst_bytes: u32,
    /// Most bytes waiting, in a `bfifo` made for it. 0 makes none: everything is dropped until a discipline is added at
    /// minor 1 of its handle.
    pub limit_bytes: u32,
    /// A second bucket that limits the bursts, too.
    pub peak: Option<TbfPeak>,
    /// Counted on top of each packet, bytes (preamble, gap and the like; 24 makes Ethernet's wire rate).
    pub overhead_bytes: u16,
    /// Each packet counts for at least this, bytes.
    pub minimum_packet_bytes: u16,
}

/// The second bucket of a [`Tbf`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TbfPeak {
    /// Rate, bytes/s, above the first.
    pub rate_bytes_per_s: u64,
    /// Bucket, bytes: the largest packet.
    pub burst_bytes: u32,
}

/// `struct tc_ratespec`: cell_log, linklayer, overhead (u16), cell_align (i16), mpu (u16), rate (u32). A rate past 32 bits
/// is said in a further attribute.
fn rate_spec(request: &mut Request, rate_bytes_per_s: u64, overhead: u16, mpu: u16) {
    request.bytes(&[0, TC_LINKLAYER_ETHERNET]);
    request.bytes(&overhead.to_ne_bytes());
    request.bytes(&[0; 2]);
    request.bytes(&mpu.to_ne_bytes());
    request.words(&[u32::try_from(rate_bytes_per_s).unwrap_or(u32::MAX)]);
}

/// How long `bytes` take at a rate, in ticks, not less than asked for.
fn ticks(bytes: u32, rate_bytes_per_s: u64) -> u32 {
    let ns = (u128::from(bytes) * 1_000_000_000).div_ceil(u128::from(rate_bytes_per_s.max(1)));
    u32::try_from(ns.div_ceil(u128::from(TICK_NS))).unwrap_or(u32::MAX)
}

impl Tbf {
    pub(super) fn encode(&self, request: &mut Request) -> Result<(), DisciplineError> {
        if self.rate_bytes_per_s == 0 || self.burst_bytes == 0 {
            return Err(DisciplineError("a token bucket needs a rate and a burst"));
        }
        if self.peak.is_some_and(|peak| peak.rate_bytes_per_s <= self.rate_bytes_per_s || peak.burst_bytes == 0) {
            return Err(DisciplineError("the peak rate must be above the rate, with a burst"));
        }
        let peak = self.peak.unwrap_or_default();
        request.nest(TCA_OPTIONS, |r| {
            // struct tc_tbf_qopt: rate, peakrate, limit, buffer (ticks), mtu (ticks).
            r.around(TCA_TBF_PARMS, |r| {
                rate_spec(r, self.rate_bytes_per_s, self.overhead_bytes, self.minimum_packet_bytes);
                rate_spec(r, peak.rate_bytes_per_s, self.overhead_bytes, self.minimum_packet_bytes);
                let buffer = ticks(self.burst_bytes, self.rate_bytes_per_s);
                r.words(&[self.limit_bytes, buffer, ticks(peak.burst_bytes, peak.rate_bytes_per_s)]);
            });
            r.u64(TCA_TBF_RATE64, self.rate_bytes_per_s);
            r.u32(TCA_TBF_BURST, self.burst_bytes);
            if self.peak.is_some() {
                r.u64(TCA_TBF_PRATE64, peak.rate_bytes_per_s);
                r.u32(TCA_TBF_PBURST, peak.burst_bytes);
            }
        });
        Ok(())
    }
}

/// Hierarchical token bucket: the discipline; the rates are in its classes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Htb {
    /// Minor of the class that takes what no filter claims. 0: such packets pass unshaped.
    pub default_class: u16,
    /// Most unshaped packets waiting; the link's `txqueuelen` when `None`.
    pub direct_limit_packets: Option<u32>,
}

impl Htb {
    pub(super) fn encode(&self, request: &mut Request) {
        // struct tc_htb_glob: version, rate2quantum, defcls, debug, direct_pkts.
        const RATE_TO_QUANTUM: u32 = 10;
        request.around(TCA_HTB_INIT, |r| {
            r.words(&[TC_HTB_PROTOVER, RATE_TO_QUANTUM, self.default_class.into(), 0, 0]);
        });
        request.maybe_u32(TCA_HTB_DIRECT_QLEN, self.direct_limit_packets);
    }
}

/// A class of an `htb`. Its leaf is a `pfifo` of `txqueuelen` packets until another discipline is added to it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct HtbClass {
    /// Its guaranteed rate, bytes/s.
    pub rate_bytes_per_s: u64,
    /// Rate with what it borrows, bytes/s; the same as the rate when `None`.
    pub ceil_bytes_per_s: Option<u64>,
    /// Bucket of the rate, bytes. The kernel keeps it as a time of whole 64 ns: at 100 Gb/s that is 800 bytes.
    pub burst_bytes: u32,
    /// Bucket of the ceiling, bytes; the same when `None`.
    pub ceil_burst_bytes: Option<u32>,
    /// Bytes served at a turn among borrowing siblings. The kernel's own choice when `None`: a tenth of the rate, of
    /// which it complains in its log above 200,000.
    pub quantum_bytes: Option<u32>,
    /// Priority among borrowing siblings, 0 (first) to 7.
    pub priority: u32,
    /// Counted on top of each packet, bytes.
    pub overhead_bytes: u16,
}

impl HtbClass {
    pub(super) fn encode(&self, request: &mut Request) -> Result<(), DisciplineError> {
        let ceil = self.ceil_bytes_per_s.unwrap_or(self.rate_bytes_per_s);
        if self.rate_bytes_per_s == 0 || self.burst_bytes == 0 {
            return Err(DisciplineError("a class needs a rate and a burst"));
        }
        if ceil < self.rate_bytes_per_s {
            return Err(DisciplineError("the ceiling is below the rate"));
        }
        request.nest(TCA_OPTIONS, |r| {
            // struct tc_htb_opt: rate, ceil, buffer (ticks), cbuffer (ticks), quantum, level, prio.
            r.around(TCA_HTB_PARMS, |r| {
                rate_spec(r, self.rate_bytes_per_s, self.overhead_bytes, 0);
                rate_spec(r, ceil, self.overhead_bytes, 0);
                let buffer = ticks(self.burst_bytes, self.rate_bytes_per_s);
                let ceil_buffer = ticks(self.ceil_burst_bytes.unwrap_or(self.burst_bytes), ceil);
                r.words(&[buffer, ceil_buffer, self.quantum_bytes.unwrap_or(0), 0, self.priority]);
            });
            r.u64(TCA_HTB_RATE64, self.rate_bytes_per_s);
            r.u64(TCA_HTB_CEIL64, ceil);
        });
        Ok(())
    }
}
