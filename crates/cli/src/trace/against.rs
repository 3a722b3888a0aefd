//! `--against`: compares captures of two runs.

use std::fmt::Write as _;
use std::path::Path;

use landspeed_capture::{Capture, Frames};
use landspeed_model::{BuildInfo, TRACE_COMPARISON_SCHEMA, TraceComparison, TraceDocument, TraceFigure};
use landspeed_trace::{Analysis, Cells, compare};
use landspeed_units::{BitRate, Bytes, Nanos};
use landspeed_wire::capture::Frame;

use super::{Args, analyse_one, limits, outcome, pictures};
use crate::CommandOutcome;
use crate::text::Page;

/// Compares two captures and prints the result.
pub fn main(args: &Args, other: &Path) -> anyhow::Result<CommandOutcome> {
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
    let mut figures = compare::figures(&a, &b);
    let noise = if [one.as_path(), other].contains(&Path::new("-")) {
        "none: standard input cannot be read twice".to_owned()
    } else {
        let sides = [(&a, cells(args, &a, one)?), (&b, cells(args, &b, other)?)];
        compare::add_intervals(sides, &mut figures)
    };
    let (schema, command) = (TRACE_COMPARISON_SCHEMA.to_owned(), landspeed_sys::process::command_line());
    let comparison = TraceComparison { schema, landspeed, command, a, b, figures };
    if args.prints() {
        out!("{}", summary(&comparison, &noise));
    }
    if let Some(sink) = &args.json {
        sink.write(&serde_json::to_vec_pretty(&comparison)?)?;
    }
    if let Some(sink) = &args.pictures.report {
        sink.write(landspeed_report::render_trace_comparison(&comparison)?.as_bytes())?;
    }
    Ok(outcome(&[&comparison.a, &comparison.b]))
}

/// Reads a capture again, divided into cells; `None` if its first flow is too short.
fn cells(args: &Args, document: &TraceDocument, file: &Path) -> anyhow::Result<Option<Cells>> {
    let Some(mut cells) = compare::cells(document) else { return Ok(None) };
    let mut analysis = Analysis::new(limits(args));
    let mut capture = Capture::open(file, false)?.inspected(args.inspection(false));
    while capture.drain(&mut Frames(|frame: &Frame<'_>| analysis.frame_with_row(frame, &mut cells)))? {}
    Ok(Some(cells))
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
