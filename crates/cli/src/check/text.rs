//! Terminal output of an audit.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use landspeed_checks::Check;
use landspeed_model::{Answer, Applicability, AuditDocument, Finding, Goal, Role, Severity};
use landspeed_quote::shell_word;
use landspeed_units::{BitRate, Bytes, Nanos};

use crate::text::Page;

/// Changes printed per finding; the document has all of them.
const MAX_PRINTED_CHANGES: usize = 2;

/// Formats the audit, and the peer's if there is one.
pub fn audit(document: &AuditDocument, verbose: bool) -> String {
    let mut page = Page::default();
    audit_section(&mut page, "host", document, verbose);
    if let Some(peer) = &document.peer {
        page.text.push('\n');
        audit_section(&mut page, "peer", peer, verbose);
        page.text.push('\n');
        if document.differences.is_empty() {
            page.line("differ", "in nothing that matters to a transfer between them");
        }
        for difference in &document.differences {
            let differing = format!(
                "{}: {} here, {} there; {}",
                difference.what, difference.here, difference.there, difference.why
            );
            page.line("differ", &differing);
        }
    }
    let changes = document.findings.iter().filter(|f| f.applicability == Applicability::Safe);
    let changes: usize = changes.map(|finding| finding.changes.len()).sum();
    if changes > 0 {
        let what = if changes == 1 { "the 1 safe change" } else { &format!("the {changes} safe changes") };
        page.line("next", &format!("plan {what} of these findings with"));
        page.raw("", &plan_of(&document.goal));
    }
    page.text
}

/// Returns the `landspeed tune plan` command for the same goal.
fn plan_of(goal: &Goal) -> String {
    let whole = |value: u64, units: &[(u64, &str)]| {
        let unit = units.iter().find(|(size, _)| value.is_multiple_of(*size)).copied();
        unit.map_or_else(|| value.to_string(), |(size, name)| format!("{}{name}", value / size))
    };
    let mut line = "landspeed tune plan".to_owned();
    if let Some(bps) = goal.rate_bps {
        let _ = write!(line, " --goal {}", whole(bps, &[(1_000_000_000, "G"), (1_000_000, "M"), (1, "")]));
    }
    if let Some(ns) = goal.rtt_ns {
        let _ = write!(line, " --rtt {}", whole(ns, &[(1_000_000, "ms"), (1_000, "us"), (1, "ns")]));
    }
    let role = match goal.role {
        // Default roles need no option.
        Role::Dtn | Role::Guest => "",
        Role::Benchmark => " --role benchmark",
        Role::Latency => " --role latency",
        Role::Router => " --role router",
    };
    line += role;
    if let Some(interface) = &goal.interface {
        let _ = write!(line, " --iface {}", shell_word(interface));
    }
    line
}

fn audit_section(page: &mut Page, label: &str, document: &AuditDocument, verbose: bool) {
    page.line(label, &host_summary(document));
    page.line("for", &goal_summary(document));
    for warning in &document.warnings {
        page.line("note", &warning.message);
    }
    let (notes, findings): (Vec<_>, Vec<_>) = document.findings.iter().partition(|f| f.severity == Severity::Note);
    for finding in findings {
        page.text.push('\n');
        show(page, finding);
    }
    if !notes.is_empty() {
        page.text.push('\n');
    }
    for finding in notes {
        if verbose {
            show(page, finding);
        } else {
            page.line("NOTE", &format!("{}: {}; {}", heading(finding), finding.observed, finding.recommended));
        }
    }
    page.text.push('\n');
    if verbose {
        for answer in &document.passed {
            page.line("pass", &describe_answer(answer));
        }
        for answer in &document.not_applicable {
            page.line("n/a", &describe_answer(answer));
        }
    }
    for (why, codes) in group_by_reason(&document.unknown) {
        page.line("unknown", &format!("{}: {why}", codes.join(", ")));
    }
    page.line("summary", &summary(document));
}

fn host_summary(document: &AuditDocument) -> String {
    let facts = &document.facts;
    let mut text =
        if document.hostname.is_empty() { "a host without a name".to_owned() } else { document.hostname.clone() };
    if !facts.kernel.release.is_empty() {
        let _ = write!(text, ", Linux {}", facts.kernel.release);
    }
    if !facts.cpu.online.is_empty() {
        let _ = write!(text, ", {} CPUs", facts.cpu.online.len());
    }
    if let Some(&bytes) = facts.memory_bytes.known() {
        let _ = write!(text, ", {}", Bytes::new(bytes));
    }
    for kind in [&facts.virtualization.hypervisor, &facts.virtualization.container] {
        if let Some(kind) = kind.known() {
            let _ = write!(text, ", {kind}");
        }
    }
    text
}

