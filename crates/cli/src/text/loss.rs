//! UDP loss output.

use std::fmt::Write as _;

use landspeed_model::{DepartureError, LossLocation, RunDocument, UdpTotals};
use landspeed_units::Nanos;

use super::{Page, percent, plural};

/// Formats loss and jitter: `12 of 34567 packets lost (0.035 %), 3 reordered, jitter 12.0 µs`.
pub fn short_summary(d: &RunDocument) -> String {
    let Some(udp) = &d.udp else { return String::new() };
    let mut line = lost(udp);
    for (count, what) in [
        (udp.reordered_packets, "reordered"),
        (udp.duplicate_packets, "duplicated"),
        (udp.refused_packets, "refused by the sender's kernel"),
    ] {
        if count > 0 {
            let _ = write!(line, ", {count} {what}");
        }
    }
    if let Some(jitter) = udp.jitter_ns {
        let _ = write!(line, ", jitter {}", Nanos::new(jitter));
    }
    line
}

fn lost(udp: &UdpTotals) -> String {
    if udp.lost_packets == 0 {
        return format!("none of {} lost", plural(udp.sent_packets, "packet"));
    }
    format!("{} of {} lost ({})", udp.lost_packets, plural(udp.sent_packets, "packet"), percent(udp.loss_ratio))
}

/// Prints loss by location, and timing.
pub fn details(d: &RunDocument, page: &mut Page) {
    let Some(udp) = &d.udp else { return };
    page.line(
        "loss",
        &format!(
            "{}; {} after the last arrival, {} duplicated, {} reordered, {} late",
            lost(udp),
            udp.tail_lost_packets,
            udp.duplicate_packets,
            udp.reordered_packets,
            udp.late_packets
        ),
    );
    for loss in &d.conservation.losses {
        let whose = if loss.exact { "counts this test alone" } else { "shared with other traffic" };
        page.line("", &format!("· {} in {} ({}; {whose})", loss.packets, place(loss.place), loss.source));
    }
    let mut timing = Vec::new();
    if let Some(jitter) = udp.jitter_ns {
        timing.push(format!("jitter {} (RFC 3550)", Nanos::new(jitter)));
    }
    let errors: Vec<&DepartureError> =
        d.streams.iter().filter_map(|s| s.sender.as_ref()?.udp.as_ref()?.departure_error.as_ref()).collect();
    if let Some(worst) = errors.iter().max_by_key(|e| e.p99_ns) {
        timing.push(format!(
            "departure jitter p50 {}, p99 {}, max {}",
            Nanos::new(worst.p50_ns),
            Nanos::new(worst.p99_ns),
            Nanos::new(worst.max_ns)
        ));
    }
    if !timing.is_empty() {
        page.line("timing", &timing.join("; "));
    }
}

fn place(place: LossLocation) -> &'static str {
    match place {
        LossLocation::SenderQdisc => "the sender's qdisc",
        LossLocation::SenderNic => "the sender's NIC",
        LossLocation::Network => "the network",
        LossLocation::ReceiverNic => "the receiver's NIC",
        LossLocation::ReceiverBacklog => "the receiver's softnet backlog",
        LossLocation::ReceiverSocket => "the receiver's socket buffer",
    }
}
