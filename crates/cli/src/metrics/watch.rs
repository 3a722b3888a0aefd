//! Metrics of `landspeed watch`: sums over connections or flows, never figures of one flow.

use std::collections::BTreeMap;

use landspeed_metrics::{Family, Samples};
use landspeed_model::{Cause, EpochState, WatchDocument, WatchFlow, WatchHost, WatchRole};
use landspeed_sys::clock;
use landspeed_watch::MovedTotals;

use super::Latest;

static CONNECTIONS: Family = Family::gauge("landspeed_watch_connections", "TCP connections that match the filter");
static SEEN: Family = Family::counter("landspeed_watch_connections_seen", "Distinct connections seen");
static ENDED: Family = Family::counter("landspeed_watch_connections_ended", "Distinct connections that ended");
static ACKED: Family =
    Family::counter("landspeed_watch_acked", "Payload sent and acknowledged, all connections").unit("bytes");
static RECEIVED: Family =
    Family::counter("landspeed_watch_received", "Payload received, all connections").unit("bytes");
static RETRANSMITS: Family =
    Family::counter("landspeed_watch_retransmits", "Segments retransmitted, all connections");
static BUSY: Family =
    Family::gauge("landspeed_watch_busy_flows", "Flows being sampled, by role of this host: sender, receiver")
        .labels(&["role"]);
static GOODPUT: Family =
    Family::gauge("landspeed_watch_goodput", "Goodput of the last second, all flows being sampled")
        .unit("bytes_per_second")
        .labels(&["role"]);
static CAUSES: Family =
    Family::gauge("landspeed_watch_flows_by_cause", "Flows being sampled, by cause of their verdict")
        .labels(&["cause"]);
static CAUSE_TIME: Family = Family::counter(
    "landspeed_watch_cause",
    "Time of flows with this verdict, summed over the flows: its rate is their mean number",
)
.unit("seconds")
.labels(&["cause"]);
static STATES: Family = Family::gauge(
    "landspeed_watch_state",
    "Share of the last 30 s of all flows being sampled, by state of the sender; unknown at a receiver",
)
.unit("ratio")
.labels(&["state"]);
static FILTERED: Family = Family::gauge(
    "landspeed_watch_recent_drops",
    "Packets dropped in the last 30 s, by: nft rules with a counter, conntrack, any filter (tracepoint)",
)
.labels(&["by"]);
static THROTTLED: Family = Family::gauge(
    "landspeed_watch_quota_throttled",
    "Share of CFS periods throttled by a CPU quota, in the most throttled group that holds a busy flow",
)
.unit("ratio");
static BUSIEST: Family =
    Family::gauge("landspeed_watch_busiest_thread", "Share of a core of the busiest thread that holds a busy flow")
        .unit("ratio");
static BLOCKED: Family = Family::gauge(
    "landspeed_watch_blocked_thread",
    "Share of readings in state D, the most blocked thread that holds a busy flow",
)
.unit("ratio");
static KERNEL_DROPS: Family = Family::counter(
    "landspeed_watch_kernel_drops",
    "Packets dropped by the kernel's reason (--tracepoints), whole host",
)
.labels(&["reason"]);
static KERNEL_LOST: Family = Family::counter(
    "landspeed_watch_kernel_events_lost",
    "Events of the tracepoints that were overwritten before they were read (--tracepoints)",
);
static CPU: Family =
    Family::counter("landspeed_watch_cpu", "CPU time of the thread that reads and diagnoses").unit("seconds");
static LATE: Family =
    Family::counter("landspeed_watch_late_readings", "Readings taken late, because the watch had no CPU");
static UNAVAILABLE: Family = Family::gauge(
    "landspeed_watch_unavailable",
    "1 for each source that could not be read: .unavailable of the document has the reason",
)
.labels(&["what"]);
static UPDATED: Family = Family::gauge(
    "landspeed_watch_update_timestamp",
    "Start of the last dump of all sockets that succeeded, seconds since the Unix epoch",
)
.unit("seconds");

/// Metrics of a watch, besides those of its process.
#[cfg(test)]
pub const FAMILIES: &[&Family] = &[
    &CONNECTIONS,
    &SEEN,
    &ENDED,
    &ACKED,
    &RECEIVED,
    &RETRANSMITS,
    &BUSY,
    &GOODPUT,
    &CAUSES,
    &CAUSE_TIME,
    &STATES,
    &FILTERED,
    &THROTTLED,
    &BUSIEST,
    &BLOCKED,
    &KERNEL_DROPS,
    &KERNEL_LOST,
    &CPU,
    &LATE,
    &UNAVAILABLE,
    &UPDATED,
];

const STATE_LIST: [EpochState; 10] = [
    EpochState::SlowStart,
    EpochState::Recovery,
    EpochState::Stalled,
    EpochState::CwndLimited,
    EpochState::ReceiveWindowLimited,
    EpochState::SendBufferLimited,
    EpochState::ApplicationLimited,
    EpochState::PacingLimited,
    EpochState::CpuLimited,
    EpochState::Unknown,
];

/// Converts documents of running flows to samples, and sums the time by cause.
#[derive(Debug, Default)]
pub struct Exporter {
    latest: Latest,
    /// Time of flows by cause, nanoseconds.
    cause_ns: BTreeMap<&'static str, u64>,
    updated_ns: u64,
}

impl Exporter {
    /// Returns a handle to the latest samples, for the endpoint.
    pub fn latest(&self) -> Latest {
        self.latest.clone()
    }

