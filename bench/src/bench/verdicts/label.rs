//! Labels a scenario with its true cause, from the lab's counters.
//!
//! A scenario meant to have random loss may still fill its path. The label depends on what the lab counted, never
//! on a verdict: a scenario keeps its cause, gets another one that the counters prove, or is excluded.

use landspeed_model::{LabDocument, LabQueue, PhaseName, Protocol, RunDocument};
use serde::Serialize;

use super::truth::{Accept, Case, View};

/// Minimum share of the path's rate at which the path is full.
const FULL_SHARE: f64 = 0.93;
/// A path below this share of its rate is not full. Scenarios between the two thresholds are excluded.
const NOT_FULL_SHARE: f64 = 0.88;
/// Leading share of the steady phase in which an earlier burst of drops may still end.
const EARLY_SHARE: f64 = 0.3;
/// Minimum share of its rate at which a link is full of ACKs: a frame of 66 bytes takes 24 more on the wire.
const ACK_LINK_FULL_SHARE: f64 = 0.7;
/// Minimum packets lost on a link for loss to be the cause.
const MIN_LOSSES: u64 = 10;

/// Label of a document.
#[derive(Debug, Clone, PartialEq)]
pub enum Label {
    /// The true cause, and other acceptable ones.
    TrueCause(&'static str, Vec<Accept>),
    /// Excluded, with the reason.
    Excluded(String),
}

/// Counters of the lab that decide the label.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Facts {
    /// Goodput divided by the payload rate of the slowest link, 0..=1.
    pub share: f64,
    /// Utilization of the bottleneck in the steady phase, 0..=1.
    pub busy: f64,
    /// Drops at the bottleneck before the late part of the steady phase.
    pub early_drops: u64,
    /// Those of the early drops that fell into the steady phase.
    pub first_drops: u64,
    /// Drops at the bottleneck in the late part of the steady phase.
    pub late_drops: u64,
    /// Points of the queue's series with late drops.
    pub late_bursts: usize,
    /// Drops in the reverse direction of the bottleneck.
    pub ack_drops: u64,
    /// Utilization of the bottleneck's reverse direction in the steady phase, 0..=1.
    pub ack_busy: f64,
    /// Drops in the sender's own queue.
    pub local_drops: u64,
    /// Drops at the port to the receiver in the late part of the steady phase.
    pub last_hop_drops: u64,
    /// Packets lost on all links.
    pub lost: u64,
    /// Packets dropped by the receiving host.
    pub host_drops: u64,
}

impl Facts {
    /// Reads the counters from the document of a scenario of [`super::causes`]; `None` if the flow was not measured.
    pub fn new(document: &LabDocument) -> Option<Self> {
        let flow = document.flows.first()?;
        let run = flow.run.as_ref()?;
        let steady = run.phases.iter().find(|phase| phase.name == PhaseName::Steady);
        let span_ns = steady.map_or((0, 0), |phase| (phase.start_ns + flow.start_ns, phase.end_ns + flow.start_ns));
        let queue = |name: &str| document.queues.iter().find(|queue| queue.name == name);
        let (bottleneck, back, local, last_hop) = (queue("w->e")?, queue("e->w")?, queue("s->w")?, queue("e->r")?);
        let slowest = [bottleneck, local, last_hop].into_iter().map(|queue| queue.rate_bps).min()?;
        let mtu = f64::from(document.topology.links.first()?.mtu_bytes);
        // TCP and IP headers with timestamps take 52 bytes; Ethernet adds 38 per packet, preamble and gap included.
        let payload = slowest as f64 * (mtu - 52.0) / (mtu + 38.0);
        let drops = |queue: &LabQueue| counter_increments(queue, &queue.series.drops, span_ns);
        let late = |queue: &LabQueue| drops(queue).2;
        let (before, early, late_drops, late_bursts) = drops(bottleneck);
        Some(Self {
            share: flow.goodput_bps.unwrap_or(0.0) / payload,
            busy: busy(bottleneck, span_ns),
            early_drops: before + early,
            first_drops: early,
            late_drops,
            late_bursts,
            ack_drops: back.drops,
            ack_busy: busy(back, span_ns),
            local_drops: local.drops,
            last_hop_drops: late(last_hop),
            lost: document.links.iter().map(|link| link.lost).sum(),
            host_drops: document.host_drops.iter().map(|host| host.dropped).sum(),
        })
    }

    fn is_full(&self) -> bool {
        self.share >= FULL_SHARE || self.busy >= FULL_SHARE
    }

    fn is_underused(&self) -> bool {
        self.share < NOT_FULL_SHARE && self.busy < FULL_SHARE
    }
}

