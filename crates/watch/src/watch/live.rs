//! Live view of a watch: inexpensive metrics of every busy flow, several times a second.

use landspeed_model::{WatchChange, WatchFlow, WatchRecent, WatchRole};
use landspeed_sys::clock::{monotonic_ns, thread_cpu_ns};

use super::{Scope, Watch};
use crate::flows::{MovedTotals, SampledFlow};
use crate::history::Point;

/// Time span of the recent metrics, nanoseconds; shorter if there are fewer samples.
const RECENT_NS: u64 = 950_000_000;

/// State of a watch.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct LiveStatus {
    /// Time since the start, nanoseconds.
    pub elapsed_ns: u64,
    /// Number of connections that matched the filter in the last dump.
    pub connections: u64,
    /// CPU time of the watch relative to elapsed time, share of one core.
    pub cpu_share: f64,
    /// Flows being sampled, unordered.
    pub flows: Vec<FlowStatus>,
}

/// A flow being sampled.
#[derive(Debug, Clone, PartialEq)]
pub struct FlowStatus {
    /// Socket cookie of the kernel.
    pub cookie: u64,
    /// Local address and port.
    pub local: String,
    /// Remote address and port.
    pub remote: String,
    /// Role of this host in the direction of most bytes in the last 30 s.
    pub role: WatchRole,
    /// Process that holds the socket, if known.
    pub pid: Option<u32>,
    /// Command name of the process.
    pub command: Option<String>,
    /// User id of the socket's creator.
    pub uid: u32,
    /// First observation, nanoseconds after the start.
    pub since_ns: u64,
    /// Smoothed RTT, µs.
    pub rtt_us: Option<u32>,
    /// Minimum RTT, µs.
    pub min_rtt_us: Option<u32>,
    /// Congestion window, segments; `None` before the first sample.
    pub cwnd: Option<u32>,
    /// Metrics of the last second; `None` before two samples.
    pub recent: Option<WatchRecent>,
    /// Latest verdict, if there is one.
    pub verdict: Option<WatchChange>,
}

impl Watch {
    /// Returns the current state, without new verdicts.
    pub fn live_status(&self) -> LiveStatus {
        let elapsed_ns = self.elapsed_ns();
        let flows = self.flows.sampled().filter(|flow| flow.is_wanted());
        LiveStatus {
            elapsed_ns,
            connections: self.flows.counts().now,
            cpu_share: thread_cpu_ns().saturating_sub(self.start_cpu_ns) as f64 / elapsed_ns.max(1) as f64,
            flows: flows.map(|flow| self.flow_status(flow)).collect(),
        }
    }

    fn flow_status(&self, flow: &SampledFlow) -> FlowStatus {
        let process = self.processes.of(flow.inode).ok().or(flow.process.as_ref().filter(|_| flow.inode == 0));
        let tcp = flow.samples.back().and_then(|sample| sample.tcp.as_deref());
        let role = recent_role(flow);
        FlowStatus {
            cookie: flow.id.cookie(),
            local: flow.id.local().to_string(),
            remote: flow.id.remote().to_string(),
            role,
            pid: process.map(|process| process.pid),
            command: process.map(|process| process.command.clone()),
            uid: flow.uid,
            since_ns: flow.seen_ns.0,
            rtt_us: tcp.map(|tcp| tcp.rtt_us).filter(|&us| us > 0),
            min_rtt_us: tcp.and_then(|tcp| tcp.min_rtt_us).filter(|&us| us > 0),
            cwnd: tcp.map(|tcp| tcp.snd_cwnd),
            recent: recent(flow, role, process.and_then(|process| self.beside.process_cpu(process.pid))),
            verdict: flow.history.verdict().copied(),
        }
    }

    /// Returns the points of a flow's last minute, at most two per second; empty if the flow is unknown.
    pub fn minute(&self, cookie: u64) -> Vec<Point> {
        self.flows.flow(cookie).map_or_else(Vec::new, |flow| flow.history.minute())
    }

