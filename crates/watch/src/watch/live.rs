//! A watch as a screen shows it: cheap figures of every busy flow, several times a second.

use landspeed_model::{WatchChange, WatchFlow, WatchRecent, WatchRole};
use landspeed_sys::clock::{monotonic_ns, thread_cpu_ns};

use super::{Scope, Watch};
use crate::flows::SampledFlow;
use crate::history::Point;

/// Figures of the last second are about this time, nanoseconds, or less where there are fewer readings.
const RECENT_NS: u64 = 950_000_000;

/// The state of a watch.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Glance {
    /// Time since the start, nanoseconds.
    pub elapsed_ns: u64,
    /// Connections that passed the filter, at the last dump.
    pub connections: u64,
    /// CPU time of the watch over time passed, share of one core.
    pub cpu_share: f64,
    /// The flows that are being sampled, in any order.
    pub flows: Vec<FlowGlance>,
}

/// One flow that is being sampled.
#[derive(Debug, Clone, PartialEq)]
pub struct FlowGlance {
    /// The kernel's number of the socket.
    pub cookie: u64,
    /// Address and port of this host.
    pub local: String,
    /// Address and port of the other end.
    pub remote: String,
    /// Which way most bytes moved in the last 30 s.
    pub role: WatchRole,
    /// Process that holds the socket, if it is known.
    pub pid: Option<u32>,
    /// Its name.
    pub command: Option<String>,
    /// User that made the socket.
    pub uid: u32,
    /// When it was first seen, nanoseconds after the start.
    pub since_ns: u64,
    /// Smoothed RTT, microseconds.
    pub rtt_us: Option<u32>,
    /// Minimum RTT, microseconds.
    pub min_rtt_us: Option<u32>,
    /// Congestion window, segments.
    pub cwnd: u32,
    /// The last second; `None` with one reading.
    pub recent: Option<WatchRecent>,
    /// The last verdict.
    pub verdict: Option<WatchChange>,
}

impl Watch {
    /// What is known now, without judging anything.
    pub fn glance(&self) -> Glance {
        let elapsed_ns = self.elapsed_ns();
        let flows = self.flows.sampled().filter(|flow| flow.is_wanted());
        Glance {
            elapsed_ns,
            connections: self.flows.counts().now,
            cpu_share: thread_cpu_ns().saturating_sub(self.start_cpu_ns) as f64 / elapsed_ns.max(1) as f64,
            flows: flows.map(|flow| self.glance_at(flow)).collect(),
        }
    }

    fn glance_at(&self, flow: &SampledFlow) -> FlowGlance {
        let process = self.processes.of(flow.inode).ok();
        let tcp = flow.samples.back().and_then(|sample| sample.tcp.as_deref());
        let role = role_lately(flow);
        FlowGlance {
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
            cwnd: tcp.map_or(0, |tcp| tcp.snd_cwnd),
            recent: recent(flow, role, process.and_then(|process| self.beside.process_cpu(process.pid))),
            verdict: flow.history.verdict().copied(),
        }
    }

    /// The last minute of a flow, at most two points each second. Empty if it is not known.
    pub fn minute(&self, cookie: u64) -> Vec<Point> {
        self.flows.flow(cookie).map_or_else(Vec::new, |flow| flow.history.minute())
    }

    /// Nanoseconds since the start.
    pub fn elapsed_ns(&self) -> u64 {
        monotonic_ns().saturating_sub(self.start_ns)
    }

    /// Remembers the verdicts of `flows`, and adds what is known of their past.
    pub(super) fn with_past(&mut self, mut flows: Vec<WatchFlow>, scope: Scope) -> Vec<WatchFlow> {
        let now_ns = self.elapsed_ns();
        for described in &mut flows {
            let cookie = u64::from_str_radix(&described.cookie, 16).unwrap_or_default();
            let Some(flow) = self.flows.flow_mut(cookie) else { continue };
            flow.history.judged(now_ns, described.cause, described.confidence);
            described.timeline = flow.history.changes();
            described.series = (scope == Scope::All).then(|| flow.history.series(described.role)).flatten();
            let cpu = described.pid.and_then(|pid| self.beside.process_cpu(pid));
            described.recent = recent(flow, described.role, cpu).filter(|_| flow.is_wanted());
        }
        flows
    }
}

fn role_lately(flow: &SampledFlow) -> WatchRole {
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

/// Figures of the last second of readings.
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

/// Bytes outstanding over the window that bounds them. `None` without a window.
fn window_use(tcp: &landspeed_model::TcpInfo) -> Option<f64> {
    let congestion = f64::from(tcp.snd_cwnd) * f64::from(tcp.snd_mss_bytes);
    let window = tcp.snd_wnd_bytes.map_or(congestion, |offered| congestion.min(offered.into()));
    (window > 0.0).then(|| f64::from(tcp.unacked) * f64::from(tcp.snd_mss_bytes) / window)
}
