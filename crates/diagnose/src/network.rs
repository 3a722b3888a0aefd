//! What the sender's TCP says of the network, shared by the three network causes.

use landspeed_calc::{cubic_window_segments, reno_window_segments, window_rate_bps};

use crate::finding::{Bound, Scales, Strength};
use crate::flow::Flow;
use crate::reader::{Limited, window_limited};
use crate::stream::{StreamView, flight_segments};
use crate::text;
use crate::thresholds::{
    CWND_FULL, CWND_MOSTLY, EXPLAINS, NOTSENT_LITTLE, QUEUE_US, RESPONSE_FIT, RTT_FLAT, RTT_FOLLOWS, RTT_QUEUE,
    RTT_SHALLOW, SEND_EMPTY, WAITING_SHARE,
};

/// What was seen.
#[derive(Debug)]
pub(crate) struct Symptoms {
    /// How surely congestion control holds data back: data waits and the receiver's window is open.
    pub limited: Option<Strength>,
    /// Segments retransmitted in the phase.
    pub resent: Option<f64>,
    /// Retransmitted over sent segments.
    pub loss: Option<f64>,
    /// Segments delivered with an ECN mark.
    pub marked: f64,
    /// Duplicate SACKs over retransmissions: retransmissions that were not needed.
    pub spurious: Option<f64>,
    /// Retransmission timeouts.
    pub timeouts: f64,
    /// Smoothed over minimum RTT.
    pub inflation: Option<f64>,
    /// The queue the path holds.
    pub queue: Queue,
    /// Measured rate over the one the response function predicts for the loss seen.
    pub fit: Option<f64>,
    /// Packets the sender's own queueing disciplines dropped.
    pub qdisc_drops: f64,
}

/// What the RTT says of the queue in the path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Queue {
    /// The RTT is far above its minimum.
    Standing,
    /// The RTT is a little above its minimum and rises with the data in flight.
    Shallow,
    /// Above, but not plainly.
    Some,
    /// The RTT is flat.
    None,
    /// No RTT was read.
    Unseen,
}

/// Reads the symptoms.
pub(crate) fn symptoms(flow: &Flow) -> Symptoms {
    let resent = flow.moved(|tcp| Some(u64::from(tcp.total_retrans)));
    let sent = flow.moved(|tcp| tcp.data_segs_out.map(u64::from));
    let loss = resent.zip(sent).filter(|&(_, sent)| sent > 0.0).map(|(resent, sent)| resent / sent);
    let duplicates = flow.moved(|tcp| tcp.dsack_dups.map(u64::from));
    let marked = flow.moved(|tcp| tcp.delivered_ce.map(u64::from)).unwrap_or(0.0);
    let inflation = flow.srtt_us().zip(flow.min_rtt_us()).map(|(srtt, min)| srtt / min);
    Symptoms {
        limited: limited(flow, resent.is_some_and(|resent| resent > 0.0) || marked > 0.0),
        marked,
        resent,
        loss,
        spurious: duplicates.zip(resent).filter(|&(_, resent)| resent > 0.0).map(|(dups, resent)| dups / resent),
        timeouts: flow.moved(|tcp| tcp.total_rto.map(u64::from)).unwrap_or(0.0),
        inflation,
        queue: queue(flow, inflation),
        fit: loss.and_then(|loss| fit(flow, loss)),
        qdisc_drops: flow
            .sender
            .series
            .map_or(0.0, |series| series.qdiscs.iter().map(|qdisc| qdisc.drops as f64).sum()),
    }
}

fn limited(flow: &Flow, lossy: bool) -> Option<Strength> {
    if matches!(window_limited(flow), Some(Limited::Plainly | Limited::Partly)) {
        return None;
    }
    let unsent = flow.figure(StreamView::notsent).map(|figure| figure.value)?;
    let share = flow.figure(StreamView::waiting_share).map_or(0.0, |figure| figure.value);
    let waits = unsent >= NOTSENT_LITTLE || share >= WAITING_SHARE;
    // Pacing makes each write wait a little, even of an application that offers next to nothing.
    let starving = flow.figure(StreamView::send_fill).is_some_and(|figure| figure.value < SEND_EMPTY);
    let filled = flow.figure(StreamView::flight_over_cwnd).map_or(0.0, |figure| figure.value);
    match () {
        () if filled >= CWND_FULL && unsent > 0.0 => Some(Strength::Strong),
        // BBR's window is twice what it means to have in flight: its own pacing holds the data back, the window does
        // not.
        () if flow.is_model_based() && waits && !starving => Some(Strength::Strong),
        () if filled >= CWND_MOSTLY && waits && lossy => Some(Strength::Moderate),
        () => None,
    }
}

fn queue(flow: &Flow, inflation: Option<f64>) -> Queue {
    let Some((inflation, min)) = inflation.zip(flow.min_rtt_us()) else { return Queue::Unseen };
    let waiting_us = (inflation - 1.0) * min;
    if waiting_us < QUEUE_US {
        return Queue::None;
    }
    if inflation >= RTT_QUEUE {
        return Queue::Standing;
    }
    let rises = high_rtt_us(flow).is_some_and(|high| high / min >= RTT_SHALLOW);
    if rises && flow.figure(rtt_follows_flight).is_some_and(|figure| figure.value >= RTT_FOLLOWS) {
        return Queue::Shallow;
    }
    if inflation < RTT_FLAT { Queue::None } else { Queue::Some }
}

