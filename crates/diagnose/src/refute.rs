//! Refutation: readings elsewhere in the document that contradict a cause. A refuted cause cannot be named.

use landspeed_model::Cause;

use crate::finding::{Bound, Finding, FindingBuilder, Standing, Strength};
use crate::flow::Flow;
use crate::load::ends_alternate;
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
        let mut builder = FindingBuilder::new(flow, finding.cause);
        let window = matches!(finding.cause, Cause::ReceiverWindow | Cause::SendBuffer);
        let inferred = matches!(finding.cause, Cause::SlowReader | Cause::Application) && !finding.direct;
        let by_network = matches!(
            finding.cause,
            Cause::NetworkLoss | Cause::NetworkCongestion | Cause::ShallowBuffer | Cause::Policer
        );
        // If a buffer, a reader or an application limits, the path is not full. A requested rate that was reached
        // needs no inference.
        let refuted = ((window || inferred) && full_link(flow, &mut builder))
            || (window && own_queue && has_local_backlog(flow, &mut builder))
            || (by_network && seen.as_ref().is_some_and(|seen| nothing_lost(seen, &mut builder)));
        if refuted {
            finding.standing = Standing::Refuted;
            finding.direct = false;
            finding.readings = builder.finish(Standing::Refuted).readings;
        } else if let Some(unknown) = missing_information(flow, seen.as_ref()).filter(|_| window) {
            finding.standing = Standing::Supported(Strength::Weak);
            finding.missing.push(unknown.to_owned());
        }
    }
}

/// The information that is missing to be certain that a window limits.
fn missing_information(flow: &Flow, seen: Option<&Symptoms>) -> Option<&'static str> {
    if seen.is_some_and(|seen| may_be_queued(flow, seen)) {
        Some("whether the path was full: its queue never emptied")
    } else if flow.parameters.window_bytes.is_none() && ends_alternate(flow) {
        Some("whether the buffer limits while both threads have a core")
    } else {
        None
    }
}

/// Whether the lab's path was full.
fn full_link(flow: &Flow, builder: &mut FindingBuilder) -> bool {
    let Some(hop) = flow.route.as_ref().and_then(|route| route.full()) else { return false };
    let metric = format!("utilisation of {}", hop.link.name);
    let source = format!("links[{}]", hop.link_index);
    builder.value(&metric, Some(hop.utilisation), "ratio", Bound::Below(FULL_LINK), None, &source) == Some(false)
}

/// Whether the sender's own qdisc has a backlog: data there has already passed both windows.
fn has_local_backlog(flow: &Flow, builder: &mut FindingBuilder) -> bool {
    let Some(hop) = flow.route.as_ref().and_then(|route| route.forward.first()) else { return false };
    let metric = "bytes waiting in the sender's qdisc";
    let source = format!("queues, {}", hop.link.name);
    builder.value(metric, Some(hop.backlog_bytes), "bytes", Bound::Below(1.0), None, &source) == Some(false)
}

/// Whether data always waits in a queue of the path: the window exceeds the BDP of a full path, or bursts
/// queue. Only a lab run can tell which.
fn may_be_queued(flow: &Flow, seen: &Symptoms) -> bool {
    let queued = seen.queue == Queue::Standing || seen.always_queued();
    flow.route.is_none() && queued && (!flow.same_host() || seen.queues_long(flow))
}

/// Whether both TCPs agree that every segment arrived.
fn nothing_lost(seen: &Symptoms, builder: &mut FindingBuilder) -> bool {
    if seen.marked > 0.0 || seen.never_arrived != Some(0.0) {
        return false;
    }
    let metric = "segments that the sender's TCP sent and the receiver's did not get";
    let source = "streams[].receiver.samples[].tcp.data_segs_in";
    builder.value(metric, seen.never_arrived, "segments", Bound::Above(0.0), None, source) == Some(false)
}
