//! The watch itself: the kernel's answers and the clock on one side, [`Flows`] on the other.

mod live;

use std::collections::{HashMap, HashSet};
use std::io;
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, UNIX_EPOCH};

use landspeed_host::{LiveHost, snapshot};
use landspeed_model::{BuildInfo, HostSnapshot, WATCH_SCHEMA, WatchDocument, WatchFlow, WatchOverhead};
use landspeed_netlink::sock_diag::{SockDiag, SocketFilter};
use landspeed_netlink::{Netlink, NetlinkError};
use landspeed_sys::clock::{monotonic_ns, realtime_ns, sleep_until, thread_cpu_ns};

use crate::document::{Judge, describe, unavailable};
use crate::flows::{Flows, Limits, SampledFlow, ThreadTimes};
use crate::process_cpu::ProcessCpu;
use crate::processes::{Processes, inodes_of, processes_in_cgroup};

pub use live::{FlowGlance, Glance};

/// Busy flows are read so often, nanoseconds.
const PERIOD_NS: u64 = 100_000_000;
/// All sockets are dumped every so many periods.
const DUMP_PERIODS: u64 = 10;
/// A dump that took long is repeated only after this many times its CPU time: it costs a fiftieth of a core at most.
const DUMP_SHARE: u64 = 50;
/// Dumps that fail one after another until the watch gives up.
const MOST_FAILURES: u32 = 5;

/// What to watch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// How much is kept.
    pub limits: Limits,
    /// Conditions the kernel checks.
    pub filter: SocketFilter,
    /// Only this process.
    pub pid: Option<u32>,
    /// Only processes in this control group and below.
    pub cgroup: Option<String>,
    /// Time between two calls of the observer, nanoseconds.
    pub interval_ns: u64,
    /// How long; `None`: until it is stopped, or its process ends.
    pub duration_ns: Option<u64>,
}

/// Which flows a document has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// Every flow that is remembered.
    All,
    /// At most so many of those that are sampled now, the busiest first.
    Running(usize),
    /// The one with this cookie.
    One(u64),
}

