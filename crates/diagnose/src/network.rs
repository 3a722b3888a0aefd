//! Network symptoms in the counters of both TCPs: losses, reordering, queues. Shared by the network causes.

use landspeed_calc::{cubic_window_segments, reno_window_segments, window_rate_bps};

use landspeed_model::{QdiscDelta, Sample, StreamEnd, TcpInfo};

use crate::finding::{Bound, FindingBuilder, Strength};
use crate::flow::Flow;
use crate::pattern::Pattern;
use crate::reader::{Limited, window_limited};
use crate::stream::{StreamView, flight_segments};
use crate::text;
use crate::thresholds::{
    ALWAYS_QUEUED, AT_CEILING, CEILING, CWND_FULL, CWND_MOSTLY, DELIVERY_EVEN, DELIVERY_VARIES, DELIVERY_VARIES_BBR,
    DELIVERY_VARIES_MUCH, EXPLAINS, LONG_QUEUE_US, LOSES_RARELY, LOSES_SELDOM, LOST_IN_BURSTS, NOTSENT_LITTLE,
    OWN_BURSTS, OWN_BURSTS_US, PEAKS_ALIKE, QUEUE_US, RATE_EXCEEDED, RESPONSE_FIT, RTT_FLAT, RTT_FOLLOWS, RTT_QUEUE,
    RTT_SHALLOW, SEND_EMPTY, SHAPED, SHAPED_GSO, SHAPER_REACHED, SINGLE_LOSSES, WAITING_SHARE,
};

/// GSO packet size of the kernel by default, bytes.
const GSO_BYTES: f64 = 65_536.0;

/// Network symptoms of a flow.
#[derive(Debug)]
pub(crate) struct Symptoms {
    /// Whether the congestion control paces to a model of the path (BBR).
    pub model_based: bool,
    /// Strength of the evidence that congestion control limits: data waits while the receive window is open.
    pub limited: Option<Strength>,
    /// Segments retransmitted in the steady phase.
    pub retransmits: Option<f64>,
    /// Ratio of retransmitted to sent segments.
    pub loss: Option<f64>,
    /// Segments delivered with an ECN mark.
    pub marked: f64,
    /// Ratio of DSACKs to retransmissions: the share of spurious retransmissions.
    pub spurious: Option<f64>,
    /// Retransmission timeouts (RTO) in the phase.
    pub timeouts: f64,
    /// Ratio of smoothed to minimum RTT.
    pub inflation: Option<f64>,
    /// Queue in the path, from the RTT.
    pub queue: Queue,
    /// Ratio of the 10th percentile of the smoothed RTT to the minimum, if the difference exceeds host noise:
    /// above 1 for a queue that never empties.
    pub lowest_inflation: Option<f64>,
    /// Ratio of the measured rate to the rate that the response function predicts for the measured loss.
    pub response_fit: Option<f64>,
    /// Packets dropped by the qdiscs of the sender's interface, each counted once.
    pub qdisc_drops: f64,
    /// Segments retransmitted from the start of the run to the end of the phase.
    pub retransmits_so_far: f64,
    /// Part of `retransmits_so_far` before the phase and in its first quarter.
    pub retransmits_early: f64,
    /// Reordering events detected by SACK in the phase.
    pub reordered: f64,
    /// Data segments sent by the sender's TCP and not received by the receiver's, over the whole run, from both
    /// counters. `None` without both hosts.
    pub never_arrived: Option<f64>,
    /// Share of the receiver's ACKs that did not reach the sender; `None` without both hosts.
    pub acks_lost: Option<f64>,
    /// Share of the queueing delay on the reverse path, from the bytes received but not yet acknowledged at the
    /// sender.
    pub reverse_share: Option<f64>,
    /// Ratio of the median delivery rate just before losses to the highest delivery rate.
    pub ceiling: Option<f64>,
    /// Coefficient of variation of the congestion windows just before loss reduced them, all streams. A buffer
    /// overflows at the same window each time.
    pub peaks_spread: Option<f64>,
    /// Ratio of the 90th to the 10th percentile of the smoothed RTT.
    pub rtt_range: Option<f64>,
    /// Mean share of the data sent while less was in flight than just before losses. A ceiling is hit at the
    /// largest flight; random loss occurs at any.
    pub flight_rank: Option<f64>,
    /// Coefficient of variation of the segments delivered between samples, all streams. A full link delivers
    /// evenly.
    pub delivery_spread: Option<f64>,
    /// Segments retransmitted per interval with losses, relative to independent losses.
    pub burstiness: Option<f64>,
    /// Share of the intervals with losses.
    pub lossy_share: f64,
    /// Samples with new retransmissions in the last three quarters of the phase.
    pub late_losses: usize,
    /// The sender's own shaping qdisc.
    pub shaper: Option<Shaper>,
}

