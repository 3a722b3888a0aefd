//! Cause: a requested pacing rate was reached.

use landspeed_model::{Cause, PaceScope};

use crate::finding::{Bound, Finding, FindingBuilder, Strength};
use crate::flow::Flow;
use crate::text;
use crate::thresholds::{RATE_EXCEEDED, RATE_REACHED};

/// Compares the frame rate with `SO_MAX_PACING_RATE`, which counts headers (net/core/sock.c, sch_fq.c).
pub(crate) fn evaluate(flow: &Flow) -> Finding {
    let Some((limit_bps, from_kernel)) = limit(flow).filter(|_| !flow.is_rr()) else {
        return Finding::not_applicable(Cause::Pacing);
    };
    let mut builder = FindingBuilder::new(flow, Cause::Pacing);
    let frames = flow.frame_bps().unwrap_or(flow.goodput_bps);
    let source =
        if from_kernel { "streams[].sender.samples[].tcp.max_pacing_rate_bytes_per_s" } else { "effective.pace_bps" };
    let reached = frames / limit_bps;
    let end = Some(flow.sender.end);
    let met = builder.value(
        "frame rate over pacing rate",
        Some(reached),
        "ratio",
        Bound::Within(RATE_REACHED, RATE_EXCEEDED),
        end,
        source,
    );
    if met != Some(true) {
        return builder.refuted();
    }
    let why =
        format!("the sender was paced to {} and reached {} of it", text::rate(limit_bps), text::percent(reached));
    let next_step = if flow.parameters.pace_bps.is_some() {
        "Raise --pace, or drop it to measure what the path carries; keep it if it protects a shallow buffer."
    } else {
        "Something other than landspeed set SO_MAX_PACING_RATE (a BPF program or a wrapper): find and raise it."
    };
    let mut finding = builder.holds(Strength::Strong, why, next_step.to_owned());
    finding.direct = true;
    finding.place = Some(format!("{}, SO_MAX_PACING_RATE", flow.sender.name()));
    finding
}

/// The pacing limit over all streams, bits/s, and whether the kernel reported it.
fn limit(flow: &Flow) -> Option<(f64, bool)> {
    let streams = flow.streams.len() as f64;
    let sampled = flow.figure(|stream| {
        stream.tcp().rev().find_map(|tcp| tcp.max_pacing_rate_bytes_per_s).map(|rate| rate as f64 * 8.0)
    });
    if let Some(figure) = sampled.filter(|figure| figure.value > 0.0) {
        return Some((figure.value * streams, true));
    }
    let asked = flow.parameters.pace_bps.filter(|&rate| rate > 0)? as f64;
    let total = match flow.parameters.pace_scope {
        PaceScope::Stream => asked * streams,
        PaceScope::Total => asked,
    };
    (total > 0.0).then_some((total, false))
}
