//! Latency output.

use std::fmt::Write as _;

use landspeed_model::{Bucket, LatencyResult, LatencyUnderLoad, Responsiveness, RunDocument};
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
    let idle = load.idle.as_ref().map(|idle| format!("idle {}; ", tail(idle))).unwrap_or_default();
    let rpm = load.responsiveness.as_ref().map(|responsiveness| match responsiveness.rpm {
        Some(rpm) => format!("; {rpm:.0} round trips/min"),
        None => "; round trips/min unknown".to_owned(),
    });
    format!("{idle}under load {}{}", tail(&load.loaded), rpm.unwrap_or_default())
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
            page.raw("", format!("{:<8}{}{}", "idle", row(idle), lost(idle)).trim_end());
        }
        page.raw("", format!("{:<8}{}{}", "loaded", row(&load.loaded), lost(&load.loaded)).trim_end());
        if let Some(responsiveness) = &load.responsiveness {
            let why = d.unknown.get("latency_under_load.responsiveness.rpm");
            let why = why.map(|why| format!(" ({why})")).unwrap_or_default();
            page.line("RPM", &format!("{}{why}", round_trips(responsiveness)));
        }
    }
}

/// Prints one row per size.
fn table(results: &[LatencyResult], page: &mut Page) {
    page.raw("latency", format!("{:>15} {:>9} {}", "bytes", "per second", header()).trim_end());
    for r in results {
        page.raw("", format!("{:>15} {:>10.0} {}{}", sizes(r), r.achieved_per_s, row(r), lost(r)).trim_end());
    }
}

/// Formats the number of unanswered requests at the end of a row.
fn lost(r: &LatencyResult) -> String {
    if r.unanswered > 0 { format!("  {} unanswered", r.unanswered) } else { String::new() }
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

/// Formats the round trips per minute of each kind of connection.
fn round_trips(r: &Responsiveness) -> String {
    let rpm = |rpm: Option<f64>| rpm.map_or_else(|| "unknown".to_owned(), |rpm| format!("{rpm:.0}"));
    format!(
        "{} round trips/min: {} on a separate connection (probes), {} on those with the load (tcpi_rtt), {} idle",
        rpm(r.rpm),
        rpm(r.foreign_rpm),
        rpm(r.loaded_rpm),
        rpm(r.idle_rpm)
    )
}

/// Formats the median and the tail of a latency, and how many probes have none.
fn tail(r: &LatencyResult) -> String {
    if r.completed == 0 {
        return "no response arrived".to_owned();
    }
    let lost = if r.unanswered > 0 { format!(", {} of {} unanswered", r.unanswered, r.sent) } else { String::new() };
    format!("p50 {}, p95 {}, p99 {}{lost}", time(r.p50_ns), time(quantile_of(&r.histogram, 0.95)), time(r.p99_ns))
}

/// Returns the quantile `p` of a histogram: the upper end of the bucket that has it; `None` if the histogram is empty.
fn quantile_of(histogram: &[Bucket], p: f64) -> Option<u64> {
    let counted: u64 = histogram.iter().map(|bucket| bucket.count).sum();
    let rank = (counted as f64 * p).ceil().max(1.0) as u64;
    let mut below = 0;
    histogram.iter().find_map(|bucket| {
        below += bucket.count;
        (below >= rank).then_some(bucket.high_ns)
    })
}

fn quantiles(r: &LatencyResult) -> String {
    if r.completed == 0 {
        return "no response arrived".to_owned();
    }
    format!("p50 {}, p99 {}, max {}", time(r.p50_ns), time(r.p99_ns), time(r.max_ns))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quantile_is_the_end_of_its_bucket() {
        let bucket = |high_ns, count| Bucket { low_ns: high_ns - 1, high_ns, count };
        let histogram = [bucket(10, 90), bucket(20, 5), bucket(30, 5)];
        let of = |p| quantile_of(&histogram, p);
        assert_eq!((of(0.5), of(0.95), of(0.96), of(1.0)), (Some(10), Some(20), Some(30), Some(30)));
        assert_eq!(quantile_of(&[], 0.5), None);
    }
}
