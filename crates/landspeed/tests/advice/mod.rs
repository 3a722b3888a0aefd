//! Every command that landspeed prints as advice runs as printed, in a guest with the lab's kernel, which
//! it may change.
//!
//! The commands are collected from the checks on their examples and on all recorded hosts, from the
//! verdicts of all recorded documents, and from the source of all user-visible text. [`exceptions`] lists
//! those that cannot succeed there, and why; the shell parses them.
#![forbid(unsafe_code)]

mod collect;
mod exceptions;
// Texts of verdicts and warnings, collected once for this test and for the tests that parse them.
#[path = "../../../cli/src/advice/texts.rs"]
mod texts;

use std::collections::BTreeSet;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use landspeed_testkit::process::Process;
use landspeed_testkit::{in_lab_kernel, lab_kernel};

use exceptions::{PLACEHOLDERS, unsupported_in_lab};

use crate::common::PROGRAM;

/// Runs a command line in bash, for at most a minute.
fn shell(line: &str) -> Output {
    let beside = Path::new(PROGRAM).parent().expect("a directory");
    let path = format!("{}:{}", beside.display(), std::env::var("PATH").expect("a path"));
    let mut bash = Command::new("timeout");
    bash.args(["60", "bash", "-o", "pipefail", "-c", line]).env("PATH", path).env("NO_COLOR", "1");
    // nstat would write below /tmp, which is read-only in the guest.
    bash.env("NSTAT_HISTORY", "/run/tmp/nstat");
    bash.stdin(Stdio::null()).output().expect("timeout, of coreutils, runs")
}

fn output_text(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

/// Whether the command succeeded. A grep may find nothing; a plan may name settings that this device lacks.
fn succeeded(line: &str, output: &Output) -> bool {
    let found_nothing = || line.contains("grep ") && output.stderr.is_empty();
    let refused = || {
        let plan = output_text(output);
        let lacking = ["is not there", "keeps it fixed", "can be changed"].iter().any(|why| plan.contains(why));
        line.starts_with("landspeed tune plan ") && plan.starts_with("Plan: ") && lacking
    };
    output.status.success() || output.status.code() == Some(1) && (found_nothing() || refused())
}

/// Creates interfaces with these names and several queues.
fn make_interfaces(names: &BTreeSet<String>) {
    for (number, name) in names.iter().enumerate() {
        let made = shell(&format!(
            "ip link add {name} numtxqueues 16 numrxqueues 16 type veth peer name far{number} && ip link set {name} up &&
             ip link set far{number} up"
        ));
        assert!(made.status.success(), "{name}: {}", output_text(&made));
    }
}

#[test]
fn every_command_in_advice_runs_as_printed() {
    if !lab_kernel::runs_in_lab_kernel() {
        in_lab_kernel!("commands that change a host run in a guest");
    }
    let advice = collect::commands();
    make_interfaces(&advice.interfaces);
    let (mut ran, mut failed) = (0, Vec::new());
    for (line, from) in &advice.commands {
        let output = shell(line);
        if succeeded(line, &output) {
            ran += 1;
        } else if let Some(why) = unsupported_in_lab(line) {
            println!("only parsed: {line}: {why}");
        } else {
            failed.push(format!("{line} ({from}): {}, {}", output.status, output_text(&output)));
        }
    }
    println!("{ran} of {} commands ran", advice.commands.len());
    assert!(failed.is_empty(), "{}", failed.join("\n"));
    assert!(ran > 100, "only {ran} of {} commands ran", advice.commands.len());
}

#[test]
fn every_option_in_advice_runs_as_printed() {
    if !lab_kernel::runs_in_lab_kernel() {
        in_lab_kernel!("the ends of a run should not share this host's cores with other tests");
    }
    let mut command = Command::new(PROGRAM);
    command.args(["serve", "--listen", "127.0.0.1:0"]).env("NO_COLOR", "1");
    let server = Process::start(command);
    let address = server.address_in("listening on");
    let options = collect::run_options();
    for option in &options {
        let output = shell(&format!("landspeed run {address} -t 0.2 {option}"));
        assert!(matches!(output.status.code(), Some(0 | 1)), "{option}: {}", output_text(&output));
    }
    assert!(options.len() > 5, "{options:?}");
}

#[test]
fn bash_parses_every_command_in_advice() {
    for (line, from) in collect::commands().commands {
        let parsed = Command::new("bash").args(["-n", "-c", &line]).output().expect("bash");
        assert!(parsed.status.success(), "{line} ({from}): {}", output_text(&parsed));
    }
}

#[test]
fn commands_in_findings_are_in_backticks() {
    for (text, from) in collect::finding_texts() {
        let prose: String = text.split('`').step_by(2).collect();
        let words: Vec<&str> = prose.split_whitespace().collect();
        let bare = words.windows(2).find(|pair| {
            // `ethtool -K`, `sysctl --system`, `modprobe tcp_bbr`: a program with an argument, not part of a sentence.
            let argument = pair[1].starts_with('-') && pair[1].len() > 1 || pair[1].contains(['_', '.', '=']);
            texts::PROGRAMS.contains(&pair[0]) && argument
        });
        assert!(bare.is_none(), "{from}: {bare:?} in {text}: put commands in backticks");
    }
}

#[test]
fn every_exception_matches_a_command() {
    let advice = collect::commands();
    for (part, why) in exceptions::UNSUPPORTED_IN_LAB {
        assert!(advice.commands.keys().any(|line| line.contains(part)), "no command has {part} ({why})");
    }
    let source = texts::commands();
    for (command, _) in PLACEHOLDERS {
        assert!(source.contains(*command), "no source has {command}");
    }
}
