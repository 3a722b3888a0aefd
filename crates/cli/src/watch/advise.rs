//! `watch --advise`: recommends changes for the causes found, as input for `landspeed tune plan`. Changes
//! nothing.

use std::collections::BTreeSet;
use std::net::SocketAddr;

use landspeed_host::{LiveHost, collect};
use landspeed_model::{
    Applicability, AuditDocument, Cause, CausePlace, Facts, Finding, Goal, WatchDocument, WatchFlow, WatchRole,
};
use landspeed_units::Nanos;

use super::text::{confidence_level, process};
use crate::check;
use crate::text::Page;

/// Settings are computed for this multiple of the measured rate if the link rate is unknown or was reached.
const HEADROOM: f64 = 2.0;
/// Maximum number of flows listed per cause.
const MAX_NAMED_FLOWS: usize = 3;

/// Returns the end of a flow whose host settings affect `cause`; `None` if no host setting helps.
fn end_to_change(cause: Cause) -> Option<WatchRole> {
    let end = if cause.place() == CausePlace::Receiver { WatchRole::Receiver } else { WatchRole::Sender };
    (!cause.settings().is_empty()).then_some(end)
}

/// Flows with the same cause and the same host to change.
#[derive(Debug)]
struct Group<'a> {
    cause: Cause,
    /// Address of the remote host; `None` is this host.
    remote_address: Option<String>,
    flows: Vec<&'a WatchFlow>,
}

impl Group<'_> {
    /// Returns the path to compute settings for: largest minimum RTT, highest rate in bits/s.
    fn path(&self) -> (Option<Nanos>, f64) {
        let rtt_us = self.flows.iter().filter_map(|flow| flow.min_rtt_us).max();
        let bps = self.flows.iter().filter_map(|flow| flow.goodput_bps).fold(0.0, f64::max);
        (rtt_us.map(|us| Nanos::from_micros(us.into())), bps)
    }

    fn flow_names(&self) -> String {
        let one = |flow: &&WatchFlow| match flow.role {
            WatchRole::Sender => {
                format!("{} > {} ({})", process(flow), flow.remote, confidence_level(flow.confidence))
            }
            WatchRole::Receiver => {
                format!("{} < {} ({})", process(flow), flow.remote, confidence_level(flow.confidence))
            }
        };
        let flow_names: Vec<String> = self.flows.iter().take(MAX_NAMED_FLOWS).map(one).collect();
        let left = self.flows.len().saturating_sub(MAX_NAMED_FLOWS);
        let more = if left > 0 { format!(", and {left} more") } else { String::new() };
        format!("{}{more}", flow_names.join(", "))
    }
}

/// Groups the flows by cause, fastest flows first. Flows without a cause are skipped.
fn groups(document: &WatchDocument) -> Vec<Group<'_>> {
    let mut groups: Vec<Group<'_>> = Vec::new();
    for flow in document.flows.iter().filter(|flow| flow.cause != Cause::Undetermined) {
        let here = end_to_change(flow.cause).is_none_or(|end| end == flow.role);
        let host =
            flow.remote.parse().map_or_else(|_| flow.remote.clone(), |remote: SocketAddr| remote.ip().to_string());
        let remote_address = (!here).then_some(host);
        match groups.iter_mut().find(|group| group.cause == flow.cause && group.remote_address == remote_address) {
            Some(group) => group.flows.push(flow),
            None => groups.push(Group { cause: flow.cause, remote_address, flows: vec![flow] }),
        }
    }
    groups
}

/// Formats a command: `landspeed tune plan --rtt 20ms --only BUF-002`.
fn plan(rtt: Option<Nanos>, goal_bps: Option<f64>, codes: &[&str]) -> String {
    let rtt = rtt.map(|rtt| format!(" --rtt {}us", rtt.get() / 1000)).unwrap_or_default();
    let goal = goal_bps.map(|bps| format!(" --goal {}", bps.ceil() as u64)).unwrap_or_default();
    format!("landspeed tune plan{goal}{rtt} --only {}", codes.join(","))
}

/// Audits this host if necessary, and formats the recommendations.
pub fn advice(document: &WatchDocument) -> anyhow::Result<String> {
    let groups = groups(document);
    let here = groups.iter().any(|group| group.remote_address.is_none() && end_to_change(group.cause).is_some());
    let facts = here.then(|| collect(&LiveHost::new()));
    text(&groups, &|codes, rtt, goal_bps| match &facts {
        Some(facts) => audit(facts, codes, rtt, goal_bps).map(Some),
        None => Ok(None),
    })
}

fn audit(facts: &Facts, codes: &[&str], rtt: Option<Nanos>, goal_bps: Option<f64>) -> anyhow::Result<AuditDocument> {
    let goal = Goal {
        rate_bps: goal_bps.map(|bps| bps.ceil() as u64),
        rtt_ns: rtt.map(Nanos::get),
        role: check::usual_role(facts),
        interface: None,
    };
    check::audit(facts.clone(), &goal, &|check| codes.contains(&check.code))
}

type Auditor<'a> = dyn Fn(&[&str], Option<Nanos>, Option<f64>) -> anyhow::Result<Option<AuditDocument>> + 'a;

