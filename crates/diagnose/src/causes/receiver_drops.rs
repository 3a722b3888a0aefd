//! Cause: the receiving host drops packets before TCP receives them.

use landspeed_model::Cause;

use crate::causes::firewall::signs_of_loss;
use crate::finding::{Bound, FindingBuilder, NamedCause, Strength};
use crate::flow::Flow;
use crate::load::{Kind, Role, load};
use crate::text;
use crate::thresholds::{EXPLAINS, FEW_RETRANSMITS};

/// Values of `netdev_max_backlog` to recommend, smallest and largest, packets: a longer one only delays (IRQ-013).
const BACKLOG: (u64, u64) = (65_536, 250_000);

/// Whether a NIC counter counts packets dropped because the receive ring was full (mlx5, ixgbe/i40e/ice,
/// ena, generic).
fn ring_counter(name: &str) -> bool {
    ["rx_out_of_buffer", "rx_missed_errors", "rx_no_buffer_count", "rx_fifo_errors", "rx_no_dma_resources"]
        .iter()
        .any(|known| name.ends_with(known))
}

/// Whether a NIC counter indicates a bad cable, transceiver or port.
fn line_error(name: &str) -> bool {
    ["crc", "symbol", "align", "fcs", "phy_discard", "discards_phy"].iter().any(|part| name.contains(part))
}

/// Whether bad frames and discards at the receiver's interface account for the retransmissions.
pub(crate) fn bad_frames(flow: &Flow, retransmits: f64) -> bool {
    flow.receiver.nic_sum(line_error).is_some_and(|errors| errors as f64 >= (retransmits * EXPLAINS).max(1.0))
}

/// Drop counters of the receiving host, packets.
struct Counted {
    /// Filters of the interface: a policer.
    ingress: Option<f64>,
    backlog: Option<f64>,
    ring: Option<f64>,
    /// `Ip.InDiscards`: no memory, or a full queue.
    discards: Option<f64>,
}

fn counted(flow: &Flow) -> Counted {
    let host = &flow.receiver;
    Counted {
        ingress: host.series.map(|_| host.ingress_drops()).filter(|&packets| packets > 0.0),
        backlog: host.series.map(|series| series.softnet.dropped as f64),
        ring: host.nic_sum(ring_counter).map(|packets| packets as f64),
        discards: host.snmp("Ip.InDiscards").map(|packets| packets.max(0) as f64),
    }
}

/// Records the drop counters. `retransmits`: segments retransmitted in the phase.
pub(crate) fn read(builder: &mut FindingBuilder, flow: &Flow, retransmits: f64) {
    let name = flow.receiver.name();
    let end = Some(flow.receiver.end);
    let enough = Bound::AtLeast((retransmits * EXPLAINS).max(1.0));
    let counted = counted(flow);
    let source = format!("host_series.{name}.qdiscs");
    builder.optional("packets dropped by filters of the interface", counted.ingress, "packets", enough, end, &source);
    let source = format!("host_series.{name}.softnet.dropped");
    builder.optional("packets dropped by the backlog", counted.backlog, "packets", enough, end, &source);
    let source = format!("host_series.{name}.nic");
    builder.optional("packets the ring had no room for", counted.ring, "packets", enough, end, &source);
    let source = format!("host_series.{name}.snmp");
    builder.optional("packets discarded by IP (Ip.InDiscards)", counted.discards, "packets", enough, end, &source);
    if let Some(route) = &flow.route {
        let metric = "packets dropped by the receiving host";
        builder.value(metric, Some(route.host_drops), "packets", Bound::Above(0.0), end, "host_drops[].dropped");
    }
}

