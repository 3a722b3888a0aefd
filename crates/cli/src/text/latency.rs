//! Latency output.

use std::fmt::Write as _;

use landspeed_model::{LatencyResult, LatencyUnderLoad, RunDocument};
use landspeed_units::Nanos;

use super::{Page, mode};

/// Formats transaction rates: `21400 transactions/s`; for several sizes, the first and the last.
pub fn rates(results: &[LatencyResult]) -> String {
    let one = |r: &LatencyResult| format!("{:.0} transactions/s", r.achieved_per_s);
    match results {
        [] => "no transactions".to_owned(),
        [only] => one(only),
        [first, .., last] => {
            format!("{} with {} bytes to {} with {} bytes", one(first), sizes(first), one(last), sizes(last))
        }
    }
}

/// Formats quantiles; for several sizes, the medians of the first and the last.
pub fn short_summary(results: &[LatencyResult]) -> String {
    let unanswered: u64 = results.iter().map(|r| r.unanswered).sum();
    let mut line = match results {
        [] => return "no response arrived".to_owned(),
        [only] => format!("{}, request/response {} bytes", quantiles(only), sizes(only)),
        [first, .., last] => format!(
            "p50 {} with {} bytes to {} with {} bytes; -v lists all {} sizes",
            time(first.p50_ns),
            sizes(first),
            time(last.p50_ns),
            sizes(last),
            results.len()
        ),
    };
    if unanswered > 0 {
        let _ = write!(line, "; {unanswered} unanswered");
    }
    line
}

/// Formats idle latency and latency under load.
pub fn under_load(load: &LatencyUnderLoad) -> String {
    let idle = load.idle.as_ref().map(|idle| format!("idle {}; ", quantiles(idle))).unwrap_or_default();
    format!("{idle}under load {}", quantiles(&load.loaded))
}

/// Prints all sizes and quantiles.
pub fn details(d: &RunDocument, page: &mut Page) {
    if let Some(first) = d.latency.first() {
        page.line("load", mode(first.mode));
        table(&d.latency, page);
    }
    if let Some(load) = &d.latency_under_load {
        page.raw("latency", format!("{:<8}{}", "", header()).trim_end());
        if let Some(idle) = &load.idle {
            page.raw("", format!("{:<8}{}", "idle", row(idle)).trim_end());
        }
        page.raw("", format!("{:<8}{}", "loaded", row(&load.loaded)).trim_end());
    }
}

/// Prints one row per size.
fn table(results: &[LatencyResult], page: &mut Page) {
    page.raw("latency", format!("{:>15} {:>9} {}", "bytes", "per second", header()).trim_end());
    for r in results {
        let lost = if r.unanswered > 0 { format!("  {} unanswered", r.unanswered) } else { String::new() };
        page.raw("", format!("{:>15} {:>10.0} {}{lost}", sizes(r), r.achieved_per_s, row(r)).trim_end());
    }
}

fn sizes(r: &LatencyResult) -> String {
    format!("{}/{}", r.request_bytes, r.response_bytes)
}

fn time(ns: Option<u64>) -> String {
    ns.map_or_else(|| "unknown".to_owned(), |ns| Nanos::new(ns).to_string())
}

fn header() -> String {
    ["p50", "p90", "p99", "p99.9", "p99.99", "max"].iter().fold(String::new(), |mut row, name| {
        let _ = write!(row, "{name:>9}");
        row
    })
}

fn row(r: &LatencyResult) -> String {
    if r.completed == 0 {
        return "no response arrived".to_owned();
    }
    [r.p50_ns, r.p90_ns, r.p99_ns, r.p999_ns, r.p9999_ns, r.max_ns].iter().fold(String::new(), |mut row, &ns| {
        let _ = write!(row, "{:>9}", time(ns));
        row
    })
}

fn quantiles(r: &LatencyResult) -> String {
    if r.completed == 0 {
        return "no response arrived".to_owned();
    }
    format!("p50 {}, p99 {}, max {}", time(r.p50_ns), time(r.p99_ns), time(r.max_ns))
}