fn goal_summary(document: &AuditDocument) -> String {
    let goal = &document.goal;
    let found = document.facts.interfaces.iter().find(|i| Some(&i.name) == document.interface.as_ref());
    let rate = goal.rate_bps.or_else(|| found.and_then(|i| i.speed_bps.known().copied()));
    let mut text = rate.map_or_else(|| "a rate that was not given".into(), |bps| BitRate::from_bps(bps).to_string());
    if let Some(rtt) = goal.rtt_ns {
        let _ = write!(text, " over {}", Nanos::new(rtt));
    }
    let role = match goal.role {
        Role::Dtn => "a data transfer node",
        Role::Benchmark => "a benchmark",
        Role::Latency => "small messages",
        Role::Guest => "a virtual machine",
        Role::Router => "a router",
    };
    let _ = write!(text, ", as {role}");
    match found {
        None => text.push_str(", on no interface"),
        Some(interface) => {
            let _ = write!(text, ", on {}", interface.name);
            if let Some(driver) = interface.driver.known() {
                let _ = write!(text, " ({})", driver.name);
            }
            if document.ports.len() > 1 {
                let _ = write!(text, " over {}", document.ports.join(" and "));
            }
        }
    }
    text
}

fn heading(finding: &Finding) -> String {
    let interface = finding.interface.as_ref().map(|name| format!(", {name}")).unwrap_or_default();
    format!("{} {}{interface}", finding.code, finding.title)
}

fn show(page: &mut Page, finding: &Finding) {
    page.line(severity_name(finding.severity), &heading(finding));
    page.line("  now", &finding.observed);
    page.line("  better", &finding.recommended);
    page.line("  why", &finding.why);
    page.line("  effect", &finding.effect);
    page.raw("  look", &finding.by_hand);
    let care = match finding.applicability {
        Applicability::NeedsCare => format!("  # needs care: landspeed explain {}", finding.code),
        Applicability::Safe | Applicability::DisplayOnly => String::new(),
    };
    for change in finding.changes.iter().take(MAX_PRINTED_CHANGES) {
        page.raw("  fix", &(crate::tune::text::plan_command(std::slice::from_ref(change)) + &care));
    }
    if let Some(more) = finding.changes.len().checked_sub(MAX_PRINTED_CHANGES).filter(|&more| more > 0) {
        page.line("", &format!("and {more} more like these"));
    }
    page.line("  source", &finding.source);
}

fn severity_name(severity: Severity) -> &'static str {
    match severity {
        Severity::Critical => "CRITICAL",
        Severity::Major => "MAJOR",
        Severity::Minor => "MINOR",
        Severity::Note => "NOTE",
    }
}

fn describe_answer(answer: &Answer) -> String {
    let interface = answer.interface.as_ref().map(|name| format!(", {name}")).unwrap_or_default();
    format!("{} {}{interface}: {}", answer.code, answer.title, answer.text)
}

/// Groups check codes by reason, so that a missing privilege takes one line.
fn group_by_reason(answers: &[Answer]) -> BTreeMap<&str, Vec<&str>> {
    let mut reasons: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for answer in answers {
        let codes = reasons.entry(&answer.text).or_default();
        if codes.last() != Some(&answer.code.as_str()) {
            codes.push(&answer.code);
        }
    }
    reasons
}

fn summary(document: &AuditDocument) -> String {
    let of = |severity| document.findings.iter().filter(|finding| finding.severity == severity).count();
    let counts = [
        (of(Severity::Critical), "critical"),
        (of(Severity::Major), "major"),
        (of(Severity::Minor), "minor"),
        (of(Severity::Note), "notes"),
    ];
    let found: Vec<_> = counts.iter().filter(|(n, _)| *n > 0).map(|(n, what)| format!("{n} {what}")).collect();
    let found = if found.is_empty() { "nothing to do".to_owned() } else { found.join(", ") };
    format!(
        "{found}; {} pass, {} not applicable, {} unknown",
        document.passed.len(),
        document.not_applicable.len(),
        document.unknown.len()
    )
}

/// Formats the list of checks, one per line.
pub fn list(checks: impl Iterator<Item = &'static Check>) -> String {
    let mut text = String::new();
    let mut group = None;
    for check in checks {
        if group != Some(check.group) {
            group = Some(check.group);
            let _ = writeln!(text, "{}", check.group.name());
        }
        let _ = writeln!(text, "  {:<10}{:<32}{}", check.code, check.name(), check.title);
    }
    text
}