/// Sums a counter's increments before the steady phase, in its early part, and in the rest of it; also counts the
/// points of the rest with an increment.
fn counter_increments(queue: &LabQueue, moved: &[u64], (start, end): (u64, u64)) -> (u64, u64, u64, usize) {
    let late = start + ((end - start) as f64 * EARLY_SHARE) as u64;
    let (mut before, mut early, mut rest, mut points) = (0, 0, 0, 0);
    for (index, &moved) in moved.iter().enumerate() {
        let at = index as u64 * queue.series.interval_ns;
        if at < start {
            before += moved;
        } else if at < late {
            early += moved;
        } else if at < end {
            rest += moved;
            points += usize::from(moved > 0);
        }
    }
    (before, early, rest, points)
}

fn busy(queue: &LabQueue, span_ns: (u64, u64)) -> f64 {
    let interval_ns = queue.series.interval_ns;
    let inner: Vec<u64> = (0_u64..)
        .zip(&queue.series.bytes)
        .filter(|(index, _)| index * interval_ns >= span_ns.0 && (index + 1) * interval_ns <= span_ns.1)
        .map(|(_, &bytes)| bytes)
        .collect();
    let ns = inner.len() as f64 * interval_ns as f64;
    if ns == 0.0 { 0.0 } else { inner.iter().sum::<u64>() as f64 * 8e9 / ns / queue.rate_bps.max(1) as f64 }
}

/// Labels the document of a case.
pub fn label(case: &Case, document: &LabDocument) -> Label {
    let Some(facts) = Facts::new(document) else { return Label::Excluded("nothing was measured".to_owned()) };
    let run = document.flows.first().and_then(|flow| flow.run.as_ref());
    match judge(case, &facts, run.is_some_and(is_request_response)) {
        Ok((cause, accept)) => {
            let all = accept.into_iter().chain(indistinguishable_causes(cause, &facts));
            Label::TrueCause(cause, all.filter(|accept| accept.cause != cause).collect())
        }
        Err(why) => Label::Excluded(why),
    }
}

/// Returns causes that are indistinguishable from `cause` on two hosts. The lab's links are shaped veths of
/// unknown rate: hosts see the sender's own link as a tbf and the receiver's as part of the path. Loss on a full
/// link looks like congestion.
fn indistinguishable_causes(cause: &str, facts: &Facts) -> Vec<Accept> {
    let causes: &[&str] = match cause {
        "link-rate" => &["local-qdisc", "network-path", "network-congestion"],
        "network-path" if facts.lost + facts.host_drops > 0 => &["network-congestion"],
        _ => &[],
    };
    causes.iter().map(|&cause| Accept { cause, from: View::BothHosts }).collect()
}

fn is_request_response(run: &RunDocument) -> bool {
    matches!(run.requested.protocol, Protocol::TcpRr | Protocol::UdpRr)
}

