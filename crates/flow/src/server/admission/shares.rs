//! Resources that a test needs, and the share of them that one client host may hold.
//!
//! A client host may take more of a resource only while its share stays below [`ALPHA`] times the free amount:
//! the dynamic threshold of shared-buffer switches (Choudhury and Hahne, IEEE/ACM Transactions on Networking
//! 6(2), 1998, <https://doi.org/10.1109/90.664262>). A single client host gets at most 3/4 of the total, the
//! next one 3/4 of the remainder, without a setting to configure; servers of one to three tests are not
//! restricted.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use landspeed_model::{Parameters, Protocol, SendMode};

use crate::end::MAX_SAMPLES;
use crate::layout::{self, Link};

/// Memory for all tests of a server, bytes.
pub const MEMORY_BYTES: u64 = 4 << 30;
/// Maximum number of stream threads.
pub const THREADS: u64 = 4096;
/// Maximum ratio of a client host's share to the free amount.
const ALPHA: u64 = 3;

/// Memory of a sample: stored, decoded, and in the report.
const SAMPLE_BYTES: u64 = 3 * 1024;
/// Memory of a host sample: all cores, and changed counters.
const HOST_SAMPLE_BYTES: u64 = 16 * 1024;
/// Minimum memory of a stream: read buffer, bitmap, stack.
const STREAM_BYTES: u64 = 1 << 20;
/// Memory of a test: control connection, host snapshot, report parts.
const TEST_BYTES: u64 = 4 << 20;
/// Descriptors of a test: two of its control connection, the host's counters, a capture.
const TEST_DESCRIPTORS: u64 = 8;
/// Descriptors of a stream: its socket and a duplicate, two readers of its thread's scheduler statistics.
const STREAM_DESCRIPTORS: u64 = 4;
/// Additional descriptors of a sender that uses splice: a pipe and a file.
const SPLICE_DESCRIPTORS: u64 = 3;
/// Connections of a connect/request/response stream that may be queued.
const CONNECT_DESCRIPTORS: u64 = 9;

/// Resources of which each client host may use a share.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Resource {
    /// Number of tests.
    Tests,
    /// Bytes of memory, upper estimate.
    Memory,
    /// Number of stream threads.
    Threads,
    /// Number of file descriptors, upper estimate.
    Descriptors,
    /// Rate from clients to the server, bits/s.
    Upload,
    /// Rate from the server to clients, bits/s.
    Download,
}

impl Resource {
    const ALL: [Self; 6] =
        [Self::Tests, Self::Memory, Self::Threads, Self::Descriptors, Self::Upload, Self::Download];

    /// Tolerance above the threshold: one for tests, since they are few and indivisible.
    fn unit(self) -> u64 {
        u64::from(self == Self::Tests)
    }
}

/// Amount of every resource.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Share([u64; Resource::ALL.len()]);

impl Share {
    /// Creates a share from single amounts; all others are 0.
    pub fn new(amounts: &[(Resource, u64)]) -> Self {
        let mut share = Self::default();
        for &(resource, amount) in amounts {
            share.0[resource as usize] = amount;
        }
        share
    }

    /// Returns the amount of one resource.
    pub fn of(&self, resource: Resource) -> u64 {
        self.0[resource as usize]
    }

