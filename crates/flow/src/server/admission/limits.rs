//! What a server lets a test have.

use landspeed_model::{Parameters, Protocol};
use landspeed_sys::thread;

use crate::dialect::Dialect;
use crate::end::keep_affordable;
use crate::layout::{UNFORESEEN_NS, duration_ns};
use crate::validate;

/// Finest interval at which a client may have the host's counters read, nanoseconds.
const HOST_INTERVAL_NS: u64 = 50_000_000;

/// Bounds of every test.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Tests at once.
    pub max_tests: usize,
    /// Tests at once of one client host (an IPv4 address, the /64 of an IPv6 address); a share of `max_tests` if `None`.
    pub max_tests_per_host: Option<usize>,
    /// Longest test, nanoseconds.
    pub max_duration_ns: u64,
    /// Highest rate of one test, all its streams in one direction together, bits/s.
    pub max_rate_bps: Option<u64>,
    /// Highest rate of all tests together in one direction, bits/s. Each reserves its part when it is accepted.
    pub max_total_rate_bps: Option<u64>,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            max_tests: 128,
            max_tests_per_host: None,
            max_duration_ns: 3600 * 1_000_000_000,
            max_rate_bps: None,
            max_total_rate_bps: None,
        }
    }
}

impl Limits {
    /// What a test will get, and where that differs from what it asked for.
    ///
    /// # Errors
    /// When it must be refused.
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
                // A TCP sender at the client is held back by the rate its application offers; both ends obey it.
                Protocol::Tcp | Protocol::Udp => cap(&mut granted.rate_bps),
                // Requests have no rate in bits that could be lowered: what is foreseen to be too much is refused,
                // what turns out to be is stopped.
                Protocol::TcpRr | Protocol::UdpRr => {
                    let foreseen = transactions_bps(asked);
                    if foreseen > most as f64 {
                        return Err(Exceeded::Requests { foreseen_bps: foreseen, most_bps: most });
                    }
                }
            }
            if granted.rate_bps != asked.rate_bps {
                notes.push(format!("the server limits each stream to {each} bit/s (its --max-rate)"));
            }
        }
        // How long a number of bytes takes is not known. Their samples are kept for a time that most tests end within, and
        // not for the longest that is allowed.
        let length = duration_ns(asked).unwrap_or_else(|| self.max_duration_ns.min(UNFORESEEN_NS));
        notes.extend(keep_affordable(&mut granted, length));
        granted.host_interval_ns = granted.host_interval_ns.max(HOST_INTERVAL_NS);
        Ok((granted, notes))
    }
}

/// What of a test is more than this server grants.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum Exceeded {
    /// Its parameters make no test.
    #[error("{0}")]
    Parameters(validate::Invalid),
    /// It is too long.
    #[error("tests here last at most {most_s} s")]
    Duration {
        /// Longest test, seconds.
        most_s: u64,
    },
    /// A core of the server's that it cannot run on.
    #[error("the server cannot run on its core {0}")]
    Core(u32),
    /// Its requests come to too high a rate.
    #[error(
        "these requests come to {:.1} Mbit/s, and tests here are limited to {:.1} Mbit/s",
        foreseen_bps / 1e6,
        *most_bps as f64 / 1e6
    )]
    Requests {
        /// What they come to, bits/s.
        foreseen_bps: f64,
        /// The limit, bits/s.
        most_bps: u64,
    },
}

/// What an open loop is going to move, in the direction that moves more, bits/s.
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
