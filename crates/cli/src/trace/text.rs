//! A capture in as few lines as it takes.

use std::fmt::Write as _;

use landspeed_model::{
    TraceDirection, TraceDocument, TraceFlow, TraceLimits, TracePath, TraceStation, TraceTransport,
};
use landspeed_units::{BitRate, Bytes, Nanos};

use crate::text::Page;

/// Flows printed; the rest is in the document.
const SHOWN_FLOWS: usize = 8;
/// Stations printed.
const SHOWN_STATIONS: usize = 4;

/// The whole summary.
pub fn summary(document: &TraceDocument) -> String {
    let mut page = Page::default();
    let capture = &document.capture;
    page.line(
        "capture",
        &format!(
            "{} ({}): {} frames, {}, {}",
            capture.file,
            capture.format,
            capture.frames,
            Bytes::new(capture.wire_bytes),
            Nanos::new(capture.duration_ns)
        ),
    );
    let left_out = left_out(document);
    if !left_out.is_empty() {
        page.line("aside", &left_out.join(", "));
    }
    for station in document.stations.iter().take(SHOWN_STATIONS) {
        wire(&mut page, station);
    }
    for flow in document.flows.iter().take(SHOWN_FLOWS) {
        page.text.push('\n');
        tell(&mut page, flow);
    }
    for path in &document.path {
        page.text.push('\n');
        between(&mut page, path);
    }
    let more = document.flows.len().saturating_sub(SHOWN_FLOWS) as u64 + document.unlisted.flows;
    if more > 0 {
        page.text.push('\n');
        page.line("more", &format!("{more} flows with less payload; --json has {}", document.flows.len()));
    }
    for warning in &document.warnings {
        page.line("note", &warning.message);
    }
    page.text
}

fn left_out(document: &TraceDocument) -> Vec<String> {
    let capture = &document.capture;
    let counts = [
        (capture.not_ip, "not IP"),
        (capture.cut, "cut before the transport header's end"),
        (capture.malformed, "malformed"),
        (capture.fragments, "later fragments"),
        (capture.other_transport, "neither TCP nor UDP"),
    ];
    counts.iter().filter(|(count, _)| *count > 0).map(|(count, what)| format!("{count} {what}")).collect()
}

fn rate(bps: f64) -> BitRate {
    BitRate::from_bps(bps.max(0.0) as u64)
}

fn wire(page: &mut Page, station: &TraceStation) {
    let from = station.mac.as_deref().unwrap_or("all frames");
    let fine = &station.per_1ms;
    let mut words = format!(
        "{} {from}: {} frames; in 1 ms bins mean {}, p99 {}, most {}",
        station.interface,
        station.frames,
        rate(fine.mean_bps),
        rate(fine.p99_bps),
        rate(fine.max_bps)
    );
    if let Some(above) = fine.above {
        let _ = write!(words, "; {above} of {} bins above the threshold", fine.bins);
    }
    let trains = &station.trains;
    if trains.trains > 0 {
        let _ = write!(
            words,
            "; {} trains, median {} frames, longest {}",
            trains.trains, trains.p50_frames, trains.longest_frames
        );
        if let Some(bps) = trains.rate_bps {
            let _ = write!(words, ", at {} inside", rate(bps));
        }
    }
    page.line("station", &words);
    if let Some(bursts) = station.microbursts.as_ref().filter(|bursts| bursts.count > 0) {
        let told = bursts.worst.iter().take(3).map(|burst| {
            let (bytes, at) = (Bytes::new(burst.bytes), Nanos::new(burst.start_ns));
            format!("{bytes} in {} at {at}, up to {}", Nanos::new(burst.duration_ns), rate(burst.peak_bps))
        });
        let told: Vec<String> = told.collect();
        page.line(
            "bursts",
            &format!("{} above {}: {}", bursts.count, rate(bursts.above_bps as f64), told.join("; ")),
        );
    }
    if let Some(spacing) = &station.ack_spacing
        && spacing.acks > 100
    {
        let mut words =
            format!("{} bare ACKs, {:.0} % within 1 us of the one before", spacing.acks, spacing.bunched * 100.0);
        if let Some((gap, share)) = spacing.usual_gap_ns.zip(spacing.usual_gap_share) {
            let _ = write!(words, "; usual gap {} ({:.0} %)", Nanos::new(gap), share * 100.0);
        }
        if let Some((period, confidence)) = spacing.period_ns.zip(spacing.period_confidence) {
            let period = Nanos::new(period);
            let _ = write!(words, "; in frames of {period} (agreement {confidence:.2})");
        }
        page.line("acks", &words);
    }
}