    /// Payload and retransmits of all connections until the last dump; `None` if the kernel does not report them.
    pub fn totals(&self) -> Option<MovedTotals> {
        self.flows.totals()
    }

    /// Start of the last dump of all sockets that succeeded, nanoseconds after the start.
    pub fn last_dump_ns(&self) -> u64 {
        self.last_dump_ns
    }

    /// Nanoseconds since the start.
    pub fn elapsed_ns(&self) -> u64 {
        monotonic_ns().saturating_sub(self.start_ns)
    }

    /// Records the verdicts of `flows`, and adds their history.
    pub(super) fn with_history(&mut self, mut flows: Vec<WatchFlow>, scope: Scope) -> Vec<WatchFlow> {
        let now_ns = self.elapsed_ns();
        for described in &mut flows {
            let cookie = u64::from_str_radix(&described.cookie, 16).unwrap_or_default();
            let Some(flow) = self.flows.flow_mut(cookie) else { continue };
            flow.history.record_verdict(now_ns, described.cause, described.confidence);
            described.timeline = flow.history.changes();
            described.series = (scope == Scope::All).then(|| flow.history.series(described.role)).flatten();
            let cpu = described.pid.and_then(|pid| self.beside.process_cpu(pid));
            described.recent = recent(flow, described.role, cpu).filter(|_| flow.is_wanted());
        }
        flows
    }
}

fn recent_role(flow: &SampledFlow) -> WatchRole {
    let ends = flow.samples.front().zip(flow.samples.back());
    let moved = |role| {
        ends.and_then(|(first, last)| Some(moved(last.tcp.as_deref()?, role) - moved(first.tcp.as_deref()?, role)))
    };
    if moved(WatchRole::Receiver) > moved(WatchRole::Sender) { WatchRole::Receiver } else { WatchRole::Sender }
}

fn moved(tcp: &landspeed_model::TcpInfo, role: WatchRole) -> i128 {
    match role {
        WatchRole::Sender => tcp.bytes_acked.unwrap_or(0).into(),
        WatchRole::Receiver => tcp.bytes_received.unwrap_or(0).into(),
    }
}

/// Metrics of the last second.
fn recent(flow: &SampledFlow, role: WatchRole, process_cpu: Option<f64>) -> Option<WatchRecent> {
    let last = flow.samples.back()?;
    let begins =
        flow.samples.iter().rposition(|sample| last.t_ns.saturating_sub(sample.t_ns) >= RECENT_NS).unwrap_or(0);
    let readings = || flow.samples.range(begins..).filter_map(|sample| sample.tcp.as_deref());
    let (from, to) = (readings().next()?, readings().next_back()?);
    let span_ns = last.t_ns.saturating_sub(flow.samples[begins].t_ns);
    if span_ns == 0 {
        return None;
    }
    let per_s = |count: f64| count * 1e9 / span_ns as f64;
    let uses: Vec<f64> = readings().filter_map(window_use).collect();
    let sends = role == WatchRole::Sender;
    let queue = if sends { last.send_queue_bytes } else { last.receive_queue_bytes };
    Some(WatchRecent {
        goodput_bps: per_s((moved(to, role) - moved(from, role)).max(0) as f64 * 8.0),
        retransmits_per_s: per_s(f64::from(to.total_retrans.wrapping_sub(from.total_retrans))),
        window_use: (sends && !uses.is_empty()).then(|| uses.iter().sum::<f64>() / uses.len() as f64),
        queue_bytes: queue.unwrap_or(0).into(),
        process_cpu,
    })
}

/// Outstanding bytes relative to the smaller of congestion window and receive window; `None` without a window.
fn window_use(tcp: &landspeed_model::TcpInfo) -> Option<f64> {
    let congestion = f64::from(tcp.snd_cwnd) * f64::from(tcp.snd_mss_bytes);
    let window = tcp.snd_wnd_bytes.map_or(congestion, |offered| congestion.min(offered.into()));
    (window > 0.0).then(|| f64::from(tcp.unacked) * f64::from(tcp.snd_mss_bytes) / window)
}
