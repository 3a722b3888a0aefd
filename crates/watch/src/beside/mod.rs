//! Activity of this host next to the sockets: the processes of the busy flows, the interfaces these use, and
//! the network stack.
//!
//! Counters are read once a second and kept as long as the samples of flows, so that differences over any
//! flow's span are known afterwards. Thread states are sampled ten times a second, a limited number each time.

mod process;

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};

use landspeed_host::{Files, InterfaceCounters, StackCounters, series_between};
use landspeed_model::{HostSeries, WatchHost};
use landspeed_netlink::Netlink;
use landspeed_netlink::nft::NfTables;

use self::process::ProcessHistory;
use crate::flows::ThreadTimes;
use crate::tracepoints::FilterDrops;

/// Maximum number of threads read, with three open files each; a process needs two more.
const MAX_THREADS: usize = 256;
/// Maximum number of interfaces read.
const MAX_INTERFACES: usize = 16;
/// Maximum number of thread states sampled per period, about 2 µs each.
const THREADS_PER_SAMPLE: usize = 32;

/// Readings of processes, interfaces and the network stack.
pub(crate) struct HostMonitor {
    files: Files,
    netlink: Option<Netlink>,
    nft: Option<NfTables>,
    keep_ns: u64,
    processes: BTreeMap<u32, ProcessHistory>,
    interfaces: HashMap<u32, VecDeque<(u64, InterfaceCounters)>>,
    stack: VecDeque<(u64, StackReading)>,
    /// Position of the next thread to sample.
    cursor: usize,
}

/// Counters of the network stack and of packet filters at one time.
struct StackReading {
    moment: StackCounters,
    nft: Option<u64>,
    filtered: Option<FilterDrops>,
}

impl HostMonitor {
    /// Creates a reader for the calling thread's network namespace; readings older than `keep_ns` are dropped.
    pub(crate) fn new(keep_ns: u64) -> Self {
        Self {
            files: Files::live(),
            netlink: Netlink::open().ok(),
            nft: NfTables::open().ok(),
            keep_ns,
            processes: BTreeMap::new(),
            interfaces: HashMap::new(),
            stack: VecDeque::new(),
            cursor: 0,
        }
    }

    /// Reads the counters of these processes and interfaces, and of the network stack. `now_ns` is the clock: this thread
    /// may wait for a core between two readings, and each share of time needs the time of its reading. `filtered` has
    /// the packets dropped by packet filters so far, from the kernel's tracepoint.
    pub(crate) fn read(
        &mut self,
        now_ns: &dyn Fn() -> u64,
        pids: &HashSet<u32>,
        interfaces: &HashSet<u32>,
        filtered: Option<FilterDrops>,
    ) {
        self.processes.retain(|pid, _| pids.contains(pid));
        let mut open: usize = self.processes.values().map(|history| history.threads().count()).sum();
        for &pid in pids {
            let history = self.processes.entry(pid).or_insert_with(|| ProcessHistory::new(pid));
            let before = history.threads().count();
            history.read(&self.files, now_ns(), self.keep_ns, MAX_THREADS.saturating_sub(open));
            open = open + history.threads().count() - before;
        }
        self.interfaces.retain(|index, _| interfaces.contains(index));
        if let Some(netlink) = &mut self.netlink {
            for &index in interfaces.iter().take(MAX_INTERFACES) {
                let Ok(moment) = InterfaceCounters::read(netlink, index) else { continue };
                keep(self.interfaces.entry(index).or_default(), (now_ns(), moment), self.keep_ns);
            }
        }
        if pids.is_empty() && interfaces.is_empty() {
            return;
        }
        let nft = self.nft.as_mut().and_then(|nft| nft.dropped().ok());
        if nft.is_none() {
            // Not permitted or not available; this does not change later.
            self.nft = None;
        }
        let stack = StackReading { moment: StackCounters::read(&self.files), nft, filtered };
        keep(&mut self.stack, (now_ns(), stack), self.keep_ns);
    }

    /// Samples the states of some threads, in rotation.
    pub(crate) fn sample_states(&mut self) {
        let all: Vec<(u32, u32)> =
            self.processes.iter().flat_map(|(pid, history)| history.threads().map(|tid| (*pid, tid))).collect();
        let first = if all.len() > THREADS_PER_SAMPLE { self.cursor % all.len() } else { 0 };
        self.cursor = first + THREADS_PER_SAMPLE;
        for &(pid, tid) in all.iter().cycle().skip(first).take(THREADS_PER_SAMPLE.min(all.len())) {
            if let Some(history) = self.processes.get_mut(&pid) {
                history.sample_states(tid);
            }
        }
    }

