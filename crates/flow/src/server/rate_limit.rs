//! Rate limits for one client host and for all together.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Mutex, PoisonError};

/// Rate limit with a burst, as a virtual scheduling queue (ITU-T I.371, GCRA).
#[derive(Debug, Clone, Copy)]
pub(super) struct RateLimit {
    /// Number of events at once.
    pub burst: u64,
    /// Time per event after the burst, nanoseconds.
    pub interval_ns: u64,
}

impl RateLimit {
    /// Returns the new end of the queue if an event is admitted at `now_ns`; otherwise the time until one is,
    /// nanoseconds.
    fn next(self, end_ns: u64, now_ns: u64) -> Result<u64, u64> {
        let end_ns = end_ns.max(now_ns) + self.interval_ns;
        let latest_ns = now_ns + self.burst * self.interval_ns;
        if end_ns <= latest_ns { Ok(end_ns) } else { Err(end_ns - latest_ns) }
    }
}

/// Limits events of each client host and of all client hosts together.
#[derive(Debug)]
pub(super) struct RateLimiter {
    host: RateLimit,
    total: RateLimit,
    queues: Mutex<Queues>,
}

/// Ends of the virtual queues, nanoseconds.
#[derive(Debug, Default)]
struct Queues {
    total_ns: u64,
    hosts: HashMap<IpAddr, u64>,
}

impl RateLimiter {
    /// Creates a limiter without events.
    pub fn new(host: RateLimit, total: RateLimit) -> Self {
        Self { host, total, queues: Mutex::default() }
    }

    /// Admits an event of a client host.
    ///
    /// # Errors
    /// The time until an event is admitted, nanoseconds.
    pub fn admit(&self, host: IpAddr, now_ns: u64) -> Result<(), u64> {
        let mut queues = self.queues.lock().unwrap_or_else(PoisonError::into_inner);
        let host_ns = self.host.next(queues.hosts.get(&host).copied().unwrap_or(0), now_ns)?;
        queues.total_ns = self.total.next(queues.total_ns, now_ns)?;
        // Bounded: the total limit admits few hosts in the time that one host's queue takes to drain.
        queues.hosts.retain(|_, end_ns| *end_ns > now_ns);
        queues.hosts.insert(host, host_ns);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    const SECOND_NS: u64 = 1_000_000_000;
    const HOST: RateLimit = RateLimit { burst: 10, interval_ns: 2 * SECOND_NS };
    const TOTAL: RateLimit = RateLimit { burst: 40, interval_ns: SECOND_NS / 10 };

    fn host(n: u32) -> IpAddr {
        Ipv4Addr::from_bits(n).into()
    }

    #[test]
    fn one_host_is_limited_and_others_are_not() {
        let limiter = RateLimiter::new(HOST, TOTAL);
        let now_ns = 5 * SECOND_NS;
        for _ in 0..HOST.burst {
            assert_eq!(limiter.admit(host(1), now_ns), Ok(()));
        }
        assert_eq!(limiter.admit(host(1), now_ns), Err(HOST.interval_ns));
        assert_eq!(limiter.admit(host(2), now_ns), Ok(()));
        assert_eq!(limiter.admit(host(1), now_ns + HOST.interval_ns), Ok(()));
    }

    #[test]
    fn many_hosts_are_limited_in_total_and_soon_removed() {
        let limiter = RateLimiter::new(HOST, TOTAL);
        let mut admitted = 0;
        for n in 0..10_000 {
            admitted += u64::from(limiter.admit(host(n), u64::from(n) * SECOND_NS / 1000).is_ok());
        }
        assert!((100..=TOTAL.burst + 100).contains(&admitted), "{admitted} in ten seconds");
        assert!(limiter.queues.lock().unwrap().hosts.len() <= 40);
    }
}
