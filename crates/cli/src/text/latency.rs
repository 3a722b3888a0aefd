//! Latency figures.

use landspeed_model::{LatencyResult, RrMode, RunDocument};

use super::{Page, milliseconds};

/// Writes request/response results and latency under load.
pub fn write(d: &RunDocument, out: &mut Page) {
    for result in &d.latency {
        let mode = match result.mode {
            RrMode::ClosedLoop => "closed loop",
            RrMode::OpenLoop => "open loop, from the intended time",
            RrMode::Connect => "connect, request, response",
        };
        out.line(
            "rate",
            &format!(
                "{:.0} transactions/s, {}/{} bytes, {mode}; {} of {} answered",
                result.achieved_per_s, result.request_bytes, result.response_bytes, result.completed, result.sent
            ),
        );
        out.line("round trip", &quantiles(result));
    }
    if let Some(load) = &d.latency_under_load {
        if let Some(idle) = &load.idle {
            out.line("idle", &quantiles(idle));
        }
        out.line("loaded", &quantiles(&load.loaded));
    }
}

fn quantiles(r: &LatencyResult) -> String {
    if r.completed == 0 {
        return "no response arrived".to_owned();
    }
    let t = |ns: u64| milliseconds(ns as f64);
    format!(
        "p50 {}, p90 {}, p99 {}, p99.9 {}, p99.99 {}, max {}",
        t(r.p50_ns),
        t(r.p90_ns),
        t(r.p99_ns),
        t(r.p999_ns),
        t(r.p9999_ns),
        t(r.max_ns)
    )
}
