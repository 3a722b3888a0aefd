//! UDP figures.

use std::fmt::Write as _;

use landspeed_model::{DepartureError, Place, RunDocument};

use super::{Page, milliseconds, plural};

/// Writes loss, its places, and timing.
pub fn write(d: &RunDocument, out: &mut Page) {
    let Some(udp) = &d.udp else { return };
    let mut line = format!(
        "{} of {} ({:.4} %), {} of them after the last arrival",
        plural(udp.lost_packets.max(0) as u64, "packet"),
        udp.sent_packets,
        udp.loss_ratio * 100.0,
        udp.tail_lost_packets
    );
    if udp.lost_packets == 0 {
        "none".clone_into(&mut line);
    }
    let _ = write!(
        line,
        "; {} duplicated, {} reordered, {} late",
        udp.duplicate_packets, udp.reordered_packets, udp.late_packets
    );
    out.line("lost", &line);
    for loss in &d.conservation.losses {
        let whose = if loss.exact { "this test's own counter" } else { "shared with other traffic" };
        let source = &loss.source;
        out.line("", &format!("· {} in {} ({source}; {whose})", loss.packets, place(loss.place)));
    }
    let mut timing = Vec::new();
    if let Some(jitter) = udp.jitter_ns {
        timing.push(format!("jitter {} (RFC 3550)", milliseconds(jitter as f64)));
    }
    let errors: Vec<&DepartureError> =
        d.streams.iter().filter_map(|s| s.sender.as_ref()?.udp.as_ref()?.departure_error.as_ref()).collect();
    if let Some(worst) = errors.iter().max_by_key(|e| e.p99_ns) {
        timing.push(format!(
            "departures off schedule by p50 {}, p99 {}, max {}",
            milliseconds(worst.p50_ns as f64),
            milliseconds(worst.p99_ns as f64),
            milliseconds(worst.max_ns as f64)
        ));
    }
    if !timing.is_empty() {
        out.line("timing", &timing.join("; "));
    }
}

fn place(place: Place) -> &'static str {
    match place {
        Place::SenderQdisc => "the sender's queueing discipline",
        Place::SenderNic => "the sender's interface",
        Place::Network => "the network",
        Place::ReceiverNic => "the receiver's interface",
        Place::ReceiverBacklog => "the receiver's backlog",
        Place::ReceiverSocket => "the receiver's socket buffer",
    }
}