/// Queue in the path as the RTT shows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Queue {
    /// RTT far above its minimum.
    Standing,
    /// RTT slightly above its minimum, rising with the data in flight.
    Shallow,
    /// RTT above its minimum, without a clear pattern.
    Some,
    /// RTT near its minimum.
    None,
    /// The RTT was not read.
    NotVisible,
}

/// Computes the symptoms of a flow.
pub(crate) fn symptoms(flow: &Flow) -> Symptoms {
    let pattern = Pattern::new(flow);
    let retransmits = flow.increase(|tcp| Some(u64::from(tcp.total_retrans)));
    let sent = flow.increase(|tcp| tcp.data_segs_out.map(u64::from));
    let loss = retransmits.zip(sent).filter(|&(_, sent)| sent > 0.0).map(|(retransmits, sent)| retransmits / sent);
    let duplicates = flow.increase(|tcp| tcp.dsack_dups.map(u64::from));
    let marked = flow.increase(|tcp| tcp.delivered_ce.map(u64::from)).unwrap_or(0.0);
    let inflation = flow.rtt_inflation();
    Symptoms {
        model_based: flow.is_model_based(),
        limited: limited(flow, retransmits.is_some_and(|retransmits| retransmits > 0.0) || marked > 0.0),
        marked,
        retransmits,
        loss,
        spurious: duplicates
            .zip(retransmits)
            .filter(|&(_, retransmits)| retransmits > 0.0)
            .map(|(dups, retransmits)| dups / retransmits),
        timeouts: flow.increase(|tcp| tcp.total_rto.map(u64::from)).unwrap_or(0.0),
        inflation,
        queue: queue(flow, inflation),
        lowest_inflation: rtt_quantile_us(flow, 0.1)
            .zip(flow.min_rtt_us())
            .filter(|(low, min)| low - min >= QUEUE_US)
            .map(|(low, min)| low / min),
        response_fit: loss.and_then(|loss| response_fit(flow, loss)),
        qdisc_drops: flow.sender.egress_drops(),
        retransmits_so_far: retransmits_until(flow, flow.span_ns.1),
        retransmits_early: retransmits_until(flow, flow.span_ns.0 + (flow.span_ns.1 - flow.span_ns.0) / 4),
        reordered: flow.increase(|tcp| tcp.reord_seen.map(u64::from)).unwrap_or(0.0),
        never_arrived: missing(flow, |tcp| tcp.data_segs_out, |tcp| tcp.data_segs_in, true).map(|(lost, _)| lost),
        acks_lost: missing(flow, |tcp| tcp.segs_out, |tcp| tcp.segs_in, false)
            .filter(|&(_, sent)| sent > 0.0)
            .map(|(lost, sent)| lost / sent),
        reverse_share: reverse_share(flow),
        ceiling: pattern.ceiling,
        peaks_spread: pattern.peaks_spread,
        rtt_range: rtt_quantile_us(flow, 0.9).zip(rtt_quantile_us(flow, 0.1)).map(|(high, low)| high / low),
        flight_rank: pattern.flight_rank,
        delivery_spread: pattern.delivery_spread,
        burstiness: pattern.burstiness,
        lossy_share: pattern.lossy_share,
        late_losses: pattern.late_losses,
        shaper: shaper(flow),
    }
}

