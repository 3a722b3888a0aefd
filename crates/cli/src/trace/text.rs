//! The terminal summary of a capture.

use std::fmt::Write as _;

use landspeed_model::{
    PacketDirection, TraceChecksums, TraceDirection, TraceDocument, TraceEndpoint, TraceFlow, TraceHandshake,
    TraceIcmp, TraceLimits, TraceMultipath, TracePath, TraceStation, TraceTransport,
};
use landspeed_units::{BitRate, Bytes, Nanos};

use crate::text::Page;

/// Flows printed; the JSON document has the others.
const MAX_PRINTED_FLOWS: usize = 8;
/// Minimum payload of a reverse direction that is printed: excludes application-level replies and TLS handshakes.
const MIN_REVERSE_BYTES: u64 = 100_000;
const MAX_PRINTED_STATIONS: usize = 4;
const MAX_PRINTED_PROTOCOLS: usize = 6;

/// Returns the summary: the capture, the path between taps, flows, stations, notes.
pub fn summary(document: &TraceDocument) -> String {
    let mut page = Page::default();
    let capture = &document.capture;
    page.line(
        "capture",
        &format!(
            "{}{} frames, {} in {}: {} ({})",
            capture.goodput_bps.map_or_else(String::new, |bps| format!("goodput {}, ", rate(bps))),
            capture.frames,
            Bytes::new(capture.wire_bytes),
            Nanos::new(capture.duration_ns),
            capture.file,
            capture.format
        ),
    );
    if let Some(filter) = &capture.filter {
        page.line("filter", &format!("{filter}; {} other frames are not analysed", capture.filtered_out));
    }
    if let Some(checksums) = &capture.checksums {
        page.line("checksum", &checksum_counts(checksums));
    }
    let skipped = skipped_frames(document);
    if !skipped.is_empty() {
        page.line("skipped", &skipped.join(", "));
    }
    for path in &document.path {
        page.text.push('\n');
        add_path(&mut page, path);
    }
    for flow in document.flows.iter().take(MAX_PRINTED_FLOWS) {
        page.text.push('\n');
        add_flow(&mut page, flow);
    }
    for connection in document.multipath.iter().take(MAX_PRINTED_FLOWS) {
        page.text.push('\n');
        add_multipath(&mut page, connection);
    }
    if !document.stations.is_empty() {
        page.text.push('\n');
    }
    for station in document.stations.iter().take(MAX_PRINTED_STATIONS) {
        add_station(&mut page, station);
    }
    let more = document.flows.len().saturating_sub(MAX_PRINTED_FLOWS) as u64 + document.unlisted.flows;
    if more > 0 {
        page.text.push('\n');
        page.line("more", &format!("{more} flows with less payload; --json lists {}", document.flows.len()));
    }
    for warning in &document.warnings {
        page.line("note", &warning.message);
    }
    page.text
}

fn checksum_counts(checksums: &TraceChecksums) -> String {
    let counts = [
        (checksums.wrong_ip, "wrong in the IPv4 header"),
        (checksums.wrong_tcp, "wrong in TCP"),
        (checksums.wrong_udp, "wrong in UDP"),
        (checksums.offloaded, "left to the interface (offload)"),
        (checksums.unknown, "unknown (absent, fragmented, or the packet is not captured whole)"),
    ];
    let others = counts.iter().filter(|(count, _)| *count > 0).map(|(count, what)| format!(", {count} {what}"));
    format!("{} right{}", checksums.right, others.collect::<String>())
}

/// Returns the ICMP errors about packets of a flow.
fn icmp(flow: &TraceFlow) -> String {
    let to = |about| match about {
        PacketDirection::Forward => "data",
        PacketDirection::Reverse => "the other direction",
    };
    let errors = flow.icmp.iter().map(|error| {
        let mtu = error.mtu_bytes.map_or_else(String::new, |mtu| format!(" (MTU of the next hop {mtu} bytes)"));
        let TraceIcmp { count, what, from, frame, .. } = error;
        let first = Nanos::new(error.time_ns);
        format!("{count} × {what}{mtu} from {from} about {}, first at {first} (frame {frame})", to(error.about))
    });
    errors.collect::<Vec<_>>().join("; ")
}

