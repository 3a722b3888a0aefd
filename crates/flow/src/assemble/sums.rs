//! Sums over streams and phases.

use std::collections::BTreeMap;

use landspeed_model::{
    Direction, EndTotals, LatencyResult, LatencyUnderLoad, Parameters, Phase, PhaseName, Protocol, Stream, StreamEnd,
    Summary, UdpEnd, UdpTotals,
};

use super::known::{Known, Unknown, ratio};
use super::reports::{self, Reports};
use super::spread;
use crate::end::{EndReport, PhaseEnds, Side};

/// Returns the phases of each direction, as the receiver divided them; as the sender did if the receiver has no
/// samples.
pub fn phases(reports: &Reports<'_>, unknown: &mut Unknown) -> Vec<Phase> {
    let mut found = Vec::new();
    for &direction in reports.directions() {
        let [receiver, sender] = [false, true].map(|sends| reports.host(direction, sends).ok());
        let watched = [receiver, sender].into_iter().flatten().find(|r| r.has_timeline()).or(receiver).or(sender);
        let Some(cuts) = watched.map(|r| r.cuts) else { continue };
        let delivered = reports.delivered(direction);
        for (name, start_ns, end_ns) in spans(&cuts) {
            let bytes = delivered.as_ref().map(|streams| bytes_in(streams, name)).map_err(Clone::clone);
            let bytes = unknown.field(format!("phases[{}].bytes", found.len()), bytes);
            found.push(Phase { direction, name, start_ns, end_ns, bytes });
        }
    }
    found
}