/// Segments retransmitted up to `until_ns`, all streams, without those before the first sample: SYNs, whose timeout an RTT
/// of a second or a busy server exceeds.
fn retransmits_until(flow: &Flow, until_ns: u64) -> f64 {
    let last = |stream: &StreamView<'_>| {
        let mut readings = stream
            .sender()?
            .samples
            .iter()
            .take_while(|sample| sample.t_ns <= until_ns)
            .filter_map(|sample| sample.tcp.as_deref());
        let first = readings.next()?.total_retrans;
        Some(f64::from(readings.last().map_or(0, |tcp| tcp.total_retrans.saturating_sub(first))))
    };
    flow.streams.iter().filter_map(last).sum()
}

/// Segments sent by one TCP and not received by the other at the end of the run, and those sent. `forward`:
/// from the sender to the receiver.
fn missing(
    flow: &Flow,
    sent: impl Fn(&TcpInfo) -> Option<u32>,
    received: impl Fn(&TcpInfo) -> Option<u32>,
    forward: bool,
) -> Option<(f64, f64)> {
    let last = |end: Option<&StreamEnd>, of: &dyn Fn(&TcpInfo) -> Option<u32>| {
        end?.samples.iter().rev().find_map(|sample| of(sample.tcp.as_deref()?)).map(f64::from)
    };
    let mut sums = (0.0, 0.0);
    for stream in &flow.streams {
        let (from, to) =
            if forward { (stream.sender(), stream.receiver()) } else { (stream.receiver(), stream.sender()) };
        let (out, came) = (last(from, &sent)?, last(to, &received)?);
        sums = (sums.0 + out - came, sums.1 + out);
    }
    // Segments still in flight at the last samples count as missing too.
    (!flow.streams.is_empty()).then_some((sums.0.max(0.0), sums.1))
}

/// Share of the queueing delay on the reverse path: the bytes received but not yet acknowledged at the
/// sender, divided by the flow's rate, are the delay of the reverse path.
fn reverse_share(flow: &Flow) -> Option<f64> {
    let (base_us, srtt_us) = (flow.min_rtt_us()?, flow.srtt_us()?);
    let waits_us = srtt_us - base_us;
    let clock_us =
        if flow.route.is_some() { 0.0 } else { flow.document.path.as_ref()?.clock.uncertainty_ns as f64 / 1e3 };
    if waits_us <= QUEUE_US.max(4.0 * clock_us) {
        return None;
    }
    let of_stream = |stream: &StreamView<'_>| {
        let mut unacked = Vec::new();
        let mut next = stream.read.iter().filter(|read| read.tcp.is_some()).peekable();
        let mut before = None;
        for sample in &stream.sent {
            while let Some(read) = next.next_if(|read| read.t_ns <= sample.t_ns) {
                before = Some(*read);
            }
            let (Some(before), Some(after)) = (before, next.peek()) else { continue };
            let Some(acked) = sample.tcp.as_deref().and_then(|tcp| tcp.bytes_acked) else { continue };
            let bytes = |sample: &Sample| sample.tcp.as_deref()?.bytes_received.map(|bytes| bytes as f64);
            let span = after.t_ns.saturating_sub(before.t_ns).max(1) as f64;
            let share = sample.t_ns.saturating_sub(before.t_ns) as f64 / span;
            let Some((from, to)) = bytes(before).zip(bytes(after)) else { continue };
            unacked.push((from + (to - from) * share - acked as f64).max(0.0));
        }
        crate::host::mean(unacked.into_iter())
    };
    let unacked: Vec<f64> = flow.streams.iter().map(of_stream).collect::<Option<_>>()?;
    let rate = flow.goodput_bps / 8e6;
    (rate > 0.0 && !unacked.is_empty()).then(|| {
        let back_us = unacked.iter().sum::<f64>() / rate;
        ((back_us - base_us / 2.0) / waits_us).clamp(0.0, 1.0)
    })
}

