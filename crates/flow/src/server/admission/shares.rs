//! What one test needs of this host, and how much of the whole one client host may hold.
//!
//! A client host may take more of a resource only while what it holds stays below [`ALPHA`] times what is still free: the
//! dynamic threshold of shared-buffer switches (Choudhury and Hahne, IEEE/ACM Transactions on Networking 6(2), 1998,
//! <https://doi.org/10.1109/90.664262>). One client host alone gets at most 3/4 of the whole, the next one 3/4 of what
//! that leaves, without a number to configure; servers of one to three tests are not cut.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use landspeed_model::{Parameters, Protocol, SendMode};

use crate::end::MAX_SAMPLES;
use crate::layout::{self, Link};

/// Memory that the tests of a server may hold together, bytes.
pub const MEMORY_BYTES: u64 = 4 << 30;
/// Stream threads that may run together.
pub const THREADS: u64 = 4096;
/// How many times as much as is still free a client host may hold.
const ALPHA: u64 = 3;

/// A reading while it is kept, decoded, and written into the report.
const SAMPLE_BYTES: u64 = 3 * 1024;
/// A reading of the host: every core, and what else moved.
const HOST_SAMPLE_BYTES: u64 = 16 * 1024;
/// Least buffer of a stream: reading, bitmap, stack.
const STREAM_BYTES: u64 = 1 << 20;
/// Control connection, host snapshot, report parts.
const TEST_BYTES: u64 = 4 << 20;
/// Descriptors of a test: two of its control connection, the host's counters, a capture.
const TEST_DESCRIPTORS: u64 = 8;
/// Descriptors of a stream: its socket and a duplicate, two readers of its thread's scheduler statistics.
const STREAM_DESCRIPTORS: u64 = 4;
/// A sender that splices holds a pipe and a file more.
const SPLICE_DESCRIPTORS: u64 = 3;
/// Connections of a connect/request/response stream that may wait for their turn.
const CONNECT_DESCRIPTORS: u64 = 9;

/// What is shared out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Resource {
    /// Tests.
    Tests,
    /// Bytes of memory, estimated from above.
    Memory,
    /// Stream threads.
    Threads,
    /// Open files, estimated from above.
    Descriptors,
    /// Rate from clients to the server, bits/s.
    Upload,
    /// Rate from the server to clients, bits/s.
    Download,
}

impl Resource {
    const ALL: [Self; 6] =
        [Self::Tests, Self::Memory, Self::Threads, Self::Descriptors, Self::Upload, Self::Download];

    /// What is still tolerated above the threshold: places for tests are few and whole.
    fn unit(self) -> u64 {
        u64::from(self == Self::Tests)
    }
}

/// An amount of every resource.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Share([u64; Resource::ALL.len()]);

impl Share {
    /// Amounts given one by one; the rest is 0.
    pub fn new(amounts: &[(Resource, u64)]) -> Self {
        let mut share = Self::default();
        for &(resource, amount) in amounts {
            share.0[resource as usize] = amount;
        }
        share
    }

    /// The amount of one resource.
    pub fn of(&self, resource: Resource) -> u64 {
        self.0[resource as usize]
    }

    /// What a test with these (validated) parameters takes at its server for at most `longest_ns`, rates aside.
    pub fn of_test(parameters: &Parameters, longest_ns: u64) -> Self {
        let specs = layout::streams(parameters).unwrap_or_default();
        let threads = (specs.len() as u64).max(1);
        let length = layout::duration_ns(parameters).unwrap_or_else(|| longest_ns.min(layout::UNFORESEEN_NS));
        let bulk = matches!(parameters.protocol, Protocol::Tcp | Protocol::Udp);
        let samples = if bulk {
            (length / parameters.interval_ns.max(1) + 16).saturating_mul(threads).min(MAX_SAMPLES)
        } else {
            0
        };
        let host_samples = length / parameters.host_interval_ns.max(1) + 16;
        let buffer = match parameters.protocol {
            Protocol::Tcp => parameters.write_bytes.max(STREAM_BYTES),
            // Batches of datagrams, in both directions, and the bitmap.
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

/// A rate to reserve, for all streams of a test in one direction together, bits/s.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RateNeed {
    /// Whether clients send.
    pub upload: bool,
    /// Whether the server sends.
    pub download: bool,
    /// Less than this is of no use.
    pub least_bps: u64,
    /// More than this is not asked for.
    pub most_bps: u64,
}

/// Why a share is not to be had.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Full {
    /// The tests of all client hosts together leave too little of this.
    Everybody(Resource),
    /// This client host holds as much as one may, beside what is free.
    Host(Resource),
    /// No client host may hold this much, even if no other host tests.
    Never {
        /// Of what.
        resource: Resource,
        /// What the test takes.
        needed: u64,
        /// What one client host may hold.
        most: u64,
    },
}

/// The whole, and who holds what of it.
#[derive(Debug)]
pub struct Shares {
    whole: Share,
    /// Tests of one client host, where that is a number instead of the dynamic threshold.
    tests_per_host: Option<u64>,
    held: Mutex<Held>,
}

#[derive(Debug, Default)]
struct Held {
    all: Share,
    hosts: HashMap<IpAddr, Share>,
}

/// Whether a client host that holds `held` may take `more` while `free` is left.
fn is_fair(held: u64, more: u64, free: u64, unit: u64) -> bool {
    let stays_free = free - more.min(free);
    more <= free && held.saturating_add(more) <= ALPHA.saturating_mul(stays_free.saturating_add(unit))
}

/// The most that a client host that holds `held` may take while `free` is left.
fn most_fair(held: u64, free: u64) -> u64 {
    (u128::from(free) * u128::from(ALPHA)).saturating_sub(u128::from(held)).min(u128::from(u64::MAX)) as u64
        / (ALPHA + 1)
}

impl Shares {
    /// All of `whole` is free.
    pub fn new(whole: Share, tests_per_host: Option<u64>) -> Self {
        Self { whole, tests_per_host, held: Mutex::default() }
    }

