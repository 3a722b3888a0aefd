//! Conversion of flows to a document.

use std::collections::BTreeMap;

use landspeed_model::{
    Cause, Confidence, Direction, Epoch, EpochState, HostSeries, HostSnapshot, RunDocument, Verdict, WatchFlow,
    WatchHost, WatchRole,
};

use crate::flows::SampledFlow;
use crate::observation::{Observation, observe};
use crate::processes::Process;

/// Function that determines what limits one direction of a run whose remote host did not report. The last
/// argument is the activity of this host during the flow.
pub type JudgeFn<'a> = &'a dyn Fn(&RunDocument, Direction, &WatchHost) -> Verdict;

/// Describes a flow, with its verdict.
pub(crate) fn describe(
    flow: &SampledFlow,
    process: Result<&Process, &str>,
    host: &HostSnapshot,
    (beside, series): (WatchHost, HostSeries),
    judge: JudgeFn<'_>,
) -> WatchFlow {
    let observed = observe(flow, host, series);
    let verdict = observed.as_ref().map_or_else(too_short, |seen| judge(&seen.document, seen.direction, &beside));
    let (role, span_ns, bytes) = observed.as_ref().map_or((role_of(flow), (0, 0), 0), parts);
    let verdict = with_threads(verdict, process.ok());
    let tcp = flow.samples.iter().rev().find_map(|sample| sample.tcp.as_deref());
    let span = span_ns.1.saturating_sub(span_ns.0);
    WatchFlow {
        local: flow.id.local().to_string(),
        remote: flow.id.remote().to_string(),
        cookie: format!("{:x}", flow.id.cookie()),
        role,
        ended: flow.ended,
        pid: process.ok().map(|process| process.pid),
        command: process.ok().map(|process| process.command.clone()),
        unit: process.ok().and_then(|process| process.unit.clone()),
        container: process.ok().and_then(|process| process.container.clone()),
        process_unknown: process.err().map(str::to_owned),
        uid: flow.uid,
        congestion: (!flow.congestion.is_empty()).then(|| flow.congestion.clone()),
        seen_ns: flow.seen_ns,
        bytes_acked: flow.last.acked.saturating_sub(flow.first.acked),
        bytes_received: flow.last.received.saturating_sub(flow.first.received),
        retransmits: u64::from(flow.last.retransmits.wrapping_sub(flow.first.retransmits)),
        span_ns,
        readings: flow.samples.len() as u32,
        goodput_bps: (span > 0).then(|| bytes as f64 * 8e9 / span as f64),
        rtt_us: tcp.map(|tcp| tcp.rtt_us).filter(|&us| us > 0),
        min_rtt_us: tcp.and_then(|tcp| tcp.min_rtt_us).filter(|&us| us > 0),
        cwnd: tcp.map(|tcp| tcp.snd_cwnd),
        cause: verdict.cause,
        confidence: verdict.confidence,
        summary: verdict.summary,
        place: verdict.place,
        evidence: verdict.evidence,
        ruled_out: verdict.ruled_out,
        missing: verdict.missing,
        next_step: verdict.next_step,
        shares: shares(verdict.epochs, span_ns),
        host: beside,
        timeline: Vec::new(),
        recent: None,
        series: None,
    }
}

fn parts(seen: &Observation) -> (WatchRole, (u64, u64), u64) {
    (seen.role, seen.span_ns, seen.bytes)
}

fn role_of(flow: &SampledFlow) -> WatchRole {
    let (acked, received) = (flow.last.acked - flow.first.acked.min(flow.last.acked), flow.last.received);
    if acked >= received.saturating_sub(flow.first.received) { WatchRole::Sender } else { WatchRole::Receiver }
}

/// Adds a note about what is not visible in a multi-threaded process.
fn with_threads(mut verdict: Verdict, process: Option<&Process>) -> Verdict {
    if let Some(process) = process.filter(|process| process.threads > 1) {
        verdict.missing.push(format!(
            "the CPU time of the thread that serves this socket ({} has {} threads)",
            process.command, process.threads
        ));
    }
    verdict
}

/// Shares of time that add up to 1000, also if no state was visible.
fn shares(epochs: Vec<Epoch>, span_ns: (u64, u64)) -> Vec<Epoch> {
    if !epochs.is_empty() {
        return epochs;
    }
    let time_ns = span_ns.1.saturating_sub(span_ns.0);
    vec![Epoch { state: EpochState::Unknown, time_ns, share_permille: 1000, spans_ns: vec![span_ns] }]
}

/// Verdict of a flow with fewer than two samples.
fn too_short() -> Verdict {
    Verdict {
        cause: Cause::Undetermined,
        confidence: Confidence::Low,
        summary: "The cause is undetermined: the connection ended before it was read twice.".to_owned(),
        place: None,
        evidence: Vec::new(),
        ruled_out: Vec::new(),
        missing: vec!["readings over time".to_owned()],
        next_step: "Watch a longer transfer: flows are read ten times a second.".to_owned(),
        epochs: Vec::new(),
    }
}

/// Data that is missing because of missing privileges or a failed dump, with reasons.
pub(crate) fn unavailable(host: &HostSnapshot, denied: bool, failure: Option<&str>) -> BTreeMap<String, String> {
    let mut missing = host.unavailable.clone();
    missing.retain(|what, _| what == "sysctls");
    if denied {
        let why = "not root: processes of other users are not visible, and flows they hold are listed without a name";
        missing.insert("processes".into(), why.into());
    }
    if let Some(why) = failure {
        missing.insert("dumps".into(), why.into());
    }
    missing
}