/// The sender's own shaper that delays most of what passes it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Shaper {
    /// Ratio of overlimit events to packets.
    pub overlimits: f64,
    /// Ratio from which the shaper sets the rate.
    pub threshold: f64,
    /// Lowest rate that all of the flow's packets pass, if the kernel tells it.
    pub rate: Option<ShapedRate>,
}

/// A rate on the sender's interface that the flow's packets pass.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ShapedRate {
    /// The rate, bits/s.
    pub bps: f64,
    /// Ratio of the flow's frames to it.
    pub used: f64,
}

impl Shaper {
    /// Whether the shaper sets the rate. Overlimit events do not tell a flow in bursts from a full shaper; a known rate
    /// does.
    pub(crate) fn limits(&self) -> bool {
        match self.rate {
            Some(rate) => rate.is_reached(),
            None => self.overlimits >= self.threshold,
        }
    }
}

impl ShapedRate {
    /// Whether the flow is as fast as the shaper allows.
    pub(crate) fn is_reached(self) -> bool {
        self.used >= SHAPER_REACHED
    }
}

/// Returns the lowest rate of a discipline or class that the flow's frames may have passed: as many bytes did, and its
/// rate is not exceeded.
fn shaped_rate(flow: &Flow) -> Option<ShapedRate> {
    let series = flow.sender.series?;
    let frames_bps = flow.frame_bps()?;
    let flow_bytes = frames_bps * flow.seconds() / 8.0;
    let passed =
        series.qdiscs.iter().chain(&series.classes).filter(|shaper| shaper.bytes as f64 >= EXPLAINS * flow_bytes);
    let rates = passed.filter_map(|shaper| shaper.shaped_bps);
    let lowest = rates.filter(|&bps| bps > 0 && is_within(frames_bps, bps)).min()?;
    Some(ShapedRate { bps: lowest as f64, used: frames_bps / lowest as f64 })
}

/// Whether frames at this rate may pass a shaper of `shaped_bps`; other traffic passes a slower one.
fn is_within(frames_bps: f64, shaped_bps: u64) -> bool {
    frames_bps <= RATE_EXCEEDED * shaped_bps as f64
}

/// Returns the sender's own shaper, if there is one. `tbf` cuts GSO packets into segments, so that each segment may
/// wait; a classful qdisc such as `htb` counts one event for a GSO packet and its segments as packets.
fn shaper(flow: &Flow) -> Option<Shaper> {
    const SHAPERS: &[&str] = &["tbf", "htb", "hfsc", "cbq", "cake", "netem"];
    let series = flow.sender.series?;
    let rate = shaped_rate(flow);
    // Where rates are known and none fits the flow's, the events are those of other traffic.
    let is_others = |qdisc: &QdiscDelta| {
        let exceeded = qdisc.shaped_bps.zip(flow.frame_bps()).is_some_and(|(bps, frames)| !is_within(frames, bps));
        rate.is_none() && (exceeded || qdisc.kind == "htb" && !series.classes.is_empty())
    };
    let shapers = series
        .qdiscs
        .iter()
        .filter(|qdisc| SHAPERS.contains(&qdisc.kind.as_str()) && qdisc.packets > 0 && !is_others(qdisc));
    let overlimits = shapers.map(|qdisc| qdisc.overlimits as f64 / qdisc.packets as f64).reduce(f64::max)?;
    let threshold = SHAPED.min(SHAPED_GSO / gso_segments(flow));
    Some(Shaper { overlimits, threshold, rate })
}

