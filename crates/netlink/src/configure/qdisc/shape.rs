//! Shapers: `tbf` and `htb`.

use super::super::super::Request;
use super::{DisciplineError, TCA_OPTIONS, TICK_NS};

// linux/pkt_sched.h
const TCA_TBF_PARMS: u16 = 1;
const TCA_TBF_RATE64: u16 = 4;
const TCA_TBF_BURST: u16 = 6;
const TCA_HTB_PARMS: u16 = 1;
const TCA_HTB_RATE64: u16 = 6;
const TCA_HTB_CEIL64: u16 = 7;
/// `linklayer` value with which the kernel expects no table of transmission times.
const TC_LINKLAYER_ETHERNET: u8 = 1;

/// Token bucket filter: sends at the configured rate, and after an idle time up to `burst_bytes` at line rate.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Tbf {
    /// Packets count with their link-layer header.
    pub rate_bytes_per_s: u64,
    /// Bucket size, bytes: at least the largest packet with its headers. Super-packets larger than this are
    /// segmented.
    pub burst_bytes: u32,
    /// Queue limit, bytes, of the default child `bfifo`. 0 creates no child: everything is dropped until a
    /// discipline is added at minor 1 of the handle.
    pub limit_bytes: u32,
    /// Overhead added to each packet, bytes (24 for Ethernet: preamble, FCS and inter-packet gap).
    pub overhead_bytes: u16,
}

/// `struct tc_ratespec`: cell_log, linklayer, overhead (u16), cell_align (i16), mpu (u16), rate (u32). A rate
/// beyond 32 bits needs a further attribute.
fn rate_spec(request: &mut Request, rate_bytes_per_s: u64, overhead: u16) {
    request.bytes(&[0, TC_LINKLAYER_ETHERNET]);
    request.bytes(&overhead.to_ne_bytes());
    request.bytes(&[0; 4]);
    request.words(&[u32::try_from(rate_bytes_per_s).unwrap_or(u32::MAX)]);
}

/// Transmission time of `bytes` at a rate, in ticks, rounded up.
fn ticks(bytes: u32, rate_bytes_per_s: u64) -> u32 {
    let ns = (u128::from(bytes) * 1_000_000_000).div_ceil(u128::from(rate_bytes_per_s.max(1)));
    u32::try_from(ns.div_ceil(u128::from(TICK_NS))).unwrap_or(u32::MAX)
}

impl Tbf {
    pub(super) fn encode(&self, request: &mut Request) -> Result<(), DisciplineError> {
        if self.rate_bytes_per_s == 0 || self.burst_bytes == 0 {
            return Err(DisciplineError("a token bucket needs a rate and a burst"));
        }
        request.nest(TCA_OPTIONS, |r| {
            // struct tc_tbf_qopt: rate, peakrate, limit, buffer (ticks), mtu (ticks).
            r.nest_without_flag(TCA_TBF_PARMS, |r| {
                rate_spec(r, self.rate_bytes_per_s, self.overhead_bytes);
                rate_spec(r, 0, self.overhead_bytes);
                r.words(&[self.limit_bytes, ticks(self.burst_bytes, self.rate_bytes_per_s), 0]);
            });
            r.u64(TCA_TBF_RATE64, self.rate_bytes_per_s);
            r.u32(TCA_TBF_BURST, self.burst_bytes);
        });
        Ok(())
    }
}

/// A class of an `htb` without borrowing. Its leaf is a `pfifo` of `txqueuelen` packets until another
/// discipline is added to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HtbClass {
    /// Packets count with their link-layer header.
    pub rate_bytes_per_s: u64,
    /// Bucket size, bytes. The kernel stores it as a time in units of 64 ns, which is 800 bytes at 100 Gb/s.
    pub burst_bytes: u32,
    /// Bytes served per round among siblings that borrow.
    pub quantum_bytes: u32,
}

impl HtbClass {
    pub(super) fn encode(&self, request: &mut Request) -> Result<(), DisciplineError> {
        if self.rate_bytes_per_s == 0 || self.burst_bytes == 0 {
            return Err(DisciplineError("a class needs a rate and a burst"));
        }
        request.nest(TCA_OPTIONS, |r| {
            // struct tc_htb_opt: rate, ceil, buffer (ticks), cbuffer (ticks), quantum, level, prio.
            r.nest_without_flag(TCA_HTB_PARMS, |r| {
                rate_spec(r, self.rate_bytes_per_s, 0);
                rate_spec(r, self.rate_bytes_per_s, 0);
                let buffer = ticks(self.burst_bytes, self.rate_bytes_per_s);
                r.words(&[buffer, buffer, self.quantum_bytes, 0, 0]);
            });
            r.u64(TCA_HTB_RATE64, self.rate_bytes_per_s);
            r.u64(TCA_HTB_CEIL64, self.rate_bytes_per_s);
        });
        Ok(())
    }
}
