//! Gaps in a run: spans in which a sampler did not run (sampler gaps), and spans in which a flow delivered
//! nothing (stalls).

use std::fmt::Write as _;

use landspeed_model::{HostSample, PhaseName, Protocol, RunDocument, Sample, TimeSpan, Warning};

use super::push;
use crate::flow::Flow;
use crate::host::{End, HostView};
use crate::stream::StreamView;

/// Shortest stall worth a warning, nanoseconds: Linux' minimum retransmission timeout (`TCP_RTO_MIN`, HZ/5
/// in tcp.h).
const STALL_NS: u64 = 200_000_000;
/// Minimum length of a stall, round trips: within one, a window waits for its ACKs.
const STALL_RTTS: f64 = 4.0;
/// Minimum length of a stall, sampling intervals: one empty interval can lie between two writes.
const STALL_INTERVALS: u64 = 2;
/// Minimum length of a stall, multiples of the time between two blocks that `--rate`, `--read-rate` or
/// `--pace` schedule.
const STALL_BLOCKS: f64 = 3.0;
/// Largest block that a paced TCP sender passes down at a low rate, bytes: two segments
/// (`tcp_min_tso_segs`).
const PACED_BLOCK: f64 = 3000.0;
/// Minimum distance of samples for a sampler gap, intervals; see also [`GAP_NS`].
const GAP_INTERVALS: u64 = 3;
/// Minimum distance of samples for a sampler gap, nanoseconds: ten times the wakeup delay on a busy core.
const GAP_NS: u64 = 100_000_000;
/// Share of a host's core time that its kernel accounted for in a span: the host ran from [`HOST_RAN`] on,
/// and was paused up to [`HOST_PAUSED`].
const HOST_RAN: f64 = 0.9;
const HOST_PAUSED: f64 = 0.5;
/// Maximum spans listed in a message.
const MAX_LISTED: usize = 4;

/// Warns of spans in which the sampler of `host` did not run.
pub(super) fn sampler(document: &RunDocument, host: &HostView, found: &mut Vec<Warning>) {
    let gaps = sampler_gaps(document, host.end);
    let Some(longest) = gaps.iter().max_by_key(|gap| length(gap)) else { return };
    let name = host.name();
    let why = match accounted(host, longest) {
        Some(share) if share >= HOST_RAN => "its process was stopped or had no core; the host itself kept running",
        Some(share) if share <= HOST_PAUSED => "the host was paused",
        _ => "its process was stopped or had no core, or the host was paused",
    };
    let message = format!(
        "The {name}'s sampler did not run {}: {why}. The {name} has no readings there; the interval that covers {} is a \
         mean over it.",
        listed(&gaps),
        if gaps.len() == 1 { "the gap" } else { "a gap" },
    );
    push(found, "sampler-gap", message);
}

/// Warns of spans of the steady phase in which a direction, or one of its streams, delivered nothing.
pub(super) fn stalls(flow: &Flow, found: &mut Vec<Warning>) {
    if flow.is_rr() || flow.streams.is_empty() {
        return;
    }
    let way = super::way(flow.direction);
    let least_ns = min_stall_ns(flow);
    let silent: Vec<Vec<TimeSpan>> = flow.streams.iter().map(|stream| silent_spans(flow, stream)).collect();
    let mut whole = silent.iter().skip(1).fold(silent[0].clone(), |common, others| overlap(&common, others));
    whole.retain(|span| length(span) >= least_ns);
    if let Some(longest) = whole.iter().max_by_key(|span| length(span)) {
        let message = format!("The {way} delivered no bytes {}{}.", listed(&whole), concurrent_events(flow, longest));
        push(found, "stall", message);
    }
    if flow.streams.len() == 1 {
        return;
    }
    let mut stalled = Vec::new();
    for (stream, spans) in flow.streams.iter().zip(silent) {
        let alone = |span: &TimeSpan| {
            let shared = total(&overlap(&[*span], &whole));
            // A stream that has sent its share of `--bytes` has finished.
            let done = flow.parameters.bytes.is_some() && span.end_ns >= flow.span_ns.1;
            !done && length(span).saturating_sub(shared) >= least_ns
        };
        let spans: Vec<TimeSpan> = spans.into_iter().filter(alone).collect();
        if !spans.is_empty() {
            stalled.push((stream.stream.id, spans));
        }
    }
    if stalled.is_empty() {
        return;
    }
    stalled.sort_by_key(|(_, spans)| std::cmp::Reverse(total(spans)));
    let shown: Vec<String> =
        stalled.iter().take(MAX_LISTED).map(|(id, spans)| format!("stream {id} {}", listed(spans))).collect();
    let more = stalled.len().saturating_sub(MAX_LISTED);
    let message = format!(
        "{} of the {} streams of the {way} delivered no bytes while others did: {}{}.",
        stalled.len(),
        flow.streams.len(),
        shown.join("; "),
        if more > 0 { format!("; and {more} more") } else { String::new() },
    );
    push(found, "stall", message);
}

