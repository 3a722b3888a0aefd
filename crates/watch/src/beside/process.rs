//! CPU time, states, storage I/O and CPU quotas of the threads of a process.

use std::collections::{BTreeMap, VecDeque};
use std::fs::File;
use std::os::unix::fs::FileExt as _;

use landspeed_host::{Files, Host, Quota, QuotaCounters, TICK_NS};
use landspeed_model::{BlockedThread, ThreadUse, ThreadWaits, WatchHost};
use landspeed_sys::syscall::Blocked;

use super::nearest;

/// Maximum number of threads of a process; with more, none is read.
const MAX_THREADS: usize = 64;
/// Interval at which threads and quotas are searched again, nanoseconds.
const CHECK_NS: u64 = 5_000_000_000;
/// Maximum number of different waits counted for a thread; more count as [`Blocked::Other`].
const MAX_WAITS: usize = 32;
/// Maximum length of a file that is read repeatedly, bytes.
const MAX_FILE_BYTES: usize = 1024;

/// A process and its readings, one per second.
#[derive(Debug)]
pub(super) struct ProcessHistory {
    pid: u32,
    threads: BTreeMap<u32, Thread>,
    /// Number of threads, also if they are too many to read.
    count: Option<u32>,
    stat: Option<File>,
    io: Option<File>,
    /// Quotas of its control groups, or why they are not visible.
    quotas: Result<Vec<Quota>, String>,
    checked_ns: Option<u64>,
    /// Number of threads opened so far.
    opened: u64,
    readings: VecDeque<ProcessReading>,
}

#[derive(Debug)]
struct Thread {
    /// Number of the opening: a thread id may be reused.
    opened: u64,
    name: String,
    schedstat: File,
    stat: File,
    /// The system call it is in; `None` without the right to trace the process.
    syscall: Option<File>,
    /// Number of state samples, and of those in state D.
    state_samples: (u32, u32),
    /// Number of samples by what it waited for.
    waits: BTreeMap<Blocked, u32>,
    core: Option<u32>,
}

/// Counters at one time.
#[derive(Debug, Clone)]
struct ProcessReading {
    t_ns: u64,
    /// CPU time of all threads, including those that have ended, nanoseconds.
    cpu_ns: Option<u64>,
    threads: Vec<(u32, ThreadReading)>,
    /// Bytes read from and written to storage.
    io: Option<(u64, u64)>,
    quotas: Vec<QuotaCounters>,
}

#[derive(Debug, Clone)]
struct ThreadReading {
    /// [`Thread::opened`]
    opened: u64,
    cpu_ns: u64,
    wait_ns: u64,
    state_samples: (u32, u32),
    waits: BTreeMap<Blocked, u32>,
}

impl ProcessHistory {
    pub(super) fn new(pid: u32) -> Self {
        Self {
            pid,
            threads: BTreeMap::new(),
            count: None,
            stat: None,
            io: None,
            quotas: Ok(Vec::new()),
            checked_ns: None,
            opened: 0,
            readings: VecDeque::new(),
        }
    }

