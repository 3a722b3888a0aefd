//! Descriptions of this host for clients, and their rate limit: reading all settings costs the server more than
//! the request costs a client.

use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};

use landspeed_model::Facts;
use landspeed_sys::clock;

use super::rate_limit::{RateLimit, RateLimiter};

/// Maximum age of the facts, nanoseconds.
const MAX_AGE_NS: u64 = 1_000_000_000;

const HOST_LIMIT: RateLimit = RateLimit { burst: 10, interval_ns: 2_000_000_000 };
const TOTAL_LIMIT: RateLimit = RateLimit { burst: 40, interval_ns: 100_000_000 };

/// Cached facts of this host, and the rate limits for sending them.
#[derive(Debug)]
pub struct Descriptions {
    limiter: RateLimiter,
    facts: Mutex<Option<(u64, Arc<Facts>)>>,
}

impl Default for Descriptions {
    fn default() -> Self {
        Self { limiter: RateLimiter::new(HOST_LIMIT, TOTAL_LIMIT), facts: Mutex::default() }
    }
}

impl Descriptions {
    /// Whether a client host may have a description now.
    ///
    /// # Errors
    /// The time until it may, nanoseconds.
    pub fn admit(&self, host: IpAddr, now_ns: u64) -> Result<(), u64> {
        self.limiter.admit(host, now_ns)
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
