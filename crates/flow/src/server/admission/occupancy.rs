//! Resources that a running test holds.

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use landspeed_model::{Direction, ErrorEntry, Parameters, Protocol};
use landspeed_sys::clock;
use landspeed_units::BitRate;

use super::Admission;
use super::limits::transactions_bps;
use super::shares::{Full, RateNeed, Reservation, Resource, Share};
use crate::address::client_host;
use crate::layout::duration_ns;

/// A test is refused if less than 1/100 of `--max-total-rate` is left for it, unless it needs even less.
const MIN_RATE_SHARE: u64 = 100;

/// Resources of a running test; released when dropped.
pub struct Occupancy {
    admission: Arc<Admission>,
    reservation: Reservation,
    /// Number in the list of expected ends.
    number: u64,
}

/// Error for a test without free resources.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ResourcesExhausted {
    full: Full,
    tests: usize,
}

impl Occupancy {
    /// Reserves resources for a test with these (validated) parameters. Lowers their rate to what
    /// `--max-total-rate` leaves, with a note.
    pub fn take(
        admission: &Arc<Admission>,
        peer: SocketAddr,
        parameters: &mut Parameters,
        notes: &mut Vec<String>,
    ) -> Result<Self, ResourcesExhausted> {
        let limits = &admission.limits;
        let share = Share::of_test(parameters, limits.max_duration_ns);
        let need = limits.max_total_rate_bps.map(|total| rate_need(parameters, total, limits.max_rate_bps));
        let reservation = admission
            .shares
            .take(client_host(peer), share, need)
            .map_err(|full| ResourcesExhausted { full, tests: limits.max_tests })?;
        if let (Some(need), Some(granted)) = (need, reservation.rate_bps)
            && granted < need.max_bps
        {
            let streams = u64::from(parameters.streams.max(1));
            if matches!(parameters.protocol, Protocol::Tcp | Protocol::Udp) {
                parameters.rate_bps = Some((granted / streams).max(1));
            }
            notes.push(format!(
                "the server limits this test to {} in each direction, its share of --max-total-rate",
                BitRate::from_bps(granted)
            ));
        }
        admission.counts.running.fetch_add(1, Ordering::Relaxed);
        let number = admission.ends.add(clock::monotonic_ns(), duration_ns(parameters));
        Ok(Self { admission: Arc::clone(admission), reservation, number })
    }

    /// Returns the rate limit of the test per direction over all streams, bits/s: the lower of `--max-rate` and the
    /// reserved part of `--max-total-rate`.
    pub fn rate_limit_bps(&self) -> Option<u64> {
        [self.admission.limits.max_rate_bps, self.reservation.rate_bps].into_iter().flatten().min()
    }
}

impl Drop for Occupancy {
    fn drop(&mut self) {
        self.admission.ends.remove(self.number);
        self.admission.counts.running.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Returns the rate that a test requests, over all its streams in one direction.
fn rate_need(parameters: &Parameters, total_bps: u64, max_rate_bps: Option<u64>) -> RateNeed {
    let streams = u64::from(parameters.streams.max(1));
    let asked = match parameters.protocol {
        Protocol::Tcp | Protocol::Udp => parameters.rate_bps.map(|each| each.saturating_mul(streams)),
        Protocol::TcpRr | Protocol::UdpRr => {
            Some(transactions_bps(parameters)).filter(|&bps| bps > 0.0).map(|b| b as u64)
        }
    };
    let max_bps = [asked, max_rate_bps].into_iter().flatten().min().unwrap_or(u64::MAX).max(streams);
    // Requests use one direction and responses the other.
    let both =
        parameters.direction == Direction::Both || matches!(parameters.protocol, Protocol::TcpRr | Protocol::UdpRr);
    RateNeed {
        upload: both || parameters.direction == Direction::Upload,
        download: both || parameters.direction == Direction::Download,
        min_bps: max_bps.min((total_bps / MIN_RATE_SHARE).max(streams)),
        max_bps,
    }
}

impl ResourcesExhausted {
    /// Whether a retry may succeed later.
    pub fn is_temporary(&self) -> bool {
        !matches!(self.full, Full::Never { .. })
    }

    /// Whether the tests of the client's own host leave it too little.
    pub fn is_of_own_host(&self) -> bool {
        matches!(self.full, Full::Host(_))
    }

    /// Returns the server's answer.
    pub fn entry(&self) -> ErrorEntry {
        let advice = match self.full {
            Full::AllHosts(Resource::Tests) => "try again in a moment, or raise --max-tests there",
            Full::Host(Resource::Tests) => "wait for one of them to end, or raise --max-tests-per-host there",
            Full::AllHosts(Resource::Upload | Resource::Download)
            | Full::Host(Resource::Upload | Resource::Download) => {
                "try again in a moment, or ask for less with --rate"
            }
            Full::AllHosts(_) | Full::Host(_) => {
                "try again in a moment, or ask for less: --parallel, --len, a longer --interval"
            }
            Full::Never { resource: Resource::Descriptors, .. } => {
                "ask for fewer streams (--parallel), or raise the server's limit of open files (ulimit -n, LimitNOFILE=)"
            }
            Full::Never { .. } => "ask for less: --parallel, --len, a longer --interval",
        };
        let code = if self.is_temporary() { "server-busy" } else { "not-permitted" };
        ErrorEntry { code: code.to_owned(), message: self.to_string(), advice: Some(advice.to_owned()) }
    }
}

impl fmt::Display for ResourcesExhausted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = |resource| match resource {
            Resource::Tests => "places for tests",
            Resource::Memory => "bytes of memory",
            Resource::Threads => "threads",
            Resource::Descriptors => "open files",
            Resource::Upload => "bit/s of upload",
            Resource::Download => "bit/s of download",
        };
        match self.full {
            Full::AllHosts(Resource::Tests) => {
                write!(f, "{} tests are running, which is all this server takes", self.tests)
            }
            Full::Host(Resource::Tests) => write!(f, "this client's address runs as many tests as one address may"),
            Full::AllHosts(resource) => {
                write!(f, "the tests that are running leave too few {} for this one", name(resource))
            }
            Full::Host(resource) => {
                write!(f, "the tests of this client's address leave it too few {} for another", name(resource))
            }
            Full::Never { resource, needed, most } => {
                let name = name(resource);
                write!(f, "this test needs {needed} {name}, and this server lets one address have {most}")
            }
        }
    }
}
