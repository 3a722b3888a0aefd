//! The landspeed commands, one module each. This crate parses the command line and formats the output; the
//! measurement is in the other crates.
#![forbid(unsafe_code)]

#[macro_use]
mod terminal;

#[cfg(test)]
mod advice;
mod archive;
mod board;
mod calc;
mod check;
mod compare;
mod complete;
mod connection;
mod demo;
mod emulate;
mod explain;
#[cfg(test)]
mod golden;
mod host_changes;
mod iperf3;
mod keep;
mod lab;
mod manual;
mod mesh;
mod metrics;
#[cfg(test)]
mod missing;
mod netperf;
mod options;
mod outcome;
mod output;
mod qualify;
#[cfg(test)]
mod reference;
mod report;
mod run;
mod schema;
mod serve;
mod source;
mod sweep;
mod tap;
mod text;
mod trace;
mod trust;
mod tune;
mod tuneup;
mod watch;

use std::process::ExitCode;

use clap::error::ContextKind;
use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};

use outcome::CommandOutcome;

/// How fast data can move between two hosts, what limits it, and what to change.
#[derive(Debug, Parser)]
#[command(name = "landspeed", version, max_term_width = 100, after_help = AFTER_HELP)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

const AFTER_HELP: &str = "\
Examples:
  landspeed demo                         four checked examples on this machine
  landspeed serve                        on the server
  landspeed run dtn.example              on the client
  landspeed check --goal 10G --rtt 92ms  is this host ready for that path
  landspeed watch --for 30s              what limits the transfers of this host
  landspeed calc --rate 10G --rtt 92ms   what a path needs
  landspeed qualify border.example --target 9G --target-rtt 92ms
                                         is this section fit for that path
  landspeed mesh site.toml --once        test every pair of many hosts
  landspeed lab gallery                  what a path would do, in virtual time
  landspeed compare before/ after/       whether the difference is more than noise
  landspeed archive find --last 7d       results are kept: find them, see trends
  landspeed report run.json -o run.html  draw what was saved
  landspeed emulate path.toml -- iperf3 -c 198.18.0.2
                                         a path in real time, around a command
  landspeed tap -i eth0 -w transfer.pcapng
                                         capture headers
  landspeed trace transfer.pcap          what a capture shows, packet by packet
  landspeed explain receiver-window      what a cause, a check or a term means
  landspeed tune plan --set eth0:qdisc=fq
                                         what a change would do; apply, confirm, revert

Exit status: 0 clean, 1 findings, 2 failure.";

#[derive(Debug, Subcommand)]
enum Command {
    /// Measure a path to a server: TCP, UDP or request/response, seen from both ends
    Run(Box<run::Args>),
    /// Run the server: answer tests of landspeed and iperf3 clients
    Serve(serve::Args),
    /// Drop-in for iperf3: its flags, its text, its JSON
    Iperf3(Box<iperf3::Args>),
    /// netperf's flags and output, for flent; the server is landspeed serve
    Netperf(Box<netperf::Args>),
    /// Show what landspeed does on this machine alone
    Demo(demo::Args),
    /// Audit this host for a goal: every finding with its reason and source
    Check(Box<check::Args>),
    /// Compute windows, buffers, loss budgets and expected rates of a path
    Calc(calc::Args),
    /// Emulate paths in virtual time with the real Linux TCP stack
    Lab(lab::Args),
    /// Emulate a path in real time: around a command, between two interfaces, or for given peers
    Emulate(Box<emulate::Args>),
    /// Change settings of this host as a transaction: apply, confirm or roll back
    Tune(tune::Args),
    /// Find faster settings for a path: change one at a time, measure, keep what helps
    Tuneup(Box<tuneup::Args>),
    /// Test a short section for a long path: would it reach a rate over an RTT (RFC 8337)
    Qualify(Box<qualify::Args>),
    /// Run an experiment: vary settings in random blocks, with intervals and an A/A control
    Sweep(Box<sweep::Args>),
    /// Schedule tests among many hosts: budgets, maintenance windows, a matrix of results
    Mesh(Box<mesh::Args>),
    /// Compare groups of results: ratios with intervals, better or worse, or no detectable difference
    Compare(Box<compare::Args>),
    /// Find, show, tag and export kept results; trends with change points; import of iperf3, nuttcp, flent, perfSONAR
    Archive(archive::Args),
    /// Capture headers with exact timestamps, and report what it cost
    Tap(Box<tap::Args>),
    /// Explain TCP transfers that are already running on this host
    Watch(Box<watch::Args>),
    /// Draw saved documents: interactive page, SVG, PNG, tables
    Report(Box<report::Args>),
    /// Analyse captures: loss, RTT, retransmits, windows, and what limits each flow
    Trace(Box<trace::Args>),
    /// Print the page of a cause, a check or a term
    Explain(explain::Args),
    /// Print the JSON Schema of a document
    Schema(schema::Args),
    /// Print a completion script for a shell
    Completions(manual::CompletionArgs),
    /// Write the manual pages
    Man(manual::ManArgs),
}

