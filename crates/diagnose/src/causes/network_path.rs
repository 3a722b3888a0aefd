//! The congestion window fills the path without loss: the path is full, or the window is still growing.

use landspeed_model::Cause;

use crate::finding::{Bound, Finding, Scales, Strength};
use crate::flow::Flow;
use crate::network::{Queue, Symptoms, symptoms, weigh, weigh_loss, weigh_rtt};
use crate::text;
use crate::thresholds::{MODEL_LOSS, RAMP_RATIO};

/// Congestion control holds data back although nothing is lost.
pub(crate) fn evaluate(flow: &Flow) -> Finding {
    if flow.is_rr() || flow.udp.is_some() || !flow.has_network() {
        return Finding::not_applicable(Cause::NetworkPath);
    }
    let mut scales = Scales::new(flow, Cause::NetworkPath);
    let seen = symptoms(flow);
    weigh(&mut scales, flow);
    weigh_loss(&mut scales, flow, &seen, false);
    weigh_rtt(&mut scales, flow, &seen, true);
    let growth = flow.window_growth();
    let end = Some(flow.sender.end);
    let source = "streams[].sender.samples[].tcp.snd_cwnd";
    let metric = "congestion window, last quarter over first";
    let growing = scales.value(metric, growth, "ratio", Bound::AtLeast(RAMP_RATIO), end, source) == Some(true);
    let resent = seen.resent.unwrap_or(0.0);
    let shrugs =
        flow.is_model_based() && seen.loss.is_some_and(|loss| loss < MODEL_LOSS) && seen.queue != Queue::Standing;
    if seen.limited.is_none() || seen.marked > 0.0 || (resent > 0.0 && !shrugs) {
        return scales.refuted();
    }
    let rtt = Symptoms::rtt_words(flow);
    let pace = text::rate(flow.goodput_bps * 0.95 / flow.streams.len().max(1) as f64);
    let (strength, why, next) = match seen.queue {
        // Growing into a standing queue is a full path, not a ramp: the rate no longer follows the window.
        Queue::Standing => (
            Strength::Strong,
            format!("the path is full and holds a standing queue, without loss: {rtt}"),
            format!(
                "This is the path's rate. The queue costs latency: --pace {pace} or fq_codel or CAKE at the slow link \
                 takes it away."
            ),
        ),
        _ if growing && !flow.is_model_based() => (
            Strength::Strong,
            format!(
                "the congestion window was still growing (last quarter {} of the first), nothing lost",
                text::percent(growth.unwrap_or(1.0))
            ),
            "Run longer and leave the start out (--time 60 --omit 20); if it matters for short transfers, use more \
             streams (-P) or --congestion bbr."
                .to_owned(),
        ),
        _ if flow.is_model_based() => (
            Strength::Moderate,
            format!(
                "{} paces to the rate it found the path to carry; {rtt}",
                flow.congestion().unwrap_or_else(|| "the congestion control".to_owned())
            ),
            "This is the path's rate as the congestion control sees it. A UDP run at this rate shows whether the path \
             carries more."
                .to_owned(),
        ),
        Queue::Unseen | Queue::None | Queue::Shallow | Queue::Some => (
            Strength::Moderate,
            format!("the congestion window was full and did not grow, without loss; {rtt}"),
            "Look for a shaper or a congestion window clamp on the path; a UDP run shows what rate it carries."
                .to_owned(),
        ),
    };
    scales.holds(strength, why, next)
}
