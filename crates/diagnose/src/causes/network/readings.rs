//! Evidence readings of each network cause.

use landspeed_model::Cause;

use crate::causes::receiver_drops;
use crate::epochs::startup_share;
use crate::finding::{Bound, FindingBuilder};
use crate::flow::Flow;
use crate::network::{Symptoms, record_loss, record_loss_pattern, record_readings, record_rtt, rtt_follows_flight};
use crate::route::{DropPlace, Hop};
use crate::thresholds::{
    ACKS_LOST, AT_CEILING, CEILING, CWND_MOSTLY, DELIVERY_EVEN, DELIVERY_VARIES, DELIVERY_VARIES_BBR, EARLY_LOSS,
    EXPLAINS, FULL_LINK, LOSES_SELDOM, LOST_IN_BURSTS, MODEL_LOSS, MOSTLY_WAITS, MSS_FELL, PEAKS_ALIKE,
    POLICER_FRAMES, RAMP_RATIO, REAL_LOSS, REQUEUED, REVERSE_QUEUE, SHALLOW_BDP, SHAPER_REACHED, SINGLE_LOSSES,
    WAITING_SHARE,
};

pub(super) fn read(builder: &mut FindingBuilder, flow: &Flow, seen: &Symptoms, cause: Cause) {
    let end = Some(flow.sender.end);
    let retrans = "streams[].sender.samples[].tcp.total_retrans";
    match cause {
        Cause::NetworkCongestion => {
            record_readings(builder, flow);
            record_loss(builder, flow, seen, true);
            record_rtt(builder, flow, seen, true);
            record_loss_pattern(builder, flow, seen, true);
            if seen.marked > 0.0 {
                let source = "streams[].sender.samples[].tcp.delivered_ce";
                let metric = "segments delivered with an ECN mark";
                builder.value(metric, Some(seen.marked), "segments", Bound::Above(0.0), end, source);
            }
            read_hop(
                builder,
                flow,
                |hop| Some(hop.drops),
                "packets dropped by the queue",
                "packets",
                Bound::Above(0.0),
            );
        }
        Cause::NetworkLoss => {
            record_readings(builder, flow);
            record_loss(builder, flow, seen, true);
            record_rtt(builder, flow, seen, false);
            record_loss_pattern(builder, flow, seen, false);
            read_ceiling(builder, flow, seen, false);
            if seen.timeouts > 0.0 {
                let source = "streams[].sender.samples[].tcp.total_rto";
                let bound = Bound::Above(0.0);
                builder.value("retransmission timeouts", Some(seen.timeouts), "timeouts", bound, end, source);
            }
            if flow.is_model_based() {
                let metric = "segments retransmitted over sent";
                builder.value(metric, seen.loss, "ratio", Bound::AtLeast(MODEL_LOSS), end, retrans);
            }
            read_never_arrived(builder, seen, Bound::Above(0.0));
            if let Some(route) = &flow.route {
                let lost = route.forward.iter().map(|hop| hop.lost).sum();
                builder.value("frames lost on links", Some(lost), "frames", Bound::Above(0.0), None, "links[].lost");
            }
        }
        Cause::NetworkPath => {
            record_readings(builder, flow);
            record_loss(builder, flow, seen, false);
            record_rtt(builder, flow, seen, true);
            read_delivery(builder, flow, seen, Bound::Below(DELIVERY_EVEN));
            let full = Bound::AtLeast(FULL_LINK);
            read_hop(builder, flow, |hop| Some(hop.utilisation), "link utilisation", "ratio", full);
        }
        Cause::WindowGrowth => {
            record_readings(builder, flow);
            record_loss(builder, flow, seen, false);
            if flow.is_model_based() {
                let source = "streams[].sender.samples[].congestion.bbr.pacing_gain";
                let bound = Bound::AtLeast(MOSTLY_WAITS);
                builder.value(
                    "share of time in BBR's startup phase",
                    Some(startup_share(flow)),
                    "ratio",
                    bound,
                    end,
                    source,
                );
            } else {
                let source = "streams[].sender.samples[].tcp.snd_cwnd";
                let metric = "congestion window, last quarter over first";
                builder.value(metric, flow.window_growth(), "ratio", Bound::AtLeast(RAMP_RATIO), end, source);
            }
        }
        Cause::SlowStartOvershoot => {
            let share = (seen.retransmits_so_far > 0.0).then(|| seen.retransmits_early / seen.retransmits_so_far);
            let metric = "retransmits before and early in the phase over all";
            builder.optional(metric, share, "ratio", Bound::AtLeast(EARLY_LOSS), end, retrans);
            let source = "streams[].sender.samples[].tcp.snd_cwnd";
            let metric = "congestion window, last quarter over first";
            builder.optional(metric, flow.window_growth(), "ratio", Bound::AtLeast(RAMP_RATIO), end, source);
            let room = Bound::Below(FULL_LINK);
            read_hop(builder, flow, |hop| Some(hop.utilisation), "link utilisation", "ratio", room);
        }
        Cause::ShallowBuffer => {
            record_loss(builder, flow, seen, true);
            read_ceiling(builder, flow, seen, true);
            let follows = flow.figure(rtt_follows_flight);
            if follows.is_some() {
                let metric = "correlation of RTT with data in flight";
                let bound = Bound::AtLeast(crate::thresholds::RTT_FOLLOWS);
                builder.figure(metric, follows, "ratio", bound, "sender.samples[].tcp.rtt_us");
            }
            let (rtt_us, streams) = (flow.min_rtt_us().unwrap_or(0.0), flow.streams.len());
            let bound = Bound::Below(SHALLOW_BDP);
            let metric = "queue limit over BDP ÷ √streams";
            read_hop(builder, flow, |hop| hop.limit_over_bdp(rtt_us, streams), metric, "ratio", bound);
        }
        Cause::Policer => {
            let frames = |hop: &Hop| hop.limit_bytes().map(|limit| limit / (f64::from(hop.mtu_bytes) + 14.0));
            let bound = Bound::Within(0.0, POLICER_FRAMES);
            read_hop(builder, flow, frames, "queue limit in full frames", "frames", bound);
        }
        Cause::Reordering => {
            let metric = "reordering events";
            let source = "streams[].sender.samples[].tcp.reord_seen";
            builder.value(metric, Some(seen.reordered), "events", Bound::Above(0.0), end, source);
            read_delivery(builder, flow, seen, Bound::AtLeast(DELIVERY_EVEN));
            if seen.retransmits_so_far > 0.0 {
                let share = seen.never_arrived.map(|lost| lost / seen.retransmits_so_far);
                let metric = "segments lost between the TCPs over retransmits";
                let source = "streams[].receiver.samples[].tcp.data_segs_in";
                builder.optional(metric, share, "ratio", Bound::Below(REAL_LOSS), None, source);
            }
            if seen.spurious.is_some_and(|share| share > 0.0) {
                let metric = "duplicate SACKs over retransmissions";
                let source = "streams[].sender.samples[].tcp.dsack_dups";
                builder.value(metric, seen.spurious, "ratio", Bound::AtLeast(REAL_LOSS), end, source);
            }
        }
        Cause::ReceiverHostDrops => receiver_drops::read(builder, flow, seen.retransmits.unwrap_or(0.0)),
        Cause::AckPath => {
            let bound = Bound::AtLeast(ACKS_LOST);
            let source = "streams[].sender.samples[].tcp.segs_in";
            builder.optional("ACKs lost over ACKs sent", seen.acks_lost, "ratio", bound, end, source);
            let metric = "queueing delay on the reverse path over all queueing delay";
            let source = "streams[].sender.samples[].tcp.bytes_acked";
            builder.optional(metric, seen.reverse_share, "ratio", Bound::AtLeast(REVERSE_QUEUE), end, source);
            if let Some(route) = &flow.route {
                let used = route.reverse.iter().max_by(|a, b| a.utilisation.total_cmp(&b.utilisation));
                if let Some(hop) = route.reverse_congested().or(used) {
                    let source = format!("queues, {}", hop.link.name);
                    let metric = format!("packets dropped before or on {}", hop.link.name);
                    let dropped = Some(hop.drops_so_far + hop.lost);
                    builder.value(&metric, dropped, "packets", Bound::AtLeast(hop.many_drops()), None, &source);
                    let source = format!("links[{}]", hop.link_index);
                    let metric = format!("utilisation of {}", hop.link.name);
                    builder.value(&metric, Some(hop.utilisation), "ratio", Bound::AtLeast(FULL_LINK), None, &source);
                }
            }
        }
        Cause::LocalQdisc => {
            let source = format!("host_series.{}.qdiscs", flow.sender.name());
            if flow.sender.series.is_some() {
                let bound = Bound::AtLeast((seen.retransmits.unwrap_or(0.0) * EXPLAINS).max(1.0));
                let metric = "packets dropped by the sender's queueing disciplines";
                builder.value(metric, Some(seen.qdisc_drops), "packets", bound, end, &source);
            }
            builder.unsent_share(Bound::AtLeast(WAITING_SHARE));
            builder.flight_over_cwnd(Bound::Below(CWND_MOSTLY));
            builder.flight_over_window(Bound::Below(CWND_MOSTLY));
            let source = format!("host_series.{}.qdiscs", flow.sender.name());
            let metric = "over-limit events of the shaper over packets";
            if let Some(rate) = seen.shaper.and_then(|shaper| shaper.rate) {
                let metric = "frames of the flow over the rate of the sender's shaper";
                builder.value(metric, Some(rate.used), "ratio", Bound::AtLeast(SHAPER_REACHED), end, &source);
            } else if let Some(shaper) = seen.shaper {
                builder.value(
                    metric,
                    Some(shaper.overlimits),
                    "ratio",
                    Bound::AtLeast(shaper.threshold),
                    end,
                    &source,
                );
            }
            let metric = "requeues over packets of the sender's queueing disciplines";
            builder.optional(metric, requeued(flow), "ratio", Bound::AtLeast(REQUEUED), end, &source);
            if let Some(hop) = flow.route.as_ref().and_then(|route| route.forward.first())
                && let Some((index, _)) = hop.queue
            {
                let bound = Bound::AtLeast(f64::from(u16::MAX));
                let source = format!("queues[{index}].series.backlog_bytes_max");
                builder.value(
                    "bytes waiting in the sender's qdisc",
                    Some(hop.backlog_bytes),
                    "bytes",
                    bound,
                    end,
                    &source,
                );
            }
        }
        Cause::PathMtu => {
            let fell = flow.mss_reduction().map(|[before, least, _]| least / before);
            let source = "streams[].sender.samples[].tcp.snd_mss_bytes";
            let metric = "smallest send MSS after timeouts over its largest";
            builder.optional(metric, fell, "ratio", Bound::Below(MSS_FELL), end, source);
        }
        _ => {}
    }
}