    /// CPU time of a single-threaded process. `None` for several threads, because the one that serves a socket is
    /// not visible.
    pub(crate) fn thread_times(&self, pid: u32) -> Option<ThreadTimes> {
        let (cpu_ns, wait_ns) = self.processes.get(&pid)?.only_thread()?;
        Some(ThreadTimes { pid, cpu_ns, wait_ns })
    }

    /// CPU utilization of a process in about the last second, in cores, such as 1.5; `None` before two readings.
    pub(crate) fn process_cpu(&self, pid: u32) -> Option<f64> {
        self.processes.get(&pid)?.cores()
    }

    /// Returns the activity of the host during a flow's span. `holder` is the process that holds the socket, and the
    /// socket's descriptor in it.
    pub(crate) fn of(
        &self,
        holder: Option<(u32, Option<u32>)>,
        interface: u32,
        span_ns: (u64, u64),
    ) -> (WatchHost, HostSeries) {
        let mut host = WatchHost::default();
        if let Some((pid, descriptor)) = holder
            && let Some(history) = self.processes.get(&pid)
        {
            history.describe(descriptor, span_ns, &mut host);
        }
        let ends = |kept| nearest(kept, span_ns, |(t_ns, _)| *t_ns);
        let interface = self.interfaces.get(&interface);
        host.interface = interface.and_then(|kept| kept.back()).map(|(_, moment)| moment.name().to_owned());
        let interface = interface.and_then(|kept| nearest(kept, span_ns, |(t_ns, _)| *t_ns));
        let stack = ends(&self.stack);
        if let Some(((_, before), (_, now))) = stack {
            // Fewer than before: a rule was removed, or its counter reset.
            host.nft_drops = now.nft.zip(before.nft).and_then(|(now, before)| now.checked_sub(before));
            host.filter_drops = now.filtered.zip(before.filtered).and_then(|(now, before)| now.since(before));
            host.conntrack_drops = now.moment.conntrack_drops_since(&before.moment);
        }
        let series = series_between(
            stack.map(|((_, before), (_, now))| (&before.moment, &now.moment)),
            interface.map(|((_, before), (_, now))| (before, now)),
        );
        (host, series)
    }

    /// Whether counters of nftables rules are available.
    pub(crate) fn has_nft(&self) -> bool {
        self.nft.is_some()
    }
}

fn keep<T>(kept: &mut VecDeque<(u64, T)>, reading: (u64, T), keep_ns: u64) {
    let now_ns = reading.0;
    kept.push_back(reading);
    while kept.front().is_some_and(|(t_ns, _)| now_ns.saturating_sub(*t_ns) > keep_ns) {
        kept.pop_front();
    }
}

/// The readings closest to the start and the end of a span; `None` if they are the same.
fn nearest<T>(kept: &VecDeque<T>, span_ns: (u64, u64), at: impl Fn(&T) -> u64) -> Option<(&T, &T)> {
    let closest = |t_ns: u64| kept.iter().min_by_key(|reading| at(reading).abs_diff(t_ns));
    let (before, now) = (closest(span_ns.0)?, closest(span_ns.1)?);
    (at(now) > at(before)).then_some((before, now))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_use_the_closest_readings() {
        let kept: VecDeque<u64> = (0..10).map(|k| k * 1000).collect();
        let ends = |from, to| nearest(&kept, (from, to), |t| *t).map(|(a, b)| (*a, *b));
        assert_eq!(ends(2400, 7600), Some((2000, 8000)));
        assert_eq!(ends(0, 90_000), Some((0, 9000)));
        assert_eq!(ends(3100, 3200), None, "one reading has no span");
        assert_eq!(nearest(&VecDeque::<u64>::new(), (0, 1), |t| *t), None);
    }

    #[test]
    fn drops_of_reset_counters_are_unknown() {
        let root = tempfile::tempdir().expect("a directory");
        let moment = StackCounters::read(&Files::recorded(root.path()));
        let reading = |nft, count, uncertain| StackReading {
            moment: moment.clone(),
            nft: Some(nft),
            filtered: Some(FilterDrops { count, uncertain }),
        };
        let mut monitor = HostMonitor::new(u64::MAX);
        let mut drops = |first, last| {
            monitor.stack = VecDeque::from([(0, first), (1000, last)]);
            let (host, _) = monitor.of(None, 0, (0, 1000));
            (host.nft_drops, host.filter_drops)
        };
        assert_eq!(drops(reading(7, 1, 2), reading(9, 4, 2)), (Some(2), Some(3)));
        assert_eq!(drops(reading(7, 1, 2), reading(3, 4, 3)), (None, None));
    }

    #[test]
    fn old_readings_are_dropped() {
        let mut kept = VecDeque::new();
        for second in 0..100_000 {
            keep(&mut kept, (second * 1_000_000_000, ()), 30_000_000_000);
        }
        assert_eq!(kept.len(), 31);
    }
}