fn skipped_frames(document: &TraceDocument) -> Vec<String> {
    let capture = &document.capture;
    let counts = [
        (capture.cut, "truncated before the end of the transport header"),
        (capture.malformed, "malformed"),
        (capture.fragments, "fragments of incomplete packets"),
        (capture.copies, "copies ignored"),
    ];
    let counts = counts.iter().filter(|(count, _)| *count > 0).map(|(count, what)| format!("{count} {what}"));
    let (listed, more) = capture.not_analysed.split_at(capture.not_analysed.len().min(MAX_PRINTED_PROTOCOLS));
    let listed = listed.iter().map(|contents| format!("{} {}", contents.frames, contents.what));
    let more: u64 = more.iter().map(|contents| contents.frames).sum();
    let more = (more > 0).then(|| format!("{more} of other protocols"));
    listed.chain(more).chain(counts).collect()
}

/// Adds a multipath TCP connection: its data, then a line per subflow.
fn add_multipath(page: &mut Page, connection: &TraceMultipath) {
    let mut words = format!("{} subflows", connection.subflows.len());
    if let Some(bps) = connection.goodput_bps {
        let _ = write!(words, ", goodput {}", rate(bps));
    }
    let sides = [("client", connection.client_bytes), ("server", connection.server_bytes)];
    for (side, bytes) in sides {
        match bytes {
            Some(bytes) => _ = write!(words, ", {} of the {side} acknowledged", Bytes::new(bytes)),
            None => _ = write!(words, ", data of the {side} unknown"),
        }
    }
    if let Some(bytes) = connection.reinjected_bytes {
        let _ = write!(words, "; {} sent on more than one subflow", Bytes::new(bytes));
    }
    page.line("mptcp", &words);
    for subflow in connection.subflows.iter().take(MAX_PRINTED_FLOWS) {
        let role = match (subflow.initial, subflow.backup) {
            (true, _) => "initial",
            (false, true) => "joined, backup",
            (false, false) => "joined",
        };
        let failed = if subflow.established { "" } else { "; not established" };
        let words = format!(
            "{} -> {} ({role}): {} from the client, {} from the server{failed}",
            endpoint(&subflow.client),
            endpoint(&subflow.server),
            Bytes::new(subflow.client_payload_bytes),
            Bytes::new(subflow.server_payload_bytes),
        );
        page.line("subflow", &words);
    }
}

fn rate(bps: f64) -> BitRate {
    BitRate::from_bps(bps.max(0.0) as u64)
}

fn add_station(page: &mut Page, station: &TraceStation) {
    let from = station.mac.as_deref().unwrap_or("all frames");
    let fine = &station.per_1ms;
    let mut words = format!(
        "{} {from}: {} frames; rate in 1 ms bins mean {}, p99 {}, max {}",
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
            "; {} packet trains, median {} frames, max {}",
            trains.trains, trains.p50_frames, trains.longest_frames
        );
        if let Some(bps) = trains.rate_bps {
            let _ = write!(words, ", rate within trains {}", rate(bps));
        }
    }
    page.line("station", &words);
    if let Some(bursts) = station.microbursts.as_ref().filter(|bursts| bursts.count > 0) {
        let largest = bursts.worst.iter().take(3).map(|burst| {
            let (bytes, at) = (Bytes::new(burst.bytes), Nanos::new(burst.start_ns));
            format!("{bytes} in {} at {at}, peak {}", Nanos::new(burst.duration_ns), rate(burst.peak_bps))
        });
        let largest: Vec<String> = largest.collect();
        page.line(
            "bursts",
            &format!("{} microbursts above {}: {}", bursts.count, rate(bursts.above_bps as f64), largest.join("; ")),
        );
    }
    if let Some(spacing) = &station.ack_spacing
        && spacing.acks > 100
    {
        let mut words =
            format!("{} pure ACKs, {:.0} % within 1 µs of the previous ACK", spacing.acks, spacing.bunched * 100.0);
        if let Some((gap, share)) = spacing.usual_gap_ns.zip(spacing.usual_gap_share) {
            let _ = write!(words, "; most common gap {} ({:.0} %)", Nanos::new(gap), share * 100.0);
        }
        if let Some((period, confidence)) = spacing.period_ns.zip(spacing.period_confidence) {
            let period = Nanos::new(period);
            let _ = write!(words, "; framing period {period} (confidence {confidence:.2})");
        }
        page.line("acks", &words);
    }
}

/// Formats address and port, the address of IPv6 in brackets.
fn endpoint(TraceEndpoint { address, port }: &TraceEndpoint) -> String {
    if address.contains(':') { format!("[{address}]:{port}") } else { format!("{address}:{port}") }
}

