//! `--against`: two captures of different runs, side by side.

use std::fmt::Write as _;
use std::path::Path;

use landspeed_model::{
    BuildInfo, TRACE_COMPARISON_SCHEMA, TraceComparison, TraceDocument, TraceFigure, TraceFlow, TraceStation,
};
use landspeed_units::{BitRate, Bytes, Nanos};

use super::{Args, analyse_one, noise, pictures};
use crate::Outcome;
use crate::output::Sink;
use crate::text::Page;

/// Compares two captures.
pub fn main(args: &Args, other: &Path) -> anyhow::Result<Outcome> {
    let [one] = args.files.as_slice() else {
        anyhow::bail!(
            "cannot compare {} captures with --against: it takes exactly one\nName one capture besides {}.",
            args.files.len(),
            other.display()
        );
    };
    let (a, b) = (analyse_one(args, one)?, analyse_one(args, other)?);
    if let Some(directory) = &args.pictures.xplot {
        pictures::xplot(args, &a, one, &directory.join("a"))?;
        pictures::xplot(args, &b, other, &directory.join("b"))?;
    }
    let landspeed = BuildInfo { version: env!("CARGO_PKG_VERSION").to_owned(), server_version: None };
    let mut figures = figures(&a, &b);
    let noise = noise::add(args, [(&a, one), (&b, other)], &mut figures)?;
    let (schema, command) = (TRACE_COMPARISON_SCHEMA.to_owned(), std::env::args().collect());
    let comparison = TraceComparison { schema, landspeed, command, a, b, figures };
    if args.json != Some(Sink::Stdout) {
        print!("{}", summary(&comparison, &noise));
    }
    if let Some(sink) = &args.json {
        sink.write(&serde_json::to_vec_pretty(&comparison)?)?;
    }
    if let Some(sink) = &args.pictures.report {
        sink.write(landspeed_report::render_trace_comparison(&comparison)?.as_bytes())?;
    }
    let complete = [&comparison.a, &comparison.b].iter().all(|document| document.capture.ended_early.is_none());
    Ok(if complete { Outcome::Clean } else { Outcome::Findings })
}

/// Returns the station that sent the most bytes, and the one that sent the most pure ACKs.
fn stations(document: &TraceDocument) -> [Option<&TraceStation>; 2] {
    let busiest = document.stations.iter().max_by_key(|station| station.wire_bytes);
    let acks = |station: &&TraceStation| station.ack_spacing.as_ref().map_or(0, |spacing| spacing.acks);
    [busiest, document.stations.iter().max_by_key(acks).filter(|station| acks(station) > 0)]
}

