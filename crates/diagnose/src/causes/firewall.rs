//! Cause: the packet filter of a host drops packets.

use landspeed_model::Cause;

use crate::finding::{Bound, Finding, FindingBuilder, Strength};
use crate::flow::Flow;
use crate::host::{HostView, Ip};
use crate::text;
use crate::thresholds::{EXPLAINS, FEW_RETRANSMITS, FILTERED_SHARE, UDP_LOSS};
use crate::udp::Udp;

/// The cause is named if the drops of a host's packet filter account for the losses. Both hosts' IP counters show them;
/// a watched host also has the counters of its rules.
pub(crate) fn evaluate(flow: &Flow) -> Finding {
    if flow.route.is_some() || flow.is_rr() {
        return Finding::not_applicable(Cause::Firewall);
    }
    let mut builder = FindingBuilder::new(flow, Cause::Firewall);
    let dropped =
        received(flow, &mut builder).or_else(|| sent(flow, &mut builder)).or_else(|| by_rules(flow, &mut builder));
    let Some(Dropped { host, why, strength }) = dropped else { return builder.refuted_or_not_applicable() };
    let name = host.name();
    let next = format!(
        "On the {name} find the rule whose counter rises: `nft list ruleset`, `conntrack -S`; a rule without a counter shows \
         with `perf trace -e skb:kfree_skb`."
    );
    let place = format!("{name}, packet filter");
    Finding { place: Some(place), ..builder.holds(strength, why, next) }
}

/// Drops of a packet filter that account for what the flow lost.
struct Dropped<'f, 'a> {
    host: &'f HostView<'a>,
    why: String,
    /// At most moderate: the counters cover all traffic of the host.
    strength: Strength,
}

/// The receiver's IP dropped about as many packets on their way to TCP or UDP as the flow lost.
fn received<'f, 'a>(flow: &'f Flow<'a>, builder: &mut FindingBuilder<'_, '_>) -> Option<Dropped<'f, 'a>> {
    let host = &flow.receiver;
    let filtered = host.filtered_in(flow.ip())?;
    let (lost, what) = match &flow.udp {
        Some(udp) => (Some(udp.lost).filter(|_| udp.loses())?, "datagrams were lost"),
        None => (signs_of_loss(flow)?, signs_text(flow)),
    };
    let segments = filtered * host.segments_per_packet(flow.received(|tcp| tcp.data_segs_in.map(u64::from)));
    // One missing packet makes many arrive out of order.
    let least = if flow.udp.is_some() || flow.sender_seen() { lost * EXPLAINS } else { 0.0 };
    let enough = Bound::AtLeast(least.max(FEW_RETRANSMITS));
    let metric = "packets received by IP and dropped before TCP or UDP";
    let source = match flow.ip() {
        Ip::V4 => format!("host_series.{}.snmp, Ip.InReceives − Ip.InDelivers", host.name()),
        Ip::V6 => format!("host_series.{}.snmp, Ip6InReceives − Ip6InDelivers", host.name()),
    };
    let met = builder.value(metric, Some(segments), "packets", enough, Some(host.end), &source) == Some(true);
    // A filter that drops far more than the flow lost drops other traffic.
    let own = lost >= segments * EXPLAINS;
    (met && own).then(|| Dropped {
        host,
        why: format!(
            "the {}'s packet filter dropped {} packets that had arrived, and {} {what}",
            host.name(),
            text::number(segments),
            text::number(lost)
        ),
        strength: Strength::Moderate,
    })
}

/// The sender's IP dropped a large part of what TCP or UDP gave it; TCP does not count that as loss.
fn sent<'f, 'a>(flow: &'f Flow<'a>, builder: &mut FindingBuilder<'_, '_>) -> Option<Dropped<'f, 'a>> {
    if let Some(udp) = flow.udp.as_ref().filter(|udp| udp.refuses()) {
        return refused(flow, udp, builder);
    }
    let host = &flow.sender;
    let (filtered, asked) = host.filtered_out(flow.ip())?;
    let share = filtered / asked;
    if filtered < FEW_RETRANSMITS {
        return None;
    }
    let metric = "packets dropped between TCP or UDP and the interface";
    let source = match flow.ip() {
        Ip::V4 => format!("host_series.{}.snmp, Ip.OutRequests − Ip.OutTransmits", host.name()),
        Ip::V6 => format!("host_series.{}.snmp, Ip6OutRequests − Ip6OutTransmits", host.name()),
    };
    let enough = Bound::AtLeast(FILTERED_SHARE);
    let met = builder.value(metric, Some(share), "ratio", enough, Some(host.end), &source) == Some(true);
    met.then(|| Dropped {
        host,
        why: format!(
            "the {}'s packet filter dropped {} of the packets that it was to send",
            host.name(),
            text::percent(share)
        ),
        strength: Strength::Moderate,
    })
}

/// What refused datagrams at the sender, with the strength of the evidence.
pub(super) enum Refusal {
    /// A queueing discipline or an interface (ENOBUFS).
    Queue(Strength),
    /// A packet filter in output (EPERM).
    Filter(Strength),
}