fn add_flow(page: &mut Page, flow: &TraceFlow) {
    let label = match flow.transport {
        TraceTransport::Tcp => "tcp",
        TraceTransport::Udp => "udp",
    };
    let goodput =
        flow.goodput_bps.map_or_else(|| "goodput unknown".to_owned(), |bps| format!("goodput {}", rate(bps)));
    page.line(
        label,
        &format!(
            "{} -> {}: {goodput}, {} in {}",
            endpoint(&flow.source),
            endpoint(&flow.destination),
            Bytes::new(flow.forward.unique_bytes),
            Nanos::new(flow.duration_ns)
        ),
    );
    let forward = &flow.forward;
    if let Some(numbered) = &forward.numbered {
        page.line(
            "loss",
            &format!(
                "{} of {} lost, {} reordered, {} duplicated ({}{} sequence numbers)",
                numbered.lost,
                numbered.received + numbered.lost,
                numbered.reordered,
                numbered.duplicates,
                if numbered.confidence < 0.95 { "probably " } else { "" },
                numbered.protocol
            ),
        );
    }
    if !flow.icmp.is_empty() {
        page.line("icmp", &icmp(flow));
    }
    if flow.transport == TraceTransport::Udp {
        return;
    }
    let rtt = rtt(flow);
    if !rtt.is_empty() {
        page.line("rtt", &rtt);
    }
    if let Some(connect) = flow.handshake.as_ref().and_then(connect) {
        page.line("connect", &connect);
    }
    page.line("retrans", &retransmits(forward, &flow.reverse));
    if let Some(losses) = placed_losses(forward) {
        page.line("loss", &losses);
    }
    page.line("window", &window(forward, &flow.reverse));
    if let Some(ecn) = ecn(flow) {
        page.line("ecn", &ecn);
    }
    if let Some(reset) = &flow.reset {
        let by = if reset.by == flow.source { "the sender" } else { "the receiver" };
        page.line("reset", &format!("by {by} at {} (frame {})", Nanos::new(reset.time_ns), reset.frame));
    }
    let reverse = &flow.reverse;
    if reverse.payload_bytes >= MIN_REVERSE_BYTES || reverse.retransmits.total() > 0 {
        let goodput = reverse.goodput_bps.map_or_else(String::new, |bps| format!("goodput {}, ", rate(bps)));
        let losses = placed_losses(reverse).map_or_else(String::new, |losses| format!("; {losses}"));
        let retransmits = retransmits(reverse, forward);
        let words = format!("{goodput}{}; {retransmits}{losses}", Bytes::new(reverse.unique_bytes));
        page.line("reverse", &words);
    }
    if let Some(limits) = &forward.limits {
        page.line("limits", &limit_shares(limits));
    }
    if let Some(per_ack) = forward.packets_per_ack {
        page.line(
            "acks",
            &format!(
                "{per_ack:.1} data packets per ACK; {} stretch ACKs (more than two segments)",
                forward.stretch_acks
            ),
        );
    }
}

/// Returns the losses of a direction between the taps and in the receiver host; `None` with a single tap.
fn placed_losses(direction: &TraceDirection) -> Option<String> {
    let mut words = format!("{} lost between taps", direction.lost_network?);
    if let Some(lost) = direction.lost_receiver {
        let _ = write!(words, ", {lost} dropped by the receiver host");
    }
    if let Some(lost) = direction.lost_paws.filter(|&lost| lost > 0) {
        let _ = write!(words, ", {lost} discarded by the receiver for an old timestamp (PAWS)");
    }
    if let Some(open) = direction.undetermined_receiver.filter(|&open| open > 0) {
        let _ = write!(words, ", {open} undetermined (no DSACK and no ACK that lacks them)");
    }
    Some(words)
}

