//! State of the flows: which ones exist, which are busy, and the recent samples of busy ones.
//!
//! Time is passed as an argument: nanoseconds after the start of the watch. Memory is bounded by the number of
//! sockets in three dumps (about 100 bytes each) and by [`Limits`], however many connections come and go.

use std::collections::{HashMap, HashSet, VecDeque};

use landspeed_model::{CongestionDetail, HostSeries, Sample, TcpInfo, WatchHost, WatchSockets};
use landspeed_netlink::sock_diag::{SocketId, TcpSocket};

use crate::history::History;
use crate::processes::{Process, Processes};

/// Time for which a flow is sampled after it was last among the busiest, nanoseconds.
const KEEP_NS: u64 = 10_000_000_000;
/// `TCP_ESTABLISHED` (net/tcp_states.h).
const ESTABLISHED: u8 = 1;
/// Number of stored flows, as a multiple of those sampled; includes idle and ended ones.
const STORED_FLOWS_FACTOR: usize = 4;

/// Limits of the stored data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Maximum number of flows sampled at a time.
    pub top: usize,
    /// Maximum age of samples, nanoseconds.
    pub window_ns: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self { top: 100, window_ns: 30_000_000_000 }
    }
}

/// CPU time of the thread that serves a flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ThreadTimes {
    /// Process of the thread, which is its only one.
    pub pid: u32,
    /// Time on a core, nanoseconds.
    pub cpu_ns: u64,
    /// Time runnable without a core (run-queue wait), nanoseconds.
    pub wait_ns: u64,
}

/// Counters of a connection since its start.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Counters {
    pub(crate) acked: u64,
    pub(crate) received: u64,
    pub(crate) retransmits: u32,
}

impl Counters {
    fn of(tcp_info: &[u8]) -> Self {
        let (acked, received, retransmits) = TcpInfo::moved(tcp_info);
        Self { acked, received, retransmits }
    }

    fn moved_since(self, earlier: Self) -> u64 {
        self.acked.saturating_sub(earlier.acked).saturating_add(self.received.saturating_sub(earlier.received))
    }
}

/// Payload and retransmits of all connections while they were watched, from dump to dump.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct MovedTotals {
    /// Payload bytes sent and acknowledged.
    pub acked_bytes: u64,
    /// Payload bytes received.
    pub received_bytes: u64,
    /// Segments retransmitted.
    pub retransmits: u64,
}

/// Length of `struct tcp_info` with the fields of [`Counters`] (Linux 4.1), bytes.
const COUNTERS_END: usize = 136;

/// State of a socket between two dumps. Sockets that are not admitted have one too: when their process is admitted
/// later, only what they move from then on counts.
#[derive(Debug)]
struct KnownSocket {
    /// The last dump with the socket.
    dump: u64,
    /// The last dump with the socket in which it was admitted; 0 before.
    admitted: u64,
    /// Whether it is counted as ended. A socket that only one dump lacked stays counted, because the count must not fall.
    ended: bool,
    /// Counters before the first observation, and its time.
    first: Counters,
    first_ns: u64,
    last: Counters,
}

/// A flow that is or was among the busiest.
#[derive(Debug)]
pub struct SampledFlow {
    /// Identity of the socket.
    pub id: SocketId,
    /// Inode of the socket; 0 if its process closed it before all data was acknowledged.
    pub inode: u32,
    /// User id of the socket's creator.
    pub uid: u32,
    /// Name of the congestion control algorithm; empty if unknown.
    pub congestion: String,
    /// Whether the socket no longer exists.
    pub ended: bool,
    /// Time of the first and the last observation, nanoseconds after the start.
    pub seen_ns: (u64, u64),
    pub(crate) first: Counters,
    pub(crate) last: Counters,
    /// Recent samples, not older than [`Limits::window_ns`]. Counters are the kernel's, since the start of the
    /// connection.
    pub samples: VecDeque<Sample>,
    /// Condensed history before these samples.
    pub(crate) history: History,
    /// Time when it was last among the busiest; `None` if it is not sampled.
    wanted_ns: Option<u64>,
    /// Process whose thread times are in the samples.
    pid: Option<u32>,
    /// Process that held the socket when it was last searched.
    pub(crate) process: Option<Process>,
    /// Activity of the host during the flow, for a flow that is no longer sampled.
    pub(crate) beside: Option<Box<(WatchHost, HostSeries)>>,
}

