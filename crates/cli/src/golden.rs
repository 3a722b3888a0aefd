//! Tests: help, and the text of recorded documents, as the files in `golden/` show them.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use clap::{Command, CommandFactory as _};
use landspeed_host::RecordedHost;
use landspeed_model::{
    Change, DemoDocument, Direction, Goal, LabDocument, Role, RunDocument, TapDocument, Target, TraceDocument,
    WatchDocument,
};
use landspeed_testkit::golden;
use landspeed_tune::{Allow, TwinKnobs, Value, changes_from_audit};

use crate::{Cli, check, demo, lab, run, tap, text, trace, tune, watch};

/// Columns of the help: what clap takes where the terminal's width is unknown.
const HELP_COLUMNS: usize = 100;

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn read<T: serde::de::DeserializeOwned>(path: &str) -> T {
    let path = repository().join(path);
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The help of a command and, after it, of each of its subcommands.
fn help(words: &str, command: &Command, text: &mut String) {
    let mut alone = command.clone().term_width(HELP_COLUMNS).bin_name(words);
    let _ = write!(text, "$ {words} --help\n{}\n", alone.render_long_help());
    for subcommand in command.get_subcommands().filter(|s| s.get_name() != "help" && !s.is_hide_set()) {
        help(&format!("{words} {}", subcommand.get_name()), subcommand, text);
    }
}

#[test]
fn help_of_every_command_is_that_of_its_file() {
    let mut cli = Cli::command();
    cli.build();
    let mut top = format!("$ landspeed --help\n{}", cli.clone().term_width(HELP_COLUMNS).render_long_help());
    for command in cli.get_subcommands().filter(|s| s.get_name() != "help" && !s.is_hide_set()) {
        let mut text = String::new();
        help(&format!("landspeed {}", command.get_name()), command, &mut text);
        golden::same(&format!("help/{}.txt", command.get_name()), &text);
    }
    top.push('\n');
    golden::same("help/landspeed.txt", &top);
}

/// Documents of real runs, judged as they would be today.
fn runs() -> Vec<(&'static str, RunDocument)> {
    let files = [
        ("one stream over loopback", "crates/diagnose/fixtures/real/bulk-loopback-bbr.json"),
        ("a receive buffer below the BDP", "crates/diagnose/fixtures/real/receive-buffer-cubic.json"),
        ("random loss", "crates/diagnose/fixtures/real/loss-cubic.json"),
        ("--bidir", "crates/diagnose/fixtures/real/bidir-loopback-bbr.json"),
        ("-u, a receiver without CPU time", "crates/diagnose/fixtures/real/udp-starved-receiver.json"),
        ("-u, a small socket buffer", "fixtures/documents/udp.json"),
        ("--rr", "fixtures/documents/rr.json"),
    ];
    files
        .into_iter()
        .map(|(what, path)| {
            let mut document: RunDocument = read(path);
            document.warnings.clear();
            run::judge(&mut document);
            (what, document)
        })
        .collect()
}

#[test]
fn run_summaries_and_details_match_their_golden_files() {
    let (mut short, mut long) = (String::new(), String::new());
    for (what, document) in runs() {
        let _ = write!(short, "# landspeed run: {what}\n{}\n", text::summary_at(&document, 80));
        let _ = write!(
            long,
            "# landspeed run -v: {what}\n{}{}\n",
            text::summary_at(&document, 80),
            text::details(&document)
        );
    }
    golden::same("run.txt", &short);
    golden::same("run-verbose.txt", &long);
}

#[test]
fn a_run_of_the_lab_reads_as_its_file() {
    let mut document: LabDocument = read("crates/diagnose/fixtures/lab/policer-cubic.json");
    let verdicts: Vec<_> = document
        .flows
        .iter()
        .map(|flow| landspeed_diagnose::diagnose_lab(&document, flow, Direction::Upload))
        .collect();
    for (flow, verdict) in document.flows.iter_mut().zip(verdicts) {
        if let (Some(run), Some(verdict)) = (&mut flow.run, verdict) {
            run.verdict = verdict;
        }
    }
    golden::same("lab.txt", &format!("# landspeed lab run\n{}", lab::text::run(&document)));
}

#[test]
fn a_trace_reads_as_its_file() {
    let document: TraceDocument = read("fixtures/traces/whole.json");
    golden::same("trace.txt", &format!("# landspeed trace\n{}", trace::text::summary(&document)));
}

#[test]
fn a_tap_reads_as_its_file() {
    let document: TapDocument = read("fixtures/documents/tap.json");
    golden::same("tap.txt", &format!("# landspeed tap\n{}", tap::text::summary(&document)));
}

#[test]
fn a_watch_reads_as_its_file() {
    let document: WatchDocument = read("fixtures/documents/watch.json");
    let text =
        watch::text::Table::default().interval(&document, document.flows.len()) + &watch::text::summary(&document);
    golden::same("watch.txt", &format!("# landspeed watch\n{text}"));
}

#[test]
fn a_demo_reads_as_its_file() {
    let document: DemoDocument = read("fixtures/documents/demo.json");
    let mut text = format!("# landspeed demo\n{}", demo::text::opening());
    for (number, scene) in document.scenes.iter().enumerate() {
        text += &demo::text::before(number + 1, scene);
        text += &demo::text::after(scene);
    }
    text += &demo::text::closing(&document, Path::new("target/demo"));
    golden::same("demo.txt", &text);
}

#[test]
fn a_plan_of_an_audit_reads_as_its_file() {
    let recorded = RecordedHost::open(&repository().join("fixtures/hosts/deck-40g")).expect("a recorded host");
    let goal = Goal { rate_bps: Some(40_000_000_000), rtt_ns: Some(50_000_000), role: Role::Dtn, interface: None };
    let audit = check::audit(landspeed_host::collect(&recorded), &goal, &|_| true).expect("an audit");
    // Of this host the values of sysctls are recorded as files.
    let value = |change: &Change| {
        let Target::Sysctl { name } = &change.target else { return None };
        let path = repository().join("fixtures/hosts/deck-40g/proc/sys").join(name.replace('.', "/"));
        Some(Value::text(std::fs::read_to_string(path).ok()?.trim()))
    };
    let known = |change: &Change| value(change).map(|value| (change.target.clone(), value));
    let changes = changes_from_audit(&audit, &[], &[]).into_iter().filter(|change| known(change).is_some());
    let mut changes: Vec<Change> = changes.collect();
    let host = TwinKnobs::new(changes.iter().filter_map(known));
    // And one that the host lacks.
    changes.push(Change::sysctl("net.ipv4.tcp_notsent_lowat", "131072"));
    let plan = landspeed_tune::plan(&changes, &host, Allow::default());
    golden::same("tune-plan.txt", &format!("# landspeed tune plan\n{}", tune::text::plan(&plan)));
}