fn tell(page: &mut Page, flow: &TraceFlow) {
    let label = match flow.transport {
        TraceTransport::Tcp => "tcp",
        TraceTransport::Udp => "udp",
    };
    let (from, to) = (&flow.source, &flow.destination);
    let family = |address: &str, port: u16| {
        if address.contains(':') { format!("[{address}]:{port}") } else { format!("{address}:{port}") }
    };
    let goodput = flow.goodput_bps.map_or_else(|| "no payload over time".to_owned(), |bps| rate(bps).to_string());
    page.line(
        label,
        &format!(
            "{} -> {}: {goodput}, {} in {}",
            family(&from.address, from.port),
            family(&to.address, to.port),
            Bytes::new(flow.forward.unique_bytes),
            Nanos::new(flow.duration_ns)
        ),
    );
    let forward = &flow.forward;
    if let Some(numbered) = &forward.numbered {
        page.line(
            "numbers",
            &format!(
                "{}{}: {} lost of {}, {} reordered, {} twice",
                numbered.protocol,
                if numbered.confidence < 0.95 { ", it seems" } else { "" },
                numbered.lost,
                numbered.received + numbered.lost,
                numbered.reordered,
                numbered.duplicates
            ),
        );
    }
    if flow.transport == TraceTransport::Udp {
        return;
    }
    let rtt = round_trips(flow);
    if !rtt.is_empty() {
        page.line("rtt", &rtt);
    }
    page.line("loss", &loss(forward, &flow.reverse));
    if let Some(network) = flow.lost_network {
        let receiver =
            flow.lost_receiver.map_or_else(String::new, |lost| format!(", {lost} in the receiver after its tap"));
        page.line("placed", &format!("{network} lost between the taps{receiver}"));
    }
    page.line(
        "window",
        &format!(
            "most in flight {}, {}{}",
            Bytes::new(forward.in_flight_max_bytes),
            match (flow.reverse.window_min_bytes, flow.reverse.window_max_bytes) {
                (Some(least), Some(most)) =>
                    format!("receiver's window {} to {}", Bytes::new(least), Bytes::new(most)),
                _ => "no window seen".to_owned(),
            },
            match flow.reverse.zero_windows {
                0 => String::new(),
                times => format!(", closed {times} times"),
            }
        ),
    );
    if let Some(limits) = &forward.limits {
        page.line("time", &held_back(limits));
    }
    if let Some(per_ack) = forward.packets_per_ack {
        page.line(
            "acks",
            &format!("{per_ack:.1} data packets each, {} over more than two segments", forward.stretch_acks),
        );
    }
}

fn round_trips(flow: &TraceFlow) -> String {
    let mut words = Vec::new();
    if let Some(rtt) = &flow.forward.rtt {
        let median = rtt.p50_ns.map(|p50| format!("median {}, ", Nanos::new(p50))).unwrap_or_default();
        words.push(format!(
            "tap to receiver and back {}{} to {} ({} samples)",
            median,
            Nanos::new(rtt.min_ns),
            Nanos::new(rtt.max_ns),
            rtt.samples
        ));
    }
    if let Some(handshake) = &flow.handshake {
        let sides = [("server", handshake.server_rtt_ns), ("client", handshake.client_rtt_ns)];
        for (side, ns) in sides {
            if let Some(ns) = ns {
                words.push(format!("handshake to the {side} {}", Nanos::new(ns)));
            }
        }
    }
    words.join("; ")
}