    /// Estimates the server's resources for a test with these (validated) parameters that lasts at most
    /// `longest_ns`, without rates.
    pub fn of_test(parameters: &Parameters, longest_ns: u64) -> Self {
        let specs = layout::streams(parameters).unwrap_or_default();
        let threads = (specs.len() as u64).max(1);
        let length = layout::duration_ns(parameters).unwrap_or_else(|| longest_ns.min(layout::ASSUMED_DURATION_NS));
        let bulk = matches!(parameters.protocol, Protocol::Tcp | Protocol::Udp);
        let samples = if bulk {
            (length / parameters.interval_ns.max(1) + 16).saturating_mul(threads).min(MAX_SAMPLES)
        } else {
            0
        };
        let host_samples = length / parameters.host_interval_ns.max(1) + 16;
        let buffer = match parameters.protocol {
            Protocol::Tcp => parameters.write_bytes.max(STREAM_BYTES),
            // Batches of datagrams in both directions, and the bitmap.
            Protocol::Udp => 8 * STREAM_BYTES,
            Protocol::TcpRr | Protocol::UdpRr => STREAM_BYTES,
        };
        let memory = TEST_BYTES
            .saturating_add(threads.saturating_mul(buffer))
            .saturating_add(samples.saturating_mul(SAMPLE_BYTES))
            .saturating_add(host_samples.saturating_mul(HOST_SAMPLE_BYTES));
        let splices = !matches!(parameters.send, SendMode::Copy | SendMode::Zerocopy);
        let descriptors = specs.iter().fold(TEST_DESCRIPTORS, |sum, spec| {
            let connects = if spec.link == Link::Connect { CONNECT_DESCRIPTORS } else { 0 };
            let splice = if splices && spec.server_job.sends() { SPLICE_DESCRIPTORS } else { 0 };
            sum + STREAM_DESCRIPTORS + connects + splice
        });
        Self::new(&[
            (Resource::Tests, 1),
            (Resource::Memory, memory),
            (Resource::Threads, threads),
            (Resource::Descriptors, descriptors),
        ])
    }

    fn each(self, other: Self, combine: impl Fn(u64, u64) -> u64) -> Self {
        Self(std::array::from_fn(|at| combine(self.0[at], other.0[at])))
    }
}

/// Rate to reserve, over all streams of a test in one direction, bits/s.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RateNeed {
    /// Whether clients send.
    pub upload: bool,
    /// Whether the server sends.
    pub download: bool,
    /// Minimum rate that is useful.
    pub min_bps: u64,
    /// Requested rate.
    pub max_bps: u64,
}

/// Reasons why a share is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Full {
    /// All client hosts together use too much of this resource.
    AllHosts(Resource),
    /// This client host already uses its share of this resource.
    Host(Resource),
    /// The test needs more than one client host may ever use.
    Never {
        /// The one that does not suffice.
        resource: Resource,
        /// Amount that the test needs.
        needed: u64,
        /// Maximum amount for one client host.
        most: u64,
    },
}

/// Total resources, and the amounts in use per client host.
#[derive(Debug)]
pub struct Shares {
    total: Share,
    /// Maximum number of tests per client host, instead of the dynamic threshold.
    tests_per_host: Option<u64>,
    held: Mutex<Usage>,
}

#[derive(Debug, Default)]
struct Usage {
    all: Share,
    hosts: HashMap<IpAddr, Share>,
}

/// Whether a client host that holds `held` may take `more` while `free` is available.
fn is_fair(held: u64, more: u64, free: u64, unit: u64) -> bool {
    let stays_free = free - more.min(free);
    more <= free && held.saturating_add(more) <= ALPHA.saturating_mul(stays_free.saturating_add(unit))
}

/// Returns the largest amount that a client host that holds `held` may take while `free` is available.
fn max_fair(held: u64, free: u64) -> u64 {
    (u128::from(free) * u128::from(ALPHA)).saturating_sub(u128::from(held)).min(u128::from(u64::MAX)) as u64
        / (ALPHA + 1)
}

impl Shares {
    /// Creates the state with all of `total` free.
    pub fn new(total: Share, tests_per_host: Option<u64>) -> Self {
        Self { total, tests_per_host, held: Mutex::default() }
    }

    /// Reserves a share for a client host until the result is dropped, and as much of the requested rate as is
    /// available.
    pub fn take(
        self: &Arc<Self>,
        host: IpAddr,
        mut share: Share,
        rate: Option<RateNeed>,
    ) -> Result<Reservation, Full> {
        let mut held = self.lock();
        let mine = held.hosts.get(&host).copied().unwrap_or_default();
        let free = self.total.each(held.all, u64::saturating_sub);
        let directions = |need: RateNeed| {
            [(need.upload, Resource::Upload), (need.download, Resource::Download)]
                .into_iter()
                .filter_map(|(wanted, resource)| wanted.then_some(resource))
        };
        let mut rate_bps = None;
        if let Some(need) = rate {
            let mut granted = need.max_bps;
            for resource in directions(need) {
                let most = max_fair(mine.of(resource), free.of(resource));
                if most < need.min_bps {
                    return Err(self.why(resource, need.min_bps, &mine, &free));
                }
                granted = granted.min(most);
            }
            for resource in directions(need) {
                share.0[resource as usize] = granted;
            }
            rate_bps = Some(granted);
        }
        for resource in Resource::ALL {
            let (more, mine_now) = (share.of(resource), mine.of(resource));
            let fair = match (resource, self.tests_per_host) {
                (_, _) if more == 0 => true,
                (Resource::Tests, Some(most)) => more <= free.of(resource) && mine_now + more <= most,
                _ => is_fair(mine_now, more, free.of(resource), resource.unit()),
            };
            if !fair {
                return Err(self.why(resource, more, &mine, &free));
            }
        }
        held.all = held.all.each(share, u64::saturating_add);
        held.hosts.insert(host, mine.each(share, u64::saturating_add));
        Ok(Reservation { shares: Arc::clone(self), host, share, rate_bps })
    }

