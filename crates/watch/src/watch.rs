//! The watch: connects the kernel's data and the clock to [`Flows`].

mod live;

use std::collections::{HashMap, HashSet};
use std::io;
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, UNIX_EPOCH};

use landspeed_host::{LiveHost, snapshot};
use landspeed_model::{BufferLocks, BuildInfo, HostSnapshot, WATCH_SCHEMA, WatchDocument, WatchFlow, WatchOverhead};
use landspeed_netlink::sock_diag::{Detail, SockDiag, SocketFilter, SocketId, TcpSocket};
use landspeed_netlink::{Netlink, NetlinkError};
use landspeed_sys::clock::{monotonic_ns, realtime_ns, sleep_until, thread_cpu_ns};

use crate::beside::HostMonitor;
use crate::document::{JudgeFn, describe, unavailable};
use crate::flows::{Flows, Limits, SampledFlow, ThreadTimes};
use crate::processes::{Processes, inodes_of, processes_in_cgroup};
use crate::tracepoints::Tracepoints;

pub use live::{FlowStatus, LiveStatus};

/// Sampling interval of busy flows, nanoseconds.
const PERIOD_NS: u64 = 100_000_000;
/// Number of sampling intervals between two dumps of all sockets.
const DUMP_PERIODS: u64 = 10;
/// Minimum interval between dumps, as a multiple of a dump's CPU time: at most 1/50 of a core.
const DUMP_SHARE: u64 = 50;
/// Number of consecutive failed dumps after which the watch ends.
const MAX_FAILURES: u32 = 5;

/// Options of a watch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// Limits of the stored data.
    pub limits: Limits,
    /// Socket filter applied by the kernel.
    pub filter: SocketFilter,
    /// Restriction to this process.
    pub pid: Option<u32>,
    /// Restriction to processes in this cgroup and its descendants.
    pub cgroup: Option<String>,
    /// Whether to count retransmits and drops with the kernel's tracepoints.
    pub tracepoints: bool,
    /// Interval between two calls of the observer, nanoseconds.
    pub interval_ns: u64,
    /// Duration, nanoseconds; `None` until stopped, or until the watched process ends.
    pub duration_ns: Option<u64>,
}

/// Flows to include in a document.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// Every stored flow.
    All,
    /// At most this many of the flows being sampled, busiest first.
    Running(usize),
    /// The flow with this cookie.
    One(u64),
}

/// Reason why a watch cannot start or continue.
#[derive(Debug, thiserror::Error)]
pub enum WatchError {
    /// The kernel cannot list sockets.
    #[error("cannot list TCP sockets: {0}")]
    Sockets(#[source] NetlinkError),
    /// The process does not exist, or its files cannot be read.
    #[error("cannot watch process {pid}: {why}")]
    Process {
        /// Process to watch.
        pid: u32,
        /// Error of the operating system.
        #[source]
        why: io::Error,
    },
    /// The cgroup does not exist.
    #[error("cannot watch control group {path}: {why}")]
    Cgroup {
        /// Path as given.
        path: String,
        /// Error of the operating system.
        #[source]
        why: io::Error,
    },
}

/// A watch of the TCP flows in the calling thread's network namespace.
pub struct Watch {
    options: Options,
    diag: SockDiag,
    routes: Option<Netlink>,
    host: LiveHost,
    snapshot: HostSnapshot,
    processes: Processes,
    flows: Flows,
    /// Index of the outgoing interface, by remote address.
    interfaces: HashMap<IpAddr, u32>,
    beside: HostMonitor,
    tracepoints: Result<Tracepoints, String>,
    command: Vec<String>,
    started: String,
    start_ns: u64,
    start_cpu_ns: u64,
    next_dump_ns: u64,
    costs: ReadingCosts,
    overhead: WatchOverhead,
    /// Start of the last dump that succeeded, nanoseconds after the start.
    last_dump_ns: u64,
    failures: DumpFailures,
}

/// Failed dumps: those since the last one that succeeded, and why the last one failed.
#[derive(Debug, Default)]
struct DumpFailures {
    consecutive: u32,
    last: Option<String>,
}

impl DumpFailures {
    fn add(&mut self, why: &NetlinkError) {
        self.consecutive += 1;
        self.last = Some(format!("a dump failed and was repeated: {why}"));
    }

