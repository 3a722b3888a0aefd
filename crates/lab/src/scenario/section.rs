//! Flows that test a section of a long path: the target, and the work that the tests are.

use landspeed_qualify::{Suite, SuiteOptions, Target};

use super::Flow;
use super::paths::Route;

/// Default of `time`: maximum duration of a test, nanoseconds.
pub const QUALIFY_TIME_NS: u64 = 60_000_000_000;
/// Virtual time between two streams of a section's tests: connecting and agreeing on a start, seconds.
const BETWEEN_STREAMS_S: f64 = 1.0;
/// Streams of a test at most, if nothing disturbs it.
const STREAMS_PER_TEST: f64 = 8.0;

/// Number of packets and virtual time of a section's tests.
pub(super) struct SectionWork {
    pub packets: f64,
    pub time_s: f64,
}

impl Flow {
    /// Returns the target of a flow with `protocol = "qualify"`.
    pub(crate) fn section_target(&self) -> Result<Target, String> {
        let (Some(rate), Some(rtt)) = (self.target, self.target_rtt) else {
            return Err("a qualify flow needs `target` and `target-rtt`".to_owned());
        };
        let target = Target::new(rate.0, rtt.0);
        let target = Target {
            mtu_bytes: self.target_mtu.unwrap_or(target.mtu_bytes),
            congestion: self.target_congestion.unwrap_or(target.congestion),
            ip_version: if self.ipv6 { landspeed_qualify::IpVersion::V6 } else { target.ip_version },
            ..target
        };
        target.derive().map(|_| target).map_err(|error| error.to_string())
    }
}

/// Rate of the sender's interface, bits/s.
pub(super) fn sender_rate_bps(flow: &Flow, route: &Route<'_>) -> Option<u64> {
    let hop = if flow.reverse { route.hops.last() } else { route.hops.first() };
    hop.map(|hop| hop.rate_bps)
}

/// Returns the work of a section's tests if no packet is lost.
pub(super) fn work(flow: &Flow, route: &Route<'_>) -> SectionWork {
    let Ok(target) = flow.section_target() else { return SectionWork { packets: 0.0, time_s: 0.0 } };
    let Ok(derived) = target.derive() else { return SectionWork { packets: 0.0, time_s: 0.0 } };
    let options = SuiteOptions {
        line_rate_bps: sender_rate_bps(flow, route),
        max_test_ns: flow.time.map_or(QUALIFY_TIME_NS, |time| time.0.get()),
        gentle: false,
    };
    let suite = Suite::new(target, &derived, options);
    let between_s = BETWEEN_STREAMS_S * STREAMS_PER_TEST * suite.plans().count() as f64;
    let (packets, time_s) = suite.expected();
    SectionWork { packets: packets as f64, time_s: time_s + between_s }
}
