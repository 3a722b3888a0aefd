//! The terminal summary of a lab run.

use std::fmt::Write as _;

use landspeed_lab::cell::ONE_DRAW;
use landspeed_model::{
    KernelInfo, LabDocument, LabEpoch, LabEvent, LabFlow, LabProgram, LabProgramEnd, LabQueue, QueueRole, Verdict,
    Warning,
};
use landspeed_units::{BitRate, Bytes, Nanos, Ratio};

use super::figures;
use crate::qualify;
use crate::text::{Page, confidence, epochs};

/// Maximum number of table rows printed; the document has all.
const MAX_ROWS: usize = 60;
/// Maximum number of lines of a program's errors printed.
const MAX_ERROR_LINES: usize = 5;

/// Returns the summary of one run.
pub fn run(document: &LabDocument) -> String {
    let mut page = Page::default();
    let mut head = format!("{}, {}, seed {}", document.scenario.name, kernel_name(&document.kernel), document.seed);
    for (key, value) in &document.scenario.cell {
        let _ = write!(head, ", {key} = {}", plain(value));
    }
    page.line("lab", &head);
    for event in document.events.iter().take(MAX_ROWS) {
        page.line("event", &event_line(event));
    }
    if let Some(more) = document.events.len().checked_sub(MAX_ROWS).filter(|more| *more > 0) {
        page.line("", &format!("{more} more events in the document"));
    }
    for flow in &document.flows {
        page.line("flow", &flow_line(flow));
        if let Some(section) = &flow.qualify {
            page.text.push_str(&qualify::text::summary(section));
        }
        if let Some(run) = &flow.run {
            verdict(&run.verdict, &mut page);
            if let Some(reverse) = &run.reverse_verdict {
                verdict(reverse, &mut page);
            }
        }
        for epoch in flow.epochs.iter().take(MAX_ROWS) {
            page.line("part", &epoch_line(epoch));
        }
    }
    for program in &document.programs {
        page.line("program", &program_line(program));
        let errors: Vec<&str> = program.stderr.text.lines().filter(|line| !line.trim().is_empty()).collect();
        for line in errors.iter().rev().take(if program.expected { 0 } else { MAX_ERROR_LINES }).rev() {
            page.line("", &printable(line));
        }
    }
    if let Some(reference) = &document.scenario.reference {
        page.line("reported", &format!("{} ({})", reference.reported, reference.source));
        if let Some(why) = &reference.why_different {
            page.line("", why);
        }
    }
    figures::print(&mut page, &document.reference_figures);
    figures::print_criteria(&mut page, &document.criteria);
    let queues: Vec<&LabQueue> =
        document.queues.iter().filter(|q| q.role == QueueRole::Switch && (q.peak_bytes > 0 || q.drops > 0)).collect();
    let mut rows = vec![["QUEUE", "KIND", "LIMIT", "PEAK", "MEAN", "DELAY p99", "DROPS", "MARKS"].map(str::to_owned)];
    rows.extend(queues.iter().take(MAX_ROWS).map(|queue| queue_row(queue)));
    page.text.push_str(&table(&rows));
    for host in document.host_drops.iter().filter(|host| host.dropped > 0 || host.ring.is_none()) {
        let place = match host.ring.filter(|ring| *ring > 0) {
            Some(ring) if ring == host.dropped => "by its full receive ring".to_owned(),
            Some(ring) => format!("by the receiver host, {ring} of them by its full receive ring"),
            None => "by the receiver host".to_owned(),
        };
        page.line("drops", &format!("{}: {} frames dropped {place}", host.host, host.dropped));
    }
    for link in document.links.iter().filter(|link| link.lost > 0) {
        page.line("losses", &format!("{}: {} of {} frames lost", link.name, link.lost, link.lost + link.packets));
    }
    let failed: Vec<_> = document.checks.iter().filter(|check| !check.passed).collect();
    if failed.is_empty() {
        let count = document.checks.len();
        page.line("checks", &format!("all {count} passed, every drop accounted for"));
    }
    for check in failed {
        page.line("INVALID", &format!("{}: {}", check.name, check.detail));
    }
    for capture in &document.captures {
        page.line("capture", &format!("{}: {} packets in {}", capture.name, capture.packets, capture.file));
    }
    if let Some(digest) = &document.digest {
        page.line("digest", digest);
    }
    let memory =
        document.memory_peak_bytes.map(|peak| format!(", peak memory {}", Bytes::new(peak))).unwrap_or_default();
    page.line(
        "took",
        &format!("{:.2} s of virtual time in {:.1} s of real time{memory}", document.virtual_s, document.wall_s),
    );
    measured_warnings(&mut page, &document.warnings);
    page.line("note", document.prediction());
    page.text
}

/// Names a kernel by release and build id, which are needed to reproduce a result.
fn kernel_name(kernel: &KernelInfo) -> String {
    format!("Linux {} (build {})", kernel.release, kernel.build_id)
}

/// Prints the warnings about the run. Those about the scenario were printed before it started.
fn measured_warnings(page: &mut Page, warnings: &[Warning]) {
    const CODES: [&str; 4] = [ONE_DRAW, "port-rate", "kernel-rounds-rates", "stream-unfinished"];
    for warning in warnings.iter().filter(|warning| CODES.contains(&warning.code.as_str())) {
        page.line("note", &warning.message);
    }
}