    /// Returns the failure that concerns a document: of the whole watch any, of the present state only one that lasts.
    fn of(&self, scope: Scope) -> Option<&str> {
        self.last.as_deref().filter(|_| scope == Scope::All || self.consecutive > 0)
    }
}

impl Watch {
    /// Starts a watch with a first dump.
    pub fn open(options: Options) -> Result<Self, WatchError> {
        let start_cpu_ns = thread_cpu_ns();
        let diag = SockDiag::open().map_err(WatchError::Sockets)?;
        let started = humantime::format_rfc3339_seconds(UNIX_EPOCH + Duration::from_nanos(realtime_ns())).to_string();
        let mut watch = Self {
            diag,
            routes: Netlink::open().ok(),
            host: LiveHost::new(),
            snapshot: snapshot(None),
            processes: Processes::default(),
            flows: Flows::new(options.limits),
            interfaces: HashMap::new(),
            beside: HostMonitor::new(options.limits.window_ns),
            tracepoints: if options.tracepoints {
                Tracepoints::open()
            } else {
                Err("not asked for: --tracepoints counts retransmits and drops by reason (root)".to_owned())
            },
            command: landspeed_sys::process::command_line(),
            started,
            start_ns: monotonic_ns(),
            start_cpu_ns,
            next_dump_ns: 0,
            costs: ReadingCosts::default(),
            overhead: WatchOverhead::default(),
            last_dump_ns: 0,
            failures: DumpFailures::default(),
            options,
        };
        watch.choose_processes()?;
        watch.dump().map_err(WatchError::Sockets)?;
        Ok(watch)
    }

    /// Watches until the duration has passed, `stop` is set, or the watched process has ended. Calls `each` at the
    /// end of each interval.
    pub fn run(&mut self, stop: &AtomicBool, each: &mut dyn FnMut(&mut Self)) -> Result<(), WatchError> {
        let end_ns = self.options.duration_ns.map_or(u64::MAX, |ns| self.start_ns.saturating_add(ns));
        let mut next_ns = self.start_ns + PERIOD_NS;
        let mut next_call_ns = self.start_ns.saturating_add(self.options.interval_ns);
        // Rates need a second dump, so it follows soon.
        self.next_dump_ns = next_ns;
        while !stop.load(Ordering::Relaxed) {
            sleep_until(next_ns.min(end_ns));
            let now_ns = monotonic_ns();
            if now_ns >= end_ns {
                break;
            }
            if now_ns >= self.next_dump_ns {
                match self.choose_processes() {
                    Err(WatchError::Process { .. }) => break,
                    other => other?,
                }
                self.dump_or_retry(now_ns)?;
            }
            self.sample_flows()?;
            self.beside.sample_states();
            if now_ns >= next_call_ns {
                each(self);
                next_call_ns = now_ns.max(next_call_ns + self.options.interval_ns);
            }
            next_ns += PERIOD_NS;
            let late_ns = monotonic_ns().saturating_sub(next_ns);
            if late_ns > PERIOD_NS {
                self.overhead.late += 1;
                next_ns += late_ns / PERIOD_NS * PERIOD_NS;
            }
        }
        self.sample_flows()?;
        self.dump_or_retry(monotonic_ns())
    }

    /// With `--pid` or `--cgroup`, restricts the watch to the current sockets of those processes.
    fn choose_processes(&mut self) -> Result<(), WatchError> {
        let mut inodes = HashSet::new();
        if let Some(pid) = self.options.pid {
            inodes.extend(inodes_of(&self.host, pid).map_err(|why| WatchError::Process { pid, why })?);
        }
        if let Some(path) = &self.options.cgroup {
            let processes = processes_in_cgroup(&self.host, path)
                .map_err(|why| WatchError::Cgroup { path: path.clone(), why })?;
            // A process may have ended since the cgroup was read.
            let sockets = processes.into_iter().filter_map(|pid| inodes_of(&self.host, pid).ok()).flatten();
            let sockets: HashSet<u32> = sockets.collect();
            if self.options.pid.is_some() {
                inodes.retain(|inode| sockets.contains(inode));
            } else {
                inodes = sockets;
            }
        }
        if self.options.pid.is_some() || self.options.cgroup.is_some() {
            self.flows.restrict_to(inodes);
        }
        Ok(())
    }