impl SampledFlow {
    /// Bytes acknowledged and received since the first observation.
    pub fn moved(&self) -> u64 {
        self.last.moved_since(self.first)
    }

    /// Bytes acknowledged and received between the first and the last stored sample.
    pub fn recent_bytes(&self) -> u64 {
        let bytes = |sample: Option<&Sample>| {
            let tcp = sample.and_then(|sample| sample.tcp.as_deref());
            tcp.map_or(0, |tcp| tcp.bytes_acked.unwrap_or(0).saturating_add(tcp.bytes_received.unwrap_or(0)))
        };
        bytes(self.samples.back()).saturating_sub(bytes(self.samples.front()))
    }

    /// Time of the first and the last stored sample, nanoseconds after the start.
    pub(crate) fn span_ns(&self) -> (u64, u64) {
        let at = |sample: Option<&Sample>| sample.map_or(0, |sample| sample.t_ns);
        (at(self.samples.front()), at(self.samples.back()))
    }

    /// Whether the flow is being sampled.
    pub fn is_wanted(&self) -> bool {
        self.wanted_ns.is_some()
    }
}

/// State of all flows.
#[derive(Debug)]
pub struct Flows {
    limits: Limits,
    /// Restriction to sockets with these inodes; `None` for all.
    admitted: Option<HashSet<u32>>,
    known: HashMap<u64, KnownSocket>,
    sampled: HashMap<u64, SampledFlow>,
    counts: WatchSockets,
    totals: MovedTotals,
    /// Whether the kernel does not report all counters of [`MovedTotals`].
    totals_unknown: bool,
    dump: u64,
    now: u64,
    now_ns: u64,
    /// Sockets of the current dump that transferred data: bytes, identity, inode, user id.
    candidates: Vec<(u64, SocketId, u32, u32)>,
}

impl Flows {
    /// Stores the process of each flow, because it can no longer be found once the socket is closed.
    pub(crate) fn remember_processes(&mut self, processes: &Processes) {
        for flow in self.sampled.values_mut().filter(|flow| !flow.ended) {
            if let Ok(process) = processes.of(flow.inode)
                && flow.process.as_ref() != Some(process)
            {
                flow.process = Some(process.clone());
            }
        }
    }

    /// Creates the state without flows.
    pub fn new(limits: Limits) -> Self {
        Self {
            limits,
            admitted: None,
            known: HashMap::new(),
            sampled: HashMap::new(),
            counts: WatchSockets::default(),
            totals: MovedTotals::default(),
            totals_unknown: false,
            dump: 0,
            now: 0,
            now_ns: 0,
            candidates: Vec::new(),
        }
    }

    /// Restricts later dumps to sockets with these inodes.
    pub fn restrict_to(&mut self, inodes: HashSet<u32>) {
        self.admitted = Some(inodes);
    }

    /// Starts a dump of all sockets.
    pub fn begin_dump(&mut self, now_ns: u64) {
        self.dump += 1;
        self.now = 0;
        self.now_ns = now_ns;
        self.candidates.clear();
    }

    /// Handles one socket of a dump.
    pub fn dumped(&mut self, socket: &TcpSocket<'_>) {
        if is_closed(socket) {
            return;
        }
        let counters = Counters::of(socket.tcp_info);
        let waits = u64::from(socket.receive_queue_bytes > 0 || socket.send_queue_bytes > 0);
        let (dump, now_ns) = (self.dump, self.now_ns);
        let known = self.known.entry(socket.id.cookie()).or_insert_with(|| {
            // Bytes transferred before the first dump may be old; those of a connection that is new in a later dump are
            // recent.
            let last = if dump > 1 { Counters::default() } else { counters };
            KnownSocket { dump, admitted: 0, ended: false, first: last, first_ns: now_ns, last }
        });
        known.dump = dump;
        let before = std::mem::replace(&mut known.last, counters);
        if self.admitted.as_ref().is_some_and(|inodes| !inodes.contains(&socket.inode)) {
            return;
        }
        self.now += 1;
        if known.admitted == 0 {
            self.counts.seen += 1;
            (known.first, known.first_ns) = (before, now_ns);
        }
        known.admitted = dump;
        // Queued data without progress counts as one byte.
        // A FIN counts as a byte, received or acknowledged.
        let fins = if socket.state == ESTABLISHED { 0 } else { 2 };
        let moved = counters.moved_since(before).saturating_sub(fins).max(waits);
        self.totals_unknown |= socket.tcp_info.len() < COUNTERS_END;
        self.totals.acked_bytes += counters.acked.saturating_sub(before.acked);
        self.totals.received_bytes += counters.received.saturating_sub(before.received);
        self.totals.retransmits += u64::from(counters.retransmits.saturating_sub(before.retransmits));
        if moved > 0 {
            self.candidates.push((moved, socket.id, socket.inode, socket.uid));
        }
    }

