//! Sums over streams and phases.

use std::collections::BTreeMap;

use landspeed_model::{
    Direction, EndTotals, LatencyResult, LatencyUnderLoad, Parameters, Phase, PhaseName, Protocol, Stream, Summary,
    UdpTotals,
};

use super::spread;
use crate::end::{EndReport, PhaseEnds};

/// Returns the phases of each direction, as the receiver divided them; as the sender did if the receiver has no
/// samples.
pub fn phases(
    parameters: &Parameters,
    streams: &[Stream],
    client: Option<&EndReport>,
    server: Option<&EndReport>,
) -> Vec<Phase> {
    let mut found = Vec::new();
    for &direction in parameters.direction.parts() {
        let (receiver, sender) = if direction == Direction::Upload { (server, client) } else { (client, server) };
        let watched = [receiver, sender].into_iter().flatten().find(|r| r.has_timeline()).or(receiver).or(sender);
        let Some(cuts) = watched.map(|r| r.cuts) else { continue };
        for (name, start_ns, end_ns) in spans(&cuts) {
            let bytes = streams
                .iter()
                .filter(|s| s.direction == direction)
                .flat_map(|s| &s.intervals)
                .filter(|i| i.phase == name)
                .map(|i| i.bytes)
                .sum();
            found.push(Phase { direction, name, start_ns, end_ns, bytes });
        }
    }
    found
}

fn spans(cuts: &PhaseEnds) -> Vec<(PhaseName, u64, u64)> {
    let end = cuts.end_ns.unwrap_or(0);
    let startup = cuts.startup_end_ns.unwrap_or(end);
    let omitted = cuts.omit_end_ns.filter(|&t| t > startup);
    let steady = cuts.steady_end_ns.unwrap_or(end).max(omitted.unwrap_or(startup));
    let mut spans = vec![(PhaseName::Startup, 0, startup)];
    if let Some(omitted) = omitted {
        spans.push((PhaseName::Omitted, startup, omitted));
    }
    spans.push((PhaseName::Steady, omitted.unwrap_or(startup), steady));
    spans.push((PhaseName::Drain, steady, end.max(steady)));
    spans
}

/// Sums the UDP counters of all streams.
pub fn udp(parameters: &Parameters, streams: &[Stream]) -> UdpTotals {
    let mut totals =
        UdpTotals { payload_bytes: parameters.udp.as_ref().map_or(0, |u| u.payload_bytes), ..UdpTotals::default() };
    let (mut jitter, mut jitters) = (0u64, 0u64);
    for stream in streams {
        let sent = stream.sender.as_ref().and_then(|s| s.udp.as_ref());
        let received = stream.receiver.as_ref().and_then(|r| r.udp.as_ref());
        if let Some(sent) = sent {
            totals.sent_packets += sent.sent_packets;
            totals.refused_packets += sent.send_errors;
        }
        if let Some(received) = received {
            totals.delivered_packets += received.delivered_packets;
            totals.duplicate_packets += received.duplicate_packets;
            totals.reordered_packets += received.reordered_packets;
            totals.late_packets += received.late_packets;
            if let Some(ns) = received.jitter_ns {
                jitter += ns;
                jitters += 1;
            }
        }
        if let (Some(sent), Some(received)) = (sent, received) {
            totals.tail_lost_packets += sent.sent_packets.saturating_sub(received.highest_seq);
        }
    }
    totals.lost_packets = totals.sent_packets as i64 - totals.delivered_packets as i64;
    totals.loss_ratio = ratio(totals.lost_packets.max(0) as f64, totals.sent_packets as f64).unwrap_or(0.0);
    totals.jitter_ns = jitter.checked_div(jitters);
    totals
}