    fn dump_or_retry(&mut self, now_ns: u64) -> Result<(), WatchError> {
        let before_ns = thread_cpu_ns();
        match self.dump() {
            Ok(()) => self.failures.consecutive = 0,
            Err(why) => {
                self.failures.add(&why);
                if self.failures.consecutive >= MAX_FAILURES {
                    return Err(WatchError::Sockets(why));
                }
                // The rest of a failed response would be taken as part of the next one.
                self.diag = SockDiag::open().map_err(WatchError::Sockets)?;
            }
        }
        let took_ns = thread_cpu_ns().saturating_sub(before_ns);
        self.next_dump_ns = now_ns + (DUMP_PERIODS * PERIOD_NS).max(took_ns * DUMP_SHARE);
        Ok(())
    }

    /// Dumps all sockets, and finds the processes of the busy ones.
    fn dump(&mut self) -> Result<(), NetlinkError> {
        let now_ns = monotonic_ns().saturating_sub(self.start_ns);
        self.flows.begin_dump(now_ns);
        let flows = &mut self.flows;
        let before_ns = thread_cpu_ns();
        self.diag.dump(&self.options.filter, Detail::Counters, |socket| flows.dumped(socket))?;
        self.costs.dump_ns = thread_cpu_ns().saturating_sub(before_ns);
        self.flows.end_dump();
        self.overhead.dumps += 1;
        self.last_dump_ns = now_ns;
        let inodes: HashSet<u32> = self.flows.sampled().filter(|flow| !flow.ended).map(|flow| flow.inode).collect();
        self.processes.find(&self.host, &inodes, now_ns);
        self.flows.remember_processes(&self.processes);
        self.read_host_counters();
        Ok(())
    }

    /// Reads the counters of the processes, interfaces and filters of busy flows. Stores the known activity with
    /// flows that are no longer sampled.
    fn read_host_counters(&mut self) {
        let (mut pids, mut interfaces) = (HashSet::new(), HashSet::new());
        for (remote, inode) in
            self.flows.sampled().filter(|flow| flow.is_wanted()).map(|f| (f.id.remote().ip(), f.inode))
        {
            pids.extend(self.processes.of(inode).map(|process| process.pid));
            let index =
                interface_towards(remote, &mut self.interfaces, self.routes.as_mut(), self.options.limits.top);
            interfaces.extend((index != 0).then_some(index));
        }
        let (beside, known, processes) = (&self.beside, &self.interfaces, &self.processes);
        self.flows.store_host_activity(|flow| {
            let index = known.get(&flow.id.remote().ip()).copied().unwrap_or(0);
            let holder = flow.process.as_ref().map(|process| (process.pid, processes.descriptor(flow.inode)));
            beside.of(holder, index, flow.span_ns())
        });
        let filtered = self.tracepoints.as_mut().ok().map(|tracepoints| {
            tracepoints.take();
            tracepoints.filtered()
        });
        let start_ns = self.start_ns;
        self.beside.read(&|| monotonic_ns().saturating_sub(start_ns), &pids, &interfaces, filtered);
    }

