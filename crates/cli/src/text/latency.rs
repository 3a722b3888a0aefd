//! Latency figures.

use std::fmt::Write as _;

use landspeed_model::{LatencyResult, RrMode, RunDocument};

use super::{Page, milliseconds};

/// Writes request/response results and latency under load.
pub fn write(d: &RunDocument, out: &mut Page) {
    match d.latency.as_slice() {
        [] => {}
        [one] => {
            let sizes = format!("{}/{} bytes", one.request_bytes, one.response_bytes);
            out.line("rate", &format!("{}, {sizes}, {}", rate(one), mode(one.mode)));
            out.line("latency", &quantiles(one));
        }
        several => table(several, out),
    }
    if let Some(load) = &d.latency_under_load {
        let header = format!("{:<10}{}", "", header());
        out.raw("latency", header.trim_end());
        if let Some(idle) = &load.idle {
            out.raw("", format!("{:<10}{}", "idle", row(idle)).trim_end());
        }
        out.raw("", format!("{:<10}{}", "loaded", row(&load.loaded)).trim_end());
    }
}

/// One row for each size.
fn table(results: &[LatencyResult], out: &mut Page) {
    out.line("load", mode(results[0].mode));
    out.raw("latency", format!("{:>15} {:>11} {}", "bytes", "per second", header()).trim_end());
    for r in results {
        let sizes = format!("{}/{}", r.request_bytes, r.response_bytes);
        let lost = if r.unanswered > 0 { format!("  {} unanswered", r.unanswered) } else { String::new() };
        out.raw("", format!("{sizes:>15} {:>11.0} {}{lost}", r.achieved_per_s, row(r)).trim_end());
    }
}

fn mode(mode: RrMode) -> &'static str {
    match mode {
        RrMode::ClosedLoop => "closed loop",
        RrMode::OpenLoop => "open loop, latency from the intended time",
        RrMode::Connect => "a connection for each transaction",
    }
}

fn rate(r: &LatencyResult) -> String {
    let answered = if r.unanswered == 0 && r.completed == r.scheduled {
        format!("all {} answered", r.completed)
    } else {
        format!("{} of {} answered", r.completed, r.scheduled)
    };
    format!("{:.0} transactions/s, {answered}", r.achieved_per_s)
}

fn header() -> String {
    format!("{:>10}{:>10}{:>10}{:>10}{:>10}{:>10}", "p50", "p90", "p99", "p99.9", "p99.99", "max")
}

fn row(r: &LatencyResult) -> String {
    if r.completed == 0 {
        return "no response arrived".to_owned();
    }
    [r.p50_ns, r.p90_ns, r.p99_ns, r.p999_ns, r.p9999_ns, r.max_ns].iter().fold(String::new(), |mut row, &ns| {
        let _ = write!(row, "{:>10}", milliseconds(ns as f64));
        row
    })
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