/// Returns the main figures of the run.
pub fn summary(
    parameters: &Parameters,
    streams: &[Stream],
    phases: &[Phase],
    udp: Option<&UdpTotals>,
    latency: &[LatencyResult],
    under_load: Option<&LatencyUnderLoad>,
) -> Summary {
    let parts = parameters.direction.parts();
    let goodput = |direction: Direction| {
        let steady = phases.iter().find(|p| p.direction == direction && p.name == PhaseName::Steady)?;
        ratio(steady.bytes as f64 * 8e9, (steady.end_ns - steady.start_ns) as f64)
    };
    let bulk = matches!(parameters.protocol, Protocol::Tcp | Protocol::Udp) && !streams.is_empty();
    let steady_ns = phases
        .iter()
        .find(|p| p.direction == parts[0] && p.name == PhaseName::Steady)
        .map_or(0, |p| p.end_ns - p.start_ns);
    let spread = |part: usize| -> (Option<f64>, Option<String>) {
        let Some(&direction) = parts.get(part).filter(|_| bulk) else { return (None, None) };
        match spread::of(streams, direction, parameters.interval_ns) {
            Ok(cv) => (Some(cv), None),
            Err(why) => (None, Some(why)),
        }
    };
    let (goodput_cv, goodput_cv_unknown) = spread(0);
    let (reverse_goodput_cv, reverse_goodput_cv_unknown) = spread(1);
    let headline = latency.first().or(under_load.map(|u| &u.loaded)).filter(|l| l.completed > 0);
    let retransmits: Vec<u64> = streams.iter().filter_map(|s| s.sender.as_ref()?.retransmits).collect();
    Summary {
        goodput_bps: bulk.then(|| goodput(parts[0])).flatten(),
        reverse_goodput_bps: parts.get(1).filter(|_| bulk).and_then(|&d| goodput(d)),
        bytes_delivered: streams.iter().filter_map(|s| s.receiver.as_ref()).map(|r| r.bytes).sum(),
        retransmits: (!retransmits.is_empty()).then(|| retransmits.iter().sum()),
        loss_ratio: udp.map(|u| u.loss_ratio),
        steady_ns,
        min_rtt_us: streams
            .iter()
            .filter_map(|s| s.sender.as_ref()?.samples.iter().rev().find_map(|x| x.tcp.as_ref()?.min_rtt_us))
            .min(),
        goodput_cv,
        goodput_cv_unknown,
        reverse_goodput_cv,
        reverse_goodput_cv_unknown,
        transactions_per_s: latency.first().map(|l| l.achieved_per_s),
        latency_p50_ns: headline.map(|l| l.p50_ns),
        latency_p99_ns: headline.map(|l| l.p99_ns),
    }
}

/// Sums the streams of one side's report.
pub fn totals(report: &EndReport) -> EndTotals {
    let mut totals = EndTotals::default();
    let mut by_phase: BTreeMap<String, u64> = BTreeMap::new();
    for stream in &report.streams {
        if stream.sends {
            totals.bytes_sent += stream.end.bytes;
            add(&mut totals.bytes_acked, stream.end.bytes_acked);
            add(&mut totals.retransmits, stream.end.retransmits);
        } else {
            totals.bytes_received += stream.end.bytes;
            let mut before = 0;
            for sample in &stream.end.samples {
                let name = match report.cuts.phase_ending_at(sample.t_ns) {
                    PhaseName::Startup => "startup",
                    PhaseName::Omitted => "omitted",
                    PhaseName::Steady => "steady",
                    PhaseName::Drain => "drain",
                };
                *by_phase.entry(name.to_owned()).or_default() += sample.bytes.saturating_sub(before);
                before = sample.bytes;
            }
        }
    }
    totals.received_by_phase = by_phase;
    totals
}

fn add(sum: &mut Option<u64>, more: Option<u64>) {
    if let Some(more) = more {
        *sum = Some(sum.unwrap_or(0) + more);
    }
}

/// Returns `part / whole` if it is finite.
pub fn ratio(part: f64, whole: f64) -> Option<f64> {
    Some(part / whole).filter(|r| r.is_finite())
}