    /// Threads whose state is sampled.
    pub(super) fn threads(&self) -> impl Iterator<Item = u32> + '_ {
        self.threads.keys().copied()
    }

    /// CPU time and run-queue wait of the only thread, nanoseconds; `None` if there are several.
    pub(super) fn only_thread(&self) -> Option<(u64, u64)> {
        let thread = self.threads.values().next().filter(|_| self.count == Some(1))?;
        read(&thread.schedstat, &mut [0; MAX_FILE_BYTES]).and_then(two_numbers)
    }

    /// CPU utilization between the last two readings, in cores.
    pub(super) fn cores(&self) -> Option<f64> {
        let mut latest = self.readings.iter().rev();
        let (now, before) = (latest.next()?, latest.next()?);
        let moved_ns = now.cpu_ns?.saturating_sub(before.cpu_ns?);
        (now.t_ns > before.t_ns).then(|| moved_ns as f64 / (now.t_ns - before.t_ns) as f64)
    }

    /// Samples the state and core of a thread.
    pub(super) fn sample_states(&mut self, tid: u32) {
        let Some(thread) = self.threads.get_mut(&tid) else { return };
        let mut text = [0; MAX_FILE_BYTES];
        let Some((state, core)) = read(&thread.stat, &mut text).and_then(state_and_core) else { return };
        thread.state_samples.0 += 1;
        thread.state_samples.1 += u32::from(state == b'D');
        thread.core = core.or(thread.core);
        let call = thread.syscall.as_ref().and_then(|file| read(file, &mut text));
        if let Some(blocked) = call.and_then(|text| Blocked::parse(std::str::from_utf8(text).ok()?)) {
            let is_known = thread.waits.contains_key(&blocked) || thread.waits.len() < MAX_WAITS;
            *thread.waits.entry(if is_known { blocked } else { Blocked::Other }).or_default() += 1;
        }
    }

    /// Reads all counters. `room` is the number of further threads that may be opened.
    pub(super) fn read(&mut self, files: &Files, now_ns: u64, keep_ns: u64, room: usize) {
        if self.checked_ns.is_none_or(|at| now_ns.saturating_sub(at) >= CHECK_NS) {
            self.checked_ns = Some(now_ns);
            self.find(files, room);
        }
        let mut text = [0; MAX_FILE_BYTES];
        let mut threads = Vec::with_capacity(self.threads.len());
        self.threads.retain(|&tid, thread| {
            // A thread that has ended cannot be read, even if its id is reused.
            let Some((cpu_ns, wait_ns)) = read(&thread.schedstat, &mut text).and_then(two_numbers) else {
                return false;
            };
            let (opened, state_samples, waits) = (thread.opened, thread.state_samples, thread.waits.clone());
            threads.push((tid, ThreadReading { opened, cpu_ns, wait_ns, state_samples, waits }));
            true
        });
        // An open file stays bound to its process: after its end nothing can be read, even if the PID is reused.
        let cpu_ns = self.stat.as_ref().and_then(|file| read(file, &mut text)).and_then(cpu_ns);
        if cpu_ns.is_none() {
            self.stat = None;
        }
        let io = self.io.as_ref().and_then(|file| read(file, &mut text)).and_then(storage_bytes);
        let quotas = self.quotas.iter().flatten().filter_map(Quota::read).collect();
        self.readings.push_back(ProcessReading { t_ns: now_ns, cpu_ns, threads, io, quotas });
        while self.readings.front().is_some_and(|first| now_ns.saturating_sub(first.t_ns) > keep_ns) {
            self.readings.pop_front();
        }
    }

    /// Opens the files to read.
    fn find(&mut self, files: &Files, room: usize) {
        let pid = self.pid;
        let names = Host::names(files, &format!("/proc/{pid}/task"), "").ok();
        let tids: Option<Vec<u32>> = names.map(|names| names.iter().filter_map(|name| name.parse().ok()).collect());
        self.count = tids.as_ref().map(|tids| tids.len() as u32).filter(|count| *count > 0);
        // If they cannot be listed, the known ones stay.
        if let Some(tids) = tids {
            self.threads.retain(|tid, _| tids.contains(tid));
            if tids.len() <= MAX_THREADS.min(room + self.threads.len()) {
                self.open_threads(files, &tids);
            }
        }
        self.stat = self.stat.take().or_else(|| files.open(&format!("/proc/{pid}/stat")).ok());
        // For a process of another user this needs root.
        self.io = self.io.take().or_else(|| files.open(&format!("/proc/{pid}/io")).ok());
        self.quotas = Quota::of_process(files, &format!("/proc/{pid}"));
    }

    /// Opens the files of the threads that are new.
    fn open_threads(&mut self, files: &Files, tids: &[u32]) {
        for &tid in tids {
            if let std::collections::btree_map::Entry::Vacant(place) = self.threads.entry(tid)
                && let Some(thread) = Thread::open(files, self.pid, tid, self.opened)
            {
                self.opened += 1;
                place.insert(thread);
            }
        }
    }

    /// Adds the activity during a span to `host`. `descriptor` is the socket's in the process.
    pub(super) fn describe(&self, descriptor: Option<u32>, span_ns: (u64, u64), host: &mut WatchHost) {
        host.threads = self.count;
        let Some((before, now)) = nearest(&self.readings, span_ns, |reading| reading.t_ns) else { return };
        let elapsed = (now.t_ns - before.t_ns) as f64;
        let then = |opened: u64| before.threads.iter().map(|(_, reading)| reading).find(|then| then.opened == opened);
        let moved: Vec<(u32, &Thread, ThreadReading)> = now
            .threads
            .iter()
            .filter_map(|(tid, reading)| {
                let then = then(reading.opened)?;
                let since = |(blocked, count): (&Blocked, &u32)| {
                    (*blocked, count.saturating_sub(then.waits.get(blocked).copied().unwrap_or(0)))
                };
                let thread = self.threads.get(tid).filter(|thread| thread.opened == reading.opened)?;
                let delta = ThreadReading {
                    opened: reading.opened,
                    cpu_ns: reading.cpu_ns.saturating_sub(then.cpu_ns),
                    wait_ns: reading.wait_ns.saturating_sub(then.wait_ns),
                    state_samples: (
                        reading.state_samples.0 - then.state_samples.0,
                        reading.state_samples.1 - then.state_samples.1,
                    ),
                    waits: reading.waits.iter().map(since).filter(|(_, count)| *count > 0).collect(),
                };
                Some((*tid, thread, delta))
            })
            .collect();
        let busiest = moved.iter().max_by_key(|(_, _, delta)| delta.cpu_ns + delta.wait_ns);
        host.busiest = busiest.map(|(tid, thread, delta)| ThreadUse {
            tid: *tid,
            name: thread.name.clone(),
            cpu_share: delta.cpu_ns as f64 / elapsed,
            wait_share: delta.wait_ns as f64 / elapsed,
            cpu: thread.core,
        });
        let share = |state_samples: (u32, u32)| f64::from(state_samples.1) / f64::from(state_samples.0.max(1));
        let blocked = moved.iter().max_by(|a, b| share(a.2.state_samples).total_cmp(&share(b.2.state_samples)));
        host.blocked =
            blocked.filter(|(_, _, delta)| delta.state_samples.0 > 0).map(|(tid, thread, delta)| BlockedThread {
                tid: *tid,
                name: thread.name.clone(),
                share: share(delta.state_samples),
                readings: delta.state_samples.0,
            });
        host.waits = descriptor.and_then(|descriptor| {
            let (tid, thread, delta) =
                serving(&moved, descriptor).or_else(|| moved.first().filter(|_| self.count == Some(1)))?;
            waits_of(*tid, &thread.name, &delta.waits, descriptor)
        });
        let bps = |of: fn((u64, u64)) -> u64| Some(of(now.io?).checked_sub(of(before.io?))? as f64 * 8e9 / elapsed);
        host.storage_read_bps = bps(|io| io.0);
        host.storage_write_bps = bps(|io| io.1);
        match &self.quotas {
            Ok(quotas) => host.quota = Quota::most_throttled(quotas, &before.quotas, &now.quotas),
            Err(why) => host.quota_unknown = Some(why.clone()),
        }
    }
}

