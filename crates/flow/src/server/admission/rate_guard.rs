//! Holds running tests to the rate that they were granted.

use crate::end::Watch;

/// Holds a test to the server's rate, whatever its client makes of what was granted.
///
/// A TCP receiver is held back by reading no faster; what arrives by UDP or as requests can only be counted, junk and
/// duplicates included: they load this host as much as the rest.
pub struct RateGuard {
    bytes_per_s: u64,
    t0_ns: u64,
}

impl RateGuard {
    /// For a test that starts at `t0_ns`.
    pub fn new(rate_bps: u64, t0_ns: u64) -> Self {
        Self { bytes_per_s: rate_bps / 8, t0_ns }
    }

    /// More than a tenth above the rate since the start, beyond a second's worth and a megabyte.
    pub fn is_exceeded(&self, now_ns: u64, watch: &Watch) -> bool {
        let elapsed_ns = now_ns.saturating_sub(self.t0_ns) + 1_000_000_000;
        let allowed = u128::from(self.bytes_per_s) * u128::from(elapsed_ns) * 11 / 10 / 1_000_000_000 + (1 << 20);
        u128::from(watch.arrived_bytes().max(watch.exchanged_bytes())) > allowed
    }
}