/// Segments in a full GSO packet of the sender; 1 if its interface gets single segments.
fn gso_segments(flow: &Flow) -> f64 {
    let Some(nic) = flow.sender.snapshot.and_then(|snapshot| snapshot.nic.as_ref()) else { return 1.0 };
    let is_on = |name: &str| nic.offloads.get(name).copied().unwrap_or(false);
    if !is_on("tx-tcp-segmentation") && !is_on("tx-generic-segmentation") {
        return 1.0;
    }
    let bytes = nic.gso_max_size_bytes.map_or(GSO_BYTES, f64::from).min(GSO_BYTES);
    flow.mss().map_or(1.0, |mss| (bytes / mss).max(1.0))
}

fn limited(flow: &Flow, lossy: bool) -> Option<Strength> {
    if matches!(window_limited(flow), Some(Limited::Certain | Limited::Possible)) {
        return None;
    }
    let unsent = flow.figure(StreamView::notsent).map(|figure| figure.value)?;
    let share = flow.figure(StreamView::waiting_share).map_or(0.0, |figure| figure.value);
    let waits = unsent >= NOTSENT_LITTLE || share >= WAITING_SHARE;
    // Pacing delays each write slightly, even of an application that sends very little.
    let starving = flow.figure(StreamView::send_fill).is_some_and(|figure| figure.value < SEND_EMPTY);
    let filled = flow.figure(StreamView::flight_over_cwnd).map_or(0.0, |figure| figure.value);
    match () {
        () if filled >= CWND_FULL && unsent > 0.0 => Some(Strength::Strong),
        // BBR's window is twice its target flight: its pacing holds the data back, not the window.
        () if flow.is_model_based() && waits && !starving => Some(Strength::Strong),
        () if filled >= CWND_MOSTLY && waits && lossy => Some(Strength::Moderate),
        // In a lab run the path is known: data that nothing on this host delays waits for the network.
        () if flow.route.is_some() && waits && !starving => Some(Strength::Moderate),
        () => None,
    }
}

fn queue(flow: &Flow, inflation: Option<f64>) -> Queue {
    let Some((inflation, min)) = inflation.zip(flow.min_rtt_us()) else { return Queue::NotVisible };
    let waiting_us = (inflation - 1.0) * min;
    if waiting_us < QUEUE_US {
        return Queue::None;
    }
    if inflation >= RTT_QUEUE {
        return Queue::Standing;
    }
    let rises = rtt_quantile_us(flow, 0.9).is_some_and(|high| high / min >= RTT_SHALLOW);
    if rises && flow.figure(rtt_follows_flight).is_some_and(|figure| figure.value >= RTT_FOLLOWS) {
        return Queue::Shallow;
    }
    if inflation < RTT_FLAT { Queue::None } else { Queue::Some }
}

/// A quantile of the smoothed RTT, microseconds.
fn rtt_quantile_us(flow: &Flow, quantile: f64) -> Option<f64> {
    let mut readings: Vec<u32> =
        flow.streams.iter().flat_map(|s| s.tcp().map(|tcp| tcp.rtt_us)).filter(|&us| us > 0).collect();
    readings.sort_unstable();
    readings.get((readings.len() as f64 * quantile) as usize).copied().map(f64::from)
}

/// Pearson correlation of RTT and segments in flight: close to 1 while a queue fills.
pub(crate) fn rtt_follows_flight(stream: &StreamView) -> Option<f64> {
    let pairs: Vec<(f64, f64)> =
        stream.tcp().filter(|tcp| tcp.rtt_us > 0).map(|tcp| (flight_segments(tcp), f64::from(tcp.rtt_us))).collect();
    if pairs.len() < 10 {
        return None;
    }
    let count = pairs.len() as f64;
    let (mean_x, mean_y) =
        (pairs.iter().map(|p| p.0).sum::<f64>() / count, pairs.iter().map(|p| p.1).sum::<f64>() / count);
    let (mut xy, mut xx, mut yy) = (0.0, 0.0, 0.0);
    for (x, y) in pairs {
        let (dx, dy) = (x - mean_x, y - mean_y);
        xy += dx * dy;
        xx += dx * dx;
        yy += dy * dy;
    }
    (xx > 0.0 && yy > 0.0).then(|| xy / (xx.sqrt() * yy.sqrt()))
}