/// The thread that was seen most often in a system call on this descriptor.
fn serving<'a>(
    threads: &'a [(u32, &'a Thread, ThreadReading)],
    descriptor: u32,
) -> Option<&'a (u32, &'a Thread, ThreadReading)> {
    let on_it = |waits: &BTreeMap<Blocked, u32>| -> u32 {
        [Blocked::Receives(descriptor), Blocked::Sends(descriptor)].iter().filter_map(|call| waits.get(call)).sum()
    };
    threads.iter().max_by_key(|(_, _, delta)| on_it(&delta.waits)).filter(|(_, _, delta)| on_it(&delta.waits) > 0)
}

fn waits_of(tid: u32, name: &str, waits: &BTreeMap<Blocked, u32>, descriptor: u32) -> Option<ThreadWaits> {
    let readings: u32 = waits.values().sum();
    let share = |is: &dyn Fn(Blocked) -> bool| {
        let count: u32 = waits.iter().filter(|(blocked, _)| is(**blocked)).map(|(_, count)| count).sum();
        f64::from(count) / f64::from(readings)
    };
    (readings > 0).then(|| ThreadWaits {
        tid,
        name: name.to_owned(),
        readings,
        runs: share(&|blocked| blocked == Blocked::Runs),
        receive: share(&|blocked| blocked == Blocked::Receives(descriptor)),
        send: share(&|blocked| blocked == Blocked::Sends(descriptor)),
        poll: share(&|blocked| blocked == Blocked::Polls),
        sleep: share(&|blocked| blocked == Blocked::Sleeps),
        other: share(&|blocked| match blocked {
            Blocked::Receives(on) | Blocked::Sends(on) => on != descriptor,
            blocked => blocked == Blocked::Other,
        }),
    })
}