    /// Ends a dump: removes sockets that two dumps lacked, and starts to sample the busiest flows.
    pub fn end_dump(&mut self) {
        let (dump, now_ns, top) = (self.dump, self.now_ns, self.limits.top);
        let counts = &mut self.counts;
        self.known.retain(|_, known| {
            if known.admitted != 0 && known.admitted != dump && !known.ended {
                known.ended = true;
                counts.ended += 1;
            }
            known.dump + 1 >= dump
        });
        self.counts.now = self.now;
        self.counts.most = self.counts.most.max(self.now);
        for (cookie, flow) in &mut self.sampled {
            match self.known.get(cookie).filter(|known| known.admitted == dump) {
                Some(known) => {
                    flow.ended = false;
                    flow.seen_ns.1 = now_ns;
                    flow.last = known.last;
                }
                None => end(flow),
            }
        }
        let mut busiest = std::mem::take(&mut self.candidates);
        busiest.sort_unstable_by(|a, b| b.0.cmp(&a.0).then(a.1.cookie().cmp(&b.1.cookie())));
        busiest.truncate(top);
        for &(_, id, inode, uid) in &busiest {
            self.mark_wanted(id, inode, uid);
        }
        self.candidates = busiest;
        self.stop_idle();
    }

    fn mark_wanted(&mut self, id: SocketId, inode: u32, uid: u32) {
        let (cookie, now_ns) = (id.cookie(), self.now_ns);
        if let Some(flow) = self.sampled.get_mut(&cookie) {
            flow.wanted_ns = Some(now_ns);
            flow.inode = inode;
            return;
        }
        if self.sampled.len() >= STORED_FLOWS_FACTOR * self.limits.top && !self.remove_smallest() {
            return;
        }
        let Some(known) = self.known.get(&cookie) else { return };
        let flow = SampledFlow {
            id,
            inode,
            uid,
            congestion: String::new(),
            ended: false,
            seen_ns: (known.first_ns, now_ns),
            first: known.first,
            last: known.last,
            samples: VecDeque::new(),
            history: History::default(),
            wanted_ns: Some(now_ns),
            pid: None,
            process: None,
            beside: None,
        };
        self.sampled.insert(cookie, flow);
    }

    /// Stops sampling flows that have been idle for long, and the longest idle ones beyond the limit.
    fn stop_idle(&mut self) {
        let now_ns = self.now_ns;
        let mut wanted: Vec<(u64, u64)> =
            self.sampled.iter().filter_map(|(cookie, flow)| Some((flow.wanted_ns?, *cookie))).collect();
        wanted.sort_unstable_by_key(|&(wanted_ns, cookie)| (std::cmp::Reverse(wanted_ns), cookie));
        for (place, (wanted_ns, cookie)) in wanted.into_iter().enumerate() {
            if (place >= self.limits.top || now_ns.saturating_sub(wanted_ns) > KEEP_NS)
                && let Some(flow) = self.sampled.get_mut(&cookie)
            {
                flow.wanted_ns = None;
            }
        }
    }

    /// Removes the flow that transferred least among those not sampled; returns whether there was one.
    fn remove_smallest(&mut self) -> bool {
        let resting = self.sampled.iter().filter(|(_, flow)| flow.wanted_ns.is_none());
        let smallest = resting.min_by_key(|(cookie, flow)| (flow.moved(), **cookie)).map(|(cookie, _)| *cookie);
        let Some(flow) = smallest.and_then(|cookie| self.sampled.remove(&cookie)) else { return false };
        self.counts.ended_unlisted += u64::from(flow.ended);
        true
    }

    /// Identities of the sockets to sample.
    pub fn wanted(&self) -> Vec<SocketId> {
        self.sampled.values().filter(|flow| flow.wanted_ns.is_some()).map(|flow| flow.id).collect()
    }