/// Names the drop if the receiving host's counters account for at least half of the retransmissions. A core
/// full of softirqs is receiver-cpu instead.
pub(super) fn by_counters(flow: &Flow, retransmits: f64) -> Option<NamedCause> {
    let counted = counted(flow);
    let enough = (retransmits * EXPLAINS).max(1.0);
    let own = load(flow, Role::Receiver);
    if own.kind == Kind::Softirq && own.strength.is_some() {
        return None;
    }
    let found = |packets: Option<f64>| packets.filter(|&packets| packets >= enough);
    let name = flow.receiver.name();
    let (what, packets, next) = if let Some(packets) = found(counted.ingress) {
        ("ingress filter", packets, find_policer(flow))
    } else if let Some(packets) = found(counted.backlog) {
        let now = flow.receiver.sysctl_max("net.core.netdev_max_backlog").unwrap_or(0);
        let to = now.saturating_mul(2).max(BACKLOG.0);
        let raise = if to <= BACKLOG.1 {
            format!("raise net.core.netdev_max_backlog (`sysctl -w net.core.netdev_max_backlog={to}`) and ")
        } else {
            String::new()
        };
        let next = format!("On {} {raise}spread softirqs over more cores (RPS).", flow.label(&flow.receiver));
        ("backlog", packets, next)
    } else if let Some(packets) = found(counted.ring) {
        let nic = flow.receiver.snapshot.and_then(|snapshot| snapshot.nic.as_ref());
        let ring = nic.and_then(|nic| nic.rx_ring);
        let nic = nic.map_or("IFACE", |nic| nic.name.as_str());
        let most = ring.map_or("MAX".to_owned(), |(_, most)| most.to_string());
        let enlarge = if ring.is_some_and(|(now, most)| now >= most) {
            String::new()
        } else {
            format!("enlarge the receive ring (`ethtool -G {nic} rx {most}`) and ")
        };
        let next = format!("On {} {enlarge}spread interrupts over more cores (RSS).", flow.label(&flow.receiver));
        ("receive ring", packets, next)
    } else if let Some(packets) = found(counted.discards) {
        let next = format!("On {} check `nstat -az` and memory pressure.", flow.label(&flow.receiver));
        ("IP input", packets, next)
    } else {
        return None;
    };
    let why = format!(
        "the {name} dropped {} packets in its {what} before TCP saw them, and {}",
        text::number(packets),
        match signs_of_loss(flow).filter(|_| flow.host_readings.is_some()) {
            Some(segments) => format!("{} segments arrived out of order", text::number(segments)),
            None => format!("the sender retransmitted {}", text::number(retransmits)),
        }
    );
    // These counters cover all traffic the host receives.
    Some(NamedCause::new(Cause::ReceiverHostDrops, Strength::Moderate, why, next).at(format!("{name}, {what}")))
}

/// Advice for packets that a filter of the receiver's interface dropped.
pub(super) fn find_policer(flow: &Flow) -> String {
    let nic = flow.receiver.snapshot.and_then(|snapshot| snapshot.nic.as_ref());
    let nic = nic.map_or("IFACE", |nic| nic.name.as_str());
    format!(
        "On {} look for a policer with `tc -s filter show dev {nic} ingress`: raise its rate and burst, or stay below it.",
        flow.label(&flow.receiver)
    )
}

/// As [`by_counters`], for a watched flow received by this host: retransmissions are unknown, so segments
/// that arrived out of order are counted.
pub(super) fn at_local_host(flow: &Flow) -> Option<NamedCause> {
    let here = flow.host_readings.is_some() && !flow.sends();
    let disordered = signs_of_loss(flow).filter(|&segments| here && segments >= FEW_RETRANSMITS)?;
    by_counters(flow, FEW_RETRANSMITS / EXPLAINS).filter(|_| {
        let counted = counted(flow);
        let dropped = [counted.ingress, counted.backlog, counted.ring, counted.discards]
            .into_iter()
            .flatten()
            .fold(0.0, f64::max);
        // Drops of other flows' packets do not make this flow's segments arrive out of order.
        disordered >= dropped * EXPLAINS
    })
}

/// Drops of the receiving host as counted by the lab.
pub(super) fn in_lab(flow: &Flow, dropped: f64, retransmits: f64, strength: Strength) -> NamedCause {
    let name = flow.receiver.name();
    let why = format!(
        "the {name} dropped {} packets that had arrived, and the sender retransmitted {}; no queue or link on the path lost as many",
        text::number(dropped),
        text::number(retransmits)
    );
    let next = format!(
        "On {} look for the drop with `nft list ruleset`, `ethtool -S IFACE` and /proc/net/softnet_stat; the network did not drop it.",
        flow.label(&flow.receiver)
    );
    NamedCause::new(Cause::ReceiverHostDrops, strength, why, next).at(format!("{name}, host"))
}
