//! The terminal summary of a lab run, and of a set of cells.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use landspeed_lab::cell::ONE_DRAW;
use landspeed_model::{
    CellFlow, KernelInfo, LabCell, LabDocument, LabFlow, LabQueue, LabSetDocument, LabStatus, QueueRole, Verdict,
    Warning,
};
use landspeed_units::{BitRate, Bytes, Nanos, Ratio};

use super::figures;
use crate::text::{Page, confidence, epochs};

/// Maximum number of table rows printed; the document has all.
const MAX_ROWS: usize = 60;

/// Returns the summary of one run.
pub fn run(document: &LabDocument) -> String {
    let mut page = Page::default();
    let mut head = format!("{}, {}, seed {}", document.scenario.name, kernel_name(&document.kernel), document.seed);
    for (key, value) in &document.scenario.cell {
        let _ = write!(head, ", {key} = {}", plain(value));
    }
    page.line("lab", &head);
    for flow in &document.flows {
        page.line("flow", &flow_line(flow));
        if let Some(run) = &flow.run {
            verdict(&run.verdict, &mut page);
            if let Some(reverse) = &run.reverse_verdict {
                verdict(reverse, &mut page);
            }
        }
    }
    if let Some(reference) = &document.scenario.reference {
        page.line("reported", &format!("{} ({})", reference.reported, reference.source));
        if let Some(why) = &reference.why_different {
            page.line("", why);
        }
    }
    figures::print(&mut page, &document.reference_figures);
    let queues: Vec<&LabQueue> =
        document.queues.iter().filter(|q| q.role == QueueRole::Switch && (q.peak_bytes > 0 || q.drops > 0)).collect();
    let mut rows = vec![["QUEUE", "KIND", "LIMIT", "PEAK", "MEAN", "DELAY p99", "DROPS", "MARKS"].map(str::to_owned)];
    rows.extend(queues.iter().take(MAX_ROWS).map(|queue| queue_row(queue)));
    page.text.push_str(&table(&rows));
    for host in &document.host_drops {
        page.line("drops", &format!("{}: {} frames dropped by the receiver host", host.host, host.dropped));
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
    page.line("note", "a network-limited prediction: the lab's hosts have infinite CPU and no NIC");
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

/// Formats a share as a percentage with three significant digits.
fn percent(share: f64) -> String {
    Ratio::new(share).map_or_else(|| "-".to_owned(), |ratio| ratio.to_string())
}

fn verdict(verdict: &Verdict, page: &mut Page) {
    let cause = verdict.cause.phrase().to_uppercase();
    page.line("verdict", &format!("{cause}, {}. {}", confidence(verdict.confidence), verdict.summary));
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

/// Returns the summary of a set of cells; cells that differ only in the seed share a row.
pub fn set(document: &LabSetDocument) -> String {
    let mut page = Page::default();
    page.line("lab", &format!("{}, {} cells", document.name, document.cells.len()));
    if let Some(reference) = &document.reference {
        page.line("reported", &format!("{} ({})", reference.reported, reference.source));
        if let Some(why) = &reference.why_different {
            page.line("", why);
        }
    }
    let mut groups: Vec<(Vec<String>, Vec<&LabCell>)> = Vec::new();
    for cell in &document.cells {
        let key = values(cell, &document.varied);
        match groups.iter_mut().find(|(known, _)| *known == key) {
            Some((_, cells)) => cells.push(cell),
            None => groups.push((key, vec![cell])),
        }
    }
    let flows: Vec<&str> =
        document.cells.iter().flat_map(|c| &c.flows).map(|f| f.name.as_str()).fold(Vec::new(), |mut names, name| {
            if !names.contains(&name) {
                names.push(name);
            }
            names
        });
    let mut head: Vec<String> = document.varied.clone();
    head.push("RUNS".to_owned());
    for flow in &flows {
        let mut same_flow = document.cells.iter().flat_map(|c| &c.flows).filter(|f| f.name == *flow);
        let lost = if same_flow.any(|f| f.retransmits.is_some()) { "RETRANS" } else { "LOSS" };
        head.extend([(*flow).to_owned(), lost.to_owned()]);
    }
    head.push("DROPS".to_owned());
    let mut rows = vec![head];
    for (key, cells) in groups.iter().take(MAX_ROWS) {
        let mut row = key.clone();
        row.push(cells.len().to_string());
        for flow in &flows {
            let of = |cell: &&LabCell| -> Option<CellFlow> { cell.flows.iter().find(|f| f.name == *flow).cloned() };
            let found: Vec<CellFlow> = cells.iter().filter_map(of).collect();
            let latency = || found.iter().filter_map(|f| f.latency_p50_ns).map(|ns| ns as f64);
            row.push(if latency().next().is_some() {
                spread(latency(), |ns| Nanos::new(ns as u64).to_string())
            } else {
                spread(found.iter().filter_map(|f| f.goodput_bps), rate)
            });
            let retransmits = || found.iter().filter_map(|f| f.retransmits).map(|n| n as f64);
            row.push(if retransmits().next().is_some() {
                spread(retransmits(), |x| format!("{x:.0}"))
            } else {
                spread(found.iter().filter_map(|f| f.loss_ratio), percent)
            });
        }
        let drops = cells.iter().map(|c| c.queues.iter().map(|q| q.drops).sum::<u64>() as f64);
        row.push(spread(drops, |x| format!("{x:.0}")));
        rows.push(row);
    }
    page.text.push_str(&table(&rows));
    if groups.len() > MAX_ROWS {
        page.line("", &format!("{} more rows in the document", groups.len() - MAX_ROWS));
    }
    figures::print(&mut page, &document.reference_figures);
    let bad: BTreeMap<&String, usize> =
        document.cells.iter().flat_map(|c| &c.problems).fold(BTreeMap::new(), |mut found, problem| {
            *found.entry(problem).or_default() += 1;
            found
        });
    let complete = document.cells.iter().filter(|c| c.status == LabStatus::Complete).count();
    page.line("checks", &format!("{complete} of {} cells complete, with every check passed", document.cells.len()));
    for (problem, count) in bad.iter().take(10) {
        page.line("INVALID", &format!("{count} cells: {problem}"));
    }
    let kernels: BTreeSet<String> = document.cells.iter().map(|cell| kernel_name(&cell.kernel)).collect();
    page.line("kernel", &kernels.into_iter().collect::<Vec<_>>().join(", "));
    page.line("took", &format!("{:.0} s of real time", document.wall_s));
    measured_warnings(&mut page, &document.warnings);
    page.line("note", "a network-limited prediction: the lab's hosts have infinite CPU and no NIC");
    page.text
}

fn values(cell: &LabCell, varied: &[String]) -> Vec<String> {
    varied.iter().map(|key| cell.values.get(key).map(plain).unwrap_or_default()).collect()
}

fn plain(value: &serde_json::Value) -> String {
    match value {
        serde_json::Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

fn rate(bps: f64) -> String {
    BitRate::from_bps(bps as u64).to_string()
}

/// Returns the median, with minimum and maximum if they differ.
fn spread(values: impl Iterator<Item = f64>, show: impl Fn(f64) -> String) -> String {
    let values: Vec<f64> = values.collect();
    let Some(median) = landspeed_stats::median(&values) else { return "-".to_owned() };
    let (low, high) = values.iter().fold((f64::MAX, f64::MIN), |(l, h), v| (l.min(*v), h.max(*v)));
    if high > low { format!("{} ({}..{})", show(median), show(low), show(high)) } else { show(median) }
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