    /// Adds a sample of a socket in [`Self::wanted`].
    pub fn read(&mut self, now_ns: u64, socket: &TcpSocket<'_>, thread: Option<ThreadTimes>) {
        let Some(flow) = self.sampled.get_mut(&socket.id.cookie()).filter(|flow| !flow.ended) else { return };
        if is_closed(socket) {
            end(flow);
            return;
        }
        flow.seen_ns.1 = flow.seen_ns.1.max(now_ns);
        flow.last = Counters::of(socket.tcp_info);
        flow.inode = socket.inode;
        if flow.congestion != socket.congestion {
            socket.congestion.clone_into(&mut flow.congestion);
        }
        if flow.samples.back().is_some_and(|last| now_ns <= last.t_ns) {
            return;
        }
        // The CPU clock of another thread is not comparable.
        let pid = thread.map(|thread| thread.pid);
        if std::mem::replace(&mut flow.pid, pid) != pid {
            for earlier in &mut flow.samples {
                (earlier.thread_cpu_ns, earlier.thread_wait_ns) = (None, None);
            }
        }
        let sample = sample(now_ns, socket, thread);
        flow.history.push(&sample);
        flow.samples.push_back(sample);
        let oldest_ns = now_ns.saturating_sub(self.limits.window_ns);
        while flow.samples.front().is_some_and(|sample| sample.t_ns < oldest_ns) {
            flow.samples.pop_front();
        }
    }

    /// Marks a socket of [`Self::wanted`] as ended.
    pub fn gone(&mut self, id: &SocketId) {
        if let Some(flow) = self.sampled.get_mut(&id.cookie()) {
            end(flow);
        }
    }

    /// All flows that are or were among the busiest.
    pub fn sampled(&self) -> impl Iterator<Item = &SampledFlow> {
        self.sampled.values()
    }

    /// Stores the result of `of` with each flow that is no longer sampled.
    pub(crate) fn store_host_activity(&mut self, of: impl Fn(&SampledFlow) -> (WatchHost, HostSeries)) {
        for flow in self.sampled.values_mut() {
            if flow.is_wanted() {
                flow.beside = None;
            } else if flow.beside.is_none() {
                flow.beside = Some(Box::new(of(flow)));
            }
        }
    }

    /// A flow of [`Self::sampled`], by its cookie.
    pub(crate) fn flow(&self, cookie: u64) -> Option<&SampledFlow> {
        self.sampled.get(&cookie)
    }

    /// The same, mutable.
    pub(crate) fn flow_mut(&mut self, cookie: u64) -> Option<&mut SampledFlow> {
        self.sampled.get_mut(&cookie)
    }

    /// Numbers of sockets, current and past.
    pub fn counts(&self) -> WatchSockets {
        self.counts
    }

    /// Payload and retransmits of all connections until the last dump; `None` if the kernel does not report them. Those of
    /// a connection between the last dump and its end are missing.
    pub fn totals(&self) -> Option<MovedTotals> {
        (!self.totals_unknown).then_some(self.totals)
    }
}

/// Whether the kernel keeps only a minisocket of a closed connection, in TIME-WAIT or FIN-WAIT-2: it has the cookie of
/// the socket, and neither `tcp_info` nor queues, owner or inode.
fn is_closed(socket: &TcpSocket<'_>) -> bool {
    socket.tcp_info.is_empty()
}

fn end(flow: &mut SampledFlow) {
    flow.ended = true;
    flow.wanted_ns = None;
}

fn sample(t_ns: u64, socket: &TcpSocket<'_>, thread: Option<ThreadTimes>) -> Sample {
    let memory = socket.memory;
    Sample {
        t_ns,
        send_queue_bytes: Some(socket.send_queue_bytes),
        receive_queue_bytes: Some(socket.receive_queue_bytes),
        rmem_alloc_bytes: memory.map(|memory| memory.rmem_alloc),
        rcvbuf_bytes: memory.map(|memory| memory.rcvbuf),
        wmem_queued_bytes: memory.map(|memory| memory.wmem_queued),
        sndbuf_bytes: memory.map(|memory| memory.sndbuf),
        socket_drops: memory.and_then(|memory| memory.drops),
        thread_cpu_ns: thread.map(|thread| thread.cpu_ns),
        thread_wait_ns: thread.map(|thread| thread.wait_ns),
        tcp: (!socket.tcp_info.is_empty()).then(|| Box::new(TcpInfo::decode(socket.tcp_info))),
        congestion: socket.bbr_info.and_then(|raw| CongestionDetail::decode(socket.congestion, raw)),
        ..Sample::default()
    }
}

#[cfg(test)]
mod tests;