impl Thread {
    fn open(files: &Files, pid: u32, tid: u32, opened: u64) -> Option<Self> {
        let path = |name: &str| format!("/proc/{pid}/task/{tid}/{name}");
        let name = files.read(&path("comm")).ok()?.trim_end().chars().filter(|c| !c.is_control()).collect();
        let (schedstat, stat) = (files.open(&path("schedstat")).ok()?, files.open(&path("stat")).ok()?);
        let syscall = files.open(&path("syscall")).ok();
        let (state_samples, waits) = ((0, 0), BTreeMap::new());
        Some(Self { opened, name, schedstat, stat, syscall, state_samples, waits, core: None })
    }
}

/// Reads a short file from its start.
fn read<'a>(file: &File, into: &'a mut [u8; MAX_FILE_BYTES]) -> Option<&'a [u8]> {
    let length = file.read_at(into, 0).ok()?;
    into.get(..length)
}

/// Fields of `/proc/PID/stat` from field 3 on (proc_pid_stat(5)); the name in field 2 may contain anything.
fn stat_fields(text: &[u8]) -> Option<impl Iterator<Item = &str>> {
    let behind = text.iter().rposition(|&byte| byte == b')')? + 1;
    Some(std::str::from_utf8(text.get(behind..)?).ok()?.split_ascii_whitespace())
}

/// State and core: fields 3 and 39.
fn state_and_core(text: &[u8]) -> Option<(u8, Option<u32>)> {
    let mut fields = stat_fields(text)?;
    let state = *fields.next()?.as_bytes().first()?;
    Some((state, fields.nth(35).and_then(|field| field.parse().ok())))
}

/// User plus system time (fields 14 and 15), nanoseconds.
fn cpu_ns(text: &[u8]) -> Option<u64> {
    let mut ticks = stat_fields(text)?.skip(11).map(str::parse::<u64>);
    Some(ticks.next()?.ok()?.saturating_add(ticks.next()?.ok()?).saturating_mul(TICK_NS))
}

/// Time on a core and time waiting for one (`schedstat`), nanoseconds.
fn two_numbers(text: &[u8]) -> Option<(u64, u64)> {
    let mut words = std::str::from_utf8(text).ok()?.split_ascii_whitespace().map(str::parse);
    Some((words.next()?.ok()?, words.next()?.ok()?))
}

/// `read_bytes` and `write_bytes` of `/proc/PID/io`.
fn storage_bytes(text: &[u8]) -> Option<(u64, u64)> {
    Some((value(text, "read_bytes:")?, value(text, "write_bytes:")?))
}

