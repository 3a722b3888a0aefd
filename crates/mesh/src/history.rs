//! Results of a pair over two weeks, and their change.

use landspeed_stats::median;

/// Nanoseconds of a week.
pub const WEEK_NS: i64 = 7 * crate::budget::DAY_NS as i64;

/// Goodput of a pair's tests in the last two weeks.
#[derive(Debug, Clone, Default)]
pub struct History {
    /// Start on the wall clock, nanoseconds since the Unix epoch, and goodput, bits/s; in the order of the tests.
    results: Vec<(i64, f64)>,
}

/// Change of the goodput from the week before the last seven days. The unit of replication is the test.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Change {
    /// Median of the last seven days over the median of the seven days before, minus 1.
    pub ratio: f64,
    /// Tests of the last seven days.
    pub tests: usize,
    /// Tests of the seven days before.
    pub tests_before: usize,
}

impl History {
    /// Adds a result, and forgets those older than two weeks.
    pub fn add(&mut self, started_ns: i64, goodput_bps: f64) {
        self.results.push((started_ns, goodput_bps));
        self.results.retain(|(at_ns, _)| *at_ns > started_ns - 2 * WEEK_NS);
    }

    /// Returns the change; `None` if one of the weeks has no result.
    pub fn change(&self, now_ns: i64) -> Option<Change> {
        let within = |from_ns: i64, until_ns: i64| -> Vec<f64> {
            let inside = self.results.iter().filter(|(at_ns, _)| *at_ns > from_ns && *at_ns <= until_ns);
            inside.map(|(_, goodput)| *goodput).collect()
        };
        let last = within(now_ns - WEEK_NS, now_ns);
        let before = within(now_ns - 2 * WEEK_NS, now_ns - WEEK_NS);
        let reference = median(&before).filter(|goodput| *goodput > 0.0)?;
        Some(Change { ratio: median(&last)? / reference - 1.0, tests: last.len(), tests_before: before.len() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_week_without_tests_has_no_change() {
        let mut history = History::default();
        assert_eq!(history.change(0), None);
        history.add(10, 100.0);
        assert_eq!(history.change(20), None, "nothing to compare with");
        history.add(10 + WEEK_NS, 50.0);
        history.add(20 + WEEK_NS, 60.0);
        history.add(30 + WEEK_NS, 70.0);
        let change = history.change(30 + WEEK_NS).expect("both weeks");
        assert!((change.ratio + 0.4).abs() < 1e-12, "{change:?}");
        assert_eq!((change.tests, change.tests_before), (3, 1));
        history.add(30 + 4 * WEEK_NS, 70.0);
        assert_eq!(history.results.len(), 1);
    }
}