/// Minimum time without data that counts as a stall, nanoseconds.
fn min_stall_ns(flow: &Flow) -> u64 {
    let p = flow.parameters;
    let control_ns = flow.document.path.as_ref().map_or(0, |path| path.control_rtt_ns) as f64;
    let rtt_ns = flow.srtt_us().map_or(control_ns, |us| us * 1e3);
    let write = match (&p.udp, p.protocol) {
        (Some(udp), Protocol::Udp) => f64::from(udp.payload_bytes) * f64::from(udp.burst_packets),
        _ => p.write_bytes as f64,
    };
    let schedules = [(p.rate_bps, write), (p.read_rate_bps, p.write_bytes as f64), (p.pace_bps, PACED_BLOCK)];
    let block_ns = schedules
        .iter()
        .filter_map(|&(rate, bytes)| rate.filter(|&rate| rate > 0).map(|rate| bytes * 8e9 / rate as f64))
        .fold(0.0, f64::max);
    let scaled = (STALL_RTTS * rtt_ns).max(STALL_BLOCKS * block_ns);
    // The conversion saturates NaN and values out of range.
    (scaled as u64).max(STALL_NS).max(p.interval_ns.saturating_mul(STALL_INTERVALS))
}

/// Spans of the steady phase in which a stream delivered nothing, in order.
fn silent_spans(flow: &Flow, stream: &StreamView) -> Vec<TimeSpan> {
    let mut spans: Vec<TimeSpan> = Vec::new();
    let mut silent = |span: TimeSpan| match spans.last_mut().filter(|last| last.end_ns == span.start_ns) {
        Some(last) => last.end_ns = span.end_ns,
        None => spans.push(span),
    };
    let gap_ns = flow.parameters.interval_ns.saturating_mul(GAP_INTERVALS).max(GAP_NS);
    for interval in stream.stream.intervals.iter().filter(|interval| interval.phase == PhaseName::Steady) {
        let whole = TimeSpan { start_ns: interval.start_ns, end_ns: interval.end_ns };
        if interval.bytes == 0 {
            silent(whole);
        } else if length(&whole) > gap_ns {
            // The receiver has no samples inside: count what was acknowledged to the sender as delivered.
            unacknowledged(&stream.sent, whole).into_iter().for_each(&mut silent);
        }
    }
    spans
}

/// Spans within `whole` in which the sender got no new acknowledgement.
fn unacknowledged(sent: &[&Sample], whole: TimeSpan) -> Vec<TimeSpan> {
    let mut spans: Vec<TimeSpan> = Vec::new();
    let acked = |sample: &Sample| sample.tcp.as_deref()?.bytes_acked;
    for pair in sent.windows(2) {
        let span = TimeSpan { start_ns: pair[0].t_ns, end_ns: pair[1].t_ns };
        let inside = span.start_ns >= whole.start_ns && span.end_ns <= whole.end_ns && span.end_ns > span.start_ns;
        let Some((before, after)) = acked(pair[0]).zip(acked(pair[1])).filter(|_| inside) else { continue };
        if before == after {
            match spans.last_mut().filter(|last| last.end_ns == span.start_ns) {
                Some(last) => last.end_ns = span.end_ns,
                None => spans.push(span),
            }
        }
    }
    spans
}

/// Describes what was observed during a stall, such as `; the client's sampler did not run then`.
fn concurrent_events(flow: &Flow, stall: &TimeSpan) -> String {
    let mut words = String::new();
    let mut frozen = false;
    for host in [&flow.sender, &flow.receiver] {
        let gaps = sampler_gaps(flow.document, host.end);
        let shared = total(&overlap(&[*stall], &gaps));
        if shared.saturating_mul(2) >= length(stall) {
            frozen = true;
            let _ = write!(words, "; the {}'s sampler did not run then", host.name());
        }
    }
    if frozen {
        return words;
    }
    let tcp = |stream: &StreamView| -> Vec<landspeed_model::TcpInfo> {
        let within = |sample: &&&Sample| (stall.start_ns..=stall.end_ns).contains(&sample.t_ns);
        stream.sent.iter().filter(within).filter_map(|sample| sample.tcp.as_deref()).cloned().collect()
    };
    let seen: Vec<Vec<landspeed_model::TcpInfo>> = flow.streams.iter().map(tcp).filter(|s| s.len() > 1).collect();
    if seen.is_empty() {
        return words;
    }
    let retransmits: u64 = seen
        .iter()
        .filter_map(|samples| samples.last()?.total_retrans.checked_sub(samples.first()?.total_retrans))
        .map(u64::from)
        .sum();
    let closed = seen.iter().all(|samples| samples.iter().any(|tcp| tcp.snd_wnd_bytes == Some(0)));
    let idle = seen.iter().all(|samples| samples.iter().all(|tcp| tcp.unacked == 0 && tcp.notsent_bytes == Some(0)));
    if closed {
        words += "; the receive window was closed";
    } else if idle {
        words += "; the sender had nothing to send";
    } else if retransmits > 0 {
        let _ = write!(words, "; {retransmits} retransmits");
    }
    words
}