fn bytes_in(streams: &[&Stream], phase: PhaseName) -> u64 {
    streams.iter().flat_map(|s| &s.intervals).filter(|i| i.phase == phase).map(|i| i.bytes).sum()
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

/// Returns the steady phase of a side, nanoseconds after the start.
pub fn steady_span(cuts: &PhaseEnds) -> (u64, u64) {
    let steady = spans(cuts).into_iter().find(|(name, ..)| *name == PhaseName::Steady);
    steady.map_or((0, 0), |(_, start_ns, end_ns)| (start_ns, end_ns))
}

/// Sums the UDP counters of all streams.
pub fn udp(parameters: &Parameters, reports: &Reports<'_>, unknown: &mut Unknown) -> UdpTotals {
    let sent = reports.datagrams(true, |udp| Some(udp.sent_packets));
    let delivered = reports.datagrams(false, |udp| Some(udp.delivered_packets));
    let both = sent.clone().and_then(|sent| Ok((sent, delivered.clone()?)));
    let lost = both.map(|(sent, delivered)| sent as i64 - delivered as i64);
    let share = lost.clone().and_then(|lost| loss_ratio(lost, sent.clone()?));
    let of_receiver = |count: fn(&UdpEnd) -> Option<u64>| reports.datagrams(false, count);
    UdpTotals {
        sent_packets: unknown.field("udp.sent_packets", sent),
        refused_packets: unknown.field("udp.refused_packets", reports.datagrams(true, |udp| udp.send_errors)),
        delivered_packets: unknown.field("udp.delivered_packets", delivered),
        lost_packets: unknown.field("udp.lost_packets", lost),
        duplicate_packets: unknown.field("udp.duplicate_packets", of_receiver(|udp| udp.duplicate_packets)),
        reordered_packets: unknown.field("udp.reordered_packets", of_receiver(|udp| udp.reordered_packets)),
        late_packets: unknown.field("udp.late_packets", of_receiver(|udp| udp.late_packets)),
        tail_lost_packets: unknown.field("udp.tail_lost_packets", tail_lost(reports)),
        loss_ratio: unknown.field("udp.loss_ratio", share),
        jitter_ns: unknown.field("udp.jitter_ns", jitter(reports)),
        payload_bytes: parameters.udp.as_ref().map_or(0, |u| u.payload_bytes),
    }
}

/// Sums the packets that each stream lost after its last arrival.
fn tail_lost(reports: &Reports<'_>) -> Known<u64> {
    let count = |sends: bool, of: fn(&UdpEnd) -> u64| -> Known<Vec<u64>> {
        let ends = reports.ends(reports.directions(), sends)?.into_iter();
        ends.map(|(stream, end)| end.udp.as_ref().map(of).ok_or_else(|| reports::not_reported(stream, sends)))
            .collect()
    };
    let (sent, highest) = (count(true, |udp| udp.sent_packets)?, count(false, |udp| udp.highest_seq)?);
    Ok(sent.iter().zip(&highest).map(|(sent, highest)| sent.saturating_sub(*highest)).sum())
}

/// Share of the packets sent that were lost, 0..=1.
///
/// # Errors
/// No packet was sent, or more arrived than were sent.
fn loss_ratio(lost: i64, sent: u64) -> Known<f64> {
    let lost = u64::try_from(lost).map_err(|_| "more packets arrived than were sent".to_owned())?;
    ratio(lost as f64, sent as f64, "no packet was sent")
}

/// Mean jitter of the streams that have one.
fn jitter(reports: &Reports<'_>) -> Known<u64> {
    let receivers = reports.ends(reports.directions(), false)?;
    if let Some((stream, _)) = receivers.iter().find(|(_, end)| end.udp.is_none()) {
        return Err(reports::not_reported(stream, false));
    }
    let jitters: Vec<u64> = receivers.iter().filter_map(|(_, end)| end.udp.as_ref()?.jitter_ns).collect();
    let sum: u64 = jitters.iter().sum();
    sum.checked_div(jitters.len() as u64).ok_or_else(|| "no stream received two packets".to_owned())
}

/// Goodput of a direction in its steady phase, bits/s.
fn goodput(reports: &Reports<'_>, phases: &[Phase], direction: Direction, udp: bool) -> Known<f64> {
    let receiver = reports.host(direction, false)?;
    let receivers = reports.ends(&[direction], false)?;
    let steady = phases.iter().find(|p| p.direction == direction && p.name == PhaseName::Steady);
    let steady = steady.ok_or("there is no steady phase")?;
    let empty = "the steady phase is empty";
    if udp && !receiver.has_timeline() {
        // An iperf3 server has only the total, which includes start-up and the omitted part.
        let bytes: u64 = receivers.iter().map(|(_, end)| end.bytes).sum();
        return ratio(bytes as f64 * 8e9, steady.end_ns as f64, empty);
    }
    let bytes = bytes_in(&reports.delivered(direction)?, PhaseName::Steady);
    ratio(bytes as f64 * 8e9, (steady.end_ns - steady.start_ns) as f64, empty)
}

/// Minimum RTT that the senders' TCP measured, microseconds.
fn min_rtt_us(reports: &Reports<'_>) -> Known<u32> {
    let ends = reports.ends(reports.directions(), true)?;
    let least = |(stream, end): (&Stream, &StreamEnd)| {
        let reading = end.samples.iter().rev().find_map(|sample| sample.tcp.as_ref()?.min_rtt_us);
        let side = reports::side(stream.direction, true);
        reading.ok_or_else(|| match reports.host(stream.direction, true) {
            Ok(report) if end.samples.is_empty() => reports::no_samples(report, side),
            _ => format!("the {}'s kernel does not report it", reports::name(side)),
        })
    };
    let all: Vec<u32> = ends.into_iter().map(least).collect::<Known<_>>()?;
    all.into_iter().min().ok_or_else(|| "there is no stream".to_owned())
}

/// Returns the main figures of the run.
pub fn summary(
    parameters: &Parameters,
    reports: &Reports<'_>,
    phases: &[Phase],
    udp: Option<&UdpTotals>,
    (latency, under_load): (&[LatencyResult], Option<&LatencyUnderLoad>),
    unknown: &mut Unknown,
) -> Summary {
    let parts = reports.directions();
    let bulk = matches!(parameters.protocol, Protocol::Tcp | Protocol::Udp);
    let tcp = parameters.protocol == Protocol::Tcp;
    let mut rate = |part: usize, path: &str| {
        let direction = *parts.get(part).filter(|_| bulk)?;
        unknown.field(path, goodput(reports, phases, direction, !tcp))
    };
    let goodput_bps = rate(0, "summary.goodput_bps");
    let reverse_goodput_bps = rate(1, "summary.reverse_goodput_bps");
    let spread = |part: usize| -> (Option<f64>, Option<String>) {
        let Some(&direction) = parts.get(part).filter(|_| bulk) else { return (None, None) };
        let spread = reports.delivered(direction).and_then(|s| spread::of(&s, direction, parameters));
        match spread {
            Ok(cv) => (Some(cv), None),
            Err(why) => (None, Some(why)),
        }
    };
    let (goodput_cv, goodput_cv_unknown) = spread(0);
    let (reverse_goodput_cv, reverse_goodput_cv_unknown) = spread(1);
    let headline = latency.first().or(under_load.map(|u| &u.loaded)).filter(|l| l.completed > 0);
    let has_latency = !bulk || parameters.probe_rate_per_s.is_some();
    let client = reports.side(Side::Client).map(|_| ()).ok_or_else(|| reports::missing_report(Side::Client));
    let mut latency_ns = |path: &str, of: fn(&LatencyResult) -> Option<u64>| {
        let found =
            client.clone().and_then(|()| headline.and_then(of).ok_or_else(|| "no request was answered".to_owned()));
        has_latency.then(|| unknown.field(path, found)).flatten()
    };
    let latency_p50_ns = latency_ns("summary.latency_p50_ns", |l| l.p50_ns);
    let latency_p99_ns = latency_ns("summary.latency_p99_ns", |l| l.p99_ns);
    let transactions = client.and_then(|()| {
        latency.first().map(|l| l.achieved_per_s).ok_or_else(|| "no transaction was measured".to_owned())
    });
    let steady = reports.host(parts[0], false).and_then(|_| {
        let steady = phases.iter().find(|p| p.direction == parts[0] && p.name == PhaseName::Steady);
        steady
            .map(|p| p.end_ns - p.start_ns)
            .filter(|&length_ns| length_ns > 0)
            .ok_or_else(|| "there is no steady phase".to_owned())
    });
    let delivered = reports.sum(parts, false, |end| Some(end.bytes));
    Summary {
        goodput_bps,
        reverse_goodput_bps,
        bytes_delivered: bulk.then(|| unknown.field("summary.bytes_delivered", delivered)).flatten(),
        retransmits: tcp
            .then(|| unknown.field("summary.retransmits", reports.sum(parts, true, |end| end.retransmits)))
            .flatten(),
        loss_ratio: udp.and_then(|u| {
            let lost = u.lost_packets.zip(u.sent_packets).ok_or("the number of lost packets is unknown".to_owned());
            unknown.field("summary.loss_ratio", lost.and_then(|(lost, sent)| loss_ratio(lost, sent)))
        }),
        steady_ns: unknown.field("summary.steady_ns", steady),
        min_rtt_us: tcp.then(|| unknown.field("summary.min_rtt_us", min_rtt_us(reports))).flatten(),
        goodput_cv,
        goodput_cv_unknown,
        reverse_goodput_cv,
        reverse_goodput_cv_unknown,
        transactions_per_s: (!bulk).then(|| unknown.field("summary.transactions_per_s", transactions)).flatten(),
        latency_p50_ns,
        latency_p99_ns,
    }
}

/// Sums the streams of one side's report, which has all of them.
pub fn totals(report: &EndReport) -> EndTotals {
    let all = |sends: bool| report.streams.iter().filter(move |stream| stream.sends == sends);
    let sum = |count: fn(&StreamEnd) -> Option<u64>| {
        let counts: Option<Vec<u64>> = all(true).map(|stream| count(&stream.end)).collect();
        counts.filter(|counts| !counts.is_empty()).map(|counts| counts.iter().sum())
    };
    let mut by_phase: BTreeMap<String, u64> = BTreeMap::new();
    if all(false).all(|stream| !stream.end.samples.is_empty()) {
        for stream in all(false) {
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
    EndTotals {
        bytes_sent: all(true).map(|stream| stream.end.bytes).sum(),
        bytes_acked: sum(|end| end.bytes_acked),
        bytes_received: all(false).map(|stream| stream.end.bytes).sum(),
        retransmits: sum(|end| end.retransmits),
        received_by_phase: by_phase,
    }
}
