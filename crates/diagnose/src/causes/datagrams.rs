//! UDP: locates packet loss between the two sockets.

use landspeed_model::Cause;

use crate::causes::firewall::{Refusal, refusal};
use crate::causes::receiver_drops::find_policer;
use crate::finding::{Bound, Finding, FindingBuilder, Strength};
use crate::flow::Flow;
use crate::route::DropPlace;
use crate::text;
use crate::thresholds::{EXPLAINS, RATE_REACHED, UDP_LOSS};
use crate::udp::{BATCHES, Udp};

/// Returns a finding for each of `causes`; at most one is named.
pub(super) fn evaluate_all(flow: &Flow, causes: impl IntoIterator<Item = Cause>) -> Vec<Finding> {
    let evaluate = |cause: Cause| {
        let Some(udp) = &flow.udp else { return Finding::not_applicable(cause) };
        let builder = FindingBuilder::new(flow, cause);
        match cause {
            Cause::LocalQdisc => own_queue(flow, udp, builder),
            Cause::ReceiverHostDrops => receiving_host(flow, udp, builder),
            Cause::NetworkCongestion => queue(flow, udp, builder),
            Cause::NetworkLoss => lost(flow, udp, builder),
            cause => Finding::not_applicable(cause),
        }
    };
    causes.into_iter().map(evaluate).collect()
}

/// Returns where the lab dropped most packets.
fn lab_place(flow: &Flow) -> Option<DropPlace> {
    flow.route.as_ref()?.main_drops().map(|(place, ..)| place)
}

/// The sender's own qdisc refused or dropped packets.
fn own_queue(flow: &Flow, udp: &Udp, mut builder: FindingBuilder) -> Finding {
    let end = Some(flow.sender.end);
    let name = flow.sender.name();
    if udp.refused > 0.0 {
        let source = "streams[].sender.udp.send_errors";
        let bound = Bound::AtLeast(UDP_LOSS);
        let metric = "packets refused by the sender's kernel";
        builder.value(metric, Some(udp.refused_share), "ratio", bound, end, source);
        let bound = Bound::AtLeast((udp.refused * EXPLAINS / udp.datagrams_per_packet).max(1.0));
        let metric = "packets dropped by the sender's qdiscs and interface";
        let source = format!("host_series.{}.qdiscs", flow.sender.name());
        builder.optional(metric, flow.sender.local_drops(), "packets", bound, end, &source);
    }
    let place = format!("{name}, qdisc");
    if udp.refuses() {
        // Hosts of a lab have no packet filter.
        let strength = match refusal(flow, udp) {
            _ if flow.route.is_some() => Strength::Strong,
            Refusal::Queue(strength) => strength,
            Refusal::Filter(_) => return builder.refuted(),
        };
        let left = udp.offered_bps.unwrap_or(flow.goodput_bps);
        let why = format!(
            "the {name}'s qdisc or interface was full and refused {} of the packets (ENOBUFS)",
            text::percent(udp.refused_share)
        );
        let next = format!(
            "Look for a shaper on the {name} (`tc -s qdisc`), or send at the rate that leaves it: `--rate {}`.",
            text::rate_argument(left / flow.streams.len().max(1) as f64)
        );
        return Finding { place: Some(place), ..builder.holds(strength, why, next) };
    }
    if !udp.loses() {
        return builder.refuted();
    }
    let metric = "lost packets dropped by the sender's qdisc";
    let most = Bound::AtLeast(EXPLAINS);
    let own = builder.value(metric, udp.share(udp.in_sender), "ratio", most, end, "conservation.losses");
    let in_lab = lab_place(flow) == Some(DropPlace::OwnQueue);
    if own != Some(true) && !in_lab {
        return builder.refuted();
    }
    if let Some(hop) = flow.route.as_ref().and_then(|route| route.forward.first()).filter(|_| in_lab) {
        let metric = format!("packets dropped by the queue before {}", hop.link.name);
        builder.value(&metric, Some(hop.drops), "packets", Bound::Above(0.0), end, "queues[].series.drops");
    }
    let why = format!("{}, most of them in the {name}'s qdisc or interface", lost_text(udp));
    Finding { place: Some(place), ..builder.holds(Strength::Moderate, why, lower_rate(flow)) }
}

/// Packets reached the receiving host but not the socket.
fn receiving_host(flow: &Flow, udp: &Udp, mut builder: FindingBuilder) -> Finding {
    if !udp.loses() {
        return builder.refuted();
    }
    let end = Some(flow.receiver.end);
    let metric = "lost packets dropped in the host before the socket";
    let most = Bound::AtLeast(EXPLAINS);
    let before = builder.value(metric, udp.share(udp.in_receiver), "ratio", most, end, "conservation.losses");
    let in_lab = lab_place(flow) == Some(DropPlace::ReceiverHost);
    if before != Some(true) && !in_lab {
        return builder.refuted();
    }
    if let Some(route) = flow.route.as_ref().filter(|_| in_lab) {
        let metric = "packets dropped by the receiving host";
        builder.value(metric, Some(route.host_drops), "packets", Bound::Above(0.0), end, "host_drops[].dropped");
    }
    let name = flow.receiver.name();
    if flow.receiver.ingress_drops() >= udp.lost * EXPLAINS && !in_lab {
        let why = format!("{}, most of them by a filter of the {name}'s interface (a policer)", lost_text(udp));
        let place = format!("{name}, ingress filter");
        return Finding { place: Some(place), ..builder.holds(Strength::Moderate, why, find_policer(flow)) };
    }
    let why = format!("{}, most of them inside the {name} before the socket", lost_text(udp));
    let next = format!(
        "On the {name} raise net.core.netdev_max_backlog and the receive ring, and spread interrupts over more cores; or \
         send at `--rate {}`.",
        text::rate_argument(flow.goodput_bps * RATE_REACHED / flow.streams.len().max(1) as f64)
    );
    let strength = if in_lab { Strength::Strong } else { Strength::Moderate };
    Finding { place: Some(format!("{name}, backlog or ring")), ..builder.holds(strength, why, next) }
}

