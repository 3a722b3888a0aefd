//! `/proc/stat`: CPU time of each core.

/// Maximum number of cores of any kernel build (x86 `MAXSMP` is 8192).
const MAX_CORES: usize = 8192;

/// CPU time of one core in ticks ([`crate::TICK_NS`]), since boot or as a difference.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct CoreTicks {
    /// User and nice; they include guest time.
    pub user: u64,
    pub system: u64,
    pub softirq: u64,
    pub irq: u64,
    pub steal: u64,
    pub iowait: u64,
    pub idle: u64,
}

impl CoreTicks {
    /// Returns the difference since `before`, and whether a counter decreased: the kernel documents that
    /// `iowait` may, and `idle` does with some clock sources. Such a counter is taken as unchanged.
    pub(crate) fn since(self, before: Self) -> (Self, bool) {
        let mut back = false;
        let mut delta = |now: u64, then: u64| {
            back |= now < then;
            now.saturating_sub(then)
        };
        let passed = Self {
            user: delta(self.user, before.user),
            system: delta(self.system, before.system),
            softirq: delta(self.softirq, before.softirq),
            irq: delta(self.irq, before.irq),
            steal: delta(self.steal, before.steal),
            iowait: delta(self.iowait, before.iowait),
            idle: delta(self.idle, before.idle),
        };
        (passed, back)
    }

    /// Returns the sum of both.
    pub(crate) fn sum_with(self, other: Self) -> Self {
        Self {
            user: self.user.saturating_add(other.user),
            system: self.system.saturating_add(other.system),
            softirq: self.softirq.saturating_add(other.softirq),
            irq: self.irq.saturating_add(other.irq),
            steal: self.steal.saturating_add(other.steal),
            iowait: self.iowait.saturating_add(other.iowait),
            idle: self.idle.saturating_add(other.idle),
        }
    }

    /// Returns shares of the core's own total, which add up to 1; all zero if no tick passed.
    pub(crate) fn shares(self) -> landspeed_model::CoreUse {
        let parts = [self.user, self.system, self.softirq, self.irq, self.steal, self.iowait, self.idle];
        let total: f64 = parts.iter().map(|&ticks| ticks as f64).sum();
        let share = |ticks: u64| if total > 0.0 { (ticks as f64 / total) as f32 } else { 0.0 };
        landspeed_model::CoreUse {
            user: share(self.user),
            system: share(self.system),
            softirq: share(self.softirq),
            irq: share(self.irq),
            steal: share(self.steal),
            iowait: share(self.iowait),
            idle: share(self.idle),
        }
    }
}

/// Fills `cores` with each core's ticks, indexed by core number. A core without a valid row is offline: `None`.
pub(crate) fn core_ticks(stat: &str, cores: &mut Vec<Option<CoreTicks>>) {
    cores.clear();
    for line in stat.lines() {
        // The cpu rows come first; the rest (`intr`) is long.
        let Some(row) = line.strip_prefix("cpu") else { break };
        let mut words = row.split_ascii_whitespace();
        if row.starts_with(char::is_whitespace) {
            continue;
        }
        let Some(core) = words.next().and_then(|n| n.parse::<usize>().ok()).filter(|&n| n < MAX_CORES) else {
            continue;
        };
        if cores.len() <= core {
            cores.resize(core + 1, None);
        }
        cores[core] = row_ticks(words);
    }
}

/// Parses user nice system idle [iowait irq softirq steal]; the later columns were added by later kernels.
fn row_ticks<'a>(mut words: impl Iterator<Item = &'a str>) -> Option<CoreTicks> {
    let mut columns = [0_u64; 8];
    for (at, column) in columns.iter_mut().enumerate() {
        match words.next() {
            Some(word) => *column = word.parse().ok()?,
            None if at >= 4 => break,
            None => return None,
        }
    }
    let [user, nice, system, idle, iowait, irq, softirq, steal] = columns;
    Some(CoreTicks { user: user.saturating_add(nice), system, softirq, irq, steal, iowait, idle })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(stat: &str) -> Vec<Option<CoreTicks>> {
        let mut cores = Vec::new();
        core_ticks(stat, &mut cores);
        cores
    }

    #[test]
    fn core_numbers_are_correct_with_offline_cores() {
        let cores =
            parsed("cpu  9 9 9 9\ncpu0 1 2 3 4 5 6 7 8 9 10\ncpu3 1 1 1 1 1 1 1 1 0 0\nintr 5 cpu9\ncpu4 1 1 1 1\n");
        assert_eq!(cores.len(), 4);
        assert_eq!(
            cores[0],
            Some(CoreTicks { user: 3, system: 3, softirq: 7, irq: 6, steal: 8, iowait: 5, idle: 4 })
        );
        assert_eq!((cores[1], cores[2]), (None, None));
        assert!(cores[3].is_some());
    }

    #[test]
    fn cores_with_invalid_rows_are_offline() {
        assert_eq!(parsed("cpu0 1 2 3"), [None]);
        assert_eq!(parsed("cpu0 1 2 x 4 5"), [None]);
        assert_eq!(parsed("cpu99999999 1 2 3 4"), []);
        assert!(parsed("cpu0 1 2 3 4")[0].is_some(), "four columns are the oldest format");
    }

    #[test]
    fn shares_add_up_to_one_despite_decreasing_counters() {
        let before = CoreTicks { user: 10, idle: 100, iowait: 50, ..CoreTicks::default() };
        let after = CoreTicks { user: 16, system: 2, idle: 102, iowait: 49, ..CoreTicks::default() };
        let (passed, back) = after.since(before);
        assert!(back);
        let shares = passed.shares();
        assert!((shares.user - 0.6).abs() < 1e-6 && (shares.idle - 0.2).abs() < 1e-6 && shares.iowait.abs() < 1e-6);
        assert!((shares.busy() + shares.idle + shares.iowait - 1.0).abs() < 1e-6);
    }
}