    /// Samples the busy sockets: one by one, or all with a dump if most sockets are busy, which is cheaper.
    fn sample_flows(&mut self) -> Result<(), WatchError> {
        let mut wanted = self.flows.wanted();
        if wanted.is_empty() {
            return Ok(());
        }
        let now_ns = monotonic_ns().saturating_sub(self.start_ns);
        let mut threads: HashMap<u32, Option<ThreadTimes>> = HashMap::new();
        let (flows, processes, beside) = (&mut self.flows, &self.processes, &self.beside);
        let mut read = |now_ns: u64, socket: &TcpSocket<'_>| {
            let pid = processes.of(socket.inode).map_or(0, |process| process.pid);
            let thread = *threads.entry(pid).or_insert_with(|| beside.thread_times(pid));
            flows.read(now_ns, socket, thread);
        };
        let mut broken = false;
        let before_ns = thread_cpu_ns();
        if self.costs.prefer_dump(wanted.len()) {
            let ids: HashMap<u64, SocketId> = wanted.drain(..).map(|id| (id.cookie(), id)).collect();
            let mut seen = HashSet::with_capacity(ids.len());
            let dumped = self.diag.dump(&self.options.filter, Detail::Full, |socket| {
                if ids.contains_key(&socket.id.cookie()) && seen.insert(socket.id.cookie()) {
                    read(now_ns, socket);
                }
            });
            self.costs.dump_ns = thread_cpu_ns().saturating_sub(before_ns);
            self.overhead.readings += seen.len() as u64;
            broken = dumped.is_err();
            if !broken {
                for id in ids.iter().filter(|(cookie, _)| !seen.contains(*cookie)).map(|(_, id)| id) {
                    self.flows.gone(id);
                }
            }
        } else {
            let mut gone = Vec::new();
            let count = wanted.len() as u64;
            for id in wanted {
                let now_ns = monotonic_ns().saturating_sub(self.start_ns);
                match self.diag.single(&id, |socket| read(now_ns, socket)) {
                    Ok(Some(())) => self.overhead.readings += 1,
                    Ok(None) => gone.push(id),
                    Err(_) => broken = true,
                }
                if broken {
                    break;
                }
            }
            self.costs.reading_ns = thread_cpu_ns().saturating_sub(before_ns) / count;
            for id in &gone {
                self.flows.gone(id);
            }
        }
        if broken {
            // The next dump shows whether the kernel still responds.
            self.diag = SockDiag::open().map_err(WatchError::Sockets)?;
        }
        Ok(())
    }

    /// Number of flows being sampled.
    pub fn busy(&self) -> usize {
        self.flows.sampled().filter(|flow| flow.is_wanted()).count()
    }

    /// Returns a document with the current state, each flow with a verdict. `Scope::Running` includes only the
    /// busiest flows being sampled.
    pub fn document(&mut self, judge: JudgeFn<'_>, scope: Scope) -> WatchDocument {
        let mut chosen: Vec<&SampledFlow> = match scope {
            Scope::All => self.flows.sampled().collect(),
            Scope::Running(_) => self.flows.sampled().filter(|flow| flow.is_wanted()).collect(),
            Scope::One(cookie) => self.flows.flow(cookie).into_iter().collect(),
        };
        if let Scope::Running(most) = scope {
            chosen.sort_by_key(|flow| (std::cmp::Reverse(flow.recent_bytes()), flow.id.cookie()));
            chosen.truncate(most);
        }
        let mut flows: Vec<(WatchFlow, u64)> = Vec::new();
        for flow in chosen {
            let remote = flow.id.remote().ip();
            let index =
                interface_towards(remote, &mut self.interfaces, self.routes.as_mut(), self.options.limits.top);
            let mut host = self.snapshot.clone();
            host.nic = host.nic.filter(|nic| nic.ifindex == index);
            let process = match &flow.process {
                Some(process) if flow.ended || flow.inode == 0 => Ok(process),
                _ => self.processes.of(flow.inode),
            };
            let (mut beside, series) = if let Some(kept) = &flow.beside {
                (**kept).clone()
            } else {
                let holder = process.ok().map(|process| (process.pid, self.processes.descriptor(flow.inode)));
                self.beside.of(holder, index, flow.span_ns())
            };
            if flow.is_wanted() {
                let options = self.processes.options(flow.inode, flow.id.cookie());
                beside.receive_cpu = options.and_then(|options| options.incoming_cpu);
                let locks = options.and_then(|options| options.buffer_locks);
                beside.buffer_locks = locks.map(|(receive, send)| BufferLocks { receive, send });
            }
            flows.push((describe(flow, process, &host, (beside, series), judge), flow.moved()));
        }
        flows.sort_by(|(a, moved_a), (b, moved_b)| moved_b.cmp(moved_a).then_with(|| a.cookie.cmp(&b.cookie)));
        let mut sockets = self.flows.counts();
        let mut room = [self.options.limits.top; 2];
        flows.retain(|(flow, _)| {
            let room = &mut room[usize::from(flow.ended)];
            let kept = *room > 0;
            *room = room.saturating_sub(1);
            sockets.ended_unlisted += u64::from(flow.ended && !kept);
            kept
        });
        let flows = self.with_history(flows.into_iter().map(|(flow, _)| flow).collect(), scope);
        let mut unavailable = unavailable(&self.snapshot, self.processes.denied(), self.failures.of(scope));
        if let Err(why) = &self.tracepoints {
            unavailable.insert("tracepoints".into(), why.clone());
        }
        if !self.beside.has_nft() {
            unavailable
                .insert("nft".into(), "drops of nft rules are not counted: that needs root, and nftables".into());
        }
        let wall_ns = monotonic_ns().saturating_sub(self.start_ns).max(1);
        let cpu_ns = thread_cpu_ns().saturating_sub(self.start_cpu_ns);
        WatchDocument {
            schema: WATCH_SCHEMA.to_owned(),
            landspeed: BuildInfo { version: env!("CARGO_PKG_VERSION").to_owned(), server_version: None },
            started: self.started.clone(),
            command: self.command.clone(),
            hostname: self.snapshot.hostname.clone(),
            kernel_release: self.snapshot.kernel_release.clone(),
            duration_ns: wall_ns,
            flows,
            sockets,
            overhead: WatchOverhead { cpu_share: cpu_ns as f64 / wall_ns as f64, cpu_ns, wall_ns, ..self.overhead },
            events: self.tracepoints.as_ref().ok().map(|tracepoints| tracepoints.counted().clone()),
            unavailable,
        }
    }
}

