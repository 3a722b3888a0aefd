//! Budgets of bytes and time per day, and what was spent of them.

use std::collections::VecDeque;

/// Nanoseconds of a day.
pub const DAY_NS: u64 = 86_400 * 1_000_000_000;

/// Maximum amounts in any 24 h; `None` is unlimited.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Budget {
    /// Payload bytes sent and received.
    pub bytes: Option<u64>,
    /// Time in tests, nanoseconds.
    pub time_ns: Option<u64>,
}

/// Bytes and time of tests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Amount {
    /// Payload bytes sent and received.
    pub bytes: u64,
    /// Duration, nanoseconds.
    pub time_ns: u64,
}

impl Amount {
    fn plus(self, other: Self) -> Self {
        Self { bytes: self.bytes.saturating_add(other.bytes), time_ns: self.time_ns.saturating_add(other.time_ns) }
    }

    fn minus(self, other: Self) -> Self {
        Self { bytes: self.bytes.saturating_sub(other.bytes), time_ns: self.time_ns.saturating_sub(other.time_ns) }
    }
}

impl Budget {
    fn covers(&self, amount: Amount) -> bool {
        self.bytes.is_none_or(|most| amount.bytes <= most) && self.time_ns.is_none_or(|most| amount.time_ns <= most)
    }
}

/// What a host or a link spent in the last 24 h, and what running tests have reserved.
///
/// A test counts until 24 h after its end, so no span of 24 h has more than the budget.
#[derive(Debug, Clone, Default)]
pub struct Ledger {
    reserved: Amount,
    spent: Amount,
    /// End of each test on the monotonic clock, nanoseconds, and what it spent; oldest first.
    entries: VecDeque<(i64, Amount)>,
}

impl Ledger {
    /// Reserves the worst case of a test that starts.
    pub fn reserve(&mut self, worst: Amount) {
        self.reserved = self.reserved.plus(worst);
    }

    /// Replaces a reservation by what the test spent.
    pub fn settle(&mut self, worst: Amount, spent: Amount, end_ns: i64) {
        self.reserved = self.reserved.minus(worst);
        self.add(spent, end_ns);
    }

    /// Adds a test that ended at `end_ns`.
    pub fn add(&mut self, spent: Amount, end_ns: i64) {
        let at = self.entries.partition_point(|(other, _)| *other <= end_ns);
        self.entries.insert(at, (end_ns, spent));
        self.spent = self.spent.plus(spent);
    }

    /// Forgets tests that ended 24 h ago or earlier.
    pub fn expire(&mut self, now_ns: i64) {
        while let Some(&(end_ns, amount)) = self.entries.front()
            && end_ns + (DAY_NS as i64) <= now_ns
        {
            self.spent = self.spent.minus(amount);
            self.entries.pop_front();
        }
    }

    /// Returns the bytes and the time of the last 24 h, with reservations.
    pub fn used(&self) -> Amount {
        self.spent.plus(self.reserved)
    }

    /// Whether running tests have reservations.
    pub fn has_reservations(&self) -> bool {
        self.reserved != Amount::default()
    }

    /// Whether the budget covers another test.
    pub fn fits(&self, budget: &Budget, worst: Amount) -> bool {
        budget.covers(self.used().plus(worst))
    }

    /// Returns when enough tests are 24 h old for another one; `None` if that also needs the end of a running test.
    pub fn fits_at_ns(&self, budget: &Budget, worst: Amount) -> Option<i64> {
        let mut used = self.used();
        for &(end_ns, amount) in &self.entries {
            used = used.minus(amount);
            if budget.covers(used.plus(worst)) {
                return Some(end_ns + DAY_NS as i64);
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(bytes: u64) -> Amount {
        Amount { bytes, time_ns: 0 }
    }

    #[test]
    fn reservations_count_until_the_test_ends() {
        let budget = Budget { bytes: Some(100), time_ns: None };
        let mut ledger = Ledger::default();
        ledger.reserve(bytes(60));
        assert!(!ledger.fits(&budget, bytes(41)) && ledger.fits(&budget, bytes(40)));
        assert_eq!(ledger.fits_at_ns(&budget, bytes(41)), None, "it needs the end of the running test");
        ledger.settle(bytes(60), bytes(10), 5);
        assert!(ledger.fits(&budget, bytes(90)) && !ledger.has_reservations());
    }

    #[test]
    fn spent_bytes_return_after_24_h() {
        let budget = Budget { bytes: Some(100), time_ns: None };
        let mut ledger = Ledger::default();
        ledger.add(bytes(50), 1000);
        ledger.add(bytes(50), 10);
        let day = DAY_NS as i64;
        assert_eq!(ledger.fits_at_ns(&budget, bytes(50)), Some(10 + day));
        assert_eq!(ledger.fits_at_ns(&budget, bytes(51)), Some(1000 + day));
        ledger.expire(9 + day);
        assert!(!ledger.fits(&budget, bytes(1)));
        ledger.expire(10 + day);
        assert!(ledger.fits(&budget, bytes(50)) && !ledger.fits(&budget, bytes(51)));
    }
}