/// Ratio of requeues to packets of the sender's qdisc with most requeues; `None` without any.
fn requeued(flow: &Flow) -> Option<f64> {
    let qdiscs = flow.sender.series?.qdiscs.iter().filter(|qdisc| qdisc.requeues > 0 && qdisc.packets > 0);
    qdiscs.map(|qdisc| qdisc.requeues as f64 / qdisc.packets as f64).reduce(f64::max)
}

/// Records a reading of the hop with most drops, or else of the busiest hop.
fn read_hop(
    builder: &mut FindingBuilder,
    flow: &Flow,
    of: impl Fn(&Hop) -> Option<f64>,
    metric: &str,
    unit: &str,
    bound: Bound,
) {
    let Some(route) = &flow.route else { return };
    let dropping = match route.main_drops() {
        Some((DropPlace::Queue(hop), ..)) => route.forward.get(hop),
        _ => None,
    };
    let Some(hop) = dropping.or_else(|| route.slow_start_hop()).or_else(|| route.busiest()) else { return };
    let source = match hop.queue {
        Some((index, _)) => format!("queues[{index}]"),
        None => format!("links[{}]", hop.link_index),
    };
    builder.optional(&format!("{metric}, {}", hop.link.name), of(hop), unit, bound, None, &source);
}

/// Records whether losses occur at a ceiling (`at_ceiling`) or at random.
fn read_ceiling(builder: &mut FindingBuilder, flow: &Flow, seen: &Symptoms, at_ceiling: bool) {
    let end = Some(flow.sender.end);
    let retrans = "streams[].sender.samples[].tcp.total_retrans";
    let bound = if at_ceiling { Bound::AtLeast(LOST_IN_BURSTS) } else { Bound::Below(SINGLE_LOSSES) };
    let metric = "retransmits per interval with retransmits, relative to independent losses";
    builder.optional(metric, seen.burstiness, "ratio", bound, end, retrans);
    if at_ceiling {
        let metric = "data sent with less in flight than before losses, over all";
        let source = "streams[].sender.samples[].tcp.unacked";
        builder.optional(metric, seen.flight_rank, "ratio", Bound::AtLeast(AT_CEILING), end, source);
        let metric = "spread of the congestion window at losses (coefficient of variation)";
        let source = "streams[].sender.samples[].tcp.snd_cwnd";
        builder.optional(metric, seen.peaks_spread, "ratio", Bound::Below(PEAKS_ALIKE), end, source);
        let metric = "delivery rate before losses over the highest";
        let source = "streams[].sender.samples[].tcp.delivery_rate_bytes_per_s";
        builder.optional(metric, seen.ceiling, "ratio", Bound::AtLeast(CEILING), end, source);
    } else {
        let varies = if flow.is_model_based() { DELIVERY_VARIES_BBR } else { DELIVERY_VARIES };
        read_delivery(builder, flow, seen, Bound::AtLeast(varies));
        let seldom = (seen.lossy_share > 0.0).then_some(seen.lossy_share);
        builder.optional(
            "intervals with retransmits over all",
            seldom,
            "ratio",
            Bound::Below(LOSES_SELDOM),
            end,
            retrans,
        );
    }
}

/// Records how evenly segments are delivered.
fn read_delivery(builder: &mut FindingBuilder, flow: &Flow, seen: &Symptoms, bound: Bound) {
    let metric = "spread of delivered segments between samples (coefficient of variation)";
    let source = "streams[].sender.samples[].tcp.delivered";
    builder.optional(metric, seen.delivery_spread, "ratio", bound, Some(flow.sender.end), source);
}

fn read_never_arrived(builder: &mut FindingBuilder, seen: &Symptoms, bound: Bound) {
    let metric = "segments that the sender's TCP sent and the receiver's did not get";
    let source = "streams[].receiver.samples[].tcp.data_segs_in";
    builder.optional(metric, seen.never_arrived, "segments", bound, None, source);
}