fn value(text: &[u8], name: &str) -> Option<u64> {
    let text = std::str::from_utf8(text).ok()?;
    text.lines().find_map(|line| line.strip_prefix(name)?.trim().parse().ok())
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    const STAT: &str =
        "10 (a ) b) D 1 10 10 0 -1 4194560 0 0 0 0 0 0 0 0 20 0 1 0 100 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 17 3 0 0 7\n";

    fn write(root: &Path, path: &str, text: &str) {
        let path = root.join(path);
        std::fs::create_dir_all(path.parent().expect("a parent")).expect("a directory");
        std::fs::write(path, text).expect("a file");
    }

    #[test]
    fn invalid_proc_files_are_ignored() {
        assert_eq!(state_and_core(STAT.as_bytes()), Some((b'D', Some(3))));
        for text in ["", "1 (x)", "1 (x) ", ")", "\u{0}"] {
            assert_eq!(state_and_core(text.as_bytes()), None, "{text}");
        }
        assert_eq!(state_and_core(b"1 (x) R 1"), Some((b'R', None)));
        for text in ["", "7 (x) S", "7 (x) S 1 2 3 4 5 6 7 8 9 10 11 a b", "no brackets"] {
            assert_eq!(cpu_ns(text.as_bytes()), None, "{text}");
        }
        assert_eq!((two_numbers(b"12"), two_numbers(b"12 x"), two_numbers(b"1 2 3")), (None, None, Some((1, 2))));
    }

    #[test]
    fn busy_thread_quota_and_storage_are_measured_over_a_span() {
        let root = tempfile::tempdir().expect("a directory");
        let at = root.path();
        for (tid, name) in [(10, "main"), (11, "worker")] {
            write(at, &format!("proc/10/task/{tid}/comm"), &format!("{name}\n"));
            write(at, &format!("proc/10/task/{tid}/stat"), STAT);
            write(at, &format!("proc/10/task/{tid}/schedstat"), "0 0 0\n");
            write(at, &format!("proc/10/task/{tid}/syscall"), "running\n");
        }
        write(at, "proc/10/io", "rchar: 9\nread_bytes: 0\nwrite_bytes: 0\n");
        write(at, "proc/10/cgroup", "0::/a.slice/b.service\n");
        write(at, "sys/fs/cgroup/a.slice/cpu.max", "50000 100000\n");
        write(at, "sys/fs/cgroup/a.slice/cpu.stat", "nr_periods 0\nnr_throttled 0\n");
        write(at, "sys/fs/cgroup/a.slice/b.service/cpu.max", "max 100000\n");
        let files = Files::recorded(at);
        let mut history = ProcessHistory::new(10);
        history.read(&files, 0, 30_000_000_000, 100);
        // `read` is call 0 on x86-64 and 63 elsewhere.
        let receives = if cfg!(target_arch = "x86_64") { "0 0x7 0x0\n" } else { "63 0x7 0x0\n" };
        for call in ["running\n", receives, receives, receives] {
            write(at, "proc/10/task/11/syscall", call);
            history.sample_states(11);
        }
        write(at, "proc/10/task/11/schedstat", "900000000 50000000 3\n");
        write(at, "proc/10/io", "rchar: 9\nread_bytes: 1000000\nwrite_bytes: 8\n");
        write(at, "sys/fs/cgroup/a.slice/cpu.stat", "nr_periods 10\nnr_throttled 6\n");
        history.read(&files, 1_000_000_000, 30_000_000_000, 100);
        let mut host = WatchHost::default();
        history.describe(Some(7), (0, 1_000_000_000), &mut host);
        let waits = host.waits.take().expect("the thread that reads the socket");
        assert_eq!((waits.tid, waits.readings, waits.runs, waits.receive), (11, 4, 0.25, 0.75));
        history.describe(Some(8), (0, 1_000_000_000), &mut host);
        assert_eq!(host.waits, None, "no thread was seen at this socket");
        let busiest = host.busiest.expect("a thread");
        assert_eq!((busiest.name.as_str(), busiest.tid, busiest.cpu), ("worker", 11, Some(3)));
        assert!((busiest.cpu_share - 0.9).abs() < 1e-9 && (busiest.wait_share - 0.05).abs() < 1e-9);
        let blocked = host.blocked.expect("looked at");
        assert_eq!((blocked.readings, blocked.share), (4, 1.0));
        assert_eq!(host.storage_read_bps, Some(8e6));
        let quota = host.quota.expect("a quota above");
        assert_eq!(
            (quota.group.as_str(), quota.cores, quota.periods, quota.throttled_periods),
            ("/a.slice", 0.5, 10, 6)
        );
        assert_eq!(host.threads, Some(2));
    }

    #[test]
    fn a_reused_thread_id_is_another_thread() {
        const S: u64 = 1_000_000_000;
        let root = tempfile::tempdir().expect("a directory");
        let at = root.path();
        let thread = |name: &str, schedstat: &str| {
            write(at, "proc/10/task/10/comm", name);
            write(at, "proc/10/task/10/stat", STAT);
            write(at, "proc/10/task/10/schedstat", schedstat);
        };
        let files = Files::recorded(at);
        let mut history = ProcessHistory::new(10);
        thread("old\n", "5000000000 0 0\n");
        history.read(&files, 0, 30 * S, 100);
        (0..3).for_each(|_| history.sample_states(10));
        history.read(&files, S, 30 * S, 100);
        // The list of threads cannot be read for once.
        std::fs::rename(at.join("proc/10/task"), at.join("proc/10/hidden")).expect("renamed");
        history.read(&files, 6 * S, 30 * S, 100);
        assert_eq!(history.threads().count(), 1);
        std::fs::rename(at.join("proc/10/hidden"), at.join("proc/10/task")).expect("renamed");
        // The thread ends, and another one gets its id.
        std::fs::write(at.join("proc/10/task/10/schedstat"), "").expect("emptied");
        history.read(&files, 7 * S, 30 * S, 100);
        thread("new\n", "9000000000 0 0\n");
        history.read(&files, 12 * S, 30 * S, 100);
        history.sample_states(10);
        history.read(&files, 13 * S, 30 * S, 100);
        let mut host = WatchHost::default();
        history.describe(None, (0, 13 * S), &mut host);
        assert_eq!((host.busiest, host.blocked), (None, None), "it was not read at both ends of the span");
        let mut host = WatchHost::default();
        history.describe(None, (12 * S, 13 * S), &mut host);
        assert_eq!(host.blocked.map(|thread| (thread.name, thread.readings)), Some(("new".to_owned(), 1)));
    }

    #[test]
    fn two_busy_threads_use_two_cores() {
        const S: u64 = 1_000_000_000;
        let root = tempfile::tempdir().expect("a directory");
        let files = Files::recorded(root.path());
        let mut history = ProcessHistory::new(7);
        let mut reading = |times: &str, seconds: u64| {
            let text = format!("7 (a) b) S 1 7 7 0 -1 0 0 0 0 0 {times} 0 0 20 0 3 0 5 0 0\n");
            write(root.path(), "proc/7/stat", if times.is_empty() { "" } else { &text });
            history.read(&files, seconds * S, 30 * S, 100);
            history.cores()
        };
        assert_eq!(reading("100 50", 0), None, "one reading does not give a rate");
        assert_eq!(reading("250 100", 1), Some(2.0));
        assert_eq!(reading("250 100", 2), Some(0.0));
        assert_eq!(reading("", 3), None, "it ended");
        assert_eq!(reading("900 0", 7), None, "another process of the same number");
        assert_eq!(reading("950 0", 8), Some(0.5));
    }

    #[test]
    fn processes_with_too_many_threads_are_only_counted() {
        let root = tempfile::tempdir().expect("a directory");
        for tid in 10..90 {
            write(root.path(), &format!("proc/10/task/{tid}/comm"), "t\n");
        }
        let mut history = ProcessHistory::new(10);
        history.read(&Files::recorded(root.path()), 0, 1, 1000);
        assert_eq!((history.threads().count(), history.count), (0, Some(80)));
    }
}