/// A queue on the path overflows: the lab counted its drops, or latency rises under load.
fn queue(flow: &Flow, udp: &Udp, mut builder: FindingBuilder) -> Finding {
    if !udp.loses() {
        return builder.refuted();
    }
    if let Some(route) = &flow.route {
        let Some((DropPlace::Queue(at), dropped, all)) = route.main_drops() else { return builder.refuted() };
        let hop = &route.forward[at];
        let source = hop.queue.map_or(String::new(), |(index, _)| format!("queues[{index}].series.drops"));
        let metric = format!("packets dropped by the queue before {}", hop.link.name);
        builder.value(&metric, Some(dropped), "packets", Bound::Above(0.0), None, &source);
        let why = format!(
            "{} in the queue before {}, whose link was {} used by all flows",
            lost_text(udp),
            hop.link.name,
            text::percent(hop.utilisation.min(1.0))
        );
        let strength = if dropped >= 0.75 * all { Strength::Strong } else { Strength::Moderate };
        let finding = builder.holds(strength, why, lower_rate(flow));
        return Finding { place: Some(format!("network, {}", hop.link.name)), ..finding };
    }
    let inflation = latency_inflation(flow);
    let source = "latency_under_load.loaded.p50_ns";
    let metric = "latency under load over idle";
    let queued = builder.optional(metric, inflation, "ratio", Bound::AtLeast(2.0), None, source);
    if queued == Some(true) && udp.share(udp.in_network) >= Some(EXPLAINS) {
        let why = format!("{} on the path while latency beside it rose: a queue overflows", lost_text(udp));
        return builder.holds(Strength::Moderate, why, lower_rate(flow));
    }
    builder.refuted()
}

/// Packets were lost without any host counter increasing, or on a link of the lab.
fn lost(flow: &Flow, udp: &Udp, mut builder: FindingBuilder) -> Finding {
    let lossy = builder.value("packets lost", udp.loss, "ratio", Bound::AtLeast(UDP_LOSS), None, "udp.loss_ratio");
    let metric = "lost packets no host counter explains";
    let most = Bound::AtLeast(EXPLAINS);
    let in_network = builder.value(metric, udp.share(udp.in_network), "ratio", most, None, "conservation.losses");
    if lossy == Some(true) && udp.share(udp.of_either) >= Some(EXPLAINS) {
        builder.record_missing("which host dropped the packets: its counters do not separate the two directions");
    }
    if lossy != Some(true) || in_network != Some(true) || latency_inflation(flow).is_some_and(|ratio| ratio >= 2.0) {
        return builder.refuted();
    }
    if let Some(route) = &flow.route {
        let Some((DropPlace::Link(at), frames, _)) = route.main_drops() else { return builder.refuted() };
        let link = route.forward[at].link;
        let metric = format!("frames lost on {}", link.name);
        builder.value(&metric, Some(frames), "frames", Bound::Above(0.0), None, "links[].lost");
        let why = format!("{}: the link {} loses frames", lost_text(udp), link.name);
        let next = "Repair the link; a lower rate does not avoid random loss.".to_owned();
        let finding = builder.holds(Strength::Strong, why, next);
        return Finding { place: Some(format!("network, {}", link.name)), ..finding };
    }
    builder.record_missing("whether a queue overflows or the loss is random: UDP alone does not show it");
    if udp.in_batches {
        builder.record_missing(BATCHES);
    }
    let why = format!(
        "{} of the packets were lost between the hosts: no counter of either host explains them",
        text::percent(udp.loss.unwrap_or(0.0))
    );
    let next = format!(
        "Run again at half the rate with `--rate {}`. Loss that goes away is a full queue or a policer, loss that stays is a \
         bad link.",
        text::rate_argument(flow.goodput_bps / 2.0 / flow.streams.len().max(1) as f64)
    );
    // Loopback has no network: a packet filter or relay dropped them, or a counter of this host was not read.
    let strength = match () {
        () if udp.in_batches => Strength::Weak,
        () if flow.loopback() => Strength::Moderate,
        () => Strength::Strong,
    };
    builder.holds(strength, why, next)
}

fn lost_text(udp: &Udp) -> String {
    format!("{} of the packets were lost", text::percent(udp.loss.unwrap_or(0.0)))
}

fn lower_rate(flow: &Flow) -> String {
    let rate = text::rate_argument(flow.goodput_bps / flow.streams.len().max(1) as f64);
    format!("Lower the rate to what arrives with `--rate {rate}`, and raise it until loss begins.")
}

/// Ratio of the median latency under load to the idle median.
fn latency_inflation(flow: &Flow) -> Option<f64> {
    let latency = flow.document.latency_under_load.as_ref()?;
    let idle = latency.idle.as_ref()?.p50_ns.filter(|&ns| ns > 0)?;
    Some(latency.loaded.p50_ns? as f64 / idle as f64)
}