    /// Replaces the latest samples with those of a document taken `now_ns` after the start, when the last dump was of
    /// `dump_ns`.
    pub fn update(&mut self, document: &WatchDocument, totals: Option<MovedTotals>, (now_ns, dump_ns): (u64, u64)) {
        let since_ns = now_ns.saturating_sub(self.updated_ns);
        self.updated_ns = now_ns;
        for flow in &document.flows {
            *self.cause_ns.entry(flow.cause.name()).or_default() += since_ns.min(age_ns(flow));
        }
        let dump_unix_ns = clock::realtime_ns().saturating_sub(now_ns.saturating_sub(dump_ns));
        self.latest.replace(self.samples(document, totals, dump_unix_ns));
    }

    fn samples(&self, document: &WatchDocument, totals: Option<MovedTotals>, dump_unix_ns: u64) -> Samples {
        let (mut samples, flows) = (Samples::default(), &document.flows);
        samples.add(&CONNECTIONS, Some(document.sockets.now));
        samples.add(&SEEN, Some(document.sockets.seen));
        samples.add(&ENDED, Some(document.sockets.ended));
        samples.add(&ACKED, totals.map(|totals| totals.acked_bytes));
        samples.add(&RECEIVED, totals.map(|totals| totals.received_bytes));
        samples.add(&RETRANSMITS, totals.map(|totals| totals.retransmits));
        for (name, role) in [("sender", WatchRole::Sender), ("receiver", WatchRole::Receiver)] {
            let of_role: Vec<&WatchFlow> = flows.iter().filter(|flow| flow.role == role).collect();
            samples.add_labelled(&BUSY, &[name], of_role.len() as u64);
            let recent = of_role.iter().filter_map(|flow| flow.recent.as_ref());
            let rates: Vec<f64> = recent.map(|recent| recent.goodput_bps / 8.0).collect();
            // A flow has a rate from its second reading on, and the second dump shows which connections are busy. Before,
            // the goodput is unknown.
            if !rates.is_empty() || (of_role.is_empty() && document.overhead.dumps > 1) {
                samples.add_labelled(&GOODPUT, &[name], rates.iter().sum::<f64>());
            }
        }
        for cause in Cause::ALL {
            let count = flows.iter().filter(|flow| flow.cause == *cause).count();
            samples.add_labelled(&CAUSES, &[cause.name()], count as u64);
            let ns = self.cause_ns.get(cause.name()).copied().unwrap_or(0);
            samples.add_labelled(&CAUSE_TIME, &[cause.name()], ns as f64 / 1e9);
        }
        add_states(flows, &mut samples);
        add_host(flows, &mut samples);
        if let Some(events) = &document.events {
            for (reason, &count) in &events.drops {
                samples.add_labelled(&KERNEL_DROPS, &[reason], count);
            }
            samples.add(&KERNEL_LOST, Some(events.lost));
        }
        samples.add(&CPU, Some(document.overhead.cpu_ns as f64 / 1e9));
        samples.add(&LATE, Some(document.overhead.late));
        for what in document.unavailable.keys() {
            samples.add_labelled(&UNAVAILABLE, &[what], 1);
        }
        samples.add(&UPDATED, Some(dump_unix_ns as f64 / 1e9));
        samples
    }
}

/// Time for which a flow was seen, nanoseconds.
fn age_ns(flow: &WatchFlow) -> u64 {
    flow.seen_ns.1.saturating_sub(flow.seen_ns.0)
}

fn add_states(flows: &[WatchFlow], samples: &mut Samples) {
    let shares = || flows.iter().flat_map(|flow| &flow.shares);
    let whole: u64 = shares().map(|share| share.time_ns).sum();
    if whole == 0 {
        return;
    }
    for state in STATE_LIST {
        let time: u64 = shares().filter(|share| share.state == state).map(|share| share.time_ns).sum();
        let name = serde_json::to_value(state).expect("a state has a name");
        samples.add_labelled(&STATES, &[name.as_str().unwrap_or_default()], time as f64 / whole as f64);
    }
}

/// Adds findings on the host: the maximum over the flows, because flows may share a process, a filter or a quota.
fn add_host(flows: &[WatchFlow], samples: &mut Samples) {
    let most = |of: &dyn Fn(&WatchHost) -> Option<u64>| flows.iter().filter_map(|flow| of(&flow.host)).max();
    let drops: [(&str, Option<u64>); 3] = [
        ("nft", most(&|host| host.nft_drops)),
        ("conntrack", most(&|host| host.conntrack_drops)),
        ("filter", most(&|host| host.filter_drops)),
    ];
    for (by, count) in drops {
        if let Some(count) = count {
            samples.add_labelled(&FILTERED, &[by], count);
        }
    }
    let highest = |of: &dyn Fn(&WatchHost) -> Option<f64>| {
        flows.iter().filter_map(|flow| of(&flow.host)).max_by(f64::total_cmp)
    };
    let throttled = |host: &WatchHost| {
        let quota = host.quota.as_ref().filter(|quota| quota.periods > 0)?;
        Some(quota.throttled_periods as f64 / quota.periods as f64)
    };
    samples.add(&THROTTLED, highest(&throttled));
    samples.add(&BUSIEST, highest(&|host| host.busiest.as_ref().map(|thread| thread.cpu_share)));
    samples.add(&BLOCKED, highest(&|host| host.blocked.as_ref().map(|thread| thread.share)));
}