    /// Takes a share for a client host until the result is dropped, and as much of the wanted rate as there is.
    pub fn take(self: &Arc<Self>, host: IpAddr, mut share: Share, rate: Option<RateNeed>) -> Result<Taken, Full> {
        let mut held = self.lock();
        let mine = held.hosts.get(&host).copied().unwrap_or_default();
        let free = self.whole.each(held.all, u64::saturating_sub);
        let directions = |need: RateNeed| {
            [(need.upload, Resource::Upload), (need.download, Resource::Download)]
                .into_iter()
                .filter_map(|(wanted, resource)| wanted.then_some(resource))
        };
        let mut rate_bps = None;
        if let Some(need) = rate {
            let mut granted = need.most_bps;
            for resource in directions(need) {
                let most = most_fair(mine.of(resource), free.of(resource));
                if most < need.least_bps {
                    return Err(self.why(resource, need.least_bps, &mine, &free));
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
        Ok(Taken { shares: Arc::clone(self), host, share, rate_bps })
    }

    /// Whether a client host has a test here.
    pub fn has_test(&self, host: IpAddr) -> bool {
        self.lock().hosts.contains_key(&host)
    }

    fn why(&self, resource: Resource, needed: u64, mine: &Share, free: &Share) -> Full {
        let whole = self.whole.of(resource);
        let most = if resource == Resource::Tests { whole } else { most_fair(0, whole) };
        if needed > most {
            Full::Never { resource, needed, most }
        } else if needed <= free.of(resource) && mine.of(resource) > 0 {
            Full::Host(resource)
        } else {
            Full::Everybody(resource)
        }
    }

    fn lock(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A share in use.
#[derive(Debug)]
pub struct Taken {
    shares: Arc<Shares>,
    host: IpAddr,
    share: Share,
    /// The rate that was reserved, all streams of a direction together, bits/s.
    pub rate_bps: Option<u64>,
}

impl Drop for Taken {
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

    fn whole() -> Share {
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

    fn fill(shares: &Arc<Shares>, host: IpAddr, share: Share) -> Vec<Taken> {
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
        let shares = Arc::new(Shares::new(whole(), None));
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
    fn small_servers_are_not_cut() {
        for places in 1..=3 {
            assert_eq!(fill(&tests(places), host(1), one_test()).len() as u64, places);
        }
    }

    #[test]
    fn a_number_of_tests_per_host_replaces_the_threshold() {
        for (number, places) in [(2, 2), (128, 128), (500, 128)] {
            let shares = Arc::new(Shares::new(whole(), Some(number)));
            assert_eq!(fill(&shares, host(1), one_test()).len(), places);
        }
    }

    #[test]
    fn greedy_tests_are_few_and_leave_room_for_others() {
        let shares = Arc::new(Shares::new(whole(), None));
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
        let whole = Share::new(&[(Resource::Tests, 64), (Resource::Upload, 1000), (Resource::Download, 1000)]);
        let shares = Arc::new(Shares::new(whole, None));
        let need = |upload, download, most_bps| RateNeed { upload, download, least_bps: 10, most_bps };
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
        /// Hosts that take and release in any order: none exceeds three quarters of the free part and its own, a host
        /// that holds nothing gets a place while one is free, and everything is given back.
        #[test]
        fn no_host_exceeds_its_share_and_everything_returns(
            places in 4u64..200,
            steps in prop::collection::vec((0u32..6, any::<bool>(), any::<prop::sample::Index>()), 1..400),
        ) {
            let shares = tests(places);
            let mut taken: Vec<(u32, Taken)> = Vec::new();
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

        /// One host fills what it can: a newcomer finds a place.
        #[test]
        fn a_new_client_finds_a_slot_beside_one_greedy_host(places in 4u64..5000) {
            let shares = tests(places);
            let greedy = fill(&shares, host(1), one_test());
            prop_assert!(greedy.len() as u64 <= places - places / 4);
            prop_assert!(shares.take(host(2), one_test(), None).is_ok());
        }

        /// Amounts: what is granted keeps to the threshold and to what is free.
        #[test]
        fn the_fair_amount_is_the_largest_fair_one(held in 0u64..1 << 40, free in 0u64..1 << 40) {
            let most = most_fair(held, free);
            prop_assert!(most == 0 || is_fair(held, most, free, 0));
            prop_assert!(!is_fair(held, most + 1, free, 0));
        }
    }
}