/// CPU time of the last readings. A dump walks all sockets of the network namespace, however few match the filter or
/// belong to the watched processes.
#[derive(Debug, Clone, Copy, Default)]
struct ReadingCosts {
    /// Time of a dump, nanoseconds.
    dump_ns: u64,
    /// Time of a request for one socket, nanoseconds; 0 before the first.
    reading_ns: u64,
}

impl ReadingCosts {
    /// Whether a dump is cheaper than single requests for `wanted` sockets.
    fn prefer_dump(self, wanted: usize) -> bool {
        self.reading_ns.saturating_mul(wanted as u64) > self.dump_ns
    }
}

/// Index of the outgoing interface for packets to `remote`; 0 if unknown.
fn interface_towards(
    remote: IpAddr,
    interfaces: &mut HashMap<IpAddr, u32>,
    routes: Option<&mut Netlink>,
    top: usize,
) -> u32 {
    // Limits the addresses of past flows.
    if interfaces.len() > top.saturating_mul(8) {
        interfaces.clear();
    }
    *interfaces.entry(remote).or_insert_with(|| {
        let route = routes.and_then(|routes| routes.route((remote, 0).into()).ok());
        route.map_or(0, |route| route.out_ifindex)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_repaired_dump_is_only_in_the_final_document() {
        let mut failures = DumpFailures::default();
        let cause = landspeed_netlink::Cause::Interrupted;
        failures.add(&NetlinkError { operation: "socket dump", object: "TCP".to_owned(), cause });
        let running = Scope::Running(10);
        assert!(failures.of(running).is_some() && failures.of(Scope::All).is_some());
        failures.consecutive = 0;
        assert!(failures.of(running).is_none() && failures.of(Scope::All).is_some());
    }

    #[test]
    fn sockets_are_dumped_only_if_that_is_cheaper_than_single_requests() {
        assert!(!ReadingCosts::default().prefer_dump(100), "the first readings are single requests");
        // Two sockets of a filter among 10,000 others, which the kernel walks as well.
        let among_many = ReadingCosts { dump_ns: 5_000_000, reading_ns: 3000 };
        assert!(!among_many.prefer_dump(2) && !among_many.prefer_dump(1000));
        let nearly_alone = ReadingCosts { dump_ns: 100_000, reading_ns: 3000 };
        assert!(!nearly_alone.prefer_dump(20) && nearly_alone.prefer_dump(100));
    }
}