fn loss(forward: &TraceDirection, reverse: &TraceDirection) -> String {
    let again = &forward.retransmits;
    if again.total() == 0 && forward.out_of_order == 0 && forward.duplicates == 0 {
        return "nothing sent again".to_owned();
    }
    let kinds = [
        (again.fast, "fast"),
        (again.timeout, "after a timeout"),
        (again.tail, "tail probes"),
        (again.lost_before_tap, "lost before the tap"),
        (again.unclassified, "without evidence why"),
    ];
    let kinds: Vec<String> =
        kinds.iter().filter(|(count, _)| *count > 0).map(|(count, what)| format!("{count} {what}")).collect();
    let mut words = format!("{} sent again", again.total());
    if !kinds.is_empty() {
        let _ = write!(words, " ({})", kinds.join(", "));
    }
    if again.spurious > 0 {
        let _ = write!(words, ", {} of them unneeded", again.spurious);
    }
    if forward.out_of_order > 0 {
        let _ = write!(words, "; {} out of order", forward.out_of_order);
    }
    if forward.duplicates > 0 {
        let _ = write!(words, "; {} copied on the way", forward.duplicates);
    }
    let _ = write!(words, "; {} duplicate ACKs", reverse.duplicate_acks);
    words
}

fn held_back(limits: &TraceLimits) -> String {
    let parts = [
        (limits.sending_ns, "sending (congestion window, pacing or path)"),
        (limits.receiver_window_ns, "receiver's window full"),
        (limits.recovery_ns, "repairing losses"),
        (limits.idle_ns, "nothing in flight (application)"),
    ];
    let share = |ns: u64| ns as f64 * 100.0 / limits.total_ns.max(1) as f64;
    let mut parts: Vec<_> = parts.into_iter().filter(|&(ns, _)| share(ns) >= 0.5).collect();
    parts.sort_by_key(|&(ns, _)| std::cmp::Reverse(ns));
    parts.iter().map(|&(ns, what)| format!("{:.0} % {what}", share(ns))).collect::<Vec<_>>().join(", ")
}

fn between(page: &mut Page, path: &TracePath) {
    let round_trip = path.round_trip_ns.map(|ns| format!(", {} there and back at the least", Nanos::new(ns)));
    let words =
        format!("{} to {}: {} packets matched{}", path.from, path.to, path.matched, round_trip.unwrap_or_default());
    page.line("path", &words);
    for (label, way) in [("there", &path.forward), ("back", &path.backward)] {
        let mut words = format!(
            "{} lost of {} ({} with data)",
            way.lost_data + way.lost_other,
            way.matched + way.lost_data + way.lost_other,
            way.lost_data
        );
        if way.reordered > 0 {
            let _ = write!(words, "; {} changed places", way.reordered);
        }
        if way.appeared > 0 {
            let _ = write!(words, "; {} seen only at the later tap", way.appeared);
        }
        if way.undetermined > 0 {
            let _ = write!(words, "; {} when the other tap had not begun or had ended", way.undetermined);
        }
        if let Some((p50, p99)) = way.delay_variation_p50_ns.zip(way.delay_variation_p99_ns) {
            let _ = write!(words, "; delay over the least: median {}, p99 {}", Nanos::new(p50), Nanos::new(p99));
        }
        if let Some(share) = way.delay_share {
            let _ = write!(words, ", {:.0} % of all hops'", share * 100.0);
        }
        page.line(label, &words);
    }
    if let Some(offset) = path.clock_offset_ns {
        let ahead = if offset < 0 { "behind" } else { "ahead of" };
        let offset = Nanos::new(offset.unsigned_abs());
        let mut words = format!("the second tap's is {offset} {ahead} the first's, if both ways take as long");
        if let Some((drift, unsure)) =
            path.drift_ppm.zip(path.drift_uncertainty_ppm).filter(|(drift, unsure)| drift.abs() > *unsure)
        {
            let _ = write!(words, "; it gains {drift:.2} ppm (± {unsure:.2}), taken out of the delays");
        }
        for step in &path.clock_steps {
            let gained = if step.step_ns < 0 { "back" } else { "ahead" };
            let by = Nanos::new(step.step_ns.unsigned_abs());
            let at = Nanos::new(step.time_ns.max(0).unsigned_abs());
            let _ = write!(words, "; stepped {by} {gained} by {at}");
        }
        page.line("clocks", &words);
    }
}
