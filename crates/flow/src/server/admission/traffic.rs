//! Tests that send or receive at the same time.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Tests that send or receive now, each with the number of others since its start.
#[derive(Debug, Default)]
pub struct Traffic(Mutex<Tests>);

#[derive(Debug, Default)]
struct Tests {
    next: u64,
    others: HashMap<u64, u32>,
}

/// A test that sends or receives, until it is dropped.
#[derive(Debug)]
pub struct TrafficGuard {
    traffic: Arc<Traffic>,
    number: u64,
}

impl Traffic {
    /// Begins a test: it and those that run count each other.
    pub fn begin(self: &Arc<Self>) -> TrafficGuard {
        let mut tests = self.lock();
        let running = tests.others.len() as u32;
        tests.others.values_mut().for_each(|others| *others = others.saturating_add(1));
        let number = tests.next;
        tests.next += 1;
        tests.others.insert(number, running);
        TrafficGuard { traffic: Arc::clone(self), number }
    }

    fn lock(&self) -> MutexGuard<'_, Tests> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl TrafficGuard {
    /// Returns the number of other tests since the start of this one.
    pub fn others(&self) -> u32 {
        self.traffic.lock().others.get(&self.number).copied().unwrap_or(0)
    }
}

impl Drop for TrafficGuard {
    fn drop(&mut self) {
        self.traffic.lock().others.remove(&self.number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn overlapping_tests_count_each_other() {
        let traffic = Arc::new(Traffic::default());
        let first = traffic.begin();
        let second = traffic.begin();
        drop(second);
        let third = traffic.begin();
        assert_eq!((first.others(), third.others()), (2, 1));
        drop(first);
        drop(third);
        assert_eq!(traffic.begin().others(), 0, "a test that has ended does not count");
    }
}