/// Ratio of a stream's measured rate to the rate its congestion control reaches at this loss (RFC 9438 §5
/// for CUBIC, RFC 3649 for Reno). `None` for congestion controls without a response function.
fn response_fit(flow: &Flow, loss: f64) -> Option<f64> {
    if loss <= 0.0 || flow.goodput_bps <= 0.0 {
        return None;
    }
    let (rtt_s, mss) = (flow.srtt_us()? / 1e6, flow.mss()?);
    let window = match flow.congestion()?.as_str() {
        "cubic" => cubic_window_segments(rtt_s, loss),
        "reno" => reno_window_segments(loss),
        _ => return None,
    };
    let predicted = window_rate_bps(window, mss, rtt_s) * flow.streams.len() as f64;
    (predicted > 0.0).then(|| flow.goodput_bps / predicted)
}

/// Records the readings common to the network causes.
pub(crate) fn record_readings(builder: &mut FindingBuilder, flow: &Flow) {
    builder.flight_over_cwnd(Bound::AtLeast(CWND_FULL));
    let waiting = if flow.is_model_based() { Bound::AtLeast(NOTSENT_LITTLE) } else { Bound::Above(0.0) };
    builder.unsent(waiting);
    if flow.figure(StreamView::waiting_share).is_some() {
        builder.unsent_share(Bound::AtLeast(WAITING_SHARE));
    }
}

/// Records the loss in the phase; `expected`: losses support the cause, else their absence does.
pub(crate) fn record_loss(builder: &mut FindingBuilder, flow: &Flow, seen: &Symptoms, expected: bool) {
    let bound = if expected { Bound::Above(0.0) } else { Bound::Below(1.0) };
    let end = Some(flow.sender.end);
    let source = "streams[].sender.samples[].tcp.total_retrans";
    builder.value("segments retransmitted", seen.retransmits, "segments", bound, end, source);
}

/// Records the RTT in the phase; `queue`: a standing queue supports the cause, else a flat RTT does.
pub(crate) fn record_rtt(builder: &mut FindingBuilder, flow: &Flow, seen: &Symptoms, queue: bool) {
    let bound = if queue { Bound::AtLeast(RTT_QUEUE) } else { Bound::Below(RTT_FLAT) };
    let end = Some(flow.sender.end);
    builder.value(
        "smoothed over minimum RTT",
        seen.inflation,
        "ratio",
        bound,
        end,
        "streams[].sender.samples[].tcp.rtt_us",
    );
}

/// Records the correlation and the response function, if they were computed.
pub(crate) fn record_loss_pattern(builder: &mut FindingBuilder, flow: &Flow, seen: &Symptoms, queue: bool) {
    let end = Some(flow.sender.end);
    let bound = if queue { Bound::AtLeast(RTT_FOLLOWS) } else { Bound::Below(RTT_FOLLOWS) };
    let follows = flow.figure(rtt_follows_flight);
    if follows.is_some() {
        builder.figure(
            "correlation of RTT with data in flight",
            follows,
            "ratio",
            bound,
            "sender.samples[].tcp.rtt_us",
        );
    }
    let bound = Bound::Within(1.0 / RESPONSE_FIT, RESPONSE_FIT);
    let metric = "rate over the congestion control's response to this loss";
    builder.optional(metric, seen.response_fit, "ratio", bound, end, "streams[].sender.samples[].tcp.total_retrans");
}