/// Returns the range of the receive window, and the most data in flight.
fn window(forward: &TraceDirection, reverse: &TraceDirection) -> String {
    let mut words = format!("max in flight {}, ", Bytes::new(forward.in_flight_max_bytes));
    if let Some(unsacked) =
        forward.in_flight_unsacked_max_bytes.filter(|&unsacked| unsacked < forward.in_flight_max_bytes)
    {
        let _ = write!(words, "{} without SACKed data, ", Bytes::new(unsacked));
    }
    match (reverse.window_min_bytes, reverse.window_max_bytes, reverse.window_scale_in_force) {
        (Some(min), Some(max), _) => {
            let _ = write!(words, "receive window {} to {}", Bytes::new(min), Bytes::new(max));
        }
        (_, _, None) => {
            words.push_str("receive window unknown (no window scale in the capture");
            if let Some(scale) = reverse.window_scale_at_least {
                let _ = write!(words, "; {scale} or more");
            }
            words.push(')');
        }
        _ => words.push_str("no receive window in the capture"),
    }
    if reverse.zero_windows > 0 {
        let _ = write!(
            words,
            "; zero window {} times, {} in total",
            reverse.zero_windows,
            Nanos::new(reverse.zero_window_ns)
        );
        if let Some(first) = reverse.zero_window_periods.first() {
            let _ = write!(words, ", first at {} (frame {})", Nanos::new(first.start_ns), first.frame);
        }
    }
    if let Some(full) = forward.window_full.filter(|&full| full > 0) {
        let _ = write!(words, "; filled by {full} segments");
    }
    if forward.probes > 0 {
        let _ = write!(words, "; {} keep-alives and zero-window probes", forward.probes);
    }
    if reverse.reneged > 0 {
        let _ = write!(words, "; receiver reneged {} times (dropped data it had SACKed)", reverse.reneged);
    }
    words
}

/// Returns the ECN counts; `None` if no packet was ECN-capable.
fn ecn(flow: &TraceFlow) -> Option<String> {
    let (marks, echoes) = (flow.forward.ecn?, flow.reverse.ecn.unwrap_or_default());
    let capable = marks.ect0 + marks.ect1 + marks.ce;
    let mut words = format!("{} of {capable} packets CE", marks.ce);
    match echoes.reported_ce {
        Some(reported) => {
            let _ = write!(words, "; receiver reports {reported} (AccECN)");
        }
        None if flow.reverse.packets == 0 => {
            words.push_str("; ECE unknown: the ACKs are not in the capture");
        }
        None => {
            let _ = write!(words, "; {} ACKs with ECE, {} segments with CWR", echoes.ece, marks.cwr);
        }
    }
    (capable > 0).then_some(words)
}

/// Returns the RTT between the tap and the receiver, and those of the handshake on both sides of the tap.
fn rtt(flow: &TraceFlow) -> String {
    let mut parts = Vec::new();
    if let Some(rtt) = &flow.forward.rtt {
        let median = rtt.p50_ns.map(|p50| format!("median {}, ", Nanos::new(p50))).unwrap_or_default();
        parts.push(format!(
            "min {}, {median}max {} between tap and receiver ({} samples)",
            Nanos::new(rtt.min_ns),
            Nanos::new(rtt.max_ns),
            rtt.samples
        ));
    }
    if let Some(handshake) = &flow.handshake {
        let sides = [("server", handshake.server_rtt_ns), ("client", handshake.client_rtt_ns)];
        let sides = sides.iter().filter_map(|(side, ns)| Some(format!("{} to the {side}", Nanos::new((*ns)?))));
        let sides: Vec<String> = sides.collect();
        if !sides.is_empty() {
            parts.push(format!("handshake {}", sides.join(", ")));
        }
    }
    parts.join("; ")
}

/// Returns the connect time and the SYN retransmits; `None` if the capture has neither the SYN nor the end of the handshake.
fn connect(handshake: &TraceHandshake) -> Option<String> {
    let syns = handshake.syn_retransmits + 1;
    let span = Nanos::new(handshake.syn_span_ns);
    if handshake.answered == Some(false) {
        let over = if syns > 1 { format!("{syns} SYNs over {span}") } else { "one SYN".to_owned() };
        return Some(format!("no answer to {over}"));
    }
    let mut words = Nanos::new(handshake.connect_ns?).to_string();
    if handshake.syn_retransmits > 0 {
        let _ = write!(words, "; {} SYN retransmits over {span}", handshake.syn_retransmits);
    }
    Some(words)
}

fn retransmits(forward: &TraceDirection, reverse: &TraceDirection) -> String {
    let counts = &forward.retransmits;
    if counts.total() == 0 && forward.out_of_order == 0 && forward.duplicates == 0 {
        return "no retransmits".to_owned();
    }
    let kinds = [
        (counts.fast, "fast"),
        (counts.timeout, "RTO"),
        (counts.tail, "TLP"),
        (counts.lost_before_tap, "lost before the tap"),
        (counts.unclassified, "unclassified"),
    ];
    let kinds: Vec<String> =
        kinds.iter().filter(|(count, _)| *count > 0).map(|(count, what)| format!("{count} {what}")).collect();
    let mut words = format!("{} retransmits", counts.total());
    if !kinds.is_empty() {
        let _ = write!(words, " ({})", kinds.join(", "));
    }
    if counts.spurious > 0 {
        let _ = write!(words, ", {} spurious (DSACK)", counts.spurious);
    }
    if let Some(rto) = &forward.rto {
        let (min, max) = (Nanos::new(rto.min_ns), Nanos::new(rto.max_ns));
        let _ = write!(words, "; {} RTOs, min {min}, max {max}", rto.count);
    }
    if forward.out_of_order > 0 {
        let _ = write!(words, "; {} reordered", forward.out_of_order);
    }
    if forward.duplicates > 0 {
        let _ = write!(words, "; {} duplicated in the network", forward.duplicates);
    }
    if reverse.packets > 0 {
        let _ = write!(words, "; {} duplicate ACKs", reverse.duplicate_acks);
    }
    words
}

