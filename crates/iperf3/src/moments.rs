//! Report times of a test, as in iperf3.

/// Report times: at intervals through the omitted part, then again from its end. A remainder at the end of
/// either part is reported separately only if it lasts at least a tenth of an interval.
#[derive(Debug, Clone, Copy)]
pub struct ReportTimes {
    omit_ns: u64,
    stop_ns: Option<u64>,
    every_ns: u64,
}

impl ReportTimes {
    /// `omit_ns` is the end of the omitted part, `stop_ns` the end of the test if known, `every_ns` the interval;
    /// nanoseconds after the start.
    pub fn new(omit_ns: u64, stop_ns: Option<u64>, every_ns: u64) -> Self {
        Self { omit_ns, stop_ns, every_ns: every_ns.max(1_000_000) }
    }

    /// The next report time after `at_ns`, nanoseconds after the start; `None` after the last one. The end of the
    /// test is not a report time.
    pub fn after(&self, at_ns: u64) -> Option<u64> {
        let omitted = at_ns < self.omit_ns;
        let (from_ns, to_ns) = if omitted { (0, Some(self.omit_ns)) } else { (self.omit_ns, self.stop_ns) };
        let next_ns = at_ns + self.every_ns - (at_ns - from_ns) % self.every_ns;
        match to_ns {
            Some(to_ns) if next_ns + self.every_ns / 10 >= to_ns => omitted.then_some(self.omit_ns),
            _ => Some(next_ns),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(moments: ReportTimes) -> Vec<u64> {
        std::iter::successors(moments.after(0), |at| moments.after(*at)).take(9).collect()
    }

    #[test]
    fn reports_restart_after_the_omitted_part() {
        let s = 1_000_000_000;
        assert_eq!(all(ReportTimes::new(0, Some(2 * s + 5), s)), [s]);
        assert_eq!(all(ReportTimes::new(0, Some(2 * s + s / 2), s)), [s, 2 * s]);
        assert_eq!(all(ReportTimes::new(s + s / 2, Some(3 * s + s / 2), s)), [s, s + s / 2, 2 * s + s / 2]);
        assert!(all(ReportTimes::new(0, Some(s / 2), s)).is_empty());
        assert_eq!(all(ReportTimes::new(2 * s, Some(2 * s), s)), [s, 2 * s]);
        assert_eq!(all(ReportTimes::new(0, None, 3 * s))[8], 27 * s);
    }

    #[test]
    fn late_reports_do_not_shift_later_ones() {
        let moments = ReportTimes::new(0, Some(10_000_000_000), 1_000_000_000);
        assert_eq!(moments.after(3_004_000_000), Some(4_000_000_000));
        assert_eq!(moments.after(5_900_000_000), Some(6_000_000_000));
    }
}
