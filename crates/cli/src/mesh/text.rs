//! Terminal output of `mesh`: the matrix, a line for each test, and the load of a schedule.

use std::collections::{HashMap, HashSet};
use std::fmt::Write as _;

use landspeed_mesh::{LoadEstimate, Options, Outcome, Pair, ResourceLoad, Scheduler};
use landspeed_model::{MeshCell, MeshDocument, MeshHostState, MeshResult, Protocol};
use landspeed_units::{BitRate, Bytes, Nanos, Ratio};

use super::journal::{EndEntry, EndOutcome};
use super::plan::MeshPlan;
use super::state::moment;
use crate::text::{Page, width};

/// Placeholder of an unknown figure.
const UNKNOWN: &str = "-";
/// Largest number of tests that a dry run lists.
const MAX_LISTED: usize = 20;
/// Largest number of steps in virtual time until a dry run has its list.
const MAX_STEPS: usize = 100_000;
/// Largest number of notes about single pairs.
const MAX_NOTES: usize = 20;

/// Figure of a cell, as printed.
type Figure = fn(&MeshCell) -> String;

/// Formats a line about a test that ended.
pub fn line(end: &EndEntry) -> String {
    let result = &end.result;
    let what = match end.outcome {
        EndOutcome::Measured => {
            let figures = [throughput(result), loss(result), rtt(result)].join("  ");
            format!("{figures}  {}", verdict(result))
        }
        _ => result.error.as_ref().map_or_else(|| "failed".to_owned(), |error| format!("failed: {}", error.message)),
    };
    format!("{}  {}  {} to {}  {what}\n", result.started, end.key.test, end.key.from, end.key.to)
}

/// Formats the state of a mesh: matrices, hosts, and what needs attention.
pub fn matrix(document: &MeshDocument) -> String {
    let mut text = String::new();
    let mut page = Page::default();
    let measured = document.cells.iter().filter(|cell| cell.is_measured()).count();
    page.line("mesh", &format!("{}: {measured} of {} pairs measured", document.name, document.cells.len()));
    text += &page.text;
    for test in &document.tests {
        let cells: Vec<&MeshCell> = document.cells.iter().filter(|cell| cell.test == test.name).collect();
        let every = Nanos::new(test.interval_ns);
        let _ = writeln!(text, "\n{}  (rows: client, columns: server; every {every})", test.name);
        if cells.iter().any(|cell| cell.skipped) {
            text += "  in brackets: an earlier test, because the latest was skipped\n";
        }
        let figures: [(&str, Figure); 5] = [
            (rate_title(test.protocol), |cell| figure(cell, throughput)),
            (if test.protocol == Protocol::Udp { "loss" } else { "retransmits" }, |cell| figure(cell, loss)),
            ("RTT", |cell| figure(cell, rtt)),
            ("verdict", |cell| figure(cell, verdict)),
            ("change since last week", change),
        ];
        for (title, figure) in figures {
            text += &table(title, &cells, document, figure);
        }
    }
    text + "\n" + &notes(document)
}

fn rate_title(protocol: Protocol) -> &'static str {
    match protocol {
        Protocol::Tcp | Protocol::Udp => "throughput",
        Protocol::TcpRr | Protocol::UdpRr => "throughput (request/response: none)",
    }
}

fn figure(cell: &MeshCell, of: fn(&MeshResult) -> String) -> String {
    match &cell.latest {
        None => UNKNOWN.to_owned(),
        Some(_) if cell.failures > 0 => "failed".to_owned(),
        Some(result) if cell.skipped => format!("({})", of(result)),
        Some(result) => of(result),
    }
}

fn throughput(result: &MeshResult) -> String {
    result.goodput_bps.map_or_else(|| UNKNOWN.to_owned(), |bps| BitRate::from_bps(bps as u64).to_string())
}

fn loss(result: &MeshResult) -> String {
    let ratio = result.loss_ratio.and_then(Ratio::new).map(|ratio| ratio.to_string());
    let retransmits = || result.retransmits.map(|count| format!("{count} retr"));
    ratio.or_else(retransmits).unwrap_or_else(|| UNKNOWN.to_owned())
}

fn rtt(result: &MeshResult) -> String {
    result.rtt_ns.map_or_else(
        || UNKNOWN.to_owned(),
        // The kernel counts TCP's RTT in whole microseconds.
        |ns| {
            if ns < 1_000_000 && ns.is_multiple_of(1000) {
                format!("{} µs", ns / 1000)
            } else {
                Nanos::new(ns).to_string()
            }
        },
    )
}

fn verdict(result: &MeshResult) -> String {
    result.verdict.map_or_else(|| UNKNOWN.to_owned(), |cause| cause.name().to_owned())
}