/// Decides by the sender's counters what refused datagrams: its queueing disciplines and interface count what they drop,
/// and what a filter drops never reached the interface.
pub(super) fn refusal(flow: &Flow, udp: &Udp) -> Refusal {
    let explains = |packets: f64| packets * udp.datagrams_per_packet >= udp.refused * EXPLAINS;
    let filtered = flow.sender.filtered_out(flow.ip()).map(|(filtered, _)| filtered);
    match (flow.sender.local_drops(), filtered) {
        (drops, Some(filtered)) if explains(filtered) && drops.is_none_or(|drops| drops < filtered) => {
            Refusal::Filter(Strength::Moderate)
        }
        (Some(drops), _) if explains(drops) => Refusal::Queue(Strength::Strong),
        // IP handed them on: a device below this interface dropped them.
        (_, Some(_)) | (None, None) => Refusal::Queue(Strength::Moderate),
        // The counters of filters are unknown, and the queues do not explain the refusals.
        (Some(_), None) => Refusal::Filter(Strength::Weak),
    }
}

/// The sender's kernel refused datagrams, and neither its queueing disciplines nor its interface did.
fn refused<'f, 'a>(flow: &'f Flow<'a>, udp: &Udp, builder: &mut FindingBuilder<'_, '_>) -> Option<Dropped<'f, 'a>> {
    let host = &flow.sender;
    let end = Some(host.end);
    let metric = "packets refused by the sender's kernel";
    let enough = Bound::AtLeast(UDP_LOSS);
    let source = "streams[].sender.udp.send_errors";
    builder.value(metric, Some(udp.refused_share), "ratio", enough, end, source);
    let few = Bound::Below((udp.refused * EXPLAINS / udp.datagrams_per_packet).max(1.0));
    let metric = "packets dropped by the sender's qdiscs and interface";
    let source = format!("host_series.{}.qdiscs", host.name());
    builder.optional(metric, host.local_drops(), "packets", few, end, &source);
    let Refusal::Filter(strength) = refusal(flow, udp) else { return None };
    Some(Dropped {
        host,
        why: format!(
            "the {}'s packet filter refused {} of the packets (EPERM): no qdisc and no interface dropped as many",
            host.name(),
            text::percent(udp.refused_share)
        ),
        strength,
    })
}

/// A watched host: its rules dropped about as many packets as the flow lost.
fn by_rules<'f, 'a>(flow: &'f Flow<'a>, builder: &mut FindingBuilder<'_, '_>) -> Option<Dropped<'f, 'a>> {
    let host_readings = flow.host_readings?;
    let host = flow.local();
    let count = |packets: Option<u64>| packets.map(|packets| packets as f64);
    let lost = signs_of_loss(flow)?;
    // One missing packet makes many arrive out of order.
    let least = if flow.sends() { lost * EXPLAINS } else { 0.0 };
    let enough = Bound::AtLeast(least.max(FEW_RETRANSMITS));
    let mut dropped: Option<(&str, f64)> = None;
    for (metric, packets, source) in [
        ("packets dropped by nft rules with a counter", host_readings.nft_drops, "nft list ruleset"),
        ("packets dropped or not tracked by conntrack", host_readings.conntrack_drops, "/proc/net/stat/nf_conntrack"),
        (
            "packets dropped by a packet filter on this host",
            host_readings.filter_drops,
            "skb:kfree_skb NETFILTER_DROP",
        ),
    ] {
        let met = builder.optional(metric, count(packets), "packets", enough, Some(host.end), source) == Some(true);
        let others = |packets: f64| !flow.sends() && lost < packets * EXPLAINS;
        if let Some(packets) = count(packets).filter(|&packets| met && dropped.is_none() && !others(packets)) {
            dropped = Some((source, packets));
        }
    }
    if host_readings.nft_drops.is_none() && host_readings.filter_drops.is_none() {
        builder.record_missing("drops of the packet filter (nft counters need root)");
    }
    let (source, packets) = dropped?;
    let why = format!(
        "the {}'s packet filter dropped {} packets ({source}), and {} {}",
        host.name(),
        text::number(packets),
        text::number(lost),
        signs_text(flow)
    );
    Some(Dropped { host, why, strength: Strength::Moderate })
}

/// What [`signs_of_loss`] counts.
fn signs_text(flow: &Flow) -> &'static str {
    if flow.sender_seen() { "segments were retransmitted" } else { "segments arrived out of order" }
}

/// Segments retransmitted or, without the sender's counters, received out of order; `None` without any.
pub(super) fn signs_of_loss(flow: &Flow) -> Option<f64> {
    let lost = if flow.sender_seen() {
        flow.increase(|tcp| Some(u64::from(tcp.total_retrans)))
    } else {
        flow.received(|tcp| tcp.rcv_ooopack.map(u64::from))
    };
    lost.filter(|&segments| segments > 0.0)
}