/// Returns the figures of both captures: of each one's largest flow and busiest stations.
fn figures(a: &TraceDocument, b: &TraceDocument) -> Vec<TraceFigure> {
    let mut figures = Vec::new();
    let mut add = |name: &str, unit: &str, of: &dyn Fn(&TraceDocument) -> Option<f64>| {
        let (a, b) = (of(a), of(b));
        if a.is_some() || b.is_some() {
            figures.push(TraceFigure { name: name.to_owned(), unit: unit.to_owned(), a, b, difference: None });
        }
    };
    let of_flow = |of: fn(&TraceFlow) -> Option<f64>| move |d: &TraceDocument| d.flows.first().and_then(of);
    let of_sender = |of: fn(&TraceStation) -> Option<f64>| move |d: &TraceDocument| stations(d)[0].and_then(of);
    add("capture duration", "ns", &|d| Some(d.capture.duration_ns as f64));
    add("frames", "count", &|d| Some(d.capture.frames as f64));
    add("goodput", "bps", &of_flow(|f| f.goodput_bps));
    add("retransmits", "count", &of_flow(|f| Some(f.retransmits as f64)));
    add(
        "retransmits per packet",
        "ratio",
        &of_flow(|f| (f.forward.packets > 0).then(|| f.retransmits as f64 / f.forward.packets as f64)),
    );
    add("RTO retransmits", "count", &of_flow(|f| Some(f.forward.retransmits.timeout as f64)));
    add("spurious retransmits (DSACK)", "count", &of_flow(|f| Some(f.forward.retransmits.spurious as f64)));
    add("reordered packets", "count", &of_flow(|f| Some(f.forward.out_of_order as f64)));
    add("duplicate ACKs", "count", &of_flow(|f| Some(f.reverse.duplicate_acks as f64)));
    add(noise::MIN_RTT, "ns", &of_flow(|f| f.forward.rtt.as_ref().map(|rtt| rtt.min_ns as f64)));
    add("RTT, median", "ns", &of_flow(|f| f.rtt_ns.map(|ns| ns as f64)));
    add("RTT, p99", "ns", &of_flow(|f| f.forward.rtt.as_ref().and_then(|rtt| rtt.p99_ns).map(|ns| ns as f64)));
    add("in flight, max", "bytes", &of_flow(|f| Some(f.forward.in_flight_max_bytes as f64)));
    add("receive window, max", "bytes", &of_flow(|f| f.reverse.window_max_bytes.map(|bytes| bytes as f64)));
    add("data packets per ACK", "ratio", &of_flow(|f| f.forward.packets_per_ack));
    add("wire rate, mean", "bps", &of_sender(|s| Some(s.per_1ms.mean_bps)));
    add("wire rate, max 1 ms bin", "bps", &of_sender(|s| Some(s.per_1ms.max_bps)));
    add("wire rate, max 10 ms bin", "bps", &of_sender(|s| Some(s.per_10ms.max_bps)));
    add("gap before the largest frames, median", "ns", &of_sender(|s| s.gaps.last().map(|gap| gap.p50_ns as f64)));
    add("gap before the largest frames, p99", "ns", &of_sender(|s| s.gaps.last().map(|gap| gap.p99_ns as f64)));
    add("frames per packet train, p99", "count", &of_sender(|s| Some(s.trains.p99_frames as f64)));
    add("frames per packet train, max", "count", &of_sender(|s| Some(s.trains.longest_frames as f64)));
    add("ACKs within 1 µs of the previous ACK", "ratio", &|d| {
        stations(d)[1].and_then(|s| s.ack_spacing.as_ref()).map(|spacing| spacing.bunched)
    });
    add("most common gap between ACKs", "ns", &|d| {
        stations(d)[1].and_then(|s| s.ack_spacing.as_ref()).and_then(|s| s.usual_gap_ns).map(|ns| ns as f64)
    });
    figures
}

fn summary(comparison: &TraceComparison, noise: &str) -> String {
    let mut page = Page::default();
    for (name, document) in [("A", &comparison.a), ("B", &comparison.b)] {
        let capture = &document.capture;
        let mut words = format!("{}: {} frames", capture.file, capture.frames);
        if let Some(flow) = document.flows.first() {
            let (from, to) = (&flow.source, &flow.destination);
            let _ = write!(words, "; {}:{} -> {}:{}", from.address, from.port, to.address, to.port);
        }
        page.line(name, &words);
    }
    let width = comparison.figures.iter().map(|figure| figure.name.chars().count()).max().unwrap_or(0);
    let _ = writeln!(page.text, "\n  {:width$}  {:>12}  {:>12}  {:>8}  95 % interval of B - A", "", "A", "B", "B/A");
    for TraceFigure { name, unit, a, b, difference } in &comparison.figures {
        let shown = |value: &Option<f64>| value.map_or_else(|| "-".to_owned(), |value| figure(value, unit));
        let ratio = a.zip(*b).filter(|(a, _)| *a > 0.0).map(|(a, b)| format!("{:.3}", b / a));
        let interval = difference.as_ref().map(|difference| {
            let end = |value: f64| format!("{}{}", if value < 0.0 { "-" } else { "+" }, figure(value.abs(), unit));
            let result = if difference.changed { "changed" } else { "not significant" };
            format!("{} to {}: {result}", end(difference.low), end(difference.high))
        });
        let (ratio, interval) = (ratio.unwrap_or_default(), interval.unwrap_or_default());
        let line = format!("  {name:width$}  {:>12}  {:>12}  {ratio:>8}  {interval}", shown(a), shown(b));
        let _ = writeln!(page.text, "{}", line.trim_end());
    }
    page.line("interval", noise);
    for (name, document) in [("A", &comparison.a), ("B", &comparison.b)] {
        for warning in &document.warnings {
            page.line("note", &format!("{name}: {}", warning.message));
        }
    }
    page.text
}

fn figure(value: f64, unit: &str) -> String {
    let whole = value.max(0.0).round() as u64;
    match unit {
        "bps" => BitRate::from_bps(whole).to_string(),
        "ns" => Nanos::new(whole).to_string(),
        "bytes" => Bytes::new(whole).to_string(),
        "ratio" if value < 0.1 => format!("{value:.5}"),
        "ratio" => format!("{value:.3}"),
        _ => whole.to_string(),
    }
}
