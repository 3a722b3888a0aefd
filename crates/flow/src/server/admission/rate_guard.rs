//! Enforces the granted rate of running tests.

use crate::end::Watch;

/// Checks that a test stays within its granted rate, even if the client ignores it.
///
/// TCP receivers limit the rate by reading slowly; UDP and request/response traffic can only be counted,
/// including unknown datagrams and duplicates, which load this host as well.
pub struct RateGuard {
    bytes_per_s: u64,
    t0_ns: u64,
}

impl RateGuard {
    /// Creates a guard for a test that starts at `t0_ns`.
    pub fn new(rate_bps: u64, t0_ns: u64) -> Self {
        Self { bytes_per_s: rate_bps / 8, t0_ns }
    }

    /// Whether the test moved more than 110 % of the rate since the start, with an allowance of 1 s and 1 MiB.
    pub fn is_exceeded(&self, now_ns: u64, watch: &Watch) -> bool {
        let elapsed_ns = now_ns.saturating_sub(self.t0_ns) + 1_000_000_000;
        let allowed = u128::from(self.bytes_per_s) * u128::from(elapsed_ns) * 11 / 10 / 1_000_000_000 + (1 << 20);
        u128::from(watch.arrived_bytes().max(watch.exchanged_bytes())) > allowed
    }
}