fn change(cell: &MeshCell) -> String {
    cell.change.map_or_else(|| UNKNOWN.to_owned(), |change| format!("{:+.0} %", change.ratio * 100.0))
}

/// Formats a matrix of one figure, in blocks of columns that fit the width.
fn table(title: &str, cells: &[&MeshCell], document: &MeshDocument, figure: Figure) -> String {
    let names = |of: fn(&MeshCell) -> &str| -> Vec<&str> {
        let in_use: HashSet<&str> = cells.iter().map(|&cell| of(cell)).collect();
        document.hosts.iter().map(|host| host.name.as_str()).filter(|name| in_use.contains(name)).collect()
    };
    let (rows, columns) = (names(|cell| cell.from.as_str()), names(|cell| cell.to.as_str()));
    let by_pair: HashMap<(&str, &str), &MeshCell> =
        cells.iter().map(|&cell| ((cell.from.as_str(), cell.to.as_str()), cell)).collect();
    let value = |row: &str, column: &str| by_pair.get(&(row, column)).map_or_else(String::new, |cell| figure(cell));
    let length = |text: &str| text.chars().count();
    let first = rows.iter().map(|row| length(row)).max().unwrap_or(0) + 4;
    let widths: Vec<usize> = columns
        .iter()
        .map(|column| rows.iter().map(|row| length(&value(row, column))).max().unwrap_or(0).max(length(column)) + 2)
        .collect();
    let mut text = format!("  {title}\n");
    let mut begin = 0;
    while begin < columns.len() {
        let mut end = begin + 1;
        let mut taken = first + widths[begin];
        while end < columns.len() && taken + widths[end] <= width() {
            taken += widths[end];
            end += 1;
        }
        let mut row_text = |row: &str, cell: &dyn Fn(usize) -> String| {
            let mut line = format!("    {row:<pad$}", pad = first - 4);
            for (at, width) in widths.iter().enumerate().take(end).skip(begin) {
                let _ = write!(line, "{:>width$}", cell(at));
            }
            text += line.trim_end();
            text.push('\n');
        };
        row_text("", &|at| columns[at].to_owned());
        for row in &rows {
            row_text(row, &|at| value(row, columns[at]));
        }
        begin = end;
    }
    text
}

/// Formats what needs attention: warnings, failures, waiting pairs, overlapping tests.
fn notes(document: &MeshDocument) -> String {
    let mut page = Page::default();
    let budgets = document.hosts.iter().map(|host| (&host.name, host.usage));
    let budgets = budgets.chain(document.links.iter().map(|link| (&link.name, link.usage)));
    for (name, usage) in budgets.filter(|(_, usage)| usage.bytes_per_day.is_some() || usage.time_per_day_ns.is_some())
    {
        let bytes = usage
            .bytes_per_day
            .map(|most| format!("{}{}", Bytes::new(usage.bytes_24h), of_budget(usage.bytes_24h, most)));
        let time =
            usage.time_per_day_ns.map(|most| format!("{} of {}", Nanos::new(usage.time_24h_ns), Nanos::new(most)));
        let parts: Vec<String> = [bytes, time].into_iter().flatten().collect();
        page.line("budget", &format!("{name}: {} in 24 h", parts.join(", ")));
    }
    for warning in &document.warnings {
        page.line("warning", &warning.message);
    }
    let mut left = MAX_NOTES;
    let mut hidden = 0;
    let mut note = |page: &mut Page, label: &str, text: String| {
        if left > 0 {
            left -= 1;
            page.line(label, &text);
        } else {
            hidden += 1;
        }
    };
    for cell in &document.cells {
        let pair = format!("{}, {} to {}", cell.test, cell.from, cell.to);
        let error = cell.latest.as_ref().and_then(|result| result.error.as_ref());
        if let Some(error) = error.filter(|_| cell.failures > 0) {
            note(&mut page, "failed", format!("{pair}: {}", error.message));
        } else if let Some(waiting) = &cell.waiting {
            let latest = cell.latest.as_ref().filter(|_| cell.skipped);
            let latest = latest.map(|result| format!("; the latest test was at {}", result.started));
            note(&mut page, "waiting", format!("{pair}: {waiting}{}", latest.unwrap_or_default()));
        }
        if let Some(others) = cell.latest.as_ref().and_then(|result| result.other_tests).filter(|others| *others > 0)
        {
            let tests = if others == 1 { "another test" } else { "other tests" };
            note(&mut page, "overlap", format!("{pair}: {tests} ran on one of the hosts at the same time"));
        }
    }
    if hidden > 0 {
        page.line("", &format!("and {hidden} more, in the JSON document"));
    }
    if document.hosts.iter().all(|host| host.state == MeshHostState::Reachable) && page.text.is_empty() {
        page.line("hosts", "all answer");
    }
    page.text
}