/// 90th percentile of the smoothed RTT, microseconds.
fn high_rtt_us(flow: &Flow) -> Option<f64> {
    let mut readings: Vec<u32> =
        flow.streams.iter().flat_map(|s| s.tcp().map(|tcp| tcp.rtt_us)).filter(|&us| us > 0).collect();
    readings.sort_unstable();
    readings.get(readings.len() * 9 / 10).copied().map(f64::from)
}

/// Correlation (Pearson) of RTT with the segments in flight: a filling queue makes one follow the other.
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

/// Measured rate of a stream over the rate its congestion control reaches at this loss (RFC 9438 §5 for CUBIC, RFC
/// 3649 for Reno). `None` for congestion controls without such a function.
fn fit(flow: &Flow, loss: f64) -> Option<f64> {
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

/// The readings all three share.
pub(crate) fn weigh(scales: &mut Scales, flow: &Flow) {
    scales.figure(
        "segments in flight over the congestion window",
        flow.figure(StreamView::flight_over_cwnd),
        "ratio",
        Bound::AtLeast(CWND_FULL),
        "sender.samples[].tcp.snd_cwnd",
    );
    let (source, notsent) = ("sender.samples[].tcp.notsent_bytes", flow.figure(StreamView::notsent));
    let waiting = if flow.is_model_based() { Bound::AtLeast(NOTSENT_LITTLE) } else { Bound::Above(0.0) };
    scales.figure("bytes written and not sent", notsent, "bytes", waiting, source);
    if let Some(share) = flow.figure(StreamView::waiting_share) {
        let bound = Bound::AtLeast(WAITING_SHARE);
        scales.figure("bytes not sent over send queue memory", Some(share), "ratio", bound, source);
    }
}

/// Loss in the phase, held against "any" or "none".
pub(crate) fn weigh_loss(scales: &mut Scales, flow: &Flow, seen: &Symptoms, expected: bool) {
    let bound = if expected { Bound::Above(0.0) } else { Bound::Below(1.0) };
    let end = Some(flow.sender.end);
    let source = "streams[].sender.samples[].tcp.total_retrans";
    scales.value("segments retransmitted", seen.resent, "segments", bound, end, source);
}

/// RTT in the phase, held against a queue or a flat RTT.
pub(crate) fn weigh_rtt(scales: &mut Scales, flow: &Flow, seen: &Symptoms, queue: bool) {
    let bound = if queue { Bound::AtLeast(RTT_QUEUE) } else { Bound::Below(RTT_FLAT) };
    let end = Some(flow.sender.end);
    scales.value(
        "smoothed over minimum RTT",
        seen.inflation,
        "ratio",
        bound,
        end,
        "streams[].sender.samples[].tcp.rtt_us",
    );
}

/// Correlation and response function, where they were computed.
pub(crate) fn weigh_loss_pattern(scales: &mut Scales, flow: &Flow, seen: &Symptoms, queue: bool) {
    let end = Some(flow.sender.end);
    let bound = if queue { Bound::AtLeast(RTT_FOLLOWS) } else { Bound::Below(RTT_FOLLOWS) };
    let follows = flow.figure(rtt_follows_flight);
    if follows.is_some() {
        scales.figure(
            "correlation of RTT with data in flight",
            follows,
            "ratio",
            bound,
            "sender.samples[].tcp.rtt_us",
        );
    }
    let bound = Bound::Within(1.0 / RESPONSE_FIT, RESPONSE_FIT);
    let metric = "rate over the congestion control's response to this loss";
    scales.optional(metric, seen.fit, "ratio", bound, end, "streams[].sender.samples[].tcp.total_retrans");
}

impl Symptoms {
    /// Whether the loss seen explains the rate; `None` when there is no function to tell.
    pub(crate) fn fits(&self) -> Option<bool> {
        self.fit.map(|fit| (1.0 / RESPONSE_FIT..=RESPONSE_FIT).contains(&fit))
    }

    /// `0.10 % of the segments (2600) were retransmitted`.
    pub(crate) fn loss_words(&self) -> String {
        let resent = text::number(self.resent.unwrap_or(0.0));
        match self.loss {
            Some(loss) => format!("{} of the segments ({resent}) were retransmitted", text::percent(loss)),
            None => format!("{resent} segments were retransmitted"),
        }
    }

    /// Whether the sender's own queueing discipline dropped what was resent.
    pub(crate) fn dropped_in_qdisc(&self) -> bool {
        self.qdisc_drops > 0.0 && self.qdisc_drops >= self.resent.unwrap_or(0.0) * EXPLAINS
    }

    /// `, with srtt 41.0 ms over a minimum of 20.1 ms`.
    pub(crate) fn rtt_words(flow: &Flow) -> String {
        match flow.srtt_us().zip(flow.min_rtt_us()) {
            Some((srtt, min)) => {
                format!("RTT {} on average over a minimum of {}", text::micros(srtt), text::micros(min))
            }
            None => "RTT not seen".to_owned(),
        }
    }
}
