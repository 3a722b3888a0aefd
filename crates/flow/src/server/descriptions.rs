//! Rate limit of host descriptions: reading all settings costs the server more than the request costs a client.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};

use landspeed_model::Facts;
use landspeed_sys::clock;

/// Maximum age of the facts, nanoseconds.
const MAX_AGE_NS: u64 = 1_000_000_000;

/// Rate limit per client host: burst, and time per request, nanoseconds.
const HOST_LIMIT: RateLimit = RateLimit { burst: 10, interval_ns: 2_000_000_000 };
/// Rate limit of all client hosts together.
const TOTAL_LIMIT: RateLimit = RateLimit { burst: 40, interval_ns: 100_000_000 };

/// Rate limit with a burst, as a virtual scheduling queue (ITU-T I.371, GCRA).
#[derive(Debug, Clone, Copy)]
struct RateLimit {
    burst: u64,
    interval_ns: u64,
}

impl RateLimit {
    /// Returns the new end of the queue if a request is admitted at `now_ns`; otherwise the time until one is,
    /// nanoseconds.
    fn next(self, end_ns: u64, now_ns: u64) -> Result<u64, u64> {
        let end_ns = end_ns.max(now_ns) + self.interval_ns;
        let latest_ns = now_ns + self.burst * self.interval_ns;
        if end_ns <= latest_ns { Ok(end_ns) } else { Err(end_ns - latest_ns) }
    }
}

/// Cached facts of this host, and the rate limits for sending them.
#[derive(Debug, Default)]
pub struct Descriptions {
    queues: Mutex<LimiterState>,
    facts: Mutex<Option<(u64, Arc<Facts>)>>,
}

#[derive(Debug, Default)]
struct LimiterState {
    all_ns: u64,
    hosts: HashMap<IpAddr, u64>,
}

impl Descriptions {
    /// Whether a client host may have a description now.
    ///
    /// # Errors
    /// The time until it may, nanoseconds.
    pub fn admit(&self, host: IpAddr, now_ns: u64) -> Result<(), u64> {
        let mut queues = self.queues.lock().unwrap_or_else(PoisonError::into_inner);
        let mine_ns = HOST_LIMIT.next(queues.hosts.get(&host).copied().unwrap_or(0), now_ns)?;
        queues.all_ns = TOTAL_LIMIT.next(queues.all_ns, now_ns)?;
        // Bounded: the total limit admits few hosts in the time that one host's queue takes to drain.
        queues.hosts.retain(|_, end_ns| *end_ns > now_ns);
        queues.hosts.insert(host, mine_ns);
        Ok(())
    }

    /// Returns the facts, at most a second old.
    pub fn facts(&self) -> Arc<Facts> {
        let mut kept = self.facts.lock().unwrap_or_else(PoisonError::into_inner);
        match &*kept {
            Some((read_ns, facts)) if clock::monotonic_ns() < read_ns + MAX_AGE_NS => Arc::clone(facts),
            _ => {
                let facts = Arc::new(landspeed_host::collect(&landspeed_host::LiveHost::new()));
                *kept = Some((clock::monotonic_ns(), Arc::clone(&facts)));
                facts
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    const SECOND_NS: u64 = 1_000_000_000;

    fn host(n: u32) -> IpAddr {
        Ipv4Addr::from_bits(n).into()
    }

    #[test]
    fn one_host_is_limited_and_others_are_not() {
        let descriptions = Descriptions::default();
        let now_ns = 5 * SECOND_NS;
        for _ in 0..HOST_LIMIT.burst {
            assert_eq!(descriptions.admit(host(1), now_ns), Ok(()));
        }
        assert_eq!(descriptions.admit(host(1), now_ns), Err(HOST_LIMIT.interval_ns));
        assert_eq!(descriptions.admit(host(2), now_ns), Ok(()));
        assert_eq!(descriptions.admit(host(1), now_ns + HOST_LIMIT.interval_ns), Ok(()));
    }

    #[test]
    fn many_hosts_are_limited_in_total_and_soon_removed() {
        let descriptions = Descriptions::default();
        let mut admitted = 0;
        for n in 0..10_000 {
            admitted += u64::from(descriptions.admit(host(n), u64::from(n) * SECOND_NS / 1000).is_ok());
        }
        assert!((100..=TOTAL_LIMIT.burst + 100).contains(&admitted), "{admitted} in ten seconds");
        assert!(descriptions.queues.lock().unwrap().hosts.len() <= 40);
    }
}