fn flow_line(flow: &LabFlow) -> String {
    let mut text = format!("{} ({} to {})", flow.name, flow.from, flow.to);
    let Some(run) = &flow.run else { return text };
    if let Some(bps) = flow.goodput_bps {
        let _ = write!(text, ": goodput {}", BitRate::from_bps(bps as u64));
    }
    if let Some(retransmits) = flow.retransmits {
        let _ = write!(text, ", {retransmits} retransmits");
    }
    if let Some(loss) = run.summary.loss_ratio {
        let _ = write!(text, ", {} lost", percent(loss));
    }
    if let (Some(p50), Some(p99)) = (run.summary.latency_p50_ns, run.summary.latency_p99_ns) {
        let _ = write!(text, ", latency p50 {}, p99 {}", Nanos::new(p50), Nanos::new(p99));
    }
    text
}

fn event_line(event: &LabEvent) -> String {
    let at = Nanos::new(event.applied_ns.unwrap_or(event.at_ns));
    let value = if event.value.is_empty() { String::new() } else { format!(" {}", event.value) };
    let fails = match (&event.error, event.applied_ns) {
        (Some(why), _) => format!(": not changed: {why}"),
        (None, None) => ": not changed: the run ended before".to_owned(),
        (None, Some(_)) => String::new(),
    };
    printable(&format!("{at}: {} {}{value}{fails}", event.object, event.key))
}

fn epoch_line(epoch: &LabEpoch) -> String {
    let (from, to) = (Nanos::new(epoch.span_ns.0), Nanos::new(epoch.span_ns.1));
    let certainty = epoch.confidence.map_or("no verdict", confidence);
    let cause = epoch.cause.map_or("unknown", |cause| cause.phrase());
    format!("{from} to {to}: {cause}, {certainty}. {}", epoch.summary)
}

fn program_line(program: &LabProgram) -> String {
    let how = match (program.end, program.exit_status, program.signal) {
        (LabProgramEnd::NotStarted, ..) => return format!("{} ({}): not started", program.name, program.host),
        (LabProgramEnd::TimeLimit, ..) => "ended at its time limit".to_owned(),
        (LabProgramEnd::OutputLimit, ..) => "ended at its output limit".to_owned(),
        (LabProgramEnd::Stopped, Some(status), _) => format!("stopped, exit status {status}"),
        (LabProgramEnd::Stopped, ..) => "stopped".to_owned(),
        (LabProgramEnd::Exited, Some(status), _) => format!("exit status {status}"),
        (LabProgramEnd::Exited, None, Some(signal)) => format!("ended by signal {signal}"),
        (LabProgramEnd::Exited, None, None) => "ended".to_owned(),
    };
    let time = Nanos::new(program.end_ns.saturating_sub(program.start_ns));
    format!("{} ({}): {how} after {time}", program.name, program.host)
}

/// Returns a line without control characters.
fn printable(line: &str) -> String {
    line.chars().filter(|c| !c.is_control()).collect()
}

/// Formats a share as a percentage with three significant digits.
fn percent(share: f64) -> String {
    Ratio::new(share).map_or_else(|| "-".to_owned(), |ratio| ratio.to_string())
}

fn verdict(verdict: &Verdict, page: &mut Page) {
    let cause = verdict.cause.phrase().to_uppercase();
    page.line("cause", &format!("{cause}, {}. {}", confidence(verdict.confidence), verdict.summary));
    if let Some(shares) = epochs(verdict) {
        page.line("time", &shares);
    }
    page.line("next", &verdict.next_step);
}

fn queue_row(queue: &LabQueue) -> [String; 8] {
    let limit = match (queue.limit_bytes, queue.limit_packets) {
        (Some(bytes), _) => Bytes::new(bytes).to_string(),
        (None, Some(packets)) => format!("{packets} packets"),
        (None, None) => "-".to_owned(),
    };
    [
        queue.name.clone(),
        queue.kind.clone(),
        limit,
        Bytes::new(queue.peak_bytes).to_string(),
        Bytes::new(queue.mean_bytes as u64).to_string(),
        Nanos::new(queue.sojourn_ns_p99).to_string(),
        queue.drops.to_string(),
        queue.marks.to_string(),
    ]
}

fn plain(value: &serde_json::Value) -> String {
    match value {
        serde_json::Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// Aligns rows in columns: the first left-aligned, the others right-aligned.
pub fn table<R: AsRef<[String]>>(rows: &[R]) -> String {
    if rows.len() < 2 {
        return String::new();
    }
    let columns = rows[0].as_ref().len();
    let width = |column: usize| rows.iter().filter_map(|r| r.as_ref().get(column)).map(|c| c.chars().count()).max();
    let widths: Vec<usize> = (0..columns).map(|column| width(column).unwrap_or(0)).collect();
    let mut text = String::new();
    for row in rows {
        let mut line = String::from("  ");
        for (at, (cell, width)) in row.as_ref().iter().zip(&widths).enumerate() {
            let cell: String = cell.chars().filter(|c| !c.is_control()).collect();
            let _ = if at == 0 { write!(line, "{cell:width$}") } else { write!(line, "  {cell:>width$}") };
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}