impl Symptoms {
    /// Whether the measured loss explains the rate; `None` without a response function.
    pub(crate) fn fits(&self) -> Option<bool> {
        self.response_fit.map(|response_fit| (1.0 / RESPONSE_FIT..=RESPONSE_FIT).contains(&response_fit))
    }

    /// Whether data always waits in the path, so that the window does not limit.
    pub(crate) fn always_queued(&self) -> bool {
        self.lowest_inflation.is_some_and(|ratio| ratio >= ALWAYS_QUEUED)
    }

    /// Whether data always waits longer than two ends that take turns on the cores of one host explain.
    pub(crate) fn queues_long(&self, flow: &Flow) -> bool {
        let waits_us = self.lowest_inflation.zip(flow.min_rtt_us()).map(|(ratio, min_us)| (ratio - 1.0) * min_us);
        waits_us >= Some(LONG_QUEUE_US)
    }

    /// Whether losses are random: single, at any window (true), or at a ceiling (false): in bursts, with most
    /// data in flight, at about the same window each time. `None` if neither is clear.
    pub(crate) fn is_random(&self) -> Option<bool> {
        if self.model_based {
            return self.delivery_spread.map(|spread| spread >= DELIVERY_VARIES_BBR);
        }
        if self.peaks_spread.is_some_and(|spread| spread < PEAKS_ALIKE) && self.ceiling >= Some(CEILING) {
            return Some(false);
        }
        if self.lossy_share == 0.0 {
            return None;
        }
        // With losses in every interval, bursts do not stand out.
        let singly = self.burstiness.is_none_or(|bursts| bursts < SINGLE_LOSSES);
        let varies = self.delivery_spread >= Some(DELIVERY_VARIES);
        if singly && (self.lossy_share < LOSES_SELDOM || varies) {
            return Some(true);
        }
        let many = self.burstiness >= Some(LOST_IN_BURSTS);
        (many || self.flight_rank >= Some(AT_CEILING)).then_some(false)
    }

    /// Strength of the evidence for random loss: strong far from any ceiling, weaker if losses are merely rare.
    pub(crate) fn random_loss_strength(&self) -> Strength {
        match () {
            () if self.is_random() != Some(true) || self.delivers_evenly() => Strength::Weak,
            () if self.delivery_spread >= Some(DELIVERY_VARIES_MUCH) => Strength::Strong,
            () if self.lossy_share < LOSES_RARELY => Strength::Moderate,
            () => Strength::Weak,
        }
    }

    /// Whether all data that waits may be in the sender's own qdisc, where BBR's pacing queues it.
    pub(crate) fn bursts_are_local(&self, flow: &Flow) -> bool {
        let waits_us = flow.srtt_us().zip(flow.min_rtt_us()).map_or(0.0, |(srtt, min)| srtt - min);
        self.model_based && (waits_us < OWN_BURSTS_US || waits_us * flow.goodput_bps / 8e6 < OWN_BURSTS)
    }

    /// Whether delivery is so even that a link or a shaper sets the rate.
    pub(crate) fn delivers_evenly(&self) -> bool {
        self.delivery_spread.is_some_and(|spread| spread < DELIVERY_EVEN)
    }

    /// `0.10 % of the segments (2600) were retransmitted`.
    pub(crate) fn loss_text(&self) -> String {
        let retransmits = text::number(self.retransmits.unwrap_or(0.0));
        match self.loss {
            Some(loss) => format!("{} of the segments ({retransmits}) were retransmitted", text::percent(loss)),
            None => format!("{retransmits} segments were retransmitted"),
        }
    }

    /// `RTT 41.0 ms on average over a minimum of 20.1 ms`.
    pub(crate) fn rtt_text(flow: &Flow) -> String {
        match flow.srtt_us().zip(flow.min_rtt_us()) {
            Some((srtt, min)) => {
                format!("RTT {} on average over a minimum of {}", text::micros(srtt), text::micros(min))
            }
            None => "RTT not visible".to_owned(),
        }
    }
}
