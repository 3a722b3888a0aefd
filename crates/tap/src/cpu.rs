//! CPU utilization of the host between two readings.

use landspeed_model::TapHostUse;
use landspeed_sys::clock::monotonic_ns;

/// Ticks per second in /proc/stat: the kernel's `USER_HZ`, a fixed part of its interface.
const TICKS: f64 = 100.0;

/// A reading of the CPU counters.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CpuReading {
    at_ns: u64,
    busy: u64,
    softirq: u64,
    steal: u64,
}

/// Reads /proc/stat; `None` if it lacks the values.
pub fn poll() -> Option<CpuReading> {
    let text = std::fs::read_to_string("/proc/stat").ok()?;
    parse(&text, monotonic_ns())
}

/// Parses the total line (proc_stat(5)): user nice system idle iowait irq softirq steal.
fn parse(text: &str, at_ns: u64) -> Option<CpuReading> {
    let line = text.lines().next()?.strip_prefix("cpu ")?;
    let ticks: Vec<u64> = line.split_whitespace().map_while(|word| word.parse().ok()).collect();
    let [user, nice, system, _idle, _iowait, irq, softirq, steal, ..] = ticks[..] else { return None };
    Some(CpuReading { at_ns, busy: user + nice + system + irq + softirq, softirq, steal })
}

/// Utilization between two readings; `None` if no time has passed.
pub fn between(before: CpuReading, after: CpuReading) -> Option<TapHostUse> {
    let span_ns = after.at_ns.checked_sub(before.at_ns).filter(|&span| span > 0)?;
    let cores = |before: u64, after: u64| after.saturating_sub(before) as f64 / TICKS / (span_ns as f64 / 1e9);
    Some(TapHostUse {
        span_ns,
        busy_cores: cores(before.busy, after.busy),
        softirq_cores: cores(before.softirq, after.softirq),
        steal_cores: cores(before.steal, after.steal),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpu_ticks_are_converted_to_cores() {
        let before = parse("cpu  100 0 50 1000 0 0 10 0 0 0\ncpu0 1 2", 0).expect("a line");
        let after = parse("cpu  150 0 100 1000 0 0 60 5 0 0\n", 1_000_000_000).expect("a line");
        let found = between(before, after).expect("a second");
        assert!((found.busy_cores - 1.5).abs() < 1e-9 && (found.softirq_cores - 0.5).abs() < 1e-9, "{found:?}");
        assert_eq!(parse("intr 1 2 3", 0), None);
        assert_eq!(between(after, before), None);
    }
}
