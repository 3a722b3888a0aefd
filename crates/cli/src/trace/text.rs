//! A capture in as few lines as it takes.

use std::fmt::Write as _;

use landspeed_model::{
    TraceDirection, TraceDocument, TraceFlow, TraceLimits, TracePath, TraceStation, TraceTransport,
};
use landspeed_units::{BitRate, Bytes, Nanos};

use crate::text::Page;

/// Flows printed; the rest is in the document.
const SHOWN_FLOWS: usize = 8;
/// A reverse direction with less payload is not printed: acknowledgements of an application, a handshake of TLS.
const LEAST_REVERSE_BYTES: u64 = 100_000;
/// Stations printed.
const SHOWN_STATIONS: usize = 4;

/// The whole summary.
pub fn summary(document: &TraceDocument) -> String {
    let mut page = Page::default();
    let capture = &document.capture;
    page.line(
        "capture",
        &format!(
            "{}{} ({}): {} frames, {}, {}",
            capture.goodput_bps.map_or_else(String::new, |bps| format!("goodput {} in ", rate(bps))),
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
        (capture.copies, "copies of other frames"),
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
    if let Some(lost) = placed(forward) {
        page.line("placed", &lost);
    }
    page.line("window", &window(forward, &flow.reverse));
    if let Some(ecn) = ecn(flow) {
        page.line("ecn", &ecn);
    }
    if let Some(reset) = &flow.reset {
        let by = if reset.by == flow.source { "the sender" } else { "the receiver" };
        page.line("reset", &format!("by {by} at {} (frame {})", Nanos::new(reset.time_ns), reset.frame));
    }
    if flow.reverse.payload_bytes >= LEAST_REVERSE_BYTES {
        let reverse = &flow.reverse;
        let goodput = reverse.goodput_bps.map_or_else(String::new, |bps| format!("{}, ", rate(bps)));
        let lost = placed(reverse).map_or_else(String::new, |lost| format!("; {lost}"));
        let words = format!("{goodput}{}; {}{lost}", Bytes::new(reverse.unique_bytes), loss(reverse, forward));
        page.line("reverse", &words);
    }
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

/// Where packets of a direction were lost, between taps and behind them.
fn placed(direction: &TraceDirection) -> Option<String> {
    let mut words = format!("{} lost between taps", direction.lost_network?);
    if let Some(lost) = direction.lost_receiver {
        let _ = write!(words, ", {lost} dropped by the receiver host");
    }
    if let Some(open) = direction.undetermined_receiver.filter(|&open| open > 0) {
        let _ = write!(words, ", {open} undetermined (no DSACK and no ACK that lacks them)");
    }
    Some(words)
}

/// The window that the receiver announced, and what was in flight.
fn window(forward: &TraceDirection, reverse: &TraceDirection) -> String {
    let mut words = format!("max in flight {}, ", Bytes::new(forward.in_flight_max_bytes));
    match (reverse.window_min_bytes, reverse.window_max_bytes, reverse.window_scale_in_force) {
        (Some(least), Some(most), _) => {
            let _ = write!(words, "receive window {} to {}", Bytes::new(least), Bytes::new(most));
        }
        (_, _, None) => {
            words.push_str("receive window unknown (no window scale");
            if let Some(least) = reverse.window_scale_at_least {
                let _ = write!(words, ", {least} or more");
            }
            words.push(')');
        }
        _ => words.push_str("no receive window seen"),
    }
    if reverse.zero_windows > 0 {
        let _ = write!(words, ", zero {} times for {}", reverse.zero_windows, Nanos::new(reverse.zero_window_ns));
        if let Some(first) = reverse.zero_window_periods.first() {
            let _ = write!(words, ", first at {} (frame {})", Nanos::new(first.start_ns), first.frame);
        }
    }
    if forward.probes > 0 {
        let _ = write!(words, "; {} keep-alives and window probes", forward.probes);
    }
    if reverse.reneged > 0 {
        let _ = write!(words, "; receiver reneged {} times (dropped data it had SACKed)", reverse.reneged);
    }
    words
}

/// Explicit congestion notification, where a packet was marked or said so.
fn ecn(flow: &TraceFlow) -> Option<String> {
    let (marks, echoes) = (flow.forward.ecn?, flow.reverse.ecn.unwrap_or_default());
    let capable = marks.ect0 + marks.ect1 + marks.ce;
    let mut words = format!("{} of {capable} packets CE", marks.ce);
    match echoes.reported_ce {
        Some(reported) => {
            let _ = write!(words, "; receiver reports {reported} (AccECN)");
        }
        None => {
            let _ = write!(words, "; {} ACKs with ECE, {} segments with CWR", echoes.ece, marks.cwr);
        }
    }
    (capable > 0).then_some(words)
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
        return "no retransmits".to_owned();
    }
    let kinds = [
        (again.fast, "fast"),
        (again.timeout, "after an RTO"),
        (again.tail, "TLP"),
        (again.lost_before_tap, "lost before the tap"),
        (again.unclassified, "unclassified"),
    ];
    let kinds: Vec<String> =
        kinds.iter().filter(|(count, _)| *count > 0).map(|(count, what)| format!("{count} {what}")).collect();
    let mut words = format!("{} retransmits", again.total());
    if !kinds.is_empty() {
        let _ = write!(words, " ({})", kinds.join(", "));
    }
    if again.spurious > 0 {
        let _ = write!(words, ", {} spurious (DSACK)", again.spurious);
    }
    if let Some(rto) = &forward.rto {
        let (least, most) = (Nanos::new(rto.min_ns), Nanos::new(rto.max_ns));
        let _ = write!(words, "; {} RTOs of {least} to {most}", rto.count);
    }
    if forward.out_of_order > 0 {
        let _ = write!(words, "; {} reordered", forward.out_of_order);
    }
    if forward.duplicates > 0 {
        let _ = write!(words, "; {} duplicated in the network", forward.duplicates);
    }
    let _ = write!(words, "; {} duplicate ACKs", reverse.duplicate_acks);
    words
}

fn held_back(limits: &TraceLimits) -> String {
    let parts = [
        (limits.sending_ns, "limited by cwnd, pacing or path"),
        (limits.receiver_window_ns, "receiver-limited (rwnd)"),
        (limits.recovery_ns, "recovery"),
        (limits.pacing_ns, "limited by pacing or a shaper before the tap"),
        (limits.idle_ns, "sender-limited (application)"),
    ];
    let share = |ns: u64| ns as f64 * 100.0 / limits.total_ns.max(1) as f64;
    let mut parts: Vec<_> = parts.into_iter().filter(|&(ns, _)| share(ns) >= 0.5).collect();
    parts.sort_by_key(|&(ns, _)| std::cmp::Reverse(ns));
    parts.iter().map(|&(ns, what)| format!("{:.0} % {what}", share(ns))).collect::<Vec<_>>().join(", ")
}

fn between(page: &mut Page, path: &TracePath) {
    let round_trip = path.round_trip_ns.map(|ns| format!(", min RTT between taps {}", Nanos::new(ns)));
    let words =
        format!("{} to {}: {} packets matched{}", path.from, path.to, path.matched, round_trip.unwrap_or_default());
    page.line("path", &words);
    for (label, way) in [("forward", &path.forward), ("reverse", &path.backward)] {
        let mut words = format!(
            "{} of {} lost ({} with data)",
            way.lost_data + way.lost_other,
            way.matched + way.lost_data + way.lost_other,
            way.lost_data
        );
        if way.reordered > 0 {
            let _ = write!(words, "; {} reordered", way.reordered);
        }
        if way.appeared > 0 {
            let _ = write!(words, "; {} seen only at the later tap", way.appeared);
        }
        if way.undetermined > 0 {
            let why = if path.matched == 0 { "no match" } else { "the other capture had not begun or had ended" };
            let _ = write!(words, "; {} undetermined ({why})", way.undetermined);
        }
        if let Some((p50, p99)) = way.delay_variation_p50_ns.zip(way.delay_variation_p99_ns) {
            let _ = write!(words, "; queueing delay p50 {}, p99 {}", Nanos::new(p50), Nanos::new(p99));
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