/// Returns the share of the time that each cause limited the sender, largest first.
fn limit_shares(limits: &TraceLimits) -> String {
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

fn add_path(page: &mut Page, path: &TracePath) {
    let rtt = path.round_trip_ns.map(|ns| format!("min RTT between taps {}, ", Nanos::new(ns)));
    let words = format!("{}{} packets matched: {} to {}", rtt.unwrap_or_default(), path.matched, path.from, path.to);
    page.line("path", &words);
    for (label, direction) in [("forward", &path.forward), ("reverse", &path.reverse)] {
        let mut words = format!(
            "{} of {} lost ({} with data)",
            direction.lost_data + direction.lost_other,
            direction.matched + direction.lost_data + direction.lost_other,
            direction.lost_data
        );
        if direction.reordered > 0 {
            let _ = write!(words, "; {} reordered", direction.reordered);
        }
        if direction.appeared > 0 {
            let _ = write!(words, "; {} seen only at the downstream tap", direction.appeared);
        }
        if direction.undetermined > 0 {
            let why = if path.matched == 0 { "no packet matched" } else { "the other tap was not capturing" };
            let _ = write!(words, "; {} undetermined ({why})", direction.undetermined);
        }
        if let Some((p50, p99)) = direction.delay_variation_p50_ns.zip(direction.delay_variation_p99_ns) {
            let _ = write!(words, "; queueing delay p50 {}, p99 {}", Nanos::new(p50), Nanos::new(p99));
        }
        if let Some(share) = direction.delay_share {
            let _ = write!(words, ", {:.0} % of the path's p99", share * 100.0);
        }
        page.line(label, &words);
    }
    if let Some(offset) = path.clock_offset_ns {
        let ahead = if offset < 0 { "behind" } else { "ahead of" };
        let offset = Nanos::new(offset.unsigned_abs());
        let mut words = if offset == Nanos::ZERO {
            "offset 0 ns, assuming equal one-way delays".to_owned()
        } else {
            format!("second tap {offset} {ahead} the first, assuming equal one-way delays")
        };
        if let Some((drift, error)) =
            path.drift_ppm.zip(path.drift_uncertainty_ppm).filter(|(drift, error)| drift.abs() > *error)
        {
            let _ = write!(words, "; drift {drift:.2} ± {error:.2} ppm, removed from the delays");
        }
        for step in &path.clock_steps {
            let direction = if step.step_ns < 0 { "back" } else { "ahead" };
            let size = Nanos::new(step.step_ns.unsigned_abs());
            let at = Nanos::new(step.time_ns.max(0).unsigned_abs());
            let _ = write!(words, "; stepped {size} {direction} at {at}");
        }
        page.line("clocks", &words);
    }
}

#[cfg(test)]
mod tests {
    use landspeed_model::TraceEcn;

    use super::*;

    #[test]
    fn acks_outside_the_capture_are_unknown() {
        let text = include_str!("../../../../fixtures/traces/whole.json");
        let mut document: TraceDocument = serde_json::from_str(text).expect("a document");
        let flow = document.flows.iter_mut().find(|flow| flow.transport == TraceTransport::Tcp).expect("a TCP flow");
        flow.forward.ecn = Some(TraceEcn { ect0: 100, ce: 2, ..TraceEcn::default() });
        flow.reverse.ecn = None;
        assert_eq!(ecn(flow).as_deref(), Some("2 of 102 packets CE; 0 ACKs with ECE, 0 segments with CWR"));
        flow.reverse = TraceDirection::default();
        assert_eq!(ecn(flow).as_deref(), Some("2 of 102 packets CE; ECE unknown: the ACKs are not in the capture"));
        assert!(!summary(&document).contains("0 duplicate ACKs"));
    }
}
