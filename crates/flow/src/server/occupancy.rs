//! A place among the running tests of a server, with the memory and threads that it takes.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use landspeed_model::Parameters;

use super::Shared;
use super::shares::{Share, Taken};

/// A place, given back when dropped.
pub struct Occupancy {
    shared: Arc<Shared>,
    _share: Taken,
}

/// Why there is no place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Full {
    /// So many tests are running, and no more may.
    Tests(usize),
    /// Memory or threads.
    Share,
}

impl Occupancy {
    /// Takes a place for a test with these (validated) parameters.
    pub fn take(shared: &Arc<Shared>, parameters: &Parameters) -> Result<Self, Full> {
        let most = shared.config.limits.max_tests;
        let running = &shared.counts.running;
        if running.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |n| (n < most).then_some(n + 1)).is_err() {
            return Err(Full::Tests(most));
        }
        let Some(share) = shared.shares.take(Share::of(parameters, shared.config.limits.max_duration_ns)) else {
            running.fetch_sub(1, Ordering::Relaxed);
            return Err(Full::Share);
        };
        Ok(Self { shared: Arc::clone(shared), _share: share })
    }
}

impl Drop for Occupancy {
    fn drop(&mut self) {
        self.shared.counts.running.fetch_sub(1, Ordering::Relaxed);
    }
}