/// Spans in which the sampler of one side did not run: as recorded by itself, or from the distance of its
/// samples.
fn sampler_gaps(document: &RunDocument, end: End) -> Vec<TimeSpan> {
    let series = match end {
        End::Client => document.host_series.client.as_ref(),
        End::Server => document.host_series.server.as_ref(),
    };
    let noted = series.map(|series| series.sampler_gaps.as_slice()).unwrap_or_default();
    if !noted.is_empty() {
        return noted.iter().filter(|gap| gap.end_ns > gap.start_ns).copied().collect();
    }
    let parameters = document.effective.as_ref().unwrap_or(&document.requested);
    let limit_ns = parameters.interval_ns.saturating_mul(GAP_INTERVALS).max(GAP_NS);
    let ends = document.streams.iter().filter_map(|stream| {
        let (sender, _) = End::roles(stream.direction);
        if sender == end { stream.sender.as_ref() } else { stream.receiver.as_ref() }
    });
    let mut read: Vec<u64> = ends.flat_map(|end| end.samples.iter().map(|sample| sample.t_ns)).collect();
    if read.is_empty() {
        return Vec::new();
    }
    let hosts = series.map(|series| series.samples.as_slice()).unwrap_or_default();
    read.extend(hosts.iter().filter_map(|sample| u64::try_from(sample.end_ns).ok()));
    read.sort_unstable();
    read.windows(2)
        .filter(|pair| pair[1] - pair[0] > limit_ns)
        .map(|pair| TimeSpan { start_ns: pair[0], end_ns: pair[1] })
        .collect()
}

/// Share of the host's core time that its kernel accounted for in the sample that lies mostly in `gap`.
fn accounted(host: &HostView, gap: &TimeSpan) -> Option<f64> {
    let span = |sample: &HostSample| TimeSpan {
        start_ns: u64::try_from(sample.start_ns).unwrap_or(0),
        end_ns: u64::try_from(sample.end_ns).unwrap_or(0),
    };
    let sample = host.series?.samples.iter().find(|sample| {
        let shared = total(&overlap(&[span(sample)], &[*gap]));
        shared > 0 && shared.saturating_mul(2) >= length(&span(sample))
    })?;
    let sums: Vec<f64> =
        sample.cores.iter().flatten().map(|core| f64::from(core.busy() + core.iowait + core.idle)).collect();
    (!sums.is_empty()).then(|| sums.iter().sum::<f64>() / sums.len() as f64).filter(|share| share.is_finite())
}

fn length(span: &TimeSpan) -> u64 {
    span.end_ns.saturating_sub(span.start_ns)
}

fn total(spans: &[TimeSpan]) -> u64 {
    spans.iter().fold(0, |sum, span| sum.saturating_add(length(span)))
}

/// Intersection of two lists of spans, each in order.
fn overlap(a: &[TimeSpan], b: &[TimeSpan]) -> Vec<TimeSpan> {
    let (mut a, mut b, mut common) = (a.iter().peekable(), b.iter().peekable(), Vec::new());
    while let (Some(left), Some(right)) = (a.peek(), b.peek()) {
        let span = TimeSpan { start_ns: left.start_ns.max(right.start_ns), end_ns: left.end_ns.min(right.end_ns) };
        if span.end_ns > span.start_ns {
            common.push(span);
        }
        if left.end_ns <= right.end_ns {
            a.next()
        } else {
            b.next()
        };
    }
    common
}

/// Formats spans, such as `from 0.60 to 1.73 s`; of many spans the longest ones, and the number of the
/// others.
fn listed(spans: &[TimeSpan]) -> String {
    let mut shown: Vec<&TimeSpan> = spans.iter().collect();
    shown.sort_by_key(|span| std::cmp::Reverse(length(span)));
    shown.truncate(MAX_LISTED);
    shown.sort_by_key(|span| span.start_ns);
    let words: Vec<String> = shown
        .iter()
        .map(|span| format!("from {:.2} to {:.2} s", span.start_ns as f64 / 1e9, span.end_ns as f64 / 1e9))
        .collect();
    let more = spans.len().saturating_sub(MAX_LISTED);
    let mut text = words.join(", ");
    if more > 0 {
        let _ = write!(text, " and {more} more");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn span(start_ns: u64, end_ns: u64) -> TimeSpan {
        TimeSpan { start_ns, end_ns }
    }

    #[test]
    fn overlapping_spans_are_intersected() {
        let a = [span(0, 10), span(20, 30), span(40, 50)];
        let b = [span(5, 25), span(28, 45)];
        assert_eq!(overlap(&a, &b), [span(5, 10), span(20, 25), span(28, 30), span(40, 45)]);
        assert_eq!(overlap(&a, &[]), []);
    }

    #[test]
    fn the_longest_spans_are_listed() {
        let s = |tenths: u64| tenths * 100_000_000;
        assert_eq!(listed(&[span(s(6), s(17))]), "from 0.60 to 1.70 s");
        let many: Vec<TimeSpan> = (0..6).map(|k| span(s(10 * k), s(10 * k + 2 + k))).collect();
        let text = listed(&many);
        assert!(text.starts_with("from 2.00 to 2.40 s, ") && text.ends_with(" and 2 more"), "{text}");
    }
}
