//! Cause: this host's packet filter drops packets.

use landspeed_model::Cause;

use crate::finding::{Bound, Finding, FindingBuilder, Strength};
use crate::flow::Flow;
use crate::text;
use crate::thresholds::{EXPLAINS, FEW_RETRANSMITS};

/// The cause is named if the filter's drops account for the losses seen by the local side.
pub(crate) fn evaluate(flow: &Flow) -> Finding {
    let Some(host_readings) = flow.host_readings else { return Finding::not_applicable(Cause::Firewall) };
    let mut builder = FindingBuilder::new(flow, Cause::Firewall);
    let end = Some(flow.local().end);
    let count = |packets: Option<u64>| packets.map(|packets| packets as f64);
    let Some(lost) = signs_of_loss(flow) else { return builder.refuted() };
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
        let met = builder.optional(metric, count(packets), "packets", enough, end, source) == Some(true);
        let others = |packets: f64| !flow.sends() && lost < packets * EXPLAINS;
        if let Some(packets) = count(packets).filter(|&packets| met && dropped.is_none() && !others(packets)) {
            dropped = Some((source, packets));
        }
    }
    if host_readings.nft_drops.is_none() && host_readings.filter_drops.is_none() {
        builder.record_missing("drops of the packet filter (nft counters need root)");
    }
    let Some((source, packets)) = dropped else { return builder.refuted() };
    let why = format!(
        "the {}'s packet filter dropped {} packets ({source}), and {} segments {}",
        flow.local().name(),
        text::number(packets),
        text::number(lost),
        if flow.sends() { "were retransmitted" } else { "arrived out of order" }
    );
    let next = "Find the rule whose counter rises: `nft list ruleset`, `conntrack -S`; a rule without a counter shows with `perf \
                trace -e skb:kfree_skb`."
        .to_owned();
    // The counters cover all traffic of this host.
    let mut finding = builder.holds(Strength::Moderate, why, next);
    finding.place = Some(format!("{}, packet filter", flow.local().name()));
    finding
}

/// Segments retransmitted by this host or received out of order; `None` without any.
pub(super) fn signs_of_loss(flow: &Flow) -> Option<f64> {
    let lost = if flow.sends() {
        flow.increase(|tcp| Some(u64::from(tcp.total_retrans)))
    } else {
        flow.received(|tcp| tcp.rcv_ooopack.map(u64::from))
    };
    lost.filter(|&segments| segments > 0.0)
}