/// Formats a schedule without running it: tests, worst-case load, and the first tests.
pub fn dry_run(plan: &MeshPlan) -> String {
    let inventory = &plan.inventory;
    let mut page = Page::default();
    let pairs: usize = inventory.tests.iter().map(|test| test.pairs.len()).sum();
    let (hosts, tests) = (inventory.hosts.len(), inventory.tests.len());
    let noun = if tests == 1 { "test" } else { "tests" };
    page.line("mesh", &format!("{}: {hosts} hosts, {pairs} pairs in {tests} {noun}", inventory.name));
    for (number, test) in inventory.tests.iter().enumerate() {
        let costs = test.pairs.iter().map(|&pair| plan.cost(number, pair));
        let most = costs.reduce(|a, b| if a.bytes.is_none_or(|a| b.bytes.is_some_and(|b| b < a)) { a } else { b });
        let Some(most) = most else { continue };
        let bytes =
            most.bytes.map_or_else(|| "any number of bytes".to_owned(), |bytes| Bytes::new(bytes).to_string());
        let every = Nanos::new(test.interval_ns);
        let limit = Nanos::new(most.limit_ns);
        let count = test.pairs.len();
        page.line("test", &format!("{}: {count} pairs, each every {every}; at most {bytes} and {limit}", test.name));
    }
    let load = LoadEstimate::of(inventory, |test, pair| plan.cost(test, pair));
    let names = inventory.hosts.iter().map(|host| &host.name).zip(&load.hosts);
    let names = names.chain(inventory.links.iter().map(|link| &link.name).zip(&load.links));
    for (name, load) in names {
        page.line("load", &format!("{name}: {}", load_text(load)));
    }
    page.text + &first_tests(plan)
}

/// Formats a budget in bytes, with the share that `bytes` is of it: the two may be in different units.
fn of_budget(bytes: u64, most: u64) -> String {
    let share = Ratio::of(bytes, most).map(|share| format!(" ({share})")).unwrap_or_default();
    format!(" of {}{share}", Bytes::new(most))
}

fn load_text(load: &ResourceLoad) -> String {
    let bytes =
        load.bytes.map_or_else(|| "any number of bytes".to_owned(), |bytes| Bytes::new(bytes as u64).to_string());
    let of_bytes = match (load.bytes, load.budget.bytes) {
        (Some(bytes), Some(most)) => of_budget(bytes as u64, most),
        (None, Some(most)) => format!(" of {}", Bytes::new(most)),
        (_, None) => String::new(),
    };
    let of_time = load.budget.time_ns.map(|most| format!(" of {}", Nanos::new(most))).unwrap_or_default();
    let time = Nanos::new(load.time_ns as u64);
    let ratio = load.ratio();
    let note =
        if ratio > 1.0 { format!("; too much: pairs wait {ratio:.1} times their interval") } else { String::new() };
    format!("{:.1} tests per day, at most {bytes}{of_bytes} and {time}{of_time}{note}", load.tests)
}

/// Lists the first tests of the schedule, each with its worst-case duration.
fn first_tests(plan: &MeshPlan) -> String {
    let mut now = moment();
    let begin_ns = now.monotonic_ns;
    let mut scheduler = Scheduler::new(&plan.inventory, |test, pair| plan.cost(test, pair), Options::default(), now);
    let mut running: Vec<(i64, landspeed_mesh::TaskId)> = Vec::new();
    let mut page = Page::default();
    let mut listed = 0;
    for _ in 0..MAX_STEPS {
        if listed >= MAX_LISTED {
            break;
        }
        for (_, task) in running.extract_if(.., |(end_ns, _)| *end_ns <= now.monotonic_ns) {
            scheduler.finish(task, Outcome::Measured, None, now);
        }
        for start in scheduler.poll(now) {
            running.push((now.monotonic_ns + start.cost.reservation().time_ns as i64, start.task));
            let Pair { from, to } = start.pair;
            let after = Nanos::new(u64::try_from(now.monotonic_ns - begin_ns).unwrap_or(0));
            let name = |host: usize| &plan.inventory.hosts[host].name;
            let test = &plan.inventory.tests[start.test].name;
            if listed < MAX_LISTED {
                page.line("first", &format!("after {after}: {test}, {} to {}", name(from), name(to)));
            }
            listed += 1;
        }
        // Also of the tests that have just started: one that ended later would spend more of its budgets.
        let next = [scheduler.wakes_at_ns(now), running.iter().map(|(end_ns, _)| *end_ns).min()];
        let Some(next_ns) = next.into_iter().flatten().min() else { break };
        let step_ns = (next_ns - now.monotonic_ns).max(1);
        now.monotonic_ns += step_ns;
        now.wall_ns += step_ns;
    }
    page.text
}
