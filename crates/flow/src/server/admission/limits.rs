//! Limits of a server's tests.

use landspeed_model::{Parameters, Protocol};
use landspeed_sys::thread;

use crate::dialect::Dialect;
use crate::end::limit_sampling;
use crate::layout::{ASSUMED_DURATION_NS, duration_ns};
use crate::validate;

/// Minimum interval of host counter samples that a client may request, nanoseconds.
const HOST_INTERVAL_NS: u64 = 50_000_000;

/// Limits of every test.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Maximum number of concurrent tests.
    pub max_tests: usize,
    /// Maximum number of concurrent tests of one client host (an IPv4 address, or the /64 of an IPv6 address); a
    /// share of `max_tests` if `None`.
    pub max_tests_per_host: Option<usize>,
    /// Maximum duration of a test, nanoseconds.
    pub max_duration_ns: u64,
    /// Maximum rate of one test, over all its streams in one direction, bits/s.
    pub max_rate_bps: Option<u64>,
    /// Maximum rate of all tests together in one direction, bits/s. Each test reserves its part when it is
    /// accepted.
    pub max_total_rate_bps: Option<u64>,
    /// Maximum number of clients that wait for a test while the server is busy; 0 refuses them at once.
    pub max_waiting: usize,
    /// Longest wait of a client, nanoseconds.
    pub max_wait_ns: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            max_tests: 128,
            max_tests_per_host: None,
            max_duration_ns: 3600 * 1_000_000_000,
            max_rate_bps: None,
            max_total_rate_bps: None,
            max_waiting: 0,
            max_wait_ns: 600 * 1_000_000_000,
        }
    }
}

impl Limits {
    /// Returns the effective parameters of a test, and notes on differences from the requested ones.
    ///
    /// # Errors
    /// When the test must be refused.
    pub fn apply(&self, asked: &Parameters, dialect: Dialect) -> Result<(Parameters, Vec<String>), Exceeded> {
        validate::check_in(asked, dialect).map_err(Exceeded::Parameters)?;
        let mut granted = asked.clone();
        let mut notes = Vec::new();
        if duration_ns(asked).is_some_and(|d| d > self.max_duration_ns) {
            return Err(Exceeded::Duration { most_s: self.max_duration_ns / 1_000_000_000 });
        }
        let allowed = thread::allowed_cores();
        if let Some(core) = asked.server_cpus.iter().find(|core| !allowed.contains(core)) {
            return Err(Exceeded::Core(*core));
        }
        if let Some(most) = self.max_rate_bps {
            let each = (most / u64::from(asked.streams.max(1))).max(8);
            let cap = |rate: &mut Option<u64>| *rate = Some(rate.map_or(each, |r| r.min(each)));
            match asked.protocol {
                // A TCP sender on the client is limited by the rate of its application; both sides obey it.
                Protocol::Tcp | Protocol::Udp => cap(&mut granted.rate_bps),
                // Request/response tests have no bit rate that could be lowered: an excessive expected rate is
                // refused, an excessive actual rate is stopped.
                Protocol::TcpRr | Protocol::UdpRr => {
                    let foreseen = transactions_bps(asked);
                    if foreseen > most as f64 {
                        return Err(Exceeded::Requests { foreseen_bps: foreseen, max_bps: most });
                    }
                }
            }
            if granted.rate_bps != asked.rate_bps {
                notes.push(format!("the server limits each stream to {each} bit/s (its --max-rate)"));
            }
        }
        // The duration of a test of N bytes is unknown. Sample it for a duration that most tests stay within, instead
        // of the maximum permitted.
        let length = duration_ns(asked).unwrap_or_else(|| self.max_duration_ns.min(ASSUMED_DURATION_NS));
        notes.extend(limit_sampling(&mut granted, length));
        granted.host_interval_ns = granted.host_interval_ns.max(HOST_INTERVAL_NS);
        Ok((granted, notes))
    }
}

/// Parameters of a test that exceed the server's limits.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum Exceeded {
    /// The parameters are invalid.
    #[error("{0}")]
    Parameters(validate::Invalid),
    /// The test is too long.
    #[error("tests here last at most {most_s} s")]
    Duration {
        /// Maximum duration, seconds.
        most_s: u64,
    },
    /// The server may not run on this core.
    #[error("the server cannot run on its core {0}")]
    Core(u32),
    /// The expected rate of its requests is too high.
    #[error(
        "these requests come to {:.1} Mbit/s, and tests here are limited to {:.1} Mbit/s",
        foreseen_bps / 1e6,
        *max_bps as f64 / 1e6
    )]
    Requests {
        /// Expected rate, bits/s.
        foreseen_bps: f64,
        /// Rate limit, bits/s.
        max_bps: u64,
    },
}

/// Returns the expected rate of an open loop in the direction with the larger messages, bits/s.
pub fn transactions_bps(asked: &Parameters) -> f64 {
    let Some(rr) = &asked.rr else { return 0.0 };
    let largest = rr.sizes.iter().map(|s| s.request_bytes.max(s.response_bytes)).max().unwrap_or(0);
    rr.rate_per_s.unwrap_or(0.0) * f64::from(largest) * 8.0 * f64::from(asked.streams)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_test_of_unknown_length_is_sampled_finely() {
        let month_ns = 30 * 24 * 3600 * 1_000_000_000;
        let limits = Limits { max_duration_ns: month_ns, ..Limits::default() };
        let asked = Parameters { time_ns: None, bytes: Some(1 << 30), ..Parameters::default() };
        let (granted, _) = limits.apply(&asked, Dialect::LANDSPEED).expect("nothing is wrong with it");
        assert!(granted.interval_ns <= 100_000_000.max(asked.interval_ns), "{} ns", granted.interval_ns);
        assert_eq!(validate::check(&granted), Ok(()));
    }
}
