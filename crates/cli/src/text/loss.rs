//! UDP loss output.

use std::fmt::Write as _;

use landspeed_model::{DepartureError, LossLocation, RunDocument, UdpTotals};
use landspeed_units::Nanos;

use super::{Page, percent, plural};

/// Formats loss and jitter: `12 of 34567 packets lost (0.035 %), 3 reordered, jitter 12.0 µs`.
pub fn short_summary(d: &RunDocument) -> String {
    let Some(udp) = &d.udp else { return String::new() };
    let mut line = lost(d, udp);
    for (count, what) in [
        (udp.reordered_packets, "reordered"),
        (udp.duplicate_packets, "duplicated"),
        (udp.refused_packets, "refused by the sender's kernel"),
    ] {
        if let Some(count @ 1..) = count {
            let _ = write!(line, ", {count} {what}");
        }
    }
    if let Some(jitter) = udp.jitter_ns {
        let _ = write!(line, ", jitter {}", Nanos::new(jitter));
    }
    line
}

fn lost(d: &RunDocument, udp: &UdpTotals) -> String {
    match (udp.lost_packets, udp.sent_packets, udp.delivered_packets) {
        (Some(0), Some(sent), _) => format!("none of {} lost", plural(sent, "packet")),
        (Some(lost @ ..0), Some(sent), _) => {
            format!("unknown: {} more arrived than the {sent} sent", plural(lost.unsigned_abs(), "packet"))
        }
        (Some(lost), Some(sent), _) => {
            let share = udp.loss_ratio.map(|share| format!(" ({})", percent(share))).unwrap_or_default();
            format!("{lost} of {} lost{share}", plural(sent, "packet"))
        }
        (_, sent, delivered) => {
            let counted = match (sent, delivered) {
                (Some(sent), _) => format!("; {} sent", plural(sent, "packet")),
                (_, Some(delivered)) => format!("; {} received", plural(delivered, "packet")),
                _ => String::new(),
            };
            format!("unknown: {}{counted}", d.why_unknown("udp.lost_packets").unwrap_or("not reported"))
        }
    }
}

/// Prints loss by location, and timing.
pub fn details(d: &RunDocument, page: &mut Page) {
    let Some(udp) = &d.udp else { return };
    let counts = [
        (udp.tail_lost_packets, "after the last arrival"),
        (udp.duplicate_packets, "duplicated"),
        (udp.reordered_packets, "reordered"),
        (udp.late_packets, "late"),
    ];
    let known: Vec<String> = counts.iter().filter_map(|(n, what)| Some(format!("{} {what}", (*n)?))).collect();
    let unknown: Vec<&str> = counts.iter().filter(|(n, _)| n.is_none()).map(|(_, what)| *what).collect();
    let mut line = lost(d, udp);
    if !known.is_empty() {
        let _ = write!(line, "; {}", known.join(", "));
    }
    if !unknown.is_empty() && udp.lost_packets.is_some() {
        let _ = write!(line, "; unknown: {}", unknown.join(", "));
    }
    page.line("loss", &line);
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
