//! CPU time of the processes that hold busy sockets.

use std::collections::{HashMap, HashSet};

use landspeed_host::Host;

/// The kernel's unit of `/proc/PID/stat`, nanoseconds (USER_HZ is 100 on every architecture that Linux runs on today).
const TICK_NS: u64 = 10_000_000;
/// Readings closer than this say little of a rate in ticks, nanoseconds.
const LEAST_NS: u64 = 500_000_000;

/// CPU time of processes between their last two readings.
#[derive(Debug, Default)]
pub(crate) struct ProcessCpu {
    processes: HashMap<u32, Usage>,
}

#[derive(Debug)]
struct Usage {
    /// Start time of the process: a number may be reused.
    started: u64,
    ticks: u64,
    t_ns: u64,
    cores: Option<f64>,
}

impl ProcessCpu {
    /// Reads the processes `pids`; all others are forgotten.
    pub fn read(&mut self, host: &dyn Host, pids: &HashSet<u32>, now_ns: u64) {
        self.processes.retain(|pid, _| pids.contains(pid));
        for &pid in pids {
            let last = self.processes.get(&pid);
            if last.is_some_and(|last| now_ns.saturating_sub(last.t_ns) < LEAST_NS) {
                continue;
            }
            let Some((ticks, started)) = host.read(&format!("/proc/{pid}/stat")).ok().as_deref().and_then(times)
            else {
                self.processes.remove(&pid);
                continue;
            };
            let last = last.filter(|last| last.started == started);
            let cores = last
                .map(|last| ticks.saturating_sub(last.ticks) as f64 * TICK_NS as f64 / (now_ns - last.t_ns) as f64);
            self.processes.insert(pid, Usage { started, ticks, t_ns: now_ns, cores });
        }
    }

    /// Cores that a process used, such as 1.5. `None` until it was read twice.
    pub fn of(&self, pid: u32) -> Option<f64> {
        self.processes.get(&pid)?.cores
    }
}

/// CPU time of all threads and the start time in `/proc/PID/stat`, ticks. The command between brackets may hold anything.
fn times(stat: &str) -> Option<(u64, u64)> {
    let (_, fields) = stat.rsplit_once(')')?;
    // Field 3, the state, is the first: proc_pid_stat(5).
    let mut fields = fields.split_ascii_whitespace().skip(11).map(str::parse::<u64>);
    let (user, system) = (fields.next()?.ok()?, fields.next()?.ok()?);
    Some((user.saturating_add(system), fields.nth(6)?.ok()?))
}

#[cfg(test)]
mod tests {
    use landspeed_host::Files;

    use super::*;

    const SECOND: u64 = 1_000_000_000;

    fn stat(root: &std::path::Path, user: u64, system: u64, started: u64) {
        let directory = root.join("proc/7");
        std::fs::create_dir_all(&directory).expect("a directory");
        let text = format!("7 (a) b) S 1 7 7 0 -1 0 0 0 0 0 {user} {system} 0 0 20 0 3 0 {started} 0 0\n");
        std::fs::write(directory.join("stat"), text).expect("a file");
    }

    #[test]
    fn a_process_with_two_busy_threads_uses_two_cores() {
        let root = tempfile::tempdir().expect("a directory");
        let host = Files::recorded(root.path());
        let mut cpu = ProcessCpu::default();
        let pids = HashSet::from([7, 8]);
        stat(root.path(), 100, 50, 5);
        cpu.read(&host, &pids, 0);
        assert_eq!(cpu.of(7), None, "one reading does not give a rate");
        stat(root.path(), 250, 100, 5);
        cpu.read(&host, &pids, SECOND / 10);
        assert_eq!(cpu.of(7), None, "too close");
        cpu.read(&host, &pids, SECOND);
        assert_eq!(cpu.of(7), Some(2.0));
        assert_eq!(cpu.of(8), None, "not there");
        // Another process of the same number.
        stat(root.path(), 300, 100, 6);
        cpu.read(&host, &pids, 2 * SECOND);
        assert_eq!(cpu.of(7), None);
        cpu.read(&host, &HashSet::new(), 3 * SECOND);
        assert!(cpu.processes.is_empty());
    }

    #[test]
    fn odd_stat_files_have_no_times() {
        for text in ["", "7 (x) S", "7 (x) S 1 2 3 4 5 6 7 8 9 10 11 a b", "no brackets"] {
            assert_eq!(times(text), None, "{text}");
        }
    }
}
