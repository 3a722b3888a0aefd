//! How much of the machine other programs used while the tests ran: on a busy machine their times prove nothing.

use std::time::Instant;

use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike as _;

use crate::machine;

/// Ticks of `/proc/stat` per second (`USER_HZ`, proc_stat(5)).
const TICKS_PER_S: f64 = 100.0;

/// CPU time so far, seconds since boot: of the whole machine, and of this program's finished children.
pub struct Reading {
    at: Instant,
    machine_s: Option<f64>,
    children_s: Option<f64>,
}

impl Reading {
    /// Reads both.
    pub fn now() -> Self {
        let stat = std::fs::read_to_string("/proc/stat").unwrap_or_default();
        let children = getrusage(UsageWho::RUSAGE_CHILDREN).ok();
        let seconds = |usage: nix::sys::resource::Usage| {
            (usage.user_time().num_microseconds() + usage.system_time().num_microseconds()) as f64 * 1e-6
        };
        Self { at: machine::now(), machine_s: busy_s(&stat), children_s: children.map(seconds) }
    }

    /// Share of the machine's CPU time since then that neither idled nor belongs to finished children of this program.
    /// `None` where it is not visible.
    pub fn others(&self) -> Option<f64> {
        let now = Self::now();
        let busy = now.machine_s? - self.machine_s?;
        let own = now.children_s? - self.children_s?;
        let whole = (now.at - self.at).as_secs_f64() * machine::cores() as f64;
        Some((busy - own).max(0.0) / whole)
    }
}

/// Time that no core idled, seconds, steal time included.
fn busy_s(stat: &str) -> Option<f64> {
    let fields = stat.lines().next()?.strip_prefix("cpu ")?;
    let ticks: Vec<f64> = fields.split_whitespace().map_while(|field| field.parse().ok()).collect();
    // user nice system idle iowait irq softirq steal; guest time is in user already.
    let [user, nice, system, _, _, irq, softirq, steal] = *ticks.get(..8)? else { return None };
    Some((user + nice + system + irq + softirq + steal) / TICKS_PER_S)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn idle_time_is_not_busy_and_a_short_line_is_unknown() {
        assert_eq!(busy_s("cpu  100 0 100 900 50 10 20 70 0 0\ncpu0 1"), Some(3.0));
        assert_eq!(busy_s("cpu 1 2 3"), None);
        assert_eq!(busy_s(""), None);
    }
}