fn text(groups: &[Group<'_>], audit: &Auditor<'_>) -> anyhow::Result<String> {
    let mut page = Page::default();
    if groups.is_empty() {
        page.line("advice", "nothing to change: no cause was found");
    }
    for group in groups {
        page.text.push('\n');
        page.line("advice", &format!("{}: {}", group.cause.phrase(), group.flow_names()));
        match (end_to_change(group.cause), &group.remote_address) {
            (None, _) => no_setting_helps(group, "no host setting helps", &mut page),
            (Some(_), None) if group.flows.iter().all(|flow| has_fixed_buffer(flow)) => {
                no_setting_helps(
                    group,
                    "the program sizes its buffer itself, and no host setting changes that",
                    &mut page,
                );
            }
            (Some(_), Some(host)) => {
                let (rtt, bps) = group.path();
                page.line("where", &format!("{host}, the other end of these connections: run this there"));
                page.line("why", &reasons(group));
                let goal_bps = (bps > 0.0).then_some(bps * HEADROOM);
                page.raw("plan", &plan(rtt, goal_bps, group.cause.settings()));
            }
            (Some(_), None) => local(group, audit, &mut page)?,
        }
    }
    Ok(page.text)
}

/// Whether the program set the size of the local buffer that limits a flow.
fn has_fixed_buffer(flow: &WatchFlow) -> bool {
    flow.host.buffer_locks.is_some_and(|locks| match flow.cause {
        Cause::ReceiverWindow => locks.receive,
        Cause::SendBuffer => locks.send,
        _ => false,
    })
}

/// Prints the findings for settings of this host.
fn local(group: &Group<'_>, audit: &Auditor<'_>, page: &mut Page) -> anyhow::Result<()> {
    let (rtt, bps) = group.path();
    let more = (bps > 0.0).then_some(bps * HEADROOM);
    // First for the link rate; if that yields no findings, for more than the measured rate.
    for goal_bps in [None, more] {
        let Some(audit) = audit(group.cause.settings(), rtt, goal_bps)? else { continue };
        let (by_tune, by_hand): (Vec<&Finding>, Vec<&Finding>) = audit
            .findings
            .iter()
            .partition(|finding| finding.applicability != Applicability::DisplayOnly && !finding.changes.is_empty());
        if by_tune.is_empty() && by_hand.is_empty() {
            continue;
        }
        for finding in by_tune.iter().chain(&by_hand) {
            page.line(
                "",
                &format!(
                    "· {}: {} now, {} better. {}",
                    finding.code, finding.observed, finding.recommended, finding.why
                ),
            );
        }
        // A check may have the same finding for several interfaces.
        let codes: BTreeSet<&str> = by_tune.iter().map(|finding| finding.code.as_str()).collect();
        if codes.is_empty() {
            page.line("by hand", "landspeed changes none of these; `landspeed explain CODE` says how");
        } else {
            page.raw("plan", &plan(rtt, goal_bps, &codes.into_iter().collect::<Vec<_>>()));
        }
        return Ok(());
    }
    no_setting_helps(
        group,
        &format!("the settings that bear on it are as they should be ({})", group.cause.settings().join(", ")),
        page,
    );
    Ok(())
}

/// Prints why no setting helps, and what the application or landspeed can do.
fn no_setting_helps(group: &Group<'_>, why: &str, page: &mut Page) {
    let step = group.flows.first().map_or("", |flow| flow.next_step.as_str());
    page.line("change", &format!("{why}. {step}"));
}

/// Returns the verdict's summary of the fastest flow.
fn reasons(group: &Group<'_>) -> String {
    group.flows.first().map_or_else(String::new, |flow| flow.summary.clone())
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;
    use std::path::Path;

    use landspeed_host::RecordedHost;
    use landspeed_testkit::{golden, hosts};

    use super::*;

    fn repository() -> std::path::PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
    }

    /// Returns the recorded flows unchanged, then with other causes.
    fn documents() -> Vec<(&'static str, WatchDocument)> {
        let text = std::fs::read_to_string(repository().join("fixtures/documents/watch.json")).expect("the document");
        let recorded: WatchDocument = serde_json::from_str(&text).expect("a document");
        let with = |cause: Cause| {
            let mut document = recorded.clone();
            for flow in &mut document.flows {
                (flow.cause, flow.min_rtt_us, flow.goodput_bps) = (cause, Some(50_000), Some(8e9));
                flow.role = WatchRole::Sender;
            }
            document
        };
        vec![
            ("as recorded", recorded.clone()),
            ("a send buffer", with(Cause::SendBuffer)),
            ("a receive window of the other host", with(Cause::ReceiverWindow)),
            ("a queue that overflows", with(Cause::NetworkCongestion)),
            ("a send buffer that is as it should be", {
                let mut document = with(Cause::SendBuffer);
                document.flows.iter_mut().for_each(|flow| flow.min_rtt_us = Some(10));
                document
            }),
            ("nothing", WatchDocument { flows: Vec::new(), ..recorded.clone() }),
        ]
    }

    #[test]
    fn advice_matches_golden_file() {
        let host = hosts::unpack("deck-40g");
        let facts = collect(&RecordedHost::open(host.path()).expect("a recorded host"));
        let mut all = String::new();
        for (what, document) in documents() {
            let audit: &Auditor<'_> = &|codes, rtt, goal_bps| audit(&facts, codes, rtt, goal_bps).map(Some);
            let text = text(&groups(&document), audit).expect("advice");
            let _ = writeln!(all, "# landspeed watch --advise: {what}\n{text}");
        }
        golden::same("watch-advise.txt", &all);
    }

    #[test]
    fn advised_codes_are_existing_checks() {
        let known: Vec<&str> = landspeed_checks::all().map(|check| check.code).collect();
        for code in Cause::ALL.iter().flat_map(|cause| cause.settings()) {
            assert!(known.contains(code), "{code}");
        }
    }
}