/// Why a watch cannot begin or go on.
#[derive(Debug, thiserror::Error)]
pub enum WatchError {
    /// The kernel does not list sockets.
    #[error("cannot list TCP sockets: {0}")]
    Sockets(#[source] NetlinkError),
    /// The process is not there, or its files are not readable.
    #[error("cannot watch process {pid}: {why}")]
    Process {
        /// Its number.
        pid: u32,
        /// What the system says.
        #[source]
        why: io::Error,
    },
    /// The control group is not there.
    #[error("cannot watch control group {path}: {why}")]
    Cgroup {
        /// As it was given.
        path: String,
        /// What the system says.
        #[source]
        why: io::Error,
    },
}

/// A watch of the calling thread's network namespace.
pub struct Watch {
    options: Options,
    diag: SockDiag,
    routes: Option<Netlink>,
    host: LiveHost,
    snapshot: HostSnapshot,
    processes: Processes,
    cpu: ProcessCpu,
    flows: Flows,
    /// Interface that leads to an address.
    interfaces: HashMap<IpAddr, u32>,
    command: Vec<String>,
    started: String,
    start_ns: u64,
    start_cpu_ns: u64,
    next_dump_ns: u64,
    overhead: WatchOverhead,
    failures: u32,
    failure: Option<String>,
}

impl Watch {
    /// Reads everything a first time.
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
            cpu: ProcessCpu::default(),
            flows: Flows::new(options.limits),
            interfaces: HashMap::new(),
            command: std::env::args().collect(),
            started,
            start_ns: monotonic_ns(),
            start_cpu_ns,
            next_dump_ns: 0,
            overhead: WatchOverhead::default(),
            failures: 0,
            failure: None,
            options,
        };
        watch.choose_processes()?;
        watch.dump().map_err(WatchError::Sockets)?;
        Ok(watch)
    }

    /// Watches until the time is over, `stop` is set, or the process that is watched has ended. `each` is called at the end of
    /// each interval.
    pub fn run(&mut self, stop: &AtomicBool, each: &mut dyn FnMut(&mut Self)) -> Result<(), WatchError> {
        let end_ns = self.options.duration_ns.map_or(u64::MAX, |ns| self.start_ns.saturating_add(ns));
        let mut next_ns = self.start_ns + PERIOD_NS;
        let mut next_call_ns = self.start_ns.saturating_add(self.options.interval_ns);
        // Rates are known after a second dump: it follows soon.
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
            self.read_wanted()?;
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
        self.read_wanted()?;
        self.dump_or_retry(monotonic_ns())
    }

    /// With `--pid` or `--cgroup`: the sockets of those processes, now.
    fn choose_processes(&mut self) -> Result<(), WatchError> {
        let mut inodes = HashSet::new();
        if let Some(pid) = self.options.pid {
            inodes.extend(inodes_of(&self.host, pid).map_err(|why| WatchError::Process { pid, why })?);
        }
        if let Some(path) = &self.options.cgroup {
            let processes = processes_in_cgroup(&self.host, path)
                .map_err(|why| WatchError::Cgroup { path: path.clone(), why })?;
            // A process may end between the two readings.
            let sockets = processes.into_iter().filter_map(|pid| inodes_of(&self.host, pid).ok()).flatten();
            let sockets: HashSet<u32> = sockets.collect();
            if self.options.pid.is_some() {
                inodes.retain(|inode| sockets.contains(inode));
            } else {
                inodes = sockets;
            }
        }
        if self.options.pid.is_some() || self.options.cgroup.is_some() {
            self.flows.admit_only(inodes);
        }
        Ok(())
    }

    fn dump_or_retry(&mut self, now_ns: u64) -> Result<(), WatchError> {
        let before_ns = thread_cpu_ns();
        match self.dump() {
            Ok(()) => self.failures = 0,
            Err(why) => {
                self.failures += 1;
                self.failure = Some(format!("a dump failed and was repeated: {why}"));
                if self.failures >= MOST_FAILURES {
                    return Err(WatchError::Sockets(why));
                }
                // What is left of the answer would be taken for the next one's.
                self.diag = SockDiag::open().map_err(WatchError::Sockets)?;
            }
        }
        let took_ns = thread_cpu_ns().saturating_sub(before_ns);
        self.next_dump_ns = now_ns + (DUMP_PERIODS * PERIOD_NS).max(took_ns * DUMP_SHARE);
        Ok(())
    }

    /// Dumps all sockets and finds the processes of the busy ones.
    fn dump(&mut self) -> Result<(), NetlinkError> {
        let now_ns = monotonic_ns().saturating_sub(self.start_ns);
        self.overhead.dumps += 1;
        self.flows.begin_dump(now_ns);
        let flows = &mut self.flows;
        self.diag.dump(&self.options.filter, |socket| flows.dumped(socket))?;
        self.flows.end_dump();
        let inodes: HashSet<u32> = self.flows.sampled().filter(|flow| !flow.ended).map(|flow| flow.inode).collect();
        self.processes.find(&self.host, &inodes, now_ns);
        self.flows.remember_processes(&self.processes);
        let holders = inodes.iter().filter_map(|inode| self.processes.of(*inode).ok());
        self.cpu.read(&self.host, &holders.map(|process| process.pid).collect(), now_ns);
        Ok(())
    }

    /// Reads the busy sockets.
    fn read_wanted(&mut self) -> Result<(), WatchError> {
        let mut threads: HashMap<u32, Option<ThreadTimes>> = HashMap::new();
        for id in self.flows.wanted() {
            let (flows, processes, host) = (&mut self.flows, &self.processes, &self.host);
            let now_ns = monotonic_ns().saturating_sub(self.start_ns);
            let read = self.diag.single(&id, |socket| {
                let pid = processes.of(socket.inode).map_or(0, |process| process.pid);
                let thread = *threads.entry(pid).or_insert_with(|| processes.thread_times(host, socket.inode));
                flows.read(now_ns, socket, thread);
            });
            match read {
                Ok(Some(())) => self.overhead.readings += 1,
                Ok(None) => self.flows.gone(&id),
                // The next dump says whether the kernel still answers.
                Err(_) => self.diag = SockDiag::open().map_err(WatchError::Sockets)?,
            }
        }
        Ok(())
    }

    /// How many flows are being sampled.
    pub fn busy(&self) -> usize {
        self.flows.sampled().filter(|flow| flow.is_wanted()).count()
    }

    /// What is known now, each flow judged. With `Scope::Running` only the busiest flows that are being sampled.
    pub fn document(&mut self, judge: Judge<'_>, scope: Scope) -> WatchDocument {
        let mut chosen: Vec<&SampledFlow> = match scope {
            Scope::All => self.flows.sampled().collect(),
            Scope::Running(_) => self.flows.sampled().filter(|flow| flow.is_wanted()).collect(),
            Scope::One(cookie) => self.flows.flow(cookie).into_iter().collect(),
        };
        if let Scope::Running(most) = scope {
            chosen.sort_by_key(|flow| (std::cmp::Reverse(flow.moved_lately()), flow.id.cookie()));
            chosen.truncate(most);
        }
        let mut flows: Vec<(WatchFlow, u64)> = Vec::new();
        for flow in chosen {
            let host = host_towards(
                &self.snapshot,
                flow.id.remote().ip(),
                &mut self.interfaces,
                self.routes.as_mut(),
                self.options.limits.top,
            );
            let process = match &flow.process {
                Some(process) if flow.ended => Ok(process),
                _ => self.processes.of(flow.inode),
            };
            flows.push((describe(flow, process, &host, judge), flow.moved()));
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
        let flows = self.with_past(flows.into_iter().map(|(flow, _)| flow).collect(), scope);
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
            unavailable: unavailable(&self.snapshot, self.processes.denied(), self.failure.as_deref()),
        }
    }
}

/// This host, with its interface only if packets to `remote` leave by it.
fn host_towards(
    snapshot: &HostSnapshot,
    remote: IpAddr,
    interfaces: &mut HashMap<IpAddr, u32>,
    routes: Option<&mut Netlink>,
    top: usize,
) -> HostSnapshot {
    // Addresses of flows that are gone are not kept for ever.
    if interfaces.len() > top.saturating_mul(8) {
        interfaces.clear();
    }
    let interface = *interfaces.entry(remote).or_insert_with(|| {
        let route = routes.and_then(|routes| routes.route((remote, 0).into()).ok());
        route.map_or(0, |route| route.out_ifindex)
    });
    let mut host = snapshot.clone();
    host.nic = host.nic.filter(|nic| nic.ifindex == interface);
    host
}