    /// Whether a test of the client host is running.
    pub fn has_test(&self, host: IpAddr) -> bool {
        self.lock().hosts.contains_key(&host)
    }

    fn why(&self, resource: Resource, needed: u64, mine: &Share, free: &Share) -> Full {
        let total = self.total.of(resource);
        let most = if resource == Resource::Tests { total } else { max_fair(0, total) };
        if needed > most {
            Full::Never { resource, needed, most }
        } else if needed <= free.of(resource) && mine.of(resource) > 0 {
            Full::Host(resource)
        } else {
            Full::AllHosts(resource)
        }
    }

    fn lock(&self) -> MutexGuard<'_, Usage> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Reserved share; released when dropped.
#[derive(Debug)]
pub struct Reservation {
    shares: Arc<Shares>,
    host: IpAddr,
    share: Share,
    /// Reserved rate, over all streams of a direction, bits/s.
    pub rate_bps: Option<u64>,
}

impl Drop for Reservation {
    fn drop(&mut self) {
        let mut held = self.shares.lock();
        held.all = held.all.each(self.share, u64::saturating_sub);
        if let Some(mine) = held.hosts.get_mut(&self.host) {
            *mine = mine.each(self.share, u64::saturating_sub);
            if *mine == Share::default() {
                held.hosts.remove(&self.host);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use proptest::prelude::*;

    use super::*;

    const HOUR_NS: u64 = 3_600_000_000_000;

    fn total() -> Share {
        Share::new(&[
            (Resource::Tests, 128),
            (Resource::Memory, MEMORY_BYTES),
            (Resource::Threads, THREADS),
            (Resource::Descriptors, 1 << 19),
        ])
    }

    fn host(n: u32) -> IpAddr {
        Ipv4Addr::from_bits(n).into()
    }

    fn fill(shares: &Arc<Shares>, host: IpAddr, share: Share) -> Vec<Reservation> {
        std::iter::from_fn(|| shares.take(host, share, None).ok()).collect()
    }

    fn tests(places: u64) -> Arc<Shares> {
        Arc::new(Shares::new(Share::new(&[(Resource::Tests, places)]), None))
    }

    fn one_test() -> Share {
        Share::new(&[(Resource::Tests, 1)])
    }

    #[test]
    fn one_host_gets_three_quarters_of_ordinary_tests() {
        let shares = Arc::new(Shares::new(total(), None));
        let share = Share::of_test(&Parameters::default(), HOUR_NS);
        let taken = fill(&shares, host(1), share);
        assert_eq!(taken.len(), 96);
        assert_eq!(shares.take(host(1), share, None).unwrap_err(), Full::Host(Resource::Tests));
        assert_eq!(fill(&shares, host(2), share).len(), 24);
        drop(taken);
        assert_eq!(shares.lock().all, Share::default());
        assert!(!shares.has_test(host(1)));
    }

    #[test]
    fn small_servers_are_not_restricted() {
        for places in 1..=3 {
            assert_eq!(fill(&tests(places), host(1), one_test()).len() as u64, places);
        }
    }

    #[test]
    fn a_number_of_tests_per_host_replaces_the_threshold() {
        for (number, places) in [(2, 2), (128, 128), (500, 128)] {
            let shares = Arc::new(Shares::new(total(), Some(number)));
            assert_eq!(fill(&shares, host(1), one_test()).len(), places);
        }
    }

    #[test]
    fn large_tests_leave_resources_for_other_hosts() {
        let shares = Arc::new(Shares::new(total(), None));
        let greedy = Parameters { streams: 128, write_bytes: 8 << 20, ..Parameters::default() };
        let share = Share::of_test(&greedy, HOUR_NS);
        let _taken = fill(&shares, host(1), share);
        assert_eq!(shares.take(host(1), share, None).unwrap_err(), Full::Host(Resource::Memory));
        let ordinary = Share::of_test(&Parameters::default(), HOUR_NS);
        assert!(shares.take(host(2), ordinary, None).is_ok());
        assert!(shares.take(host(1), ordinary, None).is_ok());
    }

    #[test]
    fn a_test_that_never_fits_is_refused() {
        let shares = Arc::new(Shares::new(Share::new(&[(Resource::Tests, 9), (Resource::Descriptors, 100)]), None));
        let need = |n| Share::new(&[(Resource::Tests, 1), (Resource::Descriptors, n)]);
        let never = Full::Never { resource: Resource::Descriptors, needed: 76, most: 75 };
        assert_eq!(shares.take(host(1), need(76), None).unwrap_err(), never);
        assert!(shares.take(host(1), need(75), None).is_ok());
    }

    #[test]
    fn a_rate_is_reserved_up_to_the_fair_share() {
        let total = Share::new(&[(Resource::Tests, 64), (Resource::Upload, 1000), (Resource::Download, 1000)]);
        let shares = Arc::new(Shares::new(total, None));
        let need = |upload, download, max_bps| RateNeed { upload, download, min_bps: 10, max_bps };
        let take = |n, need| shares.take(host(n), one_test(), Some(need));
        let modest = take(1, need(true, false, 100)).expect("free");
        assert_eq!(modest.rate_bps, Some(100));
        let greedy = take(2, need(true, true, u64::MAX)).expect("free");
        assert_eq!(greedy.rate_bps, Some(675), "3/4 of 900");
        assert_eq!(take(2, need(true, false, u64::MAX)).unwrap_err(), Full::Host(Resource::Upload));
        assert_eq!(take(3, need(false, true, u64::MAX)).expect("free").rate_bps, Some(243));
        drop((modest, greedy));
        assert_eq!(shares.lock().all, Share::default());
    }

    proptest! {
        /// With hosts that take and release in any order, no host exceeds its threshold, a host without a test gets one
        /// while any is free, and everything is released in the end.
        #[test]
        fn no_host_exceeds_its_share_and_all_resources_are_released(
            places in 4u64..200,
            steps in prop::collection::vec((0u32..6, any::<bool>(), any::<prop::sample::Index>()), 1..400),
        ) {
            let shares = tests(places);
            let mut taken: Vec<(u32, Reservation)> = Vec::new();
            for (n, takes, at) in steps {
                if !takes && !taken.is_empty() {
                    drop(taken.swap_remove(at.index(taken.len())));
                    continue;
                }
                let mine = taken.iter().filter(|(owner, _)| *owner == n).count() as u64;
                let free = places - taken.len() as u64;
                match shares.take(host(n), one_test(), None) {
                    Ok(place) => {
                        prop_assert!(mine < ALPHA * free);
                        taken.push((n, place));
                    }
                    Err(_) => prop_assert!(mine > 0 || free == 0),
                }
                let most = places - places / 4;
                prop_assert!(mine < most + 1, "{} of {}", mine, places);
            }
            drop(taken);
            prop_assert_eq!(shares.lock().all, Share::default());
            prop_assert!(shares.lock().hosts.is_empty());
        }

        /// After one host has taken all it can, a new host still gets a test.
        #[test]
        fn a_new_host_gets_a_slot_despite_a_greedy_one(places in 4u64..5000) {
            let shares = tests(places);
            let greedy = fill(&shares, host(1), one_test());
            prop_assert!(greedy.len() as u64 <= places - places / 4);
            prop_assert!(shares.take(host(2), one_test(), None).is_ok());
        }

        /// The amount granted is within the threshold and the free amount, and one more is not.
        #[test]
        fn most_fair_is_the_largest_fair_amount(held in 0u64..1 << 40, free in 0u64..1 << 40) {
            let most = max_fair(held, free);
            prop_assert!(most == 0 || is_fair(held, most, free, 0));
            prop_assert!(!is_fair(held, most + 1, free, 0));
        }
    }
}
