//! Collects the commands that landspeed prints as advice.

use std::collections::{BTreeMap, BTreeSet};

use landspeed_checks::{all, audit, failing_example};
use landspeed_host::{RecordedHost, collect};
use landspeed_model::{Facts, Finding, Goal, Role};
use landspeed_testkit::hosts;

use crate::advice::exceptions::{LONG_RUN_OPTION, PLACEHOLDERS};
use crate::advice::texts;

/// Number of changes of a finding that `landspeed check` prints.
const PRINTED_CHANGES: usize = 2;

const ROLES: [Role; 5] = [Role::Dtn, Role::Benchmark, Role::Latency, Role::Guest, Role::Router];

/// Commands to run, and the interfaces they need.
#[derive(Default)]
pub struct Advice {
    /// Command lines, each with the check or text that prints it.
    pub commands: BTreeMap<String, String>,
    /// Interface names of all recorded hosts.
    pub interfaces: BTreeSet<String>,
}

/// The findings of each check on its example, in every role, and of every recorded host; with the facts.
fn findings() -> Vec<(Facts, Vec<Finding>)> {
    let mut found = Vec::new();
    for check in all() {
        let (facts, goal) = failing_example(check);
        let goals = ROLES.map(|role| Goal { role, ..goal.clone() }).into_iter().chain([goal]);
        let of = |goal| audit(&facts, &goal, &|asked| asked.code == check.code).expect("audited").findings;
        let findings = goals.flat_map(of).collect();
        found.push((facts.clone(), findings));
    }
    for host in hosts::names() {
        let facts = collect(&RecordedHost::open(hosts::unpack(&host).path()).expect("a recorded host"));
        for (gigabits, rtt_ns) in [(10, 1_000_000), (100, 92_000_000)] {
            let goal = Goal { rate_bps: Some(gigabits * 1_000_000_000), rtt_ns: Some(rtt_ns), ..Goal::default() };
            let findings = audit(&facts, &goal, &|_| true).expect("audited").findings;
            found.push((facts.clone(), findings));
        }
    }
    found
}

/// Texts of all findings, each with its check's code.
pub fn finding_texts() -> BTreeMap<String, String> {
    let findings = findings().into_iter().flat_map(|(_, findings)| findings);
    findings
        .flat_map(|finding| {
            [finding.recommended, finding.why, finding.effect].map(|text| (text, finding.code.clone()))
        })
        .collect()
}

fn inline_code(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').skip(1).step_by(2)
}

/// Returns every command line that is printed as advice.
pub fn commands() -> Advice {
    let mut advice = Advice::default();
    for (facts, findings) in findings() {
        for finding in findings {
            let fixes = finding.changes.iter().take(PRINTED_CHANGES);
            let fixes =
                fixes.map(|change| format!("landspeed tune plan --set '{}'", landspeed_tune::setting(change)));
            let texts = [&finding.recommended, &finding.why, &finding.effect];
            let sentences = texts.into_iter().flat_map(|text| inline_code(text)).filter(|part| is_command(part));
            let sentences = sentences.map(str::to_owned);
            for line in fixes.chain(sentences).chain([finding.by_hand.clone()]) {
                advice.commands.insert(line, finding.code.clone());
            }
        }
        let names = facts.interfaces.into_iter().map(|interface| interface.name);
        advice.interfaces.extend(names.filter(|name| name != "lo"));
    }
    for text in texts::texts() {
        for part in inline_code(&text).filter(|part| is_command(part)) {
            advice.commands.insert(filled(part).to_owned(), "a verdict or a warning".to_owned());
        }
    }
    for part in texts::commands() {
        // The tests of `cli` parse landspeed commands; verdicts fill in their placeholders.
        if part.starts_with("landspeed ") || advice.commands.contains_key(&part) {
            continue;
        }
        let line = filled(&part);
        assert!(line != part || !part.contains('{'), "exceptions.rs lacks what stands in: {part}");
        advice.commands.insert(line.to_owned(), "the source".to_owned());
    }
    for run in texts::recorded() {
        let hosts = [run.hosts.client, run.hosts.server].into_iter().flatten();
        advice.interfaces.extend(hosts.filter_map(|host| Some(host.nic?.name)).filter(|name| name != "lo"));
    }
    advice
}

/// Returns the command with placeholders replaced by the values a host or user would fill in.
fn filled(command: &str) -> &str {
    PLACEHOLDERS.iter().find(|(printed, _)| *printed == command).map_or(command, |(_, filled)| filled)
}

fn is_command(text: &str) -> bool {
    text.split(' ').next().is_some_and(|word| texts::PROGRAMS.contains(&word))
}

/// Returns every option for the next run with its value, as a verdict prints it.
pub fn run_options() -> BTreeSet<String> {
    let texts = texts::texts();
    let options = texts.iter().flat_map(|text| {
        let inline_code = inline_code(text).filter(|part| part.starts_with('-')).map(str::to_owned);
        let prose: Vec<String> = text.split('`').step_by(2).flat_map(texts::options).map(|o| o.join(" ")).collect();
        inline_code.chain(prose)
    });
    options.filter(|option| option.contains(' ') && !option.starts_with(LONG_RUN_OPTION)).collect()
}