/// Runs the program. Errors are printed on standard error with advice.
pub fn main() -> ExitCode {
    set_panic_hook();
    match complete::answer() {
        Ok(false) => {}
        Ok(true) => return CommandOutcome::Clean.into(),
        Err(error) => {
            errln!("landspeed: cannot complete: {error}");
            return CommandOutcome::Failure.into();
        }
    }
    let command_line = iperf3::command_line();
    // iperf3 exits with status 1 after every failure; flent only looks whether the status is 0.
    let front = |name: &str| command_line.get(1).is_some_and(|word| word == name);
    let (is_netperf, is_front) = (front(netperf::NAME), front(netperf::NAME) || front(iperf3::NAME));
    let failed = if is_front { CommandOutcome::Findings } else { CommandOutcome::Failure };
    let matches = match Cli::command().try_get_matches_from(command_line) {
        Ok(matches) => matches,
        Err(mut error) => {
            if is_netperf {
                // "To pass '-c' as a value, use '-- -c'": that makes it an option of netperf's test.
                error.remove(ContextKind::Suggested);
            }
            // clap reports help and version as errors, too; only the others are failures.
            if error.use_stderr() {
                // It quotes the command line.
                err!("{}", error.render());
            } else {
                let _ = error.print();
            }
            let words = landspeed_sys::process::command_line();
            let refused = netperf::why_refused(&words).filter(|_| is_netperf && error.use_stderr());
            if let Some(hint) = refused.or_else(|| iperf3_hint(words.get(1).map(String::as_str)).map(str::to_owned)) {
                errln!("\n{hint}");
            }
            return if error.use_stderr() { failed } else { CommandOutcome::Clean }.into();
        }
    };
    let result = Cli::from_arg_matches(&matches).map_err(anyhow::Error::from).and_then(|cli| match cli.command {
        Command::Run(args) => run::main(&args),
        Command::Serve(args) => serve::main(&args),
        Command::Iperf3(args) => iperf3::main(&args),
        Command::Netperf(args) => netperf::main(&args),
        Command::Demo(args) => demo::main(&args),
        Command::Check(args) => check::main(&args),
        Command::Calc(args) => calc::main(&args),
        Command::Lab(args) => lab::main(&args),
        Command::Emulate(args) => emulate::main(&args),
        Command::Tune(args) => tune::main(&args),
        Command::Tuneup(args) => tuneup::main(&args),
        Command::Qualify(args) => qualify::main(&args),
        Command::Sweep(args) => sweep::main(&args),
        Command::Mesh(args) => mesh::main(&args),
        Command::Compare(args) => compare::main(&args),
        Command::Archive(args) => archive::main(&args),
        Command::Tap(args) => tap::main(&args),
        Command::Watch(args) => watch::main(&args),
        Command::Report(args) => report::main(&args),
        Command::Trace(args) => trace::main(&args),
        Command::Explain(args) => explain::main(&args),
        Command::Schema(args) => schema::main(&args),
        Command::Completions(args) => manual::completions(&args),
        Command::Man(args) => manual::man(&args),
    });
    match result {
        Ok(outcome) => outcome.into(),
        Err(error) => {
            errln!("landspeed: {}", text::strip_backticks(&format!("{error:#}")));
            failed.into()
        }
    }
}

/// Returns a hint for users who type an iperf3 command line.
fn iperf3_hint(first: Option<&str>) -> Option<&'static str> {
    match first? {
        "-c" | "--client" => Some(
            "For iperf3's command line, use 'landspeed iperf3 -c HOST'. To measure with landspeed, use 'landspeed run HOST', or \
             'landspeed run HOST --iperf3' where the server is iperf3.",
        ),
        "-s" | "--server" => Some("To serve landspeed and iperf3 clients, use 'landspeed serve'."),
        _ => None,
    }
}

/// Ends the program with exit status 2 instead of a panic if standard output is closed, as in `landspeed … |
/// head`. A panic's message is escaped like all text.
fn set_panic_hook() {
    let inner = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        let text = info.payload_as_str().unwrap_or_default();
        if let Some(why) = text.strip_prefix("failed printing to ") {
            if !why.contains("Broken pipe") {
                errln!("landspeed: cannot write to {why}");
            }
            #[expect(clippy::disallowed_methods, reason = "standard output is closed: no reader is left")]
            std::process::exit(2);
        }
        if text.contains(landspeed_quote::is_unprintable) {
            errln!("landspeed: internal error: {info}");
        } else {
            inner(info);
        }
    }));
}