type TrueCause = (&'static str, Vec<Accept>);

fn judge(case: &Case, facts: &Facts, request_response: bool) -> Result<TrueCause, String> {
    let own = || Ok((case.cause, case.accept.clone()));
    let accept = |cause, from| Accept { cause, from };
    let out = |why: &str| Err(format!("{why} ({facts:?})"));
    let quiet = facts.late_drops == 0 && facts.last_hop_drops == 0;
    // A queue that overflowed in the steady phase was congested for part of it.
    let full = || {
        let congested = (facts.first_drops > 0).then(|| accept("network-congestion", View::Lab));
        let acks = (case.cause == "ack-path" && facts.ack_drops > 0).then(|| accept("ack-path", View::Lab));
        Ok(("network-path", congested.into_iter().chain(acks).collect()))
    };
    match case.cause {
        "round-trip" => {
            if request_response {
                own()
            } else {
                out("no request was answered")
            }
        }
        "path-mtu" => {
            if facts.lost > 0 {
                own()
            } else {
                out("no packet was too long")
            }
        }
        "receiver-window" | "send-buffer" | "slow-reader" | "application" | "pacing" => match () {
            () if !quiet => out("packets are dropped"),
            () if facts.is_underused() => own(),
            () if facts.is_full() => full(),
            () => out("the path is nearly full"),
        },
        "link-rate" => match () {
            () if facts.last_hop_drops > 0 => Ok(("network-congestion", vec![accept("link-rate", View::Lab)])),
            () if facts.share >= FULL_SHARE => own(),
            () => out("the interface is not full"),
        },
        "network-path" | "network-congestion" => match () {
            () if !facts.is_full() => out("the path is not full"),
            () if facts.late_drops == 0 => full(),
            () if facts.late_bursts < 3 => Ok(("network-congestion", vec![accept("network-path", View::Lab)])),
            () => Ok(("network-congestion", Vec::new())),
        },
        "network-loss" | "receiver-host-drops" => match () {
            () if !quiet => out("a queue drops packets too"),
            () if facts.is_full() => full(),
            () if !facts.is_underused() => out("the path is nearly full"),
            () if facts.lost + facts.host_drops < MIN_LOSSES => out("few packets are lost"),
            () if facts.early_drops > 10 * (facts.lost + facts.host_drops) => out("slow start lost more"),
            () => own(),
        },
        "slow-start-overshoot" => match () {
            () if facts.late_drops > 0 => out("drops go on"),
            () if facts.early_drops == 0 => out("nothing is dropped"),
            () if facts.share < NOT_FULL_SHARE => own(),
            () => out("the path is full"),
        },
        "shallow-buffer" | "policer" => match () {
            () if facts.late_bursts >= 2 => own(),
            () if facts.late_drops == 0
                && facts.early_drops > 0
                && facts.share < NOT_FULL_SHARE
                && case.congestion != "bbr" =>
            {
                Ok(("slow-start-overshoot", vec![accept("shallow-buffer", View::Lab)]))
            }
            () => out("few packets are dropped"),
        },
        "reordering" | "ack-path" => match () {
            () if !quiet => out("packets are dropped"),
            () if facts.is_full() => full(),
            () if !facts.is_underused() => out("the path is nearly full"),
            () if case.cause == "ack-path" && facts.ack_drops == 0 && facts.ack_busy < ACK_LINK_FULL_SHARE => {
                out("the way back is not full")
            }
            () => own(),
        },
        "local-qdisc" => match () {
            () if !quiet => out("the path drops packets too"),
            () if case.what.contains("maxrate") => own(),
            () if facts.local_drops == 0 => out("nothing is dropped"),
            () if facts.is_underused() => own(),
            () if !facts.is_full() => out("the path is nearly full"),
            () if case.what.contains("pfifo") => Ok(("link-rate", vec![accept("local-qdisc", View::Lab)])),
            () => full(),
        },
        cause => Err(format!("no rule for {cause}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(cause: &'static str, facts: &Facts) -> Option<&'static str> {
        let case = Case {
            name: format!("{cause}-00"),
            cause,
            what: "a pfifo".to_owned(),
            accept: Vec::new(),
            congestion: "cubic",
            buffer_bdp: 1.0,
            toml: String::new(),
        };
        judge(&case, facts, cause == "round-trip").ok().map(|(cause, _)| cause)
    }

    #[test]
    fn a_limit_above_the_path_is_not_the_cause() {
        let at = |share| Facts { share, ..Facts::default() };
        assert_eq!(judged("receiver-window", &at(0.5)), Some("receiver-window"));
        assert_eq!(judged("receiver-window", &at(0.99)), Some("network-path"));
        assert_eq!(judged("receiver-window", &at(0.9)), None);
        let lossy = Facts { share: 0.5, late_drops: 1, late_bursts: 1, ..Facts::default() };
        assert_eq!(judged("receiver-window", &lossy), None);
    }

    #[test]
    fn drops_distinguish_congestion_from_a_full_path() {
        let full = Facts { share: 0.99, early_drops: 10, ..Facts::default() };
        assert_eq!(judged("network-congestion", &full), Some("network-path"));
        let congested = Facts { late_drops: 10, late_bursts: 5, ..full };
        assert_eq!(judged("network-path", &congested), Some("network-congestion"));
    }

    #[test]
    fn overshoot_has_no_drops_in_the_late_part() {
        let burst = Facts { share: 0.4, early_drops: 100, ..Facts::default() };
        assert_eq!(judged("slow-start-overshoot", &burst), Some("slow-start-overshoot"));
        assert_eq!(judged("shallow-buffer", &burst), Some("slow-start-overshoot"));
        let lasting = Facts { late_drops: 20, late_bursts: 4, ..burst };
        assert_eq!(judged("slow-start-overshoot", &lasting), None);
        assert_eq!(judged("shallow-buffer", &lasting), Some("shallow-buffer"));
    }

    #[test]
    fn every_cause_has_a_rule() {
        for (cause, ..) in crate::bench::verdicts::causes::ALL {
            let why = judge_error(cause);
            assert!(!why.contains("no rule"), "{why}");
        }
    }

    fn judge_error(cause: &'static str) -> String {
        let case = Case {
            name: String::new(),
            cause,
            what: String::new(),
            accept: Vec::new(),
            congestion: "bbr",
            buffer_bdp: 1.0,
            toml: String::new(),
        };
        judge(&case, &Facts::default(), false).err().unwrap_or_default()
    }
}
