//! Refutation: readings elsewhere in the document that contradict a cause. A refuted cause cannot be named.

use landspeed_model::Cause;

use crate::finding::{Bound, Finding, Scales, Standing, Strength};
use crate::flow::Flow;
use crate::load::takes_turns;
use crate::network::{Queue, Symptoms, symptoms};
use crate::thresholds::FULL_LINK;

/// Refutes each cause that the document contradicts, with the reading as evidence, and weakens doubtful
/// ones.
pub(crate) fn refute(flow: &Flow, findings: &mut [Finding]) {
    if flow.is_rr() {
        return;
    }
    let seen = (flow.udp.is_none()).then(|| symptoms(flow));
    let own_queue = findings.iter().any(|finding| finding.cause == Cause::LocalQdisc && finding.strength().is_some());
    for finding in findings.iter_mut().filter(|finding| finding.strength().is_some()) {
        let mut scales = Scales::new(flow, finding.cause);
        let window = matches!(finding.cause, Cause::ReceiverWindow | Cause::SendBuffer);
        let inferred = matches!(finding.cause, Cause::SlowReader | Cause::Application) && !finding.direct;
        let by_network = matches!(
            finding.cause,
            Cause::NetworkLoss | Cause::NetworkCongestion | Cause::ShallowBuffer | Cause::Policer
        );
        // If a buffer, a reader or an application limits, the path is not full. A requested rate that was reached
        // needs no inference.
        let refuted = ((window || inferred) && full_link(flow, &mut scales))
            || (window && own_queue && waits_here(flow, &mut scales))
            || (by_network && seen.as_ref().is_some_and(|seen| nothing_lost(seen, &mut scales)));
        if refuted {
            finding.standing = Standing::Refuted;
            finding.direct = false;
            finding.readings = scales.close(Standing::Refuted).readings;
        } else if let Some(unknown) = doubt(flow, seen.as_ref()).filter(|_| window) {
            finding.standing = Standing::Holds(Strength::Weak);
            finding.missing.push(unknown.to_owned());
        }
    }
}

/// The information that is missing to be certain that a window limits.
fn doubt(flow: &Flow, seen: Option<&Symptoms>) -> Option<&'static str> {
    if seen.is_some_and(|seen| maybe_full(flow, seen)) {
        Some("whether the path was full: its queue never emptied")
    } else if flow.parameters.window_bytes.is_none() && takes_turns(flow) {
        Some("whether the buffer limits while both threads have a core")
    } else {
        None
    }
}

/// Whether the lab's path was full.
fn full_link(flow: &Flow, scales: &mut Scales) -> bool {
    let Some(hop) = flow.route.as_ref().and_then(|route| route.full()) else { return false };
    let metric = format!("utilisation of {}", hop.link.name);
    let source = format!("links[{}]", hop.link_index);
    scales.value(&metric, Some(hop.utilisation), "ratio", Bound::Below(FULL_LINK), None, &source) == Some(false)
}

/// Whether the sender's own qdisc has a backlog: data there has already passed both windows.
fn waits_here(flow: &Flow, scales: &mut Scales) -> bool {
    let Some(hop) = flow.route.as_ref().and_then(|route| route.forward.first()) else { return false };
    let metric = "bytes waiting in the sender's qdisc";
    let source = format!("queues, {}", hop.link.name);
    scales.value(metric, Some(hop.backlog_bytes), "bytes", Bound::Below(1.0), None, &source) == Some(false)
}

/// Whether data always waits in a queue of the path: the window exceeds the BDP of a full path, or bursts
/// queue. Only a lab run can tell which.
fn maybe_full(flow: &Flow, seen: &Symptoms) -> bool {
    flow.route.is_none() && !flow.same_host() && (seen.queue == Queue::Standing || seen.always_queued())
}

/// Whether both TCPs agree that every segment arrived.
fn nothing_lost(seen: &Symptoms, scales: &mut Scales) -> bool {
    if seen.marked > 0.0 || seen.never_arrived != Some(0.0) {
        return false;
    }
    let metric = "segments that the sender's TCP sent and the receiver's did not get";
    let source = "streams[].receiver.samples[].tcp.data_segs_in";
    scales.value(metric, seen.never_arrived, "segments", Bound::Above(0.0), None, source) == Some(false)
}
